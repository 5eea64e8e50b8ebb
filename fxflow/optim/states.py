"""Reads and replaces parts of optimizer states, by name or for each parameter.

The functions are public as `fxflow.optim.tree.get` and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from fxflow.core import tree as pytrees

Tree = Any
Filter = Callable[[tuple[Any, ...], Any], bool]


@dataclass(frozen=True)
class NamedTupleKey:
    """The path key of a field of a named tuple.

    Attributes:
      tuple_name: name of the class.
      name: name of the field.
    """

    tuple_name: str
    name: str

    def __str__(self) -> str:
        return f"{self.tuple_name}.{self.name}"


def _parts(value: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Returns the parts of a node with their keys, and the node's treedef."""
    found, treedef = pytrees.flatten_with_path(value, is_leaf=lambda x: x is not value)
    named = isinstance(value, tuple) and hasattr(value, "_fields")
    parts = []
    for (key,), part in ((path[:1], part) for path, part in found if path):
        name = getattr(key, "name", None)
        if named and name is not None:
            key = NamedTupleKey(type(value).__name__, name)
        parts.append((key, part))
    return parts, treedef


def _name(key: Any) -> Any:
    """Returns the name of a path key."""
    for attribute in ("name", "key", "idx"):
        if hasattr(key, attribute):
            return getattr(key, attribute)
    return key


def _named(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yields all parts of a tree with their paths, outer ones first."""
    for key, part in _parts(value)[0]:
        yield (*path, key), part
        yield from _named(part, (*path, key))


def get_all_with_path(
    tree: Tree, key: Hashable, filtering: Filter | None = None
) -> list[tuple[tuple[Any, ...], Any]]:
    """Returns all parts of a tree with a given name, and their paths.

    Args:
      tree: pytree, such as the state of an optimizer.
      key: key of a dictionary, or name of a field.
      filtering: `filtering(path, value)` returns whether to keep a part; None keeps
        all.

    Returns:
      Pairs of a path (a tuple of keys, `NamedTupleKey` for a named tuple's field) and
      a value.

    Example:
      >>> state = optim.adam(0.1).init(fnp.zeros(2))
      >>> [(path, count)] = optim.tree.get_all_with_path(state, "count")
      >>> str(path[-1])
      'ScaleByAdamState.count'
    """
    return [
        (path, value)
        for path, value in _named(tree, ())
        if _name(path[-1]) == key and (filtering is None or filtering(path, value))
    ]


def get(
    tree: Tree, key: Hashable, default: Any = None, filtering: Filter | None = None
) -> Any:
    """Returns the part of a tree with a given name.

    Args:
      tree: pytree, such as the state of an optimizer.
      key: key of a dictionary, or name of a field.
      default: the result if no part has the name.
      filtering: `filtering(path, value)` returns whether to keep a part; None keeps
        all.

    Returns:
      The value.

    Raises:
      KeyError: several parts have the name.

    Example:
      >>> state = optim.adam(0.1).init(fnp.zeros(2))
      >>> optim.tree.get(state, "mu").tolist()
      [0.0, 0.0]
    """
    found = get_all_with_path(tree, key, filtering)
    if len(found) > 1:
        places = "; ".join(" ".join(map(str, path)) for path, _ in found)
        raise KeyError(
            f"get: {len(found)} parts have the name {key!r} ({places}): choose one by "
            "filtering, or use get_all_with_path"
        )
    return found[0][1] if found else default


def set(tree: Tree, filtering: Filter | None = None, /, **kwargs: Any) -> Tree:
    """Returns a tree with other values for parts with given names.

    Args:
      tree: pytree, such as the state of an optimizer.
      filtering: `filtering(path, value)` returns whether to replace a part; None
        replaces all.
      **kwargs: the new values, by name.

    Returns:
      A new tree.

    Raises:
      KeyError: no part has one of the names.

    Example:
      >>> tx = optim.inject_hyperparams(optim.sgd)(0.1)
      >>> state = optim.tree.set(tx.init(fnp.zeros(2)), learning_rate=fnp.asarray(0.5))
      >>> float(optim.tree.get(state, "learning_rate"))
      0.5
    """
    unseen = dict(kwargs)

    def one(value: Any, path: tuple[Any, ...]) -> Any:
        parts, treedef = _parts(value)
        if not parts:
            return value
        new = []
        for key, part in parts:
            here, name = (*path, key), _name(key)
            if name in kwargs and (filtering is None or filtering(here, part)):
                unseen.pop(name, None)
                new.append(kwargs[name])
            else:
                new.append(one(part, here))
        return treedef.unflatten(new)

    changed = one(tree, ())
    if unseen:
        raise KeyError(f"set: the tree has no part of the name {', '.join(unseen)}")
    return changed


class _Params:
    """A placeholder for all parameters, for `map_params`."""


def is_placeholder(x: Any) -> bool:
    """Returns whether `x` is the placeholder that `map_params` passes to `init`.

    Args:
      x: any object.

    Returns:
      True or False.
    """
    return isinstance(x, _Params)


pytrees.register_pytree_node(
    _Params, lambda x: ((), None), lambda aux, parts: _Params()
)


def map_params(
    initable: Any,
    f: Callable[..., Any],
    state: Tree,
    /,
    *rest: Tree,
    transform_non_params: Callable[..., Any] | None = None,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Tree:
    """Returns a state with a function applied to the leaves that belong to parameters.

    Args:
      initable: a transformation, or its `init`.
      f: takes a leaf of the state, and the corresponding leaves of `rest`.
      state: a state that `initable` made.
      *rest: trees of the parameters' structure.
      transform_non_params: takes any other leaf of the state; None does not change it.
      is_leaf: returns whether to treat a value as a leaf.

    Returns:
      A pytree of the structure of the state.

    Example:
      >>> tx = optim.adam(0.1)
      >>> state = tx.init({"w": fnp.zeros(2)})
      >>> named = optim.tree.map_params(tx, lambda x, name: name, state, {"w": "P(i)"})
      >>> named[0].mu, named[0].count.shape
      ({'w': 'P(i)'}, ())
    """
    init = getattr(initable, "init", initable)
    pattern = init(_Params())

    def one(place: Any, part: Any) -> Any:
        if is_placeholder(place):
            return pytrees.map(f, part, *rest, is_leaf=is_leaf)
        if transform_non_params is None:
            return part
        return pytrees.map(transform_non_params, part, is_leaf=is_leaf)

    return pytrees.map(one, pattern, state, is_leaf=is_placeholder)
