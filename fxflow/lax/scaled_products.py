"""Products of arrays that are stored with scales of blocks."""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.conversion import convert
from fxflow.lax.dot import DotDimensionNumbers, dot_general
from fxflow.lax.elementwise import mul
from fxflow.lax.reshaping import reshape

_MATRICES: DotDimensionNumbers = (((1,), (0,)), ((), ()))


def _scaled(side: str, x: Any, scale: Any, contracting: Any, dtype: Any) -> Any:
    """Returns the numbers that `x` and its scales stand for."""
    out = convert(x, dtype)
    if scale is None:
        return out
    shape, scales = typeof(x).shape, typeof(scale).shape
    axes = [i % len(shape) for i in contracting] if shape else []
    if len(scales) != len(shape) or any(
        s == 0 or n % s or (n != s and i not in axes)
        for i, (n, s) in enumerate(zip(shape, scales, strict=False))
    ):
        raise ShapeError(
            f"scaled_dot: {side}_scale {typeof(scale)} must have a length that divides "
            f"each contracting axis of {side} {typeof(x)}, and the others' lengths"
        )
    # Each scale is repeated over its block.
    wide: list[int] = []
    kept: list[int] = []
    for n, s in zip(shape, scales, strict=True):
        kept.append(len(wide))
        wide += [s, n // s]
    repeated = broadcast_in_dim(convert(scale, dtype), wide, kept)
    return mul(out, reshape(repeated, shape))


def scaled_dot(
    lhs: Any,
    rhs: Any,
    *,
    lhs_scale: Any = None,
    rhs_scale: Any = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: Any = None,
) -> Array:
    """Multiplies block-scaled arrays: the elements of each block share a scale.

    Args:
      lhs: float[...], usually of 4 or 8 bits.
      rhs: float[...].
      lhs_scale: float[...] of the same rank and lengths, except along contracting axes,
        whose lengths are multiples of its own: one scale for each block; None is 1.
      rhs_scale: likewise.
      dimension_numbers: see `dot_general`; None multiplies matrices.
      preferred_element_type: dtype of the result; None is bfloat16. Sums have at least
        32 bits.

    Returns:
      An array as of `dot_general`.

    Raises:
      DtypeError: an operand is not floating point.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.array([[1.0, 2.0]], np.float32)
      >>> scaled_dot(x, x.T, lhs_scale=np.array([[4.0]], np.float32))
      Array([[20]], dtype=bfloat16)

    Source: JAX's `scaled_dot`; OCP Microscaling Formats, 2023.
    """
    numbers = _MATRICES if dimension_numbers is None else dimension_numbers
    for x in (lhs, rhs, lhs_scale, rhs_scale):
        if x is not None and not dtypes.is_floating(typeof(x).dtype):
            raise DtypeError(f"scaled_dot: takes floats, got {typeof(x)}")
    out = dtypes.dtype(
        dtypes.bfloat16 if preferred_element_type is None else preferred_element_type
    )
    dtype = dtypes.float64 if dtypes.bits(out) == 64 else dtypes.float32
    (left, right), _ = numbers
    a = _scaled("lhs", lhs, lhs_scale, left, dtype)
    b = _scaled("rhs", rhs, rhs_scale, right, dtype)
    product: Array = convert(dot_general(a, b, numbers), out)
    return product
