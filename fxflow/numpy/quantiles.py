"""Medians, quantiles and percentiles.

A quantile is a place between sorted elements: a real index, whose whole part says
between which two elements and whose fraction says how they are weighted. The methods
differ in the index they take for a probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.core.errors import ArgumentError, DtypeError
from fxflow.numpy._operands import array_of, convert, repeated, size_of
from fxflow.numpy.floats import isnan
from fxflow.numpy.index_functions import take_along_axis
from fxflow.numpy.reductions import count_nonzero
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import canonical_axes

# Hyndman and Fan's alpha and beta of the continuous methods.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
# Those that take elements at or around the index of "linear".
_ROUNDED = ("lower", "higher", "midpoint", "nearest")
_STEPS = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation")
METHODS = (*_CONTINUOUS, *_ROUNDED, *_STEPS)


def _places(method: str, q: Any, n: Any) -> tuple[Any, Any]:
    """Returns the whole part and the fraction of the index of each probability.

    Args:
      method: one of `METHODS`.
      q: float array of probabilities.
      n: float array or number: how many elements there are.
    """
    if method in _CONTINUOUS or method in _ROUNDED:
        alpha, beta = _CONTINUOUS.get(method, (1.0, 1.0))
        index = q * n + (q * (1 - alpha - beta) + (alpha - 1))
    else:
        index = q * n - (1.5 if method == "closest_observation" else 1.0)
    index = lax.max(index, lax.full_like(index, 0))
    index = lax.min(index, _like(n - 1, index)) if method not in _STEPS else index
    low = lax.floor(index)
    part = index - low
    if method == "lower":
        part = lax.full_like(part, 0)
    elif method == "higher":
        part = lax.ceil(part)
    elif method == "midpoint":
        part = choose_between(part > 0, lax.full_like(part, 0.5), part)
    elif method == "nearest":
        part = lax.round(index, lax.RoundingMethod.TO_NEAREST_EVEN) - low
    elif method in _STEPS:
        raw = q * n - (1.5 if method == "closest_observation" else 1.0)
        low = lax.floor(raw)
        exact = raw == low
        if method == "closest_observation":
            exact = exact & (lax.rem(low, lax.full_like(low, 2)) != 0)
        half = 0.5 if method == "averaged_inverted_cdf" else 0.0
        part = choose_between(exact, lax.full_like(low, half), lax.full_like(low, 1.0))
    return low, part


def _like(value: Any, x: Any) -> Any:
    if isinstance(value, int | float):
        return lax.full_like(x, value)
    return repeated(convert(value, x.aval.dtype), x.aval.shape)


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    method: str,
    keepdims: bool,
    *,
    skip_nan: bool,
) -> Any:
    if method not in METHODS:
        raise ArgumentError(
            f"{name}: method must be one of {', '.join(METHODS)}, got {method!r}"
        )
    array, probability = array_of(a, name), array_of(q, name)
    if dtypes.is_complex(array.aval.dtype) or dtypes.is_complex(probability.aval.dtype):
        raise DtypeError(
            f"{name}: complex numbers have no order, got {array.aval}, q "
            f"{probability.aval}"
        )
    shape = array.aval.shape
    axes = canonical_axes(name, axis, len(shape))
    dtype = dtypes.to_inexact(array.aval.dtype)
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    kept = tuple(shape[i] for i in rest)
    n = size_of(tuple(shape[i] for i in axes))
    rows = lax.transpose(convert(array, dtype), (*rest, *axes))
    rows = lax.reshape(rows, (*kept, n))
    which = probability.aval.shape
    if not n:
        out = lax.full(which + kept, np.nan, dtype)
    else:
        out = _of_rows(rows, probability, method, skip_nan)
    if keepdims:
        out = lax.expand_dims(out, tuple(len(which) + i for i in axes))
    return out


def _of_rows(rows: Any, q: Any, method: str, skip_nan: bool) -> Any:
    """Returns quantiles along the last axis: of shape `q.shape + rows.shape[:-1]`."""
    dtype = rows.aval.dtype
    kept, n = rows.aval.shape[:-1], rows.aval.shape[-1]
    which = q.aval.shape
    count = size_of(which)
    ordered = lax.sort(rows, len(kept))  # nan comes last
    # Indices need more digits than 16-bit floats have.
    wide = dtype if dtypes.bits(dtype) >= 32 else np.dtype(np.float32)
    wanted = convert(lax.reshape(q, (count,)), wide)
    wanted = repeated(wanted, (*kept, count))
    if skip_nan:
        found = count_nonzero(~isnan(rows), axis=-1, keepdims=True)
        total = repeated(convert(found, wide), (*kept, count))
        last = repeated(convert(found, dtypes.int32), (*kept, count)) - 1
    else:
        total, last = n, n - 1
    low, part = _places(method, wanted, total)
    first = convert(low, dtypes.int32)
    below, above = (
        take_along_axis(ordered, _within(i, last), axis=-1, mode="clip")
        for i in (first, first + 1)
    )
    part = convert(part, dtype)
    # Equal neighbours need no mean, which would be nan for infinities.
    mixed = below * (1 - part) + above * part
    out = choose_between((below == above) | (part == 0), below, mixed)
    out = choose_between(part == 1, above, out)
    if not skip_nan:
        bad = isnan(lax.index_in_dim(ordered, n - 1, len(kept), keepdims=True))
        out = choose_between(bad, lax.full_like(out, np.nan), out)
    axes = (len(kept), *range(len(kept)))
    return lax.reshape(lax.transpose(out, axes), which + kept)


def _within(index: Any, last: Any) -> Any:
    index = lax.max(index, lax.full_like(index, 0))
    last = lax.full_like(index, last) if isinstance(last, int) else last
    return lax.max(lax.min(index, last), lax.full_like(index, 0))


def _refuse(name: str, out: Any, overwrite_input: Any) -> None:
    if out is not None or overwrite_input:
        raise ArgumentError(
            f"{name}: arrays are immutable, so out= and overwrite_input= have no "
            "meaning"
        )


@library("axis", "out", "overwrite_input", "method", "keepdims")
def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Returns quantiles: values below which a share of the elements lies.

    Args:
      a: real array-like[...].
      q: array-like: probabilities, from 0 to 1.
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
      method: what to take between elements: "linear", "lower", "higher", "midpoint",
        "nearest", or another of NumPy's methods.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Float array of shape `q.shape` and the axes that are left.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: there is no such method, or `a` is no array.
      DtypeError: the elements are complex.

    Special cases:
      nan if any element is nan. Of no elements: nan.

    Example:
      >>> quantile(np.array([3.0, 1.0, 2.0]), 0.5)
      Array(2., dtype=float32)

    Source: `numpy.quantile`; R. Hyndman and Y. Fan, Sample Quantiles in Statistical
    Packages, 1996.
    """
    _refuse("quantile", out, overwrite_input)
    return _quantile(  # type: ignore[no-any-return]
        "quantile", a, q, axis, method, keepdims, skip_nan=False
    )


@library("axis", "out", "overwrite_input", "method", "keepdims")
def nanquantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Returns quantiles: values below which a share of the elements lies, nan left out.

    Args:
      a: real array-like[...].
      q: array-like: probabilities, from 0 to 1.
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
      method: what to take between elements: "linear", "lower", "higher", "midpoint",
        "nearest", or another of NumPy's methods.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Float array of shape `q.shape` and the axes that are left.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: there is no such method, or `a` is no array.
      DtypeError: the elements are complex.

    Special cases:
      Of nothing but nan: nan. Of no elements: nan.

    Example:
      >>> nanquantile(np.array([3.0, np.nan, 1.0]), 0.5)
      Array(2., dtype=float32)

    Source: `numpy.nanquantile`; R. Hyndman and Y. Fan, Sample Quantiles in Statistical
    Packages, 1996.
    """
    _refuse("nanquantile", out, overwrite_input)
    return _quantile(  # type: ignore[no-any-return]
        "nanquantile", a, q, axis, method, keepdims, skip_nan=True
    )


@library("axis", "out", "overwrite_input", "method", "keepdims")
def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Returns percentiles: values below which a share of the elements lies.

    Args:
      a: real array-like[...].
      q: array-like: percentages, from 0 to 100.
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
      method: what to take between elements: "linear", "lower", "higher", "midpoint",
        "nearest", or another of NumPy's methods.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Float array of shape `q.shape` and the axes that are left.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: there is no such method, or `a` is no array.
      DtypeError: the elements are complex.

    Special cases:
      nan if any element is nan. Of no elements: nan.

    Example:
      >>> percentile(np.array([3.0, 1.0, 2.0]), 50.0)
      Array(2., dtype=float32)

    Source: `numpy.percentile`; R. Hyndman and Y. Fan, Sample Quantiles in Statistical
    Packages, 1996.
    """
    _refuse("percentile", out, overwrite_input)
    return _quantile(  # type: ignore[no-any-return]
        "percentile",
        a,
        array_of(q, "percentile") / 100,
        axis,
        method,
        keepdims,
        skip_nan=False,
    )


@library("axis", "out", "overwrite_input", "method", "keepdims")
def nanpercentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Array:
    """Returns percentiles, nan left out: values below which a share of elements lies.

    Args:
      a: real array-like[...].
      q: array-like: percentages, from 0 to 100.
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
      method: what to take between elements: "linear", "lower", "higher", "midpoint",
        "nearest", or another of NumPy's methods.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Float array of shape `q.shape` and the axes that are left.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: there is no such method, or `a` is no array.
      DtypeError: the elements are complex.

    Special cases:
      Of nothing but nan: nan. Of no elements: nan.

    Example:
      >>> nanpercentile(np.array([3.0, np.nan, 1.0]), 50.0)
      Array(2., dtype=float32)

    Source: `numpy.nanpercentile`; R. Hyndman and Y. Fan, Sample Quantiles in
    Statistical Packages, 1996.
    """
    _refuse("nanpercentile", out, overwrite_input)
    return _quantile(  # type: ignore[no-any-return]
        "nanpercentile",
        a,
        array_of(q, "nanpercentile") / 100,
        axis,
        method,
        keepdims,
        skip_nan=True,
    )


@library("axis", "out", "overwrite_input", "keepdims")
def median(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Returns the middle of the sorted elements.

    Args:
      a: real array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Float array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array.
      DtypeError: the elements are complex.

    Special cases:
      nan if any element is nan. Of an even number of elements: the mean of the
      two in the middle.

    Example:
      >>> median(np.array([3.0, 1.0, 2.0]))
      Array(2., dtype=float32)

    Source: `numpy.median`.
    """
    _refuse("median", out, overwrite_input)
    return _quantile(  # type: ignore[no-any-return]
        "median", a, 0.5, axis, "linear", keepdims, skip_nan=False
    )


@library("axis", "out", "overwrite_input", "keepdims")
def nanmedian(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Returns the middle of the sorted elements, nan left out.

    Args:
      a: real array-like[...].
      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
      keepdims: whether reduced axes stay, with length 1.

    Returns:
      Float array without the reduced axes.

    Raises:
      AxisError: an axis is out of range or named twice.
      ArgumentError: `a` is no array.
      DtypeError: the elements are complex.

    Special cases:
      Of nothing but nan: nan. Of an even number of elements: the mean of the
      two in the middle.

    Example:
      >>> nanmedian(np.array([3.0, np.nan, 1.0]))
      Array(2., dtype=float32)

    Source: `numpy.nanmedian`.
    """
    _refuse("nanmedian", out, overwrite_input)
    return _quantile(  # type: ignore[no-any-return]
        "nanmedian", a, 0.5, axis, "linear", keepdims, skip_nan=True
    )
