"""Vector quantization: `fxflow.scipy.cluster.vq`."""

from __future__ import annotations

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact

__all__ = ["vq"]


@library("check_finite")
def vq(
    obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True
) -> tuple[Array, Array]:
    """Returns the nearest code of each observation, and how far it is.

    Args:
      obs: real array-like[m, d], or [m] of numbers.
      code_book: real array-like[k, d], or [k].
      check_finite: has no effect.

    Returns:
      int32[m], the first of equally near codes, and float[m], the distances.

    Raises:
      ShapeError: they are not vectors of one length, or there is no code.

    Special cases:
      The derivative of a distance of 0 is 0.

    Example:
      >>> vq(np.array([0.0, 4.0, 9.0]), np.array([0.0, 10.0]))
      (Array([0, 0, 1], dtype=int32), Array([0., 4., 1.], dtype=float32))

    Source: `scipy.cluster.vq.vq`.
    """
    x, codes = promote_inexact("vq", obs, code_book)
    dims = x.aval.ndim, codes.aval.ndim
    fits = dims in ((1, 1), (2, 2)) and x.aval.shape[1:] == codes.aval.shape[1:]
    if not fits or not codes.aval.shape[0]:
        raise ShapeError(
            "vq: takes observations [m, d] and at least one code [k, d], got "
            f"{x.aval} and {codes.aval}"
        )
    if x.aval.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    apart = x[:, None] - codes
    squares = fnp.sum(lax.square(apart), axis=-1)
    nearest = fnp.argmin(squares, axis=-1)
    square = fnp.take_along_axis(squares, nearest[:, None], axis=-1)[:, 0]
    away = square > 0
    distance = fnp.where(away, lax.sqrt(fnp.where(away, square, 1)), square)
    return convert(nearest, dtypes.int32), distance


_public(globals(), __all__)
