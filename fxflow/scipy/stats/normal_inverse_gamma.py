"""A normal variable whose variance is an inverse gamma one, with that variance."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, inside

__all__ = ["logpdf", "mean", "pdf", "rvs", "var"]

_of = Distribution(
    """
x: real array-like[...]: where the normal variable is.
s2: real array-like[...]: its variance.
mu: real array-like[...]: the mean.
lmbda: positive real array-like[...]: how many times smaller its variance is than `s2`.
a: positive real array-like[...]: the shape of the variance's distribution.
b: positive real array-like[...]: its scale.
""",
    "shape",
    "dtype",
)


def _given(name: str, *args: Any) -> tuple[Array, ...]:
    """Returns operands, the mean being nan where the others are not positive."""
    *more, mu, lmbda, a, b = promote_inexact(name, *args)
    good = (lmbda > 0) & (a > 0) & (b > 0)
    mu = fnp.where(good, mu, math.nan)
    lmbda, a, b = (fnp.where(good, v, 1) for v in (lmbda, a, b))
    return (*more, mu, lmbda, a, b)


@_of
def logpdf(
    x: ArrayLike,
    s2: ArrayLike,
    mu: ArrayLike = 0,
    lmbda: ArrayLike = 1,
    a: ArrayLike = 1,
    b: ArrayLike = 1,
) -> Array:
    """Returns the logarithm of the probability density.

    Special cases:
      -inf where `s2` is not positive.

    Example:
      >>> logpdf(0.5, 2.0).round(4)
      Array(-3.2143, dtype=float32)
    """
    x, s2, mu, lmbda, a, b = _given(
        "normal_inverse_gamma.logpdf", x, s2, mu, lmbda, a, b
    )
    known = s2 > 0
    v = fnp.where(known, s2, 1)
    log = lax.log(v)
    value = 0.5 * (lax.log(lmbda) - LOG_2PI - log) + a * lax.log(b) - gammaln(a)
    value = value - (a + 1) * log - (2 * b + lmbda * lax.square(x - mu)) / (2 * v)
    return inside(known | (s2 != s2) | (mu != mu), value + 0 * s2, -math.inf)


pdf: Final = _of.exp(logpdf)


@_of
def mean(
    mu: ArrayLike = 0, lmbda: ArrayLike = 1, a: ArrayLike = 1, b: ArrayLike = 1
) -> tuple[Array, Array]:
    """Returns the means of both variables.

    Returns:
      Two float arrays; nan where one does not exist, `a` being not above ½ and 1.
    """
    mu, lmbda, a, b = _given("normal_inverse_gamma.mean", mu, lmbda, a, b)
    rest = 0 * (lmbda + b)
    first = fnp.where(a > 0.5, mu + rest, math.nan)
    some = a > 1
    second = fnp.where(some, b / fnp.where(some, a - 1, 1), math.nan)
    return first, second + 0 * (mu + lmbda)


@_of
def var(
    mu: ArrayLike = 0, lmbda: ArrayLike = 1, a: ArrayLike = 1, b: ArrayLike = 1
) -> tuple[Array, Array]:
    """Returns the variances of both variables.

    Returns:
      Two float arrays; nan where one does not exist, `a` being not above 1 and 2.
    """
    mu, lmbda, a, b = _given("normal_inverse_gamma.var", mu, lmbda, a, b)
    one, two = a > 1, a > 2
    first = fnp.where(one, b / (fnp.where(one, a - 1, 1) * lmbda), math.nan)
    c = fnp.where(two, a, 3)
    second = fnp.where(two, b * b / ((c - 1) ** 2 * (c - 2)), math.nan)
    return first + 0 * mu, second + 0 * (mu + lmbda)


@_of
def rvs(
    key: Array,
    mu: ArrayLike = 0,
    lmbda: ArrayLike = 1,
    a: ArrayLike = 1,
    b: ArrayLike = 1,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> tuple[Array, Array]:
    """Draws both variables.

    Args:
      shape: shape of the results; None means that of the parameters.

    Returns:
      Two float arrays: the normal variable and its variance.
    """
    name = "normal_inverse_gamma.rvs"
    mu, lmbda, a, b = _given(name, mu, lmbda, a, b)
    batch = fnp.broadcast_shapes(*(v.aval.shape for v in (mu, lmbda, a, b)))
    full = batch if shape is None else shape_or_length(name, shape)
    chosen = dtype or mu.aval.dtype
    mu, lmbda, a, b = (v.astype(chosen) for v in (mu, lmbda, a, b))
    first, second = random.split(key)
    s2 = b * lax.exp(-random.loggamma(first, a, full, chosen))
    x = mu + lax.sqrt(s2 / lmbda) * random.normal(second, full, chosen)
    return x, fnp.where(x == x, s2, math.nan)


freezable(__name__, mu=0, lmbda=1, a=1, b=1)


_public(globals(), __all__)
