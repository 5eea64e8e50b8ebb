"""Arguments of transformed functions: which are chosen, their names, their leaves.

For `jit` also its options and, with `Bound`, the arguments of one call.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

from fxflow.core import tree
from fxflow.core.arrays import (
    Array,
    ShapeDtypeStruct,
    as_array,
    dtypes,
    is_arraylike,
    not_an_array,
)
from fxflow.core.arrays.array import kind_of
from fxflow.core.ir.references import Ref
from fxflow.core.labels import leaf_labels, parameter_names, signature_of, tree_labels
from fxflow.core.source import name_of, wraps
from fxflow.errors import ArgumentError, NonHashableStaticError
from fxflow.lax.transfer import as_sharding, is_sharding_leaf, require_fit

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
P2 = ParamSpec("P2")
R = TypeVar("R")
S = TypeVar("S")


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
        self: Callable[Concatenate[S, P2], R], instance: S, owner: Any = None
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
                + ", and those passed by name do not count"
                * (not count)
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
    # A derivative with respect to integers stays the NumPy array of nothing that it is;
    # what is not an array is what `is_leaf` took for one.
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
        self.fun: Callable[..., Any] = fun
        self.in_tree: Any = in_tree
        self.name: str = name
        self.has_aux: bool = has_aux
        self.keywords: bool = keywords
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
            if not isinstance(leaf, Array) and not is_arraylike(leaf):
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


# -- options of `jit` ------------------------------------------------------------------


def resolve_names(
    fun: Any, argnums: Sequence[int], argnames: Sequence[str], what: str
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Returns positions and names of the same arguments, completed from each other.

    Args:
      fun: the function.
      argnums: positions.
      argnames: names.
      what: `static` or `donate`, for messages.

    Raises:
      ArgumentError: the function has no such parameter.
    """
    if not (argnums or argnames):
        return (), ()
    signature = signature_of(fun)
    if signature is None:
        return tuple(argnums), tuple(argnames)
    parameters = list(signature.parameters.values())
    positional = [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    names = [p.name for p in parameters]
    for name in argnames:
        if name not in names and not keywords:
            raise ArgumentError(
                f"jit: {what}_argnames={name!r} is not a parameter of "
                f"{name_of(fun)}, which has {', '.join(names) or 'none'}"
            )
    for index in argnums:
        if not variadic and not -len(positional) <= index < len(positional):
            raise ArgumentError(
                f"jit: {what}_argnums={index} is out of range for {name_of(fun)}, "
                f"which has {len(positional)} positional "
                f"parameter{'s' * (len(positional) != 1)}"
            )
    numbers = set(argnums) | {
        positional.index(name) for name in argnames if name in positional
    }
    named = set(argnames) | {
        positional[i]
        for i in numbers
        if -len(positional) <= i < len(positional)
        and signature.parameters[positional[i]].kind
        # A positional-only parameter cannot be called by name.
        is not inspect.Parameter.POSITIONAL_ONLY
    }
    return tuple(sorted(numbers)), tuple(sorted(named))


def frozen_shardings(shardings: Any) -> Any:
    """Returns shardings, a tree of them or None, as a part of a key.

    Raises:
      ArgumentError: a leaf cannot be hashed, so it is not a sharding.
    """
    if shardings is None:
        return None
    leaves, treedef = tree.flatten(shardings, is_sharding_leaf)
    try:
        hash(tuple(leaves))
    except TypeError:
        raise ArgumentError(
            "jit: in_shardings and out_shardings are Shardings, specs, None, or trees "
            f"of them, got {shardings!r}"
        ) from None
    return (tuple(leaves), treedef)


def prefixed_shardings(
    wanted: Any, structure: Any, avals: Sequence[Any], what: str, name: str
) -> list[Any]:
    """Returns a sharding or None for each leaf of a structure.

    Args:
      wanted: pytree of shardings, specs or None: a prefix.
      structure: of the arguments or the results.
      avals: their types.
      what: `in_shardings` or `out_shardings`.
      name: of the function.
    """
    count = structure.num_leaves
    label = f"jit({name}): {what}"
    full = structure.unflatten(range(count))
    given = tree.broadcast_prefix(wanted, full, is_leaf=is_sharding_leaf, name=label)
    shardings = [None if w is None else as_sharding(w, label) for w in given]
    for where, aval in zip(shardings, avals, strict=True):
        if where is not None:
            require_fit(where, aval, label)
    return shardings


# -- of one call -----------------------------------------------------------------------


class Bound:
    """The arguments of one call, static ones apart."""

    jitted: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    treedef: Any
    statics: tuple[Any, ...]
    positions: list[int]

    def __init__(
        self,
        jitted: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.jitted, self.args, self.kwargs = jitted, args, kwargs
        self.leaves, self.treedef, self.statics = jitted._split(args, kwargs)
        static = {name for name, _, _ in self.statics}
        self.positions = [i for i in range(len(args)) if i not in static]
        for i, leaf in enumerate(self.leaves):
            if type(leaf) is Array:
                continue
            if not is_arraylike(leaf) and not isinstance(leaf, ShapeDtypeStruct | Ref):
                label = self.labels()[i]
                what = f"{jitted._name}: argument {label} of a jitted function is"
                error = not_an_array(leaf, what, label)
                if isinstance(leaf, str) or callable(leaf):
                    raise ArgumentError(f"{error}, or make it static: static_argnames")
                if label != "self" and hasattr(leaf, "__dict__"):
                    raise ArgumentError(
                        f"{error}, register its class as a pytree "
                        "(fxflow.tree.register_dataclass), or make it static: "
                        "static_argnames"
                    )
                raise error

    def static_key(self) -> tuple[Any, ...]:
        """Returns the static arguments as part of a cache key."""
        try:
            # The tuple at once; which one it is matters only for the message.
            hash(self.statics)
        except TypeError:
            for name, value in self.static_named().items():
                try:
                    hash(value)
                except TypeError:
                    raise NonHashableStaticError(
                        f"{self.jitted._name}: static argument {name} of type "
                        f"{type(value).__name__} cannot be hashed: "
                        f"{_hashable_instead(value)}"
                    ) from None
            raise
        return self.statics

    def static_named(self) -> dict[str, Any]:
        """Returns the static arguments by name."""
        if not self.statics:
            return {}
        names = parameter_names(self.jitted._fun, len(self.args))
        return {names[k] if isinstance(k, int) else k: v for k, _, v in self.statics}

    def partial(self) -> Callable[..., Any]:
        """Returns the function of the other arguments."""
        fun = self.jitted._fun
        named = {k: v for k, _, v in self.statics if isinstance(k, str)}
        fixed = {k: v for k, _, v in self.statics if isinstance(k, int)}
        positions = sorted(fixed)
        partial = functools.partial(fun, **named) if named else fun
        return with_fixed(partial, positions, [fixed[i] for i in positions])

    def dynamic(self) -> tuple[Any, ...]:
        """Returns the positional arguments that are not static."""
        return tuple(self.args[i] for i in self.positions)

    def named(self) -> dict[str, Any]:
        """Returns the keyword arguments that are not static."""
        static = {name for name, _, _ in self.statics}
        return {k: v for k, v in self.kwargs.items() if k not in static}

    def labels(self) -> list[str]:
        """Returns the names of the leaves."""
        fun = self.jitted._fun
        return leaf_labels(fun, self.args, self.named(), self.positions)

    def names(self, avals: Sequence[Any]) -> Callable[[Any], list[str]]:
        """Returns what gives the names of the leaves of the function, once asked.

        It keeps neither the arguments nor the function alive.

        Args:
          avals: types of the leaves, which stand for them.
        """
        treedef, positions, count = self.treedef, self.positions, len(self.args)

        def names(fun: Any) -> list[str]:
            dynamic, named = treedef.unflatten(avals)
            args = dict(zip(positions, dynamic, strict=True))
            given = [args.get(i) for i in range(count)]
            return leaf_labels(fun, given, named, positions)

        return names

    def donated(self) -> list[bool]:
        """Returns which leaves are donated."""
        count, names = len(self.args), self.jitted._donate_argnames
        give = {i % count if i < 0 else i for i in self.jitted._donate_argnums}
        if not give and not names:
            return [False] * len(self.leaves)
        named = self.named()
        flags = [i in give for i in self.positions], {k: k in names for k in named}
        return tree.broadcast_prefix(flags, ([*self.dynamic()], named))


def weakly(fun: Any) -> Callable[[], Any]:
    """Returns what gives a function back, without keeping it alive."""
    try:
        return weakref.ref(fun)
    except TypeError:  # some callable objects cannot be referred to weakly
        return lambda: fun


def _hashable_instead(value: Any) -> str:
    """Says what to do about a static argument that cannot be hashed."""
    if isinstance(value, list):
        return "pass a tuple"
    if isinstance(value, set):
        return "pass a frozenset"
    if isinstance(value, dict):
        return (
            "pass its items as a tuple, tuple(d.items()), or make it an ordinary "
            "argument if its values are arrays or numbers"
        )
    if is_arraylike(value):
        return "make it an ordinary argument, since it is an array"
    return "give its class __hash__ and __eq__, or make it an ordinary argument"
