"""How trees of clusters are made, and the order of their leaves."""

from __future__ import annotations

import functools
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.kernels.gallery.merges import (
    nearest_merges,
    neighbour_merges,
    numbered,
    spanning_tree,
)
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy.spatial.distance import squareform
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.jit import jit
from fxflow.transforms.jvp import jvp

#: Distances for which kernels are worth compiling.
_LEAST = 1 << 14


def tree_of(name: str, Z: Any) -> Array:
    """Returns a tree as a float array.

    Raises:
      ShapeError: it is not one by its shape.
    """
    tree: Array = promote_inexact(name, Z)[0]
    if tree.ndim != 2 or tree.shape[1] != 4 or not tree.shape[0]:
        raise ShapeError(f"{name}: Z must be float[n - 1, 4], got {tree.aval}")
    return tree


def merged(y: Array, method: str) -> Array:
    """Returns the tree of merges; of NaN if a distance is not finite."""
    finite = fnp.all(fnp.isfinite(y))
    y = fnp.where(finite, y, fnp.zeros_like(y))
    # What is traced may be many problems.
    compiled = isinstance(y, Tracer) or y.aval.size >= _LEAST
    found = _by_kernels(method)(y) if compiled else _tree(y, method)
    return fnp.where(finite, found, fnp.full_like(found, fnp.nan))


@library("method")
def _tree(y: Any, method: str) -> Array:
    """Returns the tree of merges, by operations on whole arrays."""
    distances = squareform(y)
    if method == "single":
        return _labelled(*_spanning(distances))
    if method in ("centroid", "median"):
        return _closest_first(distances, method)
    return _labelled(*_chained(distances, method))


@functools.cache
def _by_kernels(method: str) -> Any:
    """Returns the function of distances that runs kernels, with the same derivative."""
    union = functools.partial(_united, method)

    @custom_jvp
    def tree(y: Any) -> Array:
        distances = squareform(y)
        if method == "single":
            x, y, d = spanning_tree(distances, reference=_spanning)
        elif method in ("centroid", "median"):
            plain = functools.partial(_closest_first, method=method)
            return nearest_merges(distances, union, reference=plain)
        else:
            chained = functools.partial(_chained, method=method)
            x, y, d = neighbour_merges(distances, union, reference=chained)
        number = functools.partial(numbered, reference=_numbered)
        return _labelled(x, y, d, number)

    def tangents(primals: Any, moving: Any) -> Any:
        return jvp(lambda y: _tree(y, method), primals, moving)

    tree.defjvp(tangents)
    # Programs are where kernels are compiled.
    return jit(tree)


def _united(method: str, to_x: Any, to_y: Any, d: Any, nx: Any, ny: Any, n: Any) -> Any:
    """Returns distances of clusters to the union of x and y, by Lance and Williams."""
    if method == "complete":
        return fnp.maximum(to_x, to_y)
    if method == "average":
        return (nx * to_x + ny * to_y) / (nx + ny)
    if method == "weighted":
        return (to_x + to_y) / 2
    if method == "median":
        return fnp.sqrt(fnp.maximum((to_x**2 + to_y**2) / 2 - d**2 / 4, 0))
    if method == "centroid":
        whole = (nx * to_x**2 + ny * to_y**2) - nx * ny * d**2 / (nx + ny)
        return fnp.sqrt(fnp.maximum(whole / (nx + ny), 0))
    t = 1 / (nx + ny + n)
    whole = (n + nx) * t * to_x**2 + (n + ny) * t * to_y**2 - n * t * d**2
    return fnp.sqrt(fnp.maximum(whole, 0))


def _row(D: Array, written: Array, i: Array) -> Array:
    """Returns distances of cluster i to all others.

    Only rows are written, and `written` says when: a distance is in the row that was
    written last. With columns as well XLA would copy the matrix in each step.
    """
    return fnp.where(written[i] >= written, D[i], D[:, i])


def _spanning(distances: Array) -> tuple[Array, Array, Array]:
    """Returns the edges of the shortest spanning tree, by Prim's algorithm."""
    n = distances.aval.shape[0]

    def step(carry: Any, _: Any) -> Any:
        x, free, near = carry
        free = free & (fnp.arange(n) != x)
        near = fnp.where(free, fnp.minimum(near, distances[x]), fnp.inf)
        y = fnp.argmin(near).astype(dtypes.int32)
        return (y, free, near), (x, y, near[y])

    start = (fnp.int32(0), fnp.ones(n, bool), fnp.full(n, fnp.inf, distances.dtype))
    x, y, d = lax.scan(step, start, None, n - 1)[1]
    return x, y, d


def _chained(distances: Array, method: str) -> tuple[Array, Array, Array]:
    """Returns merges of nearest neighbours of each other, found along a chain."""
    n, dtype = distances.aval.shape[0], distances.aval.dtype
    index = fnp.arange(n, dtype=dtypes.int32)

    def merge(k: Array, carry: Any) -> Any:
        D, written, size, chain, length, merges = carry
        first = fnp.argmax(size > 0).astype(dtypes.int32)
        chain = chain.at[0].set(fnp.where(length == 0, first, chain[0]))

        def extend(carry: Any) -> Any:
            chain, length, *_ = carry
            x, before = chain[length - 1], chain[fnp.maximum(length - 2, 0)]
            row = _row(D, written, x)
            open_ = fnp.where((size > 0) & (index != x), row, fnp.inf)
            y = fnp.argmin(open_).astype(dtypes.int32)
            d, last = open_[y], row[before]
            ends = (length > 1) & ~(d < last)
            chain = chain.at[length].set(y)
            return chain, length + 1, ends, x, before, fnp.where(ends, last, d)

        # Until the nearest neighbour of the last cluster is the one before it.
        none = fnp.int32(0)
        start = (
            *(chain, fnp.maximum(length, 1), fnp.bool_(False)),
            *(none, none, fnp.zeros((), dtype)),
        )
        chain, length, _, x, y, d = lax.while_loop(lambda c: ~c[2], extend, start)
        a, b = fnp.minimum(x, y), fnp.maximum(x, y)
        na, nb = (size[i].astype(dtype) for i in (a, b))
        rows = _row(D, written, a), _row(D, written, b)
        new = _united(method, *rows, d, na, nb, size.astype(dtype))
        D = lax.dynamic_update_index_in_dim(D, new, b, 0)
        merges = merges.at[k].set(fnp.stack([a.astype(dtype), b.astype(dtype), d]))
        union = fnp.where(index == b, size[a] + size[b], size)
        size = fnp.where(index == a, 0, union)
        written = fnp.where(index == b, k + 1, written)
        return D, written, size, chain, length - 3, merges

    zeros = fnp.zeros(n, dtypes.int32)
    chain, merges = fnp.zeros(n + 1, dtypes.int32), fnp.zeros((n - 1, 3), dtype)
    start = (distances, zeros, fnp.ones_like(zeros), chain, fnp.int32(0), merges)
    found = lax.fori_loop(fnp.int32(0), fnp.int32(n - 1), merge, start)[-1]
    x, y = (found[:, i].astype(dtypes.int32) for i in (0, 1))
    return x, y, found[:, 2]


def _closest_first(distances: Array, method: str) -> Array:
    """Returns the tree of merges of the two nearest clusters, in their order.

    Each row has a bound of its least distance, which is computed again only where it is
    the least of all and its cluster is no more.
    """
    n, dtype = distances.aval.shape[0], distances.aval.dtype
    index = fnp.arange(n, dtype=dtypes.int32)

    def step(carry: Any) -> Any:
        D, written, size, names, least, nearest, k, tree, at, values = carry
        # The row of the step before is written first: XLA would make it again where it
        # is read after that, and keep a copy of D for it.
        D = lax.dynamic_update_index_in_dim(D, values, at, 0)
        others = (size > 0) & (index != at) & (written[at] >= written)
        open_ = fnp.where(others, values, fnp.inf)
        best = fnp.argmin(open_).astype(dtypes.int32)
        least = fnp.where(index == at, open_[best], least)
        nearest = fnp.where(index == at, best, nearest)
        i = fnp.argmin(least).astype(dtypes.int32)
        j = nearest[i]
        holds = (size[j] > 0) & (written[i] >= written[j])
        x, y = fnp.minimum(i, j), fnp.maximum(i, j)
        d = least[i]
        nx, ny = (size[v].astype(dtype) for v in (x, y))
        rows = _row(D, written, x), _row(D, written, y)
        new = _united(method, *rows, d, nx, ny, size.astype(dtype))
        at = fnp.where(holds, y, i)
        values = fnp.where(holds, new, D[at])
        low, high = fnp.minimum(names[x], names[y]), fnp.maximum(names[x], names[y])
        row = fnp.stack([low.astype(dtype), high.astype(dtype), d, nx + ny])
        tree = tree.at[k].set(row)
        union = fnp.where(index == y, size[x] + size[y], size)
        size = fnp.where(holds, fnp.where(index == x, 0, union), size)
        written = fnp.where(holds & (index == y), k + 1, written)
        names = fnp.where(holds & (index == y), n + k, names)
        least = fnp.where(holds & (index == x), fnp.inf, least)
        k = k + holds.astype(k.dtype)
        return D, written, size, names, least, nearest, k, tree, at, values

    open_ = fnp.where(index[:, None] == index, fnp.inf, distances)
    zeros = fnp.zeros(n, dtypes.int32)
    start = (
        *(distances, zeros, fnp.ones_like(zeros), index, fnp.min(open_, 1)),
        *(fnp.argmin(open_, 1).astype(dtypes.int32), fnp.int32(0)),
        *(fnp.zeros((n, 4), dtype), fnp.int32(0), distances[0]),
    )
    found: Array = lax.while_loop(lambda c: c[6] < n - 1, step, start)[7]
    return found[: n - 1]


def _labelled(x: Array, y: Array, d: Array, number: Any = None) -> Array:
    """Returns the tree of merges of observations' clusters, in any order."""
    order = fnp.argsort(d, stable=True)
    low, high, total = (number or _numbered)(x[order], y[order])
    rows = [v.astype(d.aval.dtype) for v in (low, high, total)]
    return fnp.stack([*rows[:2], d[order], rows[2]], 1)


def _numbered(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Returns what `numbered` does, by operations on whole arrays."""
    n = x.aval.size + 1

    def step(names: Array, merge: Any) -> Any:
        x, y, k = merge
        a, b = names[x], names[y]
        inside = (names == a) | (names == b)
        total = fnp.sum(inside, dtype=dtypes.int32)
        row = (fnp.minimum(a, b), fnp.maximum(a, b), total)
        return fnp.where(inside, n + k, names), row

    steps = fnp.arange(n - 1, dtype=dtypes.int32)
    found: tuple[Array, Array, Array]
    found = lax.scan(step, fnp.arange(n, dtype=dtypes.int32), (x, y, steps))[1]
    return found


def children(Z: Array) -> tuple[Array, Array, Array]:
    """Returns the parts of each merge, and the sizes of all clusters."""
    n = Z.aval.shape[0] + 1
    left, right = (Z[:, i].astype(dtypes.int32) for i in (0, 1))
    sizes = fnp.concatenate([fnp.ones(n, dtypes.int32), Z[:, 3].astype(dtypes.int32)])
    return left, right, sizes


def layout(Z: Array, leaves_last: bool = False) -> tuple[Array, Array]:
    """Returns where each observation stands among the leaves, and what is between.

    Args:
      Z: the tree.
      leaves_last: whether a part that is an observation stands behind one that is a
        cluster, the order in which SciPy numbers flat clusters.

    Returns:
      int32[n], positions, and int32[n - 1]: between position i and i + 1 lies the merge
      of this row, the least cluster of both.
    """
    n = Z.aval.shape[0] + 1
    left, right, sizes = children(Z)
    if leaves_last:
        swap = (left < n) & (right >= n)
        left, right = fnp.where(swap, right, left), fnp.where(swap, left, right)

    def step(carry: Any, k: Array) -> Any:
        begin, gaps = carry
        at = begin[n + k]
        middle = at + sizes[left[k]]
        begin = begin.at[left[k]].set(at).at[right[k]].set(middle)
        return (begin, gaps.at[middle - 1].set(k)), None

    start = (fnp.zeros(2 * n - 1, dtypes.int32), fnp.zeros(n - 1, dtypes.int32))
    down = fnp.arange(n - 2, -1, -1, dtype=dtypes.int32)
    (begin, gaps), _ = lax.scan(step, start, down)
    return begin[:n], gaps
