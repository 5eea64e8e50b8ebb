"""Distances of elements to the background of an image."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact

#: Distances that are tried in one step of a loop.
_AT_ONCE = 8

_docs = shared("""
    Args:
      input: array-like[...]; what is 0 is the background.
      sampling: the distance of elements along axes: a positive real number or one for
        each axis; it may be traced, and differentiated.
      return_distances: whether distances are returned.
      return_indices: whether it is returned where the nearest background is.
      distances: has no meaning: arrays are immutable.
      indices: likewise.

    Raises:
      ArgumentError: nothing is to be returned, the metric is unknown, or an array to
        write to is given.

    Source: `scipy.ndimage.{name}`, which has no distances where there is no background.
""")


def _wanted(name: str, distance: Any, index: Any, distances: Any, indices: Any) -> None:
    if distances is not None or indices is not None:
        raise ArgumentError(
            f"{name}: arrays are immutable, so distances= and indices= have no "
            "meaning: use the results"
        )
    if not (distance or index):
        raise ArgumentError(f"{name}: set return_distances or return_indices")


def _nearest_along(
    cost: Array, axis: int, apart: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """Returns the least apart(cost[j], |i - j|) along an axis, and that j.

    Elements farther and farther away are tried, several at a time, until even the
    background would be too far there: as many as the greatest distance of the result.

    Args:
      cost: float array[...], inf where there is no background.
      axis: the axis.
      apart: the cost of a number of elements more; grows with both.
    """
    # Whole rows are moved, one after the other in memory.
    cost = fnp.moveaxis(cost, axis, 0)
    n, shape = cost.aval.shape[0], cost.aval.shape
    cost = fnp.reshape(cost, (n, -1))
    pads = [(n + _AT_ONCE, n + _AT_ONCE), (0, 0)]
    wide = fnp.pad(cost, pads, constant_values=fnp.inf)
    nothing = fnp.zeros((), cost.aval.dtype)

    def further(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        best, moved, step = carry
        for sign, k in itertools.product((-1, 1), range(_AT_ONCE)):
            begin = n + _AT_ONCE + sign * (step + k)
            far = (step + k).astype(cost.aval.dtype)
            there = apart(lax.dynamic_slice_in_dim(wide, begin, n), far)
            closer = there < best
            best = fnp.where(closer, there, best)
            moved = fnp.where(closer, sign * far, moved)
        return best, moved, step + _AT_ONCE

    def unfinished(carry: tuple[Array, Array, Array]) -> Array:
        best, _, step = carry
        least = apart(nothing, step.astype(cost.aval.dtype))
        return (step < n) & fnp.any(least < best)

    # How far the nearest one is, as a float: loops over one dtype are the fastest.
    start = (cost, fnp.zeros_like(cost), fnp.asarray(1, dtypes.int32))
    best, moved, _ = lax.while_loop(unfinished, further, start)
    at = lax.broadcasted_iota(dtypes.int32, moved.aval.shape, 0) + convert(
        moved, dtypes.int32
    )
    best, at = fnp.reshape(best, shape), fnp.reshape(at, shape)
    return fnp.moveaxis(best, 0, axis), fnp.moveaxis(at, 0, axis)


def _nearest_on_lines(shape: Array, axis: int) -> tuple[Array, Array]:
    """Returns how far the nearest background is along an axis, and where.

    Args:
      shape: bool array[...], False in the background.
      axis: the axis.
    """
    n = shape.aval.shape[axis]
    rows = fnp.moveaxis(shape, axis, 0)
    index = lax.broadcasted_iota(dtypes.int32, rows.aval.shape, 0)
    before = lax.cummax(fnp.where(rows, -2 * n, index), axis=0)
    after = lax.cummin(fnp.where(rows, 3 * n, index), axis=0, reverse=True)
    at = fnp.where(index - before <= after - index, before, after)
    far = fnp.abs(index - at)
    lost = far >= n
    at = fnp.where(lost, index, at)
    far = fnp.where(lost, fnp.inf, far)
    return fnp.moveaxis(far, 0, axis), fnp.moveaxis(at, 0, axis)


def _followed(places: list[Array], at: Array, axis: int) -> list[Array]:
    """Returns the places that elements of a new line have had."""
    return [fnp.take_along_axis(p, at, axis) for p in places] + [at]


def _plus_square(unit: Array, cost: Array, far: Array) -> Array:
    return cost + far * far * unit


@library("return_distances", "return_indices")
def _edt(
    input: Any, sampling: Any, return_distances: bool, return_indices: bool
) -> Any:
    name = "distance_transform_edt"
    x = array_of(input, name) != 0
    ndim = x.aval.ndim
    if sampling is None:
        sampling = fnp.ones(ndim)
    (steps,) = promote_inexact(name, fnp.asarray(sampling))
    if steps.aval.shape not in ((), (ndim,)):
        raise ShapeError(
            f"{name}: sampling must be one or {ndim} numbers, got {steps.aval}"
        )
    steps = fnp.broadcast_to(steps, (ndim,))
    known = lax.stop_gradient(steps)
    cost = fnp.where(x, fnp.inf, 0).astype(steps.aval.dtype)
    places: list[Array] = []
    if x.aval.size:
        for axis in range(ndim):
            unit = known[axis] * known[axis]
            if axis:
                square = functools.partial(_plus_square, unit)
                cost, at = _nearest_along(cost, axis, square)
            else:
                far, at = _nearest_on_lines(x, 0)
                cost = (far * far).astype(cost.aval.dtype) * unit
            # Each place was found on a line of one more axis.
            places = _followed(places, at, axis)
    lost = cost == fnp.inf
    results = []
    if return_distances:
        total: Any = fnp.zeros(x.aval.shape, steps.aval.dtype)
        for axis, at in enumerate(places):
            own = lax.broadcasted_iota(dtypes.int32, x.aval.shape, axis)
            total = total + fnp.square(
                (own - at).astype(steps.aval.dtype) * steps[axis]
            )
        away = total > 0
        root = fnp.where(away, fnp.sqrt(fnp.where(away, total, 1)), 0)
        results.append(fnp.where(lost, fnp.inf, root).astype(steps.aval.dtype))
    if return_indices:
        stacked = fnp.zeros((ndim, *x.aval.shape), dtypes.int32)
        results.append(fnp.stack(places) if places else stacked)
    return results[0] if len(results) == 1 else tuple(results)


@_docs
def distance_transform_edt(
    input: ArrayLike,
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: None = None,
    indices: None = None,
) -> Any:
    """Returns the Euclidean distance of each element to the nearest background.

    It is exact: the least sums of squares, one axis after the other.

    Returns:
      Float array of the shape of `input`, inf if there is no background; and where it
      is, int32[axes, ...]; both as a tuple, or the one that is asked for.

    Example:
      >>> distance_transform_edt(np.array([[0, 1, 1], [1, 1, 1]])).round(3)
      Array([[0.   , 1.   , 2.   ],
             [1.   , 1.414, 2.236]], dtype=float32)
    """
    name = "distance_transform_edt"
    _wanted(name, return_distances, return_indices, distances, indices)
    return _edt(input, sampling, bool(return_distances), bool(return_indices))


_METRICS = {
    "taxicab": "taxicab",
    "cityblock": "taxicab",
    "manhattan": "taxicab",
    "chessboard": "chessboard",
}


@library("metric", "return_distances", "return_indices")
def _steps(
    input: Any, metric: str, return_distances: bool, return_indices: bool
) -> Any:
    """Returns distances in steps between neighbours, one axis after the other."""
    x = array_of(input, "distance_transform_cdt") != 0
    ndim = x.aval.ndim
    cost = fnp.where(x, fnp.inf, 0).astype(dtypes.float32)
    places: list[Array] = []
    if x.aval.size:
        for axis in range(ndim):
            if axis:
                more = fnp.add if metric == "taxicab" else fnp.maximum
                cost, at = _nearest_along(cost, axis, more)
            else:
                cost, at = _nearest_on_lines(x, 0)
                cost = cost.astype(dtypes.float32)
            places = _followed(places, at, axis)
    results = []
    if return_distances:
        results.append(fnp.where(cost == fnp.inf, -1, cost).astype(dtypes.int32))
    if return_indices:
        stacked = fnp.zeros((ndim, *x.aval.shape), dtypes.int32)
        results.append(fnp.stack(places) if places else stacked)
    return results[0] if len(results) == 1 else tuple(results)


@_docs
def distance_transform_cdt(
    input: ArrayLike,
    metric: str = "chessboard",
    return_distances: bool = True,
    return_indices: bool = False,
    distances: None = None,
    indices: None = None,
) -> Any:
    """Returns how many steps each element is from the nearest background.

    Args:
      metric: "chessboard", where a step may go along several axes, or "taxicab" (or
        "cityblock", "manhattan"), along one.

    Returns:
      int32 array of the shape of `input`, -1 if there is no background; and where it
      is, int32[axes, ...]; both as a tuple, or the one that is asked for.

    Example:
      >>> distance_transform_cdt(np.array([[0, 1, 1], [1, 1, 1]]), "taxicab")
      Array([[0, 1, 2],
             [1, 2, 3]], dtype=int32)
    """
    name = "distance_transform_cdt"
    _wanted(name, return_distances, return_indices, distances, indices)
    if metric not in _METRICS:
        known = ", ".join(f'"{m}"' for m in _METRICS)
        raise ArgumentError(f"{name}: metric must be one of {known}, got {metric!r}")
    return _steps(input, _METRICS[metric], bool(return_distances), bool(return_indices))


@_docs
def distance_transform_bf(
    input: ArrayLike,
    metric: str = "euclidean",
    sampling: Any = None,
    return_distances: bool = True,
    return_indices: bool = False,
    distances: None = None,
    indices: None = None,
) -> Any:
    """Returns the distance of each element to the nearest background, in any metric.

    Args:
      metric: "euclidean", or one of `distance_transform_cdt`.
      sampling: for "euclidean": the distance of elements along axes.

    Returns:
      As `distance_transform_edt`, or for other metrics `distance_transform_cdt`.

    Example:
      >>> distance_transform_bf(np.array([0, 1, 1]), "taxicab")
      Array([0, 1, 2], dtype=int32)
    """
    options = (return_distances, return_indices, distances, indices)
    if metric == "euclidean":
        return distance_transform_edt(input, sampling, *options)
    return distance_transform_cdt(input, metric, *options)
