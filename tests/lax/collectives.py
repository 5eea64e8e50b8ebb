"""Every collective in one program, and what the program means in NumPy."""

from __future__ import annotations

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax

SPLIT = 8  # an array axis that any number of places divides


def ring(size):
    return [(i, (i + 1) % size) for i in range(size)]


def some(size):
    """A few places, not all of which send or receive."""
    return [(0, size - 1), (size - 1, size // 2)] if size > 2 else [(0, size - 1)]


def program(axes, groups=None):
    """A function of one slice `f32[8,3]` with every collective in it."""

    def run(x):
        size = lax.axis_size(axes)
        part = SPLIT // (len(groups[0]) if groups else size)
        own = {"axis_index_groups": groups}
        wide = fnp.reshape(x, (SPLIT // part, part, 3))
        out = {
            "psum": lax.psum(x, axes, **own),
            "pmean": lax.pmean(x, axes, **own),
            "gather": lax.all_gather(x, axes, axis=1, **own),
            "gather-tiled": lax.all_gather(x, axes, axis=-1, tiled=True, **own),
            "scatter": lax.psum_scatter(wide, axes, **own),
            "scatter-tiled": lax.psum_scatter(x, axes, tiled=True, **own),
            "exchange": lax.all_to_all(wide, axes, 0, 2, **own),
            "exchange-tiled": lax.all_to_all(x, axes, 0, 1, tiled=True, **own),
            "swap": lax.pswapaxes(wide, axes, 0, **own),
        }
        if groups is None:
            out |= {
                "ring": lax.ppermute(x, axes, ring(size)),
                "some": lax.ppermute(x, axes, some(size)),
                "shuffle": lax.pshuffle(x, axes, list(range(size))[::-1]),
                "broadcast": lax.pbroadcast(x, axes, size - 1),
            }
        return out

    return run


def without_derivative(axes, groups=None):
    own = {"axis_index_groups": groups}

    def run(x):
        integers = fnp.asarray(x, "int32")
        return {
            "pmax": lax.pmax(x, axes, **own),
            "pmin": lax.pmin(x, axes, **own),
            "pmax-complex": lax.pmax(x + 1j * x[::-1], axes, **own),
            "psum-bool": lax.psum(x > 9, axes, **own),
            "pmean-int": lax.pmean(integers, axes, **own),
            "psum-bf16": lax.psum(fnp.asarray(x, "bfloat16"), axes, **own),
            "gather-bool": lax.all_gather(x > 9, axes),
            "members": x[0, 0] + lax.psum(1, axes, **own),
            "index": x[0, 0] * 0 + lax.axis_index(axes),
        }

    return run


def meaning(slices, groups=None):
    """What `program` and `without_derivative` give, by NumPy: of all slices."""
    count = len(slices)
    divided = [list(range(count))] if groups is None else groups
    out = {}

    def put(name, place, value):
        out.setdefault(name, [None] * count)[place] = np.asarray(value)

    for group in divided:
        xs = slices[group]
        n = len(group)
        wide = xs.reshape(n, n, SPLIT // n, 3) if SPLIT % n == 0 else None
        for k, i in enumerate(group):
            put("psum", i, xs.sum(0))
            put("pmean", i, xs.mean(0))
            put("gather", i, np.moveaxis(xs, 0, 1))
            put("gather-tiled", i, np.concatenate(list(xs), -1))
            put("pmax", i, xs.max(0))
            put("pmin", i, xs.min(0))
            both = xs + 1j * xs[:, ::-1]
            put("pmax-complex", i, np.sort(both, 0)[-1])
            put("psum-bool", i, (xs > 9).sum(0))
            put("pmean-int", i, xs.astype(int).mean(0))
            put("psum-bf16", i, xs.sum(0))
            put("gather-bool", i, slices > 9)
            put("members", i, slices[i, 0, 0] + n)
            put("index", i, i)
            if wide is None:
                continue
            put("scatter", i, wide.sum(0)[k])
            put("scatter-tiled", i, wide.sum(0)[k])
            put("exchange", i, np.moveaxis(wide[:, k], 0, 2))
            put("exchange-tiled", i, np.concatenate(list(wide[:, k]), 1))
            put("swap", i, wide[:, k])
    for i in range(count):
        put("ring", i, slices[i - 1])
        sent = [s for s, t in some(count) if t == i]
        put("some", i, slices[sent[0]] if sent else 0 * slices[i])
        put("shuffle", i, slices[count - 1 - i])
        put("broadcast", i, slices[-1])
    alike = lambda values: len({getattr(v, "shape", None) for v in values}) == 1
    return {name: np.stack(values) for name, values in out.items() if alike(values)}


def data(count):
    # Few bits, so that bfloat16 and any order of summing are exact.
    rng = np.random.default_rng(count)
    return rng.integers(0, 16, (count, SPLIT, 3)).astype(np.float32)


def same(got, expected, shape):
    for name, value in got.items():
        want = expected[name].reshape(*shape, *expected[name].shape[1:])
        np.testing.assert_allclose(
            np.asarray(value, want.dtype), want, rtol=1e-6, err_msg=name
        )
