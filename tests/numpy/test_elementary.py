"""Elementary functions against NumPy, their derivatives against differences."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError
from tests.numpy.oracle import check, same
from tests.sweeps.sampling import sample

EVERYWHERE = (
    *("exp", "exp2", "expm1", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh"),
    *("arcsinh", "cbrt", "deg2rad", "rad2deg", "sinc", "i0"),
)
POSITIVE = ("log", "log2", "log10", "log1p", "sqrt")
WITHIN_ONE = ("arcsin", "arccos", "arctanh")
X = np.array([-3.0, -0.5, -0.0, 0.25, 2.0], np.float32)
BEYOND = np.array([np.inf, -np.inf, np.nan, -1.0, 0.0], np.float32)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_functions_of_all_numbers(name: str) -> None:
    check(name, X, tol=1e-4 if name in ("tan", "i0") else None)


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_positive_numbers(name: str) -> None:
    check(name, np.abs(X) + 0.1)
    check(name, BEYOND, compiled=False)


@pytest.mark.parametrize("name", WITHIN_ONE)
def test_functions_of_small_numbers(name: str) -> None:
    check(name, X / 4, tol=1e-5)


def test_arccosh() -> None:
    check("arccosh", np.abs(X) + 1.5)


@pytest.mark.parametrize("name", ("hypot", "logaddexp", "logaddexp2", "arctan2"))
def test_functions_of_two_numbers(name: str) -> None:
    check(name, X, X[::-1].copy())
    check(name, X[:, None], np.float32(2), compiled=False)


def test_infinities_of_pairs() -> None:
    inf = np.array([np.inf, -np.inf, np.inf, 1.0], np.float32)
    other = np.array([np.inf, -np.inf, np.nan, -np.inf], np.float32)
    check("logaddexp", inf, other)
    check("hypot", inf, other)
    check("heaviside", np.array([-1.0, 0.0, 2.0], np.float32), np.float32(0.5))


@pytest.mark.parametrize("name", ("exp", "log", "sqrt", "sin", "tanh", "arctan"))
def test_complex_numbers(name: str) -> None:
    check(name, np.array([1 + 2j, -0.5 + 0.25j], np.complex64), tol=1e-4)


@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float64"))
def test_floats_keep_their_dtype(dtype: str) -> None:
    x = fnp.asarray(X, dtype)
    assert fnp.sin(x).dtype == dtype
    assert same(np.sin(X), fnp.sin(x), 1e-2)


def test_integers_become_floats() -> None:
    assert fnp.exp(fnp.arange(2)).dtype == np.float32
    assert fnp.exp(fnp.arange(2, dtype="int64")).dtype == np.float64
    assert fnp.sin(1).weak_type


@pytest.mark.parametrize("name", (*EVERYWHERE, "logaddexp", "hypot"))
def test_derivatives_agree_with_differences(name: str) -> None:
    function = getattr(fnp, name)
    two = name in ("logaddexp", "hypot")

    def one(x):
        return function(x, 2 * x + 1) if two else function(x)

    x, h = 0.3, 1e-3
    slope = float(fxflow.grad(one)(fnp.float64(x)))
    around = float(one(fnp.float64(x + h)) - one(fnp.float64(x - h))) / (2 * h)
    assert abs(slope - around) < 1e-5


def test_sinc_has_derivatives_at_zero() -> None:
    assert float(fxflow.grad(fnp.sinc)(0.0)) == 0.0
    second = fxflow.grad(fxflow.grad(fnp.sinc))(0.0)
    assert abs(float(second) + np.pi**2 / 3) < 1e-3


def test_what_is_not_a_number() -> None:
    with pytest.raises(ArgumentError, match="sin: got a list of 2 items"):
        fnp.sin([1, 2])
    with pytest.raises(ArgumentError, match=r"convert it with fnp\.asarray"):
        fxflow.jit(lambda x: fnp.add(x, [1]))(1.0)
    with pytest.raises(DtypeError, match="sin: takes numbers, got key"):
        fnp.sin(fxflow.random.key(0))


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logaddexp_shares_its_slope_at_a_tie(name):
    function = getattr(fnp, name)
    for x in (0.0, 1.5, -3.0):
        slopes = fxflow.grad(lambda a, b: function(a, b), argnums=(0, 1))(x, x)
        assert [float(s) for s in slopes] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("name", ("logaddexp", "logaddexp2"))
def test_complex_sums_of_exponentials_stay_on_the_principal_branch(name) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(-1, 1, 50) + 1j * rng.uniform(-20, 20, 50) for _ in range(2))
    base = np.exp(1) if name == "logaddexp" else 2.0
    expected = np.log(base**x + base**y) / np.log(base)
    function = getattr(fnp, name)
    for run in (function, fxflow.jit(function)):
        out = np.asarray(run(fnp.array(x, "complex128"), fnp.array(y, "complex128")))
        np.testing.assert_allclose(out, expected, rtol=1e-12)


@pytest.mark.parametrize("x", sample([1e-9, 0.31, 1.5], 1, of="sinc"))
def test_nine_derivatives_of_sinc(x: float) -> None:
    """Integrals of (iω)ⁿ exp(iωx) over the band from -π to π."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    function = fnp.sinc
    with fxflow.config.override(x64=True):
        for n in range(10):
            waves = (1j * np.pi * nodes) ** n * np.exp(1j * np.pi * nodes * x)
            want = (weights * waves).real.sum() / 2
            assert abs(float(function(x)) - want) < 1e-9 * np.pi**n
            function = fxflow.grad(function)


@pytest.mark.parametrize("name", ["hypot", "logaddexp", "logaddexp2"])
@pytest.mark.parametrize("point", [(0.5, 0.5), (0.5, -1.0), (0.0, 2.0)])
def test_second_derivatives_at_ties(name: str, point: tuple[float, float]) -> None:
    f, h = getattr(fnp, name), 1e-4
    want = getattr(np, name)
    x, y = point
    with fxflow.config.override(x64=True):
        forward = np.array(fxflow.jacfwd(fxflow.jacfwd(f, (0, 1)), (0, 1))(x, y))
        reverse = np.array(fxflow.jacrev(fxflow.jacrev(f, (0, 1)), (0, 1))(x, y))
    mixed = want(x + h, y + h) - want(x + h, y - h) - want(x - h, y + h)
    mixed = (mixed + want(x - h, y - h)) / (4 * h * h)
    by_x = (want(x + h, y) - 2 * want(x, y) + want(x - h, y)) / h**2
    by_y = (want(x, y + h) - 2 * want(x, y) + want(x, y - h)) / h**2
    for got in (forward, reverse):
        np.testing.assert_allclose(got, [[by_x, mixed], [mixed, by_y]], 1e-6, 1e-6)


def test_slopes_where_a_length_or_an_exponential_is_0() -> None:
    zero, low = np.float32(0), np.float32(-np.inf)
    slopes = fxflow.grad(fnp.hypot, (0, 1))
    assert [float(s) for s in slopes(zero, zero)] == [0, 0]
    slopes = fxflow.grad(fnp.logaddexp, (0, 1))
    assert [float(s) for s in slopes(low, low)] == [0.5, 0.5]
    assert [float(s) for s in slopes(low, zero)] == [0, 1]
