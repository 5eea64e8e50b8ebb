"""Random correlation matrices with given eigenvalues."""

from __future__ import annotations

from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.scipy.stats._functions import Distribution
from fxflow.transforms.vmap import vmap

__all__ = ["rvs"]

_of = Distribution(
    "eigs: non-negative real array-like[n], whose sum is n: the eigenvalues.",
    "shape",
    "dtype",
)


def _rotated(matrix: Any) -> Any:
    """Returns a similar matrix whose diagonal is 1, by rotations in planes."""
    n = matrix.aval.shape[-1]

    def step(_: Any, a: Any) -> Any:
        along = fnp.diagonal(a)
        i, j = fnp.argmin(along), fnp.argmax(along)
        low, high, side = along[i] - 1, along[j] - 1, a[i, j]
        # Two rotations make an element 1: this one has no cancellation.
        root = lax.sqrt(fnp.maximum(side * side - low * high, 0))
        some = high > 0
        t = (side + fnp.where(side < 0, -root, root)) / fnp.where(some, high, 1)
        t = fnp.where(some, t, 0)
        c = 1 / lax.sqrt(1 + t * t)
        s = c * t
        first, second = a[i], a[j]
        a = a.at[i].set(c * first - s * second).at[j].set(s * first + c * second)
        first, second = a[:, i], a[:, j]
        a = a.at[:, i].set(c * first - s * second)
        a = a.at[:, j].set(s * first + c * second)
        return fnp.where(some, a.at[i, i].set(1), a)

    a = lax.fori_loop(0, n - 1, step, matrix)
    a = 0.5 * (a + a.T)
    return fnp.where(fnp.eye(n, dtype=bool), fnp.ones((), a.aval.dtype), a)


@_of
def rvs(
    key: Array,
    eigs: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws correlation matrices, from random rotations of a diagonal one.

    Args:
      shape: shape of the array of matrices.

    Returns:
      Float array[*shape, n, n].

    Raises:
      ShapeError: there are fewer than 2 eigenvalues, or they are not a row.

    Special cases:
      nan where an eigenvalue is negative, or their sum is not n.

    Example:
      >>> from fxflow import random
      >>> a = rvs(random.key(0), np.array([0.5, 0.8, 1.7]))
      >>> fnp.linalg.eigvalsh(a).round(3)
      Array([0.5, 0.8, 1.7], dtype=float32)

    Source: `scipy.stats.random_correlation.rvs`; P. I. Davies and N. J. Higham 2000.
    """
    name = "random_correlation.rvs"
    (w,) = promote_inexact(name, eigs)
    if w.aval.ndim != 1 or w.aval.shape[0] < 2:
        raise ShapeError(
            f"{name}: eigs must be a row of at least 2 numbers, got {w.aval}"
        )
    chosen = dtype or w.aval.dtype
    n = w.aval.shape[0]
    eps = float(fnp.finfo(w.aval.dtype).eps)
    good = fnp.all(w >= 0) & (abs(fnp.sum(w) - n) < 1e3 * n * eps)
    full = shape_or_length(name, shape)
    q = random.orthogonal(key, n, full, chosen)
    a = fnp.matmul(q * w.astype(chosen), fnp.matrix_transpose(q))
    one = _rotated
    for _ in full:
        one = vmap(one)
    return fnp.where(good, one(a), fnp.nan)


_public(globals(), __all__)
