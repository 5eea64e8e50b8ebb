"""Spread and center without the tails: ranges of quantiles, trimmed samples, limits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, array_of
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_choice,
    statistic,
    taken,
)

#: The upper quartile of the normal distribution.
_QUARTILE = 0.6744897501960817


def _scale_of(name: str, scale: Any, normal: float) -> Any:
    if isinstance(scale, str):
        require_choice(name, "scale", scale.lower(), ("normal",))
        return normal
    return scale


@statistic("axis", "rng", "keepdims")
def iqr(
    x: ArrayLike,
    axis: Any = None,
    rng: Any = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Returns the range between two percentiles, by default the quartiles.

    Args:
      rng: a pair of percentages.
      scale: what the range is divided by: a number, or "normal": the result is then the
        standard deviation, for a normal sample.
      interpolation: the `method` of `fnp.quantile`.

    Example:
      >>> iqr(np.array([1.0, 2.0, 3.0, 4.0]))
      Array(1.5, dtype=float32)
    """
    if np.shape(rng) != (2,) or not all(0 <= q <= 100 for q in rng):
        raise ArgumentError(f"iqr: rng must be two percentages, got {rng!r}")
    divisor = _scale_of("iqr", scale, 2 * _QUARTILE)
    (s,), done = taken("iqr", (x,), axis, nan_policy, keepdims)
    low, high = (s.quantile(q / 100, interpolation) for q in sorted(rng))
    return done((high - low) / fnp.asarray(divisor, s.dtype))


@statistic("axis", "center", "keepdims")
def median_abs_deviation(
    x: ArrayLike,
    axis: Any = 0,
    center: Callable[..., Any] | None = None,
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the median of the distances from the median.

    Args:
      center: a function that is called as `center(x, axis=axis)` in place of the
        median; None is the median. Not with "omit".
      scale: what the result is divided by: a number, or "normal": the result is then
        the standard deviation, for a normal sample.

    Example:
      >>> median_abs_deviation(np.array([1.0, 2.0, 3.0, 9.0]))
      Array(1., dtype=float32)
    """
    name = "median_abs_deviation"
    divisor = _scale_of(name, scale, _QUARTILE)
    (s,), done = taken(name, (x,), axis, nan_policy, keepdims)
    if center is None:
        middle = s.median()
    elif s.kept is not None:
        raise ArgumentError(
            f'{name}: center must be None with nan_policy="omit", whose samples have '
            "holes"
        )
    else:
        middle = fnp.asarray(center(s.values, axis=-1))[..., None]
    value = s.but(abs(s.values - middle)).median()
    return done(value / fnp.asarray(divisor, s.dtype))


# -- trimmed ---------------------------------------------------------------------------


def require_cut(name: str, cut: Any, most: float = 0.5) -> float:
    """Returns a proportion that is to be cut off.

    Raises:
      ArgumentError: it is not a number, or so great that nothing remains.
    """
    known = isinstance(cut, int | float | np.generic)
    if not known or not 0 <= float(cut) < most:
        raise ArgumentError(
            f"{name}: the proportion to cut must be a number from 0 to less than "
            f"{most:g}, got {cut!r}"
        )
    return float(cut)


def middle_part(x: Sample, cut: float) -> Sample:
    """Returns a sample in order, without a proportion at each end.

    Args:
      x: the sample.
      cut: the proportion.
    """
    ranked = x.sorted()
    if x.kept is None:
        low = int(cut * x.size)
        return Sample(ranked[..., low : x.size - low])
    places = lax.broadcasted_iota(x.dtype, ranked.aval.shape, ranked.aval.ndim - 1)
    below = lax.floor(cut * x.n)
    return Sample(ranked, (places >= below) & (places < x.n - below))


@statistic("proportiontocut", "axis", "keepdims")
def trim_mean(
    a: ArrayLike,
    proportiontocut: float,
    axis: Any = 0,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the mean without the least and the greatest elements.

    Args:
      proportiontocut: of the elements, at each end: from 0 to less than 0.5.

    Example:
      >>> trim_mean(np.array([1.0, 2.0, 3.0, 90.0]), 0.25)
      Array(2.5, dtype=float32)
    """
    cut = require_cut("trim_mean", proportiontocut)
    (x,), done = taken("trim_mean", (a,), axis, nan_policy, keepdims)
    return done(fnp.where(x.lost, math.nan, middle_part(x, cut).mean()))


def _trimmed(name: str, a: Any, axis: Any, low: float, high: float) -> Array:
    x = array_of(a, name)
    if axis is None:
        x, axis = fnp.ravel(x), 0
    if not x.aval.ndim:
        x = x[None]
    axis = canonical_axis(name, axis, x.aval.ndim)
    n = x.aval.shape[axis]
    ranked = fnp.sort(x, axis=axis)
    below, above = int(low * n), int(high * n)
    return lax.slice_in_dim(ranked, below, n - above, axis=axis)


@statistic("proportiontocut", "axis")
def trimboth(a: ArrayLike, proportiontocut: float, axis: Any = 0) -> Array:
    """Returns a sample in order, without a proportion of elements at each end.

    Args:
      proportiontocut: of the elements, at each end: from 0 to less than 0.5.

    Returns:
      Array of the dtype of `a` with a shorter axis.

    Example:
      >>> trimboth(np.array([4, 1, 3, 2]), 0.25)
      Array([2, 3], dtype=int32)
    """
    cut = require_cut("trimboth", proportiontocut)
    return _trimmed("trimboth", a, axis, cut, cut)


@statistic("proportiontocut", "tail", "axis")
def trim1(
    a: ArrayLike, proportiontocut: float, tail: str = "right", axis: Any = 0
) -> Array:
    """Returns a sample in order, without a proportion of elements at one end.

    Args:
      proportiontocut: of the elements: from 0 to less than 1.
      tail: "left" or "right": the end.

    Returns:
      Array of the dtype of `a` with a shorter axis.

    Example:
      >>> trim1(np.array([4, 1, 3, 2]), 0.25)
      Array([1, 2, 3], dtype=int32)
    """
    cut = require_cut("trim1", proportiontocut, 1)
    require_choice("trim1", "tail", tail, ("left", "right"))
    left = tail == "left"
    return _trimmed("trim1", a, axis, cut * left, cut * (not left))


# -- within limits ---------------------------------------------------------------------


_docs_of_limits = shared("""
    Args:
      limits: a pair of numbers, either of which may be None; None: there are none.
      inclusive: a pair: whether each limit itself is within.
""")


def _limited(
    name: str, a: Any, limits: Any, inclusive: Any, axis: Any, policy: str, keep: bool
) -> tuple[Sample, Any]:
    (x,), done = taken(name, (a,), axis, policy, keep)
    for pair, what in ((limits, "limits"), (inclusive, "inclusive")):
        if pair is not None and not (isinstance(pair, tuple | list) and len(pair) == 2):
            raise ArgumentError(f"{name}: {what} must be a pair, got {pair!r}")
    low, high = limits or (None, None)
    inside: Any = x.values == x.values
    if low is not None:
        low = fnp.asarray(low, x.dtype)
        inside = (x.values >= low) if inclusive[0] else (x.values > low)
    if high is not None:
        high = fnp.asarray(high, x.dtype)
        inside &= (x.values <= high) if inclusive[1] else (x.values < high)
    # A nan is not out of the limits: it spoils the result.
    lost = x.lost
    x = x.where(inside) if limits is not None else x
    return x, lambda v: done(fnp.where(lost | (x.n == 0), math.nan, v))


@statistic("inclusive", "axis", "keepdims")
@_docs_of_limits
def tmean(
    a: ArrayLike,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the mean of the elements within limits.

    Special cases:
      nan, if no element is within.

    Example:
      >>> tmean(np.array([1.0, 2.0, 4.0, 90.0]), (2, 10))
      Array(3., dtype=float32)
    """
    x, done = _limited("tmean", a, limits, inclusive, axis, nan_policy, keepdims)
    found: Array = done(x.mean())
    return found


@statistic("inclusive", "axis", "ddof", "keepdims")
@_docs_of_limits
def tvar(
    a: ArrayLike,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the variance of the elements within limits.

    Example:
      >>> tvar(np.array([1.0, 2.0, 4.0, 90.0]), (2, 10))
      Array(2., dtype=float32)
    """
    x, done = _limited("tvar", a, limits, inclusive, axis, nan_policy, keepdims)
    found: Array = done(x.var(ddof))
    return found


@statistic("inclusive", "axis", "ddof", "keepdims")
@_docs_of_limits
def tstd(
    a: ArrayLike,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the standard deviation of the elements within limits.

    Example:
      >>> tstd(np.array([1.0, 2.0, 4.0, 90.0]), (2, 10)).round(4)
      Array(1.4142, dtype=float32)
    """
    x, done = _limited("tstd", a, limits, inclusive, axis, nan_policy, keepdims)
    found: Array = done(lax.sqrt(x.var(ddof)))
    return found


@statistic("inclusive", "axis", "ddof", "keepdims")
@_docs_of_limits
def tsem(
    a: ArrayLike,
    limits: Any = None,
    inclusive: Any = (True, True),
    axis: Any = 0,
    ddof: int = 1,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the standard error of the mean of the elements within limits.

    Example:
      >>> tsem(np.array([1.0, 2.0, 4.0, 90.0]), (2, 10))
      Array(1., dtype=float32)
    """
    x, done = _limited("tsem", a, limits, inclusive, axis, nan_policy, keepdims)
    found: Array = done(lax.sqrt(x.var(ddof) / x.n))
    return found


@statistic("axis", "inclusive", "keepdims")
def tmin(
    a: ArrayLike,
    lowerlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the least of the elements above a limit.

    Args:
      lowerlimit: a number; None: there is none.
      inclusive: whether the limit itself is above.

    Special cases:
      nan, if no element is above.

    Example:
      >>> tmin(np.array([1.0, 2.0, 4.0]), 1.5)
      Array(2., dtype=float32)
    """
    limits, ends = (lowerlimit, None), (inclusive, True)
    x, done = _limited("tmin", a, limits, ends, axis, nan_policy, keepdims)
    found: Array = done(x.min())
    return found


@statistic("axis", "inclusive", "keepdims")
def tmax(
    a: ArrayLike,
    upperlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the greatest of the elements below a limit.

    Args:
      upperlimit: a number; None: there is none.
      inclusive: whether the limit itself is below.

    Special cases:
      nan, if no element is below.

    Example:
      >>> tmax(np.array([1.0, 2.0, 4.0]), 3)
      Array(2., dtype=float32)
    """
    limits, ends = (None, upperlimit), (True, inclusive)
    x, done = _limited("tmax", a, limits, ends, axis, nan_policy, keepdims)
    found: Array = done(x.max())
    return found


class SigmaclipResult(NamedTuple):
    """What `sigmaclip` returns.

    Attributes:
      clipped: the elements in one row, nan where one is clipped.
      lower: the lower limit.
      upper: the upper limit.
    """

    clipped: Array
    lower: Array
    upper: Array


@statistic()
def sigmaclip(
    a: ArrayLike, low: ArrayLike = 4.0, high: ArrayLike = 4.0
) -> SigmaclipResult:
    """Clips elements far from the mean, again and again until none is far.

    How many remain depends on the values, so clipped elements become nan here;
    `fnp.nanmean` and `nan_policy="omit"` leave them out.

    Args:
      low: how many standard deviations below the mean an element is far.
      high: how many above it is far.

    Returns:
      A named tuple of `clipped`, float[n], and the limits.

    Example:
      >>> x = np.array([1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 2.0, 90.0])
      >>> sigmaclip(x, 2, 2).clipped
      Array([ 1.,  2.,  3.,  2.,  1.,  3.,  2., nan], dtype=float32)
    """
    (x, below, above), _ = operands("sigmaclip", a, low, high)
    x = fnp.ravel(x)

    def limits(kept: Any) -> tuple[Any, Any]:
        s = Sample(x, kept)
        middle, wide = s.mean()[0], lax.sqrt(s.var(0))[0]
        return middle - wide * below, middle + wide * above

    def step(state: Any) -> Any:
        kept, _ = state
        bottom, top = limits(kept)
        new = kept & (x >= bottom) & (x <= top)
        return new, fnp.any(new != kept)

    start = (lax.full(x.aval.shape, True), fnp.asarray(True))
    kept, _ = lax.while_loop(lambda state: state[1], step, start)
    kept = lax.stop_gradient(kept)
    bottom, top = limits(kept)
    return SigmaclipResult(fnp.where(kept, x, math.nan), bottom, top)
