"""Normalization over groups of features and all positions of an example.

XLA walks through the array for each mean, and a group is not a row: its numbers lie
apart. A program has an example. It adds up the features over all positions, which are
rows of adjacent numbers, and then those of a group.
"""

from __future__ import annotations

import math
from typing import Any

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.kernels.notation import kernel, like

#: Numbers in all for which a kernel is worth compiling, and most numbers of an example.
_LEAST, _MOST = 1 << 16, 1 << 20
#: Features, which are adjacent numbers, that fill a vector.
_FEATURES = 8


def is_worthwhile(x: Any) -> bool:
    """Returns whether the kernel is faster than XLA's operations.

    Args:
      x: float[batch, ..., features].
    """
    aval = typeof(x)
    if aval.is_symbolic or aval.ndim < 3 or dtypes.bits(aval.dtype) > 32:
        return False
    large = aval.size >= _LEAST and math.prod(aval.shape[1:]) <= _MOST
    return large and aval.shape[0] > 1 and aval.shape[-1] >= _FEATURES


def normalized(
    x: Any, scale: Any, bias: Any, epsilon: Any, *, groups: int, dtype: Any
) -> Array:
    """Returns numbers normalized over groups, times the scale plus the bias.

    Args:
      x: float[batch, ..., features].
      scale, bias: float[features].
      epsilon: float[].
      groups: of neighbouring features; divides their number.
      dtype: dtype of the result.

    Returns:
      Array of the shape of `x`.
    """
    shape = typeof(x).shape
    flat = fnp.reshape(x, (shape[0], -1, shape[-1]))
    given = fnp.asarray(epsilon, "float32")
    out = _by_examples(flat, scale, bias, given, groups=groups, dtype=dtype)
    whole: Array = fnp.reshape(out, shape)
    return whole


def _plain(
    x: Any, scale: Any, bias: Any, epsilon: Any, *, groups: int, dtype: Any
) -> Any:
    """Returns what the kernel does, on whole arrays."""
    batch, positions, features = x.shape
    wide = x.astype("float32").reshape(batch, positions, groups, features // groups)
    deviation = wide - fnp.mean(wide, (1, 3), keepdims=True)
    variance = fnp.mean(fnp.square(deviation), (1, 3), keepdims=True)
    out = (deviation * lax.rsqrt(variance + epsilon)).reshape(x.shape)
    return (out * scale + bias).astype(dtype)


@kernel(
    "n:1 p c, c, c, -> n:1 p c",
    out=lambda x, scale, bias, epsilon, *, dtype: like(x, dtype),
    reference=_plain,
    name="group_norm",
    platforms=("cpu",),
)
def _by_examples(
    x: Any, scale: Any, bias: Any, epsilon: Any, out: Any, *, groups: int, dtype: Any
) -> None:
    _, positions, features = x.shape
    width = features // groups

    def mean(sums: Any) -> Any:
        """Returns the means of the groups, for each feature."""
        if width > 1:
            sums = fnp.sum(sums.reshape(groups, width), 1)
            sums = fnp.broadcast_to(sums[:, None], (groups, width)).reshape(features)
        return sums / (positions * width)

    v = x[0].astype("float32")
    deviation = v - mean(fnp.sum(v, 0))
    variance = mean(fnp.sum(deviation * deviation, 0))
    factor = lax.rsqrt(variance + epsilon[...]) * scale[...].astype("float32")
    out[0] = (deviation * factor + bias[...].astype("float32")).astype(dtype)
