"""The multinomial distribution: how often n trials have each of several results."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import numpy as fnp
from fxflow import random
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
from fxflow.scipy.special.entropies import entr, xlogy
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._counts import binom
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import (
    Distribution,
    covariance_of_one,
    inside,
    require_integers,
)

__all__ = ["cov", "entropy", "logpmf", "mean", "pmf", "rvs"]

_of = Distribution(
    """
x: int array-like[..., r]: how often each result occurs.
n: int array-like[...]: the number of trials.
p: real array-like[..., r]: the probability of each result.
""",
    "shape",
    "dtype",
)


@_of
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Returns the logarithm of the probability of a number.

    Returns:
      Float array[...].

    Raises:
      DtypeError: `x` or `n` are not integers.
      ShapeError: the shapes do not broadcast.

    Special cases:
      -inf where the sum of `x` is not `n`, or a number is negative.
    """
    name = "multinomial.logpmf"
    x, n = array_of(x, name), array_of(n, name)
    (p,) = promote_inexact(name, p)
    require_integers(name, x=x, n=n)
    if not x.aval.ndim or not p.aval.ndim or x.aval.shape[-1] != p.aval.shape[-1]:
        raise ShapeError(
            f"{name}: x and p must have one number for each result, got {x.aval} and "
            f"{p.aval}"
        )
    dtype = p.aval.dtype
    known = fnp.all(x >= 0, axis=-1) & (fnp.sum(x, axis=-1) == n)
    y = convert(fnp.maximum(x, 0), dtype)
    total = convert(fnp.maximum(n, 0), dtype)
    value = gammaln(total + 1) + fnp.sum(xlogy(y, p) - gammaln(y + 1), axis=-1)
    return inside(known, value, -math.inf)


pmf: Final = _of.exp(logpmf)


def _trials(name: str, n: Any, p: Any) -> tuple[Array, Array]:
    n = array_of(n, name)
    (p,) = promote_inexact(name, p)
    require_integers(name, n=n)
    if not p.aval.ndim:
        raise ShapeError(f"{name}: p must be [..., r], got {p.aval}")
    trials = convert(fnp.maximum(n, 0), p.aval.dtype)
    return fnp.where(n < 0, math.nan, trials), p


@_of
def mean(n: ArrayLike, p: ArrayLike) -> Array:
    """Returns the mean of each count.

    Returns:
      Float array[..., r].
    """
    trials, p = _trials("multinomial.mean", n, p)
    return trials[..., None] * p


@_of
def cov(n: ArrayLike, p: ArrayLike) -> Array:
    """Returns the covariance of the counts.

    Returns:
      Float array[..., r, r].
    """
    trials, p = _trials("multinomial.cov", n, p)
    return trials[..., None, None] * covariance_of_one(p)


@_of
def entropy(n: ArrayLike, p: ArrayLike) -> Array:
    """Returns the entropy, in nats.

    Returns:
      Float array[...].

    Raises:
      DtypeError: `n` is not an integer.

    Special cases:
      nan where `n` is negative, or a probability is not from 0 to 1.

    Example:
      >>> entropy(np.array(1), np.array([0.25, 0.75])).round(4)
      Array(0.5623, dtype=float32)
    """
    trials, p = _trials("multinomial.entropy", n, p)
    whole = trials[..., None]
    # The mean of each log x!, by the distribution of one number, which is binomial.
    logs = binom.expect(lambda k: gammaln(k + 1), (whole, p))
    total = trials * fnp.sum(entr(p), axis=-1) - gammaln(trials + 1)
    return total + fnp.sum(logs, axis=-1)


@_of
def rvs(
    key: Array,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws counts: `fxflow.random.multinomial`.

    Args:
      shape: shape of the array of vectors of counts; None means that of the parameters.

    Returns:
      Float array[*shape, r].
    """
    (q,) = promote_inexact("multinomial.rvs", p)
    full = None
    if shape is not None:
        full = (*shape_or_length("multinomial.rvs", shape), q.aval.shape[-1])
    return random.multinomial(key, n, p, shape=full, dtype=dtype)


freezable(__name__, "n", "p")


_public(globals(), __all__)
