"""Elementwise operations on single numbers, as LLVM's IR.

LLVM vectorizes the loops around them. Operations without a rule are not compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.lax.kernels.errors import UnsupportedError
from fxflow.lax.kernels.llvm_writer import (
    Writer,
    is_half,
    literal,
    register_type,
    rounded,
)

Rule = Callable[[Writer, Sequence[str], Sequence[Aval], Aval, dict[str, Any]], str]


def scalar(
    w: Writer,
    name: str,
    operands: Sequence[str],
    avals: Sequence[Aval],
    out: Aval,
    params: dict[str, Any],
) -> str:
    """Writes an elementwise operation on numbers in registers.

    Args:
      w: where to.
      name: of the primitive.
      operands: registers or constants.
      avals: types of the operands.
      out: type of the result.
      params: of the primitive.

    Returns:
      The result.

    Raises:
      UnsupportedError: there is no rule for the operation on these types.
    """
    rule = RULES.get(name)
    if rule is None:
        raise UnsupportedError(name)
    return rounded(w, rule(w, operands, avals, out, params), out.dtype)


def is_known(name: str) -> bool:
    """Returns whether there is a rule for a primitive."""
    return name in RULES


def _arithmetic(floats: str, signed: str, unsigned: str = "", bools: str = "") -> Rule:
    def rule(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
        dtype = avals[0].dtype
        op = (
            floats
            if dtypes.is_floating(dtype)
            else bools
            if dtypes.is_bool(dtype)
            else unsigned or signed
            if dtypes.is_unsigned(dtype)
            else signed
        )
        if not op:
            raise UnsupportedError(f"{op} of {dtype}")
        return w.op(f"{op} {register_type(dtype)} {xs[0]}, {xs[1]}")

    return rule


def _call(w: Writer, function: str, kind: str, *values: str) -> str:
    given = ", ".join(f"{kind} {v}" for v in values)
    return w.op(f"call {kind} {function}({given})")


def _suffix(kind: str) -> str:
    return {"float": "f32", "double": "f64"}.get(kind, kind)


def _intrinsic(name: str) -> Rule:
    """A function that LLVM has for floats."""

    def rule(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
        if not dtypes.is_floating(avals[0].dtype):
            raise UnsupportedError(f"{name} of {avals[0]}")
        kind = register_type(avals[0].dtype)
        return _call(w, w.helper(f"llvm.{name}.{_suffix(kind)}"), kind, *xs)

    return rule


def _function(name: str) -> Rule:
    """A function of float32 in `FUNCTIONS`; of float64 in the C library."""

    def rule(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
        kind = register_type(avals[0].dtype)
        if kind == "float":
            return _call(w, w.helper(f"fx_{name}"), kind, *xs)
        if kind != "double":
            raise UnsupportedError(f"{name} of {avals[0]}")
        return _call(w, w.helper(name), kind, *xs)

    return rule


def _compare(ordered: str, signed: str, unsigned: str) -> Rule:
    def rule(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
        dtype = avals[0].dtype
        kind = register_type(dtype)
        if dtypes.is_floating(dtype):
            return w.op(f"fcmp {ordered} {kind} {xs[0]}, {xs[1]}")
        is_signed = dtypes.is_signed(dtype) and not dtypes.is_bool(dtype)
        return w.op(f"icmp {signed if is_signed else unsigned} {kind} {xs[0]}, {xs[1]}")

    return rule


def extremum(w: Writer, largest: bool, x: str, y: str, dtype: Any) -> str:
    """Returns the larger or the smaller of two numbers; NaN if one is NaN."""
    kind = register_type(dtype)
    if dtypes.is_floating(dtype):
        name = "maximum" if largest else "minimum"
        return _call(w, w.helper(f"llvm.{name}.{_suffix(kind)}"), kind, x, y)
    if dtypes.is_bool(dtype):
        return w.op(f"{'or' if largest else 'and'} i1 {x}, {y}")
    sign = "u" if dtypes.is_unsigned(dtype) else "s"
    name = f"llvm.{sign}{'max' if largest else 'min'}.{kind}"
    return _call(w, w.helper(name), kind, x, y)


def _extremum(largest: bool) -> Rule:
    return lambda w, xs, avals, out, params: extremum(
        w, largest, xs[0], xs[1], avals[0].dtype
    )


def _neg(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    if dtypes.is_floating(out.dtype):
        return w.op(f"fneg {kind} {xs[0]}")
    return w.op(f"sub {kind} 0, {xs[0]}")


def _abs(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    if dtypes.is_floating(out.dtype):
        return _call(w, w.helper(f"llvm.fabs.{_suffix(kind)}"), kind, xs[0])
    negative = w.op(f"icmp slt {kind} {xs[0]}, 0")
    other = w.op(f"sub {kind} 0, {xs[0]}")
    return w.op(f"select i1 {negative}, {kind} {other}, {kind} {xs[0]}")


def _sign(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    if not dtypes.is_floating(out.dtype):
        other = w.op(f"icmp ne {kind} {xs[0]}, 0")
        one = w.op(f"zext i1 {other} to {kind}")
        if dtypes.is_unsigned(out.dtype):
            return one
        negative = w.op(f"icmp slt {kind} {xs[0]}, 0")
        return w.op(f"select i1 {negative}, {kind} -1, {kind} {one}")
    one, zero = literal(1, out.dtype), literal(0, out.dtype)
    name = w.helper(f"llvm.copysign.{_suffix(kind)}")
    signed = _call(w, name, kind, one, xs[0])
    # Zeros and NaN are their own signs.
    other = w.op(f"fcmp une {kind} {xs[0]}, {zero}")
    number = w.op(f"fcmp ord {kind} {xs[0]}, {zero}")
    both = w.op(f"and i1 {other}, {number}")
    return w.op(f"select i1 {both}, {kind} {signed}, {kind} {xs[0]}")


def _square(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    op = "fmul" if dtypes.is_floating(out.dtype) else "mul"
    return w.op(f"{op} {kind} {xs[0]}, {xs[0]}")


def _integer_pow(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind, exponent = register_type(out.dtype), int(params["y"])
    floating = dtypes.is_floating(out.dtype)
    op = "fmul" if floating else "mul"
    result, base, left = literal(1, out.dtype), xs[0], abs(exponent)
    while left:
        if left & 1:
            result = w.op(f"{op} {kind} {result}, {base}")
        left >>= 1
        if left:
            base = w.op(f"{op} {kind} {base}, {base}")
    if exponent >= 0:
        return result
    if not floating:
        raise UnsupportedError("a negative power of integers")
    return w.op(f"fdiv {kind} {literal(1, out.dtype)}, {result}")


def _rsqrt(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    root = _call(w, w.helper(f"llvm.sqrt.{_suffix(kind)}"), kind, xs[0])
    return w.op(f"fdiv {kind} {literal(1, out.dtype)}, {root}")


def _logistic(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind, one = register_type(out.dtype), literal(1, out.dtype)
    minus = w.op(f"fneg {kind} {xs[0]}")
    e = RULES["exp"](w, [minus], avals, out, {})
    total = w.op(f"fadd {kind} {one}, {e}")
    return w.op(f"fdiv {kind} {one}, {total}")


def _slope(steepness: int) -> Rule:
    """The slope of a sigmoid: e / (1 + e)² with e = exp(-steepness |x|), scaled."""

    def rule(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
        kind, dtype = register_type(out.dtype), out.dtype
        size = _abs(w, xs, avals, out, {})
        down = w.op(f"fmul {kind} {size}, {literal(-steepness, dtype)}")
        e = RULES["exp"](w, [down], avals, out, {})
        total = w.op(f"fadd {kind} {literal(1, dtype)}, {e}")
        square = w.op(f"fmul {kind} {total}, {total}")
        part = w.op(f"fdiv {kind} {e}, {square}")
        return w.op(f"fmul {kind} {part}, {literal(steepness**2, dtype)}")

    return rule


def _round(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    even = int(params["rounding_method"]) == 1
    name = w.helper(f"llvm.{'roundeven' if even else 'round'}.{_suffix(kind)}")
    return _call(w, name, kind, xs[0])


def _not(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    ones = "true" if dtypes.is_bool(out.dtype) else "-1"
    return w.op(f"xor {register_type(out.dtype)} {xs[0]}, {ones}")


def _is_finite(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(avals[0].dtype)
    size = _call(w, w.helper(f"llvm.fabs.{_suffix(kind)}"), kind, xs[0])
    return w.op(f"fcmp olt {kind} {size}, {literal(np.inf, avals[0].dtype)}")


def _shift(op: str) -> Rule:
    def rule(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
        kind, bits = register_type(out.dtype), 8 * out.dtype.itemsize
        shifted = w.op(f"{op} {kind} {xs[0]}, {xs[1]}")
        inside = w.op(f"icmp ult {kind} {xs[1]}, {bits}")
        other = "0"
        if op == "ashr":
            other = w.op(f"ashr {kind} {xs[0]}, {bits - 1}")
        # Shifting by all bits or more is undefined in LLVM.
        return w.op(f"select i1 {inside}, {kind} {shifted}, {kind} {other}")

    return rule


def _divide(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    if not dtypes.is_floating(out.dtype):
        return _integer_division(w, xs, out, "div", "-1")
    return w.op(f"fdiv {register_type(out.dtype)} {xs[0]}, {xs[1]}")


def _remainder(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    if not dtypes.is_floating(out.dtype):
        return _integer_division(w, xs, out, "rem", xs[0])
    return w.op(f"frem {register_type(out.dtype)} {xs[0]}, {xs[1]}")


def _integer_division(w: Writer, xs: Any, out: Aval, op: str, by_zero: str) -> str:
    """Division that traps nowhere; XLA defines what LLVM leaves open."""
    kind = register_type(out.dtype)
    zero = w.op(f"icmp eq {kind} {xs[1]}, 0")
    if dtypes.is_unsigned(out.dtype):
        safe = w.op(f"select i1 {zero}, {kind} 1, {kind} {xs[1]}")
        result = w.op(f"u{op} {kind} {xs[0]}, {safe}")
        return w.op(f"select i1 {zero}, {kind} {by_zero}, {kind} {result}")
    least = -(1 << (8 * out.dtype.itemsize - 1))
    low = w.op(f"icmp eq {kind} {xs[0]}, {least}")
    minus = w.op(f"icmp eq {kind} {xs[1]}, -1")
    over = w.op(f"and i1 {low}, {minus}")
    unsafe = w.op(f"or i1 {zero}, {over}")
    safe = w.op(f"select i1 {unsafe}, {kind} 1, {kind} {xs[1]}")
    result = w.op(f"s{op} {kind} {xs[0]}, {safe}")
    return w.op(f"select i1 {zero}, {kind} {by_zero}, {kind} {result}")


def convert(w: Writer, x: str, source: Any, target: Any) -> str:
    """Returns a number converted to another dtype, as XLA does it."""
    a, b = register_type(source), register_type(target)
    if dtypes.is_bool(target):
        if dtypes.is_floating(source):
            return w.op(f"fcmp une {a} {x}, {literal(0, source)}")
        return x if a == "i1" else w.op(f"icmp ne {a} {x}, 0")
    if dtypes.is_floating(source) and dtypes.is_floating(target):
        if a == b:
            return rounded(w, x, target)
        op = "fpext" if b == "double" else "fptrunc"
        return rounded(w, w.op(f"{op} {a} {x} to {b}"), target)
    signed = dtypes.is_signed(source) and not dtypes.is_bool(source)
    if dtypes.is_floating(target):
        number = w.op(f"{'s' if signed else 'u'}itofp {a} {x} to {b}")
        return rounded(w, number, target)
    if dtypes.is_floating(source):
        sign = "s" if dtypes.is_signed(target) else "u"
        name = w.helper(f"llvm.fpto{sign}i.sat.{b}.{_suffix(a)}")
        return w.op(f"call {b} {name}({a} {x})")
    old, new = _bits(source), _bits(target)
    if old == new:
        return x
    op = "trunc" if new < old else "sext" if signed else "zext"
    return w.op(f"{op} {a} {x} to {b}")


def _bits(dtype: Any) -> int:
    return 1 if dtypes.is_bool(dtype) else 8 * int(np.dtype(dtype).itemsize)


def _convert(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    return convert(w, xs[0], avals[0].dtype, out.dtype)


def _bitcast(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    old, new = avals[0].dtype, out.dtype
    if not (dtypes.is_inexact(old) or dtypes.is_inexact(new)):
        raise UnsupportedError("a bitcast of integers to integers")
    if old.itemsize != new.itemsize or is_half(old) or is_half(new):
        raise UnsupportedError(f"a bitcast of {avals[0]} to {out}")
    return w.op(f"bitcast {register_type(old)} {xs[0]} to {register_type(new)}")


def _select(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    kind = register_type(out.dtype)
    if len(xs) != 3 or not dtypes.is_bool(avals[0].dtype):
        raise UnsupportedError("select_n of more than two cases")
    return w.op(f"select i1 {xs[0]}, {kind} {xs[2]}, {kind} {xs[1]}")


def _clamp(w: Writer, xs: Any, avals: Any, out: Aval, params: Any) -> str:
    low, x, high = xs
    return extremum(w, False, extremum(w, True, low, x, out.dtype), high, out.dtype)


RULES: dict[str, Rule] = {
    "abs": _abs,
    "add": _arithmetic("fadd contract", "add", bools="or"),
    "and": _arithmetic("", "and", bools="and"),
    "acos": _function("acos"),
    "acosh": _function("acosh"),
    "asin": _function("asin"),
    "asinh": _function("asinh"),
    "atan": _function("atan"),
    "atan2": _function("atan2"),
    "atanh": _function("atanh"),
    "bitcast_convert_type": _bitcast,
    "cbrt": _function("cbrt"),
    "ceil": _intrinsic("ceil"),
    "clamp": _clamp,
    "convert_element_type": _convert,
    "cos": _function("cos"),
    "cosh": _function("cosh"),
    "div": _divide,
    "eq": _compare("oeq", "eq", "eq"),
    "erf": _function("erf"),
    "exp": _function("exp"),
    "exp2": _function("exp2"),
    "expm1": _function("expm1"),
    "floor": _intrinsic("floor"),
    "ge": _compare("oge", "sge", "uge"),
    "gt": _compare("ogt", "sgt", "ugt"),
    "integer_pow": _integer_pow,
    "is_finite": _is_finite,
    "le": _compare("ole", "sle", "ule"),
    "log": _function("log"),
    "log1p": _function("log1p"),
    "logistic": _logistic,
    "logistic_slope": _slope(1),
    "lt": _compare("olt", "slt", "ult"),
    "max": _extremum(True),
    "min": _extremum(False),
    "mul": _arithmetic("fmul contract", "mul", bools="and"),
    "ne": _compare("une", "ne", "ne"),
    "neg": _neg,
    "not": _not,
    "or": _arithmetic("", "or", bools="or"),
    "pow": _function("pow"),
    "rem": _remainder,
    "round": _round,
    "rsqrt": _rsqrt,
    "select_n": _select,
    "shift_left": _shift("shl"),
    "shift_right_arithmetic": _shift("ashr"),
    "shift_right_logical": _shift("lshr"),
    "sign": _sign,
    "sin": _function("sin"),
    "sinh": _function("sinh"),
    "sqrt": _intrinsic("sqrt"),
    "square": _square,
    "stop_gradient": lambda w, xs, avals, out, params: xs[0],
    "sub": _arithmetic("fsub contract", "sub"),
    "tan": _function("tan"),
    "tanh": _function("tanh"),
    "tanh_slope": _slope(2),
    "xor": _arithmetic("", "xor", bools="xor"),
}

#: Primitives whose loops LLVM vectorizes: they call no function of the C library.
VECTORIZED = frozenset(RULES) - {"rem"}

#: Primitives whose cost is that of an addition.
CHEAP = frozenset(
    {
        *(
            "abs",
            "add",
            "and",
            "bitcast_convert_type",
            "convert_element_type",
            "eq",
            "ge",
            "gt",
            "le",
            "lt",
        ),
        *("max", "min", "mul", "ne", "neg", "not", "or", "select_n", "shift_left"),
        *("shift_right_arithmetic", "shift_right_logical", "stop_gradient", "square"),
        *("sub", "xor"),
    }
)
