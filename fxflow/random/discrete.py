"""Choices among a few: Bernoulli, signs, categories, waiting times."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.ir import arith
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax import sampling
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.random._arguments import (
    fit,
    int_dtype,
    key_data_of,
    parameter,
    real_aval,
    result_shape,
)
from fxflow.random._layout import sampler
from fxflow.random.inverse import gumbel_of


@sampler("shape", "mode")
def bernoulli(
    key: Any,
    p: Any = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws True with probability `p`.

    Args:
      key: one key.
      p: probability, float, any shape.
      shape: shape of the result, to which `p` is broadcast; None means its shape.
      mode: `"low"`, or `"high"`, which draws twice the bits, for p below 2⁻²³.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part. None: on one device.

    Returns:
      A bool array of that shape.

    Raises:
      ArgumentError: `key` is not a key, or the mode is another.
      DtypeError: `p` is not a float.
      ShapeError: `p` does not broadcast to `shape`.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> random.bernoulli(random.key(0), 0.3, (4,)).dtype
      dtype('bool')

    Source: a uniform number below `p`.
    """
    if mode not in ("low", "high"):
        raise ArgumentError(f'bernoulli: mode must be "low" or "high", got {mode!r}')
    aval = real_aval("bernoulli", p)
    if not dtypes.is_floating(aval.dtype):
        raise DtypeError(f"bernoulli: the probability p must be a float, got {aval}")
    probability = parameter("bernoulli", p, aval.dtype)
    full = result_shape("bernoulli", shape, probability)
    key_data = key_data_of("bernoulli", key)
    probability = fit(probability, full)
    if mode == "low":
        return lax.lt(sampling.uniform(key_data, full, aval.dtype), probability)
    both = sampling.uniform(key_data, (2, *full), aval.dtype)
    first, second = (lax.index_in_dim(both, i, 0, keepdims=False) for i in (0, 1))
    # The second draw decides within the last bit of the first.
    eps = float(dtypes.finfo(aval.dtype).eps)
    return lax.lt(lax.mul(second, eps), lax.sub(probability, first))


@sampler("shape", "dtype")
def rademacher(
    key: Any,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws -1 and 1, each with probability one half.

    Args:
      shape: shape of the result.
      dtype: a signed, float or complex dtype; None means the default integer.

    Raises:
      DtypeError: `dtype` has no -1.

    Example:
      >>> random.rademacher(random.key(0), (4,)).dtype
      dtype('int32')

    Source: a uniform number below one half.
    """
    chosen = dtypes.default_int() if dtype is None else dtypes.dtype(dtype)
    if not (dtypes.is_signed(chosen) or dtypes.is_inexact(chosen)):
        raise DtypeError(
            "rademacher: dtype must be a signed, float or complex dtype, got "
            f"{dtypes.short_name(chosen)}"
        )
    key_data = key_data_of("rademacher", key)
    drawn: Array = sampling.signs(
        key_data, shape_or_length("rademacher", shape), chosen
    )
    return drawn


@sampler("shape", "dtype")
def geometric(
    key: Any,
    p: Any,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Draws the number of trials up to the first success: (1 - p)ᵏ⁻¹ p for k ≥ 1.

    Args:
      p: probability of success, in (0, 1], any shape.
      shape: shape of the result, to which `p` is broadcast; None means its shape.
      dtype: an integer dtype; None means the default.

    Raises:
      DtypeError: `dtype` is not an integer dtype.
      ShapeError: `p` does not broadcast to `shape`.

    Example:
      >>> bool((random.geometric(random.key(0), 0.5, (100,)) >= 1).all())
      True

    Source: ⌊log u / log(1 - p)⌋ + 1 of a uniform u.
    """
    chosen = int_dtype("geometric", dtype)
    own = real_aval("geometric", p).dtype
    probability = parameter("geometric", p, dtypes.to_inexact(own))
    full = result_shape("geometric", shape, probability)
    dtype = typeof(probability).dtype
    u = sampling.uniform(key_data_of("geometric", key), full, dtype)
    u = lax.select(lax.eq(u, 0.0), lax.full_like(u, 1), u)
    scale = fit(lax.log1p(lax.neg(probability)), full)
    trials = lax.add(lax.floor(lax.div(lax.log(u), scale)), 1.0)
    return lax.convert_element_type(trials, chosen)


@sampler("axis", "shape", "replace", "mode")
def categorical(
    key: Any,
    logits: Any,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    r"""Draws categories: i with probability :math:`e^{l_i} / \sum_j e^{l_j}`.

    Args:
      key: one key.
      logits: logarithms of probabilities up to a constant; floats, at least 1-d.
      axis: the axis along which the categories lie.
      shape: shape of the result; it must end in the shape of `logits` without `axis`,
        to which it may also broadcast if `replace`. None means that shape.
      replace: whether a category may be drawn more than once; if not, the leading axes
        of `shape` hold distinct categories.
      mode: `"low"` (what None means) or `"high"`, which draws twice the bits, for
        categories of probability below 2⁻²³.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out; each device makes its own part. None: on one device.

    Returns:
      Indices of categories, of the default integer dtype.

    Raises:
      ArgumentError: `key` is not a key, or the mode is another.
      AxisError: an axis is out of range.
      DtypeError: the logits are not floats.
      ShapeError: `shape` is incompatible, or asks for more distinct categories than
        exist.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> random.categorical(random.key(0), np.log([0.2, 0.8]), shape=(5,)).shape
      (5,)

      The next token of each of eight texts, at a low temperature:

      >>> logits = fnp.tile(fnp.array([0.0, 1.0, 5.0]), (8, 1))
      >>> random.categorical(random.key(1), logits / 0.1).tolist()
      [2, 2, 2, 2, 2, 2, 2, 2]

    Source: the largest of logits plus Gumbel noise; without replacement, the largest
    ones (Kool, van Hoof, Welling 2019).
    """
    if not is_arraylike(logits):
        raise not_an_array(logits, "categorical: the logits are")
    aval = typeof(logits)
    if not dtypes.is_floating(aval.dtype):
        raise DtypeError(f"categorical: the logits must be floats, got {aval}")
    if not -aval.ndim <= axis < aval.ndim:
        raise AxisError(f"categorical: there is no axis {axis} in logits {aval}")
    axis %= aval.ndim
    count = aval.shape[axis]
    if not count:
        raise ShapeError(
            f"categorical: there are no categories along axis {axis} of {aval}"
        )
    logits = parameter("categorical", logits, aval.dtype)
    batch = aval.shape[:axis] + aval.shape[axis + 1 :]
    full = batch if shape is None else shape_or_length("categorical", shape)
    split = len(full) - len(batch)
    tail = full[max(split, 0) :]
    # Without replacement, the same noise must not serve two results.
    fits = split >= 0 and all(
        n == m or (replace and n == 1) for n, m in zip(batch, tail, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"categorical: shape {full} must end in {batch}, the shape of the logits "
            f"{aval} without axis {axis}"
        )
    key_data = key_data_of("categorical", key)
    index = dtypes.default_int()
    if replace:
        inner = (*tail[:axis], count, *tail[axis:])
        noise = gumbel_of(
            key_data, (*full[:split], *inner), aval.dtype, mode, "categorical"
        )
        noisy = lax.add(noise, arith.repeated(logits, (*full[:split], *inner)))
        return lax.argmax(noisy, split + axis, index)
    wanted = math.prod(full[:split])
    if wanted > count:
        raise ShapeError(
            f"categorical: {wanted} distinct categories of {count} cannot be drawn"
        )
    noise = gumbel_of(key_data, aval.shape, aval.dtype, mode, "categorical")
    _, top = lax.top_k(lax.add(logits, noise), wanted, axis=axis)
    order = (axis, *(a for a in range(aval.ndim) if a != axis))
    first = lax.reshape(lax.transpose(top, order), full)
    return lax.convert_element_type(first, index)
