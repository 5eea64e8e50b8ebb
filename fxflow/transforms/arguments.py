"""The arguments of transformed functions: which are chosen, how they are called."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fxflow.core import tree
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])


def transformed(function: Any, transform: str) -> Callable[[F], F]:
    """Returns a decorator for what a transform makes of a function.

    The result has the function's text and signature, and a name that tells what it is:
    `grad(bump)` is what graphs, profiles and tracebacks call it.
    """

    def decorate(made: F) -> F:
        functools.update_wrapper(made, function)
        made.__name__ = made.__qualname__ = f"{transform}({name_of(function)})"
        return made

    return decorate


def global_name(function: Any) -> str | None:
    """Returns the name under which pickle finds a function in its module, or None."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", None)
    if module is None or name is None:
        return None
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return str(name) if found is function else None


def require_callable(function: Any, transform: str) -> None:
    """Checks that a transform is given a function that returns its result.

    Raises:
      ArgumentError: it is something else (the usual mistake: its result), or a function
        that a call does not run: a generator or coroutine function.
    """
    if isinstance(function, staticmethod | classmethod):
        kind = type(function).__name__
        raise ArgumentError(
            f"{transform} takes a function, got a {kind}: put @{kind} outside, above "
            f"@{transform}"
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ArgumentError(
            f"{transform} takes a function that returns its result, got the generator "
            f"function {name_of(function)}: return a list or a tuple"
        )
    if inspect.iscoroutinefunction(function):
        raise ArgumentError(
            f"{transform} takes a function that returns its result, got the coroutine "
            f"function {name_of(function)}: await outside of it"
        )
    if not callable(function):
        raise ArgumentError(
            f"{transform} takes a function, got {type(function).__name__} "
            f"{str(function)[:60]}: pass the function itself, not its result"
        )


def as_indices(value: Any, what: str) -> tuple[int, ...]:
    """Returns positions as a tuple.

    Args:
      value: an int, a sequence of ints, or None.
      what: name of the option, for messages.

    Raises:
      ArgumentError: it is something else.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        raise ArgumentError(f"{what} takes positions (ints), got the name {value!r}")
    items = tuple(value) if isinstance(value, Iterable) else (value,)
    try:
        return tuple(i.__index__() for i in items)
    except (AttributeError, TypeError):
        raise ArgumentError(
            f"{what} takes an int or a sequence of ints, got {value!r}"
        ) from None


def require_axes(axes: Any, what: str) -> None:
    """Checks that a pytree of mapped axes holds ints and Nones.

    Args:
      axes: an int, None, or a pytree of them.
      what: names the option in messages.

    Raises:
      ArgumentError: it holds something else.
    """
    for axis in tree.leaves(axes):
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise ArgumentError(
                f"{what} must be an int, None, or a pytree of them, got {axis!r} of "
                f"type {type(axis).__name__}"
            )


def as_names(value: Any, what: str) -> tuple[str, ...]:
    """Returns names as a tuple.

    Raises:
      ArgumentError: `value` is no string or sequence of strings.
    """
    if value is None:
        return ()
    try:
        items = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        items = (value,)
    for item in items:
        if not isinstance(item, str):
            raise ArgumentError(f"{what} takes argument names, got {item!r}")
    return items


def normalize_indices(
    indices: Sequence[int], count: int, what: str, name: str
) -> tuple[int, ...]:
    """Returns positions counted from the front.

    Args:
      indices: positions, possibly negative.
      count: number of positional arguments.
      what: name of the option, for messages.
      name: of the function, for messages.

    Raises:
      ArgumentError: a position is out of range or named twice.
    """
    result = []
    for index in indices:
        if not -count <= index < count:
            raise ArgumentError(
                f"{what}={index} is out of range: {name} was called with {count} "
                f"positional argument{'s' * (count != 1)}"
            )
        result.append(index % count)
    if len(set(result)) != len(result):
        raise ArgumentError(
            f"{what}={tuple(indices)} names an argument of {name} twice"
        )
    return tuple(result)


def pick(
    args: Sequence[Any], indices: Sequence[int]
) -> tuple[list[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Returns the chosen arguments, and a function that replaces them."""
    fixed = list(args)

    def put_back(chosen: Sequence[Any]) -> list[Any]:
        out = list(fixed)
        for index, value in zip(indices, chosen, strict=True):
            out[index] = value
        return out

    return [args[i] for i in indices], put_back
