"""`jax.experimental.pallas.triton`: masks, products, atomic operations.

Programs of one result run in order, so that an operation is atomic by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import fxflow.numpy as fnp
from fxflow import kernels
from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.experimental.pallas import _memory
from fxflow.compat.jax.experimental.pallas._specs import CompilerParams
from fxflow.core.arrays import Array, typeof


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Array:
    """Returns the contents of a reference, with `other` where a mask does not hold.

    Args:
      ref: the reference, or a part, `ref.at[index]`.
      mask: bool, broadcasts to it.
      other: what takes the place of masked elements; None: zero.
      cache_modifier, eviction_policy, volatile: have no effect.

    Returns:
      An array.
    """
    return kernels.load(ref, mask=mask, other=0 if other is None else other)


def store(
    ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None
) -> None:
    """Writes to a reference where a mask holds.

    Args:
      ref: the reference, or a part, `ref.at[index]`.
      val: broadcasts to it.
      mask: bool, broadcasts to it.
      eviction_policy: has no effect.
    """
    _memory.store(ref, val, mask)


def dot(
    a: Any,
    b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: Any = None,
) -> Array:
    """Returns the product of two matrices, exact unless told otherwise.

    Args:
      a, b: matrices.
      trans_a, trans_b: whether they are transposed.
      allow_tf32: True: `precision="high"`.
      precision: see `lax.dot_general`.

    Returns:
      A matrix: float32, or int32 for integers.

    Raises:
      ValueError: both `allow_tf32` and `precision` are given.
    """
    if allow_tf32 is not None and precision is not None:
        raise ValueError("Only one of allow_tf32 and precision can be specified")
    if precision is None:
        precision = "high" if allow_tf32 else "highest"
    a, b = a.T if trans_a else a, b.T if trans_b else b
    kind = "int32" if typeof(a).dtype.kind in "iu" else None
    if kind:
        return fnp.matmul(a, b, preferred_element_type=kind)
    return kernels.dot(a, b, precision=precision)


def approx_tanh(x: Any) -> Array:
    """Returns the hyperbolic tangent.

    Args:
      x: float array.

    Returns:
      An array like `x`.
    """
    return fnp.tanh(x)


def max_contiguous(x: Any, values: Any) -> Any:
    """Returns its first argument.

    Args:
      x: an array.
      values: has no effect.

    Returns:
      `x`.
    """
    return x


def debug_barrier() -> None:
    """Does nothing: a program has no threads."""


def elementwise_inline_asm(asm: str, **options: Any) -> NoReturn:
    """Raises: there is no machine of which this is the assembly.

    Args:
      asm: PTX.
      **options: any.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "elementwise_inline_asm: PTX runs on NVIDIA GPUs alone: write the operation "
        f"with jax.numpy, got {asm[:40]!r}"
    )


# -- atomic operations -----------------------------------------------------------------


def _atomic(name: str, update: Callable[[Any, Any], Any]) -> Callable[..., Array]:
    def atomic(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
        part = x_ref_or_view.at[idx]
        old: Array = part[...]
        val = fnp.broadcast_to(fnp.asarray(val, old.dtype), old.shape)
        new = update(x_ref_or_view, idx, old, val, mask)  # type: ignore[call-arg]
        if new is not None:
            part[...] = new
        return old

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"""Does `{name}` on a part of a reference; returns what it held.

    Elements that an index has several times are all counted.

    Args:
      x_ref_or_view: the reference.
      idx: of the part.
      val: broadcasts to the part.
      mask: bool, broadcasts to the part: where nothing happens if it is False.

    Returns:
      The part before.
    """
    return atomic


def _by(method: str, neutral: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Returns an update in which elements that occur several times are all counted."""

    def update(ref: Any, idx: Any, old: Any, val: Any, mask: Any) -> Any:
        if mask is not None:
            val = fnp.where(mask, val, neutral(old, val))
        if not _has_arrays(idx):
            return _COMBINE[method](old, val)
        whole = ref[...]
        ref[...] = getattr(whole.at[idx], method)(val)
        return None

    return update


def _has_arrays(idx: Any) -> bool:
    items = idx if isinstance(idx, tuple) else (idx,)
    return any(getattr(i, "ndim", 0) > 0 for i in items)


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "max": fnp.maximum,
    "min": fnp.minimum,
}


def _bits(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def update(ref: Any, idx: Any, old: Any, val: Any, mask: Any) -> Any:
        new = function(old, val)
        return new if mask is None else fnp.where(mask, new, old)

    return update


atomic_add: Callable[..., Array] = _atomic(
    "atomic_add", _by("add", lambda old, val: fnp.zeros_like(val))
)
atomic_max: Callable[..., Array] = _atomic(
    "atomic_max", _by("max", lambda old, val: old)
)
atomic_min: Callable[..., Array] = _atomic(
    "atomic_min", _by("min", lambda old, val: old)
)
atomic_and: Callable[..., Array] = _atomic("atomic_and", _bits(lambda x, y: x & y))
atomic_or: Callable[..., Array] = _atomic("atomic_or", _bits(lambda x, y: x | y))
atomic_xor: Callable[..., Array] = _atomic("atomic_xor", _bits(lambda x, y: x ^ y))
atomic_xchg: Callable[..., Array] = _atomic("atomic_xchg", _bits(lambda x, y: y))


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Array:
    """Writes a value if a reference holds another one; returns what it held.

    Args:
      ref: the reference, to one element.
      cmp: what it has to hold.
      val: what is written.

    Returns:
      An array of no axes.
    """
    old: Array = ref[...]
    ref[...] = fnp.where(old == cmp, fnp.asarray(val, old.dtype), old)
    return old


__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas",
    "atomic_max", "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor",
    "debug_barrier", "dot", "elementwise_inline_asm", "load", "max_contiguous",
    "store",
]  # fmt: skip

listen(globals())
