"""Merges of clusters, in the memory of the matrix of their distances.

XLA copies a matrix whose rows and columns a loop writes. These programs write both in
place, so the distances of a cluster are always one row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.kernels.body import loop, when
from fxflow.kernels.calling import call

#: From the distances of two clusters to all others, their own distance, and the numbers
#: of observations of both and of the others, to the distances of their union.
Union = Callable[[Any, Any, Any, Any, Any, Any], Any]


def spanning_tree(
    distances: Any, *, reference: Callable[[Any], tuple[Array, Array, Array]]
) -> tuple[Array, Array, Array]:
    """Returns the edges of the shortest spanning tree, by Prim's algorithm.

    Args:
      distances: float[n, n], symmetric.
      reference: a function of `distances` that returns the same in another way.

    Returns:
      int32[n - 1], the observation that was reached before; int32[n - 1], the one that
      is reached; float[n - 1], how far it is from the nearest one before.
    """
    n, dtype = typeof(distances).shape[0], typeof(distances).dtype

    def body(D: Any, first: Any, second: Any, apart: Any, near: Any, done: Any) -> None:
        near[...] = fnp.full(n, fnp.inf, dtype)
        done[...] = fnp.zeros(n, dtype)

        def step(k: Any, x: Any) -> Any:
            done[x] = fnp.full((), fnp.inf, dtype)
            near[...] = fnp.minimum(near[...], D[x])
            y = fnp.argmin(near[...] + done[...]).astype(dtypes.int32)
            first[k], second[k], apart[k] = x, y, near[y]
            return y

        lax.fori_loop(0, n - 1, step, fnp.zeros((), dtypes.int32))

    vector = Aval((n,), dtype)
    run = call(
        body,
        _merges(n, dtype),
        scratch=[vector, vector],
        reference=reference,
        name="spanning_tree",
        platforms=("cpu",),
    )
    x, y, d = run(distances)
    return x, y, d


def neighbour_merges(
    distances: Any,
    union: Union,
    *,
    reference: Callable[[Any], tuple[Array, Array, Array]],
) -> tuple[Array, Array, Array]:
    """Returns merges of clusters that are the nearest ones of each other.

    Args:
      distances: float[n, n], symmetric.
      union: see `Union`.
      reference: a function of `distances` that returns the same in another way.

    Returns:
      int32[n - 1] twice: one observation of each of both clusters, the lesser first;
      and float[n - 1], their distances. The merges are in the order in which a chain of
      nearest neighbours meets them.
    """
    n, dtype = typeof(distances).shape[0], typeof(distances).dtype

    def body(given: Any, D: Any, *refs: Any) -> None:
        first, second, apart, size, chain, gone = refs
        size[...] = fnp.ones(n, dtypes.int32)
        gone[...] = fnp.zeros(n, dtype)
        _clear_diagonal(D)

        def merge(k: Any, carry: Any) -> Any:
            length, least = carry
            least = lax.while_loop(lambda i: size[i] == 0, lambda i: i + 1, least)

            @when(length == 0)
            def _() -> None:
                chain[0] = least

            def extend(carry: Any) -> Any:
                length, *_ = carry
                x, before = chain[length - 1], chain[fnp.maximum(length - 2, 0)]
                y = fnp.argmin(D[x] + gone[...]).astype(dtypes.int32)
                d, last = D[x, y], D[x, before]
                # A NaN ends the chain, too.
                ends = fnp.logical_and(length > 1, fnp.logical_not(d < last))
                chain[length] = y
                return length + 1, ends, x, before, fnp.where(ends, last, d)

            none = fnp.zeros((), dtypes.int32)
            start = (
                *(fnp.maximum(length, 1), fnp.zeros((), bool)),
                *(none, none, fnp.zeros((), dtype)),
            )
            length, _, x, y, d = lax.while_loop(
                lambda c: fnp.logical_not(c[1]), extend, start
            )
            a, b = fnp.minimum(x, y), fnp.maximum(x, y)
            first[k], second[k], apart[k] = a, b, d
            _unite(D, size, union, a, b, d)
            gone[a] = fnp.full((), fnp.inf, dtype)
            return length - 3, least

        zero = fnp.zeros((), dtypes.int32)
        lax.fori_loop(0, n - 1, merge, (zero, zero))
        D[...] = fnp.zeros((n, n), dtype)

    integers = Aval((n,), np.dtype(np.int32))
    run = call(
        body,
        [typeof(distances), *_merges(n, dtype)],
        scratch=[integers, integers.update(shape=(n + 1,)), Aval((n,), dtype)],
        aliases={0: 0},
        reference=lambda D: [fnp.zeros_like(D), *reference(D)],
        name="neighbour_merges",
        platforms=("cpu",),
    )
    _, x, y, d = run(distances)
    return x, y, d


def nearest_merges(
    distances: Any, union: Union, *, reference: Callable[[Any], Array]
) -> Array:
    """Returns merges of the two nearest clusters, in their order.

    Each row has a bound of its least distance, which is computed again only where it is
    the least of all and its cluster is no more.

    Args:
      distances: float[n, n], symmetric.
      union: see `Union`.
      reference: a function of `distances` that returns the same in another way.

    Returns:
      Float array[n - 1, 4]: the clusters of each merge, their distance, and the number
      of observations.
    """
    n, dtype = typeof(distances).shape[0], typeof(distances).dtype

    def body(given: Any, D: Any, tree: Any, *refs: Any) -> None:
        size, names, written, nearest, least = refs
        size[...] = fnp.ones(n, dtypes.int32)
        names[...] = fnp.arange(n, dtype=dtypes.int32)
        written[...] = fnp.zeros(n, dtypes.int32)
        _clear_diagonal(D)

        def bound(i: Any) -> None:
            """Finds what is nearest to i, of clusters that are not younger."""
            older = fnp.logical_and(size[...] > 0, written[...] <= written[i])
            row = fnp.where(older, D[i], fnp.full((), fnp.inf, dtype))
            best = fnp.argmin(row).astype(dtypes.int32)
            nearest[i] = best
            least[i] = fnp.where(
                size[best] > 0, D[i, best], fnp.full((), fnp.inf, dtype)
            )

        @loop(0, n)
        def _(i: Any) -> None:
            bound(i)

        def step(k: Any) -> Any:
            i = fnp.argmin(least[...]).astype(dtypes.int32)
            j, d = nearest[i], least[i]
            holds = fnp.logical_and(size[j] > 0, written[i] >= written[j])
            x, y = fnp.minimum(i, j), fnp.maximum(i, j)

            @when(holds)
            def _() -> None:
                tree[k, 0] = fnp.minimum(names[x], names[y]).astype(dtype)
                tree[k, 1] = fnp.maximum(names[x], names[y]).astype(dtype)
                tree[k, 2] = d
                tree[k, 3] = (size[x] + size[y]).astype(dtype)
                _unite(D, size, union, x, y, d)
                written[y] = k + 1
                names[y] = n + k
                least[x] = fnp.full((), fnp.inf, dtype)

            bound(fnp.where(holds, y, i))
            return k + fnp.where(holds, 1, 0).astype(dtypes.int32)

        lax.while_loop(lambda k: k < n - 1, step, fnp.zeros((), dtypes.int32))
        D[...] = fnp.zeros((n, n), dtype)

    integers = Aval((n,), np.dtype(np.int32))
    run = call(
        body,
        [typeof(distances), Aval((n - 1, 4), dtype)],
        scratch=[*[integers] * 4, Aval((n,), dtype)],
        aliases={0: 0},
        reference=lambda D: [fnp.zeros_like(D), reference(D)],
        name="nearest_merges",
        platforms=("cpu",),
    )
    tree: Array = run(distances)[1]
    return tree


def numbered(
    x: Any, y: Any, *, reference: Callable[[Any, Any], tuple[Array, Array, Array]]
) -> tuple[Array, Array, Array]:
    """Returns the clusters that merges of observations' clusters unite.

    Args:
      x: int32[n - 1]: an observation of the one cluster.
      y: int32[n - 1]: an observation of the other one.
      reference: a function of `x` and `y` that returns the same in another way.

    Returns:
      int32[n - 1] thrice: the lesser and the greater number of both clusters, where
      merge k makes cluster n + k; and the number of observations of the new one.
    """
    count = typeof(x).shape[0]
    n = count + 1

    def body(x: Any, y: Any, low: Any, high: Any, total: Any, up: Any) -> None:
        # The cluster that each one is a part of; at first itself.
        up[...] = fnp.arange(n + count, dtype=dtypes.int32)

        def top(i: Any) -> Any:
            def rise(i: Any) -> Any:
                above = up[up[i]]
                up[i] = above
                return above

            return lax.while_loop(lambda i: up[i] != i, rise, i)

        def size(i: Any) -> Any:
            return fnp.where(i < n, 1, total[fnp.maximum(i - n, 0)])

        @loop(0, count)
        def _(k: Any) -> None:
            a, b = top(x[k]), top(y[k])
            low[k], high[k] = fnp.minimum(a, b), fnp.maximum(a, b)
            total[k] = (size(a) + size(b)).astype(dtypes.int32)
            up[a] = (n + k).astype(dtypes.int32)
            up[b] = (n + k).astype(dtypes.int32)

    integers = Aval((count,), np.dtype(np.int32))
    run = call(
        body,
        [integers] * 3,
        scratch=[integers.update(shape=(n + count,))],
        reference=reference,
        name="numbered",
        platforms=("cpu",),
    )
    low, high, total = run(x, y)
    return low, high, total


def _merges(n: int, dtype: Any) -> list[Aval]:
    integers = Aval((n - 1,), np.dtype(np.int32))
    return [integers, integers, Aval((n - 1,), dtype)]


def _clear_diagonal(D: Any) -> None:
    """Makes no cluster its own neighbour."""

    @loop(0, D.shape[0])
    def _(i: Any) -> None:
        D[i, i] = fnp.full((), fnp.inf, D.dtype)


def _unite(D: Any, size: Any, union: Union, a: Any, b: Any, d: Any) -> None:
    """Makes b the union of a and b: its distances, in a row and a column."""
    sizes = size[...].astype(D.dtype)
    na, nb = (size[i].astype(D.dtype) for i in (a, b))
    D[b] = union(D[a], D[b], d, na, nb, sizes)
    size[b] = size[a] + size[b]
    size[a] = np.int32(0)

    @loop(0, D.shape[0])
    def _(i: Any) -> None:
        @when(size[i] > 0)
        def _() -> None:
            D[i, b] = D[b, i]
