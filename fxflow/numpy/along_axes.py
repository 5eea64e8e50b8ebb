"""Functions of vectors, applied along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Array
from fxflow.errors import ShapeError
from fxflow.lax.axes import canonical_axes, canonical_axis
from fxflow.numpy.creation import asarray
from fxflow.numpy.shapes import expand_dims
from fxflow.transforms.vmap import vmap


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Array:
    """Applies a function to each vector along an axis.

    Args:
      func1d: of a vector (and what follows); it is vectorized.
      axis: the axis.
      arr: array-like.
      *args: passed to the function.
      **kwargs: passed to the function.

    Returns:
      Array in which what the function returns takes the place of the axis.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> apply_along_axis(lambda v: v[0] + v[-1], 1, np.array([[1, 2, 3], [4, 5, 6]]))
      Array([ 4, 10], dtype=int32)

    Source: `numpy.apply_along_axis`.
    """
    x = asarray(arr)
    axis = canonical_axis("apply_along_axis", axis, x.ndim)
    mapped: Callable[..., Any] = lambda vector: func1d(vector, *args, **kwargs)
    # Axes behind are mapped to the end, those in front to the front.
    for d in range(1, x.ndim - axis):
        mapped = vmap(mapped, in_axes=d, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    out: Array = mapped(x)
    return out


def apply_over_axes(
    func: Callable[[Any, int], Any], a: Any, axes: int | Sequence[int]
) -> Array:
    """Applies a function that reduces an axis, for several axes in turn.

    Args:
      func: of an array and an axis; if the axis disappears, it comes back as length 1.
      a: array-like.
      axes: int or sequence of ints.

    Returns:
      Array with as many axes as `a`.

    Raises:
      ShapeError: the function returns another number of axes.

    Example:
      >>> apply_over_axes(fnp.sum, np.arange(6).reshape(1, 2, 3), (0, 2))
      Array([[[ 3],
              [12]]], dtype=int32)

    Source: `numpy.apply_over_axes`.
    """
    x = asarray(a)
    for d in canonical_axes("apply_over_axes", axes, x.ndim, "axes"):
        out = asarray(func(x, d))
        if out.ndim == x.ndim - 1:
            out = expand_dims(out, d)
        if out.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: the function made {out.aval} of {x.aval}; it must "
                "keep "
                "the axis, or drop that axis alone"
            )
        x = out
    return x
