"""Elementwise operations in Triton's IR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.lax.kernels.errors import UnsupportedError
from tests.lax.kernels.triton_samples import module_of, same, whole

X = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
X[0, :4] = np.nan, np.inf, -np.inf, -0.0
Y = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)
N = np.random.default_rng(2).integers(-128, 128, (3, 5)).astype(np.int32)


def of(body: Any, *args: Any, rtol: float = 1e-5) -> None:
    out = fxflow.eval_shape(body, *args)
    same(whole(body, out), *args, rtol=rtol)


def test_functions_of_floats() -> None:
    def body(x: Any, y: Any) -> Any:
        unary = [fnp.exp, fnp.log1p, fnp.tanh, fnp.sqrt, fnp.floor, fnp.abs, fnp.sign]
        unary += [lax.logistic, lax.erf, lax.rsqrt, fnp.isfinite, fnp.rint, fnp.square]
        binary = [
            fnp.maximum,
            fnp.minimum,
            fnp.divide,
            fnp.arctan2,
            fnp.power,
            fnp.fmod,
        ]
        binary += [fnp.greater, fnp.not_equal]
        found = [f(x) for f in unary] + [f(x, y) for f in binary]
        return fnp.stack([v.astype("float32") for v in [*found, x**3, x**-2]])

    of(body, X, Y)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int16"])
def test_functions_of_integers(dtype: str) -> None:
    x, y = N.astype(dtype), N[::-1].astype(dtype)

    def body(x: Any, y: Any) -> Any:
        binary = [lax.add, lax.mul, lax.max, lax.min, lax.div, lax.rem, lax.shift_left]
        binary += [lax.shift_right_logical, lax.shift_right_arithmetic, lax.bitwise_xor]
        found = [f(x, y % 9 - (dtype != "uint8")) for f in binary]
        return fnp.stack([*found, -x, abs(x), fnp.sign(x), ~x, x > y])

    of(body, x, y)


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "uint32", "bool", "float16", "bfloat16"]
)
def test_conversions_are_those_of_xla(dtype: str) -> None:
    of(lambda x: fnp.asarray(x * 1000).astype(dtype), X)
    of(lambda x: fnp.asarray(x).astype(dtype).astype("float32"), N)


def test_sixteen_bits_are_computed_in_thirty_two() -> None:
    text = module_of(
        whole(lambda x: fnp.tanh(x) * x, fxflow.ShapeDtypeStruct((4,), "bfloat16")),
        fnp.ones(4, "bfloat16"),
    ).text
    assert "__nv_tanhf" in text and text.count("arith.truncf") == 2
    of(lambda x: fnp.tanh(x.astype("float16")) * 3, Y, rtol=1e-3)


def test_division_and_roots_are_correctly_rounded() -> None:
    text = module_of(whole(lambda x: fnp.sqrt(x) / x, fnp.ones(4)), fnp.ones(4)).text
    assert "tt.precise_divf" in text and "tt.precise_sqrt" in text


def test_what_has_no_rule() -> None:
    f = whole(lax.digamma, fnp.ones(4))
    with pytest.raises(UnsupportedError, match="digamma"):
        module_of(f, fnp.ones(4))
    text = kernels.explain(f, fnp.ones(4))
    assert "on an NVIDIA GPU: operations on arrays (the compiler does not kno" in text


def test_a_choice_among_several() -> None:
    of(lambda n, x: lax.select_n(n % 3, x, x + 1, x * 2), abs(N), Y)
