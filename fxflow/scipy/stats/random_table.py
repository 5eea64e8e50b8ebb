"""Random tables of counts with given sums of rows and columns."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ShapeError
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    ShapeLike,
    array_of,
    convert,
    promote_inexact,
)
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats import multivariate_hypergeom
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import Distribution, inside, require_integers

__all__ = ["logpmf", "mean", "pmf", "rvs"]

_of = Distribution(
    """
x: int array-like[..., m, n]: the table.
row: int array-like[m]: the sums of the rows.
col: int array-like[n]: the sums of the columns.
""",
    "shape",
    "dtype",
)


def _sums(name: str, row: Any, col: Any) -> tuple[Array, Array, Array]:
    """Returns the sums as floats, and whether they are those of a table."""
    row, col = array_of(row, name), array_of(col, name)
    require_integers(name, row=row, col=col)
    if row.aval.ndim != 1 or col.aval.ndim != 1:
        raise ShapeError(
            f"{name}: row and col must be rows, got {row.aval}, {col.aval}"
        )
    r, c = promote_inexact(name, row, col)
    return r, c, fnp.all(r >= 0) & fnp.all(c >= 0) & (fnp.sum(r) == fnp.sum(c))


@_of
def logpmf(x: ArrayLike, row: ArrayLike, col: ArrayLike) -> Array:
    """Returns the logarithm of the probability of a table.

    Returns:
      Float array[...].

    Raises:
      DtypeError: an argument is not of integers.
      ShapeError: the shapes are incompatible.

    Special cases:
      -inf where the sums of `x` are others, or a count is negative; nan where there is
      no table with these sums.

    Example:
      >>> x = np.array([[1, 2], [1, 0]])
      >>> logpmf(x, np.array([3, 1]), np.array([2, 2])).round(4)
      Array(-0.6931, dtype=float32)
    """
    name = "random_table.logpmf"
    x = array_of(x, name)
    require_integers(name, x=x)
    r, c, good = _sums(name, row, col)
    if x.aval.shape[-2:] != (r.aval.shape[0], c.aval.shape[0]):
        raise ShapeError(
            f"{name}: x must be [..., {r.aval.shape[0]}, {c.aval.shape[0]}], got "
            f"{x.aval}"
        )
    y = convert(x, r.aval.dtype)
    known = fnp.all(y >= 0, axis=(-1, -2))
    known = known & fnp.all(fnp.sum(y, axis=-1) == r, axis=-1)
    known = known & fnp.all(fnp.sum(y, axis=-2) == c, axis=-1)
    log: Any = lambda v: fnp.sum(gammaln(fnp.maximum(v, 0) + 1))
    value = log(r) + log(c) - gammaln(fnp.sum(r) + 1)
    parts = fnp.sum(gammaln(fnp.maximum(y, 0) + 1), axis=(-1, -2))
    value = inside(known, value - parts, -math.inf)
    return fnp.where(good, value, math.nan)


pmf: Final = _of.exp(logpmf)


@_of
def mean(row: ArrayLike, col: ArrayLike) -> Array:
    """Returns the mean of each count.

    Returns:
      Float array[m, n].
    """
    r, c, good = _sums("random_table.mean", row, col)
    return fnp.where(good, r[:, None] * c / fnp.sum(r), math.nan)


@_of
def rvs(
    key: Array,
    row: ArrayLike,
    col: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws tables, row by row: each is drawn from what is left of the columns.

    Args:
      shape: shape of the array of tables.

    Returns:
      Float array[*shape, m, n]; nan where there is no table with these sums.
    """
    name = "random_table.rvs"
    r, c, good = _sums(name, row, col)
    full = shape_or_length(name, shape)
    left = fnp.broadcast_to(fnp.where(good, c, 0), (*full, c.aval.shape[0]))
    rows = r.aval.shape[0]

    def draw(left: Any, row: Any) -> Any:
        k, size, ends = row
        drawn = multivariate_hypergeom.rvs(
            k, left.astype(int), size.astype(int), shape=full
        )
        drawn = fnp.where(ends, left, drawn).astype(left.aval.dtype)
        return left - drawn, drawn

    each = (
        random.split(key, rows),
        fnp.where(good, r, 0),
        fnp.arange(rows) == rows - 1,
    )
    _, out = lax.scan(draw, left, each)
    value = fnp.moveaxis(out, 0, -2).astype(dtype or r.aval.dtype)
    return fnp.where(good, value, math.nan)


freezable(__name__, "row", "col")


_public(globals(), __all__)
