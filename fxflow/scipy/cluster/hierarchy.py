"""Clusters of clusters: trees of merges, and the ways to cut them.

A tree over n observations is SciPy's linkage matrix, float array[n - 1, 4]: row k says
which two clusters become cluster n + k, at which distance, and how many observations it
has. Every function but those that return Python objects can be traced: the shapes
depend on n alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.cluster._trees import children, layout, merged
from fxflow.scipy.cluster._trees import tree_of as _tree
from fxflow.scipy.cluster.dendrograms import (
    ClusterNode,
    correspond,
    dendrogram,
    from_mlab_linkage,
    is_valid_im,
    optimal_leaf_ordering,
    to_mlab_linkage,
    to_tree,
)
from fxflow.scipy.cluster.disjoint_sets import DisjointSet
from fxflow.scipy.signal._recursions import known
from fxflow.scipy.spatial.distance import pdist

_METHODS = ("single", "complete", "average", "weighted", "centroid", "median", "ward")
#: Methods whose distances are those of points.
_EUCLIDEAN = ("centroid", "median", "ward")


# -- trees -----------------------------------------------------------------------------

_docs_of_methods = shared("""
    Args:
      y: float array-like[n (n - 1) / 2]: distances, as `pdist` returns them; or
        array-like[n, d]: observations, whose distance is Euclidean.

    Returns:
      Float array[n - 1, 4], the tree.

    Raises:
      ArgumentError: a distance is not finite.
      ShapeError: `y` has the wrong shape.

    Source: `scipy.cluster.hierarchy.{name}`.
""")


def linkage(
    y: ArrayLike,
    method: str = "single",
    metric: str = "euclidean",
    optimal_ordering: bool = False,
) -> Array:
    """Merges the two nearest clusters again and again.

    The loops depend on the values, so there is no derivative in reverse mode.

    Args:
      y: float array-like[n (n - 1) / 2]: distances, as `pdist` returns them; or
        array-like[n, d]: observations.
      method: the distance of clusters: "single", that of the nearest observations;
        "complete", of the farthest ones; "average", the mean of all; "weighted", the
        mean of both parts; "centroid" and "median", of centers; "ward", by how much
        the sum of squares grows.
      metric: of observations, see `pdist`; Euclidean for the last three methods.
      optimal_ordering: whether `optimal_leaf_ordering` orders the leaves.

    Returns:
      Float array[n - 1, 4], the tree: for each merge both clusters, the lesser number
      first, their distance, and the number of observations.

    Raises:
      ArgumentError: unknown method, a distance is not finite, the metric does not suit
        the method.
      ShapeError: `y` has the wrong shape.

    Special cases:
      nan everywhere if a traced distance is not finite.

    Example:
      >>> linkage(np.array([[0.0], [1.0], [5.0]]))
      Array([[0., 1., 1., 2.],
             [2., 3., 4., 3.]], dtype=float32)

    Source: `scipy.cluster.hierarchy.linkage`. D. Müllner, Modern hierarchical,
    agglomerative clustering algorithms, 2011.
    """
    name = "linkage"
    if method not in _METHODS:
        listed = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(f"{name}: method must be one of {listed}, got {method!r}")
    (y,) = promote_inexact(name, y)
    if y.ndim == 2:
        if method in _EUCLIDEAN and metric != "euclidean":
            raise ArgumentError(
                f"{name}: method={method!r} needs metric='euclidean', got {metric!r}"
            )
        if y.shape[0] < 2:
            raise ShapeError(f"{name}: y must have two observations, got {y.aval}")
        y = pdist(y, metric)
    n = round((1 + (1 + 8 * y.size) ** 0.5) / 2)
    if y.ndim != 1 or not y.size or n * (n - 1) // 2 != y.size:
        raise ShapeError(
            f"{name}: y must be distances, float[n (n - 1) / 2], or observations, "
            f"float[n, d], got {y.aval}"
        )
    host = known(y, name)
    if host is not None and not np.isfinite(host).all():
        raise ArgumentError(f"{name}: a distance is not finite")
    Z = merged(y, method)
    return optimal_leaf_ordering(Z, y) if optimal_ordering else Z


@_docs_of_methods
def single(y: ArrayLike) -> Array:
    """Merges by the distance of the nearest observations; see `linkage`.

    Example:
      >>> single(np.array([1.0, 5.0, 4.0]))[:, 2]
      Array([1., 4.], dtype=float32)
    """
    return linkage(y, "single")


@_docs_of_methods
def complete(y: ArrayLike) -> Array:
    """Merges by the distance of the farthest observations; see `linkage`.

    Example:
      >>> complete(np.array([1.0, 5.0, 4.0]))[:, 2]
      Array([1., 5.], dtype=float32)
    """
    return linkage(y, "complete")


@_docs_of_methods
def average(y: ArrayLike) -> Array:
    """Merges by the mean distance of observations; see `linkage`.

    Example:
      >>> average(np.array([1.0, 5.0, 4.0]))[:, 2]
      Array([1. , 4.5], dtype=float32)
    """
    return linkage(y, "average")


@_docs_of_methods
def weighted(y: ArrayLike) -> Array:
    """Merges by the mean distance of both parts of a cluster; see `linkage`.

    Example:
      >>> weighted(np.array([1.0, 5.0, 4.0]))[:, 2]
      Array([1. , 4.5], dtype=float32)
    """
    return linkage(y, "weighted")


@_docs_of_methods
def centroid(y: ArrayLike) -> Array:
    """Merges by the distance of means; see `linkage`.

    Example:
      >>> centroid(np.array([1.0, 5.0, 4.0]))[:, 2]
      Array([1. , 4.5], dtype=float32)
    """
    return linkage(y, "centroid")


@_docs_of_methods
def median(y: ArrayLike) -> Array:
    """Merges by the distance of centers, each halfway between those of its parts.

    Example:
      >>> median(np.array([1.0, 5.0, 4.0]))[:, 2]
      Array([1. , 4.5], dtype=float32)
    """
    return linkage(y, "median")


@_docs_of_methods
def ward(y: ArrayLike) -> Array:
    """Merges by the growth of the sum of squares; see `linkage`.

    Example:
      >>> ward(np.array([1.0, 5.0, 4.0]))[:, 2].round(3)
      Array([1.   , 5.196], dtype=float32)
    """
    return linkage(y, "ward")


# -- the order of leaves ---------------------------------------------------------------


_docs = shared("""
    Args:
      Z: float array-like[n - 1, 4]: the tree, as `linkage` returns it.
      R: float array-like[n - 1, 4]: as `inconsistent` returns it.

    Raises:
      ShapeError: an argument has the wrong shape.

    Source: `scipy.cluster.hierarchy.{name}`.
""")


@_docs
def leaves_list(Z: ArrayLike) -> Array:
    """Returns the observations in the order of a tree's leaves.

    Returns:
      int32[n].

    Example:
      >>> leaves_list(linkage(np.array([[0.0], [5.0], [1.0]])))
      Array([1, 0, 2], dtype=int32)
    """
    return _leaves(_tree("leaves_list", Z))


@library()
def _leaves(Z: Any) -> Array:
    at, _ = layout(Z)
    return (
        fnp.zeros(at.aval.size, dtypes.int32)
        .at[at]
        .set(fnp.arange(at.aval.size, dtype=dtypes.int32))
    )


def cophenet(Z: ArrayLike, Y: ArrayLike | None = None) -> Any:
    """Returns at which distance each pair of observations comes together in a tree.

    It is differentiable in the tree's distances.

    Args:
      Z: float array-like[n - 1, 4]: the tree.
      Y: float array-like[n (n - 1) / 2]: the distances that the tree was made of.

    Returns:
      Float array[n (n - 1) / 2], as `pdist` orders pairs; if `Y` is given, a tuple of
      its correlation with `Y` and it.

    Raises:
      ShapeError: an argument has the wrong shape.

    Example:
      >>> cophenet(linkage(np.array([[0.0], [1.0], [5.0]])))
      Array([1., 4., 4.], dtype=float32)

    Source: `scipy.cluster.hierarchy.cophenet`.
    """
    found = _cophenet(_tree("cophenet", Z))
    if Y is None:
        return found
    (Y,) = promote_inexact("cophenet", Y)
    if Y.shape != found.shape:
        raise ShapeError(
            f"cophenet: Y must have the distances of Z's observations, {found.shape}, "
            f"got {Y.aval}"
        )
    u, v = Y - fnp.mean(Y), found - fnp.mean(found)
    return fnp.sum(u * v) / fnp.sqrt(fnp.sum(u**2) * fnp.sum(v**2)), found


@library()
def _cophenet(Z: Any) -> Array:
    n = Z.aval.shape[0] + 1
    at, gaps = layout(Z)
    # The merge of two leaves is the last one of those that lie between them.
    rows = fnp.arange(n)[:, None]
    between = fnp.where(fnp.arange(n - 1) >= rows, gaps, -1)
    last = lax.cummax(between, axis=1)
    i, j = (at[k] for k in np.triu_indices(n, 1))
    low, high = fnp.minimum(i, j), fnp.maximum(i, j)
    heights: Array = Z[:, 2]
    return heights[last[low, high - 1]]


# -- statistics of merges --------------------------------------------------------------


@library()
def _greatest(Z: Any, values: Any) -> Array:
    """Returns for each merge the greatest value of it and all merges inside."""
    n = Z.aval.shape[0] + 1
    left, right, _ = children(Z)
    least = fnp.full(n, -fnp.inf, values.aval.dtype)

    def step(found: Array, k: Array) -> Any:
        best = fnp.maximum(values[k], fnp.maximum(found[left[k]], found[right[k]]))
        return found.at[n + k].set(best), best

    start = fnp.concatenate([least, least[1:]])
    found: Array = lax.scan(step, start, fnp.arange(n - 1, dtype=dtypes.int32))[1]
    return found


@_docs
def maxdists(Z: ArrayLike) -> Array:
    """Returns for each merge the greatest distance in the tree below.

    Returns:
      Float array[n - 1].

    Example:
      >>> maxdists(linkage(np.array([[0.0], [1.0], [5.0]])))
      Array([1., 4.], dtype=float32)
    """
    Z = _tree("maxdists", Z)
    return _greatest(Z, Z[:, 2])


def _statistics(name: str, Z: Any, R: Any) -> tuple[Array, Array]:
    Z, R = promote_inexact(name, Z, R)
    Z = _tree(name, Z)
    if R.shape != Z.shape:
        raise ShapeError(f"{name}: R must have the shape of Z, {Z.shape}, got {R.aval}")
    return Z, R


@_docs
def maxinconsts(Z: ArrayLike, R: ArrayLike) -> Array:
    """Returns for each merge the greatest inconsistency in the tree below.

    Returns:
      Float array[n - 1].

    Example:
      >>> Z = linkage(np.array([[0.0], [1.0], [5.0]]))
      >>> maxinconsts(Z, inconsistent(Z)).round(3)
      Array([0.   , 0.707], dtype=float32)
    """
    return maxRstat(Z, R, 3)


@_docs
def maxRstat(Z: ArrayLike, R: ArrayLike, i: int) -> Array:
    """Returns for each merge the greatest statistic in the tree below.

    Args:
      i: the column of `R`, 0 … 3.

    Returns:
      Float array[n - 1].

    Raises:
      ArgumentError: there is no such column.
      ShapeError: an argument has the wrong shape.

    Example:
      >>> Z = linkage(np.array([[0.0], [1.0], [5.0]]))
      >>> maxRstat(Z, inconsistent(Z), 2)
      Array([1., 2.], dtype=float32)
    """
    i = natural("maxRstat", "i", i, 0)
    if i > 3:
        raise ArgumentError(f"maxRstat: i must be 0 … 3, got {i}")
    Z, R = _statistics("maxRstat", Z, R)
    return _greatest(Z, R[:, i])


@_docs
def inconsistent(Z: ArrayLike, d: int = 2) -> Array:
    """Returns how far merges are from the ones just below.

    Args:
      d: how many levels of the tree count.

    Returns:
      Float array[n - 1, 4]: for each merge the mean and the standard deviation of the
      distances, their number, and the merge's own distance in standard deviations.

    Raises:
      ArgumentError: `d` is not positive.
      ShapeError: `Z` has the wrong shape.

    Example:
      >>> inconsistent(linkage(np.array([[0.0], [1.0], [5.0]])))[1].round(3)
      Array([2.5  , 2.121, 2.   , 0.707], dtype=float32)
    """
    return _inconsistent(_tree("inconsistent", Z), natural("inconsistent", "d", d))


@library("d")
def _inconsistent(Z: Any, d: int) -> Array:
    n, h = Z.aval.shape[0] + 1, Z[:, 2]
    left, right, _ = children(Z)
    # Squares about the merge's own distance: no digits are lost.
    counts, sums, squares = fnp.ones_like(h), fnp.zeros_like(h), fnp.zeros_like(h)
    for _ in range(min(d, n) - 1):
        parts = [fnp.ones_like(h), fnp.zeros_like(h), fnp.zeros_like(h)]
        for child in (left, right):
            k = fnp.maximum(child - n, 0)
            shift = h[k] - h
            c, s, q = (fnp.where(child >= n, v[k], 0) for v in (counts, sums, squares))
            parts[0] = parts[0] + c
            parts[1] = parts[1] + s + c * shift
            parts[2] = parts[2] + q + 2 * s * shift + c * shift**2
        counts, sums, squares = parts
    spread = (squares - sums**2 / counts) / fnp.maximum(counts - 1, 1)
    some = spread > 0
    deviation = fnp.where(some, fnp.sqrt(fnp.where(some, spread, 1)), 0)
    mean = sums / counts
    ratio = fnp.where(some, -mean / fnp.where(some, deviation, 1), 0)
    return fnp.stack([h + mean, deviation, counts, ratio], 1)


# -- flat clusters ---------------------------------------------------------------------

_CRITERIA = ("inconsistent", "distance", "maxclust", "monocrit", "maxclust_monocrit")


def fcluster(
    Z: ArrayLike,
    t: Any,
    criterion: str = "inconsistent",
    depth: int = 2,
    R: ArrayLike | None = None,
    monocrit: ArrayLike | None = None,
) -> Array:
    """Cuts a tree into clusters.

    Args:
      Z: float array-like[n - 1, 4]: the tree.
      t: the threshold, or for "maxclust" and "maxclust_monocrit" the maximum number of
        clusters. It may be traced.
      criterion: what must not exceed `t` in a cluster: "inconsistent", the greatest
        inconsistency; "distance", the greatest distance; "monocrit", `monocrit`; or for
        "maxclust", the number of clusters by distance, and "maxclust_monocrit", by
        `monocrit`.
      depth: `d` of `inconsistent`.
      R: the result of `inconsistent`; None is to compute it.
      monocrit: float array-like[n - 1]: a value for each merge, not less than those of
        the merges inside of it.

    Returns:
      int32[n], numbers of clusters from 1.

    Raises:
      ArgumentError: there is no such criterion, or `monocrit` is missing.
      ShapeError: an argument has the wrong shape.

    Example:
      >>> Z = linkage(np.array([[0.0], [1.0], [5.0], [6.5]]))
      >>> fcluster(Z, 2.0, "distance")
      Array([1, 1, 2, 2], dtype=int32)

    Source: `scipy.cluster.hierarchy.fcluster`.
    """
    name = "fcluster"
    if criterion not in _CRITERIA:
        listed = ", ".join(f'"{c}"' for c in _CRITERIA)
        raise ArgumentError(
            f"{name}: criterion must be one of {listed}, got {criterion!r}"
        )
    Z = _tree(name, Z)
    if criterion.endswith("monocrit"):
        if monocrit is None:
            raise ArgumentError(f"{name}: criterion={criterion!r} needs monocrit")
        values = promote_inexact(name, monocrit, Z)[0]
        if values.shape != Z.shape[:1]:
            raise ShapeError(
                f"{name}: monocrit must have a value for each of {Z.shape[0]} merges, "
                f"got {values.aval}"
            )
    elif criterion == "inconsistent":
        values = maxinconsts(Z, inconsistent(Z, depth) if R is None else R)
    else:
        values = maxdists(Z)
    return _flat(Z, values, t, criterion.startswith("maxclust"))


@library("by_count")
def _flat(Z: Any, values: Any, t: Any, by_count: bool) -> Array:
    at, gaps = layout(Z, leaves_last=True)
    n = values.aval.size + 1
    limit = fnp.asarray(t, values.aval.dtype)
    if by_count:
        # Merges up to the t-th greatest value leave t clusters.
        place = n - 1 - fnp.floor(limit).astype(dtypes.int32)
        most = fnp.sort(values)[fnp.clip(place, 0, n - 2)]
        bound = fnp.where(place < 0, -fnp.inf, most)
    else:
        bound = limit
    new = fnp.concatenate([fnp.ones(1, bool), values[gaps] > bound])
    found = fnp.cumsum(new.astype(dtypes.int32))[at]
    if by_count:
        found = fnp.where(limit >= n, fnp.arange(1, n + 1, dtype=dtypes.int32), found)
    return found


def fclusterdata(
    X: ArrayLike,
    t: Any,
    criterion: str = "inconsistent",
    metric: str = "euclidean",
    depth: int = 2,
    method: str = "single",
    R: ArrayLike | None = None,
) -> Array:
    """Finds clusters of observations: a tree, and its cut.

    Args:
      X: float array-like[n, d]: observations.
      t: see `fcluster`.
      criterion: see `fcluster`.
      metric: of observations; see `pdist`.
      depth: see `fcluster`.
      method: see `linkage`.
      R: see `fcluster`.

    Returns:
      int32[n], numbers of clusters from 1.

    Raises:
      ArgumentError: unknown method or criterion.
      ShapeError: `X` has the wrong shape.

    Example:
      >>> fclusterdata(np.array([[0.0], [1.0], [5.0]]), 2.0, "distance")
      Array([1, 1, 2], dtype=int32)

    Source: `scipy.cluster.hierarchy.fclusterdata`.
    """
    (X,) = promote_inexact("fclusterdata", X)
    if X.ndim != 2:
        raise ShapeError(f"fclusterdata: X must be float[n, d], got {X.aval}")
    return fcluster(linkage(X, method, metric), t, criterion, depth, R)


def cut_tree(Z: ArrayLike, n_clusters: Any = None, height: Any = None) -> Array:
    """Returns the clusters of observations after some merges.

    Args:
      Z: float array-like[n - 1, 4]: the tree.
      n_clusters: int or array-like[k]: how many clusters are left.
      height: number or array-like[k]: up to which distance, not included.

    Returns:
      int32[n, k], numbers of clusters from 0, a column for each cut; without
      `n_clusters` and `height` all cuts, from n clusters to 1.

    Raises:
      ArgumentError: both `n_clusters` and `height` are given.
      ShapeError: `Z` has the wrong shape.

    Example:
      >>> cut_tree(linkage(np.array([[0.0], [1.0], [5.0]])), 2)
      Array([[0],
             [0],
             [1]], dtype=int32)

    Source: `scipy.cluster.hierarchy.cut_tree`.
    """
    name = "cut_tree"
    if n_clusters is not None and height is not None:
        raise ArgumentError(f"{name}: give n_clusters or height, not both")
    Z = _tree(name, Z)
    n = Z.shape[0] + 1
    if height is not None:
        heights = fnp.atleast_1d(promote_inexact(name, fnp.asarray(height), Z)[0])
        merges = fnp.searchsorted(Z[:, 2], heights)
    elif n_clusters is not None:
        merges = fnp.clip(n - fnp.atleast_1d(fnp.asarray(n_clusters)), 0, n - 1)
    else:
        merges = fnp.arange(n)
    return _cut(Z, merges)


@library()
def _cut(Z: Any, merges: Any) -> Array:
    n = Z.aval.shape[0] + 1
    left, right, _ = children(Z)
    index = fnp.arange(n, dtype=dtypes.int32)

    def step(carry: Any, k: Array) -> Any:
        names, first = carry
        # The first observation of each cluster stands for it.
        a, b = first[left[k]], first[right[k]]
        low, high = fnp.minimum(a, b), fnp.maximum(a, b)
        names = fnp.where(names == high, low, names)
        return (names, first.at[n + k].set(low)), names

    start = (index, fnp.concatenate([index, fnp.zeros(n - 1, dtypes.int32)]))
    after = lax.scan(step, start, fnp.arange(n - 1, dtype=dtypes.int32))[1]
    chosen = fnp.concatenate([index[None], after], 0)[merges]
    ranks = fnp.cumsum((chosen == index).astype(dtypes.int32), 1) - 1
    return fnp.take_along_axis(ranks, chosen, 1).T


# -- on the host -----------------------------------------------------------------------


def _host(name: str, what: str, value: Any) -> np.ndarray[Any, Any]:
    found = known(value, name)
    if found is None:
        raise ConcretizationError(
            f"{name}: {what} is traced, and the result depends on its values: call it "
            "outside of jit and grad"
        )
    return found


def leaders(Z: ArrayLike, T: ArrayLike) -> tuple[Array, Array]:
    """Returns the top cluster of each flat cluster.

    Args:
      Z: float array-like[n - 1, 4]: the tree.
      T: int array-like[n]: flat clusters, as `fcluster` returns them.

    Returns:
      int32[k], clusters of the tree, and int32[k], the numbers in `T`.

    Raises:
      ArgumentError: a flat cluster is no cluster of the tree.
      ConcretizationError: an argument is traced.
      ShapeError: an argument has the wrong shape.

    Example:
      >>> Z = linkage(np.array([[0.0], [1.0], [5.0]]))
      >>> leaders(Z, fcluster(Z, 2.0, "distance"))
      (Array([2, 3], dtype=int32), Array([2, 1], dtype=int32))

    Source: `scipy.cluster.hierarchy.leaders`.
    """
    name = "leaders"
    tree, flat = _host(name, "Z", _tree(name, Z)), _host(name, "T", T)
    n = len(tree) + 1
    if flat.shape != (n,):
        raise ShapeError(f"{name}: T must be int[{n}], got shape {flat.shape}")
    # For each cluster of the tree the flat one that it lies in; -1 for several.
    names = [int(v) for v in flat]
    found: list[tuple[int, int]] = []
    for row in tree:
        a, b = int(row[0]), int(row[1])
        same = names[a] == names[b]
        names.append(names[a] if same else -1)
        found += [(c, names[c]) for c in (a, b) if not same and names[c] != -1]
    if names[-1] != -1:
        found.append((2 * n - 2, names[-1]))
    if len({v for _, v in found}) < len(found):
        raise ArgumentError(
            f"{name}: T has a flat cluster that the tree Z does not have"
        )
    tops, numbers = zip(*found, strict=True)
    return fnp.asarray(tops, dtypes.int32), fnp.asarray(numbers, dtypes.int32)


def num_obs_linkage(Z: ArrayLike) -> int:
    """Returns the number of observations of a tree.

    Args:
      Z: float array-like[n - 1, 4]: the tree.

    Returns:
      n.

    Raises:
      ShapeError: `Z` has the wrong shape.

    Example:
      >>> num_obs_linkage(linkage(np.array([[0.0], [1.0], [5.0]])))
      3

    Source: `scipy.cluster.hierarchy.num_obs_linkage`.
    """
    return int(_tree("num_obs_linkage", Z).shape[0]) + 1


def is_valid_linkage(Z: ArrayLike, warning: bool = False, throw: bool = False) -> bool:
    """Returns whether an array is a tree.

    Args:
      Z: array-like.
      warning: has no effect: the reason is in the error of `throw`.
      throw: whether to raise an error if it is not.

    Returns:
      A bool.

    Raises:
      ArgumentError: `throw` is set and `Z` is not a tree.
      ConcretizationError: `Z` is traced.

    Example:
      >>> is_valid_linkage(np.array([[0.0, 1.0, 1.0, 3.0]]))
      False

    Source: `scipy.cluster.hierarchy.is_valid_linkage`.
    """
    name = "is_valid_linkage"
    tree = _host(name, "Z", Z)
    why = ""
    if tree.ndim != 2 or tree.shape[-1] != 4 or not tree.size:
        why = f"its shape is {tree.shape}, not (n - 1, 4)"
    else:
        n = len(tree) + 1
        sizes, used = [1] * n, set[int]()
        for k, (a, b, d, size) in enumerate(tree):
            parts = (int(a), int(b))
            if not all(0 <= p < n + k for p in parts) or parts[0] == parts[1]:
                why = f"row {k} merges clusters that there are not yet: {parts}"
            elif used & set(parts):
                why = f"row {k} merges a cluster for a second time: {parts}"
            elif not d >= 0:
                why = f"row {k} has the distance {d}"
            elif size != sizes[parts[0]] + sizes[parts[1]]:
                why = f"row {k} has {size:g} observations"
            if why:
                break
            used |= set(parts)
            sizes.append(int(size))
    if why and throw:
        raise ArgumentError(f"{name}: Z is not a tree: {why}")
    return not why


def is_monotonic(Z: ArrayLike) -> Array:
    """Returns whether no merge of a tree is nearer than one before.

    Args:
      Z: float array-like[n - 1, 4]: the tree.

    Returns:
      bool[].

    Raises:
      ShapeError: `Z` has the wrong shape.

    Example:
      >>> bool(is_monotonic(linkage(np.array([[0.0], [1.0], [5.0]]))))
      True

    Source: `scipy.cluster.hierarchy.is_monotonic`.
    """
    h = _tree("is_monotonic", Z)[:, 2]
    return fnp.all(h[1:] >= h[:-1])


def is_isomorphic(T1: ArrayLike, T2: ArrayLike) -> Array:
    """Returns whether two numberings have the same flat clusters.

    Args:
      T1: int array-like[n]: numbers of clusters.
      T2: int array-like[n]: numbers of clusters.

    Returns:
      bool[].

    Raises:
      ShapeError: they are not vectors of one length.

    Example:
      >>> bool(is_isomorphic([1, 1, 2], [7, 7, 3]))
      True

    Source: `scipy.cluster.hierarchy.is_isomorphic`.
    """
    first, second = fnp.asarray(T1), fnp.asarray(T2)
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(
            f"is_isomorphic: T1 and T2 must be vectors of one length, got {first.aval} "
            f"and {second.aval}"
        )
    same = [t[:, None] == t for t in (first, second)]
    return fnp.all(same[0] == same[1])


# fmt: off
__all__ = [
    "ClusterNode", "DisjointSet", "average", "centroid", "complete", "cophenet",
    "correspond", "cut_tree", "dendrogram", "fcluster", "fclusterdata",
    "from_mlab_linkage", "inconsistent", "is_isomorphic", "is_monotonic", "is_valid_im",
    "is_valid_linkage", "leaders", "leaves_list", "linkage", "maxRstat", "maxdists",
    "maxinconsts", "median", "num_obs_linkage", "optimal_leaf_ordering", "single",
    "to_mlab_linkage", "to_tree", "ward", "weighted",
]
# fmt: on

_public(globals(), __all__)
