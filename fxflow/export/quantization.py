"""Quantizes weights to int8, with a scale for each channel.

A weight w of channel c becomes round(w / s_c), where s_c is the channel's largest |w|
divided by 127; the error is at most s_c / 2. Channels are the last axis, as in dense
layers `[inputs, outputs]` and filters `[…, inputs, outputs]`. Activations keep their
dtype: this reduces the size of a program, not its arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes
from fxflow.core.arrays.array import as_array, is_arraylike
from fxflow.core.runtime.lowering import dense
from fxflow.errors import ArgumentError, DtypeError

_GREATEST = 127


class QuantizedWeights(NamedTuple):
    """An array quantized to int8.

    Attributes:
      values: i8[…, channels].
      scales: float[channels], of the original dtype.

    Source: Jacob et al. 2018, "Quantization and training of neural networks for
    efficient integer-arithmetic-only inference" (symmetric, per channel).
    """

    values: Array
    scales: Array


def quantize(params: Any) -> Any:
    """Quantizes the weights among parameters to int8.

    Args:
      params: a tree of arrays. Floats with at least two axes become
        `QuantizedWeights`; other arrays (biases, integers) are unchanged.

    Returns:
      A tree of the same containers; `dequantize` restores the original up to half of
      each channel's scale.

    Raises:
      ArgumentError: a leaf is not an array.
      DtypeError: a weight is complex.

    Example:
      >>> q = quantize({"w": fnp.array([[1.0, -0.5], [0.25, 0.5]])})
      >>> q["w"].values
      Array([[ 127, -127],
             [  32,  127]], dtype=int8)
      >>> dequantize(q)["w"].round(2)
      Array([[ 1.  , -0.5 ],
             [ 0.25,  0.5 ]], dtype=float32)

    Source: Jacob et al. 2018.
    """

    def one(leaf: Any) -> Any:
        if not is_arraylike(leaf):
            raise ArgumentError(f"quantize: {type(leaf).__name__} is not an array")
        array = as_array(leaf)
        dtype = array.dtype
        if dtypes.is_complex(dtype) and array.ndim >= 2:
            raise DtypeError(f"quantize: weights must be real, got {array.aval}")
        if not is_weight(array):
            return leaf
        axes = tuple(range(array.ndim - 1))
        wide = array.astype(fnp.promote_types(dtype, "float32"))
        greatest = fnp.max(fnp.abs(wide), axis=axes)
        # Avoid dividing by 0 in a channel of zeros.
        scales = fnp.where(greatest > 0, greatest, 1) / _GREATEST
        scales = scales.astype(dtype)
        values = fnp.round(wide / scales.astype(wide.dtype))
        clipped = fnp.clip(values, -_GREATEST, _GREATEST)
        return QuantizedWeights(clipped.astype("int8"), scales)

    return tree.map(one, params)


def dequantize(params: Any) -> Any:
    """Approximately restores the parameters given to `quantize`.

    Args:
      params: the result of `quantize`.

    Returns:
      The tree with a float array for each `QuantizedWeights`.

    Example:
      >>> apply = lambda params, x: x @ params["w"]
      >>> q = quantize({"w": fnp.eye(2)})
      >>> apply(dequantize(q), fnp.ones(2))
      Array([1., 1.], dtype=float32)
    """

    def one(leaf: Any) -> Any:
        if isinstance(leaf, QuantizedWeights):
            return leaf.values.astype(leaf.scales.dtype) * leaf.scales
        return leaf

    return tree.map(one, params, is_leaf=lambda x: isinstance(x, QuantizedWeights))


def is_weight(array: Any) -> bool:
    """Returns whether `quantize` quantizes an array."""
    return bool(array.ndim >= 2 and dtypes.is_floating(array.dtype) and array.size)


def written_as_int8(
    name: str, value: np.ndarray[Any, Any], mlir: str
) -> list[str] | None:
    """Returns the StableHLO that dequantizes a captured weight from int8.

    Args:
      name: name of the value in the program.
      value: the weight.
      mlir: its type, such as `tensor<3x4xf32>`.

    Returns:
      The lines, or None if `value` is not a weight.
    """
    if not is_weight(value):
        return None
    values, scales = map(np.asarray, quantize(value))
    small = mlir[: mlir.rindex("x") + 1] + "i8>"
    kind = mlir[mlir.rindex("x") + 1 : -1]
    row = f"tensor<{len(scales)}x{kind}>"
    # The barrier prevents constant folding to floats.
    return [
        f"{name}q0 = stablehlo.constant {dense(values, values.dtype)} : {small}",
        f"{name}q = stablehlo.optimization_barrier {name}q0 : {small}",
        f"{name}s = stablehlo.constant {dense(scales, scales.dtype)} : {row}",
        f"{name}f = stablehlo.convert {name}q : ({small}) -> {mlir}",
        f"{name}b = stablehlo.broadcast_in_dim {name}s, dims = [{value.ndim - 1}] : "
        f"({row}) -> {mlir}",
        f"{name} = stablehlo.multiply {name}f, {name}b : {mlir}",
    ]
