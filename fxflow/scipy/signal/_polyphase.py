"""Filters without feedback between two rates, as products of matrices.

One signal of one channel is the slowest case of a convolution on a CPU. Here the signal
is cut into blocks of as many input samples as the filter reaches: a block of outputs is
then two such blocks times matrices that hold the filter's coefficients, of which only
those that meet samples count (the polyphase form).
"""

from __future__ import annotations

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes

#: Input samples of a block, at least and at most, as measured on a CPU.
_SHORTEST, _LONGEST = 32, 256
#: Coefficients up to which a sum of shifted signals is faster.
_FEW = 8


def polyphase(h: Array, x: Array, up: int, down: int, start: int, count: int) -> Array:
    """Filters along the last axis: y[m] is the sum of h[m down + start - k up] x[k].

    Args:
      h: inexact[taps], taps ≥ 1; coefficients elsewhere are 0.
      x: inexact[..., n] of the same dtype.
      up: positive.
      down: positive.
      start: where the first output lies, in steps of the finer rate.
      count: number of outputs.

    Returns:
      Array[..., count].
    """
    taps, (*outer, n) = h.aval.size, x.aval.shape
    if not count or not x.aval.size:
        return fnp.zeros((*outer, count), x.aval.dtype)
    none = [(0, 0)] * len(outer)
    if up == down == 1 and taps <= _FEW:
        early = max(taps - 1 - start, 0)
        late = max(count + start - n, 0)
        x = fnp.pad(x, [*none, (early, late)])
        places = [early + start - k for k in range(taps)]
        return sum(h[k] * x[..., p : p + count] for k, p in enumerate(places))  # type: ignore[return-value]
    reach = -(-taps // up)
    periods = -(-min(max(reach, _SHORTEST), _LONGEST) // down)
    periods = max(1, min(periods, -(-count // up)))
    size, made = periods * down, periods * up
    blocks = -(-count // made)
    # Inputs of the first block of outputs: from `low` to `high`.
    low, high = -((taps - 1 - start) // up), ((made - 1) * down + start) // up
    parts = max(1, -(-(high - low + 1) // size))
    length = (blocks + parts - 1) * size
    early, late = max(-low, 0), max(low + length - n, 0)
    x = fnp.pad(x, [*none, (early, late)])[..., low + early : low + early + length]
    rows = fnp.reshape(x, (*outer, blocks + parts - 1, size))
    at = fnp.arange(made, dtype=dtypes.int32) * down + start
    tap = at - (fnp.arange(parts * size, dtype=dtypes.int32)[:, None] + low) * up
    met = (tap >= 0) & (tap < taps)
    matrix = fnp.where(met, h[fnp.clip(tap, 0, taps - 1)], 0)
    out = fnp.zeros((), x.aval.dtype)
    for j in range(parts):
        part = matrix[j * size : (j + 1) * size]
        out = out + fnp.matmul(rows[..., j : j + blocks, :], part, precision="highest")
    return fnp.reshape(out, (*outer, blocks * made))[..., :count]
