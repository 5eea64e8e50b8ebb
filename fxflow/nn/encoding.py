"""One-hot vectors."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.runtime.library import library
from fxflow.core.sizes import length_of
from fxflow.errors import AxisError, DtypeError, ShapeError
from fxflow.numpy._operands import DTypeLike


@library("num_classes", "dtype", "axis")
def one_hot(
    x: Any, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1
) -> Array:
    """Makes of each index the vector that is 1 at the index and 0 elsewhere.

    Args:
      x: real array of indices.
      num_classes: length of the vectors.
      dtype: dtype of the result; None means the default float.
      axis: where the vectors lie in the result.

    Returns:
      Array with one axis more than `x`, of length `num_classes`.

    Raises:
      AxisError: the result has no such axis.
      DtypeError: `x` is complex.
      ShapeError: `num_classes` is negative.

    Special cases:
      An index outside the range gives zeros.

    Example:
      >>> nn.one_hot(np.array([1, 5]), 3).tolist()
      [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    if not is_arraylike(x):
        raise not_an_array(x, "one_hot: x is")
    aval = typeof(x)
    if dtypes.is_key(aval.dtype) or dtypes.is_complex(aval.dtype):
        raise DtypeError(f"one_hot: indices must be real numbers, got {aval}")
    count = length_of(num_classes)
    if count < 0:
        raise ShapeError(f"one_hot: num_classes must not be negative, got {count}")
    ndim = aval.ndim + 1
    if not -ndim <= axis < ndim:
        raise AxisError(f"one_hot: the result of {aval} has no axis {axis}")
    axis %= ndim
    chosen = dtypes.default_float() if dtype is None else dtypes.dtype(dtype)
    if dtypes.is_bool(aval.dtype):
        x = lax.convert_element_type(x, dtypes.int32)
    own = typeof(x).dtype
    shape = (*aval.shape[:axis], count, *aval.shape[axis:])
    kept = (*range(axis), *range(axis + 1, ndim))
    classes = lax.broadcasted_iota(own, shape, axis)
    same = lax.eq(lax.broadcast_in_dim(x, shape, kept), classes)
    return lax.convert_element_type(same, chosen)
