"""Products with weights of one byte: no array of the weights as floats.

XLA converts all weights to floats and then multiplies. A program converts the weights
of some units while it multiplies, so it reads a quarter of the memory.
"""

from __future__ import annotations

from typing import Any

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, typeof
from fxflow.kernels.body import dot, wide_dtype
from fxflow.kernels.notation import kernel, like

#: Weights for which a kernel is worth compiling, and rows for which it is faster.
_LEAST, _ROWS = 1 << 16, 64
#: Rows that are multiplied without packing the weights.
_FEW = 2


def scaled_product(x: Any, weights: Any, scale: Any) -> Array:
    """Returns `x @ (weights * scale)`.

    Args:
      x: float[m, k].
      weights: int8[k, n].
      scale: [n], of `wide_dtype` of that of `x`.

    Returns:
      float[m, n], of the dtype of `x`; sums of half precision are in float32.
    """
    rows, aval = typeof(x).shape[0], typeof(weights)
    if aval.size < _LEAST or not 0 < rows <= _ROWS:
        plain: Array = _plain(x, weights, scale)
        return plain
    run: Any = _by_rows if rows <= _FEW else _by_tiles
    most = 64 if rows <= _FEW else 256
    # Blocks that reach over the end of an array are copied.
    even = (n for n in (most, most // 2, most // 4) if aval.shape[1] % n == 0)
    out: Array = run(x, weights, scale, units=next(even, most))
    return out


def _plain(x: Any, weights: Any, scale: Any) -> Any:
    """Returns what the kernels do, with all weights as floats."""
    wide = wide_dtype(x.dtype)
    products = fnp.matmul(x.astype(wide), weights.astype(wide))
    return (products * scale).astype(x.dtype)


def _result(x: Any, weights: Any, scale: Any) -> Any:
    return like(x, shape=(x.shape[0], weights.shape[1]))


@kernel(
    "m k, k n:units, n:units -> m n:units",
    out=_result,
    reference=_plain,
    name="int8_rows",
)
def _by_rows(x: Any, weights: Any, scale: Any, out: Any, *, units: int) -> None:
    wide = wide_dtype(x.dtype)

    def step(j: Any, total: Any) -> Any:
        row = weights[j].astype(wide)
        return total + x[:, j].astype(wide)[:, None] * row[None]

    total = lax.fori_loop(0, weights.shape[0], step, fnp.zeros(out.shape, wide))
    out[...] = (total * scale[...]).astype(out.dtype)


@kernel(
    "m k, k n:units, n:units -> m n:units",
    out=_result,
    reference=_plain,
    name="int8",
)
def _by_tiles(x: Any, weights: Any, scale: Any, out: Any, *, units: int) -> None:
    wide = wide_dtype(x.dtype)
    products = dot(x[...].astype(wide), weights[...].astype(wide))
    out[...] = (products * scale[...]).astype(out.dtype)
