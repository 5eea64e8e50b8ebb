"""Arithmetic: what the functions take, what they refuse, values at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.conversion import convert


def f32(*values: float):
    return convert(np.array(values), np.dtype("float32"))


def i32(*values: int):
    return convert(np.array(values), np.dtype("int32"))


def grads(function, *args: float) -> list[float]:
    positions = tuple(range(len(args)))
    return [float(g) for g in fxflow.grad(function, positions)(*args)]


# -- operands --------------------------------------------------------------------------


def test_python_numbers_take_the_arrays_dtype() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "complex128"):
        x = lax.convert_element_type(2, dtype)
        assert lax.mul(x, 2).dtype == x.dtype
        assert lax.sub(3, x).dtype == x.dtype


def test_a_wide_constant_keeps_its_digits() -> None:
    x = lax.convert_element_type(1.0, "float64")
    assert float(lax.add(x, 1e-12)) - 1 == pytest.approx(1e-12, rel=1e-3)


def test_weakness_is_kept_only_between_weak_operands() -> None:
    assert lax.add(1.0, 2.0).weak_type
    assert not lax.add(np.float32(1), 2.0).weak_type


def test_two_numbers_promote() -> None:
    assert lax.add(1, 2.5).dtype == np.float32


def test_zero_keeps_its_sign() -> None:
    assert np.signbit(np.asarray(lax.add(f32(-0.0), -0.0)))[0]
    assert not np.signbit(np.asarray(lax.add(f32(-0.0), 0.0)))[0]


def test_traced_scalars_are_broadcast() -> None:
    x = f32(1, 2, 3)
    text = str(fxflow.make_graph(lambda s, v: lax.mul(s, v))(np.float32(2), x))
    assert "broadcast_in_dim" in text
    text = str(fxflow.make_graph(lambda v: lax.mul(2.0, v))(x))
    assert "broadcast_in_dim" not in text
    gradient = fxflow.grad(lambda s: lax.reduce_sum(lax.mul(s, x), (0,)))(2.0)
    assert float(gradient) == 6


def test_axes_of_length_one_are_broadcast() -> None:
    column, row = np.ones((3, 1), "f4"), np.arange(4, dtype="f4")[None]
    assert lax.add(column, row).shape == (3, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.add(f32(1, 2), f32(1, 2, 3)),
            ShapeError,
            r"add: operands must have one shape, got f32\[2\], f32\[3\]: .*broadcast",
        ),
        (
            lambda: lax.add(np.ones((2, 3), "f4"), f32(1, 2, 3)),
            ShapeError,
            r"add: operands must have one shape, got f32\[2,3\], f32\[3\]",
        ),
        (
            lambda: lax.mul(f32(1), i32(1)),
            DtypeError,
            r"mul: operands must have one dtype, got f32\[1\], i32\[1\]: .*astype",
        ),
        (
            lambda: lax.mul(i32(1), 2.5),
            DtypeError,
            r"mul: the number 2.5 cannot become i32 to go with i32\[1\]",
        ),
        (
            lambda: lax.add(np.uint8(3), 300),
            OverflowError,
            r"300 does not fit uint8",
        ),
        (
            lambda: lax.neg(np.array([True])),
            DtypeError,
            r"neg: takes .*, got bool\[1\]: convert it",
        ),
        (lambda: lax.abs(np.uint8(3)), DtypeError, r"abs: takes .*got u8\[\]"),
        (lambda: lax.rem(np.complex64(1), 2.0), DtypeError, r"rem: takes .*c64\[\]"),
        (lambda: lax.add("a", 1), TypeError, r"'a' of type str.*not an array"),
        (lambda: lax.add([1.0], f32(1)), TypeError, r"fnp.asarray"),
    ],
)
def test_operands_that_differ_in_shape_or_dtype_are_refused(
    call, error, message
) -> None:
    with pytest.raises(error, match=message):
        call()


# -- values ----------------------------------------------------------------------------


def test_integer_division() -> None:
    low = np.iinfo("int32").min
    x, y = i32(7, -7, 7, 5, low, 0), i32(2, 2, -2, 0, -1, 0)
    assert np.asarray(lax.div(x, y)).tolist() == [3, -3, -3, -1, low, -1]
    assert np.asarray(lax.rem(x, y)).tolist() == [1, -1, 1, 5, 0, 0]
    assert int(lax.div(np.uint8(5), 0)) == 255


def test_integers_wrap() -> None:
    assert int(lax.add(np.int8(127), 1)) == -128
    assert int(lax.neg(np.int8(-128))) == -128
    assert int(lax.sub(np.uint8(0), 1)) == 255
    assert int(lax.mul(np.int8(64), 4)) == 0


def test_signs_of_zero_and_nan() -> None:
    out = np.asarray(lax.sign(f32(0.0, -0.0, np.nan, -np.inf)))
    assert np.signbit(out).tolist() == [False, True, False, True]
    assert np.isnan(out[2]) and out[3] == -1


def test_extrema_of_complex_numbers_are_lexicographic() -> None:
    x, y = np.complex64([1 + 2j, 2 + 0j, 1]), np.complex64([1 + 3j, 1 + 9j, np.nan])
    bigger, smaller = np.asarray(lax.max(x, y)), np.asarray(lax.min(x, y))
    assert bigger[:2].tolist() == [1 + 3j, 2]
    assert smaller[:2].tolist() == [1 + 2j, 1 + 9j]
    assert np.isnan(bigger[2]) and np.isnan(smaller[2])


# -- derivatives at special points -----------------------------------------------------


def test_slope_of_abs_at_zero() -> None:
    assert grads(lax.abs, 0.0) == [1.0]
    _, tangent = fxflow.jvp(lax.abs, (np.complex64(0),), (np.complex64(1j),))
    assert float(tangent) == 0


def test_ties_share_the_slope() -> None:
    assert grads(lax.max, 1.0, 1.0) == [0.5, 0.5]
    assert grads(lax.min, 1.0, 1.0) == [0.5, 0.5]
    assert grads(lax.max, 2.0, 1.0) == [1.0, 0.0]


def test_slope_of_rem() -> None:
    assert grads(lax.rem, -5.0, 3.0) == [1.0, 1.0]
    assert grads(lax.rem, 6.0, 3.0) == [1.0, -2.0]


def test_slope_of_division_by_zero() -> None:
    assert grads(lax.div, 1.0, 0.0) == [np.inf, -np.inf]


def test_second_slopes_of_rem_are_zero() -> None:
    for x, y in [(5.0, 3.0), (-5.5, 3.0), (0.0, 2.0), (1e30, 1e-9)]:
        second = fxflow.hessian(lax.rem, (0, 1))(x, y)
        assert np.array(second).tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("shape", [(), (5,)])
def test_division_by_a_constant_whose_reciprocal_is_subnormal(shape) -> None:
    x = np.full(shape, 3e38, "f4")
    for f in (lambda x: lax.div(x, np.float32(1e38)), lambda x: x / -1e38):
        compiled = fxflow.jit(f)
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-6)
        assert "optimization_barrier" in compiled.lower(x).as_text()
    assert "barrier" not in fxflow.jit(lambda x: x / 8e37).lower(x).as_text()


def test_the_slope_of_a_quotient_of_large_numbers() -> None:
    """XLA makes (x / y) / y a quotient by y², which overflows."""
    x, y = np.float32(2e30), np.float32(1e30)
    slope = fxflow.grad(lax.div, 1)
    for run in (slope, fxflow.jit(slope)):
        assert float(run(x, y)) == pytest.approx(-2e-30, rel=1e-6, abs=0)
