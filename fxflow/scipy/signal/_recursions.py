"""Linear recursions along the last axis, block by block.

A filter y = b/a x is a state recursion z' = A z + B x, y = C z + b0 x (the transposed
direct form II). One sample at a time would be a loop of tiny operations. Here the
states after 1 … L samples are computed once, one sample at a time, and a block of L
samples is then two matrix products: the block's answer from rest, and its answer to
the state it begins in. Only the state at the start of each block is left to a loop. The
powers of A come from the recursion itself, so rounding errors grow as they do in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.numpy._operands import ArrayLike, array_of

# An array, or numbers in a list.
Coefficients = ArrayLike | Sequence[Any]

#: Lengths of a block by the length of the signal, the fastest as measured on a CPU.
_BLOCKS = ((16_384, 64), (512, 32), (0, 16))


def numbers(value: Any) -> Any:
    """Returns coefficients that are in a list as an array, others as they are."""
    if not isinstance(value, list | tuple):
        return value
    host = all(isinstance(v, int | float | complex | list | tuple) for v in value)
    return np.asarray(value) if host else fnp.asarray(value)


def known(value: Any, name: str) -> np.ndarray[Any, Any] | None:
    """Returns the values of an array-like, or None where they are traced."""
    if not isinstance(value, np.ndarray):
        value = array_of(value, name)
    return None if isinstance(value, Tracer) else np.asarray(value)


def _states(b: Array, a: Array, length: int) -> Array:
    """Returns states after 0 … `length` samples of zeros.

    Args:
      b: inexact[K + 1], of a recursion with a[0] = 1.
      a: inexact[K + 1].
      length: number of samples.

    Returns:
      Array[length + 1, K, K + 1]: column j < K begins with 1 in element j of the state,
      and column K with what an impulse leaves behind.
    """
    impulse = b[1:] - a[1:] * b[0]
    eye = fnp.eye(a.aval.shape[0] - 1, dtype=a.aval.dtype)
    start = fnp.concatenate([eye, impulse[:, None]], 1)

    def step(z: Array, _: Any) -> tuple[Array, Array]:
        shifted = fnp.concatenate([z[1:], fnp.zeros_like(z[:1])], 0)
        return shifted - a[1:, None] * z[:1], z

    last, states = lax.scan(step, start, None, length, unroll=8)
    return fnp.concatenate([states, last[None]], 0)


def recursion(b: Array, a: Array, x: Array, z: Array) -> tuple[Array, Array]:
    """Filters along the last axis.

    Args:
      b: inexact[K + 1], K ≥ 1.
      a: inexact[K + 1], a[0] = 1.
      x: inexact[..., n] of the same dtype.
      z: inexact[..., K]: the state before.

    Returns:
      The filtered signal, of the shape of `x`, and the state after it.
    """
    n, order = x.aval.shape[-1], a.aval.shape[0] - 1
    if not x.aval.size:
        return x, z
    length = min(n, next(size for least, size in _BLOCKS if n >= least))
    states = _states(b, a, length)
    answers = fnp.concatenate([b[:1], states[: length - 1, 0, order]])
    at = np.arange(length)[:, None] - np.arange(length)
    from_rest = fnp.where(at >= 0, answers[np.maximum(at, 0)], 0).T
    from_state = states[:length, 0, :order].T

    def dot(u: Array, v: Array) -> Array:
        return fnp.matmul(u, v, precision="highest")

    def inputs(count: int) -> Array:
        """Returns what each sample of a block adds to the state behind it."""
        return fnp.flip(states[:count, :, order], 0)

    count = n // length
    outer = x.aval.shape[:-1]
    blocks = fnp.reshape(x[..., : count * length], (*outer, count, length))
    added = fnp.moveaxis(dot(blocks, inputs(length)), -2, 0)
    onward = states[length, :, :order].T

    def step(state: Array, more: Array) -> tuple[Array, Array]:
        return dot(state, onward) + more, state

    z, starts = lax.scan(step, z, added, unroll=min(count, 4))
    out = dot(blocks, from_rest) + dot(fnp.moveaxis(starts, 0, -2), from_state)
    out = fnp.reshape(out, (*outer, count * length))
    rest = n - count * length
    if rest:
        tail = x[..., count * length :]
        left = dot(tail, from_rest[:rest, :rest]) + dot(z, from_state[:, :rest])
        z = dot(z, states[rest, :, :order].T) + dot(tail, inputs(rest))
        out = fnp.concatenate([out, left], -1)
    return out, z


def moving_sum(b: Array, x: Array, z: Array) -> tuple[Array, Array]:
    """Filters along the last axis without feedback.

    Args:
      b: inexact[K + 1], K ≥ 1.
      x: inexact[..., n] of the same dtype.
      z: inexact[..., K]: the state before.

    Returns:
      As `recursion`.
    """
    n, order = x.aval.shape[-1], b.aval.shape[0] - 1
    rows = fnp.reshape(x, (-1, 1, n))
    whole = lax.conv_general_dilated(
        rows, fnp.flip(b)[None, None], (1,), [(order, order)], precision="highest"
    )
    whole = fnp.reshape(whole, (*x.aval.shape[:-1], n + order))
    pads = [(0, 0)] * (x.aval.ndim - 1) + [(0, n)]
    whole = whole + fnp.pad(z, pads)
    return whole[..., :n], whole[..., n:]
