"""Serializes the structures (pytrees) of arguments and results.

The format has tuples, lists, dicts with string keys, and None. Any other class is
registered with a name and a serialization of its auxiliary data; nothing is pickled.
"""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from fxflow.core import tree
from fxflow.devices.trees import PyTreeDef, from_parts, registry
from fxflow.errors import ArgumentError, ExportError
from fxflow.export.flat import Fields, Number, Table

C = TypeVar("C", bound=type)

_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_PLAIN: dict[type, int] = {type(None): _NONE, tuple: _TUPLE, list: _LIST, dict: _DICT}
#: Less than Python's recursion limit, and more than users' trees need.
_DEEPEST = 200


class _Container(NamedTuple):
    """The serialization of a class; see `register_pytree_node_serialization`."""

    nodetype: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_by_type: dict[type, _Container] = {}
_by_name: dict[str, _Container] = {}
#: Packages whose public namedtuples, such as the states of optimizers, need not be
#: registered: their names in artifacts are those that users import.
_OWN = ("fxflow.optim", "fxflow.optim.contrib")


def register_pytree_node_serialization(
    nodetype: C,
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> C:
    """Registers a container class for the arguments and results of exported functions.

    Args:
      nodetype: the class, which is already registered as a pytree.
      serialized_name: its name in artifacts, the same wherever they are loaded.
      serialize_auxdata: converts the auxiliary data of its flatten function to bytes.
      deserialize_auxdata: the inverse.
      from_children: creates an object from the auxiliary data and the children, in
        place of the class's unflatten function; only its structure is used.

    Returns:
      The class, so that this can decorate it.

    Raises:
      ArgumentError: the class or the name is registered already, or the class is not a
        pytree.

    Example:
      >>> @fxflow.tree.register_pytree_node_class
      ... class Pair:
      ...     def __init__(self, *parts):
      ...         self.parts = parts
      ...     def tree_flatten(self):
      ...         return self.parts, None
      ...     @classmethod
      ...     def tree_unflatten(cls, aux, parts):
      ...         return cls(*parts)
      >>> _ = register_pytree_node_serialization(
      ...     Pair, serialized_name="guide.Pair",
      ...     serialize_auxdata=lambda aux: b"", deserialize_auxdata=lambda data: None,
      ... )

    Source: `jax.export.register_pytree_node_serialization`.
    """
    what = "register_pytree_node_serialization"
    if not isinstance(nodetype, type):
        raise ArgumentError(f"{what}: expected a class, got {nodetype!r}")
    if not isinstance(serialized_name, str) or not serialized_name:
        raise ArgumentError(f"{what}: serialized_name must be a non-empty string")
    if nodetype in _by_type:
        raise ArgumentError(
            f"{what}: {nodetype.__name__} is already registered as "
            f"{_by_type[nodetype].name!r}"
        )
    if serialized_name in _by_name:
        other = _by_name[serialized_name].nodetype.__name__
        raise ArgumentError(f"{what}: {serialized_name!r} is the name of {other}")
    if from_children is None and not _is_namedtuple(nodetype):
        try:
            from_parts(registry, (nodetype, None), [])
        except RuntimeError:
            raise ArgumentError(
                f"{what}: {nodetype.__name__} is not a pytree: register it first with "
                "fxflow.tree.register_pytree_node"
            ) from None
    container = _Container(
        nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children
    )
    _by_type[nodetype] = _by_name[serialized_name] = container
    return nodetype


def _is_namedtuple(nodetype: type) -> bool:
    fields = getattr(nodetype, "_fields", None)
    return issubclass(nodetype, tuple) and isinstance(fields, tuple)


def register_namedtuple_serialization(nodetype: C, *, serialized_name: str) -> C:
    """Registers a namedtuple for the arguments and results of exported functions.

    Args:
      nodetype: a class from `collections.namedtuple` or `typing.NamedTuple`.
      serialized_name: its name in artifacts, the same wherever they are loaded.

    Returns:
      The class, so that this can decorate it.

    Raises:
      ArgumentError: the class is not a namedtuple, or the class or the name is
        registered already.

    Example:
      >>> import collections
      >>> State = collections.namedtuple("State", "mean count")
      >>> _ = register_namedtuple_serialization(State, serialized_name="guide.State")

    Source: `jax.export.register_namedtuple_serialization`.
    """
    if not isinstance(nodetype, type) or not _is_namedtuple(nodetype):
        raise ArgumentError(
            "register_namedtuple_serialization: expected a namedtuple class, got "
            f"{nodetype!r}"
        )
    names: tuple[str, ...] = nodetype._fields  # type: ignore[attr-defined]

    def read(data: bytes) -> None:
        given = tuple(json.loads(data)) if data else names
        if given != names:
            raise ValueError(f"its fields are {given} there, but {names} here")

    return register_pytree_node_serialization(
        nodetype,
        serialized_name=serialized_name,
        serialize_auxdata=lambda _: json.dumps(names).encode(),
        deserialize_auxdata=read,
    )


def _own(nodetype: type) -> _Container | None:
    """Returns the serialization of a public namedtuple of fxflow."""
    for package in _OWN:
        if nodetype.__module__.startswith(f"{package}."):
            found = _own_named(f"{package}.{nodetype.__name__}")
            if found is not None and found.nodetype is nodetype:
                return found
    return None


def _own_named(name: str) -> _Container | None:
    """Returns the serialization of the public namedtuple of fxflow with a name."""
    package, _, short = name.rpartition(".")
    if package not in _OWN:
        return None
    nodetype = getattr(importlib.import_module(package), short, None)
    if not isinstance(nodetype, type) or not _is_namedtuple(nodetype):
        return None
    register_namedtuple_serialization(nodetype, serialized_name=name)
    return _by_name[name]


def _ordered_keys(keys: Sequence[Any]) -> bytes:
    if not all(isinstance(key, str) for key in keys):
        raise ExportError(
            "export: an OrderedDict among the arguments or results has keys that are "
            f"not strings: {list(keys)}"
        )
    return json.dumps(list(keys)).encode()


def _ordered_from(data: bytes) -> tuple[str, ...]:
    keys = json.loads(data)
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError("its keys are not strings")
    return tuple(keys)


register_pytree_node_serialization(
    OrderedDict,
    serialized_name="collections.OrderedDict",
    serialize_auxdata=_ordered_keys,
    deserialize_auxdata=_ordered_from,
)


# -- writing ---------------------------------------------------------------------------


def to_table(treedef: PyTreeDef) -> Fields:
    """Returns a structure as a table of the format.

    Raises:
      ExportError: a container is not registered, or a dict's key is not a string.
    """
    data = treedef.node_data()
    if data is None:
        return {0: Number("int8", _LEAF)}
    nodetype, aux = data
    children = [to_table(child) for child in treedef.children()] or None
    kind = _PLAIN.get(nodetype)
    if kind == _DICT:
        keys = list(aux)
        for key in keys:
            if not isinstance(key, str):
                raise ExportError(
                    "export: a dictionary among the arguments or results has the key "
                    f"{key!r}: artifacts support only string keys"
                )
        return {0: Number("int8", _DICT), 1: children, 2: keys or None}
    if kind is not None:
        return {0: Number("int8", kind), 1: children}
    container = _by_type.get(nodetype) or _own(nodetype)
    if container is None:
        which = "namedtuple" if _is_namedtuple(nodetype) else "pytree_node"
        raise ExportError(
            f"export: the arguments or results include a {nodetype.__name__}, which "
            "artifacts need a name for: "
            f"fxflow.export.register_{which}_serialization({nodetype.__name__}, "
            "serialized_name=...)"
        )
    written = container.write(aux)
    if not isinstance(written, bytes | bytearray):
        raise ExportError(
            f"export: serialize_auxdata of {nodetype.__name__} must return bytes, got "
            f"{type(written).__name__}"
        )
    return {
        0: Number("int8", _CUSTOM),
        1: children,
        3: container.name,
        4: bytes(written),
    }


# -- reading ---------------------------------------------------------------------------


def from_table(table: Table | None, count: int) -> PyTreeDef:
    """Returns the structure in a table of the format.

    Args:
      table: the table.
      count: expected number of leaves.

    Raises:
      ExportError: the table is malformed, a class is not registered here, or the number
        of leaves differs.
    """
    if table is None:
        raise ExportError("the artifact is damaged: a structure is missing")
    treedef = _read(table, 0)
    if treedef.num_leaves != count:
        raise ExportError(
            f"the artifact is damaged: a structure has {treedef.num_leaves} leaves, "
            f"but there are {count} types"
        )
    return treedef


def _read(table: Table, depth: int) -> PyTreeDef:
    if depth > _DEEPEST:
        raise ExportError("the artifact is damaged: a structure is nested too deeply")
    kind = table.number(0, "int8")
    children = [_read(child, depth + 1) for child in table.tables(1)]
    if kind in (_LEAF, _NONE) and children:
        raise ExportError("the artifact is damaged: a leaf of a structure has parts")
    if kind == _LEAF:
        return _node(None, children)
    if kind == _NONE:
        return _node((type(None), None), children)
    if kind in (_TUPLE, _LIST):
        return _node((tuple if kind == _TUPLE else list, None), children)
    if kind == _DICT:
        names = table.strings(2)
        if len(names) != len(children) or len(set(names)) != len(names):
            raise ExportError("the artifact is damaged: keys of a dictionary are wrong")
        # Keys must be sorted, as in this process's trees.
        pairs = sorted(zip(names, children, strict=True), key=lambda pair: pair[0])
        if [name for name, _ in pairs] != list(names):
            raise ExportError("the artifact is damaged: a dictionary is not in order")
        return _node((dict, list(names)), children)
    if kind != _CUSTOM:
        raise ExportError(f"the artifact has a container of an unknown kind, {kind}")
    name = table.string(3)
    container = _by_name.get(name) or _own_named(name)
    if container is None:
        raise ExportError(
            f"the artifact has a container {name!r}, which is not registered here: "
            "register_pytree_node_serialization, or register_namedtuple_serialization"
        )
    try:
        aux = container.read(table.bytes(4))
        if container.build is not None:
            marks = [_Mark() for _ in children]
            built = tree.structure(container.build(aux, marks))
            return _with_children(built, children)
    except ExportError:
        raise
    except Exception as error:
        raise ExportError(
            f"the artifact has a {name!r} that cannot be read: {error}"
        ) from error
    fields = getattr(container.nodetype, "_fields", None)
    if _is_namedtuple(container.nodetype) and len(children) != len(fields or ()):
        raise ExportError(f"the artifact has a {name!r} with too few or too many parts")
    return _node((container.nodetype, aux), children)


class _Mark:
    """Stands in for a child, so that an object can be built without it."""


def _with_children(treedef: PyTreeDef, children: Sequence[PyTreeDef]) -> PyTreeDef:
    """Returns the structure of a container with its leaves replaced by children."""
    if len(treedef.children()) != len(children):
        raise ExportError(
            "the artifact has a container with too few parts, or too many"
        )
    return _node(treedef.node_data(), children)


def _node(data: tuple[type, Any] | None, children: Iterable[PyTreeDef]) -> PyTreeDef:
    made: PyTreeDef = from_parts(registry, data, list(children))
    return made
