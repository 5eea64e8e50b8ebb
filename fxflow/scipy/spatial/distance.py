"""Distances between vectors in many metrics: `fxflow.scipy.spatial.distance`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, number
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.spatial._distance_checks import (
    is_valid_dm,
    is_valid_y,
    num_obs_dm,
    num_obs_y,
)
from fxflow.transforms.vmap import vmap

# fmt: off
__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation",
    "cosine", "dice", "directed_hausdorff", "euclidean", "hamming", "is_valid_dm",
    "is_valid_y", "jaccard", "jensenshannon", "mahalanobis", "minkowski", "num_obs_dm",
    "num_obs_y", "pdist", "rogerstanimoto", "russellrao", "seuclidean", "sokalsneath",
    "sqeuclidean", "squareform", "yule",
]
# fmt: on


def _root(square: Array) -> Array:
    """Returns square roots; the derivative at 0 is 0."""
    away = ~(square == 0)
    return fnp.where(away, fnp.sqrt(fnp.where(away, square, 1)), square)


def _ratio(top: Array, bottom: Array) -> Array:
    """Returns ratios; that of nothing to nothing is 0."""
    some = ~((bottom == 0) & (top == 0))
    return fnp.where(some, top / fnp.where(some, bottom, 1), 0)


def _sum(x: Array, w: Any) -> Array:
    return fnp.sum(x if w is None else x * w, -1)


# Functions of u, v, weights (or None) and what a metric asks for besides.


def _minkowski(u: Any, v: Any, w: Any, p: Any) -> Array:
    total = _sum(fnp.abs(u - v) ** p, w)
    away = ~(total == 0)
    return fnp.where(away, fnp.where(away, total, 1) ** (1 / p), total)


def _chebyshev(u: Any, v: Any, w: Any, _: Any) -> Array:
    apart = fnp.abs(u - v)
    return fnp.max(apart if w is None else fnp.where(w > 0, apart, 0), -1)


def _cosine(u: Any, v: Any, w: Any, _: Any) -> Array:
    lengths = _root(_sum(u * u, w)) * _root(_sum(v * v, w))
    return 1 - _sum(u * v, w) / lengths


def _correlation(u: Any, v: Any, w: Any, _: Any) -> Array:
    if w is not None:
        w = w / fnp.sum(w)
        means = [fnp.sum(x * w, -1, keepdims=True) for x in (u, v)]
    else:
        means = [fnp.mean(x, -1, keepdims=True) for x in (u, v)]
    return _cosine(u - means[0], v - means[1], w, _)


def _jensen_shannon(u: Any, v: Any, w: Any, _: Any) -> Array:
    p = u / fnp.sum(u, -1, keepdims=True)
    q = v / fnp.sum(v, -1, keepdims=True)
    m = (p + q) / 2

    def relative(a: Array) -> Array:
        some = a > 0
        return fnp.where(some, a * fnp.log(fnp.where(some, a, 1) / m), 0)

    left, right = _sum(relative(p), w), _sum(relative(q), w)
    return _root(fnp.maximum(left + right, 0) / 2)


def _counts(u: Any, v: Any, w: Any) -> tuple[Array, Array, Array, Array]:
    """Returns how often both, only the first, only the second and none are not 0."""
    real = dtypes.to_real(u.dtype)
    a, b = u != 0, v != 0
    pairs = (a & b, a & ~b, ~a & b, ~a & ~b)
    both, first, second, none = (_sum(x.astype(real), w) for x in pairs)
    return both, first, second, none


def _dice(u: Any, v: Any, w: Any, _: Any) -> Array:
    both, first, second, _none = _counts(u, v, w)
    return _ratio(first + second, 2 * both + first + second)


def _rogers_tanimoto(u: Any, v: Any, w: Any, _: Any) -> Array:
    both, first, second, none = _counts(u, v, w)
    apart = 2 * (first + second)
    return _ratio(apart, both + none + apart)


def _russell_rao(u: Any, v: Any, w: Any, _: Any) -> Array:
    both, first, second, none = _counts(u, v, w)
    rest = first + second + none
    return _ratio(rest, rest + both)


def _sokal_sneath(u: Any, v: Any, w: Any, _: Any) -> Array:
    both, first, second, _none = _counts(u, v, w)
    apart = 2 * (first + second)
    return _ratio(apart, both + apart)


def _yule(u: Any, v: Any, w: Any, _: Any) -> Array:
    both, first, second, none = _counts(u, v, w)
    half = first * second
    return fnp.where(half == 0, 0, 2 * half / (both * none + fnp.where(half, half, 1)))


def _jaccard(u: Any, v: Any, w: Any, _: Any) -> Array:
    real = dtypes.to_real(u.dtype)
    some = (u != 0) | (v != 0)
    return _ratio(_sum(((u != v) & some).astype(real), w), _sum(some.astype(real), w))


def _hamming(u: Any, v: Any, w: Any, _: Any) -> Array:
    apart = (u != v).astype(dtypes.to_real(u.dtype))
    if w is None:
        return fnp.mean(apart, -1)
    return fnp.sum(apart * w, -1) / fnp.sum(w)


def _mahalanobis(u: Any, v: Any, w: Any, inverse: Any) -> Array:
    apart = u - v
    turned = fnp.matmul(apart, inverse.T, precision="highest")
    return _root(fnp.sum(apart * turned, -1))


_METRICS: dict[str, Callable[[Any, Any, Any, Any], Array]] = {
    "braycurtis": lambda u, v, w, _: _sum(fnp.abs(u - v), w) / _sum(fnp.abs(u + v), w),
    "canberra": lambda u, v, w, _: _sum(
        _ratio(fnp.abs(u - v), fnp.abs(u) + fnp.abs(v)), w
    ),
    "chebyshev": _chebyshev,
    "cityblock": lambda u, v, w, _: _sum(fnp.abs(u - v), w),
    "correlation": _correlation,
    "cosine": _cosine,
    "dice": _dice,
    "euclidean": lambda u, v, w, _: _root(_sum(fnp.square(u - v), w)),
    "hamming": _hamming,
    "jaccard": _jaccard,
    "jensenshannon": _jensen_shannon,
    "mahalanobis": _mahalanobis,
    "minkowski": _minkowski,
    "rogerstanimoto": _rogers_tanimoto,
    "russellrao": _russell_rao,
    "seuclidean": lambda u, v, w, variance: _root(
        _sum(fnp.square(u - v) / variance, w)
    ),
    "sokalsneath": _sokal_sneath,
    "sqeuclidean": lambda u, v, w, _: _sum(fnp.square(u - v), w),
    "yule": _yule,
}
# SciPy's short names.
_ALSO = {
    **dict.fromkeys(("euclid", "eu", "e"), "euclidean"),
    **dict.fromkeys(("sqe", "sqeuclid"), "sqeuclidean"),
    **dict.fromkeys(("manhattan", "cblock", "cb", "c"), "cityblock"),
    **dict.fromkeys(("chebychev", "chebyshev", "cheby", "cheb", "ch"), "chebyshev"),
    **dict.fromkeys(("cos",), "cosine"),
    **dict.fromkeys(("co",), "correlation"),
    **dict.fromkeys(("hamm", "ha", "h", "matching"), "hamming"),
    **dict.fromkeys(("jacc", "ja", "j"), "jaccard"),
    **dict.fromkeys(("mahal", "mah"), "mahalanobis"),
    **dict.fromkeys(("mi", "m", "pnorm"), "minkowski"),
    **dict.fromkeys(("se", "s"), "seuclidean"),
    **dict.fromkeys(("js",), "jensenshannon"),
}


def _vectors(name: str, what: str, x: Any) -> Array:
    out: Array = promote_inexact(name, fnp.asarray(x))[0]
    if out.aval.ndim != 2:
        raise ShapeError(f"{name}: {what} must be vectors [m, d], got {out.aval}")
    return out


@library("metric")
def _table(x: Array, y: Array, w: Any, more: Any, metric: str) -> Array:
    return _METRICS[metric](x[:, None], y[None], w, more)


def _distances(
    name: str, x: Array, y: Array, whole: Array, metric: Any, options: dict[str, Any]
) -> Array:
    """Returns the distances of all vectors of two sets, [m, n].

    Args:
      name: of the function, for messages.
      x: float[m, d].
      y: float[n, d].
      whole: all vectors, from which a metric takes what it is not given.
      metric: as given.
      options: as given.
    """
    if callable(metric):

        def run(u: Any, v: Any) -> Array:
            return fnp.asarray(metric(u, v, **options))

        table: Array = vmap(lambda u: vmap(lambda v: run(u, v))(y))(x)
        return table
    kind = _ALSO.get(metric, metric)
    if kind not in _METRICS:
        known = ", ".join(f'"{m}"' for m in _METRICS)
        raise ArgumentError(
            f"{name}: metric must be a function or one of {known}, got {metric!r}"
        )
    allowed = {"minkowski": {"w", "p"}, "seuclidean": {"w", "V"}, "mahalanobis": {"VI"}}
    unknown = set(options) - allowed.get(kind, {"w"})
    if unknown:
        raise ArgumentError(
            f"{name}: metric {kind!r} takes {sorted(allowed.get(kind, {'w'}))}, got "
            f"{sorted(unknown)}"
        )
    real, d = dtypes.to_real(x.dtype), x.aval.shape[1]
    w = options.get("w")
    if w is not None:
        w = convert(fnp.asarray(w), real)
        if w.aval.shape != (d,):
            raise ShapeError(f"{name}: w must have shape ({d},), got {w.aval}")
        if not isinstance(w, Tracer) and (np.asarray(w) < 0).any():
            raise ArgumentError(f"{name}: w must not be negative")
    more: Any = None
    if kind == "minkowski":
        more = options.get("p", 2.0)
        if not isinstance(more, Tracer):
            p = number(name, "p", more)
            if not p > 0:
                raise ArgumentError(f"{name}: p must be positive, got {p}")
            if math.isinf(p):
                kind, more = "chebyshev", None
    elif kind == "seuclidean":
        more = options.get("V")
        more = fnp.var(whole, 0, ddof=1) if more is None else fnp.asarray(more, real)
        if more.aval.shape != (d,):
            raise ShapeError(f"{name}: V must have shape ({d},), got {more.aval}")
    elif kind == "mahalanobis":
        more = options.get("VI")
        if more is None:
            if whole.aval.shape[0] <= d:
                raise ArgumentError(
                    f"{name}: {whole.aval.shape[0]} vectors of {d} elements have a "
                    "singular covariance: give VI"
                )
            more = fnp.linalg.inv(fnp.atleast_2d(fnp.cov(whole.T))).T
        more = fnp.asarray(more, real)
        if more.aval.shape != (d, d):
            raise ShapeError(f"{name}: VI must have shape ({d}, {d}), got {more.aval}")
    return _table(x, y, w, more, kind)


def cdist(
    XA: ArrayLike, XB: ArrayLike, metric: Any = "euclidean", **options: Any
) -> Array:
    """Returns the distances of each vector of one set from each of another.

    Args:
      XA: real array-like[m, d].
      XB: real array-like[n, d].
      metric: "braycurtis", "canberra", "chebyshev", "cityblock", "correlation",
        "cosine", "dice", "euclidean", "hamming", "jaccard", "jensenshannon",
        "mahalanobis", "minkowski", "rogerstanimoto", "russellrao", "seuclidean",
        "sokalsneath", "sqeuclidean" or "yule"; or a function of two vectors.
      **options: `w`, weights array-like[d]; `p` of "minkowski", 2 without it; `V`,
        variances array-like[d] of "seuclidean"; `VI`, the inverse of the covariance,
        array-like[d, d], of "mahalanobis"; the last two are those of all vectors
        without them.

    Returns:
      Float array[m, n].

    Raises:
      ArgumentError: unknown metric or option, or a weight is negative.
      ShapeError: the arguments are not vectors of one length.

    Special cases:
      The derivative of a Euclidean distance of 0 is 0.

    Example:
      >>> cdist(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
      Array([[5., 1.]], dtype=float32)

    Source: `scipy.spatial.distance.cdist`.
    """
    x, y = _vectors("cdist", "XA", XA), _vectors("cdist", "XB", XB)
    x, y = promote_inexact("cdist", x, y)
    if x.aval.shape[1] != y.aval.shape[1]:
        raise ShapeError(
            f"cdist: vectors must have one length, got {x.aval} and {y.aval}"
        )
    whole = fnp.concatenate([x, y], 0)
    return _distances("cdist", x, y, whole, metric, options)


def pdist(X: ArrayLike, metric: Any = "euclidean", **options: Any) -> Array:
    """Returns the distances of all pairs of vectors.

    Args:
      X: real array-like[m, d].
      metric: as for `cdist`.
      **options: as for `cdist`.

    Returns:
      Float array[m (m - 1) / 2]: of vectors 0 and 1, 0 and 2, …, 1 and 2, …;
      `squareform` makes a matrix of it.

    Raises:
      ArgumentError: unknown metric or option, or a weight is negative.
      ShapeError: the argument is not vectors of one length.

    Example:
      >>> pdist(np.array([[0.0], [1.0], [3.0]]))
      Array([1., 3., 2.], dtype=float32)

    Source: `scipy.spatial.distance.pdist`.
    """
    x = _vectors("pdist", "X", X)
    table = _distances("pdist", x, x, x, metric, options)
    rows, columns = np.triu_indices(x.aval.shape[0], 1)
    return table[rows, columns]


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:
    """Makes a matrix of the distances of pairs, or the other way round.

    Args:
      X: array-like[m (m - 1) / 2], or a symmetric array-like[m, m] with zeros on the
        diagonal.
      force: "no"; "tovector" or "tomatrix", to take nothing else.
      checks: whether a matrix that is known must be symmetric.

    Returns:
      Array[m, m] or [m (m - 1) / 2].

    Raises:
      ArgumentError: the matrix is not symmetric, or there is no such `force`.
      ShapeError: the argument has the wrong shape.

    Example:
      >>> squareform(np.array([1.0, 3.0, 2.0]))
      Array([[0., 1., 3.],
             [1., 0., 2.],
             [3., 2., 0.]], dtype=float32)

    Source: `scipy.spatial.distance.squareform`.
    """
    name = "squareform"
    x = fnp.asarray(X)
    kinds = {"no": (1, 2), "tomatrix": (1,), "tovector": (2,)}
    if force not in kinds:
        raise ArgumentError(
            f'{name}: force must be "no", "tomatrix" or "tovector", got {force!r}'
        )
    if x.aval.ndim not in kinds[force]:
        raise ShapeError(f"{name}: X must be a vector or a matrix, got {x.aval}")
    if x.aval.ndim == 1:
        n = x.aval.size
        m = math.ceil(math.sqrt(2 * n)) if n else 1
        if m * (m - 1) != 2 * n:
            raise ShapeError(
                f"{name}: a vector must have m (m - 1) / 2 elements, got {n}"
            )
        rows, columns = np.triu_indices(m, 1)
        at = np.zeros((m, m), int)
        at[rows, columns] = at[columns, rows] = np.arange(n)
        full = x[at] if n else fnp.zeros((m, m), x.dtype)
        return fnp.where(np.eye(m, dtype=bool), fnp.zeros((), x.dtype), full)
    if x.aval.shape[0] != x.aval.shape[1]:
        raise ShapeError(f"{name}: a matrix must be square, got {x.aval}")
    if checks and not isinstance(x, Tracer):
        known = np.asarray(x)
        if not np.allclose(known, known.T) or np.diag(known).any():
            raise ArgumentError(
                f"{name}: the matrix must be symmetric with zeros on its diagonal"
            )
    rows, columns = np.triu_indices(x.aval.shape[0], 1)
    return x[rows, columns]


def directed_hausdorff(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array, Array]:
    """Returns how far a point of one set can be from the nearest one of another.

    Args:
      u: real array-like[m, d].
      v: real array-like[n, d].

    Returns:
      The greatest distance, float[]; and the indices of both points, int32[].

    Raises:
      ShapeError: the arguments are not points of one length, or there are none.

    Example:
      >>> a, b = np.array([[0.0], [5.0]]), np.array([[1.0], [2.0]])
      >>> [float(x) for x in directed_hausdorff(a, b)]
      [3.0, 1.0, 1.0]

    Source: `scipy.spatial.distance.directed_hausdorff`, which needs a seed.
    """
    table = cdist(u, v)
    if not table.size:
        raise ShapeError(f"directed_hausdorff: there must be points, got {table.aval}")
    near = fnp.argmin(table, 1)
    least = fnp.min(table, 1)
    far = fnp.argmax(least)
    return least[far], far.astype(np.int32), near[far].astype(np.int32)


# -- of two vectors --------------------------------------------------------------------

_docs = shared("""
    Args:
      u: real array-like[d].
      v: real array-like[d].
      w: array-like[d]: non-negative weights of the elements; None means ones.

    Returns:
      Float array[].

    Raises:
      ArgumentError: a weight is negative.
      ShapeError: the arguments are not vectors of one length.

    Source: `scipy.spatial.distance.{name}`.
""")


def _between(name: str, u: Any, v: Any, w: Any = None, **options: Any) -> Array:
    rows = []
    for what, x in (("u", u), ("v", v)):
        x = fnp.asarray(x)
        if x.ndim != 1:
            raise ShapeError(f"{name}: {what} must be a vector, got {x.aval}")
        rows.append(x[None])
    if w is not None:
        options["w"] = w
    if rows[0].shape != rows[1].shape:
        raise ShapeError(
            f"{name}: u and v must have one length, got {rows[0][0].aval} and "
            f"{rows[1][0].aval}"
        )
    x, y = promote_inexact(name, *rows)
    both = fnp.concatenate([x, y], 0)
    return _distances(name, x, y, both, name, options)[0, 0]


@_docs
def braycurtis(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Bray-Curtis distance: the sum of differences over the sum of sums.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(braycurtis(u, v)), 3)
      0.5
    """
    return _between("braycurtis", u, v, w)


@_docs
def canberra(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Canberra distance: the sum of the relative differences.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(canberra(u, v)), 3)
      2.0
    """
    return _between("canberra", u, v, w)


@_docs
def chebyshev(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Chebyshev distance: the largest absolute difference.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(chebyshev(u, v)), 3)
      1.0
    """
    return _between("chebyshev", u, v, w)


@_docs
def cityblock(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Manhattan distance: the sum of the absolute differences.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(cityblock(u, v)), 3)
      2.0
    """
    return _between("cityblock", u, v, w)


@_docs
def cosine(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the cosine distance: 1 minus the cosine of the angle between two vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(cosine(u, v)), 3)
      0.5
    """
    return _between("cosine", u, v, w)


@_docs
def dice(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Dice dissimilarity of two boolean vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(dice(u, v)), 3)
      0.5
    """
    return _between("dice", u, v, w)


@_docs
def euclidean(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Euclidean distance of two vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(euclidean(u, v)), 3)
      1.414
    """
    return _between("euclidean", u, v, w)


@_docs
def hamming(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Hamming distance: the fraction of the elements that differ.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(hamming(u, v)), 3)
      0.667
    """
    return _between("hamming", u, v, w)


@_docs
def jaccard(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Jaccard dissimilarity of two boolean vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(jaccard(u, v)), 3)
      0.667
    """
    return _between("jaccard", u, v, w)


@_docs
def rogerstanimoto(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Rogers-Tanimoto dissimilarity of two boolean vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(rogerstanimoto(u, v)), 3)
      0.8
    """
    return _between("rogerstanimoto", u, v, w)


@_docs
def russellrao(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Russell-Rao dissimilarity of two boolean vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(russellrao(u, v)), 3)
      0.667
    """
    return _between("russellrao", u, v, w)


@_docs
def sokalsneath(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Sokal-Sneath dissimilarity of two boolean vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(sokalsneath(u, v)), 3)
      0.8
    """
    return _between("sokalsneath", u, v, w)


@_docs
def sqeuclidean(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the squared Euclidean distance of two vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(sqeuclidean(u, v)), 3)
      2.0
    """
    return _between("sqeuclidean", u, v, w)


@_docs
def yule(u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None) -> Array:
    """Returns the Yule dissimilarity of two boolean vectors.

    Example:
      >>> u, v = np.array([1.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
      >>> round(float(yule(u, v)), 3)
      2.0
    """
    return _between("yule", u, v, w)


@_docs
def correlation(
    u: ArrayLike, v: ArrayLike, w: ArrayLike | None = None, centered: bool = True
) -> Array:
    """Returns the correlation distance: 1 minus the correlation of two vectors.

    Args:
      centered: whether the means are taken off; without, it is `cosine`.

    Example:
      >>> float(correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])))
      2.0
    """
    return _between("correlation" if centered else "cosine", u, v, w)


@_docs
def minkowski(
    u: ArrayLike, v: ArrayLike, p: Any = 2, w: ArrayLike | None = None
) -> Array:
    """Returns the Minkowski distance: the p-norm of the difference of two vectors.

    Args:
      p: the order of the norm, positive; it may be traced.

    Raises:
      ArgumentError: `p` is not positive, or a weight is negative.

    Example:
      >>> float(minkowski(np.array([0.0, 0.0]), np.array([3.0, 4.0]), 2))
      5.0
    """
    return _between("minkowski", u, v, w, p=p)


@_docs
def mahalanobis(u: ArrayLike, v: ArrayLike, VI: ArrayLike) -> Array:
    """Returns the Mahalanobis distance of two vectors.

    Args:
      VI: real array-like[d, d]: the inverse of the covariance.

    Raises:
      ShapeError: the arguments have incompatible shapes.

    Example:
      >>> float(mahalanobis(np.array([0.0, 0.0]), np.array([3.0, 4.0]), np.eye(2)))
      5.0
    """
    return _between("mahalanobis", u, v, VI=VI)


@_docs
def seuclidean(u: ArrayLike, v: ArrayLike, V: ArrayLike) -> Array:
    """Returns the Euclidean distance, each element scaled by its standard deviation.

    Args:
      V: real array-like[d]: the variances.

    Raises:
      ShapeError: the arguments have incompatible shapes.

    Example:
      >>> float(seuclidean(np.array([0.0, 0.0]), np.array([6.0, 4.0]), [4.0, 1.0]))
      5.0
    """
    return _between("seuclidean", u, v, V=V)


def jensenshannon(
    p: ArrayLike,
    q: ArrayLike,
    base: float | None = None,
    *,
    axis: int = 0,
    keepdims: bool = False,
) -> Array:
    """Returns the Jensen-Shannon distance of two probability vectors.

    Args:
      p: real array-like[...], not negative; the sums along `axis` are made 1.
      q: real array-like[...] that broadcasts against `p`.
      base: base of the logarithm; None is e.
      axis: along which the probabilities are.
      keepdims: whether the result has `axis`, of length 1.

    Returns:
      Float array, the shape of the arguments without `axis`.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> float(jensenshannon(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 2.0))
      1.0

    Source: `scipy.spatial.distance.jensenshannon`.
    """
    name = "jensenshannon"
    x, y = fnp.broadcast_arrays(*promote_inexact(name, p, q))
    axis = canonical_axis(name, axis, x.ndim)
    out = _jensen_shannon(fnp.moveaxis(x, axis, -1), fnp.moveaxis(y, axis, -1), None, 0)
    if base is not None:
        out = out / fnp.sqrt(fnp.log(fnp.asarray(base, out.dtype)))
    return fnp.expand_dims(out, axis) if keepdims else out


_public(globals(), __all__)
