"""What a checkpoint says of itself: `tree.json`, for programs and for readers.

It has the structure of the tree, and of each leaf its path, type, and checksum. Values
of Python stand in it; the elements of arrays are in other files, which it names. It is
written last: a checkpoint without it does not exist.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes
from fxflow.devices.trees import DictKey, GetAttrKey, SequenceKey
from fxflow.errors import (
    ArgumentError,
    CheckpointError,
    DamagedCheckpointError,
    DtypeError,
)
from fxflow.random import key_impl
from fxflow.train._paths import path_name

NAME = "tree.json"
_FORMAT = "fxflow checkpoint"
_VERSION = 1

#: Leaves that are written into the description. bool before int, which it is too.
PYTHON: dict[str, type] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "str": str,
    "bytes": bytes,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Entry:
    """A leaf.

    Attributes:
      name: its path, `layers/0/w`.
      dtype: of an array, `float32`; of keys that of their bits; else empty.
      shape: of an array; of keys that of their bits.
      key: the generator, if these are random keys; else empty.
      python: the type of a value of Python, or empty.
      value: the value as text.
      checksum: CRC-32 of the elements in C order; None where the store checks itself.
    """

    name: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    key: str = ""
    python: str = ""
    value: str = ""
    checksum: int | None = None

    @property
    def stored(self) -> np.dtype[Any]:
        """NumPy's dtype of the elements as they are stored.

        Older checkpoints have big-endian arrays in their own byte order.
        """
        return np.dtype(self.dtype)

    def __str__(self) -> str:
        """The type, as in `f32[2,3]`, `key<threefry>[]` or `int`."""
        if self.python:
            return self.python
        if self.key:
            return f"{self.key} keys of bits {self.dtype}{list(self.shape)}"
        native = self.stored.newbyteorder("=")
        return f"{dtypes.short_name(native)}[{_listed(self.shape)}]"


def _listed(shape: Sequence[int]) -> str:
    return ",".join(map(str, shape))


@dataclasses.dataclass(frozen=True)
class Description:
    """What `tree.json` says.

    Attributes:
      files: where the elements of arrays are.
      structure: of the tree, leaves numbered; see `outline`.
      entries: the leaves.
      metadata: what the user gave, of what JSON can say.
    """

    files: str
    structure: Any
    entries: tuple[Entry, ...]
    metadata: Any = None

    def encode(self) -> bytes:
        """Returns the file."""
        body = {
            "format": _FORMAT,
            "version": _VERSION,
            "files": self.files,
            "metadata": self.metadata,
            "structure": self.structure,
            "leaves": [_said(entry) for entry in self.entries],
        }
        text = json.dumps(body, indent=1)
        return json.dumps({**body, "checksum": _checksum(text)}, indent=1).encode()


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _said(entry: Entry) -> dict[str, Any]:
    """Returns what differs from the defaults."""
    defaults = Entry("")
    found = dataclasses.asdict(entry)
    return {k: v for k, v in found.items() if v != getattr(defaults, k)}


def decode(data: bytes, where: str) -> Description:
    """Reads `tree.json`.

    Args:
      data: its bytes.
      where: the checkpoint, for messages.

    Raises:
      CheckpointError: it is not a description, of another version, or damaged.
    """
    try:
        body = json.loads(data)
        checksum = body.pop("checksum")
        is_whole = body["format"] == _FORMAT
        is_whole &= checksum == _checksum(json.dumps(body, indent=1))
    except (ValueError, TypeError, KeyError, AttributeError):
        is_whole = False
    if not is_whole:
        raise DamagedCheckpointError(
            f"{where}: {NAME} is not fxflow's, or it is damaged"
        )
    if body["version"] != _VERSION:
        raise CheckpointError(
            f"{where}: this is a checkpoint of version {body['version']}; this fxflow "
            f"reads version {_VERSION}"
        )
    entries = tuple(
        Entry(**{**leaf, "shape": tuple(leaf.get("shape", ()))})
        for leaf in body["leaves"]
    )
    return Description(body["files"], body["structure"], entries, body["metadata"])


# -- leaves ----------------------------------------------------------------------------


def entry_of(name: str, leaf: Any) -> Entry:
    """Describes a leaf of a state.

    Raises:
      ArgumentError: it is neither an array nor a simple value of Python.
    """
    if isinstance(leaf, Array):
        if dtypes.is_key(leaf.dtype):
            bits = leaf.aval.physical
            return Entry(name, str(bits.dtype), tuple(bits.shape), key=key_impl(leaf))
        return Entry(name, str(leaf.dtype), tuple(leaf.shape))
    if isinstance(leaf, (np.ndarray, np.generic)):
        dtypes.require_unmasked(leaf)
        try:
            dtypes.dtype(leaf.dtype)
        except DtypeError as error:
            raise ArgumentError(
                f"checkpoint: {name} is a NumPy array of {leaf.dtype}, which has no "
                f"dtype here: save numbers, or texts one by one ({error})"
            ) from None
        return Entry(name, str(leaf.dtype.newbyteorder("=")), tuple(leaf.shape))
    for python, kind in PYTHON.items():
        if type(leaf) is kind:
            return Entry(name, python=python, value=_text(leaf))
    raise ArgumentError(
        f"checkpoint: {name} is a {type(leaf).__name__}, which cannot be saved; a "
        f"state has arrays, random keys, numbers, texts and bytes"
    )


def _text(value: Any) -> str:
    return base64.b64encode(value).decode() if type(value) is bytes else str(value)


def python_value(entry: Entry) -> Any:
    """Returns the value of Python that a leaf is."""
    if entry.python == "bytes":
        return base64.b64decode(entry.value)
    if entry.python == "bool":
        return entry.value == "True"
    return PYTHON[entry.python](entry.value)


# -- structure -------------------------------------------------------------------------


def named_leaves(state: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of a tree with their paths, `layers/0/w`."""
    found: dict[str, Any] = {}
    for path, leaf in tree.leaves_with_path(state):
        name = path_name(path, "state")
        if name in found:
            raise ArgumentError(f"checkpoint: two leaves have the path {name!r}")
        found[name] = leaf
    return list(found.items())


def outline(state: Any) -> Any:
    """Returns the structure of a tree as JSON can say it, its leaves numbered.

    A dictionary is `{"dict": [[key, …], …]}`, a list `{"list": […]}`, a tuple
    `{"tuple": […]}`; any other container `{its class: [[name, …], …]}`. For keys see
    `_said_key`.
    """
    numbers = iter(range(tree.structure(state).num_leaves))

    def walk(node: Any) -> Any:
        if node is None:
            return None
        if tree.all_leaves([node]):
            return next(numbers)
        children, _ = tree.flatten_one_level_with_keys(node)
        if type(node) is dict:
            return {
                "dict": [[_said_key(key.key), walk(child)] for key, child in children]
            }
        if type(node) in (list, tuple):
            return {type(node).__name__: [walk(child) for _, child in children]}
        named = [[_plain(key), walk(child)] for key, child in children]
        return {type(node).__qualname__: named}

    return walk(state)


def _plain(key: Any) -> Any:
    """Returns what a key of a path holds: a text or a number."""
    match key:
        case GetAttrKey(name=value) | SequenceKey(idx=value):
            return value
        case DictKey(key=value) if isinstance(value, (str, int)):
            return value
    return str(key)


def _said_key(key: Any) -> Any:
    """Returns a dictionary's key as JSON can say it.

    Texts, integers, booleans and None are themselves. Others are `{type: value}`, as
    are a NumPy scalar (`{"float32": {"float": "0.5"}}`) and a tuple. Only the text
    of an object of another class is known, `{"object": text}`.
    """
    if key is None or isinstance(key, (str, int)):
        return key
    if type(key) in PYTHON.values():
        return {type(key).__name__: _text(key)}
    if type(key) is tuple:
        return {"tuple": [_said_key(part) for part in key]}
    if isinstance(key, np.generic) and key.dtype.kind in "biufc":
        return {key.dtype.name: _said_key(key.item())}
    return {"object": f"{key!r} of type {type(key).__name__}"}


def _key_of(said: Any) -> Any:
    """Returns the key that `_said_key` wrote.

    Raises:
      CheckpointError: it is an object of another class.
    """
    if not isinstance(said, dict):
        return said
    ((kind, value),) = said.items()
    if kind == "object":
        raise CheckpointError(
            f"restore: a dictionary of the checkpoint has the key {value}, which only "
            "like= can give back"
        )
    if kind == "tuple":
        return tuple(map(_key_of, value))
    if kind in PYTHON and isinstance(value, str):
        return python_value(Entry("", python=kind, value=value))
    return np.dtype(kind).type(_key_of(value))


def rebuilt(structure: Any, leaves: Sequence[Any]) -> Any:
    """Returns the tree of an outline; containers of other classes are dictionaries."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return leaves[structure]
    ((kind, children),) = structure.items()
    if kind == "list":
        return [rebuilt(child, leaves) for child in children]
    if kind == "tuple":
        return tuple(rebuilt(child, leaves) for child in children)
    return {_key_of(key): rebuilt(child, leaves) for key, child in children}
