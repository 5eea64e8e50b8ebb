"""B-splines on a grid: their coefficients, and how a place reads them.

The coefficients of a spline through samples are what a recursive filter gives that runs
forward and backward. Its answer to one sample falls by a constant factor from element
to element, so that a few dozen neighbours on both sides are all that rounding leaves:
here the filter is a banded matrix, multiplied with blocks of the samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes

# Poles inside the unit circle by order: M. Unser, Splines: A Perfect Fit for Signal and
# Image Processing, 1999.
_POLES = {
    2: (np.sqrt(8) - 3,),
    3: (np.sqrt(3) - 2,),
    4: (
        np.sqrt(664 - np.sqrt(438976)) + np.sqrt(304) - 19,
        np.sqrt(664 + np.sqrt(438976)) - np.sqrt(304) - 19,
    ),
    5: (
        np.sqrt(67.5 - np.sqrt(4436.25)) + np.sqrt(26.25) - 6.5,
        np.sqrt(67.5 + np.sqrt(4436.25)) - np.sqrt(26.25) - 6.5,
    ),
}

#: What `numpy.pad` calls the boundaries between which a spline's coefficients repeat.
#: Splines of "constant" and "wrap" are mirrored: SciPy has no others.
COEFFICIENTS = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "nearest": "symmetric",
    "mirror": "reflect",
    "constant": "reflect",
    "grid-constant": "reflect",
    "wrap": "reflect",
    "grid-wrap": "wrap",
}


def _answer(order: int, dtype: Any) -> np.ndarray[Any, Any]:
    """Returns the filter's answer to one sample, as far as a dtype can tell it."""
    poles = _POLES[order]
    # Where the slowest pole's power is far below the last place of a number.
    smallest = 1e-18 if dtypes.is_wide(dtype) else 1e-10
    reach = int(np.ceil(np.log(smallest) / np.log(abs(poles[0]))))
    at = np.abs(np.arange(-reach, reach + 1))
    out = np.ones(1)
    for z in poles:
        # A pole's part: -6 z / (1 - z²) z^|k| for cubics, with a sum of 1.
        part = z**at * ((1 - z) / (1 + z))
        out = np.convolve(out, part)
    middle = out.size // 2
    return out[middle - reach : middle + reach + 1]


def prefiltered(x: Array, order: int, axis: int, boundary: str) -> Array:
    """Returns the coefficients of the splines through samples along one axis.

    Args:
      x: inexact array[...].
      order: order of the spline, 0 to 5.
      axis: the axis.
      boundary: how the samples go on, as `numpy.pad` calls it.
    """
    n = x.aval.shape[axis]
    if order < 2 or n < 2 or not x.aval.size:
        return x
    answer = _answer(order, x.aval.dtype)
    reach = answer.size // 2
    real = dtypes.to_real(x.aval.dtype)
    x = fnp.moveaxis(x, axis, -1)
    if n <= 4 * reach:
        # One matrix: what is beyond the ends is folded back onto the samples.
        places = np.pad(np.arange(n), reach, boundary)  # type: ignore[call-overload]
        matrix = np.zeros((n, n))
        for k in range(n):
            np.add.at(matrix[:, k], places[k : k + 2 * reach + 1], answer)
        out = fnp.matmul(x, fnp.asarray(matrix, real), precision="highest")
        return fnp.moveaxis(out, -1, axis)
    length = max(64, 2 * reach)
    count = -(-n // length)
    outer = [(0, 0)] * (x.aval.ndim - 1)
    wide = fnp.pad(x, [*outer, (reach, reach)], boundary)
    wide = fnp.pad(wide, [*outer, (0, (count + 1) * length - n - 2 * reach)])
    rows = fnp.reshape(wide, (*x.aval.shape[:-1], count + 1, length))
    rows = fnp.concatenate([rows[..., :-1, :], rows[..., 1:, : 2 * reach]], -1)
    band = np.zeros((length + 2 * reach, length))
    for k in range(length):
        band[k : k + 2 * reach + 1, k] = answer
    out = fnp.matmul(rows, fnp.asarray(band, real), precision="highest")
    out = fnp.reshape(out, (*x.aval.shape[:-1], count * length))[..., :n]
    return fnp.moveaxis(out, -1, axis)


def taps(place: Any, order: int) -> tuple[Any, list[Any]]:
    """Returns the first coefficient that a place reads, and the weights of each.

    Args:
      place: real array, in elements.
      order: order of the spline, 0 to 5.

    Returns:
      Whole numbers of the dtype of `place`, and order + 1 weights of its shape:
      B-splines on whole knots, or on halves if the order is even (de Boor's recursion).
    """
    xp: Any = np if isinstance(place, np.ndarray) else fnp
    shifted = place if order % 2 else place + 0.5
    if xp is fnp:
        # A compiled program may compute a place twice, with other rounding errors: once
        # to read coefficients and once to weigh them. Near knots both are the knot.
        knot = fnp.round(shifted)
        apart = lax.stop_gradient(knot - shifted)
        near = 2 * float(np.finfo(place.dtype).eps) * (fnp.abs(knot) + 1)
        shifted = fnp.where(fnp.abs(apart) <= near, shifted + apart, shifted)
    first = xp.floor(shifted)
    t = shifted - first
    weights: list[Any] = [xp.ones_like(t)]
    for k in range(1, order + 1):
        rows = []
        for j in range(k + 1):
            part: Any = 0.0
            if j:
                part = part + (t - j + k) * weights[j - 1]
            if j < k:
                part = part + (j + 1 - t) * weights[j]
            rows.append(part / k)
        weights = rows
    return first - order // 2, weights
