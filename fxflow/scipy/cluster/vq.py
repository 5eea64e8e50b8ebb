"""Vector quantization: `fxflow.scipy.cluster.vq`."""

from __future__ import annotations

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.kernels.gallery.nearest import nearest
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact

__all__ = ["vq"]

#: Lengths of vectors for which products with all codes are faster than differences;
#: SciPy's bound, too.
_FEATURES = 5


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
      int32[m], the first of equally near codes, and float[m], the distances. With 5
      features or more, codes are compared by products, which rounding errors may
      change for codes that are almost equally near.

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
    if codes.aval.shape[1] < _FEATURES:
        apart = lax.square(x[:, None] - codes)
        found = convert(fnp.argmin(fnp.sum(apart, axis=-1), axis=-1), dtypes.int32)
    else:
        found = nearest(lax.stop_gradient(x), lax.stop_gradient(codes))
    square = fnp.sum(lax.square(x - codes[found]), axis=-1)
    away = square > 0
    distance = fnp.where(away, lax.sqrt(fnp.where(away, square, 1)), square)
    return found, distance


_public(globals(), __all__)
