"""From one dtype to another, by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, put_host, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.source import warn
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError
from fxflow.lax.families import MOVED, kind


def saturated(x: Any, dtype: Any) -> Any:
    """Returns NumPy floats as integers as XLA does: nan is 0, the ends are clamped."""
    info = dtypes.iinfo(dtype)
    # Mostly all of them fit, and then there is nothing to clamp (nan compares false).
    if x.size and float(info.min) <= x.min() and x.max() < float(info.max):
        return x.astype(dtype)
    wide = np.asarray(x).astype(np.float64) if x.dtype.itemsize < 8 else np.asarray(x)
    low, high = int(info.min), int(info.max)
    whole = np.trunc(np.nan_to_num(wide, nan=0.0, posinf=2.0**65, neginf=-(2.0**65)))
    # The largest 64-bit integers are not floats: compare first, convert what is inside.
    over, under = whole >= float(high), whole <= float(low)
    native = np.uint64 if low == 0 else np.int64
    inside = np.where(over | under, 0.0, whole).astype(native)
    inside = np.where(over, native(high), np.where(under, native(low), inside))
    return inside.astype(dtype)


def _cast(x: Any, dtype: Any) -> Any:
    """`astype`, also between small dtypes that ml_dtypes does not cast directly."""
    if x.dtype.itemsize == dtype.itemsize == 1 and x.dtype != dtype:
        if dtypes.is_integer(x.dtype):
            x = x.astype(np.int16)
        elif dtypes.is_floating(x.dtype):
            x = x.astype(np.float32)
    return x.astype(dtype)


def host_converter(dtype: Any) -> Callable[[Any], Any]:
    """Returns a function that converts NumPy arrays to a dtype as XLA does."""
    if dtypes.is_complex(dtype):
        return lambda x: x.astype(dtype)
    to_integer = dtypes.is_integer(dtype)

    def convert(x: Any) -> Any:
        if kind(x.dtype) == "c":
            x = np.real(x)
        if to_integer and kind(x.dtype) == "f":
            return saturated(x, dtype)
        return _cast(x, dtype) if dtype.itemsize == 1 else x.astype(dtype)

    return convert


@register
class ConvertElementType(Primitive):
    """The same numbers in another dtype. dtypes: all. StableHLO: convert.

    Floats become integers by truncation, clamped to the range, nan as 0; complex
    numbers become real ones by dropping the imaginary part.
    """

    name = "convert_element_type"
    linear_in_inexact = True
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.partly
    sums: Callable[..., Any] = layouts.linear

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The shape of the operand, with the dtype asked for."""
        (x,) = avals
        new_dtype = params["new_dtype"]
        if kind(x.dtype) not in "biufc" or kind(new_dtype) not in "biufc":
            raise DtypeError(
                f"convert_element_type: no conversion from {x} to "
                f"{dtypes.short_name(new_dtype)}: keys are made by fxflow.random.key "
                "and read by fxflow.random.key_data"
            )
        return Aval(x.shape, new_dtype, params["weak_type"])

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`convert`, of the real part where the result is real."""
        x: str = operands[0]
        aval = ctx.avals_in[0]
        out = ctx.avals_out[0]
        if aval.dtype == out.dtype:
            return x
        if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(out.dtype):
            part = aval.update(dtype=dtypes.to_real(aval.dtype))
            x = ctx.emit(f"stablehlo.real {x} : ({aval.mlir}) -> {part.mlir}")
            aval = part
            if aval.dtype == out.dtype:
                return x
        if dtypes.is_bool(aval.dtype) and dtypes.is_inexact(out.dtype):
            # A product with a `convert` XLA makes a `select`, and False times nan 0.
            one, zero = (
                ctx.constant(np.asarray(v).astype(out.dtype), out) for v in (1, 0)
            )
            return ctx.emit(
                f"stablehlo.select {x}, {one}, {zero} : {aval.mlir}, {out.mlir}"
            )
        if dtypes.is_bool(out.dtype):
            zero = ctx.constant(np.zeros((), aval.dtype), aval)
            how = {"f": "FLOAT", "i": "SIGNED", "u": "UNSIGNED"}[kind(aval.dtype)]
            return ctx.emit(
                f"stablehlo.compare NE, {x}, {zero}, {how} : "
                f"({aval.mlir}, {aval.mlir}) -> {out.mlir}"
            )
        if aval.dtype == dtypes.float4_e2m1fn and dtypes.is_integer(out.dtype):
            # XLA takes its largest number, 6, for out of every integer's range.
            wide = aval.update(dtype=dtypes.float32)
            x = ctx.emit(f"stablehlo.convert {x} : ({aval.mlir}) -> {wide.mlir}")
            aval = wide
        return ctx.emit(f"stablehlo.convert {x} : ({aval.mlir}) -> {out.mlir}")

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """`astype`, with XLA's rules for what is out of range."""
        return host_converter(params["new_dtype"])(values[0])

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`astype`, prepared."""
        return host_converter(params["new_dtype"])

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangent converted as well; zero unless both dtypes are inexact."""
        out = self.bind(*primals, **params)
        aval = typeof(out).tangent()
        if type(tangents[0]) is Zero or aval.dtype == dtypes.float0:
            return out, Zero(aval)
        return out, arith.cast(tangents[0], aval.dtype)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent converted back."""
        return [arith.cast(cotangent, args[0].aval.dtype)]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same."""
        return self.bind(*args, **params), True


def convert(operand: Any, dtype: Any, weak_type: bool = False) -> Any:
    """Returns an array with a dtype and weakness; itself if it has them.

    Args:
      operand: array, Python number or NumPy array.
      dtype: canonical dtype.
      weak_type: of the result.
    """
    if isinstance(operand, Array):
        aval = operand.aval
        if aval.dtype == dtype and aval.weak_type == weak_type:
            return operand
    elif isinstance(operand, np.ndarray | np.generic):
        if operand.dtype == dtypes.float0 != dtype:
            raise DtypeError(
                "convert_element_type: float0, the derivative with respect to an "
                "integer, has no numbers to convert"
            )
        # Straight from the host's elements, whose 64 bits may be wanted.
        dtypes.of_host(operand, dtype)
        value = np.array(host_converter(dtype)(np.asarray(operand)))
        return put_host(value, Aval(value.shape, dtype, weak_type))
    elif type(operand) is int and dtypes.is_integer(dtype):
        dtypes.of_python(operand, dtype)
        return put_host(np.array(operand).astype(dtype), Aval((), dtype, weak_type))
    elif isinstance(operand, bool | int | float | complex):
        host = host_converter(dtype)(np.asarray(operand))
        return put_host(np.asarray(host), Aval((), dtype, weak_type))
    return ConvertElementType.bind(operand, new_dtype=dtype, weak_type=weak_type)


def convert_element_type(operand: Any, new_dtype: Any) -> Array:
    """Returns the same numbers in another dtype.

    Args:
      operand: array of any dtype except keys.
      new_dtype: what it shall be: anything `fxflow.numpy.dtype` takes.

    Returns:
      An array of the shape of `operand`.

    Raises:
      DtypeError: there is no such dtype, or one of the two is of keys.

    Special cases:
      Floats become integers by truncation; what is out of range becomes the nearest
      end of it, nan becomes 0. Integers wrap. Everything but 0 becomes True. Complex
      numbers lose their imaginary part, with a warning.

    Example:
      >>> convert_element_type(np.array([1.9, -1.9, 1e20], "f4"), "int32")
      Array([         1,         -1, 2147483647], dtype=int32)

    Source: StableHLO `convert`.
    """
    dtype = dtypes.dtype(new_dtype)
    dropped = dtypes.is_integer(dtype) or dtypes.is_floating(dtype)
    if dropped and dtypes.is_complex(getattr(operand, "dtype", None)):
        warn(
            f"converting {typeof(operand)} to {dtypes.short_name(dtype)} drops the "
            "imaginary part: take lax.real(x) first to say so",
            np.exceptions.ComplexWarning,
        )
    result: Array = convert(operand, dtype)
    return result
