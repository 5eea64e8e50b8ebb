"""Memory of Pallas: spaces, types of references in them, semaphores, parts.

A laptop has one memory, so a space is a name; a semaphore is a count that no program
waits for, since a copy is done when it starts.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import ShapeDtypeStruct, lax
from fxflow.core.arrays import Array, typeof
from fxflow.core.ir.ref_index import Slice
from fxflow.core.ir.references import Ref, RefView, fitted
from fxflow.core.ir.references import new as new_ref
from fxflow.errors import ArgumentError


class MemoryRef:
    """The type of a reference in a memory space.

    Args:
      shape: shape of the contents.
      dtype: dtype of the contents.
      memory_space: where.
    """

    def __init__(self, shape: Any, dtype: Any, memory_space: Any = None) -> None:
        shape = (shape,) if isinstance(shape, int) else shape
        self.shape: tuple[Any, ...] = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.memory_space: Any = memory_space

    @classmethod
    def of(cls, x: Any, memory_space: Any = None) -> MemoryRef:
        """Returns the type of a reference to what an array or a type describes."""
        return cls(x.shape, x.dtype, memory_space)

    def get_array_aval(self) -> Any:
        """Returns the type of the contents."""
        return ShapeDtypeStruct(self.shape, self.dtype)

    def __repr__(self) -> str:
        return f"MemoryRef({self.shape}, {self.dtype}, {self.memory_space})"


class _Space(enum.Enum):
    def __call__(self, shape: Any, dtype: Any = None) -> MemoryRef:
        """Returns the type of a reference in this space."""
        if dtype is None:
            return MemoryRef.of(shape, self)
        return MemoryRef(shape, dtype, self)

    def __str__(self) -> str:
        return str(self.value)


class MemorySpace(_Space):
    """Spaces of any back end.

    Args:
      shape: shape of a reference in this space; a call returns its type.
      dtype: dtype of the reference; None: `shape` is an array or a type.

    Returns:
      A `MemoryRef`.
    """

    ANY = "any"
    DEFAULT = "default"
    ERROR = "error"
    INDEX = "index"
    KEY = "key"
    HOST = "host"


class TpuMemorySpace(_Space):
    """Spaces of a TPU.

    Args:
      shape: shape of a reference in this space; a call returns its type.
      dtype: dtype of the reference; None: `shape` is an array or a type.

    Returns:
      A `MemoryRef`.
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"


class SemaphoreType(enum.Enum):
    """Kinds of semaphores.

    Args:
      shape: shape of a reference to semaphores; a call returns its type.

    Returns:
      A `MemoryRef`.
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    def __call__(self, shape: Any = ()) -> MemoryRef:
        """Returns the type of a reference to semaphores."""
        return MemoryRef(shape, np.int32, self)


def memory_type(given: Any) -> Any:
    """Returns the type of scratch: that of `given`, or of one semaphore."""
    if isinstance(given, SemaphoreType):
        return given()
    if not hasattr(given, "shape") or not hasattr(given, "dtype"):
        raise ArgumentError(
            "scratch must be a type such as pltpu.VMEM((8, 128), jnp.float32) or "
            f"pltpu.SemaphoreType.DMA, got {given!r}"
        )
    return given


def allocate(given: Any) -> Any:
    """Returns a new reference of a type; its contents are zeros."""
    kind = memory_type(given)
    return new_ref(fnp.zeros(kind.shape, kind.dtype))


# -- parts -----------------------------------------------------------------------------


class Window:
    """What a reference holds, seen in another way (`ref.bitcast`, `ref.reshape`).

    Args:
      ref: the reference.
      there: from its contents to what is seen.
      back: the way back.
    """

    __array_ufunc__ = None

    def __init__(
        self, ref: Any, there: Callable[[Any], Any], back: Callable[[Any], Any]
    ) -> None:
        self._ref, self._there, self._back = ref, there, back
        seen = typeof(there(ref[...]))
        self.shape, self.dtype, self.ndim = seen.shape, seen.dtype, len(seen.shape)
        self.size = int(np.prod(seen.shape))

    def __getitem__(self, index: Any) -> Any:
        return new_ref(self._there(self._ref[...]))[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        seen = new_ref(self._there(self._ref[...]))
        seen[index] = value
        self._ref[...] = self._back(seen[...])

    @property
    def at(self) -> Any:
        """Parts: `ref.at[index]`."""
        return _At(self)

    def get(self) -> Any:
        """Returns the contents."""
        return self[...]

    def set(self, value: Any) -> None:
        """Replaces the contents."""
        self[...] = value


class _At:
    def __init__(self, ref: Window) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> Window:
        def back(part: Any) -> Any:
            whole = new_ref(self._ref[...])
            whole[index] = part
            return whole[...]

        return Window(self._ref, lambda whole: new_ref(whole)[index], back)


def bitcast(x: Any, dtype: Any) -> Any:
    """Returns the bits of an array as another dtype; the last axis but one changes.

    Two halves of a number are neighbours along that axis, the lower one first.

    Args:
      x: an array of at least two axes, or of one dtype size.
      dtype: dtype of the result.
    """
    old, new = typeof(x).dtype.itemsize, np.dtype(dtype).itemsize
    if old == new:
        return lax.bitcast_convert_type(x, dtype)
    if x.ndim < 2 or (old < new and x.shape[-2] * old % new):
        raise ArgumentError(
            f"bitcast: the last axis but one of {typeof(x)} cannot be divided into "
            f"numbers of {np.dtype(dtype)}"
        )
    *front, rows, columns = x.shape
    if old > new:
        parts = fnp.moveaxis(lax.bitcast_convert_type(x, dtype), -1, -2)
        return parts.reshape(*front, rows * (old // new), columns)
    parts = x.reshape(*front, rows * old // new, new // old, columns)
    return lax.bitcast_convert_type(fnp.moveaxis(parts, -2, -1), dtype)


def _bitcast(ref: Any, dtype: Any) -> Window:
    """Returns the same bits as a reference of another dtype."""
    old = ref.dtype
    return Window(ref, lambda x: bitcast(x, dtype), lambda x: bitcast(x, old))


def _reshape(ref: Any, *shape: Any) -> Window:
    """Returns the same elements as a reference of another shape."""
    new = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    old = ref.shape
    return Window(ref, lambda x: x.reshape(new), lambda x: x.reshape(old))


for _kind in (Ref, RefView, Window):
    _kind.bitcast, _kind.reshape = _bitcast, _reshape  # type: ignore[union-attr]


# -- masks, slices ---------------------------------------------------------------------


def store(ref: Any, value: Any, mask: Any = None) -> None:
    """Writes to a reference where a mask holds."""
    if mask is not None:
        old = ref[...]
        value = fnp.where(mask, fitted(value, typeof(old)), old)
    ref[...] = value


def ds(start: Any, size: Any = None, stride: int = 1) -> Any:
    """A part of an axis: `ref[ds(start, size)]`; `ds(size)` starts at 0.

    Elements past the end of the axis read as zero, writes to them are dropped.

    Args:
      start: an int, or a 0-d integer array.
      size: the length, an int; an array for the index map of a `BoundedSlice`.
      stride: the distance of the elements.

    Returns:
      An index for one axis.

    Raises:
      ArgumentError: the size is not an int.

    Example:
      >>> ds(2, 4)
      Slice(start=2, size=4, clamps=False)
    """
    if size is None:
        start, size = 0, start
    if isinstance(size, np.integer):
        size = int(size)
    if isinstance(start, np.integer):
        start = int(start)
    if stride != 1:
        if isinstance(start, int):
            return slice(start, start + (size - 1) * stride + 1, stride)
        return start + stride * fnp.arange(size, dtype=start.dtype)
    if isinstance(size, int) and size < 0:
        raise ValueError(f"ds: `size` must be a non-negative int, got {size}")
    return Slice(start, size)


# -- semaphores ------------------------------------------------------------------------


def refuse_device(what: str, device_id: Any, core_index: Any = None) -> None:
    """Checks that nothing is asked of another device or core."""
    if device_id is not None or core_index is not None:
        raise NotImplementedError(
            f"{what}: a kernel runs on one device here, got device_id={device_id!r}, "
            f"core_index={core_index!r}: communicate by collectives outside of the "
            "kernel (docs/compat.md)"
        )


def semaphore_signal(
    sem_or_view: Any,
    inc: Any = 1,
    *,
    device_id: Any = None,
    device_id_type: Any = None,
    core_index: Any = None,
) -> None:
    """Adds to a semaphore.

    Args:
      sem_or_view: the semaphore.
      inc: what is added.
      device_id, device_id_type, core_index: of another device: refused.
    """
    refuse_device("semaphore_signal", device_id, core_index)
    sem_or_view[...] = sem_or_view[...] + inc


def semaphore_wait(sem_or_view: Any, value: Any = 1, *, decrement: bool = True) -> None:
    """Takes from a semaphore; it never blocks.

    Args:
      sem_or_view: the semaphore.
      value: what is taken.
      decrement: whether it is taken.
    """
    if decrement:
        sem_or_view[...] = sem_or_view[...] - value


def semaphore_read(sem_or_view: Any) -> Array:
    """Returns the count of a semaphore.

    Args:
      sem_or_view: the semaphore.

    Returns:
      `s32[]`.
    """
    count: Array = sem_or_view[...]
    return count


# -- copies ----------------------------------------------------------------------------


class AsyncCopyDescriptor:
    """A local copy, done when it starts.

    Args:
      src_ref, dst_ref: references of one shape and dtype.
      sem: counts copies that have ended; None: nothing does.
    """

    def __init__(self, src_ref: Any, dst_ref: Any, sem: Any = None) -> None:
        if tuple(src_ref.shape) != tuple(dst_ref.shape):
            raise ValueError(
                f"make_async_copy: the source has the shape {tuple(src_ref.shape)}, "
                f"but the destination {tuple(dst_ref.shape)}"
            )
        if src_ref.dtype != dst_ref.dtype:
            raise ValueError(
                f"make_async_copy: the source has the dtype {src_ref.dtype}, but the "
                f"destination {dst_ref.dtype}"
            )
        self.src_ref: Any = src_ref
        self.dst_ref: Any = dst_ref
        self.sem: Any = sem

    def start(self, priority: int = 0, *, add: bool = False) -> None:
        """Copies, and counts.

        Args:
          priority: has no effect.
          add: whether the contents are added to those of the destination.
        """
        value = self.src_ref[...]
        self.dst_ref[...] = self.dst_ref[...] + value if add else value
        if self.sem is not None:
            semaphore_signal(self.sem)

    def wait(self) -> None:
        """Takes the copy from its semaphore."""
        if self.sem is not None:
            semaphore_wait(self.sem)

    wait_recv = wait
    wait_send = wait
