"""Peaks that stand at many scales: ridges of a wavelet transform."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.signal._recursions import Coefficients, known, numbers

Values = np.ndarray[Any, Any]


def _ricker(points: int, width: float) -> Values:
    """Returns the second derivative of a Gaussian, negated."""
    x = (np.arange(points) - (points - 1.0) / 2) / width
    scale = 2 / (np.sqrt(3 * width) * np.pi**0.25)
    return np.asarray(scale * (1 - x * x) * np.exp(-x * x / 2))


def _transformed(x: Values, wavelet: Callable[..., Any], widths: Values) -> Values:
    rows = []
    for width in widths:
        points = int(min(10 * width, x.size))
        shape = np.conj(np.asarray(wavelet(points, width))[::-1])
        whole = np.convolve(x, shape)
        low = (shape.size - 1) // 2
        rows.append(whole[low : low + x.size])
    return np.stack(rows)


class _Ridge:
    """A line of maxima from wide to narrow scales.

    Attributes:
      rows: the scales.
      columns: the places.
      gap: for how many scales it has had no maximum.
    """

    def __init__(self, row: int, column: int) -> None:
        self.rows, self.columns, self.gap = [row], [column], 0


def _ridges(matrix: Values, distances: Values, gap: float) -> list[_Ridge]:
    """Returns lines of maxima that are near each other from scale to scale."""
    inside = matrix[:, 1:-1]
    tops = np.zeros(matrix.shape, bool)
    tops[:, 1:-1] = (inside > matrix[:, :-2]) & (inside > matrix[:, 2:])
    some = np.flatnonzero(tops.any(1))
    if not some.size:
        return []
    start = int(some[-1])
    open_lines = [_Ridge(start, int(c)) for c in np.flatnonzero(tops[start])]
    closed = []
    for row in range(start - 1, -1, -1):
        for line in open_lines:
            line.gap += 1
        before = np.array([line.columns[-1] for line in open_lines])
        for column in map(int, np.flatnonzero(tops[row])):
            apart = np.abs(column - before)
            if apart.size and apart.min() <= distances[row]:
                line = open_lines[int(apart.argmin())]
                line.columns.append(column)
                line.rows.append(row)
                line.gap = 0
            else:
                open_lines.append(_Ridge(row, column))
        closed += [line for line in reversed(open_lines) if line.gap > gap]
        open_lines = [line for line in open_lines if line.gap <= gap]
    return closed + open_lines


def _noise(row: Values, window: int, percentage: float) -> Values:
    """Returns for each sample a percentile of those around it."""
    half, odd = divmod(window, 2)
    n = row.size
    if not window:
        return np.full(n, np.nan)
    padded = np.pad(row.astype(float), (half, half + odd), constant_values=np.nan)
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + odd)[:n]
    whole = ~np.isnan(around).any(1)
    out = np.empty(n)
    out[whole] = np.percentile(around[whole], percentage, axis=1)
    for i in np.flatnonzero(~whole):
        out[i] = np.nanpercentile(around[i], percentage)
    return out


def find_peaks_cwt(
    vector: Coefficients,
    widths: Coefficients,
    wavelet: Callable[..., Any] | None = None,
    max_distances: Coefficients | None = None,
    gap_thresh: float | None = None,
    min_length: int | None = None,
    min_snr: float = 1,
    noise_perc: float = 10,
    window_size: int | None = None,
) -> Array:
    """Finds peaks of a noisy signal: those that stand at many scales.

    Args:
      vector: real array-like[n]: the signal.
      widths: real array-like[w]: the scales, which should include the width of a peak.
      wavelet: a function of a number of points and a width that returns array[points];
        None is the Ricker wavelet.
      max_distances: real array-like[w]: how far maxima of two scales in a row may be
        apart; None is a quarter of the width.
      gap_thresh: over how many scales a line may be broken; None is the first width.
      min_length: the number of scales of a line; None is a quarter of all.
      min_snr: the least ratio of signal and noise.
      noise_perc: which percentile of the narrowest scale is the noise.
      window_size: over how many samples it is taken; None is n / 20.

    Returns:
      int32[k], ascending indices. They are computed on the host.

    Raises:
      ArgumentError: a width is not positive.
      ConcretizationError: the signal is traced.
      ShapeError: an argument is not a vector, or `max_distances` is shorter than
        `widths`.

    Example:
      >>> x = np.arange(0, np.pi, 0.05)
      >>> find_peaks_cwt(np.sin(x), np.arange(1, 10))
      Array([32], dtype=int32)

    Source: `scipy.signal.find_peaks_cwt`.
    """
    name = "find_peaks_cwt"
    host = [known(numbers(v), name) for v in (vector, widths)]
    if host[0] is None or host[1] is None:
        raise ConcretizationError(
            f"{name}: the number of peaks depends on values that are traced: call it "
            "outside of jit and grad, or find_peaks with size"
        )
    x, scales = np.asarray(host[0], float), np.atleast_1d(np.asarray(host[1]))
    for what, values in (("vector", x), ("widths", scales)):
        if values.ndim != 1 or not values.size:
            raise ShapeError(
                f"{name}: {what} must be a vector, got the shape {values.shape}"
            )
    if not (scales > 0).all():
        raise ArgumentError(f"{name}: widths must be positive, got {scales.tolist()}")
    near = scales / 4.0 if max_distances is None else np.asarray(max_distances)
    if near.ndim != 1 or near.size < scales.size:
        raise ShapeError(
            f"{name}: max_distances must have a number for each of {scales.size} "
            f"widths, got the shape {near.shape}"
        )
    matrix = _transformed(x, _ricker if wavelet is None else wavelet, scales)
    gap = np.ceil(scales[0]) if gap_thresh is None else gap_thresh
    least = np.ceil(scales.size / 4) if min_length is None else min_length
    window = int(np.ceil(x.size / 20) if window_size is None else window_size)
    noise = _noise(matrix[0], window, noise_perc)
    found = []
    for line in _ridges(matrix, near, gap):
        # Lines begin at wide scales: the last point is that of the narrowest one.
        row, column = line.rows[-1], line.columns[-1]
        if len(line.rows) < least:
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            quiet = abs(matrix[row, column] / noise[column]) < min_snr
        if not quiet:
            found.append(column)
    return fnp.asarray(np.sort(np.asarray(found, np.int32)))
