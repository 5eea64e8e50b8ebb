"""From and to bytes, files, iterables, other libraries; text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy import get_printoptions as get_printoptions
from numpy import printoptions as printoptions
from numpy import set_printoptions as set_printoptions

from fxflow.core.arrays import Array, Aval, dtypes, type_on, unwrapped
from fxflow.core.docs import shared
from fxflow.devices import buffers, dlpack
from fxflow.errors import ArgumentError, DtypeError
from fxflow.numpy._operands import DTypeLike
from fxflow.numpy.creation import asarray, to_device


def _given(values: np.ndarray[Any, Any], dtype: Any) -> Array:
    """Returns data that was read as a dtype that was asked for (or is the default)."""
    return asarray(values, dtypes.dtype(dtype))


_data_docs = shared("""
    Args:
      dtype: dtype of the elements.
      count: how many (-1: all).
      offset: bytes before the first one.

    Returns:
      Array.

    Source: `numpy.{name}`.
""")


@_data_docs
def frombuffer(
    buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0
) -> Array:
    """Reads the bytes of a buffer as an array of one axis.

    Args:
      buffer: bytes, or anything with the buffer protocol; it is copied.

    Raises:
      ValueError: the bytes are not a whole number of elements, or too few.

    Example:
      >>> frombuffer(bytes([1, 2]), dtype=fnp.uint8)
      Array([1, 2], dtype=uint8)
    """
    return _given(np.frombuffer(buffer, dtypes.stored(dtype), count, offset), dtype)


@_data_docs
def fromfile(
    file: Any, dtype: DTypeLike = float, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    """Reads an array of one axis from a file.

    Args:
      file: open file or path.
      sep: between numbers, if the file is text.

    Raises:
      OSError: the file cannot be read.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "numbers"
      ...     size = path.write_bytes(np.arange(3, dtype=np.int32).tobytes())
      ...     print(fromfile(path, dtype=fnp.int32))
      [0 1 2]
    """
    found = np.fromfile(file, dtypes.stored(dtype), count, sep, offset)
    return _given(found, dtype)


@_data_docs
def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """Makes an array of one axis of the numbers that an iterable gives.

    Args:
      iter: of numbers.

    Raises:
      ValueError: the iterable gives too few.

    Example:
      >>> fromiter((n * n for n in range(4)), dtype=fnp.int32)
      Array([0, 1, 4, 9], dtype=int32)
    """
    return _given(np.fromiter(iter, dtypes.dtype(dtype), count), dtype)


@_data_docs
def fromstring(
    string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str
) -> Array:
    """Reads numbers from text as an array of one axis.

    Args:
      string: text.
      sep: between numbers; not empty (see `frombuffer` for bytes).

    Raises:
      ArgumentError: `sep` is empty.
      ValueError: the text holds something else.

    Example:
      >>> fromstring("1 2 3", dtype=fnp.int32, sep=" ")
      Array([1, 2, 3], dtype=int32)
    """
    if not sep:
        raise ArgumentError(
            "fromstring: sep must not be empty; use frombuffer for bytes"
        )
    return _given(np.fromstring(string, dtypes.dtype(dtype), count, sep=sep), dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Takes an array from another library, without a copy where that is possible.

    The memory is shared then: the other library must not write to it.

    Args:
      x: an object with `__dlpack__` and `__dlpack_device__`.
      device: where to put it (default: where it is).
      copy: True copies, False refuses to.

    Returns:
      Array.

    Raises:
      ArgumentError: `x` does not speak DLPack.
      BufferError: `copy=False`, and a copy is needed.

    Example:
      >>> from_dlpack(np.array([1, 2], np.int32))
      Array([1, 2], dtype=int32)

    Source: `numpy.from_dlpack`; the array API standard, 2023.12.
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise ArgumentError(
            f"from_dlpack: takes an array of a library that speaks DLPack, got {x!r} "
            "of "
            f"type {type(x).__name__}"
        )
    if isinstance(x, np.ndarray):
        dtypes.dtype(x.dtype)  # says it if there is none
    if isinstance(x, Array):
        out = asarray(x, copy=True if copy else None)
    else:
        buffer = dlpack.from_dlpack(x, device, copy)
        kind = buffer.aval
        aval = Aval(tuple(kind.shape), dtypes.dtype(np.dtype(kind.dtype)))
        where = buffers.placement_of(buffer)
        return Array(buffer, type_on(aval, where, device is not None))
    if device is None or device in out.devices():
        return out
    if copy is False:
        raise BufferError(
            "from_dlpack: another device needs a copy; copy=False forbids it"
        )
    return to_device(out, device)


def save(file: Any, arr: Any, allow_pickle: bool = False) -> None:
    """Writes an array to a file in NumPy's format.

    Args:
      file: open file or path.
      arr: array-like.
      allow_pickle: passed to NumPy; arrays here never need it.

    Raises:
      OSError: the file cannot be written.
      DtypeError: NumPy's format does not have the dtype, such as float8_e5m2.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "x.npy"
      ...     save(path, fnp.arange(3))
      ...     print(load(path))
      [0 1 2]

    Source: `numpy.save`.
    """
    np.save(file, _storable("save", arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = False, **kwds: Any) -> None:
    """Writes several arrays to one file in NumPy's format.

    Args:
      file: open file or path.
      *args: array-likes, named `arr_0`, `arr_1`, …
      allow_pickle: passed to NumPy; arrays here never need it.
      **kwds: array-likes by name.

    Raises:
      OSError: the file cannot be written.
      DtypeError: NumPy's format does not have a dtype, such as float8_e5m2.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "all.npz"
      ...     savez(path, x=fnp.arange(3), y=fnp.ones(2))
      ...     print(load(path)["y"])
      [1. 1.]

    Source: `numpy.savez`.
    """
    named = {name: _storable("savez", a) for name, a in kwds.items()}
    values = (_storable("savez", a) for a in args)
    np.savez(file, *values, allow_pickle=allow_pickle, **named)


def _storable(name: str, arr: Any) -> np.ndarray[Any, Any]:
    """Returns an array that NumPy's format holds.

    Raises:
      DtypeError: it could not be read again: NumPy writes the other dtypes of
        `ml_dtypes` as raw bytes, by which only bfloat16 is known (it alone has two).
    """
    host = np.asarray(unwrapped(arr))
    if host.dtype.isbuiltin == 2 and host.dtype != dtypes.bfloat16:
        raise DtypeError(
            f"{name}: NumPy's format does not have {host.dtype}: save it with "
            "fxflow.train.checkpoint.save"
        )
    return host


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Reads an array, or an archive of arrays, that NumPy or `save` wrote.

    Args:
      file: open file or path.
      *args: passed to `numpy.load`.
      **kwargs: passed to `numpy.load`.

    Returns:
      Array of the dtype in the file; of an archive, NumPy's `NpzFile`, in which
      bfloat16 is raw bytes (`|V2`): `asarray(archive[name].view("bfloat16"))`.

    Raises:
      OSError: the file cannot be read.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = pathlib.Path(folder) / "x.npy"
      ...     save(path, fnp.arange(3))
      ...     print(load(path))
      [0 1 2]

    Source: `numpy.load`.
    """
    found = np.load(file, *args, **kwargs)
    if isinstance(found, np.ndarray):
        if found.dtype.kind == "V" and found.dtype.itemsize == 2:
            found = found.view(dtypes.bfloat16)  # NumPy writes bfloat16 as raw bytes
        return asarray(found, found.dtype)
    return found


def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Returns the text of an array with its dtype.

    Args:
      arr: array-like.
      max_line_width: characters in a line.
      precision: digits behind the point.
      suppress_small: whether to write tiny numbers as 0.

    Returns:
      A string.

    Example:
      >>> array_repr(fnp.array([1, 2]))
      'Array([1, 2], dtype=int32)'

    Source: `numpy.array_repr`.
    """
    value = np.asarray(unwrapped(arr))
    small = None if suppress_small is None else bool(suppress_small)
    text = np.array_repr(value, max_line_width, precision, small)
    return text.replace("array(", "Array(", 1)


def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Returns the text of the elements of an array.

    Args:
      a: array-like.
      max_line_width: characters in a line.
      precision: digits behind the point.
      suppress_small: whether to write tiny numbers as 0.

    Returns:
      A string.

    Example:
      >>> array_str(fnp.array([1, 2]))
      '[1 2]'

    Source: `numpy.array_str`.
    """
    value = np.asarray(unwrapped(a))
    small = None if suppress_small is None else bool(suppress_small)
    return str(np.array_str(value, max_line_width, precision, small))
