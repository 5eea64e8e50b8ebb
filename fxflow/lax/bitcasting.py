"""The bits of one dtype read as another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
    table,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_symbolic
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.bitwise import shift_left, shift_right_logical
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.elementwise import mul
from fxflow.lax.families import kind


def _host_bitcast(x: Any, dtype: Any) -> Any:
    # `view` wants contiguous memory; of a 0-d array ascontiguousarray makes a 1-d one.
    x = np.ascontiguousarray(x).reshape(np.shape(x))
    old, new = dtypes.bits(x.dtype), dtypes.bits(dtype)
    if old == new and old >= 8:
        return x.view(dtype)
    # NumPy holds elements below 8 bits one in a byte, XLA packs them.
    if min(old, new) < 8:
        return _from_bits(_to_bits(x, old), dtype, old, new)
    if old > new:
        return x.reshape(*x.shape, 1).view(dtype)
    return x.view(dtype).reshape(x.shape[:-1])


def _to_bits(x: Any, width: int) -> Any:
    """Returns the bits of each element on a new last axis, the lowest first."""
    words = x.reshape(*x.shape, 1).view(np.uint8)
    return np.unpackbits(words, axis=-1, bitorder="little")[..., :width]


def _from_bits(bits: Any, dtype: Any, old: int, new: int) -> Any:
    if old > new:
        bits = bits.reshape(*bits.shape[:-1], old // new, new)
    elif old < new:
        bits = bits.reshape(*bits.shape[:-2], new)
    if new >= 8:
        packed = np.packbits(bits, axis=-1, bitorder="little")
        return packed.view(dtype).reshape(bits.shape[:-1])
    word = np.packbits(bits, axis=-1, bitorder="little").reshape(bits.shape[:-1])
    if dtypes.is_integer(dtype) and dtypes.is_signed(dtype):
        sign = np.uint8(1 << (new - 1))
        # Sign extension: flip the sign bit, then subtract it.
        return ((word ^ sign).astype(np.int8) - np.int8(sign)).astype(dtype)
    if dtypes.is_integer(dtype):
        return word.astype(dtype)
    return word.view(dtype)


@register
class BitcastConvertType(Primitive):
    """The same bits read as another dtype. dtypes: all. StableHLO: bitcast_convert.

    Narrower elements come on a new last axis; wider ones take one up.
    """

    name = "bitcast_convert_type"
    nondifferentiable = "it acts on bits"
    layout: Callable[..., Any] = layouts.keys

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The shape, with a last axis more or less if the widths differ."""
        (x,) = avals
        dtype = params["new_dtype"]
        if x.dtype == dtype:
            return x.strong()
        for d in (x.dtype, dtype):
            if kind(d) not in "iuf":
                raise DtypeError(
                    f"bitcast_convert_type: cannot read the bits of {x} as "
                    f"{dtypes.short_name(dtype)}: bool, complex and key arrays only "
                    "convert to themselves"
                )
        old, new = dtypes.bits(x.dtype), dtypes.bits(dtype)
        if old == new:
            return Aval(x.shape, dtype)
        if old > new:
            return Aval((*x.shape, old // new), dtype)
        if not x.ndim or x.shape[-1] != new // old:
            raise ShapeError(
                f"bitcast_convert_type: {new // old} elements of {old} bits make one "
                f"of {new}: expected a last axis of length {new // old}, got {x}"
            )
        return Aval(x.shape[:-1], dtype)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`bitcast_convert`."""
        (x,) = operands
        aval, out = ctx.avals_in[0], ctx.avals_out[0]
        if aval.dtype == out.dtype:
            return x
        if aval.ndim != out.ndim and is_symbolic((*aval.shape, *out.shape)):
            # The compiler knows the operation for one width only where sizes are open.
            parts = _narrowed if out.ndim > aval.ndim else _widened
            return ctx.compose(lambda v: parts(v, out.dtype), operands)[0]
        return ctx.emit(f"stablehlo.bitcast_convert {x} : ({aval.mlir}) -> {out.mlir}")

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """`view`."""
        return _host_bitcast(values[0], params["new_dtype"])

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Zero, as JAX has it: bits have no derivative."""
        out = self.bind(*primals, **params)
        return out, Zero(typeof(out).tangent())

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same: only the last axis matters."""
        x = args[0]
        old = dtypes.bits(typeof(x).dtype)
        # Else the mapped axis would be taken for the axis of narrow elements.
        if typeof(x).ndim == 1 and old < dtypes.bits(params["new_dtype"]):
            raise ShapeError(
                f"bitcast_convert_type: a 0-d {dtypes.short_name(typeof(x).dtype)} is "
                f"too narrow for {dtypes.short_name(params['new_dtype'])}"
            )
        return self.bind(x, **params), True


def _unsigned(dtype: Any) -> Any:
    return dtypes.dtype(f"uint{dtypes.bits(dtype)}")


def _same_width(x: Any, dtype: Any) -> Any:
    return BitcastConvertType.bind(x, new_dtype=dtype)


def _narrowed(x: Any, dtype: Any) -> Any:
    """Returns the parts of each element, the lowest first, by shifts."""
    wide, narrow = _unsigned(typeof(x).dtype), _unsigned(dtype)
    x = _same_width(x, wide)
    bits = dtypes.bits(narrow)
    shape = (*typeof(x).shape, dtypes.bits(wide) // bits)
    last = len(shape) - 1
    by = mul(broadcasted_iota(wide, shape, last), bits)
    parts = shift_right_logical(broadcast_in_dim(x, shape, tuple(range(last))), by)
    # A conversion to fewer bits takes the low ones.
    return _same_width(convert_element_type(parts, narrow), dtype)


def _widened(x: Any, dtype: Any) -> Any:
    """Returns the elements whose parts are along the last axis."""
    narrow, wide = _unsigned(typeof(x).dtype), _unsigned(dtype)
    parts = convert_element_type(_same_width(x, narrow), wide)
    shape = typeof(parts).shape
    by = mul(broadcasted_iota(wide, shape, len(shape) - 1), dtypes.bits(narrow))
    whole = table["reduce_or"].bind(shift_left(parts, by), axes=(len(shape) - 1,))
    return _same_width(whole, dtype)


def bitcast_convert_type(operand: Any, new_dtype: Any) -> Array:
    """Returns the same bits read as another dtype.

    Args:
      operand: int or float array (bool and complex ones only as themselves).
      new_dtype: what the bits are to be read as.

    Returns:
      An array of the shape of `operand`; with a last axis more if the new dtype is
      narrower (the lowest bits first), without its last axis if it is wider.

    Raises:
      DtypeError: one of the dtypes is bool, complex or of keys, and they differ; or the
        new one is of another byte order.
      ShapeError: the last axis does not hold as many elements as make a wider one.

    Special cases:
      The derivative is zero.

    Example:
      >>> bitcast_convert_type(np.float32(1), "uint32")
      Array(1065353216, dtype=uint32)
      >>> bitcast_convert_type(np.float32(1), "uint8")
      Array([  0,   0, 128,  63], dtype=uint8)

    Source: StableHLO `bitcast_convert`.
    """
    return BitcastConvertType.bind(operand, new_dtype=dtypes.of_bits(new_dtype))
