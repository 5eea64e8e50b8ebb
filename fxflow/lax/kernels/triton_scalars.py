"""Elementwise operations in Triton's IR.

Functions are those of libdevice, NVIDIA's library of device functions, which XLA uses,
too. Divisions and roots of float32 are correctly rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.triton_writer import (
    BOOL,
    F32,
    Tile,
    Writer,
    is_half,
)

Rule = Callable[[Writer, Sequence[Tile], Aval, dict[str, Any]], str]
#: Operations that copy numbers, so that those of 16 bits need no conversion.
_COPIES = frozenset(("convert_element_type", "select_n", "stop_gradient", "copy"))


def elementwise(
    w: Writer, name: str, operands: Sequence[Tile], out: Aval, params: dict[str, Any]
) -> Tile:
    """Writes an elementwise operation.

    Args:
      w: where to.
      name: of the primitive.
      operands: numbers, or arrays of the result's shape.
      out: type of the result.
      params: of the primitive.

    Raises:
      UnsupportedError: there is no rule for the operation on these types.
    """
    rule = RULES.get(name)
    if rule is None:
        raise UnsupportedError(name)
    shape = tuple(out.shape)
    given = [Tile(w.spread(x, shape), shape, x.dtype) for x in operands]
    dtypes_of = [out.dtype, *(x.dtype for x in given)]
    if name in _COPIES or not any(map(is_half, dtypes_of)):
        return Tile(rule(w, given, out, params), shape, out.dtype)
    # 16-bit floats are computed in 32 bits.
    given = [converted(w, x, F32) if is_half(x.dtype) else x for x in given]
    wide = out.update(dtype=F32) if is_half(out.dtype) else out
    return converted(
        w, Tile(rule(w, given, wide, params), shape, wide.dtype), out.dtype
    )


def is_known(name: str) -> bool:
    """Returns whether there is a rule for a primitive."""
    return name in RULES


def _op(w: Writer, op: str, *xs: Tile) -> str:
    return w.op(f"{op} {', '.join(x.value for x in xs)} : {w.of(xs[0])}")


def _like(x: Tile, value: str) -> Tile:
    return Tile(value, x.shape, x.dtype)


def _full(w: Writer, x: Tile, value: Any) -> Tile:
    return w.constant(value, x.shape, x.dtype)


def _compared(w: Writer, how: str, x: Tile, y: Tile) -> str:
    op = "cmpf" if dtypes.is_floating(x.dtype) else "cmpi"
    return w.op(f"arith.{op} {how}, {x.value}, {y.value} : {w.of(x)}")


def _arithmetic(floats: str, integers: str, bools: str = "") -> Rule:
    def rule(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
        dtype = xs[0].dtype
        if dtypes.is_floating(dtype):
            op = floats
        else:
            op = bools if dtypes.is_bool(dtype) else integers
        if not op:
            raise UnsupportedError(f"such an operation on {dtype.name}")
        return _op(w, f"arith.{op}", *xs)

    return rule


def _library(w: Writer, name: str, *xs: Tile) -> str:
    """A function of libdevice."""
    x = xs[0]
    if x.dtype.name not in ("float32", "float64"):
        raise UnsupportedError(f"{name} of {x.dtype.name}")
    symbol = f"__nv_{name}{'f' if x.dtype == F32 else ''}"
    kind = w.of(x)
    return w.op(
        f"tt.extern_elementwise {', '.join(x.value for x in xs)} "
        f'{{libname = "libdevice", libpath = "", pure = true, symbol = "{symbol}"}} : '
        f"({', '.join([kind] * len(xs))}) -> {kind}"
    )


def _function(name: str) -> Rule:
    return lambda w, xs, out, params: _library(w, name, *xs)


def _rounding(name: str) -> Rule:
    return lambda w, xs, out, params: _op(w, f"math.{name}", *xs)


def _compare(ordered: str, order: str) -> Rule:
    def rule(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
        dtype = xs[0].dtype
        if dtypes.is_floating(dtype):
            return _compared(w, ordered, *xs)
        if order in ("eq", "ne"):
            return _compared(w, order, *xs)
        sign = "s" if dtypes.is_signed(dtype) and not dtypes.is_bool(dtype) else "u"
        return _compared(w, sign + order, *xs)

    return rule


def extremum(w: Writer, largest: bool, x: Tile, y: Tile) -> str:
    """Returns the larger or the smaller of two values; NaN if one is NaN."""
    dtype = x.dtype
    kind = "max" if largest else "min"
    if dtypes.is_bool(dtype):
        return _op(w, "arith.ori" if largest else "arith.andi", x, y)
    if not dtypes.is_floating(dtype):
        return _op(w, f"arith.{kind}{'s' if dtypes.is_signed(dtype) else 'u'}i", x, y)
    if dtype.itemsize < 8:
        return _op(w, f"arith.{kind}imumf", x, y)
    # NVIDIA's instruction for float64 does not keep a NaN.
    better = _compared(w, "ogt" if largest else "olt", x, y)
    nan = _compared(w, "uno", x, x)
    first = w.op(f"arith.ori {better}, {nan} : {w.type(x.shape, BOOL)}")
    return w.select(first, x.value, y.value, w.of(x))


def _extremum(largest: bool) -> Rule:
    return lambda w, xs, out, params: extremum(w, largest, xs[0], xs[1])


def _neg(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    if dtypes.is_floating(x.dtype):
        return _op(w, "arith.negf", x)
    return _op(w, "arith.subi", _full(w, x, 0), x)


def _abs(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    if dtypes.is_floating(x.dtype):
        return _op(w, "math.absf", x)
    if not dtypes.is_signed(x.dtype):
        return x.value
    minus = _like(x, _neg(w, [x], out, {}))
    return _op(w, "arith.maxsi", x, minus)


def _sign(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    zero, kind = _full(w, x, 0), w.of(x)
    floating = dtypes.is_floating(x.dtype)
    signed = floating or dtypes.is_signed(x.dtype)
    above = _compared(w, "ogt" if floating else "sgt" if signed else "ugt", x, zero)
    # Zeros and NaN are their own signs.
    value = w.select(above, _full(w, x, 1).value, x.value, kind)
    if not signed:
        return value
    below = _compared(w, "olt" if floating else "slt", x, zero)
    return w.select(below, _full(w, x, -1).value, value, kind)


def _integer_pow(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,), exponent = xs, int(params["y"])
    floating = dtypes.is_floating(x.dtype)
    op = "arith.mulf" if floating else "arith.muli"
    if exponent < 0 and not floating:
        raise UnsupportedError("a negative power of integers")
    result, base, left = None, x, abs(exponent)
    while left:
        if left & 1:
            result = base if result is None else _like(x, _op(w, op, result, base))
        left >>= 1
        if left:
            base = _like(x, _op(w, op, base, base))
    if result is None:
        return _full(w, x, 1).value
    return result.value if exponent >= 0 else _quotient(w, _full(w, x, 1), result)


def _quotient(w: Writer, x: Tile, y: Tile) -> str:
    return _op(w, "tt.precise_divf" if x.dtype == F32 else "arith.divf", x, y)


def _root(w: Writer, x: Tile) -> str:
    return _op(w, "tt.precise_sqrt" if x.dtype == F32 else "math.sqrt", x)


def _rsqrt(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    return _quotient(w, _full(w, x, 1), _like(x, _root(w, x)))


def _logistic(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    one = _full(w, x, 1)
    e = _like(x, _library(w, "exp", _like(x, _op(w, "arith.negf", x))))
    return _quotient(w, one, _like(x, _op(w, "arith.addf", one, e)))


def _slope(steepness: int) -> Rule:
    """The slope of a sigmoid: e / (1 + e)² with e = exp(-steepness |x|), scaled."""

    def rule(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
        (x,) = xs
        size = _like(x, _op(w, "math.absf", x))
        down = _like(x, _op(w, "arith.mulf", size, _full(w, x, -steepness)))
        e = _like(x, _library(w, "exp", down))
        total = _like(x, _op(w, "arith.addf", _full(w, x, 1), e))
        square = _like(x, _op(w, "arith.mulf", total, total))
        part = _like(x, _quotient(w, e, square))
        return _op(w, "arith.mulf", part, _full(w, x, steepness**2))

    return rule


def _round(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    even = int(params["rounding_method"]) == 1
    return _library(w, "rint" if even else "round", xs[0])


def _not(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    ones = _full(w, x, True if dtypes.is_bool(x.dtype) else -1)
    return _op(w, "arith.xori", x, ones)


def _is_finite(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    size = _like(x, _op(w, "math.absf", x))
    return _compared(w, "olt", size, _full(w, x, np.inf))


def _shift(op: str) -> Rule:
    def rule(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
        x, count = xs
        bits = 8 * x.dtype.itemsize
        most = _full(w, x, bits - 1)
        inside = _compared(w, "ule", count, most)
        # Shifting by all bits or more is undefined in LLVM.
        safe = _like(x, w.select(inside, count.value, most.value, w.of(x)))
        shifted = _op(w, f"arith.{op}", x, safe)
        if op == "shrsi":
            return shifted
        return w.select(inside, shifted, _full(w, x, 0).value, w.of(x))

    return rule


def _divide(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    if not dtypes.is_floating(out.dtype):
        return _integer_division(w, xs, "div")
    return _quotient(w, *xs)


def _remainder(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    if not dtypes.is_floating(out.dtype):
        return _integer_division(w, xs, "rem")
    return _library(w, "fmod", *xs)


def _integer_division(w: Writer, xs: Sequence[Tile], op: str) -> str:
    """Division as XLA defines it where LLVM leaves it open."""
    x, y = xs
    kind = w.of(x)
    one, zero = _full(w, x, 1), _full(w, x, 0)
    no = _compared(w, "eq", y, zero)
    signed = dtypes.is_signed(x.dtype)
    unsafe = no
    if signed:
        low = _compared(w, "eq", x, _full(w, x, np.iinfo(x.dtype).min))
        minus = _compared(w, "eq", y, _full(w, x, -1))
        masks = w.type(x.shape, BOOL)
        over = w.op(f"arith.andi {low}, {minus} : {masks}")
        unsafe = w.op(f"arith.ori {no}, {over} : {masks}")
    safe = _like(x, w.select(unsafe, one.value, y.value, kind))
    result = _op(w, f"arith.{op}{'s' if signed else 'u'}i", x, safe)
    if op == "rem" and signed:
        # The least number is a multiple of -1, and of 1.
        return w.select(no, x.value, result, kind)
    other = x if op == "rem" else _full(w, x, -1)
    return w.select(no, other.value, result, kind)


def converted(w: Writer, x: Tile, dtype: Any) -> Tile:
    """Returns a value converted to another dtype, as XLA does it."""
    target = np.dtype(dtype)
    if x.dtype == target:
        return x
    ramp = x.ramp if dtypes.is_integer(target) and target.itemsize >= 4 else None
    return Tile(_converted(w, x, target), x.shape, target, ramp)


def _converted(w: Writer, x: Tile, target: Any) -> str:
    source, old, new = x.dtype, w.of(x), w.type(x.shape, target)
    if dtypes.is_bool(target):
        zero = _full(w, x, 0)
        return _compared(w, "une" if dtypes.is_floating(source) else "ne", x, zero)
    if dtypes.is_floating(source) and dtypes.is_floating(target):
        if is_half(source) and (is_half(target) or target.itemsize == 8):
            return _converted(w, converted(w, x, F32), target)
        if source.itemsize == 8 and is_half(target):
            return _converted(w, converted(w, x, F32), target)
        op = "extf" if target.itemsize > source.itemsize else "truncf"
        return w.op(f"arith.{op} {x.value} : {old} to {new}")
    signed = dtypes.is_signed(source) and not dtypes.is_bool(source)
    if dtypes.is_floating(target):
        if is_half(target):
            return _converted(w, converted(w, x, F32), target)
        return w.op(f"arith.{'s' if signed else 'u'}itofp {x.value} : {old} to {new}")
    if dtypes.is_floating(source):
        if is_half(source):
            return _converted(w, converted(w, x, F32), target)
        return _to_integer(w, x, target)
    bits = 1 if dtypes.is_bool(source) else 8 * source.itemsize
    if 8 * target.itemsize == bits:
        return x.value
    op = "trunci" if 8 * target.itemsize < bits else "extsi" if signed else "extui"
    return w.op(f"arith.{op} {x.value} : {old} to {new}")


def _to_integer(w: Writer, x: Tile, target: Any) -> str:
    """Numbers out of range become the nearest one, NaN zero."""
    new, info = w.type(x.shape, target), np.iinfo(target)
    op = "fptosi" if dtypes.is_signed(target) else "fptoui"
    value = w.op(f"arith.{op} {x.value} : {w.of(x)} to {new}")
    for how, bound, limit in (
        ("oge", float(info.max) + 1, info.max),
        ("olt", float(info.min), info.min),
    ):
        if info.bits <= 16 and how == "oge":
            bound = float(info.max)
        outside = _compared(w, how, x, _full(w, x, bound))
        value = w.select(outside, w.full(limit, x.shape, target), value, new)
    nan = _compared(w, "uno", x, x)
    return w.select(nan, w.full(0, x.shape, target), value, new)


def _convert(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    return converted(w, xs[0], out.dtype).value


def _bitcast(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    (x,) = xs
    if dtypes.is_bool(x.dtype) or x.dtype.itemsize != out.dtype.itemsize:
        raise UnsupportedError("a bitcast to another number of bits")
    new = w.type(x.shape, out.dtype)
    return x.value if new == w.of(x) else w.op(
        f"tt.bitcast {x.value} : {w.of(x)} -> {new}"
    )  # fmt: skip


def _select(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    which, first, *rest = xs
    if dtypes.is_bool(which.dtype):
        (other,) = rest
        return w.select(which.value, other.value, first.value, w.of(first))
    value = first.value
    for i, case in enumerate(rest):
        later = _compared(w, "sgt", which, _full(w, which, i))
        value = w.select(later, case.value, value, w.of(first))
    return value


def _clamp(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    low, x, high = xs
    return extremum(w, False, _like(x, extremum(w, True, low, x)), high)


def _square(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    return RULES["mul"](w, [xs[0], xs[0]], out, params)


def _same(w: Writer, xs: Sequence[Tile], out: Aval, params: Any) -> str:
    return xs[0].value


RULES: dict[str, Rule] = {
    "abs": _abs,
    "add": _arithmetic("addf", "addi", "ori"),
    "and": _arithmetic("", "andi", "andi"),
    "acos": _function("acos"),
    "acosh": _function("acosh"),
    "asin": _function("asin"),
    "asinh": _function("asinh"),
    "atan": _function("atan"),
    "atan2": _function("atan2"),
    "atanh": _function("atanh"),
    "bitcast_convert_type": _bitcast,
    "cbrt": _function("cbrt"),
    "ceil": _rounding("ceil"),
    "clamp": _clamp,
    "convert_element_type": _convert,
    "copy": _same,
    "cos": _function("cos"),
    "cosh": _function("cosh"),
    "div": _divide,
    "eq": _compare("oeq", "eq"),
    "erf": _function("erf"),
    "erf_inv": _function("erfinv"),
    "erfc": _function("erfc"),
    "exp": _function("exp"),
    "exp2": _function("exp2"),
    "expm1": _function("expm1"),
    "floor": _rounding("floor"),
    "ge": _compare("oge", "ge"),
    "gt": _compare("ogt", "gt"),
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": _compare("ole", "le"),
    "lgamma": _function("lgamma"),
    "log": _function("log"),
    "log1p": _function("log1p"),
    "logistic": _logistic,
    "logistic_slope": _slope(1),
    "lt": _compare("olt", "lt"),
    "max": _extremum(True),
    "min": _extremum(False),
    "mul": _arithmetic("mulf", "muli", "andi"),
    "ne": _compare("une", "ne"),
    "neg": _neg,
    "not": _not,
    "or": _arithmetic("", "ori", "ori"),
    "pow": _function("pow"),
    "rem": _remainder,
    "round": _round,
    "rsqrt": _rsqrt,
    "select_n": _select,
    "shift_left": _shift("shli"),
    "shift_right_arithmetic": _shift("shrsi"),
    "shift_right_logical": _shift("shrui"),
    "sign": _sign,
    "sin": _function("sin"),
    "sinh": _function("sinh"),
    "sqrt": lambda w, xs, out, params: _root(w, xs[0]),
    "square": _square,
    "stop_gradient": _same,
    "sub": _arithmetic("subf", "subi"),
    "tan": _function("tan"),
    "tanh": _function("tanh"),
    "tanh_slope": _slope(2),
    "xor": _arithmetic("", "xori", "xori"),
}
