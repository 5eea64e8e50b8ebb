"""Dense layers whose weights are integers of one byte."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, ShapeError
from fxflow.kernels.body import wide_dtype
from fxflow.kernels.gallery.int8 import scaled_product
from fxflow.nn._layers import Params, array, floats, shaped, weights
from fxflow.numpy._operands import ArrayLike

_LARGEST = 127


def quantized_linear_init(params: Mapping[str, ArrayLike]) -> Params:
    """Makes the weights of a dense layer from those of a trained one.

    Each unit has a scale, with which its largest weight is ±127.

    Args:
      params: weights, as `linear_init` makes them.

    Returns:
      A dict of `w: int8[inputs, units]`, `scale: float[units]`, and `b` if there is
      one.

    Raises:
      ArgumentError: the params are not a dict of the weights.
      DtypeError: the weights are not floats.
      ShapeError: shapes do not fit.

    Special cases:
      A unit whose weights are all 0 has the scale 1.

    Example:
      >>> params = nn.quantized_linear_init({"w": np.array([[1.0, 0.5], [-2.0, 0.25]])})
      >>> params["w"]
      Array([[  64,  127],
             [-127,   64]], dtype=int8)
    """
    axes = {"w": "inputs units"}
    if isinstance(params, Mapping) and "b" in params:
        axes["b"] = "units"
    found = weights("quantized_linear_init", params, **axes)
    w = fnp.asarray(found[0])
    w = w.astype(wide_dtype(w.dtype))
    largest = fnp.max(fnp.abs(w), 0, initial=0)
    scale = fnp.where(fnp.greater(largest, 0), fnp.divide(largest, _LARGEST), 1)
    out = {"scale": scale, "w": fnp.round(fnp.divide(w, scale)).astype(dtypes.int8)}
    return {"b": fnp.asarray(found[1]), **out} if len(found) > 1 else out


def quantized_linear(params: Mapping[str, ArrayLike], x: ArrayLike) -> Array:
    """Multiplies vectors by weights of one byte: `x @ (w * scale) + b`.

    Args:
      params: weights, as `quantized_linear_init` makes them.
      x: float[..., inputs].

    Returns:
      float[..., units], of the dtype of `x`; sums of half precision are in float32.

    Raises:
      ArgumentError: the params are not a dict of the weights, or `x` is not an array.
      DtypeError: `w` has no integers, or another argument no floats.
      ShapeError: shapes do not fit.

    The derivative by `w` is 0; train with `linear`.

    Example:
      >>> params = nn.quantized_linear_init({"w": np.array([[1.0, 0.5], [-2.0, 0.25]])})
      >>> nn.quantized_linear(params, np.array([1.0, 1.0])).round(2)
      Array([-0.99,  0.75], dtype=float32)
    """
    name = "quantized_linear"
    if not isinstance(params, Mapping) or not {"w", "scale"} <= set(params):
        given = list(params) if isinstance(params, Mapping) else type(params).__name__
        raise ArgumentError(
            f'{name}: params must be a dict with "w" [inputs, units], "scale" [units], '
            f"got {given}"
        )
    w = fnp.asarray(array(name, 'params["w"]', params["w"], "integers"))
    if w.ndim != 2:
        raise ShapeError(f'{name}: params["w"] must be [inputs, units], got {w.aval}')
    inputs, units = w.shape
    scale, *b = (
        fnp.asarray(shaped(name, f'params["{key}"]', params[key], (units,), "floats"))
        for key in ("scale", "b")
        if key in params
    )
    aval = typeof(floats(name, "x", x, "inputs"))
    if aval.shape[-1] != inputs:
        raise ShapeError(
            f"{name}: x must be float[..., {inputs}], as many as the rows of "
            f"params['w'] {w.aval}, got {aval}"
        )
    rows = math.prod(aval.shape[:-1])
    flat: Any = fnp.reshape(fnp.asarray(x), (rows, inputs))
    out = scaled_product(flat, w, scale.astype(wide_dtype(flat.dtype)))
    out = fnp.reshape(out, (*aval.shape[:-1], units))
    return fnp.add(out, b[0].astype(out.dtype)) if b else out
