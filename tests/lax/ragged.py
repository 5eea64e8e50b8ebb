"""Random exchanges of ragged parts, and a loop over all parts that does the same."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fxflow import lax

HAVE, WANT = 7, 24


class Tables(NamedTuple):
    """The tables of all places: `int32[places, places * each]`."""

    starts: np.ndarray
    sizes: np.ndarray
    targets: np.ndarray
    arriving: np.ndarray


def tables(rng, places, each=1, groups=None):
    """Random parts: they overlap where they come from, not where they go."""
    groups = groups or [list(range(places))]
    n = len(groups[0])
    shape = (places, n * each)
    sizes = rng.integers(0, 4, shape)
    starts = rng.integers(0, HAVE - 3, shape)
    targets = np.zeros(shape, int)
    arriving = np.zeros(shape, int)
    for group in groups:
        for k, receiver in enumerate(group):
            free = int(rng.integers(0, 2))
            for s in rng.permutation(n):
                for part in range(each):
                    size = sizes[group[s], k * each + part]
                    targets[group[s], k * each + part] = free
                    arriving[receiver, s * each + part] = size
                    free += size
            assert free <= WANT
    return Tables(*(a.astype(np.int32) for a in (starts, sizes, targets, arriving)))


def meaning(operand, output, t, groups=None):
    out = np.array(output)
    groups = groups or [list(range(len(operand)))]
    each = t.sizes.shape[1] // len(groups[0])
    for group in groups:
        for sender in group:
            for i, size in enumerate(t.sizes[sender]):
                part = operand[sender, t.starts[sender, i] :][:size]
                out[group[i // each], t.targets[sender, i] :][:size] = part
    return out


def call(axes, groups=None):
    def run(x, y, *t):
        return lax.ragged_all_to_all(x, y, *t, axis_name=axes, axis_index_groups=groups)

    return run


def data(places, dtype="float32"):
    rng = np.random.default_rng(places)
    x = rng.normal(size=(places, HAVE, 2)).astype(dtype)
    y = rng.normal(size=(places, WANT, 2)).astype(dtype)
    return x, y
