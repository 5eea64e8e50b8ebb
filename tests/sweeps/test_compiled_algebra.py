"""One operation after another: compiled, all give what they give one at a time.

XLA's algebra takes integers for numbers that do not wrap, and floats for numbers that
do not overflow (`fxflow/devices/faults.py`). Pairs of operations are compared on
numbers where that shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from tests.sweeps.sampling import sample

#: Algebra shows without LLVM's optimizations.
QUICK = {"xla_backend_optimization_level": 0}

Functions = dict[str, Callable[[Any], Any]]


@pytest.fixture(autouse=True)
def settings():
    with config.override(x64=True), np.errstate(all="ignore"):
        yield


def compared(before: Callable[[Any], Any], after: Functions, x: Any) -> list[Any]:
    """Returns the name, compiled and eager values of each function after another."""

    def all_of(x: Any) -> list[Any]:
        return [f(before(x)) for f in after.values()]

    compiled = fxflow.jit(all_of, compiler_options=QUICK)(x)
    return [*zip(after, map(np.asarray, compiled), all_of(fnp.asarray(x)), strict=True)]


# -- integers --------------------------------------------------------------------------


def integer_functions(dtype: np.dtype) -> tuple[Functions, Functions]:
    """Returns functions of integers, and predicates."""
    info = np.iinfo(dtype)

    def c(value: int) -> np.ndarray:
        return np.asarray(value).astype(dtype)

    def cast(name: str) -> Callable[[Any], Any]:
        return lambda x: x.astype(name).astype(dtype)

    least, bits = c(info.min), c(info.bits)
    functions: Functions = {
        "x * x": lambda x: x * x,
        "square": lax.square,
        "x³": lambda x: lax.integer_pow(x, 3),
        "x⁴": lambda x: lax.integer_pow(x, 4),
        "x * 2": lambda x: x * c(2),
        "x * 3": lambda x: x * c(3),
        "x * -1": lambda x: x * c(-1),
        "-x": lax.neg,
        "0 - x": lambda x: c(0) - x,
        "1 - x": lambda x: c(1) - x,
        "x + 1": lambda x: x + c(1),
        "x - 1": lambda x: x - c(1),
        "x - x": lambda x: x - x,
        "sign": lax.sign,
        "max(x, 0)": lambda x: lax.max(x, c(0)),
        "min(x, 0)": lambda x: lax.min(x, c(0)),
        "clamp": lambda x: lax.clamp(c(0), x, c(5)),
        "1 / x": lambda x: lax.div(c(1), x),
        "x / x": lambda x: lax.div(x, x),
        "x % x": lambda x: lax.rem(x, x),
        "~x": lax.bitwise_not,
        "x ^ x": lambda x: x ^ x,
        "x & 1": lambda x: x & c(1),
        "x | 1": lambda x: x | c(1),
        "clz": lax.clz,
        "popcount": lax.population_count,
        "x << 1": lambda x: lax.shift_left(x, c(1)),
        "1 << x": lambda x: lax.shift_left(c(1), x),
        "x << bits": lambda x: lax.shift_left(x, bits),
        "x >> 1": lambda x: lax.shift_right_arithmetic(x, c(1)),
        "x >>> 1": lambda x: lax.shift_right_logical(x, c(1)),
        "x >> x": lambda x: lax.shift_right_arithmetic(x, x),
        "x >> bits": lambda x: lax.shift_right_arithmetic(x, bits),
        "int8": cast("int8"),
        "uint8": cast("uint8"),
        "int64": cast("int64"),
        "float32": cast("float32"),
        "float64": cast("float64"),
    }
    for n in (2, 3, 4, -1, -2):
        functions |= {
            f"x / {n}": lambda x, n=n: lax.div(x, c(n)),
            f"x rem {n}": lambda x, n=n: lax.rem(x, c(n)),
            f"x // {n}": lambda x, n=n: x // c(n),
            f"x % {n}": lambda x, n=n: x % c(n),
        }
    if dtype.kind == "i":
        functions |= {
            "abs": lax.abs,
            "x / least": lambda x: lax.div(x, least),
            "x rem least": lambda x: lax.rem(x, least),
        }
    predicates: Functions = {
        "x < 0": lambda x: x < c(0),
        "x <= 0": lambda x: x <= c(0),
        "x > 0": lambda x: x > c(0),
        "x >= 0": lambda x: x >= c(0),
        "0 > x": lambda x: c(0) > x,
        "x == 0": lambda x: x == c(0),
        "x < 1": lambda x: x < c(1),
        "x <= least": lambda x: x <= least,
        "x < least": lambda x: x < least,
        "x >= most": lambda x: x >= c(info.max),
    }
    return functions, predicates


def integers(dtype: np.dtype) -> np.ndarray:
    """Returns all integers of a dtype, or those at its ends and some others."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        return np.arange(info.min, info.max + 1).astype(dtype)
    some = np.random.default_rng(0).integers(
        info.min, info.max, 60, dtype=dtype, endpoint=True
    )
    few = np.array([-3, -2, -1, *range(70), 46341, 60000, 65536]).astype(dtype)
    ends = [info.min, info.min + 1, info.max // 2 + 1, info.max - 1, info.max]
    return np.concatenate([some, few, np.array(ends, dtype)])


INTEGERS = [
    (name, before)
    for name in ("int8", "uint8", "int16", "int32", "uint32", "int64")
    for before in integer_functions(np.dtype(name))[0]
]


@pytest.mark.parametrize(("name", "before"), sample(INTEGERS, 24, "integer algebra"))
def test_integers_wrap_as_they_do_one_operation_at_a_time(name: str, before: str):
    dtype = np.dtype(name)
    functions, predicates = integer_functions(dtype)
    x = integers(dtype)
    for after, got, want in compared(functions[before], functions | predicates, x):
        np.testing.assert_array_equal(got, want, f"{after} of {before}")


# -- floats ----------------------------------------------------------------------------

FLOATS: Functions = {
    "exp": fnp.exp,
    "exp2": fnp.exp2,
    "expm1": fnp.expm1,
    "log": fnp.log,
    "log2": fnp.log2,
    "log1p": fnp.log1p,
    "sqrt": fnp.sqrt,
    "rsqrt": lax.rsqrt,
    "cbrt": fnp.cbrt,
    "square": lax.square,
    "x * x": lambda x: x * x,
    "x³": lambda x: x**3,
    "x**0.5": lambda x: x**0.5,
    "x**-0.5": lambda x: x**-0.5,
    "power(x, 2.)": lambda x: fnp.power(x, 2.0),
    "1 / x": lambda x: 1 / x,
    "-x": lambda x: -x,
    "abs": fnp.abs,
    "x * 2": lambda x: x * 2,
    "x / 3": lambda x: x / 3,
    "x * 1e30": lambda x: x * 1e30,
    "x / 1e30": lambda x: x / 1e30,
    "x * 0": lambda x: x * 0,
    "x + 1e30": lambda x: x + 1e30,
    "x - 1e30": lambda x: x - 1e30,
    "x - x": lambda x: x - x,
    "x / x": lambda x: x / x,
    "0 - x": lambda x: 0.0 - x,
    "float16": lambda x: x.astype("float16").astype(x.dtype),
    "bfloat16": lambda x: x.astype("bfloat16").astype(x.dtype),
    "float64": lambda x: x.astype("float64").astype(x.dtype),
    "floor": fnp.floor,
    "round": fnp.round,
    "tanh": fnp.tanh,
    "sinh": fnp.sinh,
    "sign": fnp.sign,
    "max(x, 0)": lambda x: fnp.maximum(x, 0),
    "min(x, 1)": lambda x: fnp.minimum(x, 1),
    "logistic": lax.logistic,
    "erf": lax.erf,
    "frexp": lambda x: fnp.frexp(x)[0],
}
PREDICATES: Functions = {
    "x < 0": lambda x: x < 0,
    "x <= 0": lambda x: x <= 0,
    "x > 0": lambda x: x > 0,
    "x >= 0": lambda x: x >= 0,
    "0 <= x": lambda x: lax.le(fnp.zeros_like(x), x),
    "x == x": lambda x: x == x,
    "x != x": lambda x: x != x,
    "x < inf": lambda x: x < np.inf,
    "isfinite": fnp.isfinite,
}


def floats(dtype: str) -> np.ndarray:
    """Returns floats at which functions overflow, and ordinary ones."""
    sizes = [0, 0.5, 1, 1.5, 2, 3, 10, 80, 89, 100, 150, 200, 700, 720, 1e10, 1e19]
    sizes += [2e19, 1e25, 1e30, 3e38, 1e-10, 1e-18, 65519, 16777217, np.inf, np.nan]
    return np.array([*sizes, *(-x for x in sizes)], dtype)


FLOAT_CASES = [(d, f) for d in ("float32", "float64") for f in FLOATS]


@pytest.mark.parametrize(("dtype", "before"), sample(FLOAT_CASES, 12, "float algebra"))
def test_floats_overflow_as_they_do_one_operation_at_a_time(dtype: str, before: str):
    x = floats(dtype)
    least = np.finfo(dtype).tiny
    between = abs(np.asarray(FLOATS[before](fnp.asarray(x))))
    # Subnormal numbers are 0 in compiled programs.
    normal = ~((between > 0) & (between < 8 * least))
    for after, got, want in compared(FLOATS[before], FLOATS | PREDICATES, x):
        want = np.asarray(want)
        where = normal & ~((abs(want) > 0) & (abs(want) < 8 * least))
        if after in ("x - x", "x - 1e30", "x + 1e30", "floor", "round"):
            # The last digits of what comes before.
            where &= ~(abs(got - want) <= 1e-3 * np.maximum(between, 1))
        message = f"{after} of {before}"
        np.testing.assert_allclose(got[where], want[where], 1e-3, 0, True, message)


def test_what_the_guide_says_of_sixteen_bits():
    def product(x, y):
        return (x.astype("bfloat16") * y.astype("bfloat16")).astype("float32")

    x = fnp.asarray(np.array([1.01, 3.14159, 7.0], "f4"))
    exact = {"xla_allow_excess_precision": False}
    rounded = product(x, x)
    strict = fxflow.jit(product, compiler_options=exact)(x, x)
    np.testing.assert_array_equal(strict, rounded)
    wide = x.astype("bfloat16").astype("float32") ** 2
    np.testing.assert_array_equal(fxflow.jit(product)(x, x), wide)
    assert not np.array_equal(rounded, wide)

    def there_and_back(x):
        return x.astype("bfloat16").astype("float32")

    np.testing.assert_array_equal(fxflow.jit(there_and_back)(x), there_and_back(x))


def test_what_the_guide_says_of_algebra():
    x, large = np.float32(100), 1e30

    def added(x):
        return x + large

    apart = fxflow.jit(lambda x: fxflow.jit(added)(x) - large)(x)
    barrier = fxflow.jit(lambda x: lax.optimization_barrier(added(x)) - large)(x)
    assert fxflow.jit(lambda x: added(x) - large)(x) == added(x) - large == 0
    assert barrier == 0
    assert apart == 100
    zero = fxflow.jit(lambda x: x + 0.0)(np.float32(-0.0))
    assert np.signbit(zero) and not np.signbit(np.float32(-0.0) + np.float32(0.0))
    small = np.float32(1e-40)
    assert fxflow.jit(lambda x: x * 2)(small) == 0 != fnp.asarray(small) * 2
