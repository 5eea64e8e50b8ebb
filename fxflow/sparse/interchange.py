"""SciPy's sparse arrays: what a pattern and values are made of, and the reverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse.pattern import FORMATS, Pattern


def scipy_sparse(name: str) -> Any:
    """Returns `scipy.sparse`.

    Args:
      name: of the function that needs it, for the message.

    Raises:
      ImportError: SciPy is not installed.
    """
    try:
        import scipy.sparse
        import scipy.sparse.linalg
    except ImportError as error:
        raise ImportError(
            f"{name} needs SciPy, which is not installed: pip install scipy"
        ) from error
    return scipy.sparse


def is_scipy(value: Any) -> bool:
    """Returns whether a value is a sparse array or matrix of SciPy."""
    module = type(value).__module__
    return module.startswith("scipy.sparse") and hasattr(value, "tocoo")


def scipy_parts(array: Any) -> tuple[Pattern, np.ndarray]:
    """Returns the pattern and the values of a sparse array of SciPy.

    Args:
      array: a sparse array or matrix of two axes; lil and dok become csr.

    Raises:
      ArgumentError: it is not one.
      ShapeError: it has the wrong number of axes.
    """
    if not is_scipy(array):
        raise ArgumentError(
            f"from_scipy: expected an array of scipy.sparse, got {array!r}"
        )
    if array.ndim != 2:
        raise ShapeError(f"from_scipy: the array has {array.ndim} axes, not two")
    if array.format not in FORMATS:
        array = array.tocsr()
    if array.format == "coo":
        arrays = tuple(array.coords)
    else:
        arrays = tuple(getattr(array, name) for name in FORMATS[array.format])
    data: np.ndarray = array.data
    return Pattern(array.format, array.shape, arrays, data.shape), data


def scipy_array(pattern: Pattern, values: np.ndarray) -> Any:
    """Returns a sparse array of SciPy.

    Args:
      pattern: of the array, whose format it has.
      values: of the array.
    """
    arrays = tuple(pattern.arrays.values())
    given: Any = (values, *reversed(arrays))  # indices come before indptr
    if pattern.format == "coo":
        given = (values, arrays)
    make = getattr(scipy_sparse("to_scipy"), f"{pattern.format}_array")
    return make(given, shape=pattern.shape)
