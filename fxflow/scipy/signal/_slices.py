"""Windows of slices that overlap: their scale, their dual, and the sum of slices."""

from __future__ import annotations

import functools

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.scipy.signal._recursions import known


def scale_factor(win: Array, scaling: str, fs: float) -> Array:
    if scaling == "magnitude":
        return 1 / fnp.abs(fnp.sum(win))
    return 1 / fnp.sqrt(fnp.sum(fnp.real(win) ** 2 + fnp.imag(win) ** 2) * fs)


def canonical_dual(name: str, win: Array, hop: int) -> Array:
    """Returns the window for which shifted products with `win` add up to 1."""
    m = win.size
    power = fnp.real(win) ** 2 + fnp.imag(win) ** 2
    count = -(-m // hop)
    folded = fnp.reshape(fnp.pad(power, (0, count * hop - m)), (count, hop))
    sums = fnp.tile(fnp.sum(folded, 0), count)[:m]
    host = known(sums, name)
    if host is not None:
        least = np.finfo(host.dtype).resolution * host.max()
        if m < hop or not np.all(host >= max(least, np.finfo(host.dtype).tiny)):
            raise ArgumentError(
                f"{name}: the transform has no inverse: a sample lies in no slice "
                f"with a window of {m} points and hop={hop}"
            )
    return win / sums


def overlapped(parts: Array, hop: int) -> Array:
    """Returns the sum of parts[..., p, :], each `hop` samples behind the one before."""
    *outer, count, m = parts.shape
    pieces = -(-m // hop)
    none = [(0, 0)] * len(outer)
    parts = fnp.pad(parts, [*none, (0, 0), (0, pieces * hop - m)])
    parts = fnp.reshape(parts, (*outer, count, pieces, hop))
    shifted = [
        fnp.pad(parts[..., j, :], [*none, (j, pieces - 1 - j), (0, 0)])
        for j in range(pieces)
    ]
    total = functools.reduce(fnp.add, shifted)
    return fnp.reshape(total, (*outer, (count + pieces - 1) * hop))
