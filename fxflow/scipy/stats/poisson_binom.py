"""The Poisson binomial distribution: successes in trials of different probabilities.

Its parameter is a row of probabilities, so it is a module of functions as the
distributions of vectors are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer, shape_or_length
from fxflow.numpy._operands import ArrayLike, DTypeLike, ShapeLike, promote_inexact
from fxflow.scipy.stats._domains import is_whole
from fxflow.scipy.stats._frozen_vectors import freezable
from fxflow.scipy.stats._functions import Distribution
from fxflow.scipy.stats._protocol import log_of, require_letters

__all__ = [
    "cdf",
    "entropy",
    "expect",
    "interval",
    "isf",
    "logcdf",
    "logpmf",
    "logsf",
    "mean",
    "median",
    "moment",
    "pmf",
    "ppf",
    "rvs",
    "sf",
    "stats",
    "std",
    "support",
    "var",
]

_of = Distribution(
    """
k: real array-like[...]: the integers at which to evaluate.
q: real array-like[...], probabilities from 0 to 1.
p: real array-like[..., n]: the probability of success of each trial.
loc: real array-like[...]: location, the shift of the distribution.
""",
    "shape",
    "dtype",
    "order",
    "moments",
)


def _given(name: str, p: Any, *more: Any) -> tuple[Array, ...]:
    """Returns the probabilities, nan where one is not from 0 to 1, and the others."""
    p, *rest = promote_inexact(name, p, *more)
    if not p.aval.ndim:
        raise ShapeError(f"{name}: p must be [..., n], got {p.aval}")
    good = fnp.all((p >= 0) & (p <= 1), axis=-1, keepdims=True)
    return fnp.where(good, p, math.nan), *rest


def _chances(p: Any) -> Any:
    """Returns the probability of each number of successes: float[..., n + 1]."""
    n = p.aval.shape[-1]
    start = fnp.zeros((*p.aval.shape[:-1], n + 1), p.aval.dtype).at[..., 0].set(1)
    zero = fnp.zeros((*p.aval.shape[:-1], 1), p.aval.dtype)

    def add(chances: Any, one: Any) -> Any:
        one = one[..., None]
        moved = fnp.concatenate([zero, chances[..., :-1]], axis=-1)
        return chances * (1 - one) + moved * one, None

    return lax.scan(add, start, fnp.moveaxis(p, -1, 0))[0]


def _at(table: Any, k: Any, least: float, most: float) -> Array:
    """Returns entries of rows; numbers below and above."""
    n = table.aval.shape[-1] - 1
    batch = fnp.broadcast_shapes(table.aval.shape[:-1], k.aval.shape)
    table = fnp.broadcast_to(table, (*batch, n + 1))
    k = fnp.broadcast_to(k, batch)
    place = fnp.clip(fnp.where(k == k, k, 0), 0, n).astype("int32")
    value = fnp.take_along_axis(table, place[..., None], axis=-1)[..., 0]
    value = fnp.where(k < 0, least, fnp.where(k > n, most, value))
    found: Array = fnp.where(k == k, value, math.nan)
    return found


def _upward(p: Any) -> tuple[Any, Any]:
    """Returns P(K ≤ k) and P(K > k), each a sum from its own end."""
    chances = _chances(p)
    below = fnp.cumsum(chances, axis=-1)
    above = fnp.flip(fnp.cumsum(fnp.flip(chances, -1), axis=-1), -1)
    above = fnp.concatenate([above[..., 1:], fnp.zeros_like(above[..., :1])], axis=-1)
    return fnp.minimum(below, 1), fnp.minimum(above, 1)


@_of
def pmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the probability of a number.

    Example:
      >>> pmf(np.arange(3), np.array([0.5, 0.2])).round(2)
      Array([0.4, 0.5, 0.1], dtype=float32)
    """
    p, k, loc = _given("poisson_binom.pmf", p, k, loc)
    at = k - loc
    whole = is_whole(at) | (at != at)
    return fnp.where(whole, _at(_chances(p), at, 0, 0), 0)


@_of
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the probability of a number."""
    found: Array = log_of(pmf(k, p, loc))
    return found


@_of
def cdf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the cumulative distribution function, P(X ≤ k)."""
    p, k, loc = _given("poisson_binom.cdf", p, k, loc)
    return _at(_upward(p)[0], lax.floor(k - loc), 0, 1)


@_of
def sf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the survival function, P(X > k)."""
    p, k, loc = _given("poisson_binom.sf", p, k, loc)
    return _at(_upward(p)[1], lax.floor(k - loc), 1, 0)


def _log_tail(p: Any, k: Any, which: int) -> Array:
    tails = _upward(p)
    ends = ((0, 1), (1, 0))
    near, far = (_at(tails[i], k, *ends[i]) for i in (which, 1 - which))
    large = near > 0.5
    rest = lax.log1p(-fnp.where(large, fnp.minimum(far, 1), 0))
    found: Array = fnp.where(large, rest, log_of(fnp.where(large, 1, near)))
    return found


@_of
def logcdf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the cumulative distribution function."""
    p, k, loc = _given("poisson_binom.logcdf", p, k, loc)
    return _log_tail(p, lax.floor(k - loc), 0)


@_of
def logsf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the survival function."""
    p, k, loc = _given("poisson_binom.logsf", p, k, loc)
    return _log_tail(p, lax.floor(k - loc), 1)


@_of
def ppf(q: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the quantile function: the least number whose `cdf` is at least `q`.

    Special cases:
      0 → the number before the support; nan outside of 0 … 1.
    """
    p, q, loc = _given("poisson_binom.ppf", p, q, loc)
    below = _upward(lax.stop_gradient(p))[0]
    k = fnp.sum(below < q[..., None], axis=-1).astype(p.aval.dtype)
    k = fnp.where(q == 0, -1, fnp.minimum(k, p.aval.shape[-1]))
    good = (q >= 0) & (q <= 1) & fnp.all(p == p, axis=-1)
    return fnp.where(good, k + loc, math.nan)


@_of
def isf(q: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the least number whose `sf` is at most `q`: the inverse of `sf`.

    Special cases:
      1 → the number before the support; nan outside of 0 … 1.
    """
    p, q, loc = _given("poisson_binom.isf", p, q, loc)
    above = _upward(lax.stop_gradient(p))[1]
    k = fnp.sum(above > q[..., None], axis=-1).astype(p.aval.dtype)
    good = (q >= 0) & (q <= 1) & fnp.all(p == p, axis=-1)
    k = fnp.where(q == 0, p.aval.shape[-1], fnp.where(q == 1, -1, k))
    return fnp.where(good, k + loc, math.nan)


@_of
def median(p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the median."""
    return ppf(0.5, p, loc)


@_of
def interval(
    confidence: ArrayLike, p: ArrayLike, loc: ArrayLike = 0
) -> tuple[Array, Array]:
    """Returns the interval around the median that has a given probability.

    Args:
      confidence: real array-like[...], a probability.

    Returns:
      The two ends, float arrays of the broadcast shape.

    Special cases:
      nan where the confidence is not within 0 … 1.
    """
    p, c, loc = _given("poisson_binom.interval", p, confidence, loc)
    tail = (1 - c) / 2
    return ppf(tail, p, loc), ppf(1 - tail, p, loc)


@_of
def support(p: ArrayLike, loc: ArrayLike = 0) -> tuple[Array, Array]:
    """Returns the ends of the support: 0 and n, moved by `loc`.

    Returns:
      Two float arrays of the broadcast shape.
    """
    p, loc = _given("poisson_binom.support", p, loc)
    first = 0 * fnp.sum(p, axis=-1) + loc
    return first, first + p.aval.shape[-1]


@_of
def mean(p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the mean."""
    p, loc = _given("poisson_binom.mean", p, loc)
    return fnp.sum(p, axis=-1) + loc


@_of
def var(p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the variance."""
    p, loc = _given("poisson_binom.var", p, loc)
    return fnp.sum(p * (1 - p), axis=-1) + 0 * loc


@_of
def std(p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the standard deviation."""
    return lax.sqrt(var(p, loc))


@_of
def stats(p: ArrayLike, loc: ArrayLike = 0, moments: str = "mv") -> tuple[Array, ...]:
    """Returns some of mean, variance, skewness and excess kurtosis.

    Args:
      moments: letters of "mvsk".

    Returns:
      A tuple of float arrays of the broadcast shape, in the order of the letters.

    Raises:
      ArgumentError: an argument is not an array, or a letter is another one.
    """
    name = "poisson_binom.stats"
    require_letters(name, moments)
    p, loc = _given(name, p, loc)
    spread = p * (1 - p)
    width = fnp.sum(spread, axis=-1)
    some = width > 0
    safe = fnp.where(some, width, 1)
    # Cumulants of trials add.
    third = fnp.sum(spread * (1 - 2 * p), axis=-1)
    fourth = fnp.sum(spread * (1 - 6 * spread), axis=-1)
    known = {
        "m": fnp.sum(p, axis=-1) + loc,
        "v": width + 0 * loc,
        "s": fnp.where(some, third / safe**1.5, math.nan) + 0 * loc,
        "k": fnp.where(some, fourth / safe**2, math.nan) + 0 * loc,
    }
    return tuple(known[letter] for letter in moments)


@_of
def moment(order: int, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the mean of a power, about 0.

    Args:
      order: a positive integer: the power.

    Raises:
      ArgumentError: an argument is not an array, or `order` is not positive.
    """
    name = "poisson_binom.moment"
    order = integer(name, "order", order)
    if order < 1:
        raise ArgumentError(f"{name}: order must be positive, got {order}")
    return _expected(name, lambda k: k**order, p, loc)


def _expected(
    name: str, func: Any, p: Any, loc: Any, lb: Any = None, ub: Any = None
) -> Array:
    """Returns the sum of a function times the probabilities, between two numbers."""
    p, loc = _given(name, p, loc)
    at = fnp.arange(p.aval.shape[-1] + 1, dtype=p.aval.dtype) + loc[..., None]
    chances = _chances(p)
    for end, beyond in ((lb, lax.lt), (ub, lax.gt)):
        if end is not None:
            (edge,) = promote_inexact(name, end)
            edge = fnp.broadcast_to(edge[..., None].astype(at.dtype), at.shape)
            chances = fnp.where(beyond(at, edge), 0, chances)
    value: Array = fnp.sum(fnp.asarray(func(at)) * chances, axis=-1)
    return value


def expect(
    func: Callable[[Any], Any],
    p: ArrayLike,
    loc: ArrayLike = 0,
    lb: ArrayLike | None = None,
    ub: ArrayLike | None = None,
    conditional: bool = False,
) -> Array:
    """Returns the mean of a function of the number of successes.

    Args:
      func: an elementwise function of a float array.
      p: real array-like[..., n]: the probability of success of each trial.
      loc: real array-like[...]: location, the shift of the distribution.
      lb: a number: where the sum begins, if not with the support.
      ub: a number: where it ends.
      conditional: whether to divide by the probability of `lb` … `ub`.

    Returns:
      Float array of the broadcast shape; nan where a probability is not from 0 to 1.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.
      ShapeError: the shapes do not broadcast.

    Example:
      >>> expect(lambda k: k * k, np.array([0.5, 0.5]))
      Array(1.5, dtype=float32)

    Source: `scipy.stats.poisson_binom.expect`.
    """
    name = "poisson_binom.expect"
    value = _expected(name, func, p, loc, lb, ub)
    if not conditional:
        return value
    mass = _expected(name, lambda k: 1.0 + 0 * k, p, loc, lb, ub)
    found: Array = value / mass
    return found


@_of
def entropy(p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the entropy, in nats."""
    p, loc = _given("poisson_binom.entropy", p, loc)
    chances = _chances(p)
    return (
        -fnp.sum(
            fnp.where(chances > 0, chances * log_of(chances), 0 * chances), axis=-1
        )
        + 0 * loc
    )


@_of
def rvs(
    key: Array,
    p: ArrayLike,
    loc: ArrayLike = 0,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draws numbers of successes: sums of `fxflow.random.bernoulli`.

    Args:
      shape: shape of the result; None means that of the parameters.

    Returns:
      Float array of that shape.
    """
    name = "poisson_binom.rvs"
    p, loc = _given(name, p, loc)
    batch = fnp.broadcast_shapes(p.aval.shape[:-1], loc.aval.shape)
    full = batch if shape is None else shape_or_length(name, shape)
    drawn = random.bernoulli(key, fnp.where(p == p, p, 0), (*full, p.aval.shape[-1]))
    value = fnp.sum(drawn, axis=-1).astype(dtype or p.aval.dtype)
    bad = fnp.any(p != p, axis=-1)
    return fnp.where(bad, math.nan, value + loc.astype(value.aval.dtype))


freezable(__name__, "p", loc=0)


_public(globals(), __all__)
