"""`jax.experimental.pallas.tpu`: what a laptop can run of it.

Memory spaces are names, copies are done when they start, semaphores count, pipelines
are loops.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import kernels, lax
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.pallas import _memory, _refused
from fxflow.compat.jax.experimental.pallas._chips import (
    ChipVersion,
    TpuInfo,
    get_tpu_info,
    get_tpu_info_for_chip,
    is_tpu_device,
)
from fxflow.compat.jax.experimental.pallas._memory import (
    AsyncCopyDescriptor,
    SemaphoreType,
    TpuMemorySpace,
    bitcast,
)
from fxflow.compat.jax.experimental.pallas._pipeline import (
    BufferedRef,
    BufferedRefBase,
    BufferType,
    emit_pipeline,
    emit_pipeline_with_allocations,
)
from fxflow.compat.jax.experimental.pallas._specs import (
    CompilerParams,
    PrefetchScalarGridSpec,
)
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError

MemorySpace = TpuMemorySpace
VMEM, SMEM, HBM = MemorySpace.VMEM, MemorySpace.SMEM, MemorySpace.HBM
CMEM, SEMAPHORE = MemorySpace.CMEM, MemorySpace.SEMAPHORE
VMEM_SHARED = MemorySpace.VMEM_SHARED
dma_semaphore = SemaphoreType.DMA


class GridDimensionSemantics(enum.Enum):
    """Whether programs along an axis of the grid are independent."""

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


PARALLEL = GridDimensionSemantics.PARALLEL
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL
ARBITRARY = GridDimensionSemantics.ARBITRARY


class CoreType(enum.Enum):
    """Kinds of cores."""

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


class SideEffectType(enum.Enum):
    """What else a kernel does."""

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class Tiling(enum.Enum):
    """Orders of elements in memory."""

    COMPACT = "compact"
    SPARSE_CORE = "sparse_core"


class LoweringException(Exception):
    """A kernel that a TPU cannot run; never raised here."""


class InterpretParams:
    """Options of an interpreter, which have no effect.

    Args:
      **options: any of JAX's.
    """

    def __init__(self, **options: Any) -> None:
        self.__dict__.update(options)


@contextmanager
def force_tpu_interpret_mode(params: Any = None) -> Iterator[None]:
    """Has no effect: kernels for TPUs are compiled for the device at hand.

    Args:
      params: has no effect.
    """
    yield


def set_tpu_interpret_mode(params: Any = None) -> None:
    """Does nothing.

    Args:
      params: has no effect.
    """


def reset_tpu_interpret_mode_state() -> None:
    """Does nothing."""


# -- copies ----------------------------------------------------------------------------


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopyDescriptor:
    """Returns a local copy, which is done when it starts.

    Args:
      src_ref: the source.
      dst_ref: the destination, of the same shape and dtype.
      sem: a semaphore, which counts copies.

    Returns:
      An object with `start` and `wait`.

    Raises:
      ValueError: shapes or dtypes differ.
    """
    return AsyncCopyDescriptor(src_ref, dst_ref, sem)


def async_copy(
    src_ref: Any, dst_ref: Any, sem: Any, *, priority: int = 0, add: bool = False
) -> AsyncCopyDescriptor:
    """Starts a local copy; see `make_async_copy`.

    Args:
      src_ref, dst_ref, sem: as there.
      priority: has no effect.
      add: whether the contents are added to those of the destination.

    Returns:
      The copy.
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority, add=add)
    return copy


def sync_copy(src_ref: Any, dst_ref: Any, *, add: bool = False) -> None:
    """Copies what a reference holds to another one.

    Args:
      src_ref: the source.
      dst_ref: the destination, of the same shape and dtype.
      add: whether the contents are added to those of the destination.
    """
    AsyncCopyDescriptor(src_ref, dst_ref).start(add=add)


# -- references ------------------------------------------------------------------------


def load(ref: Any, *, mask: Any = None) -> Array:
    """Returns what a reference holds, and zeros where a mask does not hold.

    Args:
      ref: the reference.
      mask: bool, broadcasts to it.

    Returns:
      An array.
    """
    return kernels.load(ref, mask=mask)


def store(ref: Any, val: Any, *, mask: Any = None) -> None:
    """Writes to a reference where a mask holds.

    Args:
      ref: the reference.
      val: broadcasts to it.
      mask: bool, broadcasts to it.
    """
    _memory.store(ref, val, mask)


def touch(ref: Any) -> None:
    """Does nothing.

    Args:
      ref: a reference.
    """


def trace_value(label: str, value: Any) -> None:
    """Does nothing.

    Args:
      label: a name.
      value: a number.
    """


def with_memory_space_constraint(x: Any, memory_space: Any) -> Any:
    """Returns its first argument: there is one memory.

    Args:
      x: an array.
      memory_space: has no effect.

    Returns:
      `x`.
    """
    return x


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Runs a function of no arguments: there is one core; a decorator.

    Args:
      core_axis_name: has no effect.

    Returns:
      The decorator.
    """
    return lambda function: function()


# -- arrays ----------------------------------------------------------------------------


def roll(
    x: Any,
    shift: Any,
    axis: int,
    *,
    stride: int | None = None,
    stride_axis: int | None = None,
) -> Array:
    """Rolls an array along an axis: elements that leave at one end enter at the other.

    Args:
      x: an array.
      shift: the number of positions, an integer, which may be traced.
      axis: the axis.
      stride: the number of additional positions for each element of `stride_axis`.
      stride_axis: another axis.

    Returns:
      An array like `x`.

    Raises:
      ValueError: only one of `stride` and `stride_axis` is given, or an axis is
        invalid.
    """
    if not 0 <= axis < x.ndim:
        raise ValueError(f"axis: {axis} is out of range for {typeof(x)}")
    if isinstance(shift, int) and shift < 0:
        raise ValueError("shift must be non-negative.")
    if (stride is None) != (stride_axis is None):
        raise ValueError("stride and stride_axis must be both None or not None.")
    if stride is None or stride_axis is None:
        return fnp.roll(x, shift, axis)
    if stride_axis == axis or not 0 <= stride_axis < x.ndim:
        raise ValueError(
            f"stride_axis must be another axis than {axis} of {typeof(x)}, got "
            f"{stride_axis}"
        )
    here, other = (
        lax.broadcasted_iota(np.int32, x.shape, k) for k in (axis, stride_axis)
    )
    at = (here - shift - stride * other) % x.shape[axis]
    return fnp.take_along_axis(x, at, axis)


def pack_elementwise(xs: Any, *, packed_dtype: Any) -> Array:
    """Returns narrow numbers side by side in integers, the first one lowest.

    Args:
      xs: arrays of one shape.
      packed_dtype: that of the narrow numbers.

    Returns:
      `u32[...]`.

    Raises:
      ValueError: there are not as many arrays as fit.
    """
    xs = list(xs)
    count = 4 // np.dtype(packed_dtype).itemsize
    if len(xs) != count:
        raise ValueError(
            f"pack_elementwise: {count} arrays of {np.dtype(packed_dtype)} fit into 32 "
            f"bits, got {len(xs)}"
        )
    bits = 32 // count
    narrow = np.dtype(f"u{bits // 8}")
    total = fnp.zeros(xs[0].shape, np.uint32)
    for i, x in enumerate(xs):
        part = lax.bitcast_convert_type(x.astype(packed_dtype), narrow)
        total = total | (part.astype(np.uint32) << np.uint32(i * bits))
    return total


def unpack_elementwise(
    x: Any, *, index: int, packed_dtype: Any, unpacked_dtype: Any
) -> Array:
    """Returns one of the narrow numbers in integers; see `pack_elementwise`.

    Args:
      x: 32-bit integers.
      index: which.
      packed_dtype: that of the narrow numbers.
      unpacked_dtype: that of the result.

    Returns:
      An array.
    """
    bits = 8 * np.dtype(packed_dtype).itemsize
    words = lax.bitcast_convert_type(x, np.uint32)
    part = (words >> np.uint32(index * bits)).astype(np.dtype(f"u{bits // 8}"))
    return lax.bitcast_convert_type(part, packed_dtype).astype(unpacked_dtype)


def stochastic_round(x: Any, random_bits: Any, *, target_dtype: Any) -> Array:
    """Returns numbers rounded up or down, the nearer the more often.

    Args:
      x: `f32[...]`.
      random_bits: `u32[...]`, of the shape of `x`.
      target_dtype: bfloat16.

    Returns:
      An array of the shape of `x`.

    Raises:
      ArgumentError: a dtype is another one.
    """
    if np.dtype(target_dtype) != dtypes.bfloat16 or typeof(x).dtype != np.float32:
        raise ArgumentError(
            f"stochastic_round: from float32 to bfloat16 only, got {typeof(x)} to "
            f"{np.dtype(target_dtype)}"
        )
    bits = lax.bitcast_convert_type(x, np.uint32)
    low = np.uint32(0xFFFF)
    moved = (bits + (random_bits.astype(np.uint32) & low)) & ~low
    rounded = lax.bitcast_convert_type(moved, np.float32)
    return fnp.where(fnp.isfinite(x), rounded, x).astype(dtypes.bfloat16)


def einshape(
    equation: str, x: Any, assert_is_tile_preserving: bool = False, **sizes: int
) -> Array:
    """Returns an array with axes split, merged and reordered.

    Args:
      equation: `"a(bc)->b(ac)"`: names of axes, those that form one in brackets.
      x: an array.
      assert_is_tile_preserving: has no effect.
      **sizes: of axes that are split.

    Returns:
      An array.

    Raises:
      ArgumentError: the equation does not fit the array.

    Example:
      >>> einshape("a(bc)->abc", fnp.zeros((2, 6)), b=3).shape
      (2, 3, 2)
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    groups, wanted = _groups(left), _groups(right)
    names = [a for group in groups for a in group]
    known = dict(sizes)
    if (
        not arrow
        or len(groups) != x.ndim
        or sorted(names) != sorted(a for group in wanted for a in group)
        or len(set(names)) != len(names)
    ):
        raise ArgumentError(f"einshape: {equation!r} does not fit {typeof(x)}")
    for group, n in zip(groups, x.shape, strict=True):
        unknown = [a for a in group if a not in known]
        product = int(np.prod([known[a] for a in group if a in known]))
        if len(unknown) > 1 or n % product or (not unknown and product != n):
            raise ArgumentError(
                f"einshape: {equation!r}: give sizes of {', '.join(group)}, whose "
                f"product is {n}"
            )
        if unknown:
            known[unknown[0]] = n // product
    split = x.reshape([known[a] for a in names])
    order = [names.index(a) for group in wanted for a in group]
    shape = [int(np.prod([known[a] for a in group])) for group in wanted]
    result: Array = split.transpose(order).reshape(shape)
    return result


def _groups(text: str) -> list[list[str]]:
    """Returns the axes of each axis: `a(bc)` is `[[a], [b, c]]`."""
    found: list[list[str]] = []
    inside = False
    for letter in text:
        if letter == "(":
            inside = True
            found.append([])
        elif letter == ")":
            inside = False
        elif inside:
            found[-1].append(letter)
        else:
            found.append([letter])
    return found


# -- refused ---------------------------------------------------------------------------

_REMOTE = "a kernel runs on one device: use collectives outside of it"
_RANDOM = "there is no generator in hardware: pass bits, or a key's data, as an operand"
_MXU = "there is no matrix unit to program: write jnp.dot"
_REFUSED = {
    "async_remote_copy": _REMOTE,
    "make_async_remote_copy": _REMOTE,
    "core_barrier": _REMOTE,
    "get_barrier_semaphore": _REMOTE,
    "create_tensorcore_mesh": "kernels run on one core: write pallas_call",
    "matmul_acc_lhs": _MXU,
    "matmul_pop": _MXU,
    "matmul_push_rhs": _MXU,
    "prng_random_bits": _RANDOM,
    "prng_seed": _RANDOM,
    "sample_block": _RANDOM,
    "stateful_bernoulli": _RANDOM,
    "stateful_bits": _RANDOM,
    "stateful_normal": _RANDOM,
    "stateful_uniform": _RANDOM,
    "to_pallas_key": _RANDOM,
}
for _name, _why in _REFUSED.items():
    globals()[_name] = _refused(f"tpu.{_name}", _why)

__all__ = [
    "ARBITRARY", "BufferType", "BufferedRef", "BufferedRefBase", "CMEM",
    "CORE_PARALLEL", "ChipVersion", "CompilerParams", "CoreType",
    "GridDimensionSemantics", "HBM", "InterpretParams", "LoweringException",
    "MemorySpace", "PARALLEL", "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM",
    "SUBCORE_PARALLEL", "SemaphoreType", "SideEffectType", "Tiling", "TpuInfo", "VMEM",
    "VMEM_SHARED", "async_copy", "bitcast", "dma_semaphore", "einshape",
    "emit_pipeline", "emit_pipeline_with_allocations", "force_tpu_interpret_mode",
    "get_tpu_info", "get_tpu_info_for_chip", "is_tpu_device", "load", "make_async_copy",
    "pack_elementwise", "reset_tpu_interpret_mode_state", "roll", "run_on_first_core",
    "set_tpu_interpret_mode", "stochastic_round", "store", "sync_copy", "touch",
    "trace_value", "unpack_elementwise", "with_memory_space_constraint", *_REFUSED,
]  # fmt: skip

listen(globals())
