"""Pytrees: nested containers whose leaves are what functions work on.

A *tree* is built of tuples, lists, dicts, namedtuples, `None` (an empty container),
dataclasses and other classes that were registered; all else is a *leaf*. Taking trees
apart and putting them together is done by jaxlib in C++, on a registry of our own; here
are the functions on top of it. To be read in this order:

- `paths`: key paths, and errors that say where two trees differ;
- `nodes`: registering classes;
- `flattening`: taking apart and putting together, with clear errors;
- `functions`: mapping, reducing, comparing, broadcasting.

`None` is a container without children. To see it as a leaf, say so:
`is_leaf=lambda x: x is None`.
"""

# fmt: off
from fxflow.core.tree.flattening import (
    flatten, flatten_one_level, flatten_one_level_with_keys, flatten_up_to,
    flatten_with_path, leaves, leaves_with_path, structure, treedef_children,
    treedef_is_leaf, treedef_tuple, unflatten,
)
from fxflow.core.tree.functions import (
    all, all_leaves, broadcast, broadcast_prefix, is_tree_node, map, map_with_path,
    reduce, reduce_associative, transpose,
)
from fxflow.core.tree.nodes import (
    Partial, register_dataclass, register_pytree_node, register_pytree_node_class,
    register_pytree_with_keys, register_pytree_with_keys_class, register_static, static,
)
from fxflow.core.tree.paths import keystr
from fxflow.core.tree.paths import written as written  # for messages elsewhere
from fxflow.devices.trees import (
    DictKey, FlattenedIndexKey, GetAttrKey, PyTreeDef, SequenceKey,
)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "Partial", "PyTreeDef", "SequenceKey",
    "all", "all_leaves", "broadcast", "broadcast_prefix", "flatten",
    "flatten_one_level", "flatten_one_level_with_keys", "flatten_up_to",
    "flatten_with_path", "is_tree_node", "keystr", "leaves", "leaves_with_path", "map",
    "map_with_path", "reduce", "reduce_associative", "register_dataclass",
    "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "static", "structure",
    "transpose", "treedef_children", "treedef_is_leaf", "treedef_tuple", "unflatten",
]
# fmt: on
