"""Arrays in the safetensors format: written whole, read as views of the file.

The format is a length, a JSON text that gives for each name a dtype, a shape and an
offset, and the elements. The package of that name copies what it reads and is not
needed; its files and these are the same. An array of a dtype that the format does not
have is written as bytes, with the name of the dtype in the metadata.

Source: the format's README.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes

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
# By their names, whatever `config.explicit_x64_dtypes` says.
_KNOWN = {dtype.name: dtype for dtype in dtypes.ALL}
_METADATA = "__metadata__"
#: The name in the metadata of the digest of the arrays' bytes.
_DIGEST = "fxflow.sha256"
#: For each array, so that the runtime can use its memory without a copy.
ALIGNMENT = 64


def encode(
    arrays: Mapping[str, NDArray], *, digest: bool = False
) -> list[bytes | memoryview]:
    """Returns the parts of a file of arrays, to be written one after another.

    Args:
      arrays: by name.
      digest: whether the header contains the SHA-256 digest of what follows it.
    """
    header: dict[str, Any] = {}
    other: dict[str, str] = {}
    parts: list[bytes | memoryview] = []
    at = 0
    # The format allows no gaps: arrays whose sizes are multiples of the alignment come
    # first, so that they are aligned.
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
    if digest:
        whole = hashlib.sha256()
        for part in parts:
            whole.update(part)
        other[_DIGEST] = whole.hexdigest()
    if other:
        header[_METADATA] = other
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return [struct.pack("<Q", len(text)) + text, *parts]


def places(head: bytes, names: Iterable[str]) -> list[tuple[int, int]]:
    """Returns start and size of arrays in a file.

    Args:
      head: the file's first part, which `encode` returned.
      names: names of the arrays.
    """
    listed = json.loads(head[8:])
    found = []
    for name in names:
        begin, end = listed[name]["data_offsets"]
        found.append((len(head) + begin, end - begin))
    return found


def layout_digest(head: bytes) -> bytes:
    """Returns the SHA-256 digest of a file's first part without the arrays' digest.

    It changes only if an array is renamed, moved or of another type.

    Args:
      head: the file's first part, which `encode(digest=True)` returned.
    """
    at = head.index(f'"{_DIGEST}":"'.encode()) + len(_DIGEST) + 4
    return hashlib.sha256(head[:at] + b"0" * 64 + head[at + 64 :]).digest()


def decode(data: Any, *, verify: bool = False) -> dict[str, NDArray]:
    """Returns the arrays of a file by name; they are views of its bytes.

    Args:
      data: the file: an object with the buffer protocol, or `numpy.memmap` of bytes, of
        which the arrays are then, too.
      verify: whether to check the digest of the arrays, if the file has it.

    Raises:
      ValueError: it is not such a file, or damaged.
    """
    file = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    length = int.from_bytes(file[:8].tobytes(), "little")
    if len(file) < 8 or length > len(file) - 8:
        raise ValueError("the arrays are cut off")
    try:
        header = json.loads(file[8 : 8 + length].tobytes())
        other = header.pop(_METADATA, {})
        body = file[8 + length :]
        digest = other.pop(_DIGEST, None)
        whole: Any = body
        if verify and digest not in (None, hashlib.sha256(whole).hexdigest()):
            raise ValueError("the digest of the arrays differs")
        return {
            name: _array(name, entry, body, other) for name, entry in header.items()
        }
    except (
        json.JSONDecodeError,
        UnicodeDecodeError,
        *(TypeError, KeyError, AttributeError, RecursionError),
    ) as error:
        raise ValueError(f"the header is damaged: {error}") from None


def _array(name: str, entry: Any, body: NDArray, other: Any) -> NDArray:
    begin, end = entry["data_offsets"]
    shape = entry["shape"]
    kind = other.get(name) or _DTYPES.get(entry["dtype"])
    dtype = _KNOWN.get(str(kind))
    if dtype is None:
        raise ValueError(f"array {name!r} is of the unknown {entry['dtype']!r}")
    numbers = (*shape, begin, end)
    if not all(type(n) is int and n >= 0 for n in numbers) or end > len(body):
        raise ValueError(f"array {name!r} does not lie in the file")
    if name in other:
        shape = shape[:-1]
    if math.prod(shape) * dtype.itemsize != end - begin:
        raise ValueError(f"array {name!r} does not have the size of its shape")
    found: NDArray = body[begin:end].view(dtype)
    return found.reshape(shape)
