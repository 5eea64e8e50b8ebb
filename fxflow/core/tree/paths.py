"""Where things are in a tree: key paths as text, and where two trees differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays.aval import Aval
from fxflow.devices.trees import (
    GetAttrKey,
    PyTreeDef,
    registry,
)

KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Returns a path as text.

    Args:
      keys: a path from `flatten_with_path`.
      simple: leave out brackets, quotes and dots.
      separator: what to put between keys.

    Returns:
      Text such as `['layers'][0].weight`, or with `simple=True, separator="/"`
      `layers/0/weight`.

    Example:
      >>> from fxflow.core.tree import DictKey, SequenceKey
      >>> path = (DictKey("layers"), SequenceKey(0), GetAttrKey("weight"))
      >>> keystr(path), keystr(path, simple=True, separator="/")
      ("['layers'][0].weight", 'layers/0/weight')
    """
    return separator.join(map(_simple if simple else str, keys))


def _simple(key: Any) -> str:
    for attribute in ("name", "idx", "key"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


# -- where two trees differ ------------------------------------------------------------

_NAMED: dict[type, str] = {tuple: "a tuple", list: "a list", dict: "a dict"}


def difference(treedef: PyTreeDef, tree: Any, path: KeyPath = ()) -> str | None:
    """Says where a tree first fails to begin with a structure.

    Args:
      treedef: the structure.
      tree: the tree.
      path: what comes before the paths in it.

    Returns:
      Words such as `at ['w'] expected a tuple of 2, got a list of 3`; None if the
      tree does begin with the structure.
    """
    data = treedef.node_data()
    if data is None:
        return None
    kind, aux = data
    expected = treedef.children()
    found = registry.flatten_one_level(tree)
    if kind is type(None) and tree is not None:
        return _at(
            path,
            "None",
            f"{describe(tree)} (None is a container without leaves; to treat it as a "
            "leaf, pass is_leaf=lambda x: x is None)",
        )
    if type(tree) is not kind or found is None:
        return _at(path, _describe_node(kind, aux, len(expected)), describe(tree))
    children = list(found[0])
    if kind is dict and list(aux) != list(found[1]):
        return _at(path, *_key_difference(aux, found[1]))
    if len(children) != len(expected):
        return _at(path, _describe_node(kind, aux, len(expected)), describe(tree))
    is_plain = kind in _NAMED or tree is None or _is_plain_namedtuple(tree)
    if not is_plain and aux != found[1]:
        return _at(
            path,
            f"a {kind.__name__} with auxiliary data {aux!r}",
            f"one with {found[1]!r}",
        )
    for key, sub, child in zip(keys_of(tree), expected, children, strict=True):
        inside = difference(sub, child, (*path, key))
        if inside is not None:
            return inside
    return None


def begins_alike(treedef: PyTreeDef, tree: Any) -> bool:
    """Returns whether a tree has the containers of a structure.

    What a registered container holds is its own affair and is not looked at.

    Args:
      treedef: the structure.
      tree: the tree.
    """
    data = treedef.node_data()
    if data is None:
        return True
    kind = data[0]
    if type(tree) is not kind:
        return False
    if kind not in _NAMED:
        return True
    children, keys = registry.flatten_one_level(tree)
    if kind is dict and list(data[1]) != list(keys):
        return False
    expected = treedef.children()
    return len(expected) == len(children) and all(map(begins_alike, expected, children))


def _at(path: KeyPath, expected: str, got: str) -> str:
    where = keystr(path) if path else "the root"
    return f"at {where} expected {expected}, got {got}"


def _key_difference(expected: Sequence[Any], got: Sequence[Any]) -> tuple[str, str]:
    missing = [k for k in expected if k not in got]
    extra = [k for k in got if k not in expected]
    parts = [f"without {_list(missing)}"] if missing else []
    parts += [f"with the unexpected {_list(extra)}"] if extra else []
    return f"a dict with keys {_list(expected)}", f"one {' and '.join(parts)}"


def _list(keys: Sequence[Any]) -> str:
    shown = ", ".join(map(repr, keys[:8]))
    return f"{shown}, … ({len(keys)} in all)" if len(keys) > 8 else shown or "(none)"


def _describe_node(kind: type, aux: Any, size: int) -> str:
    if kind is type(None):
        return "None"
    if kind is dict:
        return f"a dict with keys {_list(aux)}"
    return f"{_NAMED.get(kind, f'a {kind.__name__}')} of {size}"


def describe(x: Any) -> str:
    """Says what stands at a path of a tree, in few words."""
    found = registry.flatten_one_level(x)
    if found is not None:
        return _describe_node(type(x), found[1], len(list(found[0])))
    aval = getattr(x, "aval", None)
    if aval is not None or isinstance(x, Aval):
        return f"the leaf {x if aval is None else aval}"
    if isinstance(x, type) or callable(x):
        return f"the leaf {getattr(x, '__name__', type(x).__name__)}"
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        dims = ",".join(map(str, x.shape))
        return f"the leaf {type(x).__name__} {x.dtype}[{dims}]"
    text = repr(x)
    short = text if len(text) <= 40 else f"{text[:37]}..."
    return f"the leaf {short} of type {type(x).__name__}"


def keys_of(tree: Any) -> list[Any]:
    """Returns the keys of a container's children.

    Not by the registry's `flatten_one_level_with_keys` alone: in jaxlib 0.10.2 it names
    every field of a namedtuple after the first.

    Args:
      tree: a container.

    Returns:
      One key for each child.
    """
    if _is_plain_namedtuple(tree):
        return [GetAttrKey(name) for name in type(tree)._fields]
    pairs, _ = registry.flatten_one_level_with_keys(tree)
    return [key for key, _ in pairs]


def _is_plain_namedtuple(tree: Any) -> bool:
    """Whether a tree is a namedtuple whose class was not registered by itself."""
    if not isinstance(tree, tuple) or not hasattr(type(tree), "_fields"):
        return False
    found = registry.flatten_one_level(tree)
    return found is not None and found[1] is type(tree)


def written(treedef: PyTreeDef) -> str:
    """Returns a structure as messages show it: `{'a': *}`, each `*` being a leaf."""
    return str(treedef).removeprefix("PyTreeDef(").removesuffix(")")
