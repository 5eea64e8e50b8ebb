"""Multiscale graph correlation: whether two samples depend on each other, at any scale.

At a scale (k, l) only the pairs count that are among the k nearest of one sample and
the l nearest of the other. The correlations at all scales are running sums of products
of centred distances over their ranks, and the test's statistic is the greatest one in
the largest region of scales where they are significant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.ndimage.measurements import label
from fxflow.scipy.spatial.distance import cdist
from fxflow.scipy.stats._betas import beta
from fxflow.scipy.stats._samples import operands
from fxflow.scipy.stats.ranks import rankdata
from fxflow.scipy.stats.resampling import _many, _program, orders
from fxflow.scipy.stats.results import MGCResult

#: The share of scales that is a region, and the probability that one is greater than
#: the threshold by chance (times the size of the sample).
_SHARE = 0.02


def _distances(x: Any) -> Array:
    """Returns the Euclidean distances of the rows of a matrix."""
    return cdist(x, x)


def _centred(d: Any) -> Any:
    """Returns distances less the mean of their column, and 0 on the diagonal."""
    n = d.shape[0]
    mean = fnp.sum(d, axis=0) / (n - 1)
    return fnp.where(np.eye(n, dtype=bool), 0, d - mean)


def _summed(a: Any, b: Any, ranks: Any, others: Any) -> Any:
    """Returns the covariances at all scales, [n, n]."""
    n = a.shape[0]
    zeros = fnp.zeros((n, n), a.dtype)
    mode = "promise_in_bounds"
    product = zeros.at[ranks, others].add(a * b, mode=mode)
    product = fnp.cumsum(fnp.cumsum(product, axis=0), axis=1)
    first, second = (
        fnp.cumsum(zeros[0].at[r].add(v, mode=mode))
        for r, v in ((ranks, a), (others, b))
    )
    return product - first[:, None] * second / n**2


def _correlations(a: Any, b: Any, ranks: Any, others: Any, widths: Any) -> Any:
    """Returns the correlations at all scales, [n, n]."""
    covariance = _summed(a, b, ranks, others)
    first, second = (fnp.where(v > 0, v, 1) for v in widths)
    scale = lax.sqrt(first[:, None] * second)
    known = (widths[0] > 0)[:, None] & (widths[1] > 0)
    return fnp.where(known, fnp.minimum(covariance / scale, 1), 0)


def _greatest(scales: Any, counts: Any, threshold: Any) -> tuple[Any, Any]:
    """Returns the statistic, and the scale where it is found.

    Args:
      scales: float[n, n]: the correlations.
      counts: two integers: up to which ranks there are scales of their own.
      threshold: of significant correlations.
    """
    n = scales.shape[0]
    whole = scales[-1, -1]
    places = fnp.arange(n)
    inside = (places < counts[0])[:, None] & (places < counts[1])
    region = inside & (scales > fnp.maximum(threshold, whole))
    labels = label(region)[0]
    sizes = fnp.zeros(n * n + 1, dtypes.int32)
    sizes = sizes.at[labels].add(1, mode="promise_in_bounds").at[0].set(0)
    largest = fnp.argmax(sizes)
    size = sizes[largest]
    region = (labels == largest) & (size > 0)
    least = fnp.asarray(np.ceil(_SHARE * np.arange(n + 1)), dtypes.int32)
    least = least[fnp.maximum(*counts)] * fnp.minimum(*counts)
    top = fnp.max(fnp.where(region, scales, -math.inf))
    found = (size > 0) & (size >= least) & (top >= whole)
    at = fnp.arange(n * n, dtype=dtypes.int32).reshape(n, n)
    at = fnp.max(fnp.where(region & (scales >= top), at, 0))
    scale = fnp.where(
        found, fnp.stack([at // n + 1, at % n + 1]), fnp.stack(counts)
    ).astype(dtypes.int32)
    return fnp.where(found, top, whole), scale


def _test(
    x: Any, y: Any, key: Any, threshold: Any, reps: int, batch: Any
) -> tuple[Any, Any, Any, Any, Any]:
    n = x.shape[0]
    lost = fnp.any(fnp.isnan(x)) | fnp.any(fnp.isnan(y))
    a, b = _centred(x), _centred(y).T
    ranks, others = (
        fnp.where(lost, 0, rankdata(d, "dense", axis=0) - 1).astype(dtypes.int32)
        for d in (x, y)
    )
    others = others.T
    counts = [fnp.max(r) + 1 for r in (ranks, others)]
    widths = [
        fnp.diagonal(_summed(v, v.T, r, r.T)) for v, r in ((a, ranks), (b.T, others.T))
    ]
    scales = _correlations(a, b, ranks, others, widths)
    statistic, scale = _greatest(scales, counts, threshold)

    def one(order: Any) -> Any:
        moved = (v[order][:, order] for v in (b, others))
        drawn, places = moved
        tried = _correlations(a, drawn, ranks, places, widths)
        return _greatest(tried, counts, threshold)[0]

    statistic = fnp.where(lost, math.nan, statistic)
    null = fnp.zeros(0, x.dtype)
    if reps:
        null = _many(one, orders(random.split(key, reps), n), n * n, batch)
        null = fnp.where(lost, math.nan, null)
    more = fnp.sum(null >= statistic) + 1
    pvalue = fnp.where(lost, math.nan, more.astype(x.dtype) / (reps + 1))
    return statistic, pvalue, fnp.where(lost, math.nan, scales), scale, null


def _rows(name: str, what: str, x: Any) -> Any:
    if x.ndim not in (1, 2):
        raise ShapeError(f"{name}: {what} must have one or two axes, got {x.aval}")
    return x[:, None] if x.ndim == 1 else x


def multiscale_graphcorr(
    x: ArrayLike,
    y: ArrayLike,
    compute_distance: Callable[[Any], Any] | None = _distances,
    reps: int = 1000,
    *,
    key: Any,
    is_twosamp: bool = False,
    batch: int | None = None,
) -> MGCResult:
    """Tests whether two samples are independent, by their correlations at all scales.

    The p-value is that of random permutations of one of them.

    Args:
      x: real array-like[n, p] or [n]: the elements of a sample are its rows.
      y: real array-like[n, q] or [n]; or [m, p] with another number of rows, which
        makes it a test of whether both have one distribution.
      compute_distance: a pure function of a sample, float[n, p], that returns the
        distances of its elements, float[n, n]; None: `x` and `y` are distances.
      reps: the number of permutations.
      key: a key of `fxflow.random`, in place of SciPy's generator.
      is_twosamp: whether it is the test of two samples, [n, p] both.
      batch: how many permutations are worked on at a time; None is what 262,144
        numbers make.

    Returns:
      An `MGCResult`, which is unpacked as `statistic`, `pvalue`, `mgc_dict`.

    Raises:
      ArgumentError: an argument is not what is described here.
      ShapeError: the samples do not fit each other, or have fewer than 5 elements.

    Special cases:
      nan where a distance is.

    Example:
      >>> from fxflow import random
      >>> x = np.linspace(-1.0, 1.0, 30)
      >>> found = multiscale_graphcorr(x, x**2, reps=99, key=random.key(0))
      >>> bool(found.statistic > 0.4), bool(found.pvalue < 0.02)
      (True, True)

    Source: `scipy.stats.multiscale_graphcorr`; C. Shen, C. E. Priebe and J. T.
    Vogelstein, From distance correlation to multiscale graph correlation, 2019.
    """
    name = "multiscale_graphcorr"
    if compute_distance is not None and not callable(compute_distance):
        raise ArgumentError(
            f"{name}: compute_distance must be a function or None, got "
            f"{compute_distance!r}"
        )
    natural(name, "reps", reps, 0)
    if batch is not None:
        natural(name, "batch", batch)
    found, _ = operands(name, x, y)
    first, second = (_rows(name, w, v) for w, v in zip("xy", found, strict=True))
    shown = f"{first.aval} and {second.aval}"
    if first.shape[0] != second.shape[0]:
        if first.shape[1] != second.shape[1]:
            raise ShapeError(
                f"{name}: x and y must have as many rows, or as many columns, got "
                f"{shown}"
            )
        is_twosamp = True
    if min(first.shape[0], second.shape[0]) < 5:
        raise ShapeError(f"{name}: takes 5 or more elements of a sample, got {shown}")
    if is_twosamp:
        if compute_distance is None:
            raise ArgumentError(
                f"{name}: compute_distance must not be None for a test of two samples"
            )
        if first.shape[1] != second.shape[1]:
            raise ShapeError(
                f"{name}: two samples must have as many columns, got {shown}"
            )
        sides = np.repeat([0.0, 1.0], [first.shape[0], second.shape[0]])[:, None]
        first = fnp.concatenate([first, second])
        second = fnp.asarray(sides, first.dtype)
    if compute_distance is not None:
        first, second = (
            fnp.asarray(compute_distance(v)).astype(v.dtype) for v in (first, second)
        )
    n = first.shape[0]
    if first.shape != (n, n) or second.shape != (n, n):
        raise ShapeError(
            f"{name}: distances must be two matrices [n, n], got {first.aval} and "
            f"{second.aval}"
        )
    # Correlations of independent samples are, about, those of a beta variable.
    a = (n - 1) * (n - 4) / 4 - 0.5
    threshold = beta.isf(fnp.asarray(_SHARE / (n - 1), first.dtype), a, a) * 2 - 1
    statistic, pvalue, scales, scale, null = _program(
        _test, (first, second, key, threshold), reps=int(reps), batch=batch
    )
    parts = {"mgc_map": scales, "opt_scale": scale, "null_dist": null}
    return MGCResult(statistic, pvalue, parts)
