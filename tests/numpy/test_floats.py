"""Parts and kinds of numbers, and rounding, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError
from tests.numpy.oracle import BFLOAT16, arrays, check, quick

X = np.array([0.0, -0.0, 0.5, 1.5, -2.5, 2.7, np.inf, -np.inf, np.nan], np.float32)
I = np.array([-17, 0, 25, 35, 140], np.int32)  # noqa: E741
Z = np.array([1.5 - 2.5j, -1 + 0j, 0.25 + 3j], np.complex64)


@pytest.mark.parametrize("name", ("floor", "ceil", "trunc", "rint"))
def test_rounding(name: str) -> None:
    check(name, X)
    check(name, I, compiled=False)


@pytest.mark.parametrize("decimals", (0, 1, 2, -1, -3))
def test_round(decimals: int) -> None:
    check("round", np.array([2.345, -0.55, 1234.5], np.float32), decimals=decimals)
    check("round", I, decimals=decimals)
    check("round", Z, decimals=decimals, compiled=False)


def test_round_keeps_dtypes_and_large_numbers() -> None:
    assert fnp.round(fnp.ones(1, "bfloat16") * 1.26, 1).dtype == BFLOAT16
    assert float(fnp.round(fnp.float32(3e38), 5)) == np.float32(3e38)
    with pytest.raises(ArgumentError, match="out"):
        fnp.round(X, out=X)


@pytest.mark.parametrize(
    "name", ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal")
)
def test_questions(name: str) -> None:
    check(name, X)
    check(name, I, compiled=False)


@pytest.mark.parametrize("name", ("isnan", "isinf", "isfinite", "iscomplex", "isreal"))
def test_questions_about_complex_numbers(name: str) -> None:
    check(name, np.array([1 + 0j, np.nan, 1j * np.inf, 2j], np.complex64))


@pytest.mark.parametrize("name", ("isposinf", "signbit", "fabs", "floor"))
def test_questions_that_complex_numbers_cannot_answer(name: str) -> None:
    with pytest.raises(DtypeError, match=name):
        getattr(fnp, name)(Z)


@pytest.mark.parametrize("name", ("real", "imag", "conjugate", "angle"))
def test_parts(name: str) -> None:
    check(name, Z)
    check(name, np.array([1.0, -2.0], np.float32))


def test_angle_in_degrees() -> None:
    check("angle", Z, deg=True)


def test_real_if_close() -> None:
    assert fnp.real_if_close(fnp.asarray([1 + 1e-9j])).dtype == np.float32
    assert fnp.real_if_close(Z).dtype == np.complex64
    with pytest.raises(ConcretizationError):
        fxflow.jit(fnp.real_if_close)(Z)


def test_pieces_of_floats() -> None:
    check("modf", X)
    check("frexp", X)
    check("copysign", X, X[::-1].copy())
    check("nextafter", X, X[::-1].copy())
    check("spacing", np.array([1.0, -3.0, np.inf], np.float32))
    check("ldexp", X, np.arange(9, dtype=np.int32) - 4)
    check("fabs", X)
    assert fnp.ldexp(X[3:4], 3).tolist() == [12.0]


@quick
@given(x=arrays(np.float32, shape=st.just((5,))))
def test_frexp_and_ldexp_are_inverse(x: np.ndarray) -> None:
    mantissa, exponent = fnp.frexp(x)
    assert np.array_equal(fnp.ldexp(mantissa, exponent), x)


def test_frexp_of_small_dtypes() -> None:
    for dtype in ("bfloat16", "float16", "float64"):
        mantissa, exponent = fnp.frexp(fnp.asarray([6.0, 0.375], dtype))
        assert mantissa.tolist() == [0.75, 0.75] and exponent.tolist() == [3, -1]


def test_ldexp_wants_integers() -> None:
    with pytest.raises(DtypeError, match="ldexp: exponents must be integers"):
        fnp.ldexp(1.0, 2.5)


def test_divisors() -> None:
    a, b = np.array([12, -18, 0, 0, 7]), np.array([18, 12, 5, 0, -21])
    check("gcd", a, b)
    check("lcm", a, b)
    check("gcd", a[:, None], b[:2], compiled=False)
    with pytest.raises(DtypeError, match="gcd: takes integers"):
        fnp.gcd(1.0, 2)


def test_angle_of_minus_zero() -> None:
    check("angle", np.array([-0.0, 0.0, -1, 1, np.inf, -np.inf, np.nan], np.float32))


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_spacing_of_special_values(dtype) -> None:
    info = np.finfo(dtype)
    ends = [info.max, info.min, info.tiny, -info.tiny, np.inf, -np.inf, np.nan]
    x = np.array([1, -1, 0, -0.0, 3, -3, 4, -4, 1000, -1000, *ends], dtype)
    with np.errstate(all="ignore"):
        expected = np.spacing(x)
    for run in (fnp.spacing, fxflow.jit(fnp.spacing)):
        np.testing.assert_array_equal(np.asarray(run(fnp.array(x, dtype))), expected)


@pytest.mark.parametrize("decimals", [10**30, 400, -400, -(10**30)])
def test_rounding_to_decimals_without_effect(decimals) -> None:
    want = [1.25, -3e30] if decimals > 0 else [0, 0]
    found = fnp.round(np.array([1.25, -3e30], "f4"), decimals)
    assert found.tolist() == pytest.approx(want)


def test_slope_of_frexp() -> None:
    for x, want in [(3.0, 0.25), (-0.3, 2.0), (3e38, 2.0**-128), (0.0, 1.0)]:
        for slope in (fxflow.grad, fxflow.jacfwd):
            got = slope(lambda x: fnp.frexp(x)[0])(np.float32(x))
            assert float(got) == want
    bend = fxflow.grad(fxflow.grad(lambda x: fnp.frexp(x)[0]))
    assert float(bend(3.0)) == 0


@pytest.mark.parametrize("x", [-1.0, -0.5, -0.0, 0.0, 0.5, 1.0])
def test_slope_of_a_fractional_part(x: float) -> None:
    for slope in (fxflow.grad, fxflow.jacfwd):
        assert float(slope(lambda x: fnp.modf(x)[0])(np.float32(x))) == 1
