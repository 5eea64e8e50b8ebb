"""Distributions of many forms: Tukey's lambda, hyperbolic ones, and others."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import in_64_bits, operands
from fxflow.scipy.special._tukey import tukey_log_tail, tukey_quantile
from fxflow.scipy.special.error_functions import erfcx
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.special.normal import log_ndtr
from fxflow.scipy.stats._building import LOG_SQRT_2PI, from_middle
from fxflow.scipy.stats._continuous import Continuous
from fxflow.scipy.stats._domains import COUNT, REAL, Domain
from fxflow.scipy.stats._extremes import central
from fxflow.scipy.stats._positives import log_rest
from fxflow.scipy.stats._protocol import log_of
from fxflow.scipy.stats._quadrature import expected


def _lam(lam: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...
def _n(n: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...
def _rho(rho: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> None: ...
def _pb(
    p: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> None: ...
def _pab(
    p: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    loc: ArrayLike = 0,
    scale: ArrayLike = 1,
) -> None: ...
def _usab(
    u: ArrayLike,
    s: ArrayLike,
    a: ArrayLike,
    b: ArrayLike,
    loc: ArrayLike = 0,
    scale: ArrayLike = 1,
) -> None: ...
def _abcz(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike,
    z: ArrayLike,
    loc: ArrayLike = 0,
    scale: ArrayLike = 1,
) -> None: ...


# -- Tukey's ---------------------------------------------------------------------------


def _tukey_tail(z: Any, lam: Any) -> Any:
    """Returns the logarithm of the tail beyond -|z|."""
    z, lam = operands("tukeylambda", -abs(z), lam)
    return in_64_bits(tukey_log_tail, "tukeylambda", z, lam)


def _log_density_of(t: Any, lam: Any) -> Any:
    """Returns the logarithm of the density where the lower tail is exp(t)."""
    return -fnp.logaddexp((lam - 1) * t, (lam - 1) * lax.log1p(-lax.exp(t)))


def _tukey_logcdf(z: Any, lam: Any) -> Any:
    t = _tukey_tail(z, lam)
    return fnp.where(z <= 0, t, log_rest(t))


def _tukey_ppf(q: Any, lam: Any) -> Any:
    low = q <= 0.5
    t = lax.log(fnp.where(low, q, 1 - q))
    size = tukey_quantile(fnp.minimum(t, -math.log(2)), lam)
    return fnp.where(low, size, -size)


def _tukey_moment(order: int, lam: Any) -> Any:
    """Returns the mean of an even power: by quadrature near 0."""
    known = lam > -1 / order
    near = abs(lam) < 0.25
    some = fnp.where(near & known, lam, 0.1)
    quadrature = expected(
        lambda z: z**order,
        _tukey_ppf,
        lambda q, lam: -_tukey_ppf(q, lam),
        (some,),
        (),
    )
    a = fnp.where(near | ~known, 1.0, lam)
    beta: Any = lambda p, q: lax.exp(betaln(p * a + 1, q * a + 1))
    if order == 2:
        closed = 2 * (beta(2, 0) - beta(1, 1)) / a**2
    else:
        closed = (2 * beta(4, 0) - 8 * beta(3, 1) + 6 * beta(2, 2)) / a**4
    return fnp.where(known, fnp.where(near, quadrature, closed), math.inf)


def _tukey_kurtosis(lam: Any) -> Any:
    known = lam > -0.25
    safe = fnp.where(known, lam, 0.1)
    value = _tukey_moment(4, safe) / _tukey_moment(2, safe) ** 2 - 3
    return fnp.where(known, value, math.nan)


def _tukey_end(sign: float) -> Any:
    def end(lam: Any) -> Any:
        known = lam > 0
        return fnp.where(known, sign / fnp.where(known, lam, 1), sign * math.inf)

    return end


tukeylambda: Final = Continuous(
    "tukeylambda",
    "Tukey's lambda distribution, whose quantiles are (q^lam - (1 - q)^lam) / lam.",
    _lam,
    lam=REAL.but(0.1),
    support=(_tukey_end(-1.0), _tukey_end(1.0)),
    logpdf=lambda z, lam: _log_density_of(_tukey_tail(z, lam), lam),
    logcdf=_tukey_logcdf,
    ppf=_tukey_ppf,
    var=lambda lam: _tukey_moment(2, lam),
    kurtosis=_tukey_kurtosis,
    entropy=lambda lam: expected(
        lambda t, lam: -_log_density_of(t, lam),
        lambda q, lam: lax.log(q),
        lambda q, lam: lax.log(q),
        (lam,),
        (lam,),
    ),
    symmetric=True,
)

# -- sums of uniform variables ---------------------------------------------------------

#: Half of the greatest number of variables.
_PIECES = 64
_MOST = 2 * _PIECES - 2


def _splines(x: Any, n: Any) -> Any:
    """Returns the density of the sum of n variables at x, x - 1, …: [..., pieces].

    All terms of de Boor's recurrence are positive.
    """
    y = fnp.expand_dims(x, -1) - fnp.arange(_PIECES, dtype=x.dtype)
    count = fnp.expand_dims(n, -1)
    first = fnp.where((y >= 0) & (y < 1), 1.0, 0.0).astype(x.dtype)

    def step(state: Any) -> Any:
        m, v = state
        after = fnp.concatenate([v[..., 1:], 0 * v[..., :1]], axis=-1)
        new = (y * v + (m - y) * after) / (m - 1)
        return m + 1, fnp.where(m <= count, fnp.maximum(new, 0), v)

    start = (lax.full((), 2, x.dtype), first)
    return lax.while_loop(lambda s: s[0] <= fnp.max(count), step, start)[1]


_none = lambda x, n: 0 * x
_irwin_pdf: Any = by_forward(lambda x, n: _splines(x, n)[..., 0], None, _none)
# The difference of two distribution functions is a density of one variable more.
_irwin_cdf: Any = by_forward(
    lambda x, n: fnp.sum(_splines(x, n + 1), axis=-1),
    lambda x, n: _irwin_pdf(x, n),
    _none,
)


def _irwin_tail(z: Any, n: Any) -> tuple[Any, Any]:
    """Returns the smaller tail, and whether it is the lower one."""
    z, n = operands("irwinhall", z, n)
    low = z < 0.5 * n
    return _irwin_cdf(fnp.where(low, z, n - z), n), low


def _irwin(upper: bool) -> Any:
    def tail(z: Any, n: Any) -> Any:
        value, low = _irwin_tail(z, n)
        return fnp.where(low != upper, value, 1 - value)

    return tail


def _irwin_density(z: Any, n: Any) -> Any:
    z, n = operands("irwinhall", z, n)
    # With one variable the density is not 0 at the ends.
    low = (z < 0.5 * n) | (n == 1)
    at = fnp.where(n == 1, 0.5, fnp.where(low, z, n - z))
    return _irwin_pdf(at, n)


irwinhall: Final = Continuous(
    "irwinhall",
    "The sum of n uniform variables.",
    _n,
    n=COUNT._replace(
        words=f"integers from 1 to {_MOST}, array-like",
        holds=lambda n: (n > 0) & (n <= _MOST) & COUNT.holds(n),
    ),
    support=(0, lambda n: n),
    pdf=_irwin_density,
    logpdf=lambda z, n: log_of(_irwin_density(z, n)),
    cdf=_irwin(upper=False),
    sf=_irwin(upper=True),
    mean=lambda n: 0.5 * n,
    var=lambda n: n / 12,
    skew=lambda n: 0 * n,
    kurtosis=lambda n: -1.2 / n,
)

# -- Breit and Wigner's ----------------------------------------------------------------


def _breit_parts(rho: Any) -> tuple[Any, Any, Any]:
    """Returns the real and imaginary parts of √(ρ² + iρ), and the density's factor."""
    size = fnp.sqrt(fnp.hypot(rho * rho, rho))
    angle = 0.5 * lax.atan2(lax.full_like(rho, 1), rho)
    a, b = size * lax.cos(angle), size * lax.sin(angle)
    # The whole integral is π/2 Re(1/√c), of c = ρ² + iρ, over ρ.
    return a, b, 2 * rho * size * size / (math.pi * a)


def _breit_arctangent(u: Any, v: Any) -> tuple[Any, Any]:
    """Returns the parts of artanh(u + iv)."""
    square = u * u + v * v
    real = 0.25 * (
        lax.log1p(2 * u + square) - lax.log(fnp.maximum(1 - 2 * u + square, 1e-300))
    )
    return real, 0.5 * lax.atan2(2 * v, 1 - square)


def _breit_tail(x: Any, rho: Any, upper: bool) -> Any:
    """Returns ∫ of the density beyond x, or up to it."""
    a, b, factor = _breit_parts(rho)
    size = a * a + b * b
    if upper:
        # Im(artanh(√c/x) / √c)
        u, v = a / x, b / x
        real, imaginary = _breit_arctangent(u, v)
        value = (imaginary * a - real * b) / size
        # Its power series, where it cancels.
        far = x * x > 400 * size
        y = 1 / fnp.where(far, x, 1)
        c, d = rho * rho, rho
        terms = d / 3 + 2 * c * d * y * y / 5 + (3 * c * c * d - d**3) * y**4 / 7
        terms = terms + 4 * (c**3 * d - c * d**3) * y**6 / 9
        return factor / rho * fnp.where(far, terms * y**3, value)
    # -Im(artanh(x/√c) / √c)
    u, v = x * a / size, -x * b / size
    real, imaginary = _breit_arctangent(u, v)
    return factor / rho * -(imaginary * a - real * b) / size


def _breit(name: str) -> Any:
    def lower(x: Any, rho: Any) -> Any:
        below = x <= rho
        value = _breit_tail(fnp.where(below, x, 1), rho, False)
        rest = _breit_tail(fnp.where(below, 1, x), rho, True)
        if name == "cdf":
            return fnp.where(below, value, 1 - rest)
        return fnp.where(below, 1 - value, rest)

    return lambda x, rho: in_64_bits(lower, "rel_breitwigner", x, rho)


rel_breitwigner: Final = Continuous(
    "rel_breitwigner",
    "The relativistic Breit-Wigner distribution of masses of unstable particles.",
    _rho,
    support=(0, math.inf),
    logpdf=lambda x, rho: (
        lax.log(_breit_parts(rho)[2])
        - lax.log(((x - rho) * (x + rho)) ** 2 + rho * rho)
    ),
    cdf=_breit("cdf"),
    sf=_breit("sf"),
    mean=lambda rho: (
        _breit_parts(rho)[2]
        / (2 * rho)
        * (math.pi / 2 + lax.atan2(rho, lax.full_like(rho, 1)))
    ),
    var=lambda rho: _breit_var(rho),
    skew=lambda rho: math.nan + 0 * rho,
    kurtosis=lambda rho: math.nan + 0 * rho,
)


def _breit_var(rho: Any) -> Any:
    a, _, factor = _breit_parts(rho)
    mean = factor / (2 * rho) * (math.pi / 2 + lax.atan2(rho, lax.full_like(rho, 1)))
    return factor * math.pi * a / (2 * rho) - mean * mean


# -- Pareto's double tails on a lognormal one ------------------------------------------


def _log_mills(y: Any, z: Any) -> Any:
    """Returns log φ(z) R(y), R being Mills' ratio, where both may overflow."""
    positive = y > 0
    near = lax.log(erfcx(fnp.where(positive, y, 1) * math.sqrt(0.5)))
    near = near + 0.5 * math.log(math.pi / 2) - 0.5 * z * z - LOG_SQRT_2PI
    far = log_ndtr(-fnp.where(positive, -1, y)) + 0.5 * (y - z) * (y + z)
    return fnp.where(positive, near, far)


def _pareto_terms(x: Any, u: Any, s: Any, a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Returns z = (log x - u) / s, and the logarithms of the two tails' terms."""
    z = (lax.log(x) - u) / s
    return z, _log_mills(a * s - z, z), _log_mills(b * s + z, z)


def _dpareto_logpdf(x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
    _, one, two = _pareto_terms(x, u, s, a, b)
    return (
        lax.log(a) + lax.log(b) - lax.log(a + b) - lax.log(x) + fnp.logaddexp(one, two)
    )


def _dpareto(upper: bool) -> Any:
    def log(x: Any, u: Any, s: Any, a: Any, b: Any) -> Any:
        z, one, two = _pareto_terms(x, u, s, a, b)
        sign = -1.0 if upper else 1.0
        own = log_ndtr(sign * z)
        if upper:
            a, b, one, two = b, a, two, one
        # Φ(z) - φ(z) (b R(as - z) - a R(bs + z)) / (a + b), over Φ(z)
        less = b / (a + b) * lax.exp(one - own)
        more = a / (a + b) * lax.exp(two - own)
        return own + lax.log(fnp.maximum(1 - less + more, 1e-300))

    return log


def _dpareto_raw(n: int, u: Any, s: Any, a: Any, b: Any) -> Any:
    known = a > n
    c = fnp.where(known, a, n + 1)
    value = c * b / ((c - n) * (b + n)) * lax.exp(n * u + 0.5 * (n * s) ** 2)
    return fnp.where(known, value, math.inf)


dpareto_lognorm: Final = Continuous(
    "dpareto_lognorm",
    "A lognormal variable times a Pareto one over another: tails of powers a and b.",
    _usab,
    u=REAL,
    support=(0, math.inf),
    closed=False,
    logpdf=_dpareto_logpdf,
    logcdf=_dpareto(upper=False),
    logsf=_dpareto(upper=True),
    **central(_dpareto_raw),
)

# -- Bessel functions ------------------------------------------------------------------

#: Nodes of the trapezoidal rule in units of the peak's width, which is at most 1.
_NODES = np.arange(-20, 20.1, 0.2)


def _peak(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns nodes about the peak of v u - x cosh u, and how far they are apart."""
    v, x = (lax.stop_gradient(fnp.expand_dims(a, -1)) for a in (v, x))
    width = fnp.minimum((x * x + v * v) ** -0.25, 1)
    nodes = fnp.arcsinh(v / x) + width * fnp.asarray(_NODES, x.dtype)
    return nodes, width[..., 0] * 0.2


def log_sum(log: Any, step: Any) -> Any:
    """Returns the logarithm of a step times a sum of exponentials along an axis."""
    most = lax.stop_gradient(fnp.max(log, axis=-1, keepdims=True))
    return most[..., 0] + lax.log(fnp.sum(lax.exp(log - most), axis=-1) * step)


def _log_k(v: Any, x: Any) -> Any:
    """Returns log 2 K(v, x): an integral that is differentiable in the order, too."""
    u, step = _peak(v, x)
    wide: Any = lambda a: fnp.expand_dims(a, -1)
    return log_sum(wide(v) * u - wide(x) * fnp.cosh(u), step)


def _in_64(f: Any) -> Any:
    return lambda *args: in_64_bits(f, "hyperbolic", *args)


def _gig_middle(p: Any, b: Any) -> tuple[Any, Any]:
    return fnp.arcsinh(p / b), (b * b + p * p) ** -0.25


def _gig_shape(w: Any, p: Any, b: Any) -> Any:
    """Returns the logarithm of the density of log X, but for a factor."""
    m, s = _gig_middle(p, b)
    u = m + s * w
    return p * u - b * fnp.cosh(u)


_GIG = from_middle(
    lambda w, p, b: _gig_shape(w, p, b) + lax.log(_gig_middle(p, b)[1]) - _log_k(p, b),
    lambda p, b: 0.0 * p,
)


def _gig_logs(z: Any, p: Any, b: Any) -> Any:
    m, s = _gig_middle(p, b)
    return fnp.stack(_GIG["logs"]((lax.log(z) - m) / s, p, b))


def _gig_raw(n: int, p: Any, b: Any) -> Any:
    return lax.exp(_log_k(p + n, b) - _log_k(p, b))


geninvgauss: Final = Continuous(
    "geninvgauss",
    "The generalized inverse Gaussian distribution: x^(p-1) exp(-b (x + 1/x) / 2).",
    _pb,
    p=REAL,
    support=(0, math.inf),
    closed=False,
    logpdf=_in_64(
        lambda z, p, b: (p - 1) * lax.log(z) - 0.5 * b * (z + 1 / z) - _log_k(p, b)
    ),
    logs=lambda *args: tuple(_in_64(_gig_logs)(*args)),
    logcdf=lambda *args: _in_64(_gig_logs)(*args)[0],
    logsf=lambda *args: _in_64(_gig_logs)(*args)[1],
    **{name: _in_64(f) for name, f in central(_gig_raw).items()},
)


def _root(a: Any, b: Any) -> Any:
    return fnp.sqrt((a - b) * (a + b))


def _gh_logpdf(z: Any, p: Any, a: Any, b: Any) -> Any:
    r = fnp.sqrt(1 + z * z)
    gamma = _root(a, b)
    value = p * lax.log(gamma) - LOG_SQRT_2PI - (p - 0.5) * lax.log(a)
    value = value - _log_k(p, gamma) + b * z
    return value + _log_k(p - 0.5, a * r) + (p - 0.5) * lax.log(r)


def _gh_log_tail(z: Any, p: Any, a: Any, b: Any, sign: Any) -> Any:
    """Returns the logarithm of a tail: a mean of normal ones over the variance."""
    gamma, r = _root(a, b), fnp.sqrt(1 + z * z)
    # The nodes are about the variance that makes z likely.
    u, step = _peak(p - 0.5, a * r)
    wide: Any = lambda v: fnp.expand_dims(v, -1)
    u = u + lax.stop_gradient(wide(lax.log(r * gamma / a)))
    y = lax.exp(u) / wide(gamma)
    apart = wide(sign) * (wide(z) - wide(b) * y) / fnp.sqrt(y)
    log = wide(p) * u - wide(gamma) * fnp.cosh(u) + log_ndtr(apart)
    return fnp.minimum(log_sum(log, step) - _log_k(p, gamma), -1e-300)


def _gh_logs(z: Any, p: Any, a: Any, b: Any) -> Any:
    low = z < _gh_mean(p, a, b)
    log = _gh_log_tail(z, p, a, b, fnp.where(low, 1.0, -1.0).astype(z.dtype))
    rest = log_rest(log)
    return fnp.stack([fnp.where(low, log, rest), fnp.where(low, rest, log)])


def _gh_mean(p: Any, a: Any, b: Any) -> Any:
    gamma = _root(a, b)
    return b / gamma * lax.exp(_log_k(p + 1, gamma) - _log_k(p, gamma))


def _gh_var(p: Any, a: Any, b: Any) -> Any:
    gamma = _root(a, b)
    one, two = (lax.exp(_log_k(p + n, gamma) - _log_k(p, gamma)) for n in (1, 2))
    return one / gamma + (b / gamma) ** 2 * (two - one * one)


genhyperbolic: Final = Continuous(
    "genhyperbolic",
    "A normal variable whose mean and variance go with a generalized inverse Gaussian "
    "one.",
    _pab,
    p=REAL,
    b=REAL.but(0.0),
    joint=lambda p, a, b: abs(b) < a,
    logpdf=_in_64(_gh_logpdf),
    logs=lambda *args: tuple(_in_64(_gh_logs)(*args)),
    logcdf=lambda *args: _in_64(_gh_logs)(*args)[0],
    logsf=lambda *args: _in_64(_gh_logs)(*args)[1],
    mean=_in_64(_gh_mean),
    var=_in_64(_gh_var),
)

# -- Gauss' hypergeometric one ---------------------------------------------------------

_T = np.arange(-6, 6.001, 0.03)
#: Logarithms of the nodes of the rule of Takahasi and Mori on 0 … 1, of the rest to 1,
#: and of the weights.
LOWS = -np.logaddexp(0, -math.pi * np.sinh(_T))
RESTS = -np.logaddexp(0, math.pi * np.sinh(_T))
WEIGHTS = LOWS + RESTS + np.log(math.pi * np.cosh(_T) * 0.03)

_FACTOR = Domain(
    "real array-like above -1",
    lambda x: (x > -1) & (x < math.inf),
    1.0,
    lax.expm1,
    lax.log1p,
)


def _gauss_sum(size: Any, upper: bool, a: Any, b: Any, c: Any, z: Any) -> Any:
    """Returns the logarithm of the integral over the part of a size at an end."""
    wide: Any = lambda v: fnp.expand_dims(v, -1)
    low, rest, weight = (fnp.asarray(v, size.dtype) for v in (LOWS, RESTS, WEIGHTS))
    size = wide(size)
    near = lax.log(size) + low
    other = lax.log(fnp.maximum((1 - size) + size * lax.exp(rest), 1e-300))
    # Over the whole interval the rest has its own logarithm.
    other = fnp.where(size == 1, rest, other)
    x, y = (other, near) if upper else (near, other)
    log = weight + lax.log(size) + wide(a - 1) * x + wide(b - 1) * y
    return log_sum(log - wide(c) * lax.log1p(wide(z) * lax.exp(x)), 1.0)


def _gauss_log_norm(a: Any, b: Any, c: Any, z: Any) -> Any:
    a, b, c, z = operands("gausshyper", a, b, c, z)
    return _gauss_sum(lax.full_like(a, 1), False, a, b, c, z)


def _gauss_logpdf(x: Any, a: Any, b: Any, c: Any, z: Any) -> Any:
    value = (a - 1) * lax.log(x) + (b - 1) * lax.log1p(-x) - c * lax.log1p(z * x)
    return value - _gauss_log_norm(a, b, c, z)


def _gauss_logs(x: Any, a: Any, b: Any, c: Any, z: Any) -> tuple[Any, Any]:
    x, a, b, c, z = operands("gausshyper", x, a, b, c, z)
    low = x < a / (a + b)
    norm = _gauss_log_norm(a, b, c, z)
    below = _gauss_sum(fnp.where(low, x, 0.5), False, a, b, c, z) - norm
    above = _gauss_sum(fnp.where(low, 0.5, 1 - x), True, a, b, c, z) - norm
    below, above = (fnp.minimum(v, -1e-300) for v in (below, above))
    return (
        fnp.where(low, below, log_rest(above)),
        fnp.where(low, log_rest(below), above),
    )


def _gauss_raw(n: int, a: Any, b: Any, c: Any, z: Any) -> Any:
    return lax.exp(_gauss_log_norm(a + n, b, c, z) - _gauss_log_norm(a, b, c, z))


gausshyper: Final = Continuous(
    "gausshyper",
    "The Gauss hypergeometric distribution: x^(a-1) (1 - x)^(b-1) (1 + z x)^-c.",
    _abcz,
    c=REAL.but(1.0),
    z=_FACTOR,
    support=(0, 1),
    closed=False,
    logpdf=_gauss_logpdf,
    logs=_gauss_logs,
    logcdf=lambda *args: _gauss_logs(*args)[0],
    logsf=lambda *args: _gauss_logs(*args)[1],
    **central(_gauss_raw),
)
