"""A checkpoint's description, `tree.json`, for programs and for people.

It has the structure of the tree, and the path, type and checksum of each leaf. It also
contains Python values; the elements of arrays are in other files, which it names. It is
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

#: The types of leaves that the description contains. bool is a subclass of int, so it
#: comes first.
PYTHON: dict[str, type] = {
    "bool": bool, "int": int, "float": float, "complex": complex, "str": str,
    "bytes": bytes,
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Entry:
    """The description of a leaf.

    Attributes:
      name: its path, such as `layers/0/w`.
      dtype: the dtype of an array, or of the bits of random keys; else empty.
      shape: the shape of an array, or of the bits of random keys.
      key: the generator of random keys; else empty.
      python: the type of a Python value; else empty.
      value: the Python value as text.
      checksum: CRC-32 of the elements in C order; None if the store has checksums.
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
        """The NumPy dtype of the stored elements.

        Older checkpoints have big-endian arrays in their own byte order.
        """
        return np.dtype(self.dtype)

    def __str__(self) -> str:
        """The type, such as `f32[2,3]` or `int`."""
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
    """The contents of `tree.json`.

    Attributes:
      files: the file or folder with the elements of arrays.
      structure: the structure of the tree, with numbers as leaves; see `outline`.
      entries: the leaves.
      metadata: the user's metadata, a JSON value.
    """

    files: str
    structure: Any
    entries: tuple[Entry, ...]
    metadata: Any = None

    def encode(self) -> bytes:
        """Returns the file's bytes."""
        body = {
            "format": _FORMAT,
            "version": _VERSION,
            "files": self.files,
            "metadata": self.metadata,
            "structure": self.structure,
            "leaves": [_fields(entry) for entry in self.entries],
        }
        text = json.dumps(body, indent=1)
        return json.dumps({**body, "checksum": _checksum(text)}, indent=1).encode()


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())


def _fields(entry: Entry) -> dict[str, Any]:
    """Returns the fields that differ from the defaults."""
    defaults = Entry("")
    found = dataclasses.asdict(entry)
    return {k: v for k, v in found.items() if v != getattr(defaults, k)}


def decode(data: bytes, where: str) -> Description:
    """Reads `tree.json`.

    Args:
      data: its bytes.
      where: the checkpoint, for messages.

    Raises:
      CheckpointError: it is not a description, or of another version, or damaged.
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
            f"{where}: {NAME} is damaged, or not a file of fxflow"
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
      ArgumentError: it is neither an array nor a Python value of a type in `PYTHON`.
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
                f"checkpoint: {name} is a NumPy array of {leaf.dtype}, which is not a "
                f"dtype of fxflow: save numbers, or single strings ({error})"
            ) from None
        return Entry(name, str(leaf.dtype.newbyteorder("=")), tuple(leaf.shape))
    for python, kind in PYTHON.items():
        if type(leaf) is kind:
            return Entry(name, python=python, value=_text(leaf))
    raise ArgumentError(
        f"checkpoint: {name} is a {type(leaf).__name__}, which cannot be saved; a "
        f"state may have arrays, random keys, numbers, strings and bytes"
    )


def _text(value: Any) -> str:
    return base64.b64encode(value).decode() if type(value) is bytes else str(value)


def python_value(entry: Entry) -> Any:
    """Returns the Python value of a leaf."""
    if entry.python == "bytes":
        return base64.b64decode(entry.value)
    if entry.python == "bool":
        return entry.value == "True"
    return PYTHON[entry.python](entry.value)


# -- structure -------------------------------------------------------------------------


def named_leaves(state: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of a tree with their paths, such as `layers/0/w`."""
    found: dict[str, Any] = {}
    for path, leaf in tree.leaves_with_path(state):
        name = path_name(path, "state")
        if name in found:
            raise ArgumentError(f"checkpoint: two leaves have the path {name!r}")
        found[name] = leaf
    return list(found.items())


def outline(state: Any) -> Any:
    """Returns the structure of a tree as a JSON value, with numbers as leaves.

    A dictionary becomes `{"dict": [[key, …], …]}`, a list `{"list": […]}`, a tuple
    `{"tuple": […]}`, and any other container `{its class: [[name, …], …]}`. For keys,
    see `_key_to_json`.
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
                "dict": [
                    [_key_to_json(key.key), walk(child)] for key, child in children
                ]
            }
        if type(node) in (list, tuple):
            return {type(node).__name__: [walk(child) for _, child in children]}
        named = [[_plain(key), walk(child)] for key, child in children]
        return {type(node).__qualname__: named}

    return walk(state)


def _plain(key: Any) -> Any:
    """Returns the string or the number in a key of a path."""
    match key:
        case GetAttrKey(name=value) | SequenceKey(idx=value):
            return value
        case DictKey(key=value) if isinstance(value, (str, int)):
            return value
    return str(key)


def _key_to_json(key: Any) -> Any:
    """Returns a dictionary's key as a JSON value.

    Strings, integers, booleans and None do not change. Other Python values, NumPy
    scalars (`{"float32": {"float": "0.5"}}`) and tuples become `{type: value}`. For an
    object of another class, `{"object": text}` has only its text.
    """
    if key is None or isinstance(key, (str, int)):
        return key
    if type(key) in PYTHON.values():
        return {type(key).__name__: _text(key)}
    if type(key) is tuple:
        return {"tuple": [_key_to_json(part) for part in key]}
    if isinstance(key, np.generic) and key.dtype.kind in "biufc":
        return {key.dtype.name: _key_to_json(key.item())}
    return {"object": f"{key!r} of type {type(key).__name__}"}


def _key_from_json(found: Any) -> Any:
    """Returns the key that `_key_to_json` wrote.

    Raises:
      CheckpointError: the key is an object of another class.
    """
    if not isinstance(found, dict):
        return found
    ((kind, value),) = found.items()
    if kind == "object":
        raise CheckpointError(
            f"restore: a dictionary of the checkpoint has the key {value}, which "
            "requires like="
        )
    if kind == "tuple":
        return tuple(map(_key_from_json, value))
    if kind in PYTHON and isinstance(value, str):
        return python_value(Entry("", python=kind, value=value))
    return np.dtype(kind).type(_key_from_json(value))


def rebuilt(structure: Any, leaves: Sequence[Any]) -> Any:
    """Returns the tree of an outline; containers of other classes become dicts."""
    if structure is None:
        return None
    if isinstance(structure, int):
        return leaves[structure]
    ((kind, children),) = structure.items()
    if kind == "list":
        return [rebuilt(child, leaves) for child in children]
    if kind == "tuple":
        return tuple(rebuilt(child, leaves) for child in children)
    return {_key_from_json(key): rebuilt(child, leaves) for key, child in children}
