"""Dense layers whose weights are integers of one byte or of 4 bits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.kernels.body import wide_dtype
from fxflow.kernels.gallery import int4, int8
from fxflow.nn._layers import Params, array, floats, shaped, weights
from fxflow.numpy._operands import ArrayLike

_LARGEST = 127


def quantized_linear_init(
    params: Mapping[str, ArrayLike],
    *,
    bits: int = 8,
    group_size: int | None = None,
    zero_points: bool = False,
) -> Params:
    """Makes the weights of a dense layer from those of a trained one.

    With 8 bits each unit has a scale, with which its largest weight is ±127. With 4
    bits the weights are from -8 to 7, two in a byte; `group_size` inputs of a unit
    share a scale. Without zero points the largest weight of a group is ±7.

    Args:
      params: weights, as `linear_init` makes them.
      bits: 8 or 4, for each weight.
      group_size: with 4 bits, how many inputs share a scale: an even number that
        divides the inputs, such as 32 or 128. None: all inputs.
      zero_points: with 4 bits, whether each group has an integer that stands for 0, so
        that the weights of a group reach from its least to its largest.

    Returns:
      With 8 bits, a dict of `w: int8[inputs, units]`, `scale: float[units]`, and `b` if
      there is one. With 4 bits, `w: int8[ceil(inputs / 2), units]`, whose byte in row
      `i` has the weight of input `2i` in its low and that of `2i + 1` in its high four
      bits, `scale: float[groups, units]`, `zero: float[groups, units]` if asked for,
      and `b`.

    Raises:
      ArgumentError: the params are not a dict of the weights, `bits` is neither 8 nor
        4, or the other options are not as above.
      DtypeError: the weights are not floats.
      ShapeError: the shapes are incompatible.

    Special cases:
      A group whose weights are all 0 has the scale 1.

    Example:
      >>> w = np.array([[1.0, 0.5], [-2.0, 0.25]])
      >>> params = nn.quantized_linear_init({"w": w})
      >>> params["w"]
      Array([[  64,  127],
             [-127,   64]], dtype=int8)
      >>> w = np.array([[3.0, 2.0], [-7.0, 7.0]])
      >>> nn.quantized_linear_init({"w": w}, bits=4)["w"]  # 3 - 7 * 16, 2 + 7 * 16
      Array([[-109,  114]], dtype=int8)
    """
    name = "quantized_linear_init"
    axes = {"w": "inputs units"}
    if isinstance(params, Mapping) and "b" in params:
        axes["b"] = "units"
    found = weights(name, params, **axes)
    w = fnp.asarray(found[0])
    w = w.astype(wide_dtype(w.dtype))
    if bits == 4:
        out = _in_groups(w, _group_size(name, w, group_size), zero_points)
    elif bits == 8:
        if group_size is not None or zero_points:
            raise ArgumentError(
                f"{name}: group_size and zero_points need bits=4, got {bits=}, "
                f"{group_size=}, {zero_points=}"
            )
        largest = fnp.max(fnp.abs(w), 0, initial=0)
        scale = fnp.where(fnp.greater(largest, 0), fnp.divide(largest, _LARGEST), 1)
        out = {"scale": scale, "w": fnp.round(fnp.divide(w, scale)).astype(dtypes.int8)}
    else:
        raise ArgumentError(f"{name}: bits must be 8 or 4, got {bits!r}")
    return {"b": fnp.asarray(found[1]), **out} if len(found) > 1 else out


def _group_size(name: str, w: Array, size: Any) -> int:
    """Returns how many inputs share a scale, after a check."""
    inputs: int = w.shape[0]
    if size is None:
        return inputs + inputs % 2
    if isinstance(size, bool) or not isinstance(size, int) or size <= 0 or size % 2:
        raise ArgumentError(
            f"{name}: group_size must be an even integer above 0, or None for one "
            f"group, got {size!r}"
        )
    if inputs % size:
        raise ArgumentError(
            f"{name}: group_size must divide the inputs, got group_size={size} for "
            f'params["w"] {w.aval} with {inputs} inputs'
        )
    return size


def _in_groups(w: Array, size: int, zero_points: bool) -> Params:
    """Returns weights of 4 bits, with a scale for each `size` inputs of a unit."""
    inputs, units = w.shape
    padding = fnp.zeros((inputs % 2, units), w.dtype)
    groups: Any = fnp.reshape(
        fnp.concatenate([w, padding]), (-(-inputs // size) if size else 1, size, units)
    )
    if zero_points:
        # 0 is one of the weights, so it stays 0.
        least = fnp.min(groups, 1, keepdims=True, initial=0)
        range_ = fnp.max(groups, 1, keepdims=True, initial=0) - least
        scale = fnp.where(fnp.greater(range_, 0), range_ * (1 / 15), 1)
        zero = fnp.round(-8 - least / scale)
    else:
        largest = fnp.max(fnp.abs(groups), 1, keepdims=True, initial=0)
        scale = fnp.where(fnp.greater(largest, 0), largest * (1 / 7), 1)
        zero = fnp.zeros_like(scale)
    codes = fnp.clip(fnp.round(groups / scale) + zero, -8, 7).astype(dtypes.int8)
    pairs = fnp.reshape(codes, ((inputs + 1) // 2, 2, units))
    four = np.int8(4)
    packed = fnp.bitwise_or(
        fnp.bitwise_and(pairs[:, 0], np.int8(15)), fnp.left_shift(pairs[:, 1], four)
    )
    out = {"scale": scale[:, 0], "w": packed}
    return {**out, "zero": zero[:, 0]} if zero_points else out


def quantized_linear(params: Mapping[str, ArrayLike], x: ArrayLike) -> Array:
    """Multiplies vectors by weights of one byte or of 4 bits: `x @ (w * scale) + b`.

    A `scale` with two axes means 4 bits, `x @ ((w - zero) * scale) + b`.

    Args:
      params: weights, as `quantized_linear_init` makes them.
      x: float[..., inputs].

    Returns:
      float[..., units], of the dtype of `x`; sums of half precision are in float32.

    Raises:
      ArgumentError: the params are not a dict of the weights, or `x` is not an array.
      DtypeError: `w` has no integers (no int8, with 4 bits), or another argument no
        floats.
      ShapeError: the shapes are incompatible.

    The derivative with respect to `w` is 0; train with `linear`.

    Example:
      >>> w = {"w": np.array([[1.0, 0.5], [-2.0, 0.2]])}
      >>> params = nn.quantized_linear_init(w)
      >>> nn.quantized_linear(params, np.array([1.0, 1.0])).round(2)
      Array([-0.99,  0.7 ], dtype=float32)
      >>> small = nn.quantized_linear_init(w, bits=4, zero_points=True)
      >>> nn.quantized_linear(small, np.array([1.0, 1.0])).round(2)
      Array([-1. ,  0.7], dtype=float32)
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
    scales = typeof(array(name, 'params["scale"]', params["scale"], "floats"))
    packed = scales.ndim == 2
    axes = _groups_of(name, w, scales) if packed else (w.shape[1],)
    units = w.shape[1]
    scale: Any = fnp.asarray(
        shaped(name, 'params["scale"]', params["scale"], axes, "floats")
    )
    b: Any = params.get("b")
    if b is not None:
        b = fnp.asarray(shaped(name, 'params["b"]', b, (units,), "floats"))
    aval = typeof(floats(name, "x", x, "inputs"))
    inputs = aval.shape[-1]
    if w.shape[0] != ((inputs + 1) // 2 if packed else inputs):
        wanted = f"{2 * w.shape[0]}" if packed else f"{w.shape[0]}"
        why = "two for each of the" if packed else "as many as the"
        raise ShapeError(
            f"{name}: x must be float[..., {wanted}], {why} rows of "
            f"params['w'] {w.aval}, got {aval}"
        )
    rows = math.prod(aval.shape[:-1])
    flat: Any = fnp.reshape(fnp.asarray(x), (rows, inputs))
    scale = scale.astype(wide_dtype(flat.dtype))
    if packed:
        zero: Any = params.get("zero")
        if zero is not None:
            zero = fnp.asarray(shaped(name, 'params["zero"]', zero, axes, "floats"))
        out = int4.scaled_product(flat, w, scale, zero)
    else:
        out = int8.scaled_product(flat, w, scale)
    out = fnp.reshape(out, (*aval.shape[:-1], units))
    return out if b is None else fnp.add(out, b.astype(out.dtype))


def _groups_of(name: str, w: Array, scale: Aval) -> tuple[int, int]:
    """Returns the shape that scales of weights of 4 bits must have."""
    if w.dtype != dtypes.int8:
        raise DtypeError(
            f'{name}: params["scale"] has two axes, so params["w"] must be int8 '
            f"[inputs / 2, units] with two weights in each byte, got {w.aval}"
        )
    rows, groups = w.shape[0], scale.shape[0]
    if groups == 0 or rows % groups:
        raise ShapeError(
            f'{name}: params["scale"] must be [groups, units], where groups divides '
            f'the {rows} rows of params["w"] {w.aval}, got {scale}'
        )
    return groups, w.shape[1]
