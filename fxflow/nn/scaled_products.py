"""Products of numbers in 4 and 8 bits, each block of which has a scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.dot import DotDimensionNumbers
from fxflow.numpy._operands import ArrayLike, DTypeLike, array_of, convert
from fxflow.transforms.custom_vjp import custom_vjp
from fxflow.transforms.inspection import eval_shape


@dataclass(frozen=True, eq=False)
class BlockScaleConfig:
    """How numbers are stored with scales.

    Attributes:
      mode: "mxfp8" or "nvfp4".
      block_size: numbers that have one scale.
      data_type: of the numbers.
      scale_type: of the scales.
      global_scale: of everything; None is 1.
      infer_only: whether no derivative is asked for.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(
    mode: str, global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """Returns how an operand of `scaled_dot_general` is stored.

    Args:
      mode: "mxfp8", blocks of 32 numbers of 8 bits, scales that are powers of 2; or
        "nvfp4", blocks of 16 numbers of 4 bits.
      global_scale: of all blocks of "nvfp4", a number; None is 1.

    Returns:
      What `scaled_dot_general` takes in `configs`.

    Raises:
      ArgumentError: unknown mode.

    Example:
      >>> get_scaled_dot_general_config("mxfp8").block_size
      32

    Source: OCP Microscaling Formats, 2023.
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, fnp.float8_e4m3fn, fnp.float8_e8m0fnu)
    if mode == "nvfp4":
        scale = fnp.ones(1, fnp.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, fnp.float4_e2m1fn, fnp.float8_e4m3fn, scale)
    raise ArgumentError(
        f'get_scaled_dot_general_config: mode must be "mxfp8" or "nvfp4", got {mode!r}'
    )


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = fnp.float32,
) -> Array:
    """Multiplies block-scaled matrices.

    Args:
      lhs: float[b, m, k], usually of 4 or 8 bits.
      rhs: float[b, n, k].
      lhs_scales: float[b, m, k / block].
      rhs_scales: float[b, n, k / block].
      preferred_element_type: dtype of the result.

    Returns:
      Array[b, m, n].

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: an argument is not floating point.

    Example:
      >>> x, scale = np.ones((1, 2, 32), np.float32), np.full((1, 2, 1), 2, np.float32)
      >>> scaled_matmul(x, x, scale, scale)[0, 0, 0]
      Array(128., dtype=float32)

    Source: JAX's `scaled_matmul`, here on every platform and with derivatives.
    """
    names = ("lhs", "rhs", "lhs_scales", "rhs_scales")
    args = [array_of(x, "scaled_matmul") for x in (lhs, rhs, lhs_scales, rhs_scales)]
    if any(x.aval.ndim != 3 for x in args):
        given = ", ".join(f"{n} {x.aval}" for n, x in zip(names, args, strict=True))
        raise ShapeError(f"scaled_matmul: arguments must have three axes, got {given}")
    a, b, scale_a, scale_b = args
    if scale_a.aval.shape[2] != scale_b.aval.shape[2]:
        raise ShapeError(
            "scaled_matmul: scales must have as many blocks, got "
            f"{scale_a.aval} and {scale_b.aval}"
        )
    return lax.scaled_dot(
        a,
        b,
        lhs_scale=scale_a,
        rhs_scale=scale_b,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=preferred_element_type,
    )


def _quantized(x: Any, config: BlockScaleConfig) -> Any:
    """Returns the numbers that `x`, blocks along its last axis, is stored as."""
    size, n = config.block_size, x.aval.shape[-1]
    # Zeros fill up the last block: they change no sum.
    pads = [(0, 0)] * (x.aval.ndim - 1) + [(0, -n % size)]
    wide = convert(fnp.pad(x, pads), dtypes.float32)
    blocks = fnp.reshape(wide, (*wide.aval.shape[:-1], -1, size))
    if config.global_scale is not None:
        whole = fnp.reshape(fnp.asarray(config.global_scale, fnp.float32), ())
        blocks = blocks / whole
    most = float(fnp.finfo(config.data_type).max)
    ratio = fnp.max(lax.abs(blocks), -1, keepdims=True) / most
    if config.mode == "mxfp8":
        # The next power of 2, so that nothing overflows.
        fraction, exponent = fnp.frexp(ratio)
        exponent = fnp.where(fraction == 0.5, exponent - 1, exponent)
        scale = fnp.ldexp(fnp.ones_like(ratio), fnp.clip(exponent, -126, 127))
    else:
        scale = _rounded(ratio, config.scale_type)
    scale = fnp.where((scale == 0) | (ratio == 0), 1, scale)
    parts = fnp.clip(blocks / scale, -most, most)
    out = fnp.reshape(_rounded(parts, config.data_type) * scale, wide.aval.shape)
    if config.global_scale is not None:
        out = out * whole
    return out[..., :n]


def _rounded(x: Any, dtype: Any) -> Any:
    """Returns the numbers, float32, that `x` is rounded to when stored."""
    # For GPUs XLA leaves out a conversion and the one back: what is computed in more
    # bits than were asked for counts as better there, and here is something else.
    stored = lax.optimization_barrier(convert(x, dtypes.dtype(dtype)))
    return convert(stored, dtypes.float32)


def _as_matrices(x: Any, batch: Any, contracting: Any) -> Any:
    """Returns an operand as [batch, rest, contracted]."""
    rest = [i for i in range(x.aval.ndim) if i not in batch and i not in contracting]
    out = lax.transpose(x, (*batch, *rest, *contracting))
    shape = out.aval.shape
    at, end = len(batch), len(batch) + len(rest)
    sizes = [math.prod(part) for part in (shape[:at], shape[at:end], shape[end:])]
    return fnp.reshape(out, sizes)


def _multiplied(x: Any, y: Any, one: Any, other: Any) -> Any:
    """Returns [b, m, k] times [b, n, k], both stored as their configurations say."""
    return lax.dot_general(
        _quantized(x, one), _quantized(y, other), (((2,), (2,)), ((0,), (0,)))
    )


def _stored_product(configs: Sequence[BlockScaleConfig]) -> Any:
    """Returns the product of matrices whose derivatives are such products, too."""
    one, other, back = configs

    @custom_vjp
    def product(x: Any, y: Any) -> Any:
        return _multiplied(x, y, one, other)

    def forward(x: Any, y: Any) -> Any:
        return product(x, y), (x, y)

    def backward(kept: Any, g: Any) -> Any:
        x, y = kept
        x_turned, y_turned, g_turned = (fnp.swapaxes(z, 1, 2) for z in (x, y, g))
        by_x = _multiplied(g, y_turned, back, other)
        by_y = _multiplied(g_turned, x_turned, back, one)
        return convert(by_x, x.aval.dtype), convert(by_y, y.aval.dtype)

    product.defvjp(forward, backward)
    return product


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: DotDimensionNumbers,
    preferred_element_type: DTypeLike = fnp.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Array:
    """Multiplies arrays that are stored in few bits for the product.

    Each block of numbers along the contracting axes is divided by a scale and rounded
    to 4 or 8 bits. Derivatives are such products of the stored cotangent.

    Args:
      lhs: float[...].
      rhs: float[...].
      dimension_numbers: see `fxflow.lax.dot_general`.
      preferred_element_type: dtype of the result: float32, bfloat16 or float16.
      configs: for `lhs`, `rhs` and the cotangent how it is stored, as
        `get_scaled_dot_general_config` says it; None stores all as they are.
      implementation: None or "cudnn"; the product is the same.

    Returns:
      An array as of `fxflow.lax.dot_general`.

    Raises:
      ArgumentError: there are not three `configs`, or no such implementation.
      DtypeError: an operand is not floating point.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x = np.ones((2, 32), np.float32)
      >>> config = get_scaled_dot_general_config("mxfp8")
      >>> y = scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=[config] * 3)
      >>> y[0, 0]
      Array(32., dtype=float32)

    Source: JAX's `scaled_dot_general`, here on every platform: numbers are rounded as
    there, the product is taken in 32 bits. Blocks may be padded with zeros.
    """
    name = "scaled_dot_general"
    x, y = array_of(lhs, name), array_of(rhs, name)
    for one in (x, y):
        if not dtypes.is_floating(one.aval.dtype):
            raise DtypeError(f"{name}: takes floats, got {one.aval}")
    if implementation not in (None, "cudnn"):
        raise ArgumentError(
            f'{name}: implementation must be None or "cudnn", got {implementation!r}'
        )
    dtype = dtypes.dtype(preferred_element_type)
    if configs is None:
        a, b = (convert(z, dtypes.float32) for z in (x, y))
        return convert(lax.dot_general(a, b, dimension_numbers), dtype)
    if len(configs) != 3:
        raise ArgumentError(
            f"{name}: configs must be three, for lhs, rhs and the cotangent, got "
            f"{len(configs)}"
        )
    (left, right), (left_batch, right_batch) = (
        tuple(
            tuple(canonical_axis(name, i, z.aval.ndim) for i in axes)
            for axes, z in zip(pair, (x, y), strict=True)
        )
        for pair in dimension_numbers
    )
    # What fits together is checked, and how the result looks said, by dot_general.
    plain = lambda a, b: lax.dot_general(a, b, dimension_numbers)
    wide = [convert(z, dtypes.float32) for z in (x, y)]
    shape = eval_shape(plain, *wide).shape
    product = _stored_product(configs)
    out = product(
        _as_matrices(wide[0], left_batch, left),
        _as_matrices(wide[1], right_batch, right),
    )
    return convert(fnp.reshape(out, shape), dtype)
