"""The registry of pytree containers, with jaxlib's C++ implementation.

fxflow has its own registry: every library in the process that uses jaxlib shares the
default registry, in which registering a class twice is an error.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from fxflow.devices._jaxlib import PyTreeDef as PyTreeDef
from fxflow.devices._jaxlib import PyTreeRegistry as PyTreeRegistry
from fxflow.devices._jaxlib import pytree

SequenceKey = pytree.SequenceKey
DictKey = pytree.DictKey
GetAttrKey = pytree.GetAttrKey
FlattenedIndexKey = pytree.FlattenedIndexKey

#: None is a node without children; tuple, namedtuple, list and dict are built in.
registry: Any = PyTreeRegistry(
    enable_none=True,
    enable_tuple=True,
    enable_namedtuple=True,
    enable_list=True,
    enable_dict=True,
)

#: ``flatten(tree, leaf_predicate=None) -> (leaves, treedef)``; bound once for speed.
flatten: Callable[..., tuple[list[Any], PyTreeDef]] = registry.flatten


#: ``treedef_tuple(treedefs)``: the structure of a tuple of trees, from a list.
treedef_tuple: Callable[[list[PyTreeDef]], PyTreeDef] = functools.partial(
    pytree.treedef_tuple, registry
)


#: ``from_parts(registry, node_data, children)``: a structure of child structures;
#: ``node_data`` is the container's class and its auxiliary data, or None for a leaf.
from_parts: Callable[..., PyTreeDef] = pytree.PyTreeDef.from_node_data_and_children


def all_leaves(values: Iterable[Any]) -> bool:
    """Returns whether no item of `values` is a container."""
    return bool(pytree.all_leaves(registry, values))


# -- dictionaries of the standard library that have auxiliary data ---------------------


def _flatten_ordered(
    tree: OrderedDict[Hashable, Any],
) -> tuple[tuple[Any, ...], tuple[Hashable, ...]]:
    return tuple(tree.values()), tuple(tree.keys())


def _flatten_ordered_with_keys(
    tree: OrderedDict[Hashable, Any],
) -> tuple[tuple[tuple[Any, Any], ...], tuple[Hashable, ...]]:
    return tuple((DictKey(k), v) for k, v in tree.items()), tuple(tree.keys())


def _unflatten_ordered(
    keys: tuple[Hashable, ...], values: Iterable[Any]
) -> OrderedDict[Hashable, Any]:
    return OrderedDict(zip(keys, values, strict=True))


_DefaultAux = tuple[Callable[[], Any] | None, tuple[Any, ...]]


def _flatten_default(
    tree: defaultdict[Any, Any],
) -> tuple[tuple[Any, ...], _DefaultAux]:
    # Sorted like those of plain dictionaries, so that equal trees have equal leaves.
    keys = tuple(sorted(tree))
    return tuple(tree[k] for k in keys), (tree.default_factory, keys)


def _flatten_default_with_keys(
    tree: defaultdict[Any, Any],
) -> tuple[tuple[tuple[Any, Any], ...], _DefaultAux]:
    keys = tuple(sorted(tree))
    return tuple((DictKey(k), tree[k]) for k in keys), (tree.default_factory, keys)


def _unflatten_default(
    aux: _DefaultAux, values: Iterable[Any]
) -> defaultdict[Any, Any]:
    return defaultdict(aux[0], zip(aux[1], values, strict=True))


registry.register_node(
    OrderedDict, _flatten_ordered, _unflatten_ordered, _flatten_ordered_with_keys
)
registry.register_node(
    defaultdict, _flatten_default, _unflatten_default, _flatten_default_with_keys
)
