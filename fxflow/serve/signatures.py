"""Signatures: names, dtypes and shapes of a model's inputs and outputs.

Types are written as fxflow prints them, with a name or ``?`` for an open size:
``f32[batch,784]``. A name stands for the same size in all inputs. Datatypes on the wire
are the Open Inference Protocol's (``FP32``). Strings are ``BYTES``: arrays of Python
bytes, serialized with a length before each string.
"""

from __future__ import annotations

import itertools
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np

from fxflow.errors import ServeError

#: Datatype of the protocol → fxflow's name and NumPy's dtype.
DATATYPES: dict[str, tuple[str, np.dtype[Any]]] = {
    "BOOL": ("bool", np.dtype(np.bool_)),
    "UINT8": ("u8", np.dtype(np.uint8)),
    "UINT16": ("u16", np.dtype(np.uint16)),
    "UINT32": ("u32", np.dtype(np.uint32)),
    "UINT64": ("u64", np.dtype(np.uint64)),
    "INT8": ("i8", np.dtype(np.int8)),
    "INT16": ("i16", np.dtype(np.int16)),
    "INT32": ("i32", np.dtype(np.int32)),
    "INT64": ("i64", np.dtype(np.int64)),
    "FP16": ("f16", np.dtype(np.float16)),
    "FP32": ("f32", np.dtype(np.float32)),
    "FP64": ("f64", np.dtype(np.float64)),
    "BF16": ("bf16", np.dtype(ml_dtypes.bfloat16)),
    "BYTES": ("bytes", np.dtype(object)),
}
_SHORT = {short: name for name, (short, _) in DATATYPES.items()}
_TYPE = re.compile(r"(\w+)\[([\w?, ]*)\]")
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class TensorSpec:
    """An input or output of a model.

    Attributes:
      name: the tensor's name in requests.
      datatype: the protocol's datatype, such as ``"FP32"``.
      shape: sizes; a string is an open size, and ``?`` matches any size.

    Example:
      >>> TensorSpec.parse("x", "f32[batch,784]")
      TensorSpec(name='x', datatype='FP32', shape=('batch', 784))
    """

    name: str
    datatype: str
    shape: tuple[int | str, ...]

    @classmethod
    def parse(cls, name: str, text: str) -> TensorSpec:
        """Reads a type such as ``f32[batch,784]``.

        Args:
          name: name of the tensor.
          text: its type.

        Returns:
          The specification.

        Raises:
          ServeError: `text` is not a type.
        """
        match = _TYPE.fullmatch(text.strip())
        if not match or match[1] not in _SHORT:
            raise ServeError(
                f"the type of tensor {name!r} must be like 'f32[batch,784]', with one "
                f"of {', '.join(_SHORT)}; got {text!r}"
            )
        sizes = [size.strip() for size in match[2].split(",")] if match[2] else []
        shape = tuple(int(size) if size.isdigit() else size for size in sizes)
        return cls(name, _SHORT[match[1]], shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's dtype."""
        return DATATYPES[self.datatype][1]

    def __str__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"{DATATYPES[self.datatype][0]}[{sizes}]"

    def metadata(self) -> dict[str, Any]:
        """Returns the protocol's metadata; open sizes are -1."""
        shape = [-1 if isinstance(size, str) else size for size in self.shape]
        return {"name": self.name, "datatype": self.datatype, "shape": shape}


@dataclass(frozen=True)
class ModelSignature:
    """The types of a model's inputs and outputs.

    Attributes:
      inputs, outputs: specifications, in order.
      batched: whether the first axis of each is the batch axis.
      sizes: the batch sizes that it is compiled for; empty: it takes any size.
      streamed: whether it answers a request with a stream of results.
      objects: whether an element of an input of strings is the text of a JSON object,
        which JSON requests may contain as it is.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batched: bool
    sizes: tuple[int, ...] = ()
    streamed: bool = False
    objects: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.inputs, self.outputs, self.batched, self.sizes))

    @cached_property
    def _specs_by_name(self) -> dict[str, TensorSpec]:
        return {spec.name: spec for spec in self.inputs}

    def to_json(self) -> dict[str, Any]:
        """Returns the signature as a JSON object."""
        return {
            "inputs": [[s.name, s.datatype, list(s.shape)] for s in self.inputs],
            "outputs": [[s.name, s.datatype, list(s.shape)] for s in self.outputs],
            "batched": self.batched,
            "sizes": list(self.sizes),
            "streamed": self.streamed,
            "objects": self.objects,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ModelSignature:
        """Returns the signature that `to_json` wrote.

        Args:
          value: the JSON object.

        Returns:
          The signature.
        """
        inputs, outputs = (
            tuple(TensorSpec(name, kind, tuple(shape)) for name, kind, shape in specs)
            for specs in (value["inputs"], value["outputs"])
        )
        sizes, streamed = tuple(value["sizes"]), value["streamed"]
        objects = value.get("objects", False)
        return cls(inputs, outputs, value["batched"], sizes, streamed, objects)

    def check_types(self, given: Mapping[str, tuple[str, tuple[int, ...]]]) -> int:
        """Checks the datatypes and shapes of a request's inputs.

        Args:
          given: datatype and shape of each input.

        Returns:
          The rows of the request; 1 if the model is not batched.

        Raises:
          ServeError: status 400; an input is missing, unknown, or of another type.
        """
        known = self._specs_by_name
        if given.keys() != known.keys():
            if unknown := given.keys() - known.keys():
                raise ServeError(
                    f"the model has no input {_listed(unknown)}: its inputs are "
                    f"{_listed(known)}",
                    400,
                )
            missing = _listed(known.keys() - given.keys())
            raise ServeError(f"input {missing} is missing", 400)
        sizes: dict[str, tuple[int, str]] = {}
        for name, (datatype, shape) in given.items():
            spec = known[name]
            if datatype != spec.datatype:
                raise ServeError(
                    f"input {name!r} must have datatype {spec.datatype}, got "
                    f"{datatype}",
                    400,
                )
            fits = len(shape) == len(spec.shape)
            for size, want in zip(shape, spec.shape):
                if isinstance(want, int):
                    fits = fits and size == want
                    continue
                fits = fits and size >= 0
                if want == "?":
                    continue
                before, where = sizes.setdefault(want, (size, name))
                if fits and before != size:
                    raise ServeError(
                        f"size {want!r} is {before} in input {where!r} and {size} "
                        f"in input {name!r}",
                        400,
                    )
            if not fits:
                raise ServeError(
                    f"input {name!r} must have shape [{_sizes(spec.shape)}], got "
                    f"[{_sizes(shape)}]",
                    400,
                )
        if not self.batched:
            return 1
        rows = {shape[0] for _, shape in given.values()}
        if len(rows) != 1 or not min(rows):
            raise ServeError(
                "the first axis of all inputs is the batch axis, and must have the "
                f"same size, at least 1; got {', '.join(map(str, sorted(rows)))}",
                400,
            )
        return rows.pop()


def _sizes(shape: tuple[int | str, ...]) -> str:
    return ",".join(map(str, shape))


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def check_alike(name: str, signatures: Mapping[str, ModelSignature]) -> None:
    """Checks that models are interchangeable.

    Args:
      name: name of their group.
      signatures: the models' signatures by name.

    Raises:
      ServeError: status 400; two differ in inputs, outputs, batching or streaming.
    """
    for first, other in itertools.pairwise(signatures):
        for part in ("inputs", "outputs", "batched", "streamed"):
            ours, theirs = (
                _described(getattr(signatures[m], part)) for m in (first, other)
            )
            if ours != theirs:
                raise ServeError(
                    f"{name!r}: models {first!r} and {other!r} differ in {part}: "
                    f"{ours} and {theirs}",
                    400,
                )


def _described(part: Any) -> str:
    if isinstance(part, bool):
        return str(part)
    # The names of open sizes may differ.
    return ", ".join(
        f"{spec.name}: {spec.datatype}"
        f"{[size if isinstance(size, int) else -1 for size in spec.shape]}"
        for spec in part
    )


# -- tensors as bytes ------------------------------------------------------------------


def nbytes_of(datatype: str, shape: tuple[int, ...]) -> int:
    """Returns the number of bytes of a tensor.

    Args:
      datatype: a datatype of the protocol other than BYTES.
      shape: the tensor's shape.

    Returns:
      The number of bytes.
    """
    return math.prod(shape) * DATATYPES[datatype][1].itemsize


def to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    r"""Returns a tensor's bytes: row-major, little-endian, strings with their lengths.

    Args:
      array: an array of a dtype of the protocol; objects are strings or bytes.

    Returns:
      The bytes.

    Example:
      >>> to_bytes(np.array([b"ab"], object))
      b'\x02\x00\x00\x00ab'
    """
    if not array.dtype.hasobject:
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        return array.tobytes()
    parts = []
    for item in array.ravel():
        item = item.encode() if isinstance(item, str) else bytes(item)
        parts += [_LENGTH.pack(len(item)), item]
    return b"".join(parts)


def from_bytes(
    data: bytes | memoryview, datatype: str, shape: tuple[int, ...]
) -> np.ndarray[Any, Any]:
    """Returns the tensor that `to_bytes` wrote.

    Args:
      data: the bytes.
      datatype: a datatype of the protocol.
      shape: the tensor's shape.

    Returns:
      An array, which shares memory with `data` unless it holds strings.

    Raises:
      ServeError: status 400; `data` is too short or too long, or a length is wrong.
    """
    count = math.prod(shape)
    if datatype != "BYTES":
        wanted = nbytes_of(datatype, shape)
        if len(data) != wanted:
            raise ServeError(
                f"{datatype}[{_sizes(shape)}] has {wanted} bytes, got {len(data)}", 400
            )
        if datatype == "BOOL" and np.frombuffer(data, np.uint8).max(initial=0) > 1:
            raise ServeError("a byte of a BOOL tensor must be 0 or 1", 400)
        return np.frombuffer(data, DATATYPES[datatype][1]).reshape(shape)
    if count * _LENGTH.size > len(data):
        raise ServeError(
            f"{len(data)} bytes cannot hold the lengths of {count} strings", 400
        )
    items, at = np.empty(count, object), 0
    for k in range(count):
        if at + _LENGTH.size > len(data):
            raise ServeError(f"the bytes end before string {k} of {count}", 400)
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            raise ServeError(
                f"string {k} has {length} bytes, but only {len(data) - at} follow", 400
            )
        items[k] = bytes(data[at : at + length])
        at += length
    if at != len(data):
        raise ServeError(f"{len(data) - at} bytes follow the last string", 400)
    return items.reshape(shape)
