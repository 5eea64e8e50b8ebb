"""Elementwise operations in ONNX.

Most are a single node. Operations that ONNX lacks are compositions of nodes, or of
other fxflow operations.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Aval, dtypes
from fxflow.export.onnx_rules.writer import RULES, Value, Writer, rule
from fxflow.lax.rounding import RoundingMethod

#: Operation → node with the same operands and dtype.
_SAME = {
    "neg": "Neg",
    "abs": "Abs",
    "sign": "Sign",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "tanh": "Tanh",
    "erf": "Erf",
    "floor": "Floor",
    "ceil": "Ceil",
    "logistic": "Sigmoid",
    "pow": "Pow",
}
_COMPARED = {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}
#: Operation → node for bools, node for other dtypes ("": none).
_BY_KIND = {
    "add": ("Or", "Add"),
    "mul": ("And", "Mul"),
    "sub": ("", "Sub"),
    "max": ("Or", "Max"),
    "min": ("And", "Min"),
    "and": ("And", "BitwiseAnd"),
    "or": ("Or", "BitwiseOr"),
    "xor": ("Xor", "BitwiseXor"),
    "not": ("Not", "BitwiseNot"),
}
_BOOL = np.dtype(bool)


def _same(kind: str) -> Any:
    return lambda w, *xs, **_: w.op(kind, *xs)


def _compared(kind: str) -> Any:
    return lambda w, *xs: w.op(kind, *xs, dtype=_BOOL)


def _by_kind(of_bools: str, of_others: str) -> Any:
    def write(w: Writer, *xs: Value, **_: Any) -> Value:
        return w.op(of_bools if xs[0].dtype == _BOOL else of_others, *xs)

    return write


RULES.update({name: _same(kind) for name, kind in _SAME.items()})
RULES.update({name: _compared(kind) for name, kind in _COMPARED.items()})
RULES.update({name: _by_kind(*kinds) for name, kinds in _BY_KIND.items()})


@rule("ne")
def _ne(w: Writer, x: Value, y: Value) -> Value:
    return w.op("Not", w.op("Equal", x, y, dtype=_BOOL))


@rule("copy", "stop_gradient", "name", "device_put", "pcast")
def _identity(w: Writer, x: Value, **_: Any) -> Value:
    return x


@rule("optimization_barrier")
def _barrier(w: Writer, *xs: Value) -> list[Value]:
    return list(xs)


# -- arithmetic ------------------------------------------------------------------------


def number(w: Writer, value: Any, like: Value) -> Value:
    """Returns a 0-d constant of a value's dtype."""
    return w.constant(np.asarray(value, like.dtype))


@rule("div")
def _div(w: Writer, x: Value, y: Value) -> Value:
    if dtypes.is_floating(x.dtype):
        return w.op("Div", x, y)
    # Division by 0, and of the minimum by -1, crashes ONNX Runtime. XLA returns -1 and
    # the minimum.
    zero, safe = _divisor(w, y)
    quotient = w.op("Div", x, safe)
    if dtypes.is_signed(x.dtype):
        minus = w.op("Equal", y, number(w, -1, y), dtype=_BOOL)
        quotient = w.op("Where", minus, w.op("Neg", x), quotient)
    ones = np.asarray(-1).astype(x.dtype)
    return w.op("Where", zero, w.constant(ones), quotient)


@rule("rem")
def _rem(w: Writer, x: Value, y: Value) -> Value:
    if dtypes.is_floating(x.dtype):
        return w.op("Mod", x, y, fmod=1)
    zero, safe = _divisor(w, y)
    # The remainder by -1 is 0, as it is by the safe divisor 1.
    return w.op("Where", zero, x, w.op("Mod", x, safe, fmod=1))


def _divisor(w: Writer, y: Value) -> tuple[Value, Value]:
    """Returns where a divisor is 0, and the divisor with 1 in place of 0 and -1."""
    zero = w.op("Equal", y, number(w, 0, y), dtype=_BOOL)
    bad = zero
    if dtypes.is_signed(y.dtype):
        minus = w.op("Equal", y, number(w, -1, y), dtype=_BOOL)
        bad = w.op("Or", zero, minus)
    return zero, w.op("Where", bad, number(w, 1, y), y)


@rule("square")
def _square(w: Writer, x: Value) -> Value:
    return w.op("Mul", x, x)


@rule("integer_pow")
def _integer_pow(w: Writer, x: Value, *, y: int) -> Value:
    if y == 0:
        return w.constant(np.ones((), x.dtype), w.avals_out[0])
    power, square, left = None, x, abs(y)
    while left:
        if left & 1:
            power = square if power is None else w.op("Mul", power, square)
        left >>= 1
        square = w.op("Mul", square, square) if left else square
    assert power is not None
    return power if y > 0 else w.op("Reciprocal", power)


@rule("rsqrt")
def _rsqrt(w: Writer, x: Value, **_: Any) -> Value:
    return w.op("Reciprocal", w.op("Sqrt", x))


@rule("exp2")
def _exp2(w: Writer, x: Value, **_: Any) -> Value:
    return w.op("Pow", number(w, 2, x), x)


@rule("erfc")
def _erfc(w: Writer, x: Value) -> Value:
    # The tail loses precision to cancellation: an absolute error of 6e-8 in f32.
    return w.op("Sub", number(w, 1, x), w.op("Erf", x))


# -- rounding and choosing -------------------------------------------------------------


@rule("round")
def _round(w: Writer, x: Value, *, rounding_method: RoundingMethod) -> Value:
    if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
        return w.op("Round", x)
    size = w.op("Abs", x)
    whole = w.op("Floor", size)
    rest = w.op("Sub", size, whole)
    up = w.op("GreaterOrEqual", rest, number(w, 0.5, x), dtype=_BOOL)
    rounded = w.op("Add", whole, w.cast(up, x.dtype))
    # For infinities `rest` is NaN.
    finite = w.op("Less", size, number(w, np.inf, x), dtype=_BOOL)
    return w.op("Where", finite, w.op("Mul", w.op("Sign", x), rounded), x)


@rule("is_finite")
def _is_finite(w: Writer, x: Value) -> Value:
    return w.op(
        "Less", w.op("Abs", x), w.constant(np.asarray(np.inf, x.dtype)), dtype=_BOOL
    )


@rule("sorts_before")
def _sorts_before(w: Writer, x: Value, y: Value) -> Value:
    less = w.op("Less", x, y, dtype=_BOOL)
    number = w.op("Not", w.op("IsNaN", x, dtype=_BOOL))
    last = w.op("And", w.op("IsNaN", y, dtype=_BOOL), number)
    return w.op("Or", less, last)


@rule("reduce_precision")
def _reduce_precision(
    w: Writer, x: Value, *, exponent_bits: int, mantissa_bits: int
) -> Value:
    known = {
        (5, 10): np.dtype(np.float16),
        (8, 7): dtypes.dtype("bfloat16"),
        (8, 23): np.dtype(np.float32),
        (11, 52): np.dtype(np.float64),
    }
    narrow = known.get((exponent_bits, mantissa_bits))
    if narrow is None:
        raise w.refuse(
            f"rounds to e{exponent_bits}m{mantissa_bits}, but ONNX only supports f16, "
            "bf16, f32 and f64"
        )
    return w.cast(w.cast(x, narrow), x.dtype)


@rule("clamp")
def _clamp(w: Writer, low: Value, x: Value, high: Value) -> Value:
    return w.op("Min", w.op("Max", x, low), high)


@rule("select_n")
def _select_n(w: Writer, which: Value, *cases: Value) -> Value:
    out = cases[0]
    if which.dtype == _BOOL:
        chosen = w.op("Where", which, cases[1], out) if len(cases) > 1 else out
    else:
        chosen = out
        for i, case in enumerate(cases[1:], 1):
            beyond = w.op("GreaterOrEqual", which, number(w, i, which), dtype=_BOOL)
            chosen = w.op("Where", beyond, case, chosen)
    shapes = [a.shape for a in w.avals_in if len(cases) > 1]
    (aval,) = w.avals_out
    return chosen if aval.shape in shapes else w.expand(chosen, aval.shape)


@rule("convert_element_type")
def _convert(w: Writer, x: Value, **_: Any) -> Value:
    new = w.avals_out[0].dtype
    if not (dtypes.is_floating(x.dtype) and dtypes.is_integer(new)):
        return w.cast(x, new)
    # ONNX does not define the conversion of out-of-range floats: XLA clamps them, and
    # converts NaN to 0.
    wide = x.dtype if x.dtype == np.float64 else np.dtype(np.float32)
    x, info = w.cast(x, wide), dtypes.iinfo(new)
    below = w.op("Less", x, number(w, float(info.min), x), dtype=_BOOL)
    beyond = w.op("GreaterOrEqual", x, number(w, float(info.max) + 1, x), dtype=_BOOL)
    outside = w.op("Or", w.op("Or", below, beyond), w.op("IsNaN", x, dtype=_BOOL))
    inside = w.cast(w.op("Where", outside, number(w, 0, x), x), new)
    low, high = (w.constant(np.asarray(end, new)) for end in (info.min, info.max))
    return w.op("Where", below, low, w.op("Where", beyond, high, inside))


# -- bits ------------------------------------------------------------------------------


def _unsigned(dtype: Any) -> Any:
    return np.dtype(f"uint{dtypes.bits(dtype)}")


def _shifted(w: Writer, x: Value, by: Value, direction: str) -> Value:
    """Returns shifted bits; 0 for shifts by at least the number of bits."""
    bits = dtypes.bits(x.dtype)
    word = _unsigned(x.dtype)
    by = w.cast(by, word)
    inside = w.op("Less", by, number(w, bits, by), dtype=_BOOL)
    safe = w.op("Where", inside, by, number(w, 0, by))
    moved = w.op("BitShift", w.cast(x, word), safe, direction=direction)
    return w.cast(w.op("Where", inside, moved, number(w, 0, moved)), x.dtype)


@rule("shift_left")
def _shift_left(w: Writer, x: Value, by: Value) -> Value:
    return _shifted(w, x, by, "LEFT")


@rule("shift_right_logical")
def _shift_right_logical(w: Writer, x: Value, by: Value) -> Value:
    return _shifted(w, x, by, "RIGHT")


@rule("shift_right_arithmetic")
def _shift_right_arithmetic(w: Writer, x: Value, by: Value) -> Value:
    # The highest bit is the sign, even for unsigned dtypes.
    signed = w.cast(x, np.dtype(f"int{dtypes.bits(x.dtype)}"))
    flipped = w.op("BitwiseNot", _shifted(w, w.op("BitwiseNot", x), by, "RIGHT"))
    negative = w.op("Less", signed, number(w, 0, signed), dtype=_BOOL)
    return w.op("Where", negative, flipped, _shifted(w, x, by, "RIGHT"))


# -- compositions of fxflow's operations -----------------------------------------------


def _expm1(x: Any) -> Any:
    # For small x, use tanh(x / 2), which does not cancel.
    half = lax.tanh(lax.mul(x, 0.5))
    small = lax.div(lax.mul(half, 2.0), lax.sub(1.0, half))
    return lax.select(lax.lt(lax.abs(x), 0.5), small, lax.sub(lax.exp(x), 1.0))


def _logistic_slope(x: Any) -> Any:
    t = lax.exp(lax.neg(lax.abs(x)))
    return lax.div(t, lax.square(lax.add(t, 1.0)))


def _tanh_slope(x: Any) -> Any:
    return lax.mul(_logistic_slope(lax.mul(x, 2.0)), 4.0)


def _log1p(x: Any) -> Any:
    # For small x, divide out the rounding error of 1 + x (Kahan).
    plus = lax.add(x, 1.0)
    log = lax.log(plus)
    exact = lax.eq(plus, 1.0)
    rest = lax.select(exact, lax.full_like(x, 1), lax.sub(plus, 1.0))
    small = lax.select(exact, x, lax.mul(log, lax.div(x, rest)))
    return lax.select(lax.lt(lax.abs(x), 1.0), small, log)


def _cbrt(x: Any) -> Any:
    root = lax.mul(lax.sign(x), lax.pow(lax.abs(x), np.asarray(1 / 3, x.dtype)))
    # One Newton step removes the rounding error of 1/3.
    square = lax.mul(root, root)
    better = lax.sub(root, lax.div(lax.sub(root, lax.div(x, square)), 3.0))
    usual = lax.bitwise_and(lax.gt(square, 0.0), lax.lt(lax.abs(x), np.inf))
    return lax.select(usual, better, root)


def _atan2(y: Any, x: Any) -> Any:
    # 1/x reveals the sign of 0; if both are infinite, treat them as ±1.
    both = lax.bitwise_and(lax.eq(lax.abs(x), np.inf), lax.eq(lax.abs(y), np.inf))
    origin = lax.bitwise_and(lax.eq(x, 0.0), lax.eq(y, 0.0))
    left = lax.lt(lax.select(lax.eq(x, 0.0), lax.div(lax.full_like(x, 1), x), x), 0.0)
    below = lax.lt(lax.select(lax.eq(y, 0.0), lax.div(lax.full_like(y, 1), y), y), 0.0)
    ratio = lax.select(both, lax.mul(lax.sign(y), lax.sign(x)), lax.div(y, x))
    angle = lax.atan(lax.select(origin, y, ratio))
    angle = lax.select(lax.bitwise_and(origin, left), lax.full_like(y, 0), angle)
    turn = lax.select(below, lax.full_like(y, -math.pi), lax.full_like(y, math.pi))
    found = lax.select(left, lax.add(angle, turn), angle)
    return lax.select(lax.bitwise_and(origin, lax.bitwise_not(left)), y, found)


def _population_count(x: Any) -> Any:
    bits = dtypes.bits(x.dtype)
    total = lax.full_like(x, 0)
    for i in range(bits):
        one = lax.shift_right_logical(x, np.asarray(i, x.dtype))
        total = lax.add(total, lax.bitwise_and(one, np.asarray(1, x.dtype)))
    return total


def _clz(x: Any) -> Any:
    bits, step = dtypes.bits(x.dtype), 1
    while step < bits:
        x = lax.bitwise_or(x, lax.shift_right_logical(x, np.asarray(step, x.dtype)))
        step *= 2
    return lax.population_count(lax.bitwise_not(x))


def _composed(function: Any) -> Any:
    def write(w: Writer, *xs: Value, **_: Any) -> Value:
        shape = w.avals_out[0].shape
        avals = [Aval(shape, a.dtype) for a in w.avals_in]
        wide = [
            x if a.shape == shape else w.expand(x, shape)
            for x, a in zip(xs, w.avals_in, strict=True)
        ]
        return w.compose(function, wide, avals)[0]

    return write


RULES.update(
    {
        "expm1": _composed(_expm1),
        "log1p": _composed(_log1p),
        "logistic_slope": _composed(_logistic_slope),
        "tanh_slope": _composed(_tanh_slope),
        "cbrt": _composed(_cbrt),
        "atan2": _composed(_atan2),
        "population_count": _composed(_population_count),
        "clz": _composed(_clz),
    }
)
