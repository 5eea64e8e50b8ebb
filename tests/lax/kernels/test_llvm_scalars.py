"""Elementwise operations in compiled kernels: against NumPy, to a few units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.core.ir.primitive import table
from fxflow.lax.kernels.llvm_scalars import RULES, is_known
from fxflow.lax.kernels.native import why_not
from tests.lax.kernels.samples import params_of

pytest.importorskip("llvmlite")

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 1.0, -1.0, 88.7, -103.0]
#: Name → function, the operands' range, and how many units in the last place are fine.
FLOATS: dict[str, tuple[Any, tuple[float, float], int]] = {
    "exp": (lax.exp, (-87, 88), 2),
    "log": (lax.log, (1e-30, 1e30), 2),
    "tanh": (lax.tanh, (-12, 12), 3),
    "erf": (lax.erf, (-5, 5), 3),
    "sqrt": (lax.sqrt, (0, 1e20), 1),
    "rsqrt": (lax.rsqrt, (1e-20, 1e20), 2),
    "logistic": (lax.logistic, (-80, 80), 4),
    "logistic_slope": (table["logistic_slope"].bind, (-80, 80), 6),
    "tanh_slope": (table["tanh_slope"].bind, (-40, 40), 6),
    "sin": (lax.sin, (-100, 100), 2),
    "cos": (lax.cos, (-100, 100), 2),
    "floor": (lax.floor, (-1e6, 1e6), 0),
    "ceil": (lax.ceil, (-1e6, 1e6), 0),
    "abs": (lax.abs, (-10, 10), 0),
    "neg": (lax.neg, (-10, 10), 0),
    "sign": (lax.sign, (-10, 10), 0),
    "square": (lax.square, (-1e10, 1e10), 0),
    "log1p": (lax.log1p, (-0.9, 1e10), 2),
    "expm1": (lax.expm1, (-80, 80), 2),
    "cbrt": (lax.cbrt, (-1e10, 1e10), 2),
    "atan": (lax.atan, (-1e3, 1e3), 2),
}


def compiled(functions: dict[str, Any], *args: Any) -> dict[str, Any]:
    """The results of functions in one kernel that is compiled."""
    outs = [function(*args) for function in functions.values()]

    def body(*refs: Any) -> None:
        inputs, results = refs[: len(args)], refs[len(args) :]
        for function, o in zip(functions.values(), results, strict=True):
            o[...] = function(*(x[...] for x in inputs))

    f = kernels.call(body, outs)
    p = params_of(f, *args)
    assert why_not(p, [fxflow.typeof(x) for x in args]) == ""
    return dict(zip(functions, f(*args), strict=True))


def units(found: Any, exact: Any) -> Any:
    """How many units in the last place of float32 numbers differ."""
    spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    return np.abs(found.astype(np.float64) - exact) / np.maximum(spacing, 1e-45)


@pytest.mark.parametrize("name", FLOATS)
def test_functions_of_float32(name: str) -> None:
    function, (low, high), most = FLOATS[name]
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.uniform(low, high, 2000),
            np.exp(rng.uniform(-20, 2, 500)) * np.sign(high),
        ]
    ).astype(np.float32)
    x = np.clip(x, low, high).astype(np.float32)
    found = np.asarray(compiled({name: function}, x)[name])
    exact = np.asarray(getattr(reference, name)(x.astype(np.float64)))
    assert units(found, exact).max() <= most + 0.6


class reference:
    """The functions in float64, by NumPy and SciPy."""

    exp, log, tanh, sqrt, sin, cos = np.exp, np.log, np.tanh, np.sqrt, np.sin, np.cos
    floor, ceil, abs, sign, square = np.floor, np.ceil, np.abs, np.sign, np.square
    log1p, expm1, cbrt, atan, neg = np.log1p, np.expm1, np.cbrt, np.arctan, np.negative

    @staticmethod
    def rsqrt(x: Any) -> Any:
        return 1 / np.sqrt(x)

    @staticmethod
    def logistic(x: Any) -> Any:
        return 1 / (1 + np.exp(-x))

    @staticmethod
    def logistic_slope(x: Any) -> Any:
        return np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2

    @staticmethod
    def tanh_slope(x: Any) -> Any:
        return 4 * reference.logistic_slope(2 * x)

    @staticmethod
    def erf(x: Any) -> Any:
        import scipy.special

        return scipy.special.erf(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_special_values(dtype: str) -> None:
    functions = {name: function for name, (function, _, _) in FLOATS.items()}
    x = fnp.asarray(SPECIAL, dtype)
    tolerance = {"float32": 1e-6, "float64": 1e-6}.get(dtype, 2e-2)
    for name, found in compiled(functions, x).items():
        assert found.dtype == dtype
        expected = np.asarray(functions[name](x), np.float64)
        np.testing.assert_allclose(
            np.asarray(found, np.float64), expected, tolerance, 1e-37, err_msg=name
        )


BINARY = ["add", "sub", "mul", "div", "max", "min", "rem", "eq", "ne", "lt", "le",
          "gt", "ge"]  # fmt: skip
BITS = {
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left, "arithmetic": lax.shift_right_arithmetic,
    "logical": lax.shift_right_logical,
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_two_floats(dtype: str) -> None:
    functions = {name: getattr(lax, name) for name in [*BINARY, "pow", "atan2"]}
    a, b = np.meshgrid([*SPECIAL, 2.5, -3.0], [*SPECIAL, 0.5, 3.0])
    x, y = fnp.asarray(a, dtype), fnp.asarray(b, dtype)
    tolerance = 1e-2 if dtype == "bfloat16" else 2e-6
    for name, found in compiled(functions, x, y).items():
        expected = np.asarray(functions[name](x, y), np.float64)
        np.testing.assert_allclose(
            np.asarray(found, np.float64), expected, tolerance, 1e-37, err_msg=name
        )


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"]
)
def test_two_integers(dtype: str) -> None:
    functions: dict[str, Any] = {**{n: getattr(lax, n) for n in BINARY}, **BITS}
    functions["sign"] = lambda x, y: lax.sign(x)
    info = np.iinfo(dtype)
    numbers = [0, 1, 2, 7, 8, 31, 33, info.max, info.min, info.max - 1]
    a, b = np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype))
    x, y = fnp.asarray(a, dtype), fnp.asarray(b, dtype)
    for name, found in compiled(functions, x, y).items():
        np.testing.assert_array_equal(found, functions[name](x, y), err_msg=name)


KINDS = ["bool", "int8", "uint32", "int64", "float32", "float64", "bfloat16", "float16"]


@pytest.mark.parametrize("source", KINDS)
def test_conversions(source: str) -> None:
    numbers = np.array([0, 1, 2, 3, 7, 100, 1.5, 2.5, 65.75])
    x = fnp.asarray(numbers > 1 if source == "bool" else numbers).astype(source)
    functions = {
        target: lambda x, target=target: lax.convert_element_type(x, target)
        for target in KINDS
    }
    for target, found in compiled(functions, x).items():
        np.testing.assert_array_equal(found, functions[target](x), err_msg=target)


def test_choices_and_bounds() -> None:
    x = fnp.asarray(SPECIAL + [-3.5, 2.0, 4.0])
    functions = {
        "where": lambda x: fnp.where(x > 0, x, -1),
        "clamp": lambda x: lax.clamp(-2.0, x, 1.5),
        "not": lambda x: lax.bitwise_not(x > 0),
        "finite": lax.is_finite,
        "round": lax.round,
        "to even": fnp.round,
        **{
            f"power {n}": lambda x, n=n: lax.integer_pow(x, n) for n in (-3, 0, 1, 2, 5)
        },
    }
    for name, found in compiled(functions, x).items():
        np.testing.assert_allclose(found, functions[name](x), 1e-6, err_msg=name)


def test_every_rule_is_of_a_primitive() -> None:
    assert set(RULES) - set(table) <= {"erf", "exp2"}
    assert is_known("add")
    assert not is_known("sort")


def test_bits_of_numbers() -> None:
    x = np.float32([*SPECIAL, 1e-45, 7.0])
    f = kernels.kernel("i:4 -> i:4", out=lambda x: kernels.like(x, "int32"))(
        lambda x, o: o.set(lax.bitcast_convert_type(x[...], "int32") ^ 5)
    )
    assert not why_not(params_of(f, x), [fnp.asarray(x).aval])
    found = np.asarray(fxflow.jit(f)(x))
    np.testing.assert_array_equal(found, x.view(np.int32) ^ 5)
    back = kernels.kernel("i:4 -> i:4", out=lambda x: kernels.like(x, "float32"))(
        lambda x, o: o.set(lax.bitcast_convert_type(x[...] ^ 5, "float32"))
    )
    bits = np.asarray(fxflow.jit(back)(found)).view(np.int32)
    np.testing.assert_array_equal(bits, x.view(np.int32))
    half = kernels.kernel("i:4 -> i:4", out=lambda x: kernels.like(x, "int16"))(
        lambda x, o: o.set(lax.bitcast_convert_type(x[...], "int16"))
    )
    given = fnp.asarray(x).astype("bfloat16")
    assert "a bitcast of bf16[4] to i16[4]" in why_not(
        params_of(half, given), [given.aval]
    )
