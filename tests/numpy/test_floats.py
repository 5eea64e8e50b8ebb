"""Floats taken apart, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from tests.numpy.oracle import FLOATS, arrays, check, quick


def test_pieces_of_floats() -> None:
    check("modf", FLOATS)
    check("frexp", FLOATS)
    check("copysign", FLOATS, FLOATS[::-1].copy())
    check("nextafter", FLOATS, FLOATS[::-1].copy())
    check("spacing", np.array([1.0, -3.0, np.inf], np.float32))
    check("ldexp", FLOATS, np.arange(9, dtype=np.int32) - 4)
    check("fabs", FLOATS)
    assert fnp.ldexp(FLOATS[3:4], 3).tolist() == [12.0]


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


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_spacing_of_special_values(dtype) -> None:
    info = np.finfo(dtype)
    ends = [info.max, info.min, info.tiny, -info.tiny, np.inf, -np.inf, np.nan]
    x = np.array([1, -1, 0, -0.0, 3, -3, 4, -4, 1000, -1000, *ends], dtype)
    with np.errstate(all="ignore"):
        expected = np.spacing(x)
    for run in (fnp.spacing, fxflow.jit(fnp.spacing)):
        np.testing.assert_array_equal(np.asarray(run(fnp.array(x, dtype))), expected)


def test_slope_of_frexp() -> None:
    for x, want in [(3.0, 0.25), (-0.3, 2.0), (3e38, 2.0**-128), (0.0, 1.0)]:
        for slope in (fxflow.grad, fxflow.jacfwd):
            with fxflow.config.override(eager="auto"):  # XLA makes subnormals 0
                got = slope(lambda x: fnp.frexp(x)[0])(np.float32(x))
            assert float(got) == want
    bend = fxflow.grad(fxflow.grad(lambda x: fnp.frexp(x)[0]))
    assert float(bend(3.0)) == 0


@pytest.mark.parametrize("x", [-1.0, -0.5, -0.0, 0.0, 0.5, 1.0])
def test_slope_of_a_fractional_part(x: float) -> None:
    for slope in (fxflow.grad, fxflow.jacfwd):
        assert float(slope(lambda x: fnp.modf(x)[0])(np.float32(x))) == 1
