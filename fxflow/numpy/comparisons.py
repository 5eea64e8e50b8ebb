"""Comparisons and logic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow._config import config
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import constant
from fxflow.core.ir.primitive import table
from fxflow.errors import DtypeError
from fxflow.numpy._operands import (
    array_of,
    broadcast,
    convert,
    promote,
    promote_dtypes,
)
from fxflow.numpy.ufuncs import Binary, Example, binary, primitive_binary, unary

_BOOLS = "Array of bools of the broadcast shape."


# -- integers with a sign beside those without -----------------------------------------


def _signs_differ(x: Any, y: Any) -> bool:
    """Whether no integer dtype holds both: int32 and uint32, without 64 bits."""
    if getattr(x, "aval", None) is getattr(y, "aval", 0):
        return False
    if config.numpy_dtype_promotion == "strict":
        return False  # which refuses the pair
    kinds = [getattr(getattr(a, "dtype", None), "kind", "") for a in (x, y)]
    if sorted(kinds) != ["i", "u"]:
        return False
    signed, unsigned = (x, y) if kinds[0] == "i" else (y, x)
    weak = any(getattr(getattr(a, "aval", None), "weak_type", False) for a in (x, y))
    wide = max(32, 8 * signed.dtype.itemsize, 64 if config.x64 else 0)
    return not weak and 8 * unsigned.dtype.itemsize >= wide


def _of_two_signs(name: str, primitive: str, x: Any, y: Any) -> Array:
    """Compares numbers, not their bits in a dtype that holds one of the operands."""
    x, y = broadcast(name, [array_of(a, name) for a in (x, y)])
    first = dtypes.is_signed(x.aval.dtype)
    signed, dtype = (x, y.aval.dtype) if first else (y, x.aval.dtype)
    below = lax.lt(signed, 0)
    alike = convert(signed, dtype)
    found = table[primitive].bind(*((alike, y) if first else (x, alike)))
    found, below = broadcast(name, [found, below])
    # A negative number is less than all that have no sign.
    if primitive in (("lt", "le", "ne") if first else ("gt", "ge", "ne")):
        return lax.bitwise_or(found, below)
    return lax.bitwise_and(found, lax.bitwise_not(below))


# -- equality and order ----------------------------------------------------------------


def _equality(
    name: str,
    summary: str,
    compare: Callable[[Any, Any], Array],
    example: Example,
) -> Binary[Array]:
    primitive = compare.__name__
    bind = table[primitive].bind

    def function(x1: Any, x2: Any) -> Any:
        aval: Any = getattr(x1, "aval", None)
        if aval is None or aval is not getattr(x2, "aval", None):
            if _signs_differ(x1, x2):
                return _of_two_signs(name, primitive, x1, x2)
            x1, x2 = promote(name, x1, x2)
            aval = x1.aval
        if dtypes.is_key(aval.dtype):
            return compare(x1, x2)
        return bind(x1, x2)

    function.__name__ = name
    made = primitive_binary(
        name,
        summary,
        primitive,
        returns=_BOOLS,
        special="nan equals nothing.",
        example=example,
    )
    return type(made)(function, name=name, doc=made.__doc__)


equal: Binary[Array] = _equality(
    "equal",
    "Whether `x1 == x2`.",
    lax.eq,
    example=("equal(np.array([1, 2]), 2)", "Array([False,  True], dtype=bool)"),
)
not_equal: Binary[Array] = _equality(
    "not_equal",
    "Whether `x1 != x2`.",
    lax.ne,
    example=("not_equal(np.array([1, 2]), 2)", "Array([ True, False], dtype=bool)"),
)


def _order(name: str, summary: str, primitive: str, example: Example) -> Binary[Array]:
    strict = {"le": "lt", "ge": "gt"}.get(primitive, primitive)

    def compute(x: Array, y: Array) -> Array:
        if not dtypes.is_complex(x.aval.dtype):
            return table[primitive].bind(x, y)
        # By real parts, and where those are equal by imaginary parts.
        real_x, real_y = lax.real(x), lax.real(y)
        tie = table[primitive].bind(lax.imag(x), lax.imag(y))
        first = table[strict].bind(real_x, real_y)
        return lax.bitwise_or(first, lax.bitwise_and(lax.eq(real_x, real_y), tie))

    compute.__name__ = name
    made = binary(
        summary,
        returns=_BOOLS,
        special="False if either is nan; complex numbers compare by real, then by "
        "imaginary part.",
        example=example,
    )(compute)
    plain = made.function

    def function(x1: Any, x2: Any) -> Array:
        if _signs_differ(x1, x2):
            return _of_two_signs(name, primitive, x1, x2)
        return plain(x1, x2)

    function.__name__ = name
    return type(made)(function, name=name, doc=made.__doc__)


less: Binary[Array] = _order(
    "less",
    "Whether `x1 < x2`.",
    "lt",
    example=("less(np.array([1, 2]), 2)", "Array([ True, False], dtype=bool)"),
)
less_equal: Binary[Array] = _order(
    "less_equal",
    "Whether `x1 <= x2`.",
    "le",
    example=("less_equal(np.array([1, 2]), 1)", "Array([ True, False], dtype=bool)"),
)
greater: Binary[Array] = _order(
    "greater",
    "Whether `x1 > x2`.",
    "gt",
    example=("greater(np.array([1, 2]), 1)", "Array([False,  True], dtype=bool)"),
)
greater_equal: Binary[Array] = _order(
    "greater_equal",
    "Whether `x1 >= x2`.",
    "ge",
    example=("greater_equal(np.array([1, 2]), 2)", "Array([False,  True], dtype=bool)"),
)

# -- logic -----------------------------------------------------------------------------


def truth(name: str, x: Any) -> Array:
    """Returns whether each element is not zero."""
    (array,) = promote_dtypes(name, x)
    aval = array.aval
    if dtypes.is_bool(aval.dtype):
        return array
    if dtypes.is_key(aval.dtype):
        raise DtypeError(f"{name}: keys are neither true nor false, got {aval}")
    return table["ne"].bind(array, constant(0, aval.dtype))


def _truths(name: str, x: Any, y: Any) -> list[Array]:
    return broadcast(name, [truth(name, x), truth(name, y)])


def _logical(
    name: str, summary: str, primitive: str, identity: bool, example: Example
) -> Binary[Array]:
    return primitive_binary(
        name,
        f"{summary} Numbers that are not zero count as true.",
        primitive,
        identity=identity,
        returns=_BOOLS,
        promotion=_truths,
        example=example,
    )


logical_and: Binary[Array] = _logical(
    "logical_and",
    "Whether both are true.",
    "and",
    True,
    example=(
        "logical_and(np.array([0, 2]), True)",
        "Array([False,  True], dtype=bool)",
    ),
)
logical_or: Binary[Array] = _logical(
    "logical_or",
    "Whether one or both are true.",
    "or",
    False,
    example=(
        "logical_or(np.array([0, 2]), False)",
        "Array([False,  True], dtype=bool)",
    ),
)
logical_xor: Binary[Array] = _logical(
    "logical_xor",
    "Whether exactly one is true.",
    "xor",
    False,
    example=(
        "logical_xor(np.array([0, 2]), True)",
        "Array([ True, False], dtype=bool)",
    ),
)


@unary(
    "Whether `x` is false, or zero.",
    returns="Array of bools of the shape of `x`.",
    example=("logical_not(np.array([0, 2]))", "Array([ True, False], dtype=bool)"),
)
def logical_not(x: Array) -> Array:
    """Negation of the truth."""
    return lax.bitwise_not(truth("logical_not", x))
