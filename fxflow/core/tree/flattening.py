"""Flattening, and what to put right after it has failed.

jaxlib's flattening holds one level of Python's recursion for each container it is
inside of, and does not give it back when an exception leaves it: of a predicate, of a
container's own flatten function, of the sorting of keys. Some hundred errors later
every call of the process would be a RecursionError. So predicates are asked beforehand,
from Python, and after any other error the levels are given back. Nesting that is too
deep jaxlib notices itself, at the depth at which Python would.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from fxflow.core.tree.paths import KeyPath, keys_of
from fxflow.devices import trees
from fxflow.devices.trees import PyTreeDef, registry
from fxflow.errors import TreeError

__all__ = ["failed", "flatten", "flatten_with_path"]

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
    predicate = None
    if is_leaf is not None:
        test = is_leaf
        predicate = _asked(tree, lambda _, x: test(x), False)
    try:
        return trees.flatten(tree, predicate)
    except Exception as error:
        raise failed(error, tree) from None


def flatten_with_path(
    tree: Any, is_leaf: Callable[[KeyPath, Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Flattens a tree, with the key path of each leaf.

    Args:
      tree: any tree.
      is_leaf: called with the path and each subtree; True makes it a leaf.

    Returns:
      A list of `(path, leaf)`, and the structure.

    Raises:
      TreeError: the tree contains itself, or is nested too deeply.
      ValueError: the keys of a dict cannot be sorted.
    """
    predicate = None
    if is_leaf is not None:
        answer = _asked(tree, is_leaf, True)

        def predicate(_: KeyPath, x: Any) -> bool:
            return answer(x)

    try:
        pairs, treedef = registry.flatten_with_path(tree, predicate)
    except Exception as error:
        raise failed(error, tree) from None
    return pairs, treedef


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
        # The subtree that came last fails, so many levels below the root.
        for _ in range(last):
            ctypes.pythonapi.Py_LeaveRecursiveCall()
    return (_unordered(tree) if "sorting" in str(error) else None) or error


def _too_deep() -> TreeError:
    return TreeError(
        "tree: a container holds itself, or containers are nested more deeply than "
        "Python's recursion limit (sys.getrecursionlimit()) allows"
    )


def _asked(
    tree: Any, is_leaf: Callable[[KeyPath, Any], bool], paths: bool
) -> Callable[[Any], bool]:
    """Returns a predicate that gives the answers of another, found beforehand.

    Args:
      tree: what it will be asked about.
      is_leaf: called with the path of each subtree and the subtree.
      paths: whether it needs the paths; else they are empty.
    """
    answers: list[bool] = []

    def ask(subtree: Any, path: KeyPath) -> None:
        leaf = bool(is_leaf(path, subtree))
        answers.append(leaf)
        # In the order in which jaxlib will ask: a container before what it holds.
        found = None if leaf else registry.flatten_one_level(subtree)
        if found is None:
            return
        if not paths:
            for child in found[0]:
                ask(child, path)
            return
        for key, child in zip(keys_of(subtree), found[0], strict=True):
            ask(child, (*path, key))

    try:
        ask(tree, ())
    except RecursionError:
        raise _too_deep() from None
    given = iter(answers)
    return lambda _: next(given)
