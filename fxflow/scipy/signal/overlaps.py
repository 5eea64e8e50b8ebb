"""Windows that overlap: whether their sums are even, and duals near a wanted one."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact
from fxflow.scipy.signal._recursions import known, numbers
from fxflow.scipy.signal._slices import canonical_dual
from fxflow.scipy.signal._windows import window_of

_docs = shared("""
    Args:
      window: its name, a tuple of it and its parameters, or array-like[nperseg].
      nperseg: the length of a slice.
      noverlap: by how many samples slices overlap.
      tol: what counts as 0.

    Returns:
      Bool array[].

    Raises:
      ArgumentError: unknown window, or `noverlap` is not less than `nperseg`.
      ShapeError: the window is not a vector of `nperseg` elements.

    Source: `scipy.signal.{name}`.
""")


def _sums(name: str, window: Any, nperseg: int, noverlap: int, power: int) -> Any:
    """Returns the sums of powers of shifted windows: on the host where known."""
    m = natural(name, "nperseg", nperseg)
    overlap = natural(name, "noverlap", noverlap, 0)
    if overlap >= m:
        raise ArgumentError(
            f"{name}: noverlap must be less than nperseg = {m}, got {noverlap}"
        )
    if isinstance(window, str | tuple):
        win: Any = np.asarray(window_of(name, window, m), np.float64)
    else:
        host = known(numbers(window), name)
        win = promote_inexact(name, window)[0] if host is None else host
    if win.shape != (m,):
        raise ShapeError(
            f"{name}: window must be a vector of nperseg = {m} elements, got the shape "
            f"{win.shape}"
        )
    hop = m - overlap
    xp: Any = np if isinstance(win, np.ndarray) else fnp
    rows = xp.pad(win**power, (0, -m % hop)).reshape(-1, hop)
    return xp, xp.sum(rows, 0)


@_docs
def check_COLA(window: Any, nperseg: int, noverlap: int, tol: float = 1e-10) -> Array:
    """Returns whether shifted windows add up to a constant.

    Example:
      >>> bool(check_COLA("hann", 120, 60)), bool(check_COLA("hann", 120, 70))
      (True, False)
    """
    xp, sums = _sums("check_COLA", window, nperseg, noverlap, 1)
    return fnp.asarray(xp.max(xp.abs(sums - xp.median(sums))) < tol)


@_docs
def check_NOLA(window: Any, nperseg: int, noverlap: int, tol: float = 1e-10) -> Array:
    """Returns whether the squares of shifted windows add up to a sum without zeros.

    Example:
      >>> bool(check_NOLA("boxcar", 10, 0)), bool(check_NOLA("hann", 10, 0))
      (True, False)
    """
    xp, sums = _sums("check_NOLA", window, nperseg, noverlap, 2)
    return fnp.asarray(xp.min(xp.abs(sums)) > tol)


def closest_STFT_dual_window(
    win: ArrayLike,
    hop: int,
    desired_dual: ArrayLike | None = None,
    *,
    scaled: bool = True,
) -> tuple[Array, Array]:
    """Returns the dual window that is nearest to a wanted one.

    It is differentiable by both windows.

    Args:
      win: float or complex array-like[m]: the window of the transform.
      hop: how many samples lie between slices, 1 … m.
      desired_dual: array-like[m]: the wanted window; None is all 1.
      scaled: whether a multiple of the wanted one is as good.

    Returns:
      The dual window, array[m], and the multiple, array[]: 1 unless `scaled`.

    Raises:
      ArgumentError: `hop` is out of range, or the transform has no inverse.
      ShapeError: the windows are not vectors of one length.

    Example:
      >>> closest_STFT_dual_window(np.ones(4, np.float32), 2)[0]
      Array([0.5, 0.5, 0.5, 0.5], dtype=float32)

    Source: `scipy.signal.closest_STFT_dual_window`.
    """
    name = "closest_STFT_dual_window"
    (first,) = promote_inexact(name, numbers(win))
    wanted = fnp.ones_like(first) if desired_dual is None else numbers(desired_dual)
    window, dual = promote_inexact(name, first, wanted)
    if window.ndim != 1 or not window.size or dual.shape != window.shape:
        raise ShapeError(
            f"{name}: win and desired_dual must be vectors of one length, got "
            f"{window.aval} and {dual.aval}"
        )
    m, step = window.size, natural(name, "hop", hop)
    if step > m:
        raise ArgumentError(f"{name}: hop must be at most {m}, got {hop}")
    for what, values in (("win", window), ("desired_dual", dual)):
        host = known(values, name)
        if host is not None and not np.isfinite(host).all():
            raise ArgumentError(f"{name}: {what} must be finite")
    canonical = canonical_dual(name, window, step)
    product = fnp.conj(window) * dual
    pieces = -(-m // step)
    rows = fnp.reshape(fnp.pad(product, (0, pieces * step - m)), (pieces, step))
    # The projection of the wanted window onto what is not a dual window.
    part = canonical * fnp.tile(fnp.sum(rows, 0), pieces)[:m]
    one = fnp.ones((), dtypes.to_real(window.dtype))
    if not scaled:
        return canonical + dual - part, one
    above = fnp.sum(fnp.conj(part) * canonical)
    below = fnp.sum(fnp.real(part) ** 2 + fnp.imag(part) ** 2)
    host = known(below, name)
    if host is not None and not host > np.finfo(host.dtype).resolution:
        raise ArgumentError(f"{name}: the multiple is not defined: give scaled=False")
    share = above / convert(below, window.dtype)
    return canonical + share * (dual - part), share
