"""Symbolic sizes of exported functions: parsed from text, and resolved by each call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fxflow.core.arrays import Aval
from fxflow.core.sizes import NO_SCOPE, Scope, Size, evaluated, names_of
from fxflow.core.sizes.solving import Equation, solved
from fxflow.core.sizes.texts import parsed
from fxflow.errors import ExportError, ShapeError

Shape = tuple[Any, ...]


def is_symbolic_dim(dim: Any) -> bool:
    """Returns whether the length of an axis is a symbolic size.

    Args:
      dim: an entry of a shape.

    Returns:
      False for integers.

    Example:
      >>> is_symbolic_dim(3)
      False

    Source: `jax.export.is_symbolic_dim`.
    """
    return isinstance(dim, Size)


def parse_shape(texts: Sequence[str], scope: Scope = NO_SCOPE) -> Shape:
    """Parses a shape in an artifact.

    Args:
      texts: the length of each axis as text.
      scope: scope of the names.

    Raises:
      ExportError: a text is not a size.
    """
    return tuple(_length(text, scope) for text in texts)


def _length(text: str, scope: Scope) -> Any:
    try:
        size = parsed(text, scope)
    except ValueError as error:
        raise _wrong(str(error)) from None
    if isinstance(size, int) and size < 0:
        raise _wrong(repr(text))
    return size


def _wrong(what: str) -> ExportError:
    return ExportError(f"the artifact has {what} as the length of an axis")


# -- at a call -------------------------------------------------------------------------


def solve(
    expected: Sequence[Aval],
    shapes: Sequence[tuple[Any, ...]],
    name: str,
    labels: Sequence[str] = (),
) -> dict[str, Any]:
    """Returns the values of symbolic sizes in a call, by name.

    Args:
      expected: types of the arguments.
      shapes: shapes of the given arguments, of the same ranks; symbolic if the call is
        itself being exported.
      name: name of the function, for messages.
      labels: names of the arguments, for messages.

    Raises:
      ShapeError: the shapes contradict the types, leave a name undetermined, or violate
        a constraint.
    """
    listed = labels or [f"argument {i}" for i in range(len(expected))]
    pairs: list[Any] = [
        (size, length, f"axis {axis} of {label}, {aval},")
        for aval, shape, label in zip(expected, shapes, listed, strict=True)
        for axis, (size, length) in enumerate(zip(aval.shape, shape, strict=True))
    ]
    equations = [Equation(*pair) for pair in pairs if isinstance(pair[0], Size)]
    steps, missing = solved(equations)
    known: dict[str, Any] = {}
    for (_, length, what), unknown, factor, rest in steps:
        if unknown is None:
            continue
        value, remainder = divmod(length - evaluated(rest, known), factor)
        if remainder != 0 or value < 1:
            where = f" with {_values(known)}" if known and rest != 0 else ""
            raise ShapeError(
                f"{name}: {what} is {length}, for which there is no {unknown} ≥ 1"
                f"{where}"
            )
        known[unknown] = value
    if missing:
        raise ShapeError(
            f"{name}: the shapes of the arguments do not determine "
            f"{', '.join(sorted(missing))} in {', '.join(map(str, expected))}"
        )
    for (size, length, what), unknown, *_ in steps:
        if unknown is None and size.evaluate(known) != length:
            raise ShapeError(
                f"{name}: {what} is {length}, but {size} is {size.evaluate(known)} for "
                f"{_values(known)}"
            )
    scope = equations[0].size.scope if equations else NO_SCOPE
    for text, size, exact in scope.checks:
        if not names_of(size) <= known.keys():
            continue
        value = evaluated(size, known)
        if value != 0 if exact else value < 0:
            given = {n: known[n] for n in names_of(size)}
            raise ShapeError(
                f"{name}: {text}, which it was exported for, does not hold for "
                f"{_values(given)} in {', '.join(map(str, expected))}"
            )
    return known


def _values(known: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(known.items()))


def settled(aval: Aval, known: Mapping[str, Any]) -> Aval:
    """Substitutes the values of symbolic sizes in a type.

    Raises:
      ShapeError: a length would be negative, or a name is undetermined.
    """
    shape: list[Any] = list(aval.shape)
    for i, n in enumerate(shape):
        if isinstance(n, Size):
            if n.names() - known.keys():
                raise ShapeError(f"no argument determines the axis {n} of {aval}")
            n = n.evaluate(known)
        if isinstance(n, int) and n < 0:
            raise ShapeError(f"an axis of {aval} would be {n} for {_values(known)}")
        shape[i] = n
    return Aval(tuple(shape), aval.dtype)
