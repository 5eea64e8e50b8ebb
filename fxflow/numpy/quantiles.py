"""Medians, quantiles and percentiles.

A quantile is a position between sorted elements: a real index, whose whole part says
between which two elements and whose fraction says how they are weighted. The methods
differ in the index they take for a probability. With weights there is one method: the
first element up to which the weights reach that share of their sum.

The functions are one, declared six times: with or without nan, of shares or of
percentages, and for the middle.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import canonical_axes
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import array_of, beside, convert, size_of
from fxflow.numpy.index_functions import take_along_axis
from fxflow.numpy.means import weights_of
from fxflow.numpy.number_kinds import isinf, isnan
from fxflow.numpy.reductions import any, count_nonzero, sum
from fxflow.numpy.selection import choose_between

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


def _positions(method: str, q: Any, n: Any) -> tuple[Any, Any]:
    """Returns the whole part and the fraction of the index of each probability.

    Args:
      method: one of `METHODS`.
      q: float array of probabilities.
      n: float array or number: the number of elements.
    """
    if method in _CONTINUOUS or method in _ROUNDED:
        # Hyndman and Fan's n q + m, less 1: here elements are counted from 0.
        alpha, beta = _CONTINUOUS.get(method, (1.0, 1.0))
        if alpha == beta == 1:
            # As NumPy rounds: whether there is a fraction decides what is rounded.
            index = q * (n - 1)
        else:
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
    return repeated(convert(as_array(value), x.aval.dtype), x.aval.shape)


def _quantile(
    name: str,
    a: Any,
    q: Any,
    axis: Any,
    method: str,
    keepdims: bool,
    *,
    skip_nan: bool,
    weights: Any = None,
) -> Array:
    if method not in METHODS:
        raise ArgumentError(
            f"{name}: method must be one of {', '.join(METHODS)}, got {method!r}"
        )
    if weights is not None and method != "inverted_cdf":
        raise ArgumentError(
            f'{name}: with weights, method must be "inverted_cdf", got {method!r}'
        )
    array = array_of(a, name)
    probability = beside(name, q, array)
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

    def as_rows(x: Any) -> Any:
        return lax.reshape(lax.transpose(x, (*rest, *axes)), (*kept, n))

    rows = as_rows(convert(array, dtype))
    which = probability.aval.shape
    if not n:
        out = lax.full(which + kept, np.nan, dtype)
    elif weights is not None:
        scale = weights_of(name, array, weights, axis)
        out = _of_weighted_rows(rows, as_rows(scale), probability, skip_nan)
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
    wide = _wide(dtype)
    wanted = convert(lax.reshape(q, (count,)), wide)
    wanted = repeated(wanted, (*kept, count))
    if skip_nan:
        found = count_nonzero(~isnan(rows), axis=-1, keepdims=True)
        total = repeated(convert(found, wide), (*kept, count))
        last = repeated(convert(found, dtypes.int32), (*kept, count)) - 1
    else:
        total, last = n, n - 1
    low, part = _positions(method, wanted, total)
    first = convert(low, dtypes.int32)
    below, above = (
        take_along_axis(ordered, _within(i, last), axis=-1, mode="clip")
        for i in (first, first + 1)
    )
    part = convert(part, dtype)
    mixed = below * (1 - part) + above * part
    # The mean of equal neighbours is their value, but has the derivatives of a mean;
    # that of equal infinities would be nan.
    equal = below == above
    same = choose_between(isinf(below), below, below + (above - below) * part)
    out = choose_between(part == 0, below, choose_between(equal, same, mixed))
    out = choose_between(part == 1, above, out)
    if not skip_nan:
        out = _nan_where(isnan(lax.index_in_dim(ordered, n - 1, len(kept))), out)
    return _probabilities_first(out, which)


def _of_weighted_rows(rows: Any, weights: Any, q: Any, skip_nan: bool) -> Any:
    """Returns weighted quantiles along the last axis: see `_of_rows`."""
    kept, n = rows.aval.shape[:-1], rows.aval.shape[-1]
    which = q.aval.shape
    count = size_of(which)
    wide = _wide(rows.aval.dtype)
    weights = convert(weights, wide)
    negative = any(weights < 0, axis=-1, keepdims=True)
    missing = isnan(rows)
    if skip_nan:
        weights = choose_between(missing, lax.full_like(weights, 0), weights)
    ordered, weights = lax.sort((rows, weights), len(kept), num_keys=1)
    total = sum(weights, axis=-1, keepdims=True)
    share = lax.cumsum(weights, len(kept)) / total
    # What has no weight is never found, not even for q = 0.
    share = choose_between(share == 0, lax.full_like(share, -1), share)
    wanted = convert(lax.reshape(q, (count,)), wide)
    below = share[..., None, :] < repeated(wanted[:, None], (*kept, count, n))
    index = sum(convert(below, dtypes.int32), axis=-1)
    found = sum(convert(weights > 0, dtypes.int32), axis=-1, keepdims=True)
    last = n - 1
    if skip_nan:
        last = count_nonzero(~missing, axis=-1, keepdims=True) - 1
        last = repeated(convert(last, dtypes.int32), (*kept, count))
    out = take_along_axis(ordered, _within(index, last), axis=-1, mode="clip")
    bad = negative | (found == 0) | ~(total < np.inf)
    if not skip_nan:
        bad = bad | any(missing, axis=-1, keepdims=True)
    return _probabilities_first(_nan_where(bad, out), which)


def _wide(dtype: Any) -> Any:
    """Returns a dtype for indices: they need more digits than 16-bit floats have."""
    return dtype if dtypes.bits(dtype) >= 32 else np.dtype(np.float32)


def _nan_where(bad: Any, out: Any) -> Any:
    return choose_between(bad, lax.full_like(out, np.nan), out)


def _probabilities_first(out: Any, which: Any) -> Any:
    """Moves the last axis, of probabilities, to the front, in its own shape."""
    kept = out.aval.shape[:-1]
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


# -- declarations ----------------------------------------------------------------------

_COMMON = """Args:
      a: real array-like[...].
{q}      axis: int, tuple of ints, or None for all axes.
      out: not supported: arrays are immutable.
      overwrite_input: not supported: arrays are immutable.
{method}      keepdims: whether to keep the reduced axes, with length 1.
{weights}
    Returns:
      {returns}

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: {mistake}.
      DtypeError: the elements are complex.
"""
_METHOD = """\
      method: what to take between elements: "linear", "lower", "higher", "midpoint",
        "nearest", or another of NumPy's methods.
"""
_WEIGHTS = """\
      weights: array-like of the shape of `a`, or with the lengths of `axis`: how much
        each element counts; only with `method="inverted_cdf"`.
"""
_LAYOUT = """\
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.
"""


class _Quantile(Protocol):
    """A function of probabilities or percentages."""

    def __call__(
        self,
        a: Any,
        q: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
        out_sharding: Any = None,
    ) -> Array: ...


class _Median(Protocol):
    """A function that gives the middle."""

    def __call__(
        self,
        a: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array: ...


def _declared(name: str, unit: str, *, q: float, values: str) -> _Quantile:
    """Declares a function of probabilities.

    Args:
      name: of the function.
      unit: "probabilities, from 0 to 1" or "percentages, from 0 to 100".
      q: an example of them.
      values: of the example's array, in source form.
    """
    skip_nan = name.startswith("nan")
    percent = unit.startswith("percentages")

    def found(
        a: Any, q: Any, axis: Any, method: str, keepdims: bool, weights: Any
    ) -> Array:
        share = beside(name, q, array_of(a, name)) / 100 if percent else q
        return _quantile(
            name, a, share, axis, method, keepdims, skip_nan=skip_nan, weights=weights
        )

    found.__name__ = name
    plan = library("axis", "method", "keepdims")(found)

    def function(
        a: Any,
        q: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: bool = False,
        *,
        weights: Any = None,
        out_sharding: Any = None,
    ) -> Array:
        _refuse(name, out, overwrite_input)
        values = plan(a, q, axis, method, keepdims, weights)
        return values if out_sharding is None else laid_out(name, values, out_sharding)

    function.__name__ = function.__qualname__ = name
    common = _COMMON.format(
        q=f"      q: array-like: {unit}.\n",
        method=_METHOD,
        weights=_WEIGHTS + _LAYOUT,
        returns="Float array of shape `q.shape` and the axes that are left.",
        mistake="there is no such method, it takes no weights, or `a` is not an array",
    )
    left_out = ", nan left out" if skip_nan else ""
    nothing = "All elements nan: nan." if skip_nan else "nan if any element is nan."
    function.__doc__ = f"""Returns {name.removeprefix("nan")}s{left_out}.

    Values below which a share of the elements lies.

    {common}      ShapeError: the shape of the weights does not fit.
      PlacementError: the result cannot be laid out as `out_sharding` says.

    Special cases:
      {nothing} No elements: nan.
      With weights that are negative, nan, infinite or all zero: nan.

    Example:
      >>> {name}(np.array({values}), {q})
      Array(2., dtype=float32)

    Source: `numpy.{name}`; R. Hyndman and Y. Fan, Sample Quantiles in Statistical
    Packages, 1996.
    """
    return function


def _declared_median(name: str, *, values: str) -> _Median:
    """Declares a function that gives the middle; see `_declared`."""
    skip_nan = name.startswith("nan")

    def function(
        a: Any,
        axis: Any = None,
        out: None = None,
        overwrite_input: bool = False,
        keepdims: bool = False,
    ) -> Array:
        _refuse(name, out, overwrite_input)
        return _quantile(name, a, 0.5, axis, "linear", keepdims, skip_nan=skip_nan)

    function.__name__ = function.__qualname__ = name
    common = _COMMON.format(
        q="",
        method="",
        weights="",
        returns="Float array without the reduced axes.",
        mistake="`a` is not an array",
    )
    left_out = ", nan left out" if skip_nan else ""
    nothing = "All elements nan: nan." if skip_nan else "nan if any element is nan."
    function.__doc__ = f"""Returns the middle of the sorted elements{left_out}.

    {common}
    Special cases:
      {nothing}
      An even number of elements: the mean of the two in the middle.

    Example:
      >>> {name}(np.array({values}))
      Array(2., dtype=float32)

    Source: `numpy.{name}`.
    """
    return library("axis", "out", "overwrite_input", "keepdims")(function)


_SHARES, _PERCENT = "probabilities, from 0 to 1", "percentages, from 0 to 100"
_PLAIN, _HOLED = "[3.0, 1.0, 2.0]", "[3.0, np.nan, 1.0]"

quantile: _Quantile = _declared("quantile", _SHARES, q=0.5, values=_PLAIN)
nanquantile: _Quantile = _declared("nanquantile", _SHARES, q=0.5, values=_HOLED)
percentile: _Quantile = _declared("percentile", _PERCENT, q=50.0, values=_PLAIN)
nanpercentile: _Quantile = _declared("nanpercentile", _PERCENT, q=50.0, values=_HOLED)
median: _Median = _declared_median("median", values=_PLAIN)
nanmedian: _Median = _declared_median("nanmedian", values=_HOLED)
