"""Peaks of a signal that meet conditions, by one pass of each kind over the samples.

A program has one signal, so that a batch of signals is a grid of programs. What it
finds are integers, the places of samples: values, and derivatives with them, are read
there afterwards.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.kernels.body import loop, when
from fxflow.kernels.calling import call

#: More than any distance of samples.
_FAR = np.uint32(1 << 31)


class Conditions(NamedTuple):
    """What peaks must be like: which numbers of `bounds` say so.

    Attributes:
      plateau: the positions in `bounds` of the least and the greatest length of a flat
        peak; -1 for none.
      height: of the least and the greatest sample.
      threshold: of the least and the greatest step down to a neighbour.
      distance: of the least distance between peaks.
      prominence: of the least and the greatest prominence.
      width: of the least and the greatest width.
      share: of the part of the prominence at which widths are measured; -1: no widths.
      edges: whether the edges of flat peaks are wanted.
      bases: whether the bases of peaks are wanted.
      reach: how many samples on each side of a peak its prominence depends on; 0: all.
    """

    plateau: tuple[int, int] = (-1, -1)
    height: tuple[int, int] = (-1, -1)
    threshold: tuple[int, int] = (-1, -1)
    distance: int = -1
    prominence: tuple[int, int] = (-1, -1)
    width: tuple[int, int] = (-1, -1)
    share: int = -1
    edges: bool = False
    bases: bool = False
    reach: int = 0

    def places(self) -> list[str]:
        """Returns the names of the `Places` that are asked for."""
        return [
            "peaks",
            *(("starts", "ends") if self.edges else ()),
            *(("left", "right") if self.bases else ()),
            *(("low", "high") if self.share >= 0 else ()),
        ]


class Places(NamedTuple):
    """Samples of the peaks that are found; those of missing ones are 0.

    Attributes:
      count: int32[]: how many there are, which may be more than fit.
      peaks: int32[size]: where they are, in ascending order.
      starts: int32[size]: the first sample of a flat peak.
      ends: int32[size]: the last one.
      left: int32[size]: the base on the left.
      right: int32[size]: the base on the right.
      low: int32[size]: the last sample to the left of the width.
      high: int32[size]: the first sample to the right of the width.
    """

    count: Any
    peaks: Any
    starts: Any = None
    ends: Any = None
    left: Any = None
    right: Any = None
    low: Any = None
    high: Any = None


def peaks_where(
    x: Any,
    bounds: Any,
    conditions: Conditions,
    size: int,
    *,
    reference: Callable[[Any, Any], Places],
) -> Places:
    """Returns where a signal has peaks that meet conditions.

    Args:
      x: float[n], with at least three samples.
      bounds: float32 or float64[m]: see `Conditions`.
      conditions: what peaks must be like.
      size: how many peaks to report.
      reference: a function of `x` and `bounds` that returns the same in another way.

    Returns:
      See `Places`; None for what `conditions` do not ask for.
    """
    n, dtype = typeof(x).shape[0], typeof(x).dtype
    room = (n - 1) // 2
    names = conditions.places()
    near = conditions.distance >= 0
    # What peaks have between them says which bases they have, if all samples count.
    whole = conditions.bases and not conditions.reach

    def body(x: Any, bounds: Any, count: Any, *given: Any) -> None:
        refs = list(given)
        results = [refs.pop(0) for _ in names]
        y, used = refs.pop(0), refs.pop(0)
        found = _Found(used, {name: refs.pop(0) for name in names})
        # No comparison holds beyond the ends. Sample 1 is the first one.
        y[...] = fnp.full(n + 2, fnp.nan, dtype)
        y[1 : n + 1] = x[...]
        if whole:
            gaps = _Gaps(*[refs.pop(0) for _ in range(4)])
            _maxima(y, bounds, Conditions(edges=conditions.edges), found, gaps)
            _bases(y, found, gaps)
            _select_near(y, bounds, conditions, found)
        else:
            _maxima(y, bounds, conditions, found)
        if near:
            _thin(y, bounds[conditions.distance], found, refs)
        if conditions.reach:
            _bases_within(y, found, conditions.reach)
        if conditions.bases:
            _select_prominent(y, bounds, conditions, found)
        if conditions.share >= 0:
            _widths(y, bounds, conditions, found)
        kept = used[0].astype(dtypes.int32)
        count[0] = kept
        for result, name in zip(results, names, strict=True):
            result[...] = fnp.zeros(size, dtypes.int32)
            _copy(found[name], result, fnp.minimum(kept, size))

    one = Aval((1,), np.dtype(np.int32))
    places = Aval((room,), np.dtype(np.uint32))
    numbers = places.update(shape=(room + 1,))
    wide = places.update(shape=(room + 2,))
    of_gaps = [Aval((room + 1,), dtype), numbers, numbers, numbers]
    run = call(
        body,
        [one, *[one.update(shape=(size,))] * len(names)],
        scratch=[
            Aval((n + 2,), dtype),
            places.update(shape=(1,)),
            *[places] * len(names),
            *(of_gaps if whole else []),
            *([wide, wide.update(dtype=dtype), wide, wide] if near else []),
        ],
        reference=lambda x, bounds: _listed(reference(x, bounds), names),
        name="find_peaks",
        platforms=("cpu",),
    )
    count, *rest = run(x, bounds)
    return Places(count[0], **dict(zip(names, rest, strict=True)))


def _listed(found: Places, names: Sequence[str]) -> list[Any]:
    return [fnp.reshape(found.count, (1,)), *(getattr(found, name) for name in names)]


def _copy(held: Any, result: Any, count: Any) -> None:
    """Writes places that count from 1 to a result."""

    @loop(0, count)
    def _(j: Any) -> None:
        result[j] = (held[j] - 1).astype(dtypes.int32)


class _Gaps(NamedTuple):
    """What is between peaks: references to arrays with a place for each peak.

    Attributes:
      heights: of peaks; peak j is at j + 1, and the first number is NaN.
      links: for peak j, at j + 1, the number, plus 1, of the next peak that is higher;
        0 where there is none.
      valleys: of the lowest samples between a peak and the one before, the first.
      walls: whether a NaN is between a peak and the one before.
    """

    heights: Any
    links: Any
    valleys: Any
    walls: Any


class _Found:
    """The peaks that are left: references to arrays with a place for each.

    Places and numbers of peaks are unsigned: then an index is one, without a test of
    its sign.
    """

    def __init__(self, count: Any, arrays: dict[str, Any]) -> None:
        self.count, self.arrays = count, arrays

    def __getitem__(self, name: str) -> Any:
        return self.arrays[name]

    def select(self, keep: Callable[[Any], Any]) -> None:
        """Leaves the peaks for which a function of their number is true."""
        arrays = self.arrays.values()

        def step(j: Any, used: Any) -> Any:
            j = j.astype(dtypes.uint32)
            held = [array[j] for array in arrays]
            add = fnp.where(keep(j), 1, 0).astype(dtypes.uint32)
            for array, value in zip(arrays, held, strict=True):
                array[used] = value
            return fnp.add(used, add)

        count = self.count[0].astype(dtypes.int32)
        zero = fnp.zeros((), dtypes.uint32)
        self.count[0] = lax.fori_loop(0, count, step, zero)


def _inside(value: Any, bounds: Any, sides: tuple[int, int]) -> list[Any]:
    """Returns the comparisons of a value with its bounds."""
    low, high = sides
    found = [] if low < 0 else [value >= bounds[low]]
    return found if high < 0 else [*found, value <= bounds[high]]


def _all(tests: Sequence[Any]) -> Any:
    return functools.reduce(fnp.logical_and, tests)


def _near(
    y: Any, bounds: Any, conditions: Conditions, begin: Any, middle: Any, end: Any
) -> list[Any]:
    """Returns whether a peak meets the conditions on samples near by."""
    kind, here = bounds.dtype, y[middle]
    tests = _inside((end - begin + 1).astype(kind), bounds, conditions.plateau)
    tests += _inside(here.astype(kind), bounds, conditions.height)
    if conditions.threshold != (-1, -1):
        down = [here - y[middle - 1], here - y[middle + 1]]
        steps = [d.astype(kind) for d in down]
        low, high = conditions.threshold
        tests += _inside(fnp.minimum(*steps), bounds, (low, -1))
        tests += _inside(fnp.maximum(*steps), bounds, (-1, high))
    return tests


def _maxima(
    y: Any,
    bounds: Any,
    conditions: Conditions,
    found: _Found,
    gaps: _Gaps | None = None,
) -> None:
    """Finds the peaks that meet the conditions on samples near by."""
    n, dtype = y.shape[0] - 2, y.dtype
    infinite = fnp.full((), fnp.inf, dtype)
    zero, one = (fnp.full((), i, dtypes.uint32) for i in (0, 1))

    def step(_: Any, carry: Any) -> Any:
        # Where the flat piece that sample i lies in begins, if it is higher than what
        # was before; else 0.
        i, before, here, begin, used, gap = carry
        after = y[i + 1]
        flat = fnp.where(before == here, begin, zero)
        begin = fnp.where(before < here, i, flat)
        # Some sample, if there is no peak.
        middle = lax.shift_right_logical(fnp.maximum(begin, one) + i, one)
        tests = [begin > 0, here > after]
        ok = _all([*tests, *_near(y, bounds, conditions, begin, middle, i)])
        # The next peak takes the place of a sample that is not one.
        found["peaks"][used] = middle
        if conditions.edges:
            found["starts"][used] = begin
            found["ends"][used] = i
        if gaps is not None:
            last, low_last, first, low_first, wall = gap
            found["left"][used] = last
            gaps.valleys[used] = first
            gaps.walls[used] = wall
            gaps.heights[used + 1] = here
            # After a NaN the last valley begins again, and the first one has ended.
            nan = here != here
            deeper = here <= low_last
            last = fnp.where(deeper, i, last)
            low_last = fnp.where(deeper, here, fnp.where(nan, infinite, low_last))
            lower = here < low_first
            first = fnp.where(lower, i, first)
            low_first = fnp.where(lower, here, fnp.where(nan, -infinite, low_first))
            wall = fnp.where(nan, one, wall)
            low_last, low_first = (
                fnp.where(ok, infinite, v) for v in (low_last, low_first)
            )
            gap = last, low_last, first, low_first, fnp.where(ok, zero, wall)
        used = fnp.add(used, fnp.where(ok, 1, 0).astype(dtypes.uint32))
        return i + 1, here, after, begin, used, gap

    gap = () if gaps is None else (one, infinite, one, infinite, zero)
    start = (one, y[0], y[1], zero, zero, gap)
    *_, used, gap = lax.fori_loop(0, n, step, start)
    found.count[0] = used
    if gaps is not None:
        gaps.valleys[used] = gap[2]
        gaps.walls[used] = one


def _select_near(y: Any, bounds: Any, conditions: Conditions, found: _Found) -> None:
    plain = conditions._replace(plateau=(-1, -1)) == conditions
    if not _near(y, bounds, conditions, *[np.uint32(1)] * 3):
        return

    def keep(j: Any) -> Any:
        middle = found["peaks"][j]
        begin, end = (
            (middle, middle) if plain else (found["starts"][j], found["ends"][j])
        )
        return _all(_near(y, bounds, conditions, begin, middle, end))

    found.select(keep)


def _thin(y: Any, distance: Any, found: _Found, scratch: Sequence[Any]) -> None:
    """Removes the lower one of peaks that are too near each other.

    A peak is kept if no higher one that is near, and not removed, is left: chains of
    ever higher peaks end at such a one, which then removes those around it.

    Args:
      y: the samples.
      distance: the least distance.
      found: the peaks.
      scratch: four arrays with a place for each peak, and one at both ends.
    """
    at, heights, states, chain = scratch
    count = found.count[0]
    least = fnp.ceil(fnp.minimum(distance, _FAR / 2)).astype(dtypes.uint32)

    @loop(0, count.astype(dtypes.int32))
    def _(k: Any) -> None:
        j = k.astype(dtypes.uint32)
        peak = found["peaks"][j]
        at[j + 1], heights[j + 1], states[j + 1] = peak, y[peak], np.uint32(0)

    # Far from all peaks, also if a difference of unsigned numbers is below 0.
    at[0], at[count + 1] = at[1] + _FAR, at[count] + _FAR

    def highest(e: Any, left: bool, best: Any, top: Any) -> tuple[Any, Any]:
        """Returns the highest peak near e, and its height; of equal ones the last."""

        def step(carry: Any) -> Any:
            f, best, top = carry
            one = heights[f]
            take = fnp.logical_and(states[f] == 0, one > top if left else one >= top)
            best, top = fnp.where(take, f, best), fnp.where(take, one, top)
            return f - 1 if left else f + 1, best, top

        start = (e - 1 if left else e + 1, best, top)
        near = lambda c: distance_of(e, c[0], left) < least
        _, best, top = lax.while_loop(near, step, start)
        return best, top

    def distance_of(e: Any, f: Any, left: bool) -> Any:
        return at[e] - at[f] if left else at[f] - at[e]

    def remove(e: Any, left: bool) -> None:
        def step(f: Any) -> Any:
            states[f] = fnp.where(states[f] == 0, np.uint32(2), states[f])
            return f - 1 if left else f + 1

        near = lambda f: distance_of(e, f, left) < least
        lax.while_loop(near, step, e - 1 if left else e + 1)

    def decide(depth: Any) -> Any:
        e = chain[depth - 1]
        left = states[e] == 0
        best = highest(e, False, *highest(e, True, e, heights[e]))[0]
        top, longer = (fnp.logical_and(left, v) for v in (best == e, best != e))

        @when(top)
        def _() -> None:
            states[e] = np.uint32(1)
            remove(e, True)
            remove(e, False)

        # Where the chain ends what is written is read no more.
        chain[depth] = best
        return fnp.where(longer, depth + 1, depth - 1)

    @loop(1, count.astype(dtypes.int32) + 1)
    def _(k: Any) -> None:
        j = k.astype(dtypes.uint32)

        @when(states[j] == 0)
        def _() -> None:
            chain[0] = j
            lax.while_loop(lambda depth: depth > 0, decide, fnp.ones((), dtypes.uint32))

    found.select(lambda j: states[j + 1] == 1)


def _bases(y: Any, found: _Found, gaps: _Gaps) -> None:
    """Finds the lowest samples between peaks and the next higher samples.

    Between two peaks there is one valley, so it is enough to look at peaks, and to go
    on from a lower one where the samples of that one ended: each peak is looked at once
    or twice from each side.

    Args:
      y: the samples.
      found: all peaks; "left" has the valleys before them.
      gaps: what is between them.
    """
    count = found.count[0].astype(dtypes.int32)
    zero = fnp.zeros((), dtypes.uint32)
    gaps.heights[0] = fnp.full((), fnp.nan, y.dtype)

    def side(left: bool, bases: Any) -> None:
        @loop(0, count)
        def _(k: Any) -> None:
            j = (k if left else count - 1 - k).astype(dtypes.uint32)
            gap = j if left else j + 1
            height = gaps.heights[j + 1]
            valley = bases[j] if left else gaps.valleys[gap]
            wall = fnp.logical_or(gaps.walls[gap] > 0, gap == 0)
            first = fnp.where(wall, zero, j if left else j + 2)

            def step(carry: Any) -> Any:
                other, base, least = carry
                low = bases[other - 1]
                value = y[low]
                lower = value < least
                base = fnp.where(lower, low, base)
                return gaps.links[other], base, fnp.where(lower, value, least)

            last, base, _ = lax.while_loop(
                lambda carry: gaps.heights[carry[0]] <= height,
                step,
                (first, valley, y[valley]),
            )
            bases[j] = base
            gaps.links[j + 1] = last

    side(True, found["left"])
    side(False, found["right"])


def _bases_within(y: Any, found: _Found, reach: int) -> None:
    """Finds the lowest samples up to the next higher ones, at most `reach` away."""
    n = y.shape[0] - 2

    @loop(0, found.count[0].astype(dtypes.int32))
    def _(k: Any) -> None:
        j = k.astype(dtypes.uint32)
        peak = found["peaks"][j]
        height = y[peak]

        def side(left: bool) -> Any:
            bound = fnp.minimum(peak, reach + 1) - 1 if left else n - peak
            last = fnp.minimum(bound, reach)

            def read(carry: Any) -> Any:
                at, steps, base, least = carry
                lower = y[at] < least
                base = fnp.where(lower, at, base)
                least = fnp.where(lower, y[at], least)
                return at - 1 if left else at + 1, steps + 1, base, least

            start = (
                *(peak - 1 if left else peak + 1, fnp.ones((), dtypes.uint32)),
                *(peak, height),
            )
            return lax.while_loop(
                lambda c: fnp.logical_and(c[1] <= last, y[c[0]] <= height), read, start
            )[2]

        found["left"][j] = side(True)
        found["right"][j] = side(False)


def _prominence(y: Any, found: _Found, j: Any) -> Any:
    base = fnp.maximum(y[found["left"][j]], y[found["right"][j]])
    return y[found["peaks"][j]] - base


def _select_prominent(
    y: Any, bounds: Any, conditions: Conditions, found: _Found
) -> None:
    if conditions.prominence == (-1, -1):
        return

    def keep(j: Any) -> Any:
        stands = _prominence(y, found, j).astype(bounds.dtype)
        return _all(_inside(stands, bounds, conditions.prominence))

    found.select(keep)


def _widths(y: Any, bounds: Any, conditions: Conditions, found: _Found) -> None:
    """Finds the samples beside which peaks fall to a part of their prominence."""
    share = bounds[conditions.share].astype(y.dtype)
    count = found.count[0].astype(dtypes.int32)

    def level(j: Any) -> Any:
        return y[found["peaks"][j]] - _prominence(y, found, j) * share

    @loop(0, count)
    def _(k: Any) -> None:
        j = k.astype(dtypes.uint32)
        height, peak = level(j), found["peaks"][j]
        left, right = found["left"][j], found["right"][j]

        def low(at: Any) -> Any:
            return fnp.logical_and(at > left, height < y[at])

        def high(at: Any) -> Any:
            return fnp.logical_and(at < right, height < y[at])

        found["low"][j] = lax.while_loop(low, lambda at: at - 1, peak)
        found["high"][j] = lax.while_loop(high, lambda at: at + 1, peak)

    if conditions.width == (-1, -1):
        return

    def keep(j: Any) -> Any:
        start = between(y, found["low"][j], -1, level(j))
        end = between(y, found["high"][j], 1, level(j))
        return _all(
            _inside((end - start).astype(bounds.dtype), bounds, conditions.width)
        )

    found.select(keep)


def between(x: Any, at: Any, step: int, level: Any) -> Array:
    """Returns where a signal has a level, by linear interpolation.

    Args:
      x: float[n].
      at: int32: the first sample that is not above the level.
      step: the direction from the peak to it, 1 or -1.
      level: float, like the samples.

    Returns:
      Float, like the level: between the sample and the one before it.
    """
    before = at - 1 if step > 0 else at + 1
    other = fnp.clip(before, 0, x.shape[0] - 1)
    here = x[at]
    rise = x[other] - here
    below = fnp.logical_and(here < level, rise != 0)
    part = fnp.where(below, (level - here) / fnp.where(below, rise, 1), 0)
    out: Array = at.astype(part.dtype) - step * part
    return out
