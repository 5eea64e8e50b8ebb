"""Taking trees apart and putting them together, and what to put right on failure.

jaxlib's flattening holds one level of Python's recursion for each container it is
inside of, and does not give it back when an exception leaves it: of a predicate, of a
container's own flatten function, of the sorting of keys. Some hundred errors later
every call of the process would be a RecursionError. So what a predicate raises is held
back until jaxlib is done, and after any other error the levels are given back. Nesting
that is too deep jaxlib notices itself, at the depth at which Python would: at
`sys.getrecursionlimit()` in 3.11, at a limit for C alone (10,000 levels) from 3.12.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from typing import Any

from fxflow.core.tree.paths import KeyPath, describe, difference, keys_of, written
from fxflow.devices import trees
from fxflow.devices.trees import PyTreeDef, registry
from fxflow.errors import ArgumentError, TreeError

IsLeaf = Callable[[Any], bool] | None


def flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Flattens a tree into its leaves and its structure.

    Args:
      tree: any tree.
      is_leaf: called with each subtree; True makes it a leaf.

    Returns:
      The leaves from left to right (dicts in the order of their sorted keys), and
      the structure.

    Raises:
      TreeError: the tree contains itself, or is nested too deeply.
      ValueError: the keys of a dict cannot be sorted.

    Example:
      >>> flatten({"b": 1, "a": (2, None)})
      ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    return _flattened(trees.flatten, tree, is_leaf)


def unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Rebuilds a tree from its leaves: the inverse of `flatten`.

    Args:
      treedef: the structure.
      leaves: as many as the structure has.

    Returns:
      The tree.

    Raises:
      ArgumentError: `treedef` is not a structure.
      TreeError: there are too few or too many leaves.

    Example:
      >>> unflatten(structure((0, [0])), "ab")
      ('a', ['b'])
    """
    if not isinstance(treedef, PyTreeDef):
        raise ArgumentError(
            f"tree.unflatten: expected a structure first, got {describe(treedef)}; "
            "tree.structure(...) makes one"
        )
    given = list(leaves)
    if len(given) != treedef.num_leaves:
        raise TreeError(
            f"tree.unflatten: expected {treedef.num_leaves} leaves for "
            f"{written(treedef)}, got {len(given)}"
        )
    return treedef.unflatten(given)


def leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Returns the leaves of a tree from left to right.

    Args:
      tree: any tree.
      is_leaf: called with each subtree; True makes it a leaf.

    Returns:
      A list.

    Example:
      >>> leaves({"b": 1, "a": [2, None, 3]})
      [2, 3, 1]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Returns the structure of a tree: the tree without its leaves.

    Args:
      tree: any tree.
      is_leaf: called with each subtree; True makes it a leaf.

    Returns:
      An object that can be compared, hashed and pickled.

    Example:
      >>> structure([1, (2, 3)])
      PyTreeDef([*, (*, *)])
    """
    return flatten(tree, is_leaf)[1]


def flatten_with_path(
    tree: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Flattens a tree, with the key path of each leaf.

    Args:
      tree: any tree.
      is_leaf: called with each subtree; True makes it a leaf.
      is_leaf_takes_path: call `is_leaf(path, subtree)` instead.

    Returns:
      A list of `(path, leaf)`, and the structure. `keystr(path)` prints a path.

    Raises:
      TreeError: the tree contains itself, or is nested too deeply.
      ValueError: the keys of a dict cannot be sorted.

    Example:
      >>> pairs, _ = flatten_with_path({"w": [1, 2]})
      >>> [(fxflow.tree.keystr(path), leaf) for path, leaf in pairs]
      [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    asked = is_leaf
    if is_leaf is not None and not is_leaf_takes_path:
        asked = lambda _, x: is_leaf(x)
    return _flattened(registry.flatten_with_path, tree, asked)


def leaves_with_path(
    tree: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> list[tuple[KeyPath, Any]]:
    """Returns the leaves of a tree, each with its path.

    Args:
      tree: any tree.
      is_leaf: called with each subtree; True makes it a leaf.
      is_leaf_takes_path: call `is_leaf(path, subtree)` instead.

    Returns:
      A list of `(path, leaf)`.
    """
    return flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def flatten_up_to(treedef: PyTreeDef, tree: Any, *, name: str = "tree") -> list[Any]:
    """Returns the subtrees of `tree` that stand at the leaves of `treedef`.

    Args:
      treedef: a structure that `tree` must begin with.
      tree: the tree.
      name: what to call it in an error.

    Returns:
      One subtree for each leaf of `treedef`.

    Raises:
      TreeError: `tree` does not begin with that structure; says where.

    Example:
      >>> flatten_up_to(structure((0, 0)), (1, [2, 3]))
      [1, [2, 3]]
    """
    try:
        subtrees: list[Any] = treedef.flatten_up_to(tree)
        return subtrees
    except ValueError as error:
        found = difference(treedef, tree)
        if found is None:  # a custom container that compares in its own way
            raise TreeError(f"{name}: {error}") from None
        raise TreeError(f"{name}: {found}") from None


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """Returns the children of a container, and what else it consists of.

    Args:
      tree: a container.

    Returns:
      `(children, auxiliary data)`.

    Raises:
      TreeError: it is a leaf.
    """
    found = registry.flatten_one_level(tree)
    if found is None:
        raise TreeError(
            f"tree.flatten_one_level: expected a container, got {describe(tree)}"
        )
    pair: tuple[Iterable[Any], Any] = found
    return pair


def flatten_one_level_with_keys(tree: Any) -> tuple[list[tuple[Any, Any]], Any]:
    """Returns the children of a container with their keys, and what else it has.

    Args:
      tree: a container.

    Returns:
      `([(key, child), ...], auxiliary data)`.

    Raises:
      TreeError: it is a leaf.
    """
    children, aux = flatten_one_level(tree)
    return list(zip(keys_of(tree), children, strict=True)), aux


# -- structures ------------------------------------------------------------------------


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether a structure is a single leaf (that of `None` has no leaf and is not).

    Args:
      treedef: a structure.

    Returns:
      True or False.
    """
    return bool(treedef.num_nodes == 1 and treedef.num_leaves == 1)


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Returns the structures of the children.

    Args:
      treedef: a structure.

    Returns:
      A list, empty for a leaf.
    """
    return list(treedef.children())


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Returns the structure of a tuple of trees.

    Args:
      treedefs: the structures of the items.

    Returns:
      A structure.

    Example:
      >>> treedef_tuple([structure(0), structure([0])])
      PyTreeDef((*, [*]))
    """
    given = list(treedefs)
    for treedef in given:
        if not isinstance(treedef, PyTreeDef):
            raise ArgumentError(
                f"tree.treedef_tuple: expected structures, got {describe(treedef)}; "
                "tree.structure(...) makes one"
            )
    return trees.treedef_tuple(given)


# -- what jaxlib's flattening leaves to be done ----------------------------------------


def _unordered(tree: Any) -> TreeError | None:
    """Returns the error for the first dict whose keys cannot be sorted."""
    if type(tree) is dict:
        try:
            sorted(tree)
        except TypeError:
            kinds = {type(key).__name__: key for key in tree}
            shown = ", ".join(f"{key!r} ({kind})" for kind, key in kinds.items())
            return TreeError(
                f"keys of a dict in a pytree must sort, but it has {shown}: use keys "
                "of one type"
            )
    inside = tree.values() if isinstance(tree, dict) else tree
    if not isinstance(tree, dict | list | tuple):
        return None
    return next(filter(None, map(_unordered, inside)), None)


def failed(error: Exception, tree: Any) -> Exception:
    """Returns what to raise after jaxlib could not flatten a tree.

    Args:
      error: what it raised.
      tree: the tree.
    """
    if isinstance(error, SystemError) and isinstance(error.__cause__, RecursionError):
        return _too_deep()
    last = 0

    def walk(subtree: Any, level: int) -> None:
        nonlocal last
        last = level
        found = registry.flatten_one_level(subtree)
        if found is not None:
            for child in found[0]:
                walk(child, level + 1)

    try:
        walk(tree, 0)
    except Exception:
        # The last subtree fails, `last` levels below the root.
        for _ in range(last):
            ctypes.pythonapi.Py_LeaveRecursiveCall()
    return (_unordered(tree) if "sorting" in str(error) else None) or error


def _too_deep() -> TreeError:
    return TreeError(
        "tree: a container holds itself, or containers are nested more deeply than "
        "Python's recursion limit allows"
    )


def _flattened(
    flatten: Callable[..., tuple[list[Any], PyTreeDef]],
    tree: Any,
    is_leaf: Callable[..., bool] | None,
) -> tuple[list[Any], PyTreeDef]:
    """Flattens; what the predicate raises is raised when jaxlib is done.

    Args:
      flatten: jaxlib's function of a tree and a predicate.
      tree: any tree.
      is_leaf: takes what jaxlib gives a predicate.
    """
    if is_leaf is None:
        try:
            return flatten(tree)
        except Exception as error:
            raise failed(error, tree) from None
    raised: list[BaseException] = []
    # Through C, each call takes a level of recursion more than `ask`: where there is no
    # room, it is this call that fails.
    predicate = functools.partial(is_leaf)

    def ask(*args: Any) -> bool:
        if raised:
            return True  # to come to an end
        try:
            return bool(predicate(*args))
        except BaseException as error:
            raised.append(error)
            return True

    try:
        result = flatten(tree, ask)
    except Exception as error:
        raise failed(error, tree) from None
    if not raised:
        return result
    if isinstance(raised[0], RecursionError):
        raise _too_deep() from None
    raise raised[0]
