"""Rounding to a shorter format without changing the dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir.primitive import Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.families import FLOAT, Elementwise, Linear

_LAYOUT = {
    dtypes.float16: (5, 10),
    dtypes.bfloat16: (8, 7),
    dtypes.float32: (8, 23),
    dtypes.float64: (11, 52),
}


def _host_reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    exponents, mantissas = _LAYOUT[x.dtype]
    word = np.dtype(f"u{x.dtype.itemsize}").type
    bits = np.ascontiguousarray(x).view(word).reshape(x.shape)
    sign = bits & word(1 << (exponents + mantissas))
    infinity = word(((1 << exponents) - 1) << mantissas)
    body = bits ^ sign
    if mantissa_bits < mantissas:
        # Round to nearest even: half an ulp less one, plus one if the last bit is odd.
        drop = mantissas - mantissa_bits
        odd = (body >> word(drop)) & word(1)
        body = body + word((1 << (drop - 1)) - 1) + odd
        body = body & word(
            ~((1 << drop) - 1) & int(infinity | word((1 << mantissas) - 1))
        )
    if exponent_bits < exponents:
        bias = (1 << (exponents - 1)) - 1
        reach = (1 << (exponent_bits - 1)) - 1
        exponent = body & infinity
        over = exponent > word((bias + reach) << mantissas)
        under = exponent <= word((bias - reach) << mantissas)
        body = np.where(over, infinity, np.where(under, word(0), body))
    body = np.where(body > infinity, infinity, body)
    out = (body | sign).astype(word)
    return np.where(np.isnan(x), x, np.asarray(out).view(x.dtype))


@register
class ReducePrecision(Linear, Elementwise):
    """Rounds to fewer bits, keeping the dtype. dtypes: f16, bf16, f32, f64.

    StableHLO: reduce_precision. The tangent is rounded likewise.
    """

    name = "reduce_precision"
    kinds = FLOAT

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`reduce_precision`."""
        out = ctx.avals_out[0].mlir
        bits = f"e{params['exponent_bits']}m{params['mantissa_bits']}"
        return ctx.emit(
            f"stablehlo.reduce_precision {operands[0]}, format = {bits} : {out}"
        )

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Rounds the bits."""
        return _host_reduce_precision(values[0], **params)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent, rounded likewise."""
        return [self.bind(cotangent, **params)]


def reduce_precision(operand: Any, exponent_bits: int, mantissa_bits: int) -> Array:
    """Returns the numbers rounded to a shorter format, in their own dtype.

    Args:
      operand: f16, bf16, f32 or f64 array.
      exponent_bits: of the format, at least 1.
      mantissa_bits: of the format, at least 0.

    Returns:
      An array of the dtype and shape of `operand`.

    Raises:
      DtypeError: `operand` is of another dtype.
      ArgumentError: a number of bits is out of range.

    Special cases:
      What is too large becomes infinite, what is too small zero; nan stays.

    Example:
      >>> reduce_precision(np.array([1.2345, 70000.0], "f4"), 5, 10)
      Array([1.234375,      inf], dtype=float32)

    Source: StableHLO `reduce_precision`.
    """
    aval = typeof(operand)
    if aval.dtype not in _LAYOUT:
        raise DtypeError(
            f"reduce_precision: takes f16, bf16, f32 or f64 arrays, got {aval}"
        )
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ArgumentError(
            "reduce_precision: expected exponent_bits >= 1 and mantissa_bits >= 0, got "
            f"{exponent_bits} and {mantissa_bits}"
        )
    return ReducePrecision.bind(
        operand, exponent_bits=int(exponent_bits), mantissa_bits=int(mantissa_bits)
    )
