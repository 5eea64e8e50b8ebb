"""Linear recursions along the last axis, block by block.

A filter y = b/a x is a state recursion z' = A z + B x, y = C z + b0 x (the transposed
direct form II). One sample at a time would be a loop of tiny operations. Here the
states after 1 … L samples are computed once, one sample at a time, and a block of L
samples is then two matrix products: the block's answer from rest, and its answer to
the state it begins in. Only the state at the start of each block is left to a loop. The
powers of A come from the recursion itself, so rounding errors grow as they do in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.numpy._operands import ArrayLike, array_of
from fxflow.scipy.signal._polyphase import polyphase

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


Step = Callable[[Array, Any], tuple[Array, Array]]


def _answers(step: Step, order: int, length: int, dtype: Any) -> tuple[Array, Array]:
    """Returns what a linear recursion does with unit states and an impulse.

    Args:
      step: from states[K, m] and inputs[m] to the states after them and outputs[m].
      order: K, of the states.
      length: number of samples.
      dtype: dtype of the numbers.

    Returns:
      Outputs[length, K + 1] and states[length + 1, K, K + 1] after 0 … `length`
      samples: column j < K begins with 1 in element j of the state, and the first
      sample of column K is 1; all others are 0.
    """
    start = fnp.eye(order, order + 1, dtype=dtype)
    impulse = np.zeros((length, order + 1))
    impulse[0, order] = 1

    def walk(z: Array, u: Array) -> tuple[Array, tuple[Array, Array]]:
        after, out = step(z, u)
        return after, (out, after)

    unroll = max(1, min(length, 16 // order))
    _, (outs, states) = lax.scan(
        walk, start, fnp.asarray(impulse, dtype), length, unroll=unroll
    )
    return outs, fnp.concatenate([start[None], states], 0)


def _dot(u: Array, v: Array) -> Array:
    return fnp.matmul(u, v, precision="highest")


def _in_blocks(step: Step, x: Array, z: Array) -> tuple[Array, Array]:
    """Runs a linear recursion along the last axis.

    Args:
      step: from states[K, m] and inputs[m] to the states after them and outputs[m].
      x: inexact[..., n].
      z: inexact[..., K]: the state before.

    Returns:
      The outputs, of the shape of `x`, and the state after it.
    """
    n, order = x.aval.shape[-1], z.aval.shape[-1]
    if not x.aval.size:
        return x, z
    length = min(n, next(size for least, size in _BLOCKS if n >= least))
    outs, states = _answers(step, order, length, x.aval.dtype)
    at = np.arange(length)[:, None] - np.arange(length)
    from_rest = fnp.where(at >= 0, outs[np.maximum(at, 0), order], 0).T
    from_state = outs[:, :order].T

    def inputs(count: int) -> Array:
        """Returns what each sample of a block adds to the state behind it."""
        return fnp.flip(states[1 : count + 1, :, order], 0)

    count = n // length
    outer = x.aval.shape[:-1]
    blocks = fnp.reshape(x[..., : count * length], (*outer, count, length))
    added = fnp.moveaxis(_dot(blocks, inputs(length)), -2, 0)
    onward = states[length, :, :order].T

    def advance(state: Array, more: Array) -> tuple[Array, Array]:
        return _dot(state, onward) + more, state

    z, starts = lax.scan(advance, z, added)
    out = _dot(blocks, from_rest) + _dot(fnp.moveaxis(starts, 0, -2), from_state)
    out = fnp.reshape(out, (*outer, count * length))
    rest = n - count * length
    if rest:
        tail = x[..., count * length :]
        left = _dot(tail, from_rest[:rest, :rest]) + _dot(z, from_state[:, :rest])
        z = _dot(z, states[rest, :, :order].T) + _dot(tail, inputs(rest))
        out = fnp.concatenate([out, left], -1)
    return out, z


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

    def step(z: Array, u: Array) -> tuple[Array, Array]:
        out = z[0] + b[0] * u
        shifted = fnp.concatenate([z[1:], fnp.zeros_like(z[:1])], 0)
        return shifted + b[1:, None] * u - a[1:, None] * out, out

    return _in_blocks(step, x, z)


#: Sections that run as one recursion: more states cost more than another pass.
_SECTIONS = 6


def cascade(sos: Array, x: Array, z: Array) -> tuple[Array, Array]:
    """Filters along the last axis by second-order sections, one after the other.

    Args:
      sos: inexact[S, 6], sos[:, 3] = 1.
      x: inexact[..., n] of the same dtype.
      z: inexact[S, ..., 2]: the states before.

    Returns:
      The filtered signal, of the shape of `x`, and the states after it.
    """
    after = []
    for at in range(0, sos.aval.shape[0], _SECTIONS):
        part = sos[at : at + _SECTIONS]
        count = part.aval.shape[0]

        def step(
            z: Array, u: Array, part: Array = part, count: int = count
        ) -> tuple[Array, Array]:
            new = []
            for s in range(count):
                b0, b1, b2, _, a1, a2 = part[s]
                out = z[2 * s] + b0 * u
                new += [z[2 * s + 1] + b1 * u - a1 * out, b2 * u - a2 * out]
                u = out
            return fnp.stack(new), u

        start = fnp.moveaxis(z[at : at + _SECTIONS], 0, -2)
        outer = start.aval.shape[:-2]
        x, end = _in_blocks(step, x, fnp.reshape(start, (*outer, 2 * count)))
        after.append(fnp.moveaxis(fnp.reshape(end, (*outer, count, 2)), -2, 0))
    return x, fnp.concatenate(after, 0)


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
    whole = polyphase(b, x, 1, 1, 0, n + order)
    pads = [(0, 0)] * (x.aval.ndim - 1) + [(0, n)]
    whole = whole + fnp.pad(z, pads)
    return whole[..., :n], whole[..., n:]
