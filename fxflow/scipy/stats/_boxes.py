"""Probabilities of boxes: normal and t vectors between two corners."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy.linalg import cholesky
from fxflow.scipy.special.normal import ndtr, ndtri
from fxflow.scipy.stats._building import gamma_quantile


def kept_axes(name: str, dimensions: Any, n: int) -> np.ndarray:
    """Returns the numbers of elements of vectors of n.

    Raises:
      ArgumentError: an element is out of range or listed twice.
    """
    listed = dimensions if isinstance(dimensions, tuple | list) else (dimensions,)
    kept = [integer(name, "dimensions", d) for d in listed]
    if any(not -n <= d < n for d in kept) or len({d % n for d in kept}) != len(kept):
        raise ArgumentError(
            f"{name}: dimensions must be different integers from {-n} to {n - 1}, got "
            f"{dimensions!r}"
        )
    return np.array([d % n for d in kept], int)


def _lattice(count: int, n: int) -> np.ndarray:
    """Returns count points of Richtmyer's lattice in n dimensions, folded once.

    Folding makes the integrand periodic: the error falls like that of a smooth one.
    """
    primes: list[int] = []
    k = 2
    while len(primes) < n:
        if all(k % p for p in primes):
            primes.append(k)
        k += 1
    steps = np.sqrt(np.array(primes, float))
    at = np.mod(np.arange(1, count + 1)[:, None] * steps + 0.5, 1)
    folded: np.ndarray = np.abs(2 * at - 1)
    return folded


def box_probability(low: Any, high: Any, cov: Any, df: Any, count: Any) -> Array:
    """Returns the probability that a centered vector is between two corners.

    Args:
      low: float[..., n], may be -inf.
      high: float[..., n], may be inf.
      cov: float[..., n, n], positive definite.
      df: float[...], degrees of freedom; None is the normal distribution.
      count: how many points are used.

    Returns:
      float[...].

    Raises:
      ArgumentError: `count` is not positive.
    """
    count = integer("cdf", "maxpts", count)
    if count < 1:
        raise ArgumentError(f"cdf: maxpts must be positive, got {count}")
    n, dtype = cov.aval.shape[-1], cov.aval.dtype
    batch = [low.aval.shape[:-1], high.aval.shape[:-1], cov.aval.shape[:-2]]
    batch += [] if df is None else [df.aval.shape]
    full = fnp.broadcast_shapes(*batch)
    width = fnp.sqrt(fnp.diagonal(cov, axis1=-2, axis2=-1))
    low, high = (
        fnp.broadcast_to(_in_widths(v, width), (*full, n)) for v in (low, high)
    )
    ratio = cov / (width[..., :, None] * width[..., None, :])
    ratio = fnp.broadcast_to(ratio, (*full, n, n))
    # The least probable sides first: the later ones then matter less.
    order = fnp.argsort(lax.stop_gradient(ndtr(high) - ndtr(low)), axis=-1)
    low, high = (fnp.take_along_axis(v, order, axis=-1) for v in (low, high))
    ratio = fnp.take_along_axis(ratio, order[..., :, None], axis=-2)
    ratio = fnp.take_along_axis(ratio, order[..., None, :], axis=-1)
    root = cholesky(ratio)
    points = fnp.asarray(_lattice(count, n), dtype)
    radius: Any = 1.0
    if df is not None:
        endless = df == math.inf
        v = fnp.broadcast_to(fnp.where(endless, 1, df), full)[..., None]
        share = 2 * gamma_quantile(0.5 * v, points[:, n - 1]) / v
        radius = fnp.sqrt(fnp.where(endless[..., None], 1, share))
    return _cube(low, high, root, points, radius, dtype)


def _in_widths(corner: Any, width: Any) -> Any:
    """Returns a corner over the widths; a number for infinity, for derivatives."""
    finite = abs(corner) < math.inf
    inner = fnp.where(finite, corner, 0) / width
    return fnp.where(
        finite | (corner != corner), inner, fnp.where(corner > 0, 1e6, -1e6)
    )


def _cube(
    low: Any, high: Any, root: Any, points: Any, radius: Any, dtype: Any
) -> Array:
    """Returns the mean of the transformed integrand over points of a cube."""
    n = root.aval.shape[-1]
    tiny = float(fnp.finfo(dtype).tiny)
    top = 1 - float(fnp.finfo(dtype).eps) / 2
    shape = (*low.aval.shape[:-1], points.aval.shape[0])
    value = fnp.ones(shape, dtype)
    drawn: list[Any] = []
    for i in range(n):
        shift = sum(
            (root[..., i, j, None] * y for j, y in enumerate(drawn)),
            fnp.zeros((), dtype),
        )
        along = root[..., i, i, None]
        a = (radius * low[..., i, None] - shift) / along
        b = (radius * high[..., i, None] - shift) / along
        # In the lower tail, where differences have their digits.
        flip = a + b > 0
        a, b = fnp.where(flip, -b, a), fnp.where(flip, -a, b)
        bottom, mass = ndtr(a), ndtr(b) - ndtr(a)
        value = value * mass
        if i + 1 < n:
            w = points[:, i]
            u = bottom + fnp.where(flip, 1 - w, w) * mass
            y = ndtri(fnp.clip(u, tiny, top))
            drawn.append(fnp.where(flip, -y, y))
    return fnp.mean(value, axis=-1)
