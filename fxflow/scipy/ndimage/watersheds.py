"""Watersheds: parts of an image that grow from markers."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.callbacks import pure_callback
from fxflow.numpy._operands import ArrayLike, array_of
from fxflow.scipy.ndimage._neighbourhoods import host
from fxflow.scipy.ndimage.filters import _result
from fxflow.scipy.ndimage.morphology import _structure


def _ndimage() -> Any:
    """Returns `scipy.ndimage`.

    Raises:
      ImportError: SciPy is not installed.
    """
    return importlib.import_module("scipy.ndimage")


def watershed_ift(
    input: ArrayLike, markers: ArrayLike, structure: Any = None, output: Any = None
) -> Array:
    """Grows markers over an image, along paths whose greatest step is least.

    Args:
      input: uint8 or uint16 array-like[...].
      markers: int array-like[...] of the same shape; markers below 0 are background,
        which grows after the others.
      structure: bool array-like[3, …, 3], symmetric about its middle, known: which
        neighbours are connected with an element; None is those that share a side.
      output: dtype of the result; None: that of `markers`.

    Returns:
      For each element the marker that has reached it, an array of the shape of `input`.

    Raises:
      DtypeError: the dtypes are others.
      ShapeError: the markers or the structure have the wrong shape.
      ArgumentError: the structure is traced or not symmetric, or `output` is an array.

    Example:
      >>> x = np.array([0, 0, 9, 0, 0], np.uint8)
      >>> watershed_ift(x, np.array([1, 0, 0, 0, 2]))
      Array([1, 1, 2, 2, 2], dtype=int32)

    Source: `scipy.ndimage.watershed_ift`, on the host: the order of a queue decides
    which of equal markers takes an element. Falcão, Stolfi and Lotufo, The Image
    Foresting Transform, 2004.
    """
    name = "watershed_ift"
    x, marks = array_of(input, name), array_of(markers, name)
    if x.dtype not in (dtypes.uint8, dtypes.uint16):
        raise DtypeError(f"{name}: input must be uint8 or uint16, got {x.aval}")
    if np.dtype(marks.dtype).kind != "i":
        raise DtypeError(f"{name}: markers must be signed integers, got {marks.aval}")
    if x.shape != marks.shape or not x.ndim:
        raise ShapeError(
            f"{name}: input and markers must have one shape and an axis, got {x.aval} "
            f"and {marks.aval}"
        )
    bits = _structure(x.ndim, 1)
    if structure is not None:
        bits = host(name, "structure", structure).astype(bool)
        if bits.shape != (3,) * x.ndim:
            raise ShapeError(
                f"{name}: structure must have shape {(3,) * x.ndim} for {x.aval}, got "
                f"{bits.shape}"
            )
        if (bits != bits[(slice(None, None, -1),) * x.ndim]).any():
            raise ArgumentError(f"{name}: structure must be symmetric about its middle")

    def run(x: Any, marks: Any) -> Any:
        x, marks = np.asarray(x), np.asarray(marks)
        if not x.size:
            return marks
        return _ndimage().watershed_ift(x, marks, bits)

    like = ShapeDtypeStruct(marks.shape, marks.dtype)
    found = pure_callback(run, like, x, marks, vmap_method="sequential")
    return _result(name, found, output)
