"""Arithmetic ufuncs: sums, products, quotients, powers, extremes."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import DtypeError
from fxflow.numpy._operands import (
    array_of,
    broadcast,
    convert,
    promote,
    promote_dtypes,
    promote_inexact,
)
from fxflow.numpy.ufuncs import Binary, binary, describe, primitive_binary, unary

# -- sums and products -----------------------------------------------------------------

add: Binary[Array] = primitive_binary(
    "add",
    "Sum; of bools, logical or.",
    "add",
    identity=0,
    on_bool="or",
    example=("add(np.array([1, 2]), 10)", "Array([11, 12], dtype=int32)"),
)
subtract: Binary[Array] = primitive_binary(
    "subtract",
    "Difference.",
    "sub",
    example=("subtract(np.array([5, 6]), 1)", "Array([4, 5], dtype=int32)"),
)
multiply: Binary[Array] = primitive_binary(
    "multiply",
    "Product; of bools, logical and.",
    "mul",
    identity=1,
    on_bool="and",
    example=(
        "multiply(np.array([1, 2]), np.array([[3], [4]]))",
        "Array([[3, 6],\n       [4, 8]], dtype=int32)",
    ),
)


@unary(
    "Minus `x`.",
    kind="numeric",
    example=("negative(np.array([1, -2]))", "Array([-1,  2], dtype=int32)"),
)
def negative(x: Array) -> Array:
    """Minus x."""
    return lax.neg(x)


@unary(
    "`x` itself.",
    kind="numeric",
    example=("positive(np.array([1, -2]))", "Array([ 1, -2], dtype=int32)"),
)
def positive(x: Array) -> Array:
    """The number itself."""
    return x


@unary(
    "Absolute value.",
    returns="Array of the shape of `x`, of its dtype (of the parts, if complex).",
    special="the smallest signed integer is itself.",
    example=("absolute(np.array([-2, 3]))", "Array([2, 3], dtype=int32)"),
)
def absolute(x: Array) -> Array:
    """Absolute value."""
    aval = x.aval
    if dtypes.is_bool(aval.dtype) or dtypes.is_unsigned(aval.dtype):
        return x
    return lax.abs(x)


@unary(
    "Sign: -1, 0 or 1; for complex `x`, `x / abs(x)`.",
    kind="numeric",
    special="±0 → 0; nan → nan; a complex number with one infinite part → ±1 or ±i.",
    example=(
        "sign(np.array([-2.5, 0.0, 4.0]))",
        "Array([-1.,  0.,  1.], dtype=float32)",
    ),
)
def sign(x: Array) -> Array:
    """Sign, of zeros as NumPy has it: XLA keeps that of -0.0."""
    out = lax.sign(x)
    return lax.select(lax.eq(x, 0), 0, out) if dtypes.is_inexact(x.aval.dtype) else out


@unary("`x * x`.", example=("square(np.array([2, -3]))", "Array([4, 9], dtype=int32)"))
def square(x: Array) -> Array:
    """Square."""
    if dtypes.is_bool(x.aval.dtype):
        x = convert(x, dtypes.default_int())
    return lax.square(x)


# -- quotients -------------------------------------------------------------------------

divide: Binary[Array] = primitive_binary(
    "divide",
    "Quotient, in floats.",
    "div",
    promotion=lambda name, x, y: broadcast(name, promote_inexact(name, x, y)),
    returns="Array of the broadcast shape, of the common dtype or a float one.",
    special="x/0 → ±inf; 0/0 → nan.",
    example=("divide(np.array([1, 2]), 4)", "Array([0.25, 0.5 ], dtype=float32)"),
)


def _numbers(name: str, x: Any, y: Any) -> list[Any]:
    """Returns promoted operands, bools made int32."""
    x, y = promote(name, x, y)
    if dtypes.is_bool(x.aval.dtype):
        return [convert(x, dtypes.default_int()), convert(y, dtypes.default_int())]
    return [x, y]


def _real_numbers(name: str, x: Any, y: Any) -> list[Any]:
    x, y = _numbers(name, x, y)
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(
            f"{name}: complex numbers have no order, got {x.aval} and {y.aval}"
        )
    return [x, y]


def _differs_in_sign(x: Any, y: Any) -> Any:
    return lax.ne(lax.lt(x, 0), lax.lt(y, 0))


@binary(
    "Quotient rounded down.",
    special="an integer divided by 0 gives -1 or -2 (XLA's division); x/0.0 → ±inf; a "
    "float divided by ±inf gives ±0 or -1; a zero has the sign of `x1 / x2`.",
    promotion=_real_numbers,
    example=("floor_divide(np.array([7, -7]), 2)", "Array([ 3, -4], dtype=int32)"),
)
def floor_divide(x: Array, y: Array) -> Array:
    """Quotient rounded down."""
    dtype = x.aval.dtype
    if dtypes.is_unsigned(dtype):
        return lax.div(x, y)
    if dtypes.is_integer(dtype):
        quotient = lax.div(x, y)
        # XLA's division rounds towards zero.
        down = lax.bitwise_and(
            lax.ne(lax.sign(x), lax.sign(y)), lax.ne(lax.rem(x, y), 0)
        )
        return lax.select(down, lax.sub(quotient, 1), quotient)
    return _float_divmod(x, y)[0]


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """Returns what Python's divmod gives, elementwise."""
    rest = lax.rem(x, y)
    quotient = lax.div(lax.sub(x, rest), y)
    wrong = lax.bitwise_and(lax.ne(rest, 0), _differs_in_sign(rest, y))
    # (x - rest) / y is whole but for the rounding of the division.
    quotient = lax.round(lax.select(wrong, lax.sub(quotient, 1), quotient))
    # x / 0 is infinite, though x mod 0 is nan; a zero has the sign of x / y.
    ratio = lax.div(x, y)
    zero = lax.stop_gradient(lax.mul(ratio, 0))
    quotient = lax.select(lax.eq(quotient, 0), zero, quotient)
    quotient = lax.select(lax.eq(y, 0), ratio, quotient)
    return quotient, _with_sign_of(y, rest)


def _with_sign_of(divisor: Array, rest: Array) -> Array:
    """Returns the remainder of the division that rounds down."""
    wrong = lax.bitwise_and(lax.ne(rest, 0), _differs_in_sign(rest, divisor))
    rest = lax.select(wrong, lax.add(rest, divisor), rest)
    if not dtypes.is_floating(rest.aval.dtype):
        return rest
    # Zeros take the divisor's sign as well. Either way the slope is 1.
    below = lax.neg(lax.abs(lax.neg(rest)))
    zero = lax.select(lax.lt(divisor, 0), below, lax.abs(rest))
    return lax.select(lax.eq(rest, 0), zero, rest)


@binary(
    "Remainder of `floor_divide`; it has the sign of `x2`.",
    special="an integer modulo 0 is 0; x mod 0.0 → nan; x mod ±inf is x or ±inf; a "
    "zero has the sign of `x2`.",
    promotion=_real_numbers,
    example=("remainder(np.array([7, -7]), 3)", "Array([1, 2], dtype=int32)"),
)
def remainder(x: Array, y: Array) -> Array:
    """Remainder of the division that rounds down."""
    if dtypes.is_integer(x.aval.dtype):
        # NumPy's remainder of a division by 0 is 0, XLA's is x.
        y = lax.select(lax.eq(y, 0), 1, y)
    rest = lax.rem(x, y)
    if dtypes.is_unsigned(x.aval.dtype):
        return rest
    return _with_sign_of(y, rest)


@binary(
    "Remainder of the division that rounds towards zero; it has the sign of `x1`.",
    special="an integer modulo 0 is 0; x mod 0.0 → nan.",
    promotion=_real_numbers,
    example=("fmod(np.array([7, -7]), 3)", "Array([ 1, -1], dtype=int32)"),
)
def fmod(x: Array, y: Array) -> Array:
    """Remainder of the division that rounds towards zero."""
    if dtypes.is_integer(x.aval.dtype):
        y = lax.select(lax.eq(y, 0), 1, y)
    return lax.rem(x, y)


@binary(
    "`(floor_divide(x1, x2), remainder(x1, x2))`.",
    returns="Two arrays of the broadcast shape and the common dtype.",
    promotion=_real_numbers,
    example=(
        "divmod(np.array([7, -7]), 3)",
        "(Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))",
    ),
)
def divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """Quotient and remainder."""
    if dtypes.is_floating(x.aval.dtype):
        return _float_divmod(x, y)
    return floor_divide.function(x, y), remainder.function(x, y)


divmod.nout, divmod.nargs = 2, 4


@unary(
    "`1 / x`, in floats.",
    kind="float",
    returns="Array of the shape of `x`, of its dtype or a float one.",
    special="1/±0 → ±inf.",
    example=("reciprocal(np.array([2.0, 4.0]))", "Array([0.5 , 0.25], dtype=float32)"),
)
def reciprocal(x: Array) -> Array:
    """One divided by the number."""
    return lax.div(1, promote_inexact("reciprocal", x)[0])


# -- powers ----------------------------------------------------------------------------


def _power(x1: Any, x2: Any) -> Any:
    """Returns `x1 ** x2`; a Python int as exponent is known when tracing."""
    if type(x2) is int:
        return _integer_power(x1, x2)
    x, y = promote_dtypes("power", x1, x2)
    dtype = x.aval.dtype
    if dtypes.is_inexact(dtype):
        return lax.pow(*broadcast("power", (x, y)))
    if dtypes.is_bool(dtype):
        x, y = (convert(a, dtypes.default_int()) for a in (x, y))
    x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
    return _integer_to_integer(*broadcast("power", (x, y)))


@library("y")
def _integer_power(x: Any, y: int) -> Array:
    """Returns `x ** y` for a Python int."""
    x = array_of(x, "power")
    dtype = x.aval.dtype
    if dtypes.is_bool(dtype):
        x = convert(x, dtypes.default_int())
    elif dtypes.is_key(dtype):
        raise DtypeError(f"power: takes numbers, got {x.aval}")
    if y < 0 and not dtypes.is_inexact(dtype):
        raise DtypeError(
            f"power: integers have no negative powers, got {x.aval} ** {y}: convert "
            "to floats with .astype(...) first"
        )
    if y == 2:
        return lax.square(x)
    return x if y == 1 else lax.integer_pow(x, y)


def _integer_to_integer(x: Any, y: Any) -> Any:
    """Returns powers of integers, by squaring as often as the exponent has bits.

    Negative exponents give 1 / xⁿ rounded towards zero: ±1 for x = ±1, else 0.
    """
    dtype = y.aval.dtype
    bits = dtypes.bits(dtype) - (not dtypes.is_unsigned(dtype))
    result: Any = 1
    base = x
    for bit in range(bits):
        odd = lax.ne(lax.bitwise_and(lax.shift_right_logical(y, bit), 1), 0)
        result = lax.select(odd, lax.mul(x, result) if bit else x, result)
        if bit + 1 < bits:
            x = lax.mul(x, x)
    if dtypes.is_unsigned(dtype):
        return result
    # A power of ±1 is right whatever the sign of the exponent: its last bit decides.
    unit = lax.eq(lax.abs(base), 1)
    return lax.select(lax.bitwise_and(lax.lt(y, 0), lax.ne(unit, True)), 0, result)


class _Power(Binary[Array]):
    """`power`, with a Python int as exponent known when tracing."""

    def __call__(self, x: Any, y: Any, /) -> Array:
        """Raises each element to a power."""
        if type(y) is int:
            return _integer_power(x, y)
        return super().__call__(x, y)

    def operators(self, symbol: str) -> tuple[Any, Any]:
        """Returns the methods for the operator; see `Binary.operators`."""
        forward, reflected = super().operators(symbol)

        def power(self: Any, other: Any) -> Any:
            if type(other) is int:
                return _integer_power(self, other)
            return forward(self, other)

        return power, reflected


power: _Power = _Power(
    _power,
    name="power",
    doc=describe(
        "power",
        "`x1` to the power `x2`.",
        (
            "x1: array-like; broadcast against `x2`, both converted to one dtype.",
            "x2: array-like. A Python int is known when tracing: it is done by "
            "products.",
        ),
        "Array of the broadcast shape and the common dtype.",
        "x ** 0 is 1; integers to negative powers that are not Python ints give "
        "1 / xⁿ rounded towards zero, so ±1 for x = ±1 and 0 for all others, 0 "
        "included; negative floats to fractions give nan.",
        "an integer to a negative Python int.",
        example=("power(np.array([2, 3]), 3)", "Array([ 8, 27], dtype=int32)"),
    ),
)


@binary(
    "`x1` to the power `x2`, in floats.",
    returns="Array of the broadcast shape, of the common dtype or a float one.",
    promotion=lambda name, x, y: broadcast(name, promote_inexact(name, x, y)),
    example=(
        "float_power(np.array([2, 3]), -1).round(4)",
        "Array([0.5   , 0.3333], dtype=float32)",
    ),
)
def float_power(x: Array, y: Array) -> Array:
    """Power in floats."""
    return lax.pow(x, y)


# -- extremes --------------------------------------------------------------------------

maximum: Binary[Array] = primitive_binary(
    "maximum",
    "The larger of two numbers; complex ones are ordered by real, then imaginary part.",
    "max",
    special="nan if either is nan; the derivative is shared where both are equal.",
    example=("maximum(np.array([1, 5]), 3)", "Array([3, 5], dtype=int32)"),
)
minimum: Binary[Array] = primitive_binary(
    "minimum",
    "The smaller of two numbers; complex ones are ordered by real, then imaginary "
    "part.",
    "min",
    special="nan if either is nan; the derivative is shared where both are equal.",
    example=("minimum(np.array([1, 5]), 3)", "Array([1, 3], dtype=int32)"),
)


@binary(
    "The larger of two numbers.",
    special="nan only if both are nan.",
    example=("fmax(np.array([1.0, np.nan]), 0.0)", "Array([1., 0.], dtype=float32)"),
)
def fmax(x: Array, y: Array) -> Array:
    """The larger number, where nan is not a number."""
    return _unless_nan(lax.max(x, y), x, y)


@binary(
    "The smaller of two numbers.",
    special="nan only if both are nan.",
    example=("fmin(np.array([1.0, np.nan]), 2.0)", "Array([1., 2.], dtype=float32)"),
)
def fmin(x: Array, y: Array) -> Array:
    """The smaller number, where nan is not a number."""
    return _unless_nan(lax.min(x, y), x, y)


def _unless_nan(best: Array, x: Array, y: Array) -> Array:
    """Returns `best`, or the other number where one is nan."""
    if not dtypes.is_inexact(x.aval.dtype):
        return best
    best = lax.select(lax.ne(y, y), x, best)
    return lax.select(lax.ne(x, x), y, best)


# -- divisors --------------------------------------------------------------------------


def _integers(name: str, x: Any, y: Any) -> list[Any]:
    x, y = promote_dtypes(name, x, y)
    if not dtypes.is_integer(x.aval.dtype):
        raise DtypeError(f"{name}: takes integers, got {x.aval} and {y.aval}")
    shape = lax.broadcast_shapes(x.aval.shape, y.aval.shape)
    return [_as_shape(a, shape) for a in (x, y)]


def _as_shape(x: Any, shape: Any) -> Any:
    if x.aval.shape == shape:
        return convert(x, x.aval.dtype)
    lead = len(shape) - x.aval.ndim
    wide = lax.broadcast_in_dim(x, shape, tuple(range(lead, len(shape))))
    return convert(wide, x.aval.dtype)


@binary(
    "Greatest common divisor.",
    special="gcd(0, 0) = 0; the result is not negative.",
    raises="the dtypes are not of integers.",
    promotion=_integers,
    example=("gcd(np.array([12, 18]), 8)", "Array([4, 2], dtype=int32)"),
)
def gcd(x: Array, y: Array) -> Array:
    """Greatest common divisor, by Euclid's algorithm."""
    signed = dtypes.is_signed(x.aval.dtype)
    x, y = (lax.abs(a) if signed else a for a in (x, y))

    def going(pair: Any) -> Any:
        return lax.reduce_or(lax.ne(pair[1], 0), tuple(range(x.aval.ndim)))

    def step(pair: Any) -> Any:
        big, small = pair
        # The loop runs until the last element is done: others keep what they have.
        done = lax.eq(small, 0)
        rest = lax.rem(big, lax.select(done, 1, small))
        return lax.select(done, big, small), lax.select(done, 0, rest)

    found: Array = lax.while_loop(going, step, (x, y))[0]
    return found


@binary(
    "Least common multiple.",
    special="0 if either is 0; the result is not negative.",
    raises="the dtypes are not of integers.",
    promotion=_integers,
    example=("lcm(np.array([4, 6]), 10)", "Array([20, 30], dtype=int32)"),
)
def lcm(x: Array, y: Array) -> Array:
    """Least common multiple."""
    if dtypes.is_signed(x.aval.dtype):
        x, y = lax.abs(x), lax.abs(y)
    divisor = gcd.function(x, y)
    none = lax.eq(divisor, 0)
    # Divided first, so that the product overflows only if the result does.
    return lax.select(none, 0, lax.mul(x, lax.div(y, lax.select(none, 1, divisor))))
