"""Weights in eight bits: whole numbers from −127 to 127 and a scale for each channel.

A weight w of channel c is round(w / s_c), where s_c is the greatest |w| of the channel
over 127; what comes back differs from w by s_c / 2 at most. Channels are the last axis,
as of dense layers `[inputs, outputs]` and filters `[…, inputs, outputs]`. Activations
stay as they are: this is about the size of a program, not about its arithmetic.
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
    """An array in eight bits.

    Attributes:
      values: i8[…, channels].
      scales: float[channels], of the dtype that the array had.

    Source: Jacob et al. 2018, "Quantization and training of neural networks for
    efficient integer-arithmetic-only inference" (symmetric, per channel).
    """

    values: Array
    scales: Array


def quantize(params: Any) -> Any:
    """Returns parameters whose weights are in eight bits.

    Args:
      params: tree of arrays. Floats of two axes or more become `QuantizedWeights`, the
        others (biases, integers) stay.

    Returns:
      A tree of the same containers; `dequantize` gives the first one back, but for
      half a step of each channel's scale.

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
            raise DtypeError(f"quantize: weights are real, got {array.aval}")
        if not is_weight(array):
            return leaf
        axes = tuple(range(array.ndim - 1))
        wide = array.astype(fnp.promote_types(dtype, "float32"))
        greatest = fnp.max(fnp.abs(wide), axis=axes)
        # A channel of zeros stays one.
        scales = fnp.where(greatest > 0, greatest, 1) / _GREATEST
        scales = scales.astype(dtype)
        values = fnp.round(wide / scales.astype(wide.dtype))
        clipped = fnp.clip(values, -_GREATEST, _GREATEST)
        return QuantizedWeights(clipped.astype("int8"), scales)

    return tree.map(one, params)


def dequantize(params: Any) -> Any:
    """Returns parameters as they were before `quantize`, nearly.

    Args:
      params: of `quantize`.

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
    """Returns whether an array is one that `quantize` keeps in eight bits."""
    return bool(array.ndim >= 2 and dtypes.is_floating(array.dtype) and array.size)


def written_as_int8(
    name: str, value: np.ndarray[Any, Any], mlir: str
) -> list[str] | None:
    """Returns the lines of a program that define a captured weight from eight bits.

    Args:
      name: of the value in the program.
      value: the weight.
      mlir: its type, as `tensor<3x4xf32>`.

    Returns:
      The lines; None if it stays as it is.
    """
    if not is_weight(value):
        return None
    values, scales = map(np.asarray, quantize(value))
    small = mlir[: mlir.rindex("x") + 1] + "i8>"
    kind = mlir[mlir.rindex("x") + 1 : -1]
    row = f"tensor<{len(scales)}x{kind}>"
    # The barrier keeps the compiler from computing the floats now.
    return [
        f"{name}q0 = stablehlo.constant {dense(values, values.dtype)} : {small}",
        f"{name}q = stablehlo.optimization_barrier {name}q0 : {small}",
        f"{name}s = stablehlo.constant {dense(scales, scales.dtype)} : {row}",
        f"{name}f = stablehlo.convert {name}q : ({small}) -> {mlir}",
        f"{name}b = stablehlo.broadcast_in_dim {name}s, dims = [{value.ndim - 1}] : "
        f"({row}) -> {mlir}",
        f"{name} = stablehlo.multiply {name}f, {name}b : {mlir}",
    ]
