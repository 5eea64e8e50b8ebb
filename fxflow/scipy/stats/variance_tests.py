"""Tests of variances: Bartlett's, Levene's, Fligner and Killeen's."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.docs import shared
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.special.probabilities import fdtrc
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_choice,
    statistic,
    taken,
)
from fxflow.scipy.stats.correlations import ranked
from fxflow.scipy.stats.means_tests import chi_square_result, require_several
from fxflow.scipy.stats.results import SignificanceResult
from fxflow.scipy.stats.spread import middle_part, require_cut

_CENTERS = ("mean", "median", "trimmed")


@statistic("axis", "keepdims")
def bartlett(
    *samples: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the variances of normal samples are equal, by Bartlett's test.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 9.0])
      >>> bartlett(x, y).pvalue.round(4)
      Array(0.178, dtype=float32)
    """
    name = "bartlett"
    require_several(name, samples)
    xs, done = taken(name, samples, axis, nan_policy, keepdims)
    k = len(xs)
    spreads = [x.var(1) for x in xs]
    total: Any = sum(x.n for x in xs)
    pooled: Any = sum((x.n - 1) * v for x, v in zip(xs, spreads, strict=True))
    logs: Any = sum((x.n - 1) * lax.log(v) for x, v in zip(xs, spreads, strict=True))
    top = (total - k) * lax.log(pooled / (total - k)) - logs
    shares: Any = sum(1 / (x.n - 1) for x in xs)
    value = top / (1 + (shares - 1 / (total - k)) / (3 * (k - 1)))
    value = fnp.where(value < 0, 0, value)
    return chi_square_result(value, k - 1, done)


_docs_of_distances = shared("""
    Args:
      center: from which distances are taken: "median", "mean", or "trimmed", the mean
        without the least and greatest elements.
      proportiontocut: of the elements, at each end, for "trimmed".
""")


def _distances(name: str, xs: list[Sample], center: str, cut: Any) -> list[Sample]:
    """Returns the distances of elements from the center of their sample."""
    require_choice(name, "center", center, _CENTERS)
    cut = require_cut(name, cut)
    out = []
    for x in xs:
        if center == "mean":
            middle = x.mean()
        elif center == "median":
            middle = x.median()
        else:
            middle = middle_part(x, cut).mean()
        out.append(x.but(abs(x.values - middle)))
    return out


def pooled(xs: list[Sample]) -> Sample:
    """Returns samples one behind the other."""
    values = fnp.concatenate([x.values for x in xs], axis=-1)
    if xs[0].kept is None:
        return Sample(values)
    return Sample(values, fnp.concatenate([x.kept for x in xs], axis=-1))


def parted(xs: list[Sample], v: Any) -> list[Any]:
    """Returns the parts of pooled numbers that belong to each sample."""
    out, start = [], 0
    for x in xs:
        out.append(v[..., start : start + x.size])
        start += x.size
    return out


def any_lost(xs: list[Sample]) -> Any:
    """Returns whether a sample has a nan that was not left out: bool[..., 1]."""
    lost: Any = xs[0].lost
    for x in xs[1:]:
        lost = lost | x.lost
    return lost


@statistic("center", "proportiontocut", "axis", "keepdims")
@_docs_of_distances
def levene(
    *samples: ArrayLike,
    center: str = "median",
    proportiontocut: float = 0.05,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the variances of samples are equal, by Levene's test.

    Args:
      center: from which distances are taken: "median" (Brown and Forsythe), "mean", or
        "trimmed", the mean without the least and greatest elements.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 9.0])
      >>> levene(x, y).pvalue.round(4)
      Array(0.4418, dtype=float32)
    """
    name = "levene"
    require_several(name, samples)
    xs, done = taken(name, samples, axis, nan_policy, keepdims)
    k = len(xs)
    zs = _distances(name, xs, center, proportiontocut)
    total: Any = sum(z.n for z in zs)
    means = [z.mean() for z in zs]
    middle = sum(z.n * m for z, m in zip(zs, means, strict=True)) / total
    between: Any = sum(z.n * (m - middle) ** 2 for z, m in zip(zs, means, strict=True))
    inside: Any = sum(z.var(0) * z.n for z in zs)
    value = (total - k) * between / ((k - 1) * inside)
    value = fnp.where(any_lost(xs), math.nan, value)
    p = fdtrc(fnp.asarray(float(k - 1), xs[0].dtype), total - k, value)
    return SignificanceResult(done(value), done(p))


@statistic("center", "proportiontocut", "axis", "keepdims")
@_docs_of_distances
def fligner(
    *samples: ArrayLike,
    center: str = "median",
    proportiontocut: float = 0.05,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the variances of samples are equal, by ranks of distances.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 9.0])
      >>> fligner(x, y).pvalue.round(4)
      Array(0.5328, dtype=float32)
    """
    name = "fligner"
    require_several(name, samples)
    xs, done = taken(name, samples, axis, nan_policy, keepdims)
    zs = _distances(name, xs, center, proportiontocut)
    both = pooled(zs)
    ranks, _ = ranked(both)
    total = both.n
    # Ranks of elements left out are beyond, and are not looked at.
    share = fnp.minimum(ranks.values / (2 * (total + 1)) + 0.5, 1)
    scores = both.but(both.only(ndtri(share)))
    middle, spread = scores.mean(), scores.var(1)
    value: Any = 0
    for x, part in zip(xs, parted(xs, scores.values), strict=True):
        value = value + x.n * (x.but(part).mean() - middle) ** 2
    value = fnp.where(any_lost(xs), math.nan, value / spread)
    return chi_square_result(value, len(xs) - 1, done)


@statistic()
def obrientransform(*samples: ArrayLike) -> Any:
    """Returns numbers whose means are the variances of samples, by O'Brien.

    An analysis of variance of them, `f_oneway`, tests whether the variances are equal.

    Args:
      *samples: rows of at least three elements.

    Returns:
      Float array[k, n] if all samples have n elements, otherwise a list of arrays.

    Raises:
      ArgumentError: there is no sample.
      ShapeError: a sample is not such a row.

    Example:
      >>> x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 4.0, 9.0])
      >>> obrientransform(x, y).mean(1).round(3)
      Array([ 1.   , 10.333], dtype=float32)
    """
    name = "obrientransform"
    require_several(name, samples, 1)
    rows, dtype = operands(name, *samples)
    out = []
    for row in rows:
        if row.aval.ndim != 1 or row.aval.shape[0] < 3:
            raise ShapeError(
                f"{name}: a sample must be a row of at least three elements, got "
                f"{row.aval}"
            )
        n = row.aval.shape[0]
        square = lax.square(row - fnp.mean(row))
        total = fnp.sum(square)
        new = ((n - 1.5) * n * square - 0.5 * total) / ((n - 1) * (n - 2))
        out.append(new.astype(dtype))
    same = len({row.aval.shape for row in rows}) == 1
    return fnp.stack(out) if same else out
