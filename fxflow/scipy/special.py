"""Special functions: `fxflow.scipy.special`.

All of them act on each element of their arguments, which are broadcast and converted to
one float dtype, but for `logsumexp`, `softmax` and `log_softmax`.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, DtypeError
from fxflow.lax.gradient_control import stop_gradient
from fxflow.numpy._operands import array_of, broadcast, convert, promote_inexact
from fxflow.numpy.reductions import max, sum
from fxflow.numpy.selection import choose_between
from fxflow.transforms.custom_jvp import custom_jvp

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def _operands(name: str, *args: Any, real: bool = True) -> list[Any]:
    """Returns operands of one float dtype and one shape."""
    out = broadcast(name, promote_inexact(name, *args))
    if real and dtypes.is_complex(out[0].aval.dtype):
        raise DtypeError(f"{name}: takes real numbers, got {out[0].aval}")
    return out


def _filled(x: Any, value: float) -> Any:
    return lax.full_like(x, value)


def _safe(condition: Any, x: Any, value: float) -> Any:
    """Returns `x` where a condition holds, a harmless value elsewhere.

    What is not chosen later must be finite, or derivatives would be nan.
    """
    return choose_between(condition, x, _filled(x, value))


def _whole(args: list[Any]) -> list[Any]:
    """Returns operands that all have the full shape."""
    shape = lax.broadcast_shapes(*[a.aval.shape for a in args])
    return [
        a if a.aval.shape == shape else lax.broadcast_in_dim(a, shape, ()) for a in args
    ]


# -- gamma and its family -----------------------------------------------------------


@library()
def gammaln(x: Any) -> Array:
    """Logarithm of the absolute value of the gamma function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      0 and negative integers → inf.

    Example:
      >>> gammaln(4.0).round(4)
      Array(1.7918, dtype=float32, weak_type=True)

    Source: `scipy.special.gammaln`.
    """
    (x,) = _operands("gammaln", x)
    return lax.lgamma(x)  # type: ignore[no-any-return]


@library()
def gammasgn(x: Any) -> Array:
    """Sign of the gamma function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      Negative integers → nan; ±0 → ±1.

    Source: `scipy.special.gammasgn`.
    """
    (x,) = _operands("gammasgn", x)
    whole = lax.floor(x)
    odd = whole - 2 * lax.floor(whole / 2) != 0
    below = choose_between(odd, _filled(x, -1), _filled(x, 1))
    below = choose_between(whole == x, _filled(x, math.nan), below)
    zero = lax.sign(1 / x)
    out = choose_between(x < 0, below, choose_between(x == 0, zero, _filled(x, 1)))
    out = choose_between(x == -math.inf, _filled(x, math.nan), out)
    return choose_between(x != x, x, out)  # type: ignore[no-any-return]


@library()
def gamma(x: Any) -> Array:
    """Gamma function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      Negative integers → nan; ±0 → ±inf.

    Example:
      >>> gamma(5.0).round(3)
      Array(24., dtype=float32, weak_type=True)

    Source: `scipy.special.gamma`.
    """
    (x,) = _operands("gamma", x)
    return gammasgn(x) * lax.exp(lax.lgamma(x))  # type: ignore[no-any-return]


@library()
def factorial(n: Any) -> Array:
    """Factorial, by the gamma function of n + 1.

    Args:
      n: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      Negative numbers → 0.

    Source: `scipy.special.factorial`.
    """
    (x,) = _operands("factorial", n)
    value = lax.exp(lax.lgamma(_safe(x >= 0, x, 0) + 1))
    return choose_between(x < 0, _filled(x, 0), value)  # type: ignore[no-any-return]


@library()
def beta(a: Any, b: Any) -> Array:
    """Beta function.

    Args:
      a: real array-like.
      b: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.beta`.
    """
    x, y = _operands("beta", a, b)
    sign = gammasgn(x) * gammasgn(y) * gammasgn(x + y)
    return sign * lax.exp(betaln(x, y))  # type: ignore[no-any-return]


@library()
def betaln(a: Any, b: Any) -> Array:
    """Logarithm of the absolute value of the beta function.

    Args:
      a: real array-like.
      b: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.betaln`.
    """
    x, y = _operands("betaln", a, b)
    return lax.lgamma(x) + lax.lgamma(y) - lax.lgamma(x + y)  # type: ignore[no-any-return]


@library()
def betainc(a: Any, b: Any, x: Any) -> Array:
    """Regularized incomplete beta function.

    Args:
      a: positive real array-like.
      b: positive real array-like.
      x: real array-like from 0 to 1.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.betainc`.
    """
    a, b, x = _whole(_operands("betainc", a, b, x))
    return lax.betainc(a, b, x)  # type: ignore[no-any-return]


@library()
def gammainc(a: Any, x: Any) -> Array:
    """Regularized lower incomplete gamma function.

    Args:
      a: positive real array-like.
      x: non-negative real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.gammainc`.
    """
    a, x = _whole(_operands("gammainc", a, x))
    return lax.igamma(a, x)  # type: ignore[no-any-return]


@library()
def gammaincc(a: Any, x: Any) -> Array:
    """Regularized upper incomplete gamma function.

    Args:
      a: positive real array-like.
      x: non-negative real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.gammaincc`.
    """
    a, x = _whole(_operands("gammaincc", a, x))
    return lax.igammac(a, x)  # type: ignore[no-any-return]


@library()
def poch(z: Any, m: Any) -> Array:
    """Rising factorial: gamma(z + m) / gamma(z).

    Args:
      z: real array-like.
      m: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.poch`.
    """
    z, m = _operands("poch", z, m)
    sign = gammasgn(z) * gammasgn(z + m)
    value = sign * lax.exp(lax.lgamma(z + m) - lax.lgamma(z))
    return choose_between(m == 0, _filled(value, 1), value)  # type: ignore[no-any-return]


@library()
def digamma(x: Any) -> Array:
    """Derivative of the logarithm of the gamma function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      0 and negative integers → nan.

    Source: `scipy.special.digamma`.
    """
    (x,) = _operands("digamma", x)
    return lax.digamma(x)  # type: ignore[no-any-return]


@library()
def polygamma(n: Any, x: Any) -> Array:
    """Derivatives of the digamma function.

    Args:
      n: non-negative integers, array-like: which.
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.polygamma`.
    """
    n, x = _whole(_operands("polygamma", n, x))
    return lax.polygamma(n, x)  # type: ignore[no-any-return]


def zeta(x: Any, q: Any = 1.0) -> Array:
    """Hurwitz's zeta function, the sum of (n + q)⁻ˣ; Riemann's, if `q` is 1.

    Args:
      x: real array-like.
      q: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.zeta`.
    """
    return _zeta(x, q)


@library()
def _zeta(x: Any, q: Any) -> Any:
    return lax.zeta(*_whole(_operands("zeta", x, q)))


@library("d")
def multigammaln(a: Any, d: int) -> Array:
    """Logarithm of the multivariate gamma function.

    Args:
      a: real array-like, above (d - 1) / 2.
      d: dimension.

    Returns:
      Float array of the shape of `a`.

    Raises:
      ArgumentError: `d` is no integer.
      DtypeError: `a` is complex.

    Source: `scipy.special.multigammaln`.
    """
    try:
        d = operator.index(d)
    except TypeError as error:
        raise ArgumentError(f"multigammaln: d must be an integer, got {d!r}") from error
    (a,) = _operands("multigammaln", a)
    out = _filled(a, d * (d - 1) / 4 * math.log(math.pi))
    for i in range(d):
        out = out + lax.lgamma(a - i / 2)
    return out  # type: ignore[no-any-return]


# -- errors and normal distribution -------------------------------------------------


@library()
def erf(x: Any) -> Array:
    """Error function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Example:
      >>> erf(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: `scipy.special.erf`.
    """
    (x,) = _operands("erf", x)
    return lax.erf(x)  # type: ignore[no-any-return]


@library()
def erfc(x: Any) -> Array:
    """Complement of the error function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.erfc`.
    """
    (x,) = _operands("erfc", x)
    return lax.erfc(x)  # type: ignore[no-any-return]


@library()
def erfinv(x: Any) -> Array:
    """Inverse of the error function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      ±1 → ±inf; outside → nan.

    Source: `scipy.special.erfinv`.
    """
    (x,) = _operands("erfinv", x)
    return lax.erf_inv(x)  # type: ignore[no-any-return]


@library()
def ndtr(x: Any) -> Array:
    """Distribution function of the standard normal distribution.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Example:
      >>> ndtr(0.0)
      Array(0.5, dtype=float32, weak_type=True)

    Source: `scipy.special.ndtr`.
    """
    (x,) = _operands("ndtr", x)
    w = x * math.sqrt(0.5)
    z = lax.abs(w)
    # Each branch is exact where it is taken: erf near 0, erfc in the tails.
    half = 0.5 * lax.erfc(z)
    tails = choose_between(w > 0, 1 - half, half)
    return choose_between(z < math.sqrt(0.5), 0.5 + 0.5 * lax.erf(w), tails)  # type: ignore[no-any-return]


@library()
def log_ndtr(x: Any) -> Array:
    """Logarithm of the normal distribution function, exact in the tails.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.log_ndtr`.
    """
    (x,) = _operands("log_ndtr", x)
    wide = dtypes.bits(x.aval.dtype) == 64
    low, high = (-20.0, 8.0) if wide else (-10.0, 5.0)
    middle = lax.log(ndtr(_safe((x > low) & (x < high), x, 0)))
    upper = -ndtr(-_safe(x >= high, x, high))
    y = _safe(x <= low, x, low)
    square = y * y
    # The asymptotic series of Mills' ratio.
    series, term = _filled(y, 1), _filled(y, 1)
    for k in range(1, 7):
        term = term * -(2 * k - 1) / square
        series = series + term
    lower = -0.5 * square - lax.log(-y) - _LOG_SQRT_2PI + lax.log(series)
    out = choose_between(x <= low, lower, choose_between(x >= high, upper, middle))
    return choose_between(x != x, x, out)  # type: ignore[no-any-return]


@custom_jvp
def _ndtri(p: Any) -> Any:
    q = choose_between(p < 0.5, p, 1 - p)
    inside = q > 0
    logq = lax.log(_safe(inside, q, 0.5))
    t = lax.sqrt(-2 * logq)
    # Abramowitz and Stegun 26.2.23, to 4.5e-4; then Halley's steps in logarithms.
    top = 2.515517 + t * (0.802853 + t * 0.010328)
    bottom = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    x = top / bottom - t
    for _ in range(3):
        now = log_ndtr(x)
        slope = lax.exp(-0.5 * x * x - _LOG_SQRT_2PI - now)
        gap = now - logq
        bend = -slope * (x + slope)
        x = x - 2 * gap * slope / (2 * slope * slope - gap * bend)
    x = choose_between(inside, x, _filled(x, -math.inf))
    x = choose_between(p < 0.5, x, -x)
    x = choose_between(p == 0.5, _filled(x, 0), x)
    return choose_between((p >= 0) & (p <= 1), x, _filled(x, math.nan))


def _ndtri_slope(primals: Any, tangents: Any) -> Any:
    (p,), (dp,) = primals, tangents
    x = _ndtri(p)
    return x, dp * lax.exp(0.5 * x * x + _LOG_SQRT_2PI)


_ndtri.defjvp(_ndtri_slope)


@library()
def ndtri(x: Any) -> Array:
    """Inverse of the normal distribution function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      0 → -inf, 1 → inf; outside → nan.

    Example:
      >>> ndtri(0.5)
      Array(0., dtype=float32, weak_type=True)

    Source: `scipy.special.ndtri`.
    """
    (x,) = _operands("ndtri", x)
    return _ndtri(x)  # type: ignore[no-any-return]


# -- logistic and entropy ----------------------------------------------------------


@library()
def expit(x: Any) -> Array:
    """Logistic function: 1 / (1 + exp(-x)).

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.expit`.
    """
    (x,) = _operands("expit", x)
    return lax.logistic(x)  # type: ignore[no-any-return]


@library()
def logit(x: Any) -> Array:
    """Inverse of the logistic function: log(p / (1 - p)).

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      0 → -inf, 1 → inf; outside → nan.

    Source: `scipy.special.logit`.
    """
    (x,) = _operands("logit", x)
    return lax.log(x) - lax.log1p(-x)  # type: ignore[no-any-return]


@library()
def log_expit(x: Any) -> Array:
    """Logarithm of the logistic function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.log_expit`.
    """
    (x,) = _operands("log_expit", x)
    return lax.min(x, _filled(x, 0)) - lax.log1p(lax.exp(-lax.abs(x)))  # type: ignore[no-any-return]


@library()
def xlogy(x: Any, y: Any) -> Array:
    """Product x log(y), 0 where `x` is 0.

    Args:
      x: real array-like.
      y: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.xlogy`.
    """
    x, y = _operands("xlogy", x, y)
    zero = x == 0
    value = x * lax.log(choose_between(zero, _filled(y, 1), y))
    return choose_between(zero, _filled(value, 0), value)  # type: ignore[no-any-return]


@library()
def xlog1py(x: Any, y: Any) -> Array:
    """Product x log(1 + y), 0 where `x` is 0.

    Args:
      x: real array-like.
      y: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.xlog1py`.
    """
    x, y = _operands("xlog1py", x, y)
    zero = x == 0
    value = x * lax.log1p(choose_between(zero, _filled(y, 0), y))
    return choose_between(zero, _filled(value, 0), value)  # type: ignore[no-any-return]


@library()
def entr(x: Any) -> Array:
    """Entropy -x log(x), 0 where `x` is 0.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      Negative numbers → -inf.

    Source: `scipy.special.entr`.
    """
    (x,) = _operands("entr", x)
    out = -xlogy(x, choose_between(x > 0, x, _filled(x, 1)))
    return choose_between(x < 0, _filled(x, -math.inf), out)  # type: ignore[no-any-return]


@library()
def rel_entr(p: Any, q: Any) -> Array:
    """Relative entropy p log(p / q).

    Args:
      p: real array-like.
      q: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      p = 0 and q ≥ 0 → 0; inf where `p` is negative or `q` is not positive.

    Source: `scipy.special.rel_entr`.
    """
    p, q = _whole(_operands("rel_entr", p, q))
    both = (p > 0) & (q > 0)
    one = choose_between(both, p, _filled(p, 1))
    two = choose_between(both, q, _filled(q, 1))
    out = choose_between(
        both, one * (lax.log(one) - lax.log(two)), _filled(p, math.inf)
    )
    return choose_between((p == 0) & (q >= 0), _filled(p, 0), out)  # type: ignore[no-any-return]


@library()
def kl_div(p: Any, q: Any) -> Array:
    """Kullback and Leibler's divergence p log(p / q) - p + q.

    Args:
      p: real array-like.
      q: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.kl_div`.
    """
    p, q = _whole(_operands("kl_div", p, q))
    return rel_entr(p, q) - p + q  # type: ignore[no-any-return]


# -- Bessel functions --------------------------------------------------------------


@library()
def i0e(x: Any) -> Array:
    """Modified Bessel function of order 0, times exp(-|x|).

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.i0e`.
    """
    (x,) = _operands("i0e", x)
    return lax.bessel_i0e(x)  # type: ignore[no-any-return]


@library()
def i0(x: Any) -> Array:
    """Modified Bessel function of order 0.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.i0`.
    """
    (x,) = _operands("i0", x)
    return lax.exp(lax.abs(x)) * lax.bessel_i0e(x)  # type: ignore[no-any-return]


@library()
def i1e(x: Any) -> Array:
    """Modified Bessel function of order 1, times exp(-|x|).

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.i1e`.
    """
    (x,) = _operands("i1e", x)
    return lax.bessel_i1e(x)  # type: ignore[no-any-return]


@library()
def i1(x: Any) -> Array:
    """Modified Bessel function of order 1.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.i1`.
    """
    (x,) = _operands("i1", x)
    return lax.exp(lax.abs(x)) * lax.bessel_i1e(x)  # type: ignore[no-any-return]


# -- sums of exponentials -----------------------------------------------------------


@library("axis", "keepdims", "return_sign")
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """Logarithm of the sum of exponentials, without overflow.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      b: array-like of factors of the exponentials, broadcast against `a`.
      keepdims: whether reduced axes stay, with length 1.
      return_sign: whether to return the logarithm of the absolute value, and the sign.
      where: bool array that broadcasts to `a`: which elements count.

    Returns:
      Float or complex array without the reduced axes; with `return_sign` a pair.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: an argument is no array.

    Special cases:
      Of no elements: -inf. nan if the sum is negative, unless `return_sign`.

    Example:
      >>> import numpy as np
      >>> logsumexp(np.array([1000.0, 1000.0])).round(2)
      Array(1000.69, dtype=float32)

    Source: `scipy.special.logsumexp`.
    """
    if b is None:
        x, scale = _operands("logsumexp", a, real=False)[0], None
    else:
        x, scale = _whole(_operands("logsumexp", a, b, real=False))
    counts = where
    if scale is not None:
        used = scale != 0
        counts = used if where is None else used & array_of(where, "logsumexp")
    size = lax.real(x) if dtypes.is_complex(x.aval.dtype) else x
    top = max(size, axis=axis, keepdims=True, initial=-math.inf, where=counts)
    top = stop_gradient(choose_between(lax.is_finite(top), top, _filled(top, 0)))
    terms = lax.exp(x - convert(top, x.aval.dtype))
    if scale is not None:
        # 0 times inf would be nan.
        terms = choose_between(scale != 0, scale * terms, _filled(terms, 0))
    total = sum(terms, axis=axis, keepdims=keepdims, where=where)
    top = lax.reshape(top, total.aval.shape)
    if return_sign:
        sign = lax.sign(total)
        return lax.log(lax.abs(total)) + top, sign
    return lax.log(total) + convert(top, total.aval.dtype)


@library("axis")
def softmax(x: Any, axis: Any = None) -> Array:
    """Exponentials divided by their sum.

    Args:
      x: array-like[...].
      axis: int, tuple of ints, or None for all axes.

    Returns:
      Float array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> import numpy as np
      >>> softmax(np.array([0.0, 0.0]))
      Array([0.5, 0.5], dtype=float32)

    Source: `scipy.special.softmax`.
    """
    (x,) = _operands("softmax", x)
    top = stop_gradient(max(x, axis=axis, keepdims=True, initial=-math.inf))
    terms = lax.exp(x - top)
    return terms / sum(terms, axis=axis, keepdims=True)  # type: ignore[no-any-return]


@library("axis")
def log_softmax(x: Any, axis: Any = None) -> Array:
    """Logarithm of `softmax`.

    Args:
      x: array-like[...].
      axis: int, tuple of ints, or None for all axes.

    Returns:
      Float array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or named twice.

    Example:
      >>> import numpy as np
      >>> log_softmax(np.array([0.0]))
      Array([0.], dtype=float32)

    Source: `scipy.special.log_softmax`.
    """
    (x,) = _operands("log_softmax", x)
    apart = x - stop_gradient(max(x, axis=axis, keepdims=True, initial=-math.inf))
    return apart - lax.log(sum(lax.exp(apart), axis=axis, keepdims=True))  # type: ignore[no-any-return]


psi = digamma
