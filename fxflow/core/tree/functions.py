"""Functions of trees: mapping, reducing, comparing, broadcasting."""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from fxflow.core.tree.flattening import (
    IsLeaf,
    flatten,
    flatten_up_to,
    flatten_with_path,
    leaves,
    structure,
)
from fxflow.core.tree.paths import begins_alike, written
from fxflow.devices import trees
from fxflow.devices.trees import PyTreeDef, registry
from fxflow.errors import TreeError

if TYPE_CHECKING:
    from fxflow.core.arrays import Array

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")

_MISSING = object()

# -- working on trees ------------------------------------------------------------------


# The items of a container may be trees themselves, and `f` may change the types of
# leaves, so those are open. A function that returns arrays keeps the type of a class.
@overload
def map(
    f: Callable[..., Any], tree: dict[K, Any], *rest: Any, is_leaf: IsLeaf = None
) -> dict[K, Any]: ...
@overload
def map(
    f: Callable[..., Any], tree: list[Any], *rest: Any, is_leaf: IsLeaf = None
) -> list[Any]: ...
@overload
def map(f: Callable[..., Array], tree: T, *rest: Any, is_leaf: IsLeaf = None) -> T: ...
@overload
def map(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None
) -> Any: ...
def map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Applies a function to each leaf.

    Args:
      f: takes a leaf of `tree`, and the subtree of each of `rest` at its path.
      tree: any tree; it gives the result its structure.
      *rest: trees that begin with the same structure.
      is_leaf: called with each subtree of `tree`; True makes it a leaf.

    Returns:
      A tree of the same structure as `tree`.

    Raises:
      TreeError: one of `rest` does not begin with the structure of `tree`.

    Example:
      >>> map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
      {'a': 11, 'b': (22,)}

      A step of gradient descent on a tree:

      >>> params, slopes = {"w": [1.0, 2.0], "b": 3.0}, {"w": [1.0, 1.0], "b": 2.0}
      >>> map(lambda p, g: p - 0.5 * g, params, slopes)
      {'b': 2.0, 'w': [0.5, 1.5]}
    """
    first, treedef = flatten(tree, is_leaf)
    if not rest:
        return treedef.unflatten(builtins.map(f, first))
    others = [flatten_up_to(treedef, other, name="tree.map") for other in rest]
    return treedef.unflatten(builtins.map(f, first, *others))


def map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Applies a function to each leaf and its path.

    Args:
      f: takes the path, then what `map` passes.
      tree: any tree.
      *rest: trees that begin with the same structure.
      is_leaf: called with each subtree of `tree`; True makes it a leaf.
      is_leaf_takes_path: call `is_leaf(path, subtree)` instead.

    Returns:
      A tree of the same structure as `tree`.

    Raises:
      TreeError: one of `rest` does not begin with the structure of `tree`.

    Example:
      >>> map_with_path(lambda path, x: fxflow.tree.keystr(path), {"w": [1, 2]})
      {'w': ["['w'][0]", "['w'][1]"]}
    """
    pairs, treedef = flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [flatten_up_to(treedef, x, name="tree.map_with_path") for x in rest]
    values = [
        f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)
    ]
    return treedef.unflatten(values)


@overload
def reduce(
    function: Callable[[R, Any], R], tree: Any, initializer: R, is_leaf: IsLeaf = None
) -> R: ...
@overload
def reduce(
    function: Callable[[Any, Any], R],
    tree: Any,
    initializer: Any = ...,
    is_leaf: IsLeaf = None,
) -> R: ...
def reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combines the leaves from left to right.

    Args:
      function: takes the result so far and a leaf.
      tree: any tree.
      initializer: what to begin with; left out, the first leaf.
      is_leaf: called with each subtree; True makes it a leaf.

    Returns:
      The last result.

    Raises:
      TypeError: the tree has no leaves and there is no `initializer`.

    Example:
      >>> reduce(lambda total, x: total + x, {"a": 1, "b": [2, 3]}, 10)
      16
    """
    values = leaves(tree, is_leaf)
    if initializer is not _MISSING:
        return functools.reduce(function, values, initializer)
    if not values:
        raise TypeError("tree.reduce: the tree has no leaves; pass initializer")
    return functools.reduce(function, values)


def reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _MISSING,
    is_leaf: IsLeaf = None,
) -> Any:
    """Combines the leaves in pairs, so that the depth is logarithmic.

    Args:
      operation: an associative function of two values.
      tree: any tree.
      identity: the result for a tree without leaves.
      is_leaf: called with each subtree; True makes it a leaf.

    Returns:
      The combination of all leaves, in order.

    Raises:
      TypeError: the tree has no leaves and there is no `identity`.

    Example:
      >>> reduce_associative(lambda x, y: f"({x}{y})", list("abcde"))
      '((ab)(c(de)))'
    """
    values = leaves(tree, is_leaf)
    if not values:
        if identity is _MISSING:
            raise TypeError(
                "tree.reduce_associative: the tree has no leaves; pass identity"
            )
        return identity

    def combine(low: int, high: int) -> Any:
        if high - low == 1:
            return values[low]
        middle = (low + high) // 2
        return operation(combine(low, middle), combine(middle, high))

    return combine(0, len(values))


def all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Whether all leaves are true.

    Args:
      tree: any tree.
      is_leaf: called with each subtree; True makes it a leaf.

    Returns:
      True or False; True for a tree without leaves.

    Example:
      >>> all({"a": True, "b": [1, 0]})
      False
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(
    outer_treedef: PyTreeDef,
    inner_treedef: PyTreeDef | None,
    pytree_to_transpose: Any,
) -> Any:
    """Turns a tree of trees inside out.

    Args:
      outer_treedef: the structure outside.
      inner_treedef: the structure inside; None takes that of the first subtree.
      pytree_to_transpose: a tree with that structure.

    Returns:
      A tree with `inner_treedef` outside and `outer_treedef` inside.

    Raises:
      TreeError: the tree does not have that structure. Containers that flatten what
        they hold, and so have other children in the tree than in `outer_treedef`, are
        compared by their number of leaves.

    Example:
      >>> transpose(structure([0, 0]), structure((0, 0, 0)), [(1, 2, 3), (4, 5, 6)])
      ([1, 4], [2, 5], [3, 6])
    """
    name = "tree.transpose"
    try:
        subtrees = flatten_up_to(outer_treedef, pytree_to_transpose, name=name)
    except TreeError:
        values = leaves(pytree_to_transpose)
        if (
            inner_treedef is None
            or len(values) != outer_treedef.num_leaves * inner_treedef.num_leaves
            or not begins_alike(outer_treedef, pytree_to_transpose)
        ):
            raise
        # A container that flattens what it holds: all leaves are its children.
        step = max(inner_treedef.num_leaves, 1)
        subtrees = [
            inner_treedef.unflatten(values[i : i + step])
            for i in range(0, len(values), step)
        ]
    if inner_treedef is None:
        if not subtrees:
            raise TreeError(
                f"{name}: inner_treedef is needed, because "
                f"{written(outer_treedef)} has no leaf to take it from"
            )
        inner_treedef = structure(subtrees[0])
    rows = []
    for index, subtree in enumerate(subtrees):
        row = flatten_up_to(inner_treedef, subtree, name=f"{name}: subtree {index}")
        if not trees.all_leaves(row):
            raise TreeError(
                f"{name}: expected each subtree to have structure "
                f"{written(inner_treedef)}, got {written(structure(subtree))}"
            )
        rows.append(row)
    columns = zip(*rows, strict=True) if rows else [()] * inner_treedef.num_leaves
    return inner_treedef.unflatten([outer_treedef.unflatten(c) for c in columns])


def broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Repeats the leaves of a prefix so that it has the structure of the full tree.

    Args:
      prefix_tree: a tree that `full_tree` begins with.
      full_tree: the tree whose structure the result has.
      is_leaf: called with each subtree of `prefix_tree`; True makes it a leaf.

    Returns:
      A tree of the structure of `full_tree` with the leaves of `prefix_tree`.

    Raises:
      TreeError: `full_tree` does not begin with the structure of `prefix_tree`.

    Example:
      >>> broadcast((0, None), ([1, 2], {"a": 3}), is_leaf=lambda x: x is None)
      ([0, 0], {'a': None})
    """
    return structure(full_tree).unflatten(
        broadcast_prefix(prefix_tree, full_tree, is_leaf, name="tree.broadcast")
    )


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: IsLeaf = None,
    *,
    name: str = "tree.broadcast_prefix",
) -> list[Any]:
    """Returns, for each leaf of the full tree, the leaf of the prefix above it.

    Args:
      prefix_tree: a tree that `full_tree` begins with.
      full_tree: any tree.
      is_leaf: called with each subtree of `prefix_tree`; True makes it a leaf.
      name: what to call the function in an error.

    Returns:
      A list as long as `full_tree` has leaves.

    Raises:
      TreeError: `full_tree` does not begin with the structure of `prefix_tree`.

    Example:
      >>> broadcast_prefix((0, 1), ([7, 7], 7))
      [0, 0, 1]
    """
    values, treedef = flatten(prefix_tree, is_leaf)
    result: list[Any] = []
    subtrees = flatten_up_to(treedef, full_tree, name=name)
    for value, subtree in zip(values, subtrees, strict=True):
        result += [value] * flatten(subtree)[1].num_leaves
    return result


# -- questions -------------------------------------------------------------------------


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Returns whether every item is a leaf.

    Args:
      iterable: some values.
      is_leaf: called with each value; True makes it a leaf.

    Returns:
      True or False.

    Example:
      >>> all_leaves([1, 2]), all_leaves([1, [2]])
      (True, False)
    """
    values = list(iterable)
    if is_leaf is None:
        return trees.all_leaves(values)
    return builtins.all(is_leaf(x) or trees.all_leaves([x]) for x in values)


def is_tree_node(typ: type) -> bool:
    """Whether objects of a class are containers here.

    Args:
      typ: the class.

    Returns:
      True or False.
    """
    return bool(registry.is_node(typ))
