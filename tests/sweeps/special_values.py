"""Values at which functions go wrong, and the comparison of results there."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.lax.families import kind


def floats(dtype: Any, extremes: bool = True) -> Any:
    """Signed zeros, infinities, nan, ordinary numbers; the ends of the dtype's range.

    No subnormal numbers: XLA's programs for CPUs take and give zero for them.
    """
    info = dtypes.finfo(dtype)
    numbers = [0.0, 0.5, 1.0, 1.5, 3.0, np.pi, np.inf]
    if extremes:
        numbers += [1e-3, 10.0, 30.0, 100.5, float(info.max), 2 * float(info.tiny)]
    with np.errstate(over="ignore"):
        signed = np.array([*numbers, *(-n for n in numbers), np.nan])
        return signed.astype(dtype)


def complexes(dtype: Any, extremes: bool = True) -> Any:
    """All pairs of special real and imaginary parts."""
    part = dtypes.to_real(dtype)
    info = dtypes.finfo(part)
    numbers = [0.0, 1.0, np.inf]
    if extremes:
        numbers += [1e-3, 0.5, 2.0, 10.0, float(info.max)]
    parts = [*numbers, *(-n for n in numbers), np.nan]
    out = np.empty(len(parts) ** 2, dtype)
    out.real, out.imag = np.array(list(itertools.product(parts, parts))).T
    return out


def integers(dtype: Any) -> Any:
    """All of up to 8 bits; the ends of the range and small ones of wider ones."""
    info = dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    if dtypes.bits(dtype) <= 8:
        return np.arange(low, high + 1).astype(np.int16).astype(dtype)
    near = {low, low + 1, *range(-3, 4), 7, 31, 63, 100, high - 1, high}
    return np.array(sorted(n for n in near if low <= n <= high), dtype)


def special(dtype: Any, extremes: bool = True) -> Any:
    """The special values of any dtype, along one axis."""
    letter = kind(dtype)
    if letter == "b":
        return np.array([False, True])
    if letter == "c":
        return complexes(dtype, extremes)
    return floats(dtype, extremes) if letter == "f" else integers(dtype)


def drawn(rng: np.random.Generator, shape: Any, dtype: Any, extremes: bool) -> Any:
    """Special values at random."""
    return np.asarray(rng.choice(special(dtype, extremes), shape)).astype(dtype)


def grid(dtype: Any, count: int, limit: int, rng: np.random.Generator) -> list[Any]:
    """Every combination of special values for `count` operands, or `limit` of them."""
    values = special(dtype)
    total = len(values) ** count
    chosen = np.arange(total) if total <= limit else rng.integers(0, total, limit)
    return [values[(chosen // len(values) ** i) % len(values)] for i in range(count)]


def differing(
    got: Any,
    want: Any,
    ulps: float,
    *,
    zeros: bool = True,
    infinities: bool = True,
    near: float = 0.0,
) -> Any:
    """Where two arrays differ.

    Args:
      got: an array.
      want: of the same shape and dtype.
      ulps: how far finite numbers may be apart, in units of the last place (of the
        larger part, for complex ones). What rounds to a subnormal number is zero.
      zeros: whether the signs of zeros count.
      infinities: whether infinities and nan count as different.
      near: numbers of which a smaller result may be a difference.
    """
    if kind(want.dtype) not in "fc":
        return got != want
    real = dtypes.to_real(want.dtype)
    info = dtypes.finfo(real)
    last_place, least = float(info.eps), 4 * float(info.tiny)
    both = [got, want]
    pairs = [both]
    if kind(want.dtype) == "c":
        pairs = [[v.real for v in both], [v.imag for v in both]]
    with np.errstate(all="ignore"):
        size = np.abs(want.astype(np.complex128))
        bad = np.zeros(want.shape, bool)
        for pair in pairs:
            a, b = (np.asarray(v).astype(np.float64) for v in pair)
            finite = np.isfinite(a) & np.isfinite(b)
            scale = np.maximum(np.where(np.isfinite(size), size, np.abs(b)), near)
            bound = ulps * last_place * scale + least
            wrong = finite & (np.abs(a - b) > bound)
            if zeros:
                wrong |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
            wrong |= np.isfinite(a) != np.isfinite(b)
            if infinities:
                wrong |= (np.isnan(a) != np.isnan(b)) | (np.isinf(a) & (a != b))
            wrong &= ~(np.isnan(a) & np.isnan(b))
            bad |= wrong
    return bad


def explained(bad: Any, got: Any, want: Any, operands: Any, names: str) -> str:
    """What differs where, for a message."""
    lines = [f"{int(bad.sum())} of {bad.size} differ ({names}):"]
    for place in map(tuple, np.argwhere(bad)[:5]):
        given = [np.asarray(o)[place] for o in operands if np.shape(o) == bad.shape]
        lines.append(f"  {given}: {got[place]!r}, {want[place]!r}")
    return "\n".join(lines)
