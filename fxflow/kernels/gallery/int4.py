"""Products with weights of 4 bits, two in a byte: no array of the weights as floats.

XLA takes the weights out of their bytes, converts all of them and then multiplies. A
program does so with those of some units while it multiplies, so it reads an eighth of
the memory of float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays import Array, typeof
from fxflow.kernels.body import dot, ds, wide_dtype
from fxflow.kernels.notation import kernel, like

#: Weights for which a kernel is worth compiling, and rows for which it is faster.
_LEAST, _ROWS = 1 << 16, 64
#: Rows that are multiplied without packing the weights.
_FEW = 4


def scaled_product(x: Any, weights: Any, scale: Any, zero: Any = None) -> Array:
    """Returns `x @ ((weights - zero) * scale)`.

    Args:
      x: float[m, k].
      weights: int8[ceil(k / 2), n]. The low four bits of a byte in row `i` are the
        weight in row `2i`, the high four bits that in row `2i + 1`, in two's
        complement.
      scale: [groups, n], of `wide_dtype` of that of `x`. Each group has as many bytes
        of a column.
      zero: like `scale`; None: 0.

    Returns:
      float[m, n], of the dtype of `x`; sums of half precision are in float32.
    """
    rows, k = typeof(x).shape
    aval, wide = typeof(weights), wide_dtype(x.dtype)
    if k % 2:
        x = fnp.pad(x, ((0, 0), (0, 1)))
    pairs: Any = fnp.reshape(x, (rows, aval.shape[0], 2))
    run: Any = _plain
    options = {}
    if aval.size >= _LEAST and 0 < rows <= _ROWS:
        run = _by_rows if rows <= _FEW else _by_tiles
        most = 64 if rows <= _FEW else 256
        # Blocks that reach over the end of an array are copied.
        even = (n for n in (most, most // 2, most // 4) if aval.shape[1] % n == 0)
        options = {"units": next(even, most)}
    # The kernels' sums are rounded once, behind what the zeros take away.
    even_x, odd_x = (pairs[..., i].astype(wide) for i in range(2))
    out: Any = run(even_x, odd_x, weights, scale, **options)
    if zero is not None:
        groups = typeof(scale).shape[0]
        shape = (rows, groups, aval.shape[0] // groups)
        sums = fnp.sum(fnp.reshape(even_x + odd_x, shape), -1)
        out = out - fnp.matmul(sums, zero.astype(wide) * scale)
    result: Array = out.astype(x.dtype)
    return result


def low(pairs: Any) -> Any:
    """Returns the weights in the low four bits of bytes, as int32."""
    return lax.shift_right_arithmetic(
        lax.shift_left(pairs.astype("int32"), np.int32(28)), np.int32(28)
    )


def high(pairs: Any) -> Any:
    """Returns the weights in the high four bits of bytes, as int32."""
    return lax.shift_right_arithmetic(pairs.astype("int32"), np.int32(4))


def _plain(even: Any, odd: Any, weights: Any, scale: Any) -> Any:
    """Returns what the kernels do, with all weights as floats."""
    groups, n = scale.shape
    shape = (groups, weights.shape[0] // groups, n)

    def scaled(w: Any) -> Any:
        floats = fnp.reshape(w.astype(even.dtype), shape) * scale[:, None]
        return fnp.reshape(floats, weights.shape)

    return fnp.matmul(even, scaled(low(weights))) + fnp.matmul(
        odd, scaled(high(weights))
    )


def _result(even: Any, odd: Any, weights: Any, scale: Any) -> Any:
    return like(even, shape=(even.shape[0], weights.shape[1]))


_NOTATION = "m h, m h, h n:units, g n:units -> m n:units"


@kernel(_NOTATION, out=_result, reference=_plain, name="int4_rows")
def _by_rows(
    even: Any, odd: Any, weights: Any, scale: Any, out: Any, *, units: int
) -> None:
    size = weights.shape[0] // scale.shape[0]
    together = next(n for n in (4, 3, 2, 1) if size % n == 0)
    zeros = fnp.zeros(out.shape, out.dtype)

    def group(i: Any, total: Any) -> Any:
        def step(j: Any, part: Any) -> Any:
            for u in range(together):
                row = i * size + j * together + u
                pairs = weights[row]
                for x, w in ((even, low(pairs)), (odd, high(pairs))):
                    part = part + x[:, row][:, None] * w.astype(out.dtype)[None]
            return part

        part = lax.fori_loop(0, size // together, step, zeros)
        return total + part * scale[i][None]

    out[...] = lax.fori_loop(0, scale.shape[0], group, zeros)


@kernel(_NOTATION, out=_result, reference=_plain, name="int4")
def _by_tiles(
    even: Any, odd: Any, weights: Any, scale: Any, out: Any, *, units: int
) -> None:
    size = weights.shape[0] // scale.shape[0]

    def group(i: Any, total: Any) -> Any:
        at = ds(i * size, size)
        pairs, factor = weights[at], scale[i][None]
        for x, w in ((even, low(pairs)), (odd, high(pairs))):
            total = total + dot(x[:, at], w.astype(out.dtype) * factor)
        return total

    zeros = fnp.zeros(out.shape, out.dtype)
    out[...] = lax.fori_loop(0, scale.shape[0], group, zeros)
