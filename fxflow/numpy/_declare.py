"""How elementwise functions are declared: one call each, with all that is true of it.

    sin = float_unary("sin", "Sine of `x` in radians.", special="±inf → nan")

makes the ufunc, its promotion rule and its docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.primitive import table
from fxflow.errors import DtypeError
from fxflow.numpy._operands import array_of, convert, promote
from fxflow.numpy.ufuncs import Binary, R, Unary

_PAIR = (
    "x1: array-like; broadcast against `x2`, both converted to one dtype.",
    "x2: array-like.",
)
_KINDS = {
    "any": "array-like of any dtype",
    "numeric": "array-like of any numeric dtype",
    "float": "array-like; integers and bools are converted to floats",
    "real": "array-like of a real dtype",
}


def describe(
    name: str,
    summary: str,
    args: tuple[str, ...],
    returns: str,
    special: str = "",
    raises: str = "",
) -> str:
    """Returns the docstring of a declared function."""
    parts = [summary, "", "Args:", *(f"  {a}" for a in args), ""]
    parts += ["Returns:", f"  {returns}", "", "Raises:"]
    parts += ["  ArgumentError: an argument is not an array (lists are not)."]
    if raises:
        parts += [f"  DtypeError: {raises}"]
    if len(args) > 1:
        parts += ["  ShapeError: the shapes do not broadcast together."]
    if special:
        parts += ["", "Special cases:", f"  {special}"]
    parts += ["", f"Source: `numpy.{name}`."]
    return "\n".join(parts)


# -- one argument ----------------------------------------------------------------------


def float_unary(
    name: str, summary: str, *, primitive: str = "", special: str = ""
) -> Unary[Array]:
    """Declares a function of one argument that computes in floats."""
    bind = table[primitive or name].bind

    def function(x: Any) -> Any:
        aval = getattr(x, "aval", None)
        if aval is None:
            x = array_of(x, name)
            aval = x.aval
        if not dtypes.is_inexact(aval.dtype):
            x = convert(x, _inexact(name, aval), aval.weak_type)
        return bind(x)

    doc = describe(
        name,
        summary,
        (f"x: {_KINDS['float']}.",),
        "Array of the shape of `x`, of its dtype or a float one.",
        special,
        "the dtype has no float counterpart.",
    )
    return Unary(function, name=name, nin=1, doc=doc)


def _inexact(name: str, aval: Any) -> Any:
    try:
        return dtypes.to_inexact(aval.dtype)
    except DtypeError:
        raise DtypeError(f"{name}: takes numbers, got {aval}") from None


def unary(
    summary: str, *, returns: str = "", kind: str = "any", special: str = ""
) -> Callable[[Callable[..., R]], Unary[R]]:
    """Declares a function of one array, given what computes it from an array."""

    def decorate(compute: Callable[..., R]) -> Unary[R]:
        name = compute.__name__

        def function(x: Any) -> Any:
            array = x if hasattr(x, "aval") else array_of(x, name)
            if dtypes.is_key(array.aval.dtype):
                raise DtypeError(f"{name}: takes numbers, got {array.aval}")
            return compute(array)

        doc = describe(
            name,
            summary,
            (f"x: {_KINDS[kind]}.",),
            returns or "Array of the shape and dtype of `x`.",
            special,
        )
        return Unary(function, name=name, nin=1, doc=doc)

    return decorate


# -- two arguments ---------------------------------------------------------------------


def binary(
    summary: str,
    *,
    returns: str = "",
    identity: Any = None,
    special: str = "",
    raises: str = "",
    mixed: bool = False,
    promotion: Callable[..., Sequence[Array]] = promote,
) -> Callable[[Callable[..., R]], Binary[R]]:
    """Declares a function of two arrays, given what computes it after promotion."""

    def decorate(compute: Callable[..., R]) -> Binary[R]:
        name = compute.__name__

        def function(x1: Any, x2: Any) -> Any:
            x, y = promotion(name, x1, x2)
            if x.aval.weak_type != y.aval.weak_type:
                # Whatever of the two the result is made of, it is not weak.
                x, y = convert(x, x.aval.dtype), convert(y, y.aval.dtype)
            return compute(x, y)

        return Binary(
            function,
            name=name,
            identity=identity,
            mixed=mixed,
            doc=describe(
                name,
                summary,
                _PAIR,
                returns or "Array of the broadcast shape and the common dtype.",
                special,
                raises or "the dtypes do not combine.",
            ),
        )

    return decorate


def primitive_binary(
    name: str,
    summary: str,
    primitive: str,
    *,
    identity: Any = None,
    returns: str = "",
    special: str = "",
    on_bool: str = "",
    promotion: Callable[..., Sequence[Array]] = promote,
) -> Binary[Array]:
    """Declares a function of two arrays that is one primitive.

    Args:
      name: of the function.
      summary: first line of its docstring.
      primitive: name of the primitive.
      identity: see `ufunc`.
      returns: what it returns, in words.
      special: special cases, in words.
      on_bool: name of the primitive for bools, if it is another one.
      promotion: from the arguments to arrays of one dtype and shape.
    """
    bind = table[primitive].bind
    bind_bool = table[on_bool].bind if on_bool else bind
    float_only = promotion is not promote

    def function(x1: Any, x2: Any) -> Any:
        aval: Any = getattr(x1, "aval", None)
        # Types are interned: operands of one type need neither promotion nor
        # broadcasting.
        if aval is None or aval is not getattr(x2, "aval", None) or float_only:
            x1, x2 = promotion(name, x1, x2)
            aval = x1.aval
        if on_bool and dtypes.is_bool(aval.dtype):
            return bind_bool(x1, x2)
        return bind(x1, x2)

    return Binary(
        function,
        name=name,
        identity=identity,
        doc=describe(
            name,
            summary,
            _PAIR,
            returns or "Array of the broadcast shape and the common dtype.",
            special,
            "the dtypes do not combine, or the operation does not take them.",
        ),
    )
