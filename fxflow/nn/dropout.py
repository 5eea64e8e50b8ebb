"""Dropout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ArgumentError
from fxflow.lax.axes import canonical_axes
from fxflow.nn._layers import floats, shaped
from fxflow.numpy._operands import ArrayLike


def dropout(
    key: ArrayLike | None,
    x: ArrayLike,
    rate: float | ArrayLike,
    *,
    broadcast_axes: int | Sequence[int] = (),
    deterministic: bool = False,
) -> Array:
    r"""Makes each element 0 with a probability, and scales the others up.

    Each is multiplied by 0 with probability p, else by :math:`1/(1-p)`, so that the
    mean stays.

    Args:
      key: one key; None if `deterministic`.
      x: float[...].
      rate: p, from 0 to 1; a number, or a 0-d array, which may be traced.
      broadcast_axes: axes along which all elements are dropped or kept together.
      deterministic: whether to return `x` as it is, as when a model is evaluated.

    Returns:
      Array of the shape and dtype of `x`.

    Raises:
      ArgumentError: `key` is not a key, or a rate that is known is not from 0 to 1.
      AxisError: an axis is out of range.
      DtypeError: `x` or the rate has no floats.

    Special cases:
      What is dropped is 0 even where it was inf or nan, and has no derivative. A rate
      of 1 gives 0.

    Example:
      >>> x = nn.dropout(random.key(0), fnp.ones(1000), 0.5)
      >>> sorted(set(x.tolist())), bool(abs(x.mean() - 1) < 0.1)
      ([0.0, 2.0], True)

    Source: Srivastava et al. 2014; whole channels, by `broadcast_axes`: Tompson et al.
    2015.
    """
    floats("dropout", "x", x)
    shape, dtype = typeof(x).shape, typeof(x).dtype
    together = canonical_axes("dropout", broadcast_axes, len(shape), "broadcast_axes")
    if isinstance(rate, int | float) and not 0 <= rate <= 1:
        raise ArgumentError(f"dropout: rate must be from 0 to 1, got {rate}")
    if deterministic:
        return fnp.asarray(x)
    if key is None:
        raise ArgumentError(
            "dropout: key is None: pass a key, or deterministic=True to drop nothing"
        )
    kept: Any
    scale: Any
    if isinstance(rate, int | float):
        kept = 1.0 - rate
        scale = 1 / (kept or 1)
    else:
        kept = fnp.subtract(1, shaped("dropout", "rate", rate, (), "floats"))
        # A rate of 1 keeps nothing: the factor must still be a number.
        scale = fnp.divide(1, fnp.where(fnp.greater(kept, 0), kept, 1)).astype(dtype)
    drawn = [1 if axis in together else n for axis, n in enumerate(shape)]
    stays = random.bernoulli(key, kept, tuple(drawn))
    return fnp.where(stays, fnp.multiply(x, scale), 0)
