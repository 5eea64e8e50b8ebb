"""Types for annotations: what functions take for an array, a dtype, a shape.

- `ArrayLike`: arrays, NumPy's arrays and scalars, Python numbers, and objects that
  stand for an array (`HasArray`). Lists do not.
- `DTypeLike`: names, scalar types, `numpy.dtype`s, dtypes of keys, and objects that
  stand for a dtype (`HasDtype`); `DType` is what these become.
- `Shape`: the shape of an array. `ShapeLike` is what functions take for one: an integer
  or several.
- `Axes`: one axis, several, or None for all.

Source: JAX `jax.typing`, NumPy `numpy.typing`.
"""

from fxflow.core.arrays import Array, Shape
from fxflow.core.arrays.dtypes import DType
from fxflow.core.boundary import public as _public
from fxflow.numpy._operands import (
    ArrayLike,
    Axes,
    DTypeLike,
    HasArray,
    HasDtype,
    ShapeLike,
)

__all__ = [
    "Array",
    "ArrayLike",
    "Axes",
    "DType",
    "DTypeLike",
    "HasArray",
    "HasDtype",
    "Shape",
    "ShapeLike",
]

_public(globals(), __all__)
