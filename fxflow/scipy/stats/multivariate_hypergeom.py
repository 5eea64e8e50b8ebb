"""How many objects of each kind are drawn from an urn without replacement."""

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
from fxflow.scipy.stats._counts import hypergeom, log_chosen
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import (
    Distribution,
    covariance_of_one,
    inside,
    require_integers,
)

__all__ = ["cov", "logpmf", "mean", "pmf", "rvs", "var"]

_of = Distribution(
    """
x: int array-like[..., r]: how many of each kind are drawn.
m: int array-like[..., r]: how many of each kind there are.
n: int array-like[...]: how many are drawn.
""",
    "shape",
    "dtype",
)


def _parts(name: str, m: Any, n: Any) -> tuple[Array, Array, Array]:
    """Returns floats: the counts, their sum, and how many are drawn, or nan."""
    m, n = array_of(m, name), array_of(n, name)
    require_integers(name, m=m, n=n)
    if not m.aval.ndim:
        raise ShapeError(f"{name}: m must be [..., r], got {m.aval}")
    (floats,) = promote_inexact(name, m)
    drawn = convert(n, floats.aval.dtype)
    total = fnp.sum(floats, axis=-1)
    good = fnp.all(floats >= 0, axis=-1) & (drawn >= 0) & (drawn <= total)
    return floats, total, fnp.where(good, drawn, math.nan)


@_of
def logpmf(x: ArrayLike, m: ArrayLike, n: ArrayLike) -> Array:
    """Returns the logarithm of the probability of a number.

    Returns:
      Float array[...].

    Raises:
      DtypeError: an argument is not of integers.
      ShapeError: the shapes do not broadcast.

    Special cases:
      -inf where the sum of `x` is not `n`, or a number is negative or too great; nan
      where more are drawn than there are.

    Example:
      >>> logpmf(np.array([8, 4]), np.array([10, 20]), 12).round(4)
      Array(-5.9832, dtype=float32)
    """
    name = "multivariate_hypergeom.logpmf"
    x = array_of(x, name)
    require_integers(name, x=x)
    m_, total, drawn = _parts(name, m, n)
    if not x.aval.ndim or x.aval.shape[-1] != m_.aval.shape[-1]:
        raise ShapeError(
            f"{name}: x and m must have one number for each kind, got {x.aval} and "
            f"{m_.aval}"
        )
    y = convert(x, m_.aval.dtype)
    known = fnp.all((y >= 0) & (y <= m_), axis=-1) & (fnp.sum(y, axis=-1) == drawn)
    safe = fnp.clip(y, 0, fnp.maximum(m_, 0))
    value = fnp.sum(log_chosen(fnp.maximum(m_, 0), safe), axis=-1)
    value = value - log_chosen(total, drawn)
    return inside(known | (value != value), value, -math.inf)


pmf: Final = _of.exp(logpmf)


@_of
def mean(m: ArrayLike, n: ArrayLike) -> Array:
    """Returns the mean of each count.

    Returns:
      Float array[..., r].
    """
    m_, total, drawn = _parts("multivariate_hypergeom.mean", m, n)
    return (drawn / total)[..., None] * m_


def _spread(total: Any, drawn: Any) -> Array:
    """Returns what the covariance of a single draw is multiplied by."""
    found: Array = drawn * (total - drawn) / fnp.maximum(total - 1, 1)
    return found


@_of
def var(m: ArrayLike, n: ArrayLike) -> Array:
    """Returns the variance of each count.

    Returns:
      Float array[..., r].
    """
    m_, total, drawn = _parts("multivariate_hypergeom.var", m, n)
    p = m_ / total[..., None]
    return _spread(total, drawn)[..., None] * p * (1 - p)


@_of
def cov(m: ArrayLike, n: ArrayLike) -> Array:
    """Returns the covariance of the counts.

    Returns:
      Float array[..., r, r].
    """
    m_, total, drawn = _parts("multivariate_hypergeom.cov", m, n)
    p = m_ / total[..., None]
    return _spread(total, drawn)[..., None, None] * covariance_of_one(p)


@_of
def rvs(
    key: Array,
    m: ArrayLike,
    n: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws counts, kind by kind: each is hypergeometric given those before.

    Args:
      shape: shape of the array of vectors of counts; None means that of the parameters.

    Returns:
      Float array[*shape, r].
    """
    name = "multivariate_hypergeom.rvs"
    m_, total, drawn = _parts(name, m, n)
    batch = fnp.broadcast_shapes(m_.aval.shape[:-1], drawn.aval.shape)
    full = batch if shape is None else shape_or_length(name, shape)
    counts = fnp.broadcast_to(m_, (*full, m_.aval.shape[-1]))
    left = fnp.broadcast_to(fnp.where(drawn == drawn, drawn, 0), full)
    rest = fnp.broadcast_to(total, full)
    kinds = m_.aval.shape[-1]
    last = fnp.arange(kinds) == kinds - 1

    def draw(state: Any, kind: Any) -> Any:
        left, rest = state
        k, own, ends = kind
        # With nothing left there is no choice.
        number = hypergeom.rvs(k, fnp.maximum(rest, 1), own, left, shape=full)
        number = fnp.where(ends, left, fnp.where(rest > 0, number, 0))
        number = number.astype(left.aval.dtype)
        return (left - number, rest - own), number

    each = (random.split(key, kinds), fnp.moveaxis(counts, -1, 0), last)
    _, out = lax.scan(draw, (left, rest), each)
    value = fnp.moveaxis(out, 0, -1).astype(dtype or m_.aval.dtype)
    return fnp.where((drawn == drawn)[..., None], value, math.nan)


freezable(__name__, "m", "n")


_public(globals(), __all__)
