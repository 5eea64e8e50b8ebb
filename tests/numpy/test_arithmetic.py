"""Arithmetic: NumPy's values, JAX's dtypes, XLA's integers."""

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import DtypeError, ShapeError
from tests.numpy.oracle import BFLOAT16, arrays, check, quick, same

X = np.array([-7.5, -2.0, -0.0, 0.0, 1.5, 3.0, np.inf, np.nan], np.float32)
Y = np.array([2.0, -0.5, 3.0, -2.0, 0.0, np.nan, 2.0, 1.0], np.float32)
I = np.array([-7, 0, 3, 12, -5, 9], np.int32)  # noqa: E741
J = np.array([2, -3, 5, -4, 1, 3], np.int32)
BINARY = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod"),
    *("divmod", "maximum", "minimum", "fmax", "fmin"),
)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_agree_with_numpy(name: str) -> None:
    check(name, X, Y)
    check(name, I, J)
    check(name, X[:, None], Y[:3], compiled=False)
    check(name, I.astype(np.uint8), np.abs(J).astype(np.uint8), compiled=False)


@pytest.mark.parametrize("name", ("negative", "positive", "absolute", "sign", "square"))
def test_unary_functions_agree_with_numpy(name: str) -> None:
    check(name, X)
    check(name, I)
    check(name, (X[:3] + 1j * Y[:3]).astype(np.complex64), compiled=False)


@quick
@given(data=st.data(), name=st.sampled_from(("add", "multiply", "maximum", "fmod")))
def test_any_shape(data: Any, name: str) -> None:
    x = data.draw(arrays(data.draw(st.sampled_from((np.float32, np.int32)))))
    check(name, x, x[..., ::-1] if x.ndim else x, compiled=False)


@pytest.mark.parametrize("n", (0, 1, 2, 3, 7, -1, -3))
def test_power_with_a_python_int(n: int) -> None:
    x = np.array([-2.0, 0.5, 3.0], np.float32)
    assert same(x ** float(n), fnp.power(x, n))
    assert same(x ** float(n), fxflow.jit(lambda a: a**n)(x))
    if n >= 0:
        assert same(I**n, fnp.asarray(I) ** n)


def test_power_of_arrays() -> None:
    check("power", np.abs(X[:6]), Y[:6])
    check("power", I, np.abs(J))
    check("float_power", np.abs(I), J, compiled=False)
    # A power that is not known beforehand and negative gives 0.
    assert fnp.power(fnp.asarray([3, 2]), fnp.asarray([-1, 2])).tolist() == [0, 4]
    assert same(2.0 ** X[:4], 2.0 ** fnp.asarray(X[:4]))


def test_power_of_an_integer_to_a_negative_one_is_refused() -> None:
    with pytest.raises(DtypeError, match=r"power: integers have no negative powers"):
        fnp.asarray([1, 2]) ** -1


def test_the_gradient_of_a_square_is_twice_the_number() -> None:
    assert float(fxflow.grad(lambda x: x**2)(3.0)) == 6.0
    assert float(fxflow.grad(lambda x: fnp.maximum(x, 1.0))(1.0)) == 0.5


def test_bools() -> None:
    t = np.array([True, False, True])
    check("add", t, ~t)
    check("multiply", t, t)
    assert fnp.floor_divide(t, t[:1]).dtype == np.int32
    with pytest.raises(DtypeError, match="sub"):
        fnp.subtract(t, t)
    with pytest.raises(DtypeError, match="neg"):
        fnp.negative(t)


def test_integers_divided_by_zero_do_not_fail() -> None:
    x = fnp.asarray([5, -5, 0])
    assert (x % 0).tolist() == [0, 0, 0]
    assert fnp.fmod(x, 0).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("x", "y", "dtype", "weak"),
    [
        (np.int32, 1.5, "float32", True),
        (np.int8, 3, "int8", False),
        (np.float16, 2.5, "float16", False),
        (BFLOAT16, 1, "bfloat16", False),
        (np.float32, 1j, "complex64", False),
        (np.uint8, True, "uint8", False),
        (bool, 1, "int32", True),
        (np.float64, 1.0, "float64", False),
    ],
)
@pytest.mark.parametrize("op", (operator.add, operator.mul))
def test_python_numbers_yield(x: Any, y: Any, dtype: str, weak: bool, op: Any) -> None:
    a = fnp.ones(3, x)
    for function in (op, fxflow.jit(lambda v: op(v, y)), lambda v, w: op(w, v)):
        out = (
            function(a, y)
            if function is not None and _takes_two(function)
            else (function(a))
        )
        assert (out.dtype.name, out.weak_type) == (dtype, weak)


def _takes_two(function: Any) -> bool:
    return function in (operator.add, operator.mul) or (
        getattr(function, "__code__", None) is not None
        and function.__code__.co_argcount == 2
    )


def test_explicit_wide_arrays_keep_the_bits_of_numpy_data() -> None:
    x = fnp.zeros(1, "float64")
    assert float((x + np.array([1e-12 + 1.0]))[0]) == 1.0 + 1e-12


def test_a_number_that_does_not_fit_is_refused() -> None:
    x = fnp.zeros(2, "uint8")
    for function in (lambda: x + 300, lambda: fxflow.jit(lambda a: a + 300)(x)):
        with pytest.raises(OverflowError, match="300 does not fit uint8"):
            function()


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ShapeError, match=r"add: operands f32\[2\], f32\[3\] do not"):
        fnp.ones(2) + fnp.ones(3)


def test_complex_numbers_have_no_order() -> None:
    with pytest.raises(DtypeError, match="floor_divide: complex numbers have no order"):
        fnp.ones(2, "complex64") // 2


def test_divisor_of_ones() -> None:
    check("reciprocal", np.array([2.0, -0.5, 0.0], np.float32))
    assert fnp.reciprocal(fnp.asarray([2, 1])).tolist() == [0.5, 1]


@pytest.mark.parametrize("how", [lambda f: f, fxflow.jit])
def test_each_operand_becomes_a_float_by_itself(how: Any) -> None:
    low, high = np.int32(-(2**31)), np.uint32(2**32 - 2)
    assert float(how(fnp.divide)(low, high)) == -0.5
    assert float(how(fnp.true_divide)(low, high)) == -0.5
    assert float(how(fnp.float_power)(np.int32(1), high)) == 1
    assert float(how(fnp.hypot)(np.int32(0), high)) == 2.0**32
    assert float(how(fnp.copysign)(np.int32(1), high)) == 1
    assert float(how(fnp.arctan2)(high, np.int32(1))) > 0
    assert float(how(fnp.heaviside)(high, np.int32(0))) == 1


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("how", [lambda f: f, fxflow.jit])
def test_integers_to_negative_powers_are_quotients(how: Any, dtype: str) -> None:
    x, y = np.arange(-3, 4).astype(dtype)[:, None], -np.arange(1, 5).astype(dtype)
    x, y = fnp.asarray(x, dtype), fnp.asarray(y, dtype)
    out = how(fnp.power)(x, y)
    assert out.dtype == dtype
    base = np.asarray(x).astype(float)
    want = np.where(base == 0, 0, np.trunc(np.where(base, base, 1) ** np.asarray(y)))
    np.testing.assert_array_equal(out, want)


def test_divisors() -> None:
    a, b = np.array([12, -18, 0, 0, 7]), np.array([18, 12, 5, 0, -21])
    check("gcd", a, b)
    check("lcm", a, b)
    check("gcd", a[:, None], b[:2], compiled=False)
    with pytest.raises(DtypeError, match="gcd: takes integers"):
        fnp.gcd(1.0, 2)


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod", "sign"])
def test_infinities_and_signed_zeros_are_numpys(name: str, run: Any) -> None:
    numbers = [0.0, 0.1, 0.3, 1, 2.5, 5, 1e-30, 1e30, np.inf]
    values = np.array([*numbers, *(-n for n in numbers), np.nan], "f4")
    count = 1 if name == "sign" else 2
    operands = [a.ravel() for a in np.meshgrid(*[values] * count)]
    with np.errstate(all="ignore"):
        want = getattr(np, name)(*operands)
    got = np.asarray(run(getattr(fnp, name))(*operands))
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


@pytest.mark.parametrize("x", [4.0, -4.0, 5.0, 0.0, -0.0])
@pytest.mark.parametrize("y", [2.0, -2.0])
def test_slope_of_a_remainder(x: float, y: float) -> None:
    slopes = fxflow.grad(fnp.remainder, (0, 1))(x, y)
    assert [float(s) for s in slopes] == [1, -(x // y)]
