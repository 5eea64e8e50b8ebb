"""Layers that normalise: by batch, layer, group, instance, or root mean square.

Moments of 16-bit floats are computed in float32, variances from deviations.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.errors import ShapeError
from fxflow.lax.axes import natural, shape_or_length
from fxflow.nn import initializers
from fxflow.nn._layers import Params, floats, rank, shaped, weights
from fxflow.nn.normalization import standardize
from fxflow.numpy._operands import ArrayLike, DTypeLike

_init_docs = shared("""
    Args:
      features: length of the last axis.
      dtype: dtype of the weights; None means the default float.

    Returns:
      A dict of `scale`, ones, and `bias`, zeros.

    Raises:
      ArgumentError: a length is not a positive integer.
""")

_layer_docs = shared("""
    Args:
      params: weights, as `{name}_init` makes them.
      epsilon: ε, which keeps the denominator from 0.

    Returns:
      Array of the shape of `x`, of the dtype that it and the weights promote to.

    Raises:
      ArgumentError: the params are not a dict of the weights, or `x` is not an array.
      DtypeError: an argument has no floats.
      ShapeError: the shapes are incompatible.
""")


def _affine(features: Any, dtype: Any, name: str) -> Params:
    n = natural(name, "features", features)
    return {
        "scale": initializers.ones(None, n, dtype),
        "bias": initializers.zeros(None, n, dtype),
    }


def _wide(x: Any) -> Any:
    dtype = typeof(x).dtype
    return x if dtypes.bits(dtype) >= 32 else lax.convert_element_type(x, "float32")


def _scaled(x: Any, given: Any, params: Sequence[Any]) -> Array:
    """Returns normalised numbers times the scale plus the bias, if there is one."""
    dtype = fnp.result_type(given, *params)
    out = fnp.multiply(x, params[0])
    for bias in params[1:]:
        out = fnp.add(out, bias)
    return lax.convert_element_type(out, dtype)


def _fitting(name: str, x: Any, params: Sequence[Any], ndim: int = 1) -> Any:
    """Checks that the last axes of `x` are those of the weights, `ndim` after more."""
    floats(name, "x", x)
    wanted = typeof(params[0]).shape
    shape = typeof(x).shape
    if len(shape) < ndim or shape[len(shape) - len(wanted) :] != wanted:
        listed = ", ".join(map(str, ("...", *wanted)))
        raise ShapeError(f"{name}: x must be float[{listed}], got {typeof(x)}")
    return _wide(x)


# -- one example at a time -------------------------------------------------------------


@_init_docs
def layer_norm_init(
    shape: int | Sequence[int], *, dtype: DTypeLike | None = None
) -> Params:
    """Makes the weights of `layer_norm`.

    Args:
      shape: shape of the last axes of `x`, which are normalised together; or the length
        of the last one.

    Example:
      >>> nn.layer_norm_init(16)["scale"].shape
      (16,)
    """
    lengths = shape_or_length("layer_norm_init", shape)
    return {
        "scale": initializers.ones(None, lengths, dtype),
        "bias": initializers.zeros(None, lengths, dtype),
    }


@_layer_docs
def layer_norm(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    *,
    epsilon: float | ArrayLike = 1e-5,
) -> Array:
    r"""Normalises over the last axes: :math:`(x - \mu)/\sqrt{v + \epsilon}\, s + b`.

    Args:
      x: float[..., axes], the axes being those of the weights.

    Example:
      >>> params = nn.layer_norm_init(4)
      >>> bool(abs(nn.layer_norm(params, fnp.arange(8.0).reshape(2, 4)).sum()) < 1e-5)
      True

    Source: Ba, Kiros and Hinton 2016.
    """
    affine = _over_last("layer_norm", params, "scale", "bias")
    wide = _fitting("layer_norm", x, affine)
    axes = tuple(range(-typeof(affine[0]).ndim, 0))
    out = standardize(wide, axes, epsilon=epsilon, algorithm="stable")
    return _scaled(out, x, affine)


def _over_last(name: str, params: Any, *keys: str) -> list[Any]:
    """Returns weights of one shape, whatever it is."""
    axes = " ".join(f"axis{i}" for i in range(rank(params, "scale", 1)))
    return weights(name, params, **dict.fromkeys(keys, axes))


def rms_norm_init(
    shape: int | Sequence[int], *, dtype: DTypeLike | None = None
) -> Params:
    """Makes the weights of `rms_norm`.

    Args:
      shape: shape of the last axes of `x`, which are normalised together; or the length
        of the last one.
      dtype: dtype of the weights; None means the default float.

    Returns:
      A dict of `scale`, ones.

    Raises:
      ArgumentError: the shape is not a shape.

    Example:
      >>> nn.rms_norm_init(16)["scale"].shape
      (16,)
    """
    lengths = shape_or_length("rms_norm_init", shape)
    return {"scale": initializers.ones(None, lengths, dtype)}


@_layer_docs
def rms_norm(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    *,
    epsilon: float | ArrayLike = 1e-6,
) -> Array:
    r"""Divides by the root mean square: :math:`x / \sqrt{m(x^2) + \epsilon}\, s`.

    Args:
      x: float[..., axes], the axes being those of the weights.

    Example:
      >>> nn.rms_norm(nn.rms_norm_init(2), fnp.array([7.0, -7.0])).round(3).tolist()
      [1.0, -1.0]

    Source: Zhang and Sennrich 2019.
    """
    affine = _over_last("rms_norm", params, "scale")
    wide = _fitting("rms_norm", x, affine)
    axes = tuple(range(-typeof(affine[0]).ndim, 0))
    square = fnp.mean(fnp.square(wide), axes, keepdims=True)
    return _scaled(fnp.multiply(wide, lax.rsqrt(fnp.add(square, epsilon))), x, affine)


@_init_docs
def group_norm_init(features: int, *, dtype: DTypeLike | None = None) -> Params:
    """Makes the weights of `group_norm`.

    Example:
      >>> nn.group_norm_init(16)["scale"].shape
      (16,)
    """
    return _affine(features, dtype, "group_norm_init")


@_layer_docs
def group_norm(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    groups: int,
    *,
    epsilon: float | ArrayLike = 1e-5,
) -> Array:
    """Normalises over groups of features, and all positions of an example.

    Args:
      x: float[batch, ..., features].
      groups: how many; neighbouring features are in one.

    Raises:
      ShapeError: the groups do not divide the features.

    Example:
      >>> x = random.normal(random.key(0), (2, 5, 5, 8))
      >>> nn.group_norm(nn.group_norm_init(8), x, 4).shape
      (2, 5, 5, 8)

    Source: Wu and He 2018.
    """
    return _grouped("group_norm", params, x, groups, epsilon)


def _grouped(name: str, params: Any, x: Any, groups: Any, epsilon: Any) -> Array:
    affine = weights(name, params, scale="features", bias="features")
    wide = _fitting(name, x, affine, 2)
    shape = typeof(x).shape
    count = shape[-1] if groups is None else natural(name, "groups", groups)
    if shape[-1] % (count or 1):
        raise ShapeError(f"{name}: {count} groups do not divide {shape[-1]} features")
    # Not before it is needed: importing `fxflow.nn` loads no kernels.
    kernels: Any = importlib.import_module("fxflow.kernels.gallery.groups")
    if kernels.is_worthwhile(x) and typeof(epsilon).ndim == 0:
        dtype = fnp.result_type(x, *affine)
        return kernels.normalized(  # type: ignore[no-any-return]
            x, *affine, epsilon, groups=count, dtype=dtype
        )
    split = fnp.reshape(wide, (*shape[:-1], count, shape[-1] // (count or 1)))
    axes = (*range(1, len(shape) - 1), len(shape))
    out = standardize(split, axes, epsilon=epsilon, algorithm="stable")
    return _scaled(fnp.reshape(out, shape), x, affine)


@_init_docs
def instance_norm_init(features: int, *, dtype: DTypeLike | None = None) -> Params:
    """Makes the weights of `instance_norm`.

    Example:
      >>> nn.instance_norm_init(16)["scale"].shape
      (16,)
    """
    return _affine(features, dtype, "instance_norm_init")


@_layer_docs
def instance_norm(
    params: Mapping[str, ArrayLike],
    x: ArrayLike,
    *,
    epsilon: float | ArrayLike = 1e-5,
) -> Array:
    """Normalises each feature over all positions of an example.

    Args:
      x: float[batch, ..., features].

    Example:
      >>> x = random.normal(random.key(0), (2, 5, 5, 8))
      >>> nn.instance_norm(nn.instance_norm_init(8), x).shape
      (2, 5, 5, 8)

    Source: Ulyanov, Vedaldi and Lempitsky 2016.
    """
    return _grouped("instance_norm", params, x, None, epsilon)


# -- over the batch --------------------------------------------------------------------


@_init_docs
def batch_norm_init(features: int, *, dtype: DTypeLike | None = None) -> Params:
    """Makes the weights of `batch_norm`.

    Example:
      >>> nn.batch_norm_init(16)["scale"].shape
      (16,)
    """
    return _affine(features, dtype, "batch_norm_init")


def batch_norm_state(features: int, *, dtype: DTypeLike | None = None) -> Params:
    """Makes the running moments of `batch_norm` before the first batch.

    Args:
      features: length of the last axis.
      dtype: dtype of the moments; None means the default float. 16 bits are too few.

    Returns:
      A dict of `mean`, zeros, and `var`, ones.

    Raises:
      ArgumentError: the length is not a positive integer.

    Example:
      >>> nn.batch_norm_state(16)["var"].shape
      (16,)
    """
    made = _affine(features, dtype, "batch_norm_state")
    return {"mean": made["bias"], "var": made["scale"]}


def batch_norm(
    params: Mapping[str, ArrayLike],
    state: Mapping[str, ArrayLike],
    x: ArrayLike,
    *,
    training: bool,
    momentum: float | ArrayLike = 0.99,
    epsilon: float | ArrayLike = 1e-5,
    axis_name: str | Sequence[str] | None = None,
    mask: ArrayLike | None = None,
) -> tuple[Params, Array]:
    r"""Normalises each feature over the batch and all positions.

    .. math:: (x - \mu)/\sqrt{v + \epsilon}\, s + b

    In training μ and v are the moments of this batch, and the running ones move towards
    them: :math:`r' = m r + (1 - m) \mu`. Else they are the running ones.

    Args:
      params: weights, as `batch_norm_init` makes them.
      state: running moments, as `batch_norm_state` makes them.
      x: float[..., features].
      training: whether to take the moments of the batch, and to learn them.
      momentum: m, from 0 to 1.
      epsilon: ε, which keeps the denominator from 0.
      axis_name: mapped axis or axes (of `pmap`, `shard_map`, `vmap`) over which the
        batch is spread: moments are those of the whole.
      mask: bool, of the shape of `x` without features: which positions the moments are
        taken of; None means all.

    Returns:
      The state, new in training, of the same dtypes; and an array of the shape of `x`,
      of the dtype that it and the weights promote to.

    Raises:
      ArgumentError: params or state are not dicts of these arrays, or `x` is not an
        array.
      DtypeError: an argument has no floats, or the mask is not bool.
      ShapeError: the shapes are incompatible.

    Special cases:
      The variance is that of the batch, divided by n, in the running one too. Without
      any position the moments are 0 and 0.

    Example:
      >>> params, state = nn.batch_norm_init(3), nn.batch_norm_state(3)
      >>> x = random.normal(random.key(0), (64, 3)) + 5
      >>> state, y = nn.batch_norm(params, state, x, training=True, momentum=0.0)
      >>> bool(abs(y.mean()) < 1e-5), bool(abs(state["mean"] - 5).max() < 0.5)
      (True, True)

    Source: Ioffe and Szegedy 2015.
    """
    name = "batch_norm"
    affine = weights(name, params, scale="features", bias="features")
    wide = _fitting(name, x, affine)
    size = typeof(affine[0]).shape[0]
    mean, var = weights(name, state, what="state", mean="features", var="features")
    shaped(name, 'state["mean"]', mean, (size,), "floats")
    if mask is not None:
        mask = fnp.expand_dims(
            shaped(name, "mask", mask, typeof(x).shape[:-1], "bools"), -1
        )
    if not training:
        kept = {"mean": fnp.asarray(mean), "var": fnp.asarray(var)}
        return kept, _scaled(_standard(wide, mean, var, epsilon), x, affine)
    axes = tuple(range(typeof(x).ndim - 1))
    here: Any = math.prod(typeof(x).shape[:-1]) if mask is None else fnp.sum(mask)
    count: Any = here if axis_name is None else lax.psum(here, axis_name)
    count = fnp.maximum(count, 1)
    now = fnp.divide(_total(wide, mask, axes, axis_name), count)
    away = fnp.square(fnp.subtract(wide, now))
    spread = fnp.divide(_total(away, mask, axes, axis_name), count)

    def moved(old: Any, new: Any) -> Any:
        out = fnp.add(new, fnp.multiply(momentum, fnp.subtract(old, new)))
        return lax.convert_element_type(out, typeof(old).dtype)

    moments = {"mean": moved(mean, now), "var": moved(var, spread)}
    return moments, _scaled(_standard(wide, now, spread, epsilon), x, affine)


def _standard(x: Any, mean: Any, var: Any, epsilon: Any) -> Any:
    return fnp.multiply(fnp.subtract(x, mean), lax.rsqrt(fnp.add(var, epsilon)))


def _total(x: Any, mask: Any, axes: Any, axis_name: Any) -> Any:
    """Returns the sum over the axes, and over all devices."""
    total = fnp.sum(x, axes, where=mask)
    return total if axis_name is None else lax.psum(total, axis_name)
