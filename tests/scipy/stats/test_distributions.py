"""Every function of every distribution beside SciPy's."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.suite import ALL, BEFORE, CONTINUOUS, DISCRETE, INTEGRALS
from tests.sweeps.sampling import sample

Q = np.array([1e-7, 1e-3, 0.1, 0.32, 0.5, 0.83, 0.99, 0, 1, -0.1, 1.1, np.nan])
FAR = np.array([-np.inf, -7, -1, 0, 0.3, 1, 2.5, 9, np.inf, np.nan])
COUNTS = np.array([-np.inf, -3, -1, 0, 1, 2, 3, 5, 2.5, 12, 50, np.inf, np.nan])
# They have user's functions, data or keys as arguments, and tests of their own.
OTHERS = {"expect", "fit", "fit_loc_scale", "nnlf", "rvs"}
# What SciPy integrates or solves for has fewer digits there than here.
LOOSE = {"stats", "moment", "var", "std", "entropy", "mean"}


def arguments(name: str, method: str, shapes: tuple[float, ...]) -> tuple[Any, ...]:
    """What stands before the parameters in a call of a function."""
    if method in BEFORE:
        return BEFORE[method]
    if method == "interval":
        return (np.array([0.0, 0.5, 0.9]),)
    if method in ("ppf", "isf"):
        # Not where SciPy's solver has lost the small tail.
        drop = {"ppf": Q < 1e-6, "isf": Q < 1e-2}[method] & (Q > 0)
        return (Q[~drop],)
    if name in DISCRETE:
        # SciPy's tails are wrong between integers, or nan at infinity.
        odd = dict.fromkeys(("betanbinom", "nbinom", "poisson"), math.inf)
        odd |= dict.fromkeys(("hypergeom", "logser", "yulesimon"), 2.5)
        return (COUNTS[odd.get(name) != COUNTS],)
    inner = getattr(scipy.stats, name).ppf(Q[1:7], *shapes)
    # SciPy's logarithms have no meaning beyond one turn of a circle, or few digits.
    bounded = name in ("vonmises", "norminvgauss")
    near = np.abs(FAR) < 3 if bounded else FAR == FAR
    return (np.concatenate([inner, FAR[near]]),)


def compare(name: str, method: str, shapes: tuple[float, ...], moved: Any) -> None:
    """Checks a function where SciPy's has a number."""
    if name == "norminvgauss" and method in ("sf", "logsf", "isf"):
        return  # SciPy's have the value of the first point everywhere
    if name == "kstwobign" and method in ("pdf", "logpdf"):
        return  # SciPy's has 8 digits: test_kolmogorov_s_density_is_the_derivative
    if name == "pearson3" and method == "support":
        return  # SciPy's is the whole line
    if name == "zipf" and method == "entropy":
        return  # SciPy's sum ends early: test_moments_and_entropies_of_powers
    before = arguments(name, method, shapes)
    options = {"moments": "mvsk"} if method == "stats" else {}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = getattr(scipy.stats, name)
            want = getattr(want, method)(*before, *shapes, *moved, **options)
        except (ValueError, RuntimeError):
            return  # SciPy's own solver failed
    got = getattr(getattr(stats, name), method)(*before, *shapes, *moved, **options)
    want, got = np.asarray(want, float), np.asarray(got)
    if (name, method) == ("levy_l", "mean"):
        want = -want  # SciPy's is that of levy
    assert got.dtype == np.float64 and got.shape == want.shape, method
    # SciPy has nan, or the logarithm of a tail that underflowed, where there is more.
    known = np.isfinite(want) | (got == want) | (np.isnan(got) & np.isnan(want))
    if method in ("logcdf", "logsf"):
        known &= want > -20
    elif method in ("pdf", "logpdf"):
        known &= got != np.inf  # at a bound, where SciPy's density is 0
    elif method not in ("stats", "moment", "var", "std", "entropy"):
        known = np.ones(want.shape, bool)
    if method in ("moment", "stats", "var", "std"):
        known &= np.abs(got) < 1e9  # SciPy has numbers for integrals that diverge
    if name == "pearson3" and method in ("ppf", "isf", "interval"):
        known = np.isfinite(want)
    loose = method in LOOSE and name in CONTINUOUS
    np.testing.assert_allclose(
        got[known], want[known], 1e-6 if loose else 1e-8, 1e-10, err_msg=method
    )
    assert known.any() or method in ("moment", "stats", "var", "std"), method


@pytest.mark.parametrize("name", sample(list(ALL), 20, of="distributions"))
def test_every_function_agrees_with_scipy(name: str) -> None:
    moved = [(0.0, 1.0), (0.3, 2.0)] if name in CONTINUOUS else [(0,), (2,)]
    with fxflow.config.override(x64=True):
        for shapes in ALL[name]:
            for method in set(getattr(stats, name).__all__) - OTHERS:
                for given in moved[: 1 + (method in ("pdf", "cdf", "ppf", "mean"))]:
                    compare(name, method, shapes, given)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(INTEGRALS))
def test_integrals_agree_with_scipy(name: str) -> None:
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    q = np.array([1e-3, 0.2, 0.6, 0.99])
    moments = name not in ("ksone", "studentized_range")  # integrals there, too
    with fxflow.config.override(x64=True):
        for shapes in INTEGRALS[name]:
            x = theirs.ppf(q, *shapes)
            for method in ("pdf", "cdf", "logsf", "ppf", "isf"):
                at = q if method in ("ppf", "isf") else x
                found = getattr(ours, method)(at, *shapes)
                want = getattr(theirs, method)(at, *shapes)
                np.testing.assert_allclose(found, want, 1e-9, err_msg=method)
            if moments:
                found = ours.stats(*shapes, moments="mvsk")
                want = theirs.stats(*shapes, moments="mvsk")
                np.testing.assert_allclose(found, want, 1e-7, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ncf", "nct", "ncx2", "studentized_range"])
def test_integrals_have_derivatives_by_every_parameter(name: str) -> None:
    ours = getattr(stats, name)
    shapes = INTEGRALS[name][0]
    values = lambda *given: ours.logpdf(*given) + ours.logsf(*given)
    with fxflow.config.override(x64=True):
        x = float(scipy.stats.distributions.__dict__[name].ppf(0.7, *shapes))
        given = [x, *shapes]
        slopes = fxflow.jit(fxflow.grad(values, tuple(range(len(given)))))(*given)
        run = fxflow.jit(values)
        for i, slope in enumerate(slopes):
            h = 1e-5 * max(1, abs(given[i]))
            low, high = (
                float(run(*given[:i], given[i] + d, *given[i + 1 :])) for d in (-h, h)
            )
            np.testing.assert_allclose(float(slope), (high - low) / (2 * h), 1e-5)


def far_tail(name: str, x: float, *shapes: float) -> float:
    """The logarithm of the upper tail of a noncentral distribution, by mpmath."""
    *p, nc = map(mpmath.mpf, shapes)

    def mixed(tail: Any) -> Any:
        weight = lambda j: mpmath.exp(-nc / 2) * (nc / 2) ** j / mpmath.factorial(j)
        return sum(weight(j) * tail(j) for j in range(900))

    if name == "ncx2":
        tail = lambda j: mpmath.gammainc(p[0] / 2 + j, x / 2, regularized=True)
        return float(mpmath.log(mixed(tail)))
    if name == "ncf":
        y = p[1] / (p[1] + p[0] * x)
        inner = lambda j: mpmath.betainc(p[1] / 2, p[0] / 2 + j, 0, y, regularized=True)
        return float(mpmath.log(mixed(inner)))
    half = p[0] / 2
    size = 2 * half**half / mpmath.gamma(half)
    scale = lambda u: size * u ** (2 * half - 1) * mpmath.exp(-half * u * u)
    part = lambda u: scale(u) * mpmath.ncdf(nc - x * u)
    return float(mpmath.log(mpmath.quad(part, [k / 100 for k in range(0, 60, 2)])))


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        ("ncx2", 3000.0, 3.0, 2.0),
        ("ncf", 300.0, 7.0, 200.0, 3.0),
        ("nct", 90.0, 50.0, 1.5),
    ],
    ids=lambda case: case[0],
)
def test_far_tails_of_mixtures_keep_their_digits(case: Any) -> None:
    name, *given = case
    with fxflow.config.override(x64=True):
        found = float(getattr(stats, name).logsf(*given))
    with mpmath.workdps(30):
        np.testing.assert_allclose(found, far_tail(name, *given), 1e-10)


def test_kolmogorov_s_density_is_the_derivative() -> None:
    with fxflow.config.override(x64=True):
        y = np.array([0.3, 0.7, 0.81, 0.83, 1.5])
        slopes = fxflow.vmap(fxflow.grad(stats.kstwobign.cdf))(y)
        np.testing.assert_allclose(stats.kstwobign.pdf(y), slopes, 1e-9)


@pytest.mark.parametrize("name", sample(list(ALL), 20, of="derivatives of densities"))
def test_derivatives_by_every_parameter(name: str) -> None:
    module, oracle = getattr(stats, name), getattr(scipy.stats, name)
    density = module.logpdf if name in CONTINUOUS else module.logpmf
    for shapes in ALL[name][:1]:
        given = [*shapes, 0.3, *([1.4] if name in CONTINUOUS else [])]
        free = [i for i, d in enumerate(module.domains.values()) if d.line]
        free += range(len(shapes), len(given))
        if name in DISCRETE:  # nothing is between integers
            given[len(shapes)], free = 0.0, free[:-1]
        with np.errstate(all="ignore"):
            x = oracle.ppf([0.2, 0.6, 0.9], *given)

        def values(x: Any, *parameters: Any) -> Any:
            logcdf = module.logcdf(x, *parameters)
            return fxflow.numpy.concatenate([density(x, *parameters), logcdf])

        with fxflow.config.override(x64=True):
            if not free:
                continue
            jacobian = fxflow.jit(fxflow.jacrev(values, tuple(1 + i for i in free)))
            found = jacobian(x, *given)
            run = fxflow.jit(values)
            for i, slope in zip(free, found, strict=True):
                h = 1e-6 * max(1, abs(given[i]))
                near = [[*given[:i], given[i] + d, *given[i + 1 :]] for d in (-h, h)]
                low, high = (np.asarray(run(x, *n)) for n in near)
                want = (high - low) / (2 * h)
                np.testing.assert_allclose(slope, want, 1e-5, 1e-6, err_msg=f"{i}")


@pytest.mark.slow
def test_derivatives_of_quantiles_by_shapes() -> None:
    cases: list[tuple[Any, tuple[float, ...]]] = [
        (stats.gamma.ppf, (2.5,)),
        (stats.beta.isf, (2.0, 3.5)),
        (stats.skewnorm.ppf, (2.0,)),
    ]
    with fxflow.config.override(x64=True):
        for quantile, shapes in cases:
            run = fxflow.jit(quantile)
            slope = fxflow.jit(fxflow.grad(quantile, (0, 1)))(0.3, *shapes)
            for i in (0, 1):
                at = [0.3, *shapes]
                at[i] += 1e-5
                high = run(*at)
                at[i] -= 2e-5
                want = float(high - run(*at)) / 2e-5
                np.testing.assert_allclose(float(slope[i]), want, 1e-6)


# -- tails -----------------------------------------------------------------------------

# The logarithm of the upper or the lower tail, to be compared with mpmath's.
TAILS = [
    ("norm.logsf", (40.0,), -804.6084420137539),
    ("norm.logcdf", (-1e5,), -5000000012.431864),
    ("gamma.logsf", (900.0, 2.5), -890.0779155041986),
    ("gamma.logcdf", (1e-150, 3.0), -1037.9544150010123),
    ("chi2.logsf", (2500.0, 4.0), -1242.8684968139073),
    ("beta.logsf", (1 - 1e-9, 2.0, 40.0), -825.2187096063996),
    ("beta.logcdf", (1e-200, 2.5, 3.0), -1148.8953158929316),
    ("t.logcdf", (-1e40, 9.0), -820.5410266364733),
    ("t.logcdf", (-4e4, 7.0), -69.29324684868906),
    ("f.logsf", (1e200, 3.0, 5.0), -1150.196862903399),
    ("binom.logsf", (990.0, 1000.0, 0.01), -4552.836988018346),
    ("poisson.logsf", (400.0, 0.5), -2282.5193925706194),
]


def exact(name: str, args: tuple[float, ...]) -> float:
    """The logarithm of a tail in 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    mp = mpmath.mp.clone() if hasattr(mpmath.mp, "clone") else mpmath.mp
    mp.dps = 60
    x, *p = map(mp.mpf, args)
    one = mp.mpf(1)
    tails: dict[str, Any] = {
        "norm.logsf": lambda: mp.erfc(x / mp.sqrt(2)) / 2,
        "norm.logcdf": lambda: mp.erfc(-x / mp.sqrt(2)) / 2,
        "gamma.logsf": lambda: mp.gammainc(p[0], x, regularized=True),
        "gamma.logcdf": lambda: mp.gammainc(p[0], 0, x, regularized=True),
        "chi2.logsf": lambda: mp.gammainc(p[0] / 2, x / 2, regularized=True),
        "beta.logsf": lambda: mp.betainc(p[1], p[0], 0, one - x, regularized=True),
        "beta.logcdf": lambda: mp.betainc(p[0], p[1], 0, x, regularized=True),
        "t.logcdf": lambda: (
            mp.betainc(p[0] / 2, one / 2, 0, p[0] / (p[0] + x * x), regularized=True)
            / 2
        ),
        "f.logsf": lambda: mp.betainc(
            p[1] / 2, p[0] / 2, 0, p[1] / (p[1] + p[0] * x), regularized=True
        ),
        "binom.logsf": lambda: mp.betainc(x + 1, p[0] - x, 0, p[1], regularized=True),
        "poisson.logsf": lambda: mp.gammainc(x + 1, 0, p[0], regularized=True),
    }
    return float(mp.log(tails[name]()))


@pytest.mark.parametrize(("name", "args", "_"), TAILS, ids=lambda v: str(v))
def test_tails_have_their_digits_where_the_probability_underflows(
    name: str, args: tuple[float, ...], _: float
) -> None:
    distribution, method = name.split(".")
    function = getattr(getattr(stats, distribution), method)
    want = exact(name, args)
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(float(function(*args)), want, 1e-12)
    with np.errstate(all="ignore"):
        small = [np.float32(a) for a in args]
    if np.isfinite(small).all() and all(small) and small[0] != 1:
        single = exact(name, tuple(float(a) for a in small))
        np.testing.assert_allclose(float(function(*small)), single, 3e-6)


@pytest.mark.slow
def test_quantiles_of_tiny_probabilities() -> None:
    tiny = np.array([1e-250, 1e-100, 1e-30])
    with fxflow.config.override(x64=True):
        for name, shapes in {
            "t": (7.0,),
            "skewnorm": (2.0,),
            "invgauss": (0.8,),
            "norminvgauss": (1.25, 0.5),
        }.items():
            module = getattr(stats, name)
            for quantile, tail in (("ppf", "logcdf"), ("isf", "logsf")):
                x = getattr(module, quantile)(tiny, *shapes)
                back = getattr(module, tail)(x, *shapes)
                np.testing.assert_allclose(back, np.log(tiny), 1e-11)


# -- signatures, transformations, errors -----------------------------------------------


def test_functions_have_the_parameters_by_name() -> None:
    signature = inspect.signature(stats.gamma.cdf)
    assert list(signature.parameters) == ["x", "a", "loc", "scale"]
    assert next(iter(inspect.signature(stats.logistic.ppf).parameters)) == "x"
    want = scipy.stats.gamma.cdf(2.0, 1.5, scale=3.0)
    got = stats.gamma.cdf(2.0, scale=3.0, a=1.5)
    np.testing.assert_allclose(float(got), want, 1e-6)
    assert "a: positive real array-like" in str(stats.gamma.cdf.__doc__)


def test_a_distribution_is_a_module() -> None:
    from fxflow.scipy.stats.norm import logpdf

    assert inspect.ismodule(stats.norm) and logpdf is stats.norm.logpdf
    assert repr(stats.norm) == "<distribution fxflow.scipy.stats.norm>"
    assert set(stats.norm.__all__) <= set(dir(stats.norm))


def test_transformations_commute() -> None:
    x, a = np.linspace(0.1, 5, 6, dtype=np.float32), np.array([[0.5], [2]], np.float32)
    for method in ("logpdf", "ppf"):
        function = getattr(stats.lomax, method)
        x_ = x / 6 if method == "ppf" else x
        want = function(x_, a)
        assert want.shape == (2, 6) and want.dtype == np.float32
        np.testing.assert_allclose(fxflow.jit(function)(x_, a), want, 1e-5)
        mapped = fxflow.vmap(lambda a, f=function, x=x_: f(x, a[0]))(a)
        np.testing.assert_allclose(mapped, want, 1e-5)
        assert function(x_[:0], 2.0).shape == (0,)
        assert function(x_[0], 2.0).shape == ()


@pytest.mark.slow
def test_means_of_functions() -> None:
    with fxflow.config.override(x64=True):
        square = stats.norm.expect(lambda x: x**2, loc=1.0, scale=2.0)
        np.testing.assert_allclose(square, 5, 1e-10)
        for given in ({"lb": 0.5}, {"ub": 2.0}, {"lb": 0.5, "ub": 2.0}):
            for conditional in (False, True):
                args = ((2.5,), 0.1, 1.5)
                options = {**given, "conditional": conditional}
                want = scipy.stats.gamma.expect(np.sqrt, *args, **options)
                got = stats.gamma.expect(fxflow.numpy.sqrt, *args, **options)
                np.testing.assert_allclose(got, want, 1e-7)
        want = scipy.stats.poisson.expect(np.sqrt, (4.0,), lb=2, ub=9)
        got = stats.poisson.expect(fxflow.numpy.sqrt, (4.0,), lb=2, ub=9)
        np.testing.assert_allclose(got, want, 1e-9)
        slope = fxflow.grad(lambda a: stats.gamma.expect(lambda x: x**2, (a,)))(2.5)
        np.testing.assert_allclose(slope, 2 * 2.5 + 1, 1e-9)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ArgumentError, match=r"gamma\.moment: order must be positive"):
        stats.gamma.moment(0, 2.0)
    with pytest.raises(ArgumentError, match='letters of "mvsk", got'):
        stats.norm.stats(moments="mx")
    with pytest.raises(DtypeError, match=r"norm\.cdf: takes real numbers, got c64"):
        stats.norm.cdf(np.complex64(1j))
    with pytest.raises(ShapeError, match=r"norm\.pdf"):
        stats.norm.pdf(np.zeros(2), np.zeros(3))
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        stats.gamma.cdf(1.0)


# -- samples ---------------------------------------------------------------------------


@pytest.mark.slow
def test_samples_follow_the_distribution() -> None:
    key = fxflow.random.key(3)
    for name, shapes in {"skewnorm": (3.0,), "weibull_max": (1.5,)}.items():
        drawn = getattr(stats, name).rvs(key, *shapes, 1.0, 2.0, shape=(2000,))
        law = getattr(scipy.stats, name)(*shapes, 1.0, 2.0)
        assert scipy.stats.kstest(np.asarray(drawn), law.cdf).pvalue > 1e-3
    counts = np.asarray(stats.hypergeom.rvs(key, 20.0, 7.0, 12.0, shape=(4000,)))
    want = 4000 * scipy.stats.hypergeom.pmf(np.arange(8), 20, 7, 12)
    found = np.bincount(counts.astype(int), minlength=8)
    seen = want > 1
    distance = ((found - want)[seen] ** 2 / want[seen]).sum()
    assert scipy.stats.chi2(seen.sum()).sf(distance) > 1e-3
    mean = lambda loc: stats.norm.rvs(key, loc, 2.0, shape=(5,)).mean()
    np.testing.assert_allclose(float(fxflow.grad(mean)(1.0)), 1, 1e-6)
    assert stats.gamma.rvs(key, np.ones(3), dtype=np.float16).dtype == np.float16


SAMPLE = np.random.default_rng(5).gamma(2.5, 1.5, 300)


@pytest.mark.slow
def test_a_fit_is_as_likely_as_scipy_s() -> None:
    cases: list[tuple[str, dict[str, Any]]] = [
        ("norm", {}),
        ("expon", {}),
        ("uniform", {}),
        ("laplace", {"floc": 3.0}),
        ("gamma", {"floc": 0}),
        ("weibull_min", {"floc": 0, "fc": 1.5}),
        ("logistic", {"loc": 3.0, "fscale": 1.2}),
        ("gumbel_r", {}),
        ("pareto", {"floc": 0}),
    ]
    with fxflow.config.override(x64=True):
        for name, options in cases:
            want = getattr(scipy.stats, name).fit(SAMPLE, **options)
            found = getattr(stats, name).fit(SAMPLE, **options)
            np.testing.assert_allclose(found, want, 1e-4, 1e-6, err_msg=name)
            ours = float(getattr(stats, name).nnlf(found, SAMPLE))
            assert ours <= getattr(scipy.stats, name).nnlf(want, SAMPLE) + 1e-7
            held = getattr(scipy.stats, name).nnlf(tuple(map(float, found)), SAMPLE)
            np.testing.assert_allclose(ours, held, 1e-9)


@pytest.mark.slow
def test_moments_of_a_sample_and_likelihoods_of_counts() -> None:
    with fxflow.config.override(x64=True):
        for name, shapes in (("norm", ()), ("gamma", (2.5,)), ("t", (1.5,))):
            want = getattr(scipy.stats, name).fit_loc_scale(SAMPLE, *shapes)
            got = getattr(stats, name).fit_loc_scale(SAMPLE, *shapes)
            np.testing.assert_allclose(got, want, 1e-12)
        counts = np.array([3, 0, 2, 5])
        for name, theta in (("poisson", (1.5, 0)), ("binom", (7, 0.4, 0))):
            want = getattr(scipy.stats, name).nnlf(theta, counts)
            got = getattr(stats, name).nnlf(theta, counts)
            np.testing.assert_allclose(got, want, 1e-12)
        assert stats.binom.nnlf((4, 0.4, 0), counts) == np.inf
        slope = fxflow.grad(stats.poisson.nnlf)(np.array([1.5, 0.0]), counts)
        np.testing.assert_allclose(slope[0], 4 - 10 / 1.5, 1e-12)
    with pytest.raises(ArgumentError, match=r"takes the shapes \(a\), got 2"):
        stats.gamma.fit_loc_scale(SAMPLE, 1.0, 2.0)


def test_ends_at_infinity_do_not_move() -> None:
    end = lambda scale: stats.truncpareto.support(2.0, 3.0, 1.0, scale)[1]
    np.testing.assert_allclose(fxflow.grad(end)(2.0), 3.0)
    for of in (stats.norm, stats.expon):
        assert fxflow.grad(lambda scale, of=of: of.support(0.5, scale)[1])(2.0) == 0


def test_a_fit_is_differentiable_by_the_sample() -> None:
    shape = fxflow.jit(lambda x: stats.gamma.fit(x, floc=0)[0])
    with fxflow.config.override(x64=True):
        slope = np.asarray(fxflow.jit(fxflow.grad(shape))(SAMPLE))
        for i in (0, 7):
            step = np.zeros_like(SAMPLE)
            step[i] = 1e-4
            want = float(shape(SAMPLE + step) - shape(SAMPLE - step)) / 2e-4
            np.testing.assert_allclose(slope[i], want, 1e-3)


def test_what_a_fit_refuses() -> None:
    with pytest.raises(ArgumentError, match=r"gamma\.fit: all parameters are fixed"):
        stats.gamma.fit(SAMPLE, fa=2, floc=0, fscale=1)
    with pytest.raises(ArgumentError, match=r"gamma\.fit: a is fixed twice"):
        stats.gamma.fit(SAMPLE, fa=2, f0=2)
    with pytest.raises(ArgumentError, match=r"gamma\.fit: unknown argument 'fb'"):
        stats.gamma.fit(SAMPLE, fb=2)
    with pytest.raises(ArgumentError, match="takes guesses of 1 shapes, got 2"):
        stats.gamma.fit(SAMPLE, 1.0, 2.0)
    with pytest.raises(ArgumentError, match=r"\"MLE\".*got 'MM': by the method of"):
        stats.gamma.fit(SAMPLE, method="MM")
    with pytest.raises(ArgumentError, match=r"norm\.fit: data is \[1\.0\].*asarray"):
        stats.norm.fit([1.0])
    with pytest.raises(ArgumentError, match=r"norm\.fit: data is empty: f32\[0\]"):
        stats.norm.fit(np.zeros(0, np.float32))
    for odd in (math.nan, math.inf):
        with pytest.raises(ArgumentError, match=f"data must be finite, but {odd} is"):
            stats.norm.fit(np.array([1.0, odd]))


def test_a_fit_refuses_what_is_outside_of_the_support() -> None:
    x = np.array([0.5, 2.0, -1.0])
    for name, fixed in {
        "expon": {"floc": 0},
        "pareto": {"floc": 1.0},
        "uniform": {"floc": 0},
    }.items():
        fit = getattr(stats, name).fit
        with pytest.raises(ArgumentError, match=f"-1.0 to 2.0, is not.*any {name} "):
            fit(x, **fixed)
    traced = fxflow.jit(lambda x: stats.expon.fit(x, floc=0))(x)
    assert np.isnan(traced).all()
    # Roundings of the ends are not outside, and one number has a width of 0.
    assert not np.isnan(stats.uniform.fit(np.float32(0.1) + SAMPLE)).any()
    assert [float(v) for v in stats.norm.fit(np.ones(3))] == [1, 0]


def test_a_wrong_name_of_an_argument_shows_the_signature() -> None:
    key = fxflow.random.key(0)
    with pytest.raises(
        TypeError, match=r"'size' is shape here; the signature is rvs\(key, a, loc=0"
    ):
        stats.gamma.rvs(key, 1.0, size=3)


def test_tails_near_one_keep_the_digits_of_the_rest() -> None:
    with fxflow.config.override(x64=True), mpmath.workdps(40):
        for rest in (1e-13, 1e-6, 0.3):
            q = 1 - rest
            want = 0.5 / mpmath.erfinv(1 - mpmath.mpf(q)) ** 2
            np.testing.assert_allclose(float(stats.levy.ppf(q)), float(want), 1e-14)
        for z, a in ((-3.0, 2.0), (-1.5, 9.0), (-6.0, -0.5)):
            density = lambda t, a=a: 2 * mpmath.npdf(t) * mpmath.ncdf(a * t)
            nodes = [z - 2.0**k for k in range(5, -9, -1)]
            tail = mpmath.quad(density, [*nodes, z])
            want = float(mpmath.log1p(-tail))
            got = float(stats.skewnorm.logsf(z, a))
            np.testing.assert_allclose(got, want, 1e-8, err_msg=f"{z} {a}")


@pytest.mark.slow
def test_second_derivatives_of_gamma_quantiles_by_the_shape() -> None:
    slope = fxflow.grad(lambda a: stats.gamma.isf(0.3, a))
    with fxflow.config.override(x64=True):
        a = np.array([2.5, 2.5 + 1e-5, 2.5 - 1e-5])
        both = fxflow.jit(fxflow.vmap(lambda a: (slope(a), fxflow.grad(slope)(a))))
        first, second = (np.asarray(v) for v in both(a))
        np.testing.assert_allclose(second[0], (first[1] - first[2]) / 2e-5, 1e-6)


@pytest.mark.parametrize("c", [0.0, 1e-9, -1e-5, 3e-3, 0.2])
def test_second_derivatives_of_extremes_by_their_shape(c: float) -> None:
    def derivatives(f: Any) -> list[float]:
        slope = fxflow.grad(f)
        return [float(slope(c)), float(fxflow.grad(slope)(c))]

    def exact(f: Any) -> list[float]:
        with mpmath.workdps(40):
            return [float(mpmath.diff(f, c, n)) for n in (1, 2)]

    def log1p_over(c: Any, z: float) -> Any:
        return mpmath.log(1 + c * z) / c if c else mpmath.mpf(z)

    x = mpmath.mpf(0.5)
    cases = {
        (stats.genpareto.logpdf, 0.5): lambda c: -(1 + c) * log1p_over(c, x),
        (stats.genpareto.logsf, 0.5): lambda c: -log1p_over(c, x),
        (stats.genpareto.ppf, 0.3): lambda c: (
            mpmath.expm1(-c * mpmath.log1p(-mpmath.mpf(0.3))) / c
            if c
            else -mpmath.log1p(-mpmath.mpf(0.3))
        ),
        (stats.genextreme.logpdf, 0.5): lambda c: (
            -(1 - c) * log1p_over(-c, x) - mpmath.exp(-log1p_over(-c, x))
        ),
    }
    with fxflow.config.override(x64=True):
        for (function, at), wanted in cases.items():
            found = derivatives(lambda c, f=function, at=at: f(at, c))
            np.testing.assert_allclose(found, exact(wanted), 1e-8)


# -- long sums -------------------------------------------------------------------------


@pytest.mark.slow
def test_moments_and_entropies_of_powers_do_not_end_early() -> None:
    a = mpmath.mpf(4.5)
    total = mpmath.zeta(a)
    with fxflow.config.override(x64=True):
        found = [stats.zipf.moment(n, 4.5) for n in (1, 2, 3, 4)]
        want = [mpmath.zeta(a - n) / total for n in (1, 2, 3)]
        np.testing.assert_allclose(found, [*map(float, want), math.inf], 1e-14)
        want = mpmath.log(total) - a * mpmath.zeta(a, 1, 1) / total
        np.testing.assert_allclose(stats.zipf.entropy(4.5), float(want), 1e-14)
        # Yule and Simon's probabilities for α = 1 are 1 / (k (k + 1)).
        k = np.arange(1, 200_001.0)
        terms = np.log(k * (k + 1)) / (k * (k + 1))
        rest = (2 * math.log(200_001) + 2) / 200_001  # of log(x²) / x², x = k + ½
        want = terms.sum() + rest
        np.testing.assert_allclose(stats.yulesimon.entropy(1.0), want, 1e-11)
        want = sum(k**6 / mpmath.mpf(2) ** k for k in range(1, 400))
        np.testing.assert_allclose(stats.geom.moment(6, 0.5), float(want), 1e-14)
        k = np.arange(1, 1_000_001.0)
        p = k**-1.1 / (k**-1.1).sum()
        np.testing.assert_allclose(stats.zipfian.var(1.1, 1e6), k**2 @ p - (k @ p) ** 2)
        # What would take too many terms is unknown, not wrong.
        assert np.isnan(stats.betabinom.cdf(5e5, 1e6, 0.6, 2.0))


@pytest.mark.slow
def test_upper_tails_of_powers_keep_their_digits() -> None:
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        a = mpmath.mpf(2.5)
        for k in (1, 40, 10**9):
            want = mpmath.log(mpmath.zeta(a, k + 1) / mpmath.zeta(a))
            np.testing.assert_allclose(stats.zipf.logsf(k, 2.5), float(want), 1e-13)
        slope = fxflow.grad(lambda a: stats.zipf.logsf(3.0, a))(2.5)
        of = lambda a: mpmath.log(mpmath.zeta(a, 4) / mpmath.zeta(a))
        np.testing.assert_allclose(slope, float(mpmath.diff(of, a)), 1e-12)
        # With n = a = 1, b = 1 the tail of the mixture is 1 / (k + 2).
        k = np.array([1.0, 1e3, 1e7, 1e12])
        np.testing.assert_allclose(
            stats.betanbinom.sf(k, 1.0, 1.0, 1.0), 1 / (k + 2), 1e-12
        )


def kolmogorov_below(n: int, d: float) -> Any:
    """P(D < d) of n elements, by Marsaglia, Tsang and Wang's matrix in 50 digits."""
    with mpmath.workdps(50):
        at = n * mpmath.mpf(d)
        k = int(mpmath.floor(at)) + 1
        m, h = 2 * k - 1, k - at
        power = mpmath.matrix(m, m)
        for i in range(m):
            for j in range(min(i + 2, m)):
                power[i, j] = 1
        for i in range(m):
            power[i, 0] -= h ** (i + 1)
            power[m - 1, i] -= h ** (m - i)
        power[m - 1, 0] += max(2 * h - 1, 0) ** m
        for i in range(m):
            for j in range(min(i + 1, m)):
                power[i, j] /= mpmath.factorial(i - j + 1)
        return (power**n)[k - 1, k - 1] * mpmath.factorial(n) / mpmath.mpf(n) ** n


@pytest.mark.slow
def test_two_sided_deviations_of_each_number_of_elements() -> None:
    cases = [(1, 0.8), (2, 0.3), (5, 0.12), (9, 0.31), (40, 0.2), (60, 0.07)]
    cases += [(60, 0.19), (143, 0.05), (200, 0.04)]
    n, d = (np.array(v, float) for v in zip(*cases, strict=True))
    below = [kolmogorov_below(*case) for case in cases]
    with fxflow.config.override(x64=True):
        np.testing.assert_allclose(
            stats.kstwo.cdf(d, n), [float(p) for p in below], 1e-12
        )
        want = [float(1 - p) for p in below]
        np.testing.assert_allclose(stats.kstwo.sf(d, n), want, 1e-10)
        logs = [float(mpmath.log(p)) for p in below]
        # A relative error of a probability is an absolute one of its logarithm.
        np.testing.assert_allclose(stats.kstwo.logcdf(d, n), logs, 1e-12, 1e-12)
        # SciPy's densities are differences.
        np.testing.assert_allclose(
            stats.kstwo.pdf(d, n), scipy.stats.kstwo.pdf(d, n), 1e-3
        )
        slopes = fxflow.vmap(fxflow.grad(stats.kstwo.cdf))(d, n)
        np.testing.assert_allclose(stats.kstwo.pdf(d, n), slopes, 1e-9)
        q = np.array([1e-4, 0.3, 0.99])
        np.testing.assert_allclose(
            stats.kstwo.isf(q, 20), scipy.stats.kstwo.isf(q, 20), 1e-9
        )
        many = stats.kstwo.sf(np.array([0.005, 0.01, 0.02]), 10_000)
        np.testing.assert_allclose(
            many, scipy.stats.kstwo.sf([0.005, 0.01, 0.02], 10_000), 1e-7
        )
        ends = stats.kstwo.cdf(np.array([0.04, 0.05, 1.0, 2.0]), 10)
        np.testing.assert_array_equal(ends, [0, 0, 1, 1])
        assert np.isnan(stats.kstwo.cdf(0.5, np.array([0.0, -1.0, 2.5]))).all()


def stable_density(x: float, alpha: float, beta: float) -> float:
    """The integral of the characteristic function, in 20 digits."""
    tangent = mpmath.tan(mpmath.pi * alpha / 2) if alpha != 1 else 0

    def phase(t: Any) -> Any:
        if alpha != 1:
            return beta * tangent * t**alpha
        return -beta * 2 / mpmath.pi * t * mpmath.log(t) if t else mpmath.mpf(0)

    top = mpmath.mpf(60) ** (1 / mpmath.mpf(alpha))
    places = [0, *(top * k / 40 for k in (0.01, 0.1, 0.5, *range(1, 41)))]
    return float(
        mpmath.quad(
            lambda t: mpmath.cos(phase(t) - x * t) * mpmath.exp(-(t**alpha)), places
        )
        / mpmath.pi
    )


@pytest.mark.slow
def test_stable_densities_and_tails() -> None:
    cases = [(0.2, 1.5, 0.5), (-1.3, 1.9, -1.0), (2.0, 1.2, 1.0), (0.0, 1.7, -0.4)]
    cases += [(2.0, 0.8, 0.3), (-0.6, 1.0, 0.5), (1.0, 1.0, -1.0), (1e-6, 1.4, 0.9)]
    x, alpha, beta = (np.array(v) for v in zip(*cases, strict=True))
    law = stats.levy_stable
    with fxflow.config.override(x64=True):
        want = [stable_density(*case) for case in cases]
        np.testing.assert_allclose(law.pdf(x, alpha, beta), want, 1e-11)
        slopes = fxflow.vmap(fxflow.grad(law.cdf))(x, alpha, beta)
        np.testing.assert_allclose(slopes, want, 1e-7)
        both = law.cdf(x, alpha, beta) + law.sf(x, alpha, beta)
        np.testing.assert_allclose(both, 1, 1e-12)
        turned = law.logsf(-x, alpha, -beta)
        np.testing.assert_allclose(law.logcdf(x, alpha, beta), turned, 1e-12)
        # Members with formulas, in their tails, too.
        far = np.array([1e-3, 0.1, 1.0, 7.0, 1e4, 1e12])
        for name in ("pdf", "logcdf", "logsf"):
            ours, levy = getattr(law, name), getattr(scipy.stats.levy, name)
            np.testing.assert_allclose(ours(far, 0.5, 1.0), levy(far), 1e-11)
        at = np.array([-9.0, -0.3, 0.0, 2.0, 30.0])
        normal = scipy.stats.norm(0, 2**0.5)
        np.testing.assert_allclose(law.logsf(at, 2, 0.3), normal.logsf(at), 1e-11)
        np.testing.assert_allclose(law.logpdf(at, 1, 0), scipy.stats.cauchy.logpdf(at))
        landau = scipy.stats.landau.cdf(at + 2)
        np.testing.assert_allclose(law.cdf(at + 2, 1, 1), landau, 1e-9)
        # A scale moves the variable where alpha is 1.
        moved = scipy.stats.levy_stable.pdf(0.7, 1.0, 0.5, 0.2, 3.0)
        np.testing.assert_allclose(law.pdf(0.7, 1.0, 0.5, 0.2, 3.0), moved, 1e-6)
        q = np.array([1e-6, 0.2, 0.7, 0.999])
        back = law.cdf(law.ppf(q, 1.3, 0.6), 1.3, 0.6)
        np.testing.assert_allclose(back, q, 1e-10)
        assert law.support(0.7, -1)[1] == 0 and law.cdf(0.1, 0.7, -1) == 1
        lost = law.pdf(0.1, np.array([0.0, 2.1, 1.5]), np.array([0.0, 0.0, 1.2]))
        assert np.isnan(lost).all()


@pytest.mark.slow
def test_stable_densities_have_derivatives_by_every_parameter() -> None:
    value = stats.levy_stable.logpdf
    with fxflow.config.override(x64=True):
        slopes = fxflow.jit(fxflow.grad(value, (0, 1, 2, 3, 4)))
        curve = fxflow.jit(fxflow.grad(fxflow.grad(value, 1), 1))
        plain = fxflow.jit(value)
        for given in ((0.7, 1.5, 0.5, 0.1, 1.2), (-0.4, 0.7, 0.5, 0.0, 0.8)):
            step = 1e-5
            for i, slope in enumerate(slopes(*given)):
                ends = [
                    [v + s * (k == i) for k, v in enumerate(given)]
                    for s in (step, -step)
                ]
                want = (plain(*ends[0]) - plain(*ends[1])) / (2 * step)
                np.testing.assert_allclose(slope, want, 1e-6)
            more = [v + step * (k == 1) for k, v in enumerate(given)]
            less = [v - step * (k == 1) for k, v in enumerate(given)]
            want = (slopes(*more)[1] - slopes(*less)[1]) / (2 * step)
            np.testing.assert_allclose(curve(*given), want, 1e-5)
        assert np.isnan(slopes(0.7, 1.0, 0.5, 0.0, 1.0)[1])
