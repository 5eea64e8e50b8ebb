"""Filters without feedback, by windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural, number
from fxflow.scipy.signal._recursions import Coefficients, known, numbers
from fxflow.scipy.signal._windows import window_of

_FIRST = {"lowpass": True, "bandstop": True, "highpass": False, "bandpass": False}

_docs = shared("""
    Args:
      numtaps: the number of coefficients.
      window: its name, "hamming" and the like, or a tuple of it and its parameters.
      fs: the sampling rate; None is 2, so that frequencies are parts of half of it.

    Returns:
      Float array[numtaps], symmetric.

    Source: `scipy.signal.{name}`.
""")


def _window(name: str, window: Any, n: int) -> Any:
    """Returns a symmetric window of `n` points."""
    if n == 1:
        return np.ones(1)
    return np.append(window_of(name, window, n - 1), window_of(name, window, n - 1)[0])


def _kaiser(numtaps: int, width: float, rate: float) -> Any:
    """Returns a Kaiser window's name for a transition of a width."""
    attenuation = 2.285 * (numtaps - 1) * np.pi * width / (rate / 2) + 7.95
    if attenuation > 50:
        beta = 0.1102 * (attenuation - 8.7)
    elif attenuation > 21:
        beta = 0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21)
    else:
        beta = 0.0
    return ("kaiser", beta)


def _bands(name: str, pass_zero: Any, count: int) -> bool:
    """Returns whether the band at frequency 0 passes."""
    if isinstance(pass_zero, str):
        if pass_zero not in _FIRST:
            listed = ", ".join(f'"{k}"' for k in _FIRST)
            raise ArgumentError(
                f"{name}: pass_zero must be a bool or one of {listed}, got "
                f"{pass_zero!r}"
            )
        one = pass_zero in ("lowpass", "highpass")
        if one != (count == 1):
            raise ArgumentError(
                f"{name}: pass_zero={pass_zero!r} needs "
                f"{'one cutoff' if one else 'at least two cutoffs'}, got {count}"
            )
        return _FIRST[pass_zero]
    return bool(pass_zero)


@_docs
def firwin(
    numtaps: int,
    cutoff: Coefficients,
    *,
    width: float | None = None,
    window: Any = "hamming",
    pass_zero: bool | str = True,
    scale: bool = True,
    fs: float | None = None,
) -> Array:
    """Designs a filter by a window over the ideal response.

    Args:
      cutoff: the edges of the bands, ascending, in 0 … fs / 2; they may be traced.
      width: width of the transitions, for a Kaiser window in place of `window`.
      pass_zero: whether the band at 0 passes; or "lowpass", "highpass", "bandpass" or
        "bandstop".
      scale: whether the response is 1 in the middle of the first band that passes: at
        0, at fs / 2, or in between.

    Raises:
      ArgumentError: an edge is out of range or they do not ascend, the window is
        unknown, or an even number of coefficients should pass fs / 2.
      ShapeError: `cutoff` is not a vector.

    Example:
      >>> firwin(3, 0.5).round(3)
      Array([0.046, 0.908, 0.046], dtype=float32)
    """
    name = "firwin"
    numtaps = natural(name, "numtaps", numtaps)
    rate = 2.0 if fs is None else number(name, "fs", fs)
    host = known(numbers(cutoff), name)
    xp: Any = fnp if host is None else np
    edges = fnp.atleast_1d(cutoff) if host is None else np.atleast_1d(host)
    if edges.ndim != 1 or not edges.size:
        raise ShapeError(f"{name}: cutoff must be a number or a vector, got {edges}")
    if host is not None:
        edges = edges.astype(np.float64)
        if not (np.all(edges > 0) and np.all(edges < rate / 2)):
            raise ArgumentError(
                f"{name}: cutoff must lie between 0 and fs / 2 = {rate / 2:g}, got "
                f"{edges.tolist()}"
            )
        if not np.all(np.diff(edges) > 0):
            raise ArgumentError(f"{name}: cutoff must ascend, got {edges.tolist()}")
    first = _bands(name, pass_zero, edges.size)
    last = first == (edges.size % 2 == 0)
    if last and numtaps % 2 == 0:
        raise ArgumentError(
            f"{name}: an even number of coefficients cannot pass fs / 2: numtaps must "
            f"be odd, got {numtaps}"
        )
    if width is not None:
        window = _kaiser(numtaps, number(name, "width", width), rate)
    edges = edges / (rate / 2)
    middle = (numtaps - 1) / 2
    at = np.arange(numtaps) - middle
    # A lowpass of each edge, with signs that make the bands pass and stop in turns.
    taps: Any = 0.0
    sign = 1.0 if first else -1.0
    for k in range(edges.size):
        taps = taps + sign * edges[k] * xp.sinc(edges[k] * at)
        sign = -sign
    if last:
        taps = taps + np.sinc(at)
    taps = taps * _window(name, window, numtaps)
    if scale:
        if first:
            center: Any = 0.0
        elif edges.size == 1:
            center = 1.0
        else:
            center = (edges[0] + edges[1]) / 2
        taps = taps / xp.sum(taps * xp.cos(np.pi * at * center))
    return fnp.asarray(taps)


@_docs
def firwin2(
    numtaps: int,
    freq: Any,
    gain: Any,
    *,
    nfreqs: int | None = None,
    window: Any = "hamming",
    antisymmetric: bool = False,
    fs: float | None = None,
) -> Array:
    """Designs a filter whose response goes through given points.

    Args:
      freq: frequencies from 0 to fs / 2, ascending; two that are equal are a step.
      gain: what the response is there.
      nfreqs: points of the grid between; None is the least 2^k + 1 above `numtaps`.
      window: its name, a tuple of it and its parameters, or None for no window.
      antisymmetric: whether the coefficients are antisymmetric.

    Raises:
      ArgumentError: the frequencies do not go from 0 to fs / 2, a gain at an end is
        not 0 where the symmetry asks for it, or `nfreqs` is not above `numtaps`.
      ShapeError: `freq` and `gain` differ in length.

    Example:
      >>> round(float(firwin2(5, [0.0, 0.5, 1.0], [1.0, 1.0, 0.0]).sum()), 2)
      0.95
    """
    name = "firwin2"
    numtaps = natural(name, "numtaps", numtaps)
    rate = 2.0 if fs is None else number(name, "fs", fs)
    at, level = (np.array(v, np.float64) for v in (freq, gain))
    if at.ndim != 1 or at.shape != level.shape or at.size < 2:
        raise ShapeError(
            f"{name}: freq and gain must be vectors of one length, at least 2, got "
            f"shapes {at.shape} and {level.shape}"
        )
    at = at / (rate / 2)
    steps = np.diff(at)
    if at[0] != 0 or at[-1] != 1 or (steps < 0).any():
        raise ArgumentError(f"{name}: freq must ascend from 0 to fs / 2, got {freq}")
    if (steps[1:] + steps[:-1] == 0).any() or steps[0] == 0 or steps[-1] == 0:
        raise ArgumentError(f"{name}: only two inner frequencies may be equal")
    zero = {(False, 0): "end", (True, 1): "both", (True, 0): "start"}
    asked = zero.get((bool(antisymmetric), numtaps % 2), "")
    for where, value in (("start", level[0]), ("end", level[-1])):
        if asked in (where, "both") and value != 0:
            raise ArgumentError(
                f"{name}: the gain at the {where} must be 0 for {numtaps} "
                f"coefficients, antisymmetric={antisymmetric}, got {value}"
            )
    grid = 1 + 2 ** int(np.ceil(np.log2(numtaps))) if nfreqs is None else nfreqs
    if numtaps >= grid:
        raise ArgumentError(f"{name}: nfreqs must be above numtaps, got {grid}")
    tiny = np.finfo(np.float64).eps
    twins = np.flatnonzero(steps == 0)
    at[twins] -= tiny
    at[twins + 1] += tiny
    x = np.linspace(0.0, 1.0, grid)
    response = np.interp(x, at, level)
    shift = np.exp(-(numtaps - 1) / 2 * 1j * np.pi * x)
    if antisymmetric:
        shift = shift * 1j
    taps = np.fft.irfft(response * shift)[:numtaps]
    if window is not None:
        taps = taps * _window(name, window, numtaps)
    if antisymmetric and numtaps % 2:
        taps[numtaps // 2] = 0.0
    return fnp.asarray(taps)


def firwin_2d(
    hsize: Any,
    window: Any,
    *,
    fc: Any = None,
    fs: float = 2,
    circular: bool = False,
    pass_zero: bool | str = True,
    scale: bool = True,
) -> Array:
    """Designs a filter of images by windows.

    Args:
      hsize: the numbers of rows and columns.
      window: the windows of rows and columns, as `window` of `firwin`; or one window if
        `circular`.
      fc: the edge, or both edges, as `cutoff` of `firwin`.
      fs: the sampling rate.
      circular: whether the coefficients depend on the distance to the middle, rather
        than being products of those of a row and a column.
      pass_zero: see `firwin`.
      scale: see `firwin`.

    Returns:
      Float array[hsize], [hsize[1], hsize[0]] if `circular`.

    Raises:
      ArgumentError: `hsize` or `window` is not a pair, or `fc` is missing.

    Example:
      >>> firwin_2d((3, 3), ("hamming", "hamming"), fc=0.4).sum().round(3)
      Array(1., dtype=float32)

    Source: `scipy.signal.firwin_2d`.
    """
    name = "firwin_2d"
    if not isinstance(hsize, tuple | list) or len(hsize) != 2:
        raise ArgumentError(f"{name}: hsize must be a pair, got {hsize!r}")
    if fc is None:
        raise ArgumentError(f"{name}: fc must be given")
    rows, columns = (natural(name, "hsize", n) for n in hsize)
    options: dict[str, Any] = {"pass_zero": pass_zero, "scale": scale, "fs": fs}
    if circular:
        n = max(rows, columns) * 8
        taps = firwin(n, fc, window=window, **options)
        across, down = np.linspace(-1, 1, rows), np.linspace(-1, 1, columns)
        radius = np.hypot(across, down[:, None])
        places = fnp.asarray(np.linspace(0, 1, n), taps.dtype)
        return fnp.interp(fnp.asarray(radius, taps.dtype), places, taps)
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise ArgumentError(f"{name}: window must be a pair, got {window!r}")
    both = [
        firwin(n, fc, window=one, **options)
        for n, one in zip((rows, columns), window, strict=True)
    ]
    return fnp.outer(both[0], both[1])
