"""Peaks: where a signal is highest, how high and how wide they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.kernels.gallery.peaks import Conditions, Places, between, peaks_where
from fxflow.lax.axes import canonical_axis, natural, number
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact


def _signal(name: str, x: Any) -> Array:
    x = array_of(x, name)
    if x.aval.ndim != 1:
        raise ShapeError(f"{name}: x must be a vector, got {x.aval}")
    if dtypes.is_complex(x.aval.dtype):
        raise ArgumentError(f"{name}: complex numbers have no order, got {x.aval}")
    return promote_inexact(name, x)[0]


# -- extrema ---------------------------------------------------------------------------


def argrelextrema(
    data: ArrayLike,
    comparator: Callable[[Array, Array], Array],
    axis: int = 0,
    order: int = 1,
    mode: str = "clip",
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> tuple[Array, ...]:
    """Finds elements that compare with all of their neighbours.

    Args:
      data: real array-like[...].
      comparator: function of two arrays, such as `fnp.greater`.
      axis: the axis.
      order: how many neighbours on each side.
      mode: how the array is extended beyond its edges: "clip", the element at the edge,
        or "wrap", the array again.
      size: the number to report, so that the shape is known when tracing.
      fill_value: for missing ones; see `fnp.nonzero`.

    Returns:
      For each axis an int32 array of indices.

    Raises:
      ArgumentError: `order` is not positive, or the mode is unknown.
      ConcretizationError: `data` is traced and `size` is not given.

    Example:
      >>> argrelextrema(np.array([1, 3, 2, 5, 4]), fnp.greater)
      (Array([1, 3], dtype=int32),)

    Source: `scipy.signal.argrelextrema`.
    """
    name = "argrelextrema"
    order = natural(name, "order", order)
    if mode not in ("clip", "wrap"):
        raise ArgumentError(f'{name}: mode must be "clip" or "wrap", got {mode!r}')
    x = array_of(data, name)
    axis = canonical_axis(name, axis, x.ndim)
    n = x.shape[axis]
    found = fnp.ones(x.shape, bool)
    for shift in range(1, order + 1):
        for sign in (-1, 1):
            places = np.arange(n) + sign * shift
            places = np.clip(places, 0, n - 1) if mode == "clip" else places % n
            found = found & comparator(x, fnp.take(x, places, axis))
    return fnp.nonzero(found, size=size, fill_value=fill_value)


def argrelmax(
    data: ArrayLike,
    axis: int = 0,
    order: int = 1,
    mode: str = "clip",
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> tuple[Array, ...]:
    """Finds elements that are greater than their neighbours.

    Args:
      data: real array-like[...].
      axis: the axis.
      order: how many neighbours on each side.
      mode: how the array is extended beyond its edges; see `argrelextrema`.
      size: the number to report, so that the shape is known when tracing.
      fill_value: for missing ones.

    Returns:
      For each axis an int32 array of indices.

    Example:
      >>> argrelmax(np.array([1, 3, 2, 5, 4]))
      (Array([1, 3], dtype=int32),)

    Source: `scipy.signal.argrelmax`.
    """
    options = {"size": size, "fill_value": fill_value}
    return argrelextrema(data, fnp.greater, axis, order, mode, **options)


def argrelmin(
    data: ArrayLike,
    axis: int = 0,
    order: int = 1,
    mode: str = "clip",
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> tuple[Array, ...]:
    """Finds elements that are less than their neighbours.

    Args:
      data: real array-like[...].
      axis: the axis.
      order: how many neighbours on each side.
      mode: how the array is extended beyond its edges; see `argrelextrema`.
      size: the number to report, so that the shape is known when tracing.
      fill_value: for missing ones.

    Returns:
      For each axis an int32 array of indices.

    Example:
      >>> argrelmin(np.array([1, 3, 2, 5, 4]))
      (Array([2], dtype=int32),)

    Source: `scipy.signal.argrelmin`.
    """
    options = {"size": size, "fill_value": fill_value}
    return argrelextrema(data, fnp.less, axis, order, mode, **options)


# -- prominences and widths ------------------------------------------------------------


def _window(name: str, wlen: Any, n: int) -> int:
    """Returns how far a peak's surroundings reach on each side."""
    if wlen is None or wlen == -1:
        return n
    wide = number(name, "wlen", wlen)
    if wide < 2:
        raise ArgumentError(f"{name}: wlen must be at least 2, got {wlen}")
    return int(np.ceil(wide)) // 2


def _extremes(x: Array, join: Callable[[Array, Array], Array]) -> list[Array]:
    """Returns the extremes of 1, 2, 4, … samples that end at each one.

    Args:
      x: real array[n].
      join: `fnp.maximum` or `fnp.minimum`.

    Returns:
      Arrays[n]; where there are fewer samples, of those. Shifts alone make them.
    """
    n, rows = x.aval.size, [x]
    for k in range(max(n - 1, 1).bit_length()):
        step = min(1 << k, n)
        last = rows[-1]
        rows.append(fnp.concatenate([last[:step], join(last[step:], last[:-step])]))
    return rows


def _run(
    start: Array,
    step: int,
    reach: int,
    n: int,
    take: Callable[[int, Array, Array], Array],
) -> Array:
    """Returns the last sample of a run of samples from `start` on.

    A run grows by powers of 2 as long as it can: log n lookups for all runs at once. An
    empty one ends before its start.

    Args:
      start: int32[k].
      step: 1 or -1, the direction.
      reach: how far a run may go.
      n: the number of samples.
      take: whether 2^k samples join, from k, the last one and whether they fit.
    """
    at = start - step
    for k in reversed(range(max(n - 1, 1).bit_length() + 1)):
        after = at + step * (1 << k)
        fits = (after >= 0) & (after < n) & (fnp.abs(after - start) <= reach)
        last = fnp.clip(after if step > 0 else at - 1, 0, n - 1)
        at = fnp.where(take(k, last, fits), after, at)
    return at


@library("reach")
def _prominences(x: Array, peaks: Array, reach: int) -> tuple[Array, Array, Array]:
    """Returns how far peaks stand out, and the places of both bases.

    A base is the lowest sample between a peak and the next higher sample, at most
    `reach` samples away; of equal ones that nearest to the peak.
    """
    n, fixed = x.aval.size, lax.stop_gradient(x)
    peaks, height = peaks.astype(dtypes.int32), fixed[peaks]
    tops, lows = _extremes(fixed, fnp.maximum), _extremes(fixed, fnp.minimum)

    def base(step: int) -> Array:
        least = height

        def take(k: int, last: Array, fits: Array) -> Array:
            nonlocal least
            inside = fits & (tops[k][last] <= height)
            least = fnp.where(inside, fnp.minimum(least, lows[k][last]), least)
            return inside

        _run(peaks, step, reach, n, take)
        above = _run(
            peaks, step, reach, n, lambda k, at, fits: fits & (lows[k][at] > least)
        )
        return fnp.clip(above + step, 0, n - 1)

    left, right = base(-1), base(1)
    stands = x[peaks] - fnp.maximum(x[left], x[right])
    return stands, left, right


def peak_prominences(
    x: ArrayLike, peaks: ArrayLike, wlen: int | None = None
) -> tuple[Array, Array, Array]:
    """Returns how far peaks stand out from their surroundings.

    Args:
      x: real array-like[n]: the signal.
      peaks: int array-like[k]: indices of peaks.
      wlen: how many samples around a peak count; None is all.

    Returns:
      Float array[k]: the height above the higher one of two bases, the lowest samples
      between the peak and the next higher sample on each side; and where these are,
      int32[k] on the left and on the right.

    Raises:
      ArgumentError: `wlen` is less than 2.
      ShapeError: `x` or `peaks` is not a vector.

    Example:
      >>> peak_prominences(np.array([0.0, 2.0, 1.0, 5.0, 0.0]), np.array([1, 3]))[0]
      Array([1., 5.], dtype=float32)

    Source: `scipy.signal.peak_prominences`.
    """
    name = "peak_prominences"
    x = _signal(name, x)
    at = _peaks(name, peaks)
    return _prominences(x, at, _window(name, wlen, x.aval.size))


def _peaks(name: str, peaks: Any) -> Array:
    at = fnp.asarray(peaks)
    if at.aval.ndim != 1:
        raise ShapeError(f"{name}: peaks must be a vector of indices, got {at.aval}")
    if not at.aval.size:
        return fnp.zeros(0, dtypes.int32)
    if not dtypes.is_integer(at.aval.dtype):
        raise ArgumentError(f"{name}: peaks must be integers, got {at.aval}")
    return at.astype(dtypes.int32)


def _crossings(
    fixed: Array, peaks: Array, level: Array, left: Array, right: Array
) -> tuple[Array, Array]:
    """Returns the nearest samples that are not above a level, between the bases."""
    n = fixed.aval.size
    lows = _extremes(fixed, fnp.minimum)

    def crossing(step: int) -> Array:
        last = _run(peaks, step, n, n, lambda k, at, fits: fits & (level < lows[k][at]))
        return fnp.clip(last + step, left, right)

    return crossing(-1), crossing(1)


@library()
def _widths(
    x: Array, peaks: Array, stands: Array, left: Array, right: Array, share: Array
) -> tuple[Array, Array, Array, Array]:
    height = x[peaks] - stands * share
    fixed, level = lax.stop_gradient(x), lax.stop_gradient(height)
    low, high = _crossings(fixed, peaks.astype(dtypes.int32), level, left, right)
    start, end = between(x, low, -1, height), between(x, high, 1, height)
    return end - start, height, start, end


def peak_widths(
    x: ArrayLike,
    peaks: ArrayLike,
    rel_height: Any = 0.5,
    prominence_data: Any = None,
    wlen: int | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Returns how wide peaks are at a part of their prominence.

    Args:
      x: real array-like[n]: the signal.
      peaks: int array-like[k]: indices of peaks.
      rel_height: how far below the peak, in prominences.
      prominence_data: the result of `peak_prominences`; None is to compute it.
      wlen: how many samples around a peak count; None is all.

    Returns:
      Float arrays[k]: the widths, the heights at which they are measured, and the
      places where they begin and end, between samples by linear interpolation.

    Raises:
      ArgumentError: `rel_height` is negative, or `wlen` less than 2.
      ShapeError: `x` or `peaks` is not a vector.

    Special cases:
      The derivative counts the places as moving with the samples beside them.

    Example:
      >>> peak_widths(np.array([0.0, 1.0, 4.0, 1.0, 0.0]), np.array([2]))[0].round(3)
      Array([1.333], dtype=float32)

    Source: `scipy.signal.peak_widths`.
    """
    name = "peak_widths"
    x = _signal(name, x)
    at = _peaks(name, peaks)
    if (
        not isinstance(rel_height, Tracer)
        and number(name, "rel_height", rel_height) < 0
    ):
        raise ArgumentError(
            f"{name}: rel_height must not be negative, got {rel_height}"
        )
    if prominence_data is None:
        prominence_data = _prominences(x, at, _window(name, wlen, x.aval.size))
    share = fnp.asarray(rel_height, x.dtype)
    stands, left, right = prominence_data
    return _widths(x, at, stands, left, right, share)


# -- all of it -------------------------------------------------------------------------


class _Bounds:
    """The numbers that peaks are compared with, and what they are about.

    Args:
      name: of the function.
      dtype: of the samples.
    """

    def __init__(self, name: str, dtype: Any) -> None:
        self.name, self.dtype = name, dtype
        self.values: list[Array] = []

    def number(self, value: Any, *, of_samples: bool = True) -> int:
        """Returns the position of a number; one without a dtype takes the samples'."""
        array = fnp.asarray(value)
        if array.aval.weak_type:
            wide = dtypes.float64 if self.dtype == dtypes.float64 else dtypes.float32
            kind = self.dtype if of_samples else wide
            traced = isinstance(value, Array)
            array = convert(array, kind) if traced else fnp.asarray(value, kind)
        self.values.append(array)
        return len(self.values) - 1

    def pair(
        self, what: str, value: Any, *, of_samples: bool = True
    ) -> tuple[int, int]:
        """Returns the positions of the least and the greatest allowed value.

        Raises:
          ArgumentError: it is neither a number nor a pair of numbers.
        """
        if isinstance(value, tuple | list) and len(value) == 2:
            sides = tuple(value)
        else:
            sides = value, None
        for bound in sides:
            if bound is not None and fnp.ndim(bound):
                raise ArgumentError(
                    f"{self.name}: {what} must be a number or a pair of numbers, got "
                    f"{bound!r}"
                )
        low, high = (
            -1 if v is None else self.number(v, of_samples=of_samples) for v in sides
        )
        return low, high

    def array(self) -> Array:
        """Returns all numbers: float32, or float64 if any of them or the samples is."""
        kinds = [self.dtype, *(v.aval.dtype for v in self.values)]
        wide = dtypes.float64 if dtypes.float64 in kinds else dtypes.float32
        if not self.values:
            return fnp.zeros(1, wide)
        return fnp.stack([convert(v, wide) for v in self.values])


def _within(values: Array, bounds: Array, sides: tuple[int, int]) -> Array:
    keep = fnp.ones(values.aval.shape, bool)
    values = values.astype(bounds.aval.dtype)
    if sides[0] >= 0:
        keep = keep & (values >= bounds[sides[0]])
    if sides[1] >= 0:
        keep = keep & (values <= bounds[sides[1]])
    return keep


@library()
def _local_maxima(x: Array) -> tuple[Array, Array, Array]:
    """Returns which samples are the middles of peaks, and the ends of flat ones."""
    n = x.aval.size
    index = fnp.arange(n, dtype=dtypes.int32)
    yes = fnp.ones(1, bool)
    new = fnp.concatenate([yes, x[1:] != x[:-1]])
    ends = fnp.concatenate([new[1:], yes])
    # The last bit says whether the sample outside of a flat piece is not lower.
    rises = fnp.concatenate([yes, ~(x[:-1] < x[1:])]).astype(dtypes.int32)
    falls = fnp.concatenate([~(x[1:] < x[:-1]), yes]).astype(dtypes.int32)
    left = lax.cummax(fnp.where(new, 2 * index + rises, 0))
    right = lax.cummin(fnp.where(ends, 2 * index + falls, 2 * n - 1), reverse=True)
    start, end = left >> 1, right >> 1
    top = ((left | right) & 1 == 0) & (index == (start + end) // 2)
    return top, start, end


@library()
def _far_enough(peaks: Array, keep: Array, priority: Array, distance: Array) -> Array:
    """Removes the lower one of peaks that are too near each other."""
    k = peaks.aval.size
    order = fnp.flip(fnp.argsort(fnp.where(keep, priority, -fnp.inf), stable=True))

    def step(keep: Array, j: Array) -> tuple[Array, None]:
        near = fnp.abs(peaks - peaks[j]) < distance
        other = fnp.arange(k) != j
        return fnp.where(keep[j] & near & other, False, keep), None

    return lax.scan(step, keep, order)[0]


def _steps(x: Array, at: Array) -> tuple[Array, Array]:
    """Returns how much higher samples are than the ones before and behind."""
    n = x.aval.size
    before, behind = fnp.maximum(at - 1, 0), fnp.minimum(at + 1, n - 1)
    return x[at] - x[before], x[at] - x[behind]


def _plain(x: Array, bounds: Array, conditions: Conditions, size: int) -> Places:
    """Returns what the kernel does, by operations on whole arrays."""
    n = x.aval.size
    keep, start, end = _local_maxima(x)
    # What depends on one sample is asked of all, before the peaks are counted.
    keep = keep & _within(end - start + 1, bounds, conditions.plateau)
    keep = keep & _within(x, bounds, conditions.height)
    if conditions.threshold != (-1, -1):
        low, high = _steps(x, fnp.arange(n, dtype=dtypes.int32))
        least, most = conditions.threshold
        keep = keep & _within(fnp.minimum(low, high), bounds, (least, -1))
        keep = keep & _within(fnp.maximum(low, high), bounds, (-1, most))
    more = conditions.bases or conditions.distance >= 0
    # At most (n - 1) / 2 of n samples are peaks.
    room = (n - 1) // 2 if more else size
    count = fnp.sum(keep, dtype=dtypes.int32)
    (peaks,) = fnp.nonzero(keep, size=room, fill_value=n)
    keep = peaks < n
    at = fnp.where(keep, peaks, 0).astype(dtypes.int32)
    places = Places(count, at)
    if conditions.edges:
        places = places._replace(starts=start[at], ends=end[at])
    if not more:
        return _masked(places, keep)
    if conditions.distance >= 0:
        keep = _far_enough(at, keep, x[at], bounds[conditions.distance])
    if conditions.bases:
        stands, left, right = _prominences(x, at, conditions.reach or n)
        keep = keep & _within(stands, bounds, conditions.prominence)
        places = places._replace(left=left, right=right)
    if conditions.share >= 0:
        share = bounds[conditions.share].astype(x.aval.dtype)
        level = x[at] - stands * share
        low, high = _crossings(x, at, level, left, right)
        wide = between(x, high, 1, level) - between(x, low, -1, level)
        keep = keep & _within(wide, bounds, conditions.width)
        places = places._replace(low=low, high=high)
    (chosen,) = fnp.nonzero(keep, size=size, fill_value=0)
    count = fnp.sum(keep, dtype=dtypes.int32)
    picked = [None if v is None else v[chosen] for v in places[1:]]
    return _masked(Places(count, *picked), fnp.arange(size) < count)


def _masked(places: Places, known: Array) -> Places:
    rest = [None if v is None else fnp.where(known, v, 0) for v in places[1:]]
    return Places(places.count, *rest)


@library("conditions", "asked", "size")
def _found(
    x: Any,
    bounds: Any,
    conditions: Conditions,
    asked: tuple[str, ...],
    size: int,
) -> tuple[Array, Array, dict[str, Array]]:
    """Returns the number of peaks, where they are, and what was asked about them."""
    fixed, least = lax.stop_gradient(x), lax.stop_gradient(bounds)

    def plain(x: Any, bounds: Any) -> Places:
        return _plain(x, bounds, conditions, size)

    if x.aval.size < 3 or not size:
        places = Places(fnp.int32(0), *[fnp.zeros(size, dtypes.int32)] * 7)
    else:
        places = peaks_where(fixed, least, conditions, size, reference=plain)
    at, found = places.peaks, dict[str, Array]()
    if not x.aval.size:
        x = fnp.zeros(1, x.aval.dtype)
    if "plateau_size" in asked:
        found["plateau_sizes"] = places.ends - places.starts + 1
        found |= {"left_edges": places.starts, "right_edges": places.ends}
    if "height" in asked:
        found["peak_heights"] = x[at]
    if "threshold" in asked:
        low, high = _steps(x, at)
        found |= {"left_thresholds": low, "right_thresholds": high}
    if conditions.bases:
        stands = x[at] - fnp.maximum(x[places.left], x[places.right])
        found |= {"prominences": stands}
        found |= {"left_bases": places.left, "right_bases": places.right}
    if conditions.share >= 0:
        level = x[at] - stands * bounds[conditions.share].astype(x.aval.dtype)
        first = between(x, places.low, -1, level)
        last = between(x, places.high, 1, level)
        found |= {"widths": last - first, "width_heights": level}
        found |= {"left_ips": first, "right_ips": last}
    return places.count, at, found


def find_peaks(
    x: ArrayLike,
    height: Any = None,
    threshold: Any = None,
    distance: Any = None,
    prominence: Any = None,
    width: Any = None,
    wlen: int | None = None,
    rel_height: float = 0.5,
    plateau_size: Any = None,
    *,
    size: int | None = None,
    fill_value: int = -1,
) -> tuple[Array, dict[str, Array]]:
    """Finds peaks: samples that are higher than both neighbours, under conditions.

    A flat peak is at its middle. Conditions are a number, the least value that counts,
    or a pair, the least and the greatest one, None for none.

    Args:
      x: real array-like[n]: the signal.
      height: of a peak.
      threshold: how much higher than its neighbours a peak is.
      distance: the least number of samples between peaks: the higher one is kept.
      prominence: see `peak_prominences`.
      width: see `peak_widths`.
      wlen: how many samples around a peak count for the prominence; None is all.
      rel_height: where the width is measured, in prominences.
      plateau_size: how many equal samples a peak has.
      size: how many peaks to report, so that the shape is known when tracing.
      fill_value: for missing ones; their properties are those of sample 0.

    Returns:
      int32[k], the indices, and a dictionary of the properties that the conditions are
      about, under SciPy's names.

    Raises:
      ArgumentError: a condition is not a number or a pair, or `distance` is less than
        1.
      ConcretizationError: `x` is traced and `size` is not given.
      ShapeError: `x` is not a vector.

    Example:
      >>> find_peaks(np.array([0.0, 2.0, 1.0, 5.0, 0.0]), height=3.0)[0]
      Array([3], dtype=int32)

    Source: `scipy.signal.find_peaks`.
    """
    name = "find_peaks"
    x = _signal(name, x)
    n = x.aval.size
    if distance is not None and not isinstance(distance, Tracer):
        if number(name, "distance", distance) < 1:
            raise ArgumentError(f"{name}: distance must be at least 1, got {distance}")
        distance = float(np.ceil(float(distance)))
    if size is None and isinstance(x, Tracer):
        raise ConcretizationError(
            f"{name}: the number of peaks of a traced x is not known: give size"
        )
    bounds = _Bounds(name, x.dtype)
    every = {
        "plateau_size": plateau_size,
        "height": height,
        "threshold": threshold,
        "prominence": prominence,
        "width": width,
    }
    pairs = {
        what: bounds.pair(what, value, of_samples=what != "plateau_size")
        for what, value in every.items()
        if value is not None
    }
    none = (-1, -1)
    bases = prominence is not None or width is not None
    reach = _window(name, wlen, n) if bases else n
    conditions = Conditions(
        plateau=pairs.get("plateau_size", none),
        height=pairs.get("height", none),
        threshold=pairs.get("threshold", none),
        distance=-1 if distance is None else bounds.number(distance, of_samples=False),
        prominence=pairs.get("prominence", none),
        width=pairs.get("width", none),
        share=bounds.number(rel_height) if width is not None else -1,
        edges=plateau_size is not None,
        bases=bases,
        reach=reach if reach < n else 0,
    )
    room = max((n - 1) // 2, 0) if size is None else natural(name, "size", size, 0)
    count, at, found = _found(x, bounds.array(), conditions, tuple(pairs), room)
    if size is None:
        stop = int(count)
        return at[:stop], {key: value[:stop] for key, value in found.items()}
    return fnp.where(fnp.arange(room) < count, at, fill_value), found
