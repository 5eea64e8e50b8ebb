"""`pad`, with all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_symbolic, larger, length_of, to_array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import array_of, beside, convert
from fxflow.numpy.arithmetic import remainder
from fxflow.numpy.creation import asarray
from fxflow.numpy.index_functions import take
from fxflow.numpy.index_update import At
from fxflow.numpy.ranges import linspace

_OPTIONS = {
    "constant": {"constant_values"},
    "edge": set(),
    "empty": set(),
    "linear_ramp": {"end_values"},
    "maximum": {"stat_length"},
    "mean": {"stat_length"},
    "median": {"stat_length"},
    "minimum": {"stat_length"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    "wrap": set(),
}
Pairs = tuple[tuple[Any, Any], ...]


def pad(
    array: Any,
    pad_width: Any,
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """Adds elements at both ends of each axis.

    Args:
      array: array-like.
      pad_width: how many: an int, a pair (before, after) for all axes, a pair for each
        axis, or a dict from axes to ints or pairs.
      mode: what they are: "constant" (`constant_values`), "edge" (the outermost),
        "linear_ramp" (down to `end_values`), "maximum", "mean", "median", "minimum" (of
        the `stat_length` outermost, default all), "reflect" (mirrored, the edge once),
        "symmetric" (mirrored, the edge twice) — both with `reflect_type` "even" or "
        ""odd"
        —, "wrap" (from the other end), "empty" (zeros); or a function
        `(vector, pair, axis, kwargs)` that returns the padded vector.
      **kwargs: options of the mode, in the forms that `pad_width` takes.

    Returns:
      Array of the dtype of `array`.

    Raises:
      ArgumentError: unknown mode or option, or nothing to take values from.
      ShapeError: widths are negative or do not fit the axes.

    Example:
      >>> pad(np.array([1, 2]), (1, 2), mode="edge")
      Array([1, 1, 2, 2, 2], dtype=int32)

    Source: `numpy.pad`.
    """
    x = array_of(asarray(array) if isinstance(array, list | tuple) else array, "pad")
    widths = _widths(pad_width, x.ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise ArgumentError(
            f"pad: mode must be one of {', '.join(map(repr, _OPTIONS))} or a function, "
            f"got {mode!r}"
        )
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ArgumentError(
            f"pad: mode {mode!r} has no option {', '.join(map(repr, sorted(unknown)))}"
        )
    if mode in ("constant", "empty"):
        values = kwargs.get("constant_values", 0)
        return _constant(x, widths, _pairs("constant_values", values, x.ndim))
    if mode == "linear_ramp":
        ends = _pairs("end_values", kwargs.get("end_values", 0), x.ndim)
        return _ramp(x, widths, ends)
    if mode in ("maximum", "mean", "median", "minimum"):
        lengths = kwargs.get("stat_length")
        pairs = (
            ((None, None),) * x.ndim
            if lengths is None
            else _pairs("stat_length", lengths, x.ndim)
        )
        return _statistic(x, widths, mode, tuple(map(tuple, pairs)))
    kind = kwargs.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ArgumentError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    return _copies(x, widths, mode, kind)


def _widths(given: Any, ndim: int) -> Pairs:
    if isinstance(given, dict):
        pairs: list[Any] = [(0, 0)] * ndim
        for axis, pair in given.items():
            dim = canonical_axis("pad", axis, ndim, "axis in pad_width")
            pairs[dim] = pair if isinstance(pair, tuple | list) else (pair, pair)
        given = pairs
    pairs = list(_pairs("pad_width", given, ndim))
    out = []
    for before, after in pairs:
        try:
            pair = length_of(before), length_of(after)
        except TypeError as error:
            if isinstance(before, Array) or isinstance(after, Array):
                raise
            raise ArgumentError(
                f"pad: widths must be integers, got {given!r}"
            ) from error
        if any(n < 0 for n in pair):
            raise ShapeError(f"pad: widths must not be negative, got {given!r}")
        out.append(pair)
    return tuple(out)


def _nested(given: Any) -> Any:
    """Returns sequences and arrays as nested lists of numbers and 0-d arrays."""
    if isinstance(given, np.ndarray):
        return given.tolist()
    if isinstance(given, tuple | list) or (isinstance(given, Array) and given.ndim):
        return [_nested(item) for item in given]
    return given


def _pairs(what: str, given: Any, ndim: int) -> Pairs:
    """Returns a pair for each axis from what NumPy takes for that."""
    items = _nested(given)
    if not isinstance(items, list):
        return ((items, items),) * ndim
    if not items:
        if not ndim:
            return ()
    elif not any(isinstance(i, list) for i in items):
        if len(items) == 1:
            return ((items[0], items[0]),) * ndim
        if len(items) == 2:
            return ((items[0], items[1]),) * ndim
    elif all(isinstance(i, list) and len(i) in (1, 2) for i in items):
        pairs = [(i[0], i[-1]) for i in items]
        if len(pairs) == ndim:
            return tuple(pairs)
        if len(pairs) == 1:
            return tuple(pairs * ndim)
    raise ShapeError(
        f"pad: {what} must be a number, a pair, or a pair for each of {ndim} axes, got "
        f"{given!r}"
    )


@library("widths")
def _constant(x: Array, widths: Pairs, values: Pairs) -> Array:
    dtype = x.aval.dtype
    for axis, ((before, after), (low, high)) in enumerate(
        zip(widths, values, strict=True)
    ):
        for value, width in ((low, (before, 0, 0)), (high, (0, after, 0))):
            if any(width):
                config = [(0, 0, 0)] * x.aval.ndim
                config[axis] = width
                fill = convert(beside("pad", value, x), dtype, x.aval.weak_type)
                x = lax.pad(x, fill, tuple(config))
    return x


def _edge(x: Any, axis: int, last: bool) -> Any:
    length = x.aval.shape[axis]
    start = length - 1 if last else 0
    return lax.slice_in_dim(x, start, start + 1, axis=axis)


def _require_some(x: Any, axis: int, mode: str) -> None:
    if not x.aval.shape[axis]:
        raise ArgumentError(
            f"pad: axis {axis} of {x.aval} is empty, so mode {mode!r} has nothing to "
            "take values from"
        )


def _widened(x: Any, axis: int, count: int) -> Any:
    shape = (*x.aval.shape[:axis], count, *x.aval.shape[axis + 1 :])
    return repeated(x, shape)


@library("widths")
def _ramp(x: Array, widths: Pairs, ends: Pairs) -> Array:
    dtype = x.aval.dtype
    for axis, ((before, after), (low, high)) in enumerate(
        zip(widths, ends, strict=True)
    ):
        parts = [x]
        if before or after:
            _require_some(x, axis, "linear_ramp")
        for count, value, last in ((before, low, False), (after, high, True)):
            if not count:
                continue
            edge = lax.squeeze(_edge(x, axis, last), (axis,))
            end = convert(array_of(value, "pad"), dtype)
            ramp = linspace(
                end, edge, count, endpoint=False, axis=axis, dtype=_wide(dtype)
            )
            # As NumPy's `linspace` does when asked for integers.
            if not dtypes.is_inexact(dtype):
                ramp = lax.floor(ramp)
            ramp = convert(ramp, dtype)
            parts = [*parts, lax.rev(ramp, (axis,))] if last else [ramp, *parts]
        x = lax.concatenate(parts, axis) if len(parts) > 1 else x
    return x


def _wide(dtype: Any) -> Any:
    return dtypes.to_inexact(dtype)


@library("widths", "lengths")
def _statistic(x: Array, widths: Pairs, mode: str, lengths: Pairs) -> Array:
    for axis, ((before, after), stat) in enumerate(zip(widths, lengths, strict=True)):
        if not (before or after):
            continue
        _require_some(x, axis, mode)
        length = x.aval.shape[axis]
        parts = [x]
        for count, n, last in ((before, stat[0], False), (after, stat[1], True)):
            n = length if n is None else min(int(n), length)
            if not count:
                continue
            if n < 1:
                raise ArgumentError(f"pad: stat_length must be at least 1, got {n}")
            start = length - n if last else 0
            part = lax.slice_in_dim(x, start, start + n, axis=axis)
            value = _widened(_summary(part, axis, mode), axis, count)
            parts = [*parts, value] if last else [value, *parts]
        x = lax.concatenate(parts, axis)
    return x


def _summary(x: Any, axis: int, mode: str) -> Any:
    """Returns a statistic along an axis, which stays with length 1."""
    dtype = x.aval.dtype
    shape = (*x.aval.shape[:axis], 1, *x.aval.shape[axis + 1 :])
    if mode == "maximum":
        out = lax.reduce_max(x, (axis,))
    elif mode == "minimum":
        out = lax.reduce_min(x, (axis,))
    else:
        n = x.aval.shape[axis]
        wide = x if dtypes.is_inexact(dtype) else convert(x, _wide(dtype))
        if mode == "mean":
            out = lax.div(lax.reduce_sum(wide, (axis,)), float(n))
        else:
            ordered = lax.sort(wide, axis)
            low = lax.index_in_dim(ordered, (n - 1) // 2, axis, keepdims=False)
            high = lax.index_in_dim(ordered, n // 2, axis, keepdims=False)
            out = lax.div(lax.add(low, high), 2.0)
        # NumPy rounds statistics of integers to even.
        if dtypes.is_integer(dtype):  # of booleans any True counts, as in NumPy
            out = lax.round(out, lax.RoundingMethod.TO_NEAREST_EVEN)
    return convert(lax.reshape(out, shape), dtype)


@library("widths")
def _copies(x: Array, widths: Pairs, mode: str, kind: str) -> Array:
    """Pads with elements of the array itself."""
    for axis, (before, after) in enumerate(widths):
        if not (before or after):
            continue
        _require_some(x, axis, mode)
        length = x.aval.shape[axis]
        if mode in ("reflect", "symmetric") and kind == "odd":
            x = _odd_reflection(x, axis, before, after, mode)
            continue
        if is_symbolic((length, before, after)):
            x = take(x, _open_indices(length, before, after, mode), axis, mode="clip")
            continue
        indices = np.arange(-before, length + after)
        if mode == "edge" or (mode == "reflect" and length == 1):
            indices = np.clip(indices, 0, length - 1)
        elif mode == "wrap":
            indices = indices % length
        elif mode == "symmetric":
            # Each edge comes twice, so the period is 2n.
            indices = indices % (2 * length)
            indices = np.where(indices < length, indices, 2 * length - 1 - indices)
        else:
            # The edges are not repeated, so the period is 2n - 2.
            period = 2 * (length - 1)
            indices = indices % period
            indices = np.where(indices < length, indices, period - indices)
        x = _taken(x, indices, axis)
    return x


def _open_indices(length: Any, before: Any, after: Any, mode: str) -> Any:
    """Returns the indices where only a call says how many there are."""
    places = lax.iota(dtypes.int32, before + length + after) - before
    if mode == "edge":
        return places  # which are clipped
    if mode == "wrap":
        return remainder(places, to_array(length))
    # See `_copies`; an axis of one element has no other to reflect.
    period = to_array(2 * length if mode == "symmetric" else larger(2 * length - 2, 1))
    places = remainder(places, period)
    last = 2 * length - 1 if mode == "symmetric" else 2 * length - 2
    return lax.min(places, to_array(last) - places)


def _taken(x: Any, indices: np.ndarray[Any, Any], axis: int) -> Any:
    """Picks static indices, as slices of neighbours that run up or down."""
    runs: list[Any] = []
    start = 0
    n = len(indices)
    while start < n:
        stop = start + 1
        if stop < n:
            step = int(indices[stop] - indices[start])
            if step in (-1, 0, 1):
                while stop < n and indices[stop] - indices[stop - 1] == step:
                    stop += 1
        else:
            step = 1
        first, last = int(indices[start]), int(indices[stop - 1])
        low, high = min(first, last), max(first, last) + 1
        part = lax.slice_in_dim(x, low, high, axis=axis)
        if first == last:
            part = _widened(part, axis, stop - start)
        elif last < first:
            part = lax.rev(part, (axis,))
        runs.append(part)
        start = stop
    return lax.concatenate(runs, axis) if len(runs) > 1 else runs[0]


def _odd_reflection(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Pads with twice the edge minus the mirrored elements, as often as it takes."""
    while before or after:
        length = x.aval.shape[axis]
        if length == 1 and mode == "reflect":
            low = _widened(_edge(x, axis, False), axis, before)
            high = _widened(_edge(x, axis, True), axis, after)
            return lax.concatenate([low, x, high], axis)
        # "reflect" leaves out the edge itself of the mirrored array.
        skip = 1 if mode == "reflect" else 0
        reach = length - skip
        parts = [x]
        count = min(before, reach)
        if count:
            part = lax.rev(lax.slice_in_dim(x, skip, skip + count, axis=axis), (axis,))
            parts.insert(0, _mirrored(part, _edge(x, axis, False)))
        before -= count
        count = min(after, reach)
        if count:
            stop = length - skip
            part = lax.rev(lax.slice_in_dim(x, stop - count, stop, axis=axis), (axis,))
            parts.append(_mirrored(part, _edge(x, axis, True)))
        after -= count
        x = lax.concatenate(parts, axis)
    return x


def _mirrored(part: Any, edge: Any) -> Any:
    edge = repeated(edge, part.aval.shape)
    return lax.sub(lax.add(edge, edge), part)


def _by_function(
    x: Any, widths: Pairs, function: Callable[..., Any], kwargs: dict[str, Any]
) -> Array:
    zero = ((0, 0),) * x.ndim
    out = _constant(x, widths, zero)
    for axis, pair in enumerate(widths):
        shape = out.shape
        moved = lax.transpose(out, (*(d for d in range(out.ndim) if d != axis), axis))
        if not moved.size:
            continue
        rows = lax.reshape(moved, (moved.size // shape[axis], shape[axis]))
        done = rows
        for i in range(rows.shape[0]):
            made = function(rows[i], pair, axis, kwargs)
            done = At(done)[i].set(rows[i] if made is None else made)
        done = lax.reshape(done, moved.shape)
        inverse = list(range(out.ndim - 1))
        inverse.insert(axis, out.ndim - 1)
        out = lax.transpose(done, inverse)
    return out
