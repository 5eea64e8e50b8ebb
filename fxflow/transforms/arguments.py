"""Arguments of transformed functions: which are chosen, their names, their leaves."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from fxflow.core import tree
from fxflow.core.arrays import Array, as_array, dtypes, is_arraylike, not_an_array
from fxflow.core.arrays.array import kind_of
from fxflow.core.ir.references import Ref
from fxflow.core.labels import tree_labels
from fxflow.core.source import name_of, wraps
from fxflow.errors import ArgumentError

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
P2 = ParamSpec("P2")
R = TypeVar("R")


def transformed(function: Any, transform: str) -> Callable[[F], F]:
    """Returns a decorator for what a transform makes of a function.

    The result has the function's text and signature, and a name that tells what it is:
    `grad(bump)` is what graphs, profiles and tracebacks call it.
    """

    def decorate(made: F) -> F:
        made = wraps(function)(made)
        made.__name__ = made.__qualname__ = f"{transform}({name_of(function)})"
        return made

    return decorate


class Bindable(Generic[P, R]):
    """A callable object that is a method where a class has it, as functions are."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls the function."""
        raise NotImplementedError

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(
        self: Bindable[Concatenate[Any, P2], R], instance: object, owner: Any = None
    ) -> Callable[P2, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


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
      ArgumentError: `value` is not a string or sequence of strings.
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

    def put_back(chosen: Sequence[Any]) -> list[Any]:
        out = list(args)
        for index, value in zip(indices, chosen, strict=True):
            out[index] = value
        return out

    return [args[i] for i in indices], put_back


def without(args: Sequence[Any], positions: Sequence[int]) -> tuple[Any, ...]:
    """Returns the arguments that are not at these positions."""
    return tuple(a for i, a in enumerate(args) if i not in positions)


def joined(
    positions: Sequence[int], fixed: Sequence[Any], others: Sequence[Any]
) -> list[Any]:
    """Returns all arguments: those at these positions, in order, among the others."""
    args = list(others)
    for position, value in zip(positions, fixed, strict=True):
        args.insert(position, value)
    return args


def with_fixed(
    fun: Callable[..., Any], positions: Sequence[int], fixed: Sequence[Any]
) -> Callable[..., Any]:
    """Returns a function of the other arguments only; see `joined`."""
    if not positions:
        return fun

    def applied(*others: Any, **keywords: Any) -> Any:
        return fun(*joined(positions, fixed, others), **keywords)

    return applied


# -- leaves ----------------------------------------------------------------------------


def _as_result(value: Any) -> Any:
    # A derivative by integers stays the NumPy array of nothing that it is; what is not
    # an array is what `is_leaf` took for one.
    if isinstance(value, Array) or getattr(value, "dtype", None) == dtypes.float0:
        return value
    return as_array(value) if is_arraylike(value) else value


class FlatFunction:
    """Takes and returns flat lists; remembers the structure of what was returned.

    Args:
      fun: function of pytrees.
      in_tree: structure of `(args, kwargs)` if `keywords`, else of `args`.
      name: of the function, for messages.
      has_aux: whether it returns `(result, aux)`.
      keywords: see `in_tree`.
      labels: gives the names of the leaves in messages, if `fun` does not tell.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        in_tree: Any,
        name: str,
        *,
        has_aux: bool = False,
        keywords: bool = False,
        labels: Callable[[], list[str]] | None = None,
    ) -> None:
        self.fun, self.in_tree, self.name = fun, in_tree, name
        self.has_aux, self.keywords = has_aux, keywords
        self.labels: Callable[[], list[str]] = labels or (
            lambda: tree_labels(fun, in_tree, keywords)
        )
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.others: list[tuple[Any] | None] = []
        self.count: int = 0

    def __call__(self, *leaves: Any) -> list[Any]:
        """Returns the leaves of the result, then those of `aux`.

        Raises:
          ArgumentError: a leaf is not an array, or there is no pair although `has_aux`.
        """
        given = self.in_tree.unflatten(leaves)
        args, kwargs = given if self.keywords else (given, {})
        out = self.fun(*args, **kwargs)
        aux: Any = None
        if self.has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise ArgumentError(
                    f"has_aux=True needs {self.name} to return a pair (result, aux), "
                    f"got {kind_of(out)}"
                )
            out, aux = out
        flat, self.out_tree = tree.flatten(out)
        self.count = len(flat)
        for i, leaf in enumerate(flat):
            if not is_arraylike(leaf):
                path = tree.leaves_with_path(out)[i][0]
                where = tree.keystr(path)
                if isinstance(leaf, Ref):
                    raise ArgumentError(
                        f"{self.name} returned a reference {leaf.aval}"
                        f"{f' at {where}' if where else ''}, which belongs to the code "
                        "that made it: return its contents, ref[...]"
                    )
                raise not_an_array(
                    leaf,
                    f"{self.name} returned{f' at {where}' if where else ''}",
                )
        if self.has_aux:
            extra, self.aux_tree = tree.flatten(aux)
            # What is not an array goes around the transformation, as it is.
            self.others = [None if is_arraylike(x) else (x,) for x in extra]
            flat = [*flat, *(x for x in extra if is_arraylike(x))]
        return flat

    def result(self, outs: Sequence[Any]) -> Any:
        """Returns the result from the flat list; numbers become arrays."""
        return self.out_tree.unflatten(map(_as_result, outs[: self.count]))

    def aux(self, outs: Sequence[Any]) -> Any:
        """Returns `aux` from the flat list."""
        given = iter(outs[self.count :])
        return self.aux_tree.unflatten(
            [next(given) if other is None else other[0] for other in self.others]
        )
