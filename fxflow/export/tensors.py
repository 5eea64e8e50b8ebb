"""Arrays in the safetensors format: written whole, read where they lie in the file.

The format is a length, a JSON text that gives for each name a dtype, a shape and a
place, and the elements. Written and read here without the package of that name, which
copies what it reads; its files and these are the same. A dtype that the format does not
have is written as bytes, with its name among the metadata.

Source: the format's README.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.errors import ExportError

NDArray = np.ndarray[Any, Any]

_NAMES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint8": "U8",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
_DTYPES = {short: name for name, short in _NAMES.items()}
_METADATA = "__metadata__"
#: Of each array: what the runtime wants to use memory as it is.
ALIGNMENT = 64


def encode(arrays: Mapping[str, NDArray]) -> list[bytes | memoryview]:
    """Returns a file of arrays, in parts to be written one after another.

    Args:
      arrays: by name.
    """
    header: dict[str, Any] = {}
    other: dict[str, str] = {}
    parts: list[bytes | memoryview] = []
    at = 0
    # The format allows no gaps: what is largest comes first, so that sizes that are
    # multiples of the alignment keep it for all after them.
    order = sorted(arrays, key=lambda name: (arrays[name].nbytes % ALIGNMENT > 0, name))
    for name in order:
        array = np.ascontiguousarray(arrays[name]).reshape(arrays[name].shape)
        short = _NAMES.get(array.dtype.name)
        shape = list(array.shape)
        if short is None:
            other[name] = array.dtype.name
            short, shape = "U8", [*shape, array.dtype.itemsize]
        header[name] = {
            "dtype": short,
            "shape": shape,
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
        if array.nbytes:
            flat: Any = array.reshape(-1).view(np.uint8)
            parts.append(memoryview(flat))
    if other:
        header[_METADATA] = other
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return [struct.pack("<Q", len(text)) + text, *parts]


def decode(data: memoryview) -> dict[str, NDArray]:
    """Returns the arrays of a file by name; they are views of its bytes.

    Args:
      data: the file.

    Raises:
      ExportError: it is none, or damaged.
    """
    if len(data) < 8:
        raise ExportError("the parameters are cut off")
    (length,) = struct.unpack("<Q", data[:8])
    if length > len(data) - 8:
        raise ExportError("the parameters are cut off")
    try:
        header = json.loads(bytes(data[8 : 8 + length]))
        other = header.pop(_METADATA, {})
        body = data[8 + length :]
        return {
            name: _array(name, entry, body, other) for name, entry in header.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        if isinstance(error, ExportError):
            raise
        raise ExportError(f"the parameters are damaged: {error}") from None


def _array(name: str, entry: Any, body: memoryview, other: Any) -> NDArray:
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    kind = other.get(name) or _DTYPES.get(entry["dtype"])
    if kind is None:
        raise ExportError(
            f"the parameter {name!r} is of the unknown {entry['dtype']!r}"
        )
    dtype = dtypes.dtype(kind)
    numbers = (*shape, begin, end)
    if not all(type(n) is int and n >= 0 for n in numbers) or end > len(body):
        raise ExportError(f"the parameter {name!r} does not lie in the file")
    if name in other:
        shape = shape[:-1]
    if math.prod(shape) * dtype.itemsize != end - begin:
        raise ExportError(f"the parameter {name!r} has not the size of its shape")
    return np.frombuffer(body[begin:end], dtype).reshape(shape)
