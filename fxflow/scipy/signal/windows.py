"""Windows: weights that fall off at both ends."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.lax.axes import natural
from fxflow.scipy.signal._windows import window_of


def get_window(window: Any, Nx: int, fftbins: bool = True) -> Array:
    """Returns a window by its name.

    Args:
      window: "hann", "hamming", "blackman", "tukey", "taylor" and the like; a tuple of
        a name and its parameters, such as ("gaussian", 3.0), ("kaiser", 8.0),
        ("chebwin", 60.0) or ("dpss", 2.5); or a number, a Kaiser window's shape.
      Nx: number of points.
      fftbins: whether they are one period, for spectra, or symmetric, for filters.

    Returns:
      Float array[Nx], computed on the host.

    Raises:
      ArgumentError: there is no such window, or it asks for other parameters.

    Example:
      >>> get_window("hann", 4)
      Array([0. , 0.5, 1. , 0.5], dtype=float32)

    Source: `scipy.signal.get_window`.
    """
    n = natural("get_window", "Nx", Nx)
    return fnp.asarray(window_of("get_window", window, n, bool(fftbins)))
