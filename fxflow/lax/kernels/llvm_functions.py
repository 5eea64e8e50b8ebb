"""Functions of floating-point numbers as LLVM's IR, without branches.

LLVM vectorizes the loops around them. Most of those of float32 compute in float64, with
polynomials whose error is far below half a unit of float32, and round once.

Sources: W. J. Cody, W. Waite, Software Manual for the Elementary Functions, 1980; S. L.
Moshier, Cephes; N. Juffa's minimax polynomials for erf; NumPy's and C's special values.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fxflow.lax.kernels.llvm_writer import Writer, literal

_SUFFIX = {"float": "f32", "double": "f64", "i32": "i32", "i64": "i64"}
_BITS = {"float": "i32", "double": "i64", "i32": "float", "i64": "double"}
_DTYPE = {"float": np.dtype(np.float32), "double": np.dtype(np.float64)}
#: 1.5 · 2⁵²: the low bits of a small number added to it are the nearest integer.
_MAGIC = 6755399441055744.0
_LN2 = math.log(2)
_HALF_PI = math.pi / 2
#: The first 256 bits of 2/π after the point.
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561


def _quarters(shift: int) -> tuple[float, float]:
    """Returns 2ˢ · 2/π less a multiple of 4, as a sum of two doubles, over 2ˢ."""
    one = 1 << 256
    value = (_TWO_OVER_PI << shift) % (4 * one)
    exact = Fraction(value - 4 * one if value > 2 * one else value, one << shift)
    first = float(exact)
    return first, float(exact - Fraction(first))


_QUARTERS = {shift: _quarters(shift) for shift in (0, 27, 53, 79)}


class Number:
    """A number in a register of the function that is being written.

    Attributes:
      w: where operations are written.
      kind: LLVM's type.
      text: a register, or a constant.
    """

    __slots__ = ("kind", "text", "w")

    kind: str
    text: str
    w: Writer

    def __init__(self, w: Writer, kind: str, text: str) -> None:
        self.w, self.kind, self.text = w, kind, text

    def number(self, value: float | Number) -> Number:
        """Returns a constant of this number's type; a number as it is."""
        if isinstance(value, Number):
            return value
        dtype = _DTYPE.get(self.kind)
        text = literal(value, dtype) if dtype else str(int(value))
        return Number(self.w, self.kind, text)

    def _op(self, floats: str, integers: str, other: float | Number) -> Number:
        op = floats if self.kind in _DTYPE else integers
        y = self.number(other)
        return Number(
            self.w, self.kind, self.w.op(f"{op} {self.kind} {self.text}, {y.text}")
        )

    def __add__(self, other: float | Number) -> Number:
        return self._op("fadd", "add", other)

    def __sub__(self, other: float | Number) -> Number:
        return self._op("fsub", "sub", other)

    def __mul__(self, other: float | Number) -> Number:
        return self._op("fmul", "mul", other)

    def __truediv__(self, other: float | Number) -> Number:
        return self._op("fdiv", "udiv", other)

    def __and__(self, other: float | Number) -> Number:
        return self._op("", "and", other)

    def __or__(self, other: float | Number) -> Number:
        return self._op("", "or", other)

    def __xor__(self, other: float | Number) -> Number:
        return self._op("", "xor", other)

    def __lshift__(self, bits: int) -> Number:
        return self._op("", "shl", bits)

    def __rshift__(self, bits: int) -> Number:
        return self._op("", "lshr", bits)

    def signed_shift(self, bits: int) -> Number:
        """Returns the bits shifted to the right, with copies of the sign in front."""
        return self._op("", "ashr", bits)

    def __neg__(self) -> Number:
        return Number(self.w, self.kind, self.w.op(f"fneg {self.kind} {self.text}"))

    def _compared(self, floats: str, integers: str, other: float | Number) -> Number:
        op = f"fcmp {floats}" if self.kind in _DTYPE else f"icmp {integers}"
        y = self.number(other)
        return Number(
            self.w, "i1", self.w.op(f"{op} {self.kind} {self.text}, {y.text}")
        )

    def __lt__(self, other: float | Number) -> Number:
        return self._compared("olt", "slt", other)

    def __gt__(self, other: float | Number) -> Number:
        return self._compared("ogt", "sgt", other)

    def equals(self, other: float | Number) -> Number:
        """Returns an i1: whether two numbers are equal, and none is NaN."""
        return self._compared("oeq", "eq", other)

    def differs(self, other: float | Number) -> Number:
        """Returns an i1: whether two numbers differ, or one is NaN."""
        return self._compared("une", "ne", other)

    def less_or_nan(self, other: float | Number) -> Number:
        """Returns an i1: whether a number is less than another, or one is NaN."""
        return self._compared("ult", "slt", other)

    def is_nan(self) -> Number:
        """Returns an i1: whether the number is NaN."""
        return self._compared("uno", "", self)

    def where(self, yes: float | Number, no: float | Number) -> Number:
        """Returns one of two numbers: this one is an i1."""
        like = yes if isinstance(yes, Number) else no
        assert isinstance(like, Number)
        a, b = like.number(yes), like.number(no)
        text = f"select i1 {self.text}, {a.kind} {a.text}, {b.kind} {b.text}"
        return Number(self.w, like.kind, self.w.op(text))

    def call(self, name: str, *others: float | Number) -> Number:
        """Returns the result of a function of this module or of LLVM."""
        name = f"{name}.{_SUFFIX[self.kind]}" if name.startswith("llvm.") else name
        function = self.w.helper(name)
        given = [self, *(self.number(x) for x in others)]
        text = ", ".join(f"{x.kind} {x.text}" for x in given)
        return Number(
            self.w, self.kind, self.w.op(f"call {self.kind} {function}({text})")
        )

    def abs(self) -> Number:
        """Returns the number without its sign."""
        return self.call("llvm.fabs")

    def with_sign_of(self, other: Number) -> Number:
        """Returns the number with the sign of another one."""
        return self.call("llvm.copysign", other)

    def fma(self, factor: float | Number, addend: float | Number) -> Number:
        """Returns this number times a factor plus an addend, rounded once."""
        return self.call("llvm.fma", factor, addend)

    def clamped(self, low: float, high: float) -> Number:
        """Returns the number, which is NaN or from low to high then."""
        top = (self > high).where(high, self)
        return (top < low).where(low, top)

    def to(self, kind: str, op: str) -> Number:
        """Returns the number converted by an instruction."""
        text = f"{op} {self.kind} {self.text} to {kind}"
        return Number(self.w, kind, self.w.op(text))

    def bits(self) -> Number:
        """Returns the bits of a float as an integer, or of an integer as a float."""
        return self.to(_BITS[self.kind], "bitcast")

    def wide(self) -> Number:
        """Returns a float32 as a float64."""
        return self.to("double", "fpext")

    def narrow(self) -> Number:
        """Returns a float64 rounded to float32."""
        return self.to("float", "fptrunc")

    def polynomial(self, coefficients: Iterable[float]) -> Number:
        """Returns a polynomial of this number; the leading coefficient is first."""
        first, *rest = coefficients
        total = self.number(first)
        for c in rest:
            total = total.fma(self, c)
        return total


@functools.cache
def _fit(function: Any, low: float, high: float, degree: int) -> list[float]:
    """Returns the polynomial that equals a function in Chebyshev nodes.

    Its greatest error is within a small factor of the least possible one.

    Args:
      function: of NumPy arrays.
      low: where the interval starts.
      high: where it ends.
      degree: degree of the polynomial.

    Returns:
      The coefficients, the leading one first.
    """
    from numpy.polynomial import Chebyshev, Polynomial

    found = Chebyshev.interpolate(function, degree, [low, high])
    return [float(c) for c in found.convert(kind=Polynomial).coef[::-1]]


# -- exp, log, tanh, erf: in float32 ---------------------------------------------------


def _exp(x: Number) -> Number:
    high = (x < 89.0).where(x, 89.0)
    low = (high < -104.0).where(-104.0, high)
    n = (low * 1.4426950408889634).call("llvm.roundeven")
    m = -n
    r = m.fma(1.428606765330187e-06, m.fma(0.693145751953125, low))
    p = r.polynomial(
        (
            1.3781427e-3, 8.3732421e-3, 4.1668121e-2, 1.6666523e-1, 4.9999994e-1, 1.0,
            1.0,
        )
    )  # fmt: skip
    # Two factors, so that neither overflows nor is denormal.
    i = n.to("i32", "fptosi")
    half = i.signed_shift(1)
    y = p * ((half + 127) << 23).bits() * ((i - half + 127) << 23).bits()
    return x.is_nan().where(x, y)


def _log(x: Number) -> Number:
    tiny = x < 1.17549435e-38
    bits = tiny.where(x * 8388608.0, x).bits()
    e = (bits - 1060439283).signed_shift(23)
    t = (bits - (e << 23)).bits() - 1.0
    k = e.to("float", "sitofp") + tiny.where(x.number(-23.0), 0.0)
    p = t.polynomial(
        (
            7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1,
            1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1,
            3.3333331174e-1,
        )
    )  # fmt: skip
    t2 = t * t
    q = k.fma(-2.12194440e-4, p * (t2 * t))
    y = k.fma(0.693359375, t + x.number(-0.5).fma(t2, q))
    y = x.equals(np.inf).where(x, y)
    y = x.equals(0.0).where(-np.inf, y)
    return x.less_or_nan(0.0).where(np.nan, y)


def _tanh(x: Number) -> Number:
    a, z = x.abs(), x * x
    p = z.polynomial(
        (
            -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1,
            -3.33332819422e-1,
        )
    )  # fmt: skip
    small = (p * z).fma(x, x)
    b = a.call("llvm.minnum", 20.0)
    e = (b + b).call("fx_exp")
    large = (x.number(1.0) - x.number(2.0) / (e + 1.0)).with_sign_of(x)
    return x.is_nan().where(x, (a < 0.625).where(small, large))


def _erf(x: Number) -> Number:
    a = x.abs()
    t, s = a.call("llvm.minnum", 4.0), x * x
    q = t.polynomial(
        (
            -1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2,
            -1.06777877e-1, -6.34846687e-1, -1.28717512e-1,
        )
    )  # fmt: skip
    far = (x.number(1.0) - q.fma(t, -t).call("fx_exp")).with_sign_of(x)
    p = s.polynomial(
        (
            -5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1,
            -3.76125336e-1, 1.28379166e-1,
        )
    )  # fmt: skip
    y = (a > 0.927734375).where(far, p.fma(x, x))
    return x.is_nan().where(x, y)


# -- exponentials and logarithms -------------------------------------------------------


def _scale(t: Number) -> Number:
    """Returns the power of two whose exponent is in the low bits of `_MAGIC + n`."""
    return ((t.bits() << 52) + (1023 << 52)).bits()


def _exp_minus_1(x: Number) -> tuple[Number, Number]:
    """Returns exp(x) and exp(x) - 1, in float64."""
    t = x.fma(1 / _LN2, _MAGIC)
    r, scale = (t - _MAGIC).fma(-_LN2, x), _scale(t)
    part = r * r.polynomial(_fit(_expm1_over_x, -_LN2 / 2, _LN2 / 2, 7))
    return part.fma(scale, scale), scale.fma(part, scale - 1.0)


def _or_zero(x: Number, y: Number) -> Number:
    """Returns `y`, or `x` if it is ±0 or, as XLA's threads see it, denormal."""
    return x.equals(0.0).where(x, y)


def _expm1_over_x(x: Any) -> Any:
    return np.expm1(x) / x


def _exp2(x: Number) -> Number:
    d = x.wide().clamped(-200.0, 200.0) * _LN2
    return _exp_minus_1(d)[0].narrow()


def _expm1(x: Number) -> Number:
    return _or_zero(x, _exp_minus_1(x.wide().clamped(-100.0, 100.0))[1].narrow())


def _sinh_cosh(x: Number) -> tuple[Number, Number]:
    """Returns sinh and cosh, in float64: exp(±r) = cosh(r) ± sinh(r)."""
    d = x.wide().clamped(-100.0, 100.0)
    t = d.fma(1 / _LN2, _MAGIC)
    r = (t - _MAGIC).fma(-_LN2, d)
    n = t.bits() << 52
    up = (n + (1022 << 52)).bits()
    down = (n.number(1022 << 52) - n).bits()
    z, most = r * r, (_LN2 / 2) ** 2
    odd = r * z.polynomial(_fit(_sinh_over_x, 0.0, most, 3))
    even = z.polynomial(_fit(_cosh_of_root, 0.0, most, 4))
    plus, minus = up + down, up - down
    return odd.fma(plus, even * minus), even.fma(plus, odd * minus)


def _sinh_over_x(z: Any) -> Any:
    return np.sinh(np.sqrt(z)) / np.sqrt(z)


def _cosh_of_root(z: Any) -> Any:
    return np.cosh(np.sqrt(z))


def _sinh(x: Number) -> Number:
    return _or_zero(x, _sinh_cosh(x)[0].narrow())


def _cosh(x: Number) -> Number:
    return _sinh_cosh(x)[1].narrow()


def _exponent(bits: Number) -> tuple[Number, Number]:
    """Returns k and m of a number 2ᵏ m with m from √½ to √2, from its bits."""
    root = int(np.float64(math.sqrt(0.5)).view(np.int64))
    above = bits + ((1023 << 52) - root)
    k = ((above >> 52) | (0x433 << 52)).bits() - (2.0**52 + 1023)
    m = (bits - ((above >> 52) << 52) + (1023 << 52)).bits()
    return k, m


def _log_near_1(f: Number) -> Number:
    """Returns log(1 + f) for 1 + f from √½ to √2."""
    s = f / (f + 2.0)
    most = ((math.sqrt(2) - 1) / (math.sqrt(2) + 1)) ** 2
    return s * (s * s).polynomial(_fit(_log_series, 0.0, most, 4))


def _log_series(z: Any) -> Any:
    return 2 * np.arctanh(np.sqrt(z)) / np.sqrt(z)


def _log1p_wide(d: Number) -> Number:
    """Returns log(1 + d) in float64, for a d that is finite and above -1."""
    k, m = _exponent((d + 1.0).bits())
    # Near 0, what 1 + d rounds away counts.
    f = k.equals(0.0).where(d, m - 1.0)
    return k.fma(_LN2, _log_near_1(f))


def _log1p(x: Number) -> Number:
    y = _or_zero(x, _log1p_wide(x.wide()).narrow())
    y = x.equals(np.inf).where(x, y)
    y = x.equals(-1.0).where(-np.inf, y)
    return x.less_or_nan(-1.0).where(np.nan, y)


def _pow(x: Number, y: Number) -> Number:
    a, d = x.abs(), y.wide()
    k, m = _exponent(a.wide().bits())
    log = k.fma(_LN2, _log_near_1(m - 1.0))
    log = a.equals(0.0).where(-np.inf, log)
    log = a.equals(np.inf).where(np.inf, log)
    p = _exp_minus_1((log * d).clamped(-200.0, 200.0))[0].narrow()
    p = a.is_nan().where(x, p)
    # Whether y is an integer, and whether it is an odd one: infinities are even.
    half = y * 0.5
    whole = y.call("llvm.trunc").equals(y)
    odd = whole & half.call("llvm.trunc").differs(half)
    p = ((x.bits() < 0) & odd).where(-p, p)
    root = (x < 0.0) & (x > -np.inf) & (whole ^ 1)
    p = root.where(np.nan, p)
    far = y.abs().equals(np.inf) & a.equals(1.0)
    return (y.equals(0.0) | x.equals(1.0) | far).where(1.0, p)


def _cbrt(x: Number) -> Number:
    d = x.abs().wide()
    # A third of the exponent, to 5 %; then 1/∛d by two steps of fourth order.
    high = (d.bits() >> 32).to("i32", "trunc")
    third = high.number(_THIRD) - high / 3
    r = (third.to("i64", "zext") << 32).bits()
    for _ in range(2):
        h = d.number(1.0) - d * r * r * r
        r = (h * r).fma(h.polynomial((14 / 81, 2 / 9, 1 / 3)), r)
    y = (d * r * r).narrow().with_sign_of(x)
    inside = (x.abs() > 0.0) & (x.abs() < np.inf)
    return inside.where(y, x)


#: High half of the bits of 2^(1023 + 1023 / 3), moved to make the error symmetric.
_THIRD = 0x553EF0FF

# -- angles ----------------------------------------------------------------------------


def _quadrant(x: Number) -> tuple[Number, Number, Number]:
    """Returns a number whose last bits count quarter turns, and sin, cos of the rest.

    From 2⁵⁰, `x` is an integer times 2²⁷, 2⁵³ or 2⁷⁹. Multiples of four quarter turns
    are dropped from 2/π times that power, which leaves a factor of at most 2. Its first
    53 bits times `x`, less the nearest integer, are exact in float64.
    """
    d, a = x.wide(), x.abs()
    turns, rest = (x.wide().number(part) for part in _QUARTERS[0])
    for limit, shift in ((2.0**50, 27), (2.0**76, 53), (2.0**102, 79)):
        near = a < limit
        first, second = _QUARTERS[shift]
        turns, rest = near.where(turns, first), near.where(rest, second)
    t = d.fma(turns, _MAGIC)
    f = d.fma(rest, d.fma(turns, -(t - _MAGIC)))
    r = f * _HALF_PI
    z, most = r * r, (1.05 * math.pi / 4) ** 2
    sin = r * z.polynomial(_fit(_sin_over_x, 0.0, most, 4))
    cos = z.polynomial(_fit(_cos_of_root, 0.0, most, 5))
    return t.bits(), sin, cos


def _sin_over_x(z: Any) -> Any:
    return np.sin(np.sqrt(z)) / np.sqrt(z)


def _cos_of_root(z: Any) -> Any:
    return np.cos(np.sqrt(z))


def _turned(q: Number, sin: Number, cos: Number) -> Number:
    """Returns the sine of `q` quarter turns and a rest."""
    y = (q & 1).equals(0).where(sin, cos)
    return (y.bits() ^ ((q & 2) << 62)).bits().narrow()


def _sin(x: Number) -> Number:
    q, sin, cos = _quadrant(x)
    return _or_zero(x, _turned(q, sin, cos))


def _cos(x: Number) -> Number:
    q, sin, cos = _quadrant(x)
    return _turned(q + 1, sin, cos)


def _tan(x: Number) -> Number:
    q, sin, cos = _quadrant(x)
    even = (q & 1).equals(0)
    y = even.where(sin, -cos) / even.where(cos, sin)
    return _or_zero(x, y.narrow())


def _atan_series(t: Number) -> Number:
    """Returns the arc tangent of a number from -1 to 1, in float64."""
    return t * (t * t).polynomial(_fit(_atan_over_x, 0.0, 1.0, 12))


def _atan_over_x(z: Any) -> Any:
    return np.arctan(np.sqrt(z)) / np.sqrt(z)


def _atan(x: Number) -> Number:
    a = x.abs().wide()
    far = a > 1.0
    y = _atan_series(far.where(-1.0, a) / far.where(a, 1.0))
    y = (far.where(y.number(_HALF_PI), 0.0) + y).narrow()
    return _or_zero(x, y.with_sign_of(x))


def _atan2(y: Number, x: Number) -> Number:
    # The quotient of two infinities is 1.
    up, along = (v.abs().wide().clamped(0.0, 1e300) for v in (y, x))
    steep = up > along
    top, below = steep.where(-along, up), steep.where(up, along)
    angle = _atan_series(top / below.equals(0.0).where(1.0, below))
    angle = steep.where(angle.number(_HALF_PI), 0.0) + angle
    angle = (x.bits() < 0).where(angle.number(math.pi) - angle, angle)
    angle = x.is_nan().where(x.wide(), angle)
    return angle.narrow().with_sign_of(y)


def _asin_series(x: Number) -> tuple[Number, Number, Number]:
    """Returns whether |x| > ½, and the arc sine of |x|, or of √((1 - |x|) / 2)."""
    a = x.abs().wide()
    far = a > 0.5
    rest = (a.number(1.0) - a) * 0.5
    s = far.where(rest.call("llvm.sqrt"), a)
    z = far.where(rest, a * a)
    return far, s * z.polynomial(_fit(_asin_over_x, 0.0, 0.25, 9)), s


def _asin_over_x(z: Any) -> Any:
    return np.arcsin(np.sqrt(z)) / np.sqrt(z)


def _asin(x: Number) -> Number:
    far, y, _ = _asin_series(x)
    y = far.where(y.fma(-2.0, _HALF_PI), y).narrow()
    return _or_zero(x, y.with_sign_of(x))


def _acos(x: Number) -> Number:
    far, y, _ = _asin_series(x)
    left = x < 0.0
    near = left.where(y, -y) + _HALF_PI
    twice = y + y
    return far.where(left.where(twice.number(math.pi) - twice, twice), near).narrow()


def _asinh(x: Number) -> Number:
    a = x.abs().wide()
    square = a * a
    root = (square + 1.0).call("llvm.sqrt")
    y = _log1p_wide(a + square / (root + 1.0)).narrow()
    y = (x.abs() < np.inf).where(y, x.abs())
    return _or_zero(x, y.with_sign_of(x))


def _acosh(x: Number) -> Number:
    d = x.wide() - 1.0
    y = _log1p_wide(d + (d * (d + 2.0)).call("llvm.sqrt")).narrow()
    y = x.equals(np.inf).where(x, y)
    return x.less_or_nan(1.0).where(np.nan, y)


def _atanh(x: Number) -> Number:
    a = x.abs().wide()
    y = (_log1p_wide((a + a) / (a.number(1.0) - a)) * 0.5).narrow()
    y = x.abs().equals(1.0).where(np.inf, y)
    outside = x.abs() > 1.0
    y = outside.where(np.nan, x.is_nan().where(x, y.with_sign_of(x)))
    return _or_zero(x, y)


# -- the module's functions ------------------------------------------------------------

#: Functions of float32, by the name of the primitive.
FUNCTIONS: dict[str, Callable[..., Number]] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atan2": _atan2,
    "atanh": _atanh,
    "cbrt": _cbrt,
    "cos": _cos,
    "cosh": _cosh,
    "erf": _erf,
    "exp": _exp,
    "exp2": _exp2,
    "expm1": _expm1,
    "log": _log,
    "log1p": _log1p,
    "pow": _pow,
    "sin": _sin,
    "sinh": _sinh,
    "tan": _tan,
    "tanh": _tanh,
}
_ARITY = {"fma": 3, "maximum": 2, "minimum": 2, "maxnum": 2, "minnum": 2, "copysign": 2,
          "umax": 2, "umin": 2, "smax": 2, "smin": 2, "atan2": 2, "pow": 2}  # fmt: skip
_KINDS = {"f32": "float", "f64": "double"}
#: LLVM's function that asks for a line of memory.
PREFETCH = "llvm.prefetch.p0"


def helpers(names: Sequence[str]) -> str:
    """Returns declarations and definitions of helper functions, and what these use.

    Args:
      names: `fx_` and a name in `FUNCTIONS`, functions of LLVM, or of the C library.

    Returns:
      LLVM's IR.
    """
    texts: dict[str, str] = {}
    left = list(names)
    while left:
        name = left.pop(0)
        if name not in texts:
            texts[name], used = _helper(name)
            left += used
    return "\n".join(texts.values())


@functools.cache
def _helper(name: str) -> tuple[str, list[str]]:
    """Returns the text of a helper function, and the names of those that it calls."""
    if name.startswith("fx_"):
        return _definition(name)
    if name == PREFETCH:
        return f"declare void @{name}(ptr, i32, i32, i32)", []
    if name.startswith("llvm.fpto"):
        target, source = name.split(".")[-2:]
        return f"declare {target} @{name}({_KINDS[source]})", []
    if name.startswith("llvm."):
        _, function, kind = name.split(".")
        kind = _KINDS.get(kind, kind)
    else:
        function, kind = name, "double"
    arguments = ", ".join([kind] * _ARITY.get(function, 1))
    return f"declare {kind} @{name}({arguments})", []


def _definition(name: str) -> tuple[str, list[str]]:
    function, w = FUNCTIONS[name.removeprefix("fx_")], Writer()
    count = _ARITY.get(name.removeprefix("fx_"), 1)
    arguments = [Number(w, "float", f"%x{i}") for i in range(count)]
    result = function(*arguments)
    given = ", ".join(f"float %x{i}" for i in range(count))
    head = f"define internal float @{name}({given}) alwaysinline {{"
    text = f"{head}\n{w.text()}\n  ret float {result.text}\n}}"
    return text, list(w.used)
