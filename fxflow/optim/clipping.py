"""Gradient clipping."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.elementary import flat_at_zero
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Scalar,
    Updates,
    cast_like,
    global_norm,
    in_float32,
    need_params,
    stateless,
)
from fxflow.optim.numerics import in_wide, safe_root_mean_squares, widened


def clip(max_delta: Scalar) -> GradientTransformation:
    """Makes a transformation that clips each element to `[-max_delta, max_delta]`.

    Args:
      max_delta: bound, > 0.

    Returns:
      A transformation without state.

    Example:
      >>> optim.clip(1.0).update(fnp.array([3.0, -0.5]), ())[0].tolist()
      [1.0, -0.5]
    """

    def one(x: Any) -> Any:
        return cast_like(fnp.clip(x, fnp.negative(max_delta), max_delta), x)

    return stateless(lambda updates, params: tree.map(one, updates))


def _clip_factor(norm: Any, longest: Any) -> Any:
    """Returns the factor that reduces a norm to at most `longest`."""
    short = fnp.less_equal(norm, longest)
    return fnp.where(short, 1.0, fnp.divide(longest, fnp.where(short, 1.0, norm)))


def clip_by_global_norm(max_norm: Scalar) -> GradientTransformation:
    r"""Makes a transformation that bounds the norm of all gradients together.

    .. math:: g \leftarrow g \min(1,\; c / \lVert g \rVert_2)

    Args:
      max_norm: c, the largest norm.

    Returns:
      A transformation without state.

    Example:
      >>> optim.clip_by_global_norm(1.0).update(fnp.array([3.0, 4.0]), ())[0].tolist()
      [0.6..., 0.8...]

    Reference: Pascanu, Mikolov, Bengio 2013.
    """

    def all_of(updates: Updates, params: Params | None) -> Updates:
        factor = _clip_factor(global_norm(updates), max_norm)
        return tree.map(lambda x: fnp.multiply(x, factor), updates)

    return in_float32(stateless(all_of))


def clip_by_block_rms(threshold: Scalar) -> GradientTransformation:
    r"""Makes a transformation that bounds the root mean square of each array.

    .. math:: g \leftarrow g / \max(1,\; \mathrm{rms}(g) / c)

    Args:
      threshold: c, the largest root mean square.

    Returns:
      A transformation without state.

    Example:
      >>> optim.clip_by_block_rms(1.0).update(fnp.array([2.0, 2.0]), ())[0].tolist()
      [1.0, 1.0]

    Reference: Shazeer and Stern 2018, "Adafactor".
    """

    def one(x: Any) -> Any:
        rms = safe_root_mean_squares(x, 0.0)
        return fnp.multiply(x, _clip_factor(rms, threshold))

    return in_float32(stateless(lambda updates, params: tree.map(one, updates)))


def unitwise_norm(x: ArrayLike, axis: int | tuple[int, ...] | None = None) -> Array:
    """Returns the norm of each unit of a weight, broadcast against it.

    A unit is a column of a matrix, or the part of a convolution's kernel for one output
    channel; a vector or a scalar is one unit.

    Args:
      x: array of up to four axes, or of any number if `axis` is given.
      axis: the axes of one unit; None means the axes described above.

    Returns:
      An array that broadcasts against `x`.

    Raises:
      ArgumentError: the array has more axes.

    Special cases:
      The derivative at a unit of zeros is 0.

    Example:
      >>> optim.unitwise_norm(fnp.array([[3.0, 0.0], [4.0, 2.0]])).tolist()
      [[5.0, 2.0]]
    """
    shape = typeof(x).shape
    keepdims = axis is not None or sum(n > 1 for n in shape) > 1
    if axis is None and keepdims:
        if len(shape) > 4:
            raise ArgumentError(
                f"unitwise_norm: weights must have at most four axes, got {typeof(x)}: "
                "mask them or pass axis"
            )
        axis = (0, 1, 2) if len(shape) == 4 else 0

    def of(x: Any) -> Any:
        squares = fnp.sum(fnp.square(fnp.abs(x)), axis, keepdims=keepdims)
        return flat_at_zero(fnp.sqrt, squares)

    norm: Array = in_wide(of, x)
    return norm


def unitwise_clip(
    g_norm: ArrayLike, max_norm: ArrayLike, grad: ArrayLike, div_eps: Scalar = 1e-6
) -> Array:
    """Returns a gradient with the norms of its units clipped.

    Args:
      g_norm: norms of the gradient's units, which broadcast against it.
      max_norm: the largest norms, which broadcast against it.
      grad: the gradient.
      div_eps: lower bound of the divisor.

    Returns:
      An array like `grad`.

    Example:
      >>> g = fnp.array([3.0, 4.0])
      >>> optim.unitwise_clip(optim.unitwise_norm(g), 2.5, g).tolist()
      [1.5, 2.0]
    """
    factor = fnp.divide(max_norm, fnp.maximum(g_norm, div_eps))
    shorter = cast_like(fnp.multiply(grad, factor), grad)
    return fnp.where(fnp.less(g_norm, max_norm), grad, shorter)


def adaptive_grad_clip(
    clipping: Scalar, eps: Scalar = 1e-3, axis: int | tuple[int, ...] | None = None
) -> GradientTransformation:
    r"""Makes a transformation that bounds gradients relative to the parameters.

    For each unit, with gradient g and parameters p:

    .. math::
       g \leftarrow g \min(1,\; c \max(\lVert p\rVert, \epsilon) / \lVert g\rVert)

    Args:
      clipping: c, the largest ratio of the norms.
      eps: ε, lower bound of the norm of the parameters.
      axis: the axes of one unit; None means those of `unitwise_norm`.

    Returns:
      A transformation without state, which needs the parameters.

    Example:
      >>> tx = optim.adaptive_grad_clip(0.1)
      >>> tx.update(fnp.array([3.0, 4.0]), (), fnp.array([0.0, 10.0]))[0].tolist()
      [0.6..., 0.8...]

    Reference: Brock, De, Smith, Simonyan 2021, "High-performance large-scale image
    recognition without normalization".
    """

    def one(gradient: Any, param: Any) -> Any:
        largest = fnp.multiply(clipping, fnp.maximum(unitwise_norm(param, axis), eps))
        return unitwise_clip(unitwise_norm(gradient, axis), largest, gradient)

    def all_of(updates: Updates, params: Params | None) -> Updates:
        return tree.map(one, updates, need_params("adaptive_grad_clip", params))

    return in_float32(stateless(all_of))


# -- gradients of examples -------------------------------------------------------------


def _batch_size(name: str, grads: Updates) -> int:
    shapes = [typeof(g).shape for g in tree.leaves(grads)]
    sizes = {shape[0] if shape else None for shape in shapes}
    if len(sizes) != 1 or None in sizes:
        raise ArgumentError(
            f"{name}: the first axis of each gradient is that of the examples, with "
            f"one length, got {', '.join(map(str, shapes)) or 'no array'}"
        )
    (size,) = sizes
    return size or 0


def _example_squares(g: Any) -> Any:
    axes = tuple(range(1, typeof(g).ndim))
    return fnp.sum(fnp.square(fnp.abs(widened(g))), axes)


def _clipped_sum(g: Any, norms: Any, longest: Any) -> Any:
    weights = _clip_factor(norms, longest)
    return cast_like(fnp.tensordot(weights, widened(g), 1), g)


def per_example_global_norm_clip(
    grads: Updates, l2_norm_clip: Scalar
) -> tuple[Updates, Array]:
    """Returns the sum of the examples' gradients, each clipped to a largest norm.

    Args:
      grads: pytree of arrays with one gradient for each example along the first axis.
      l2_norm_clip: the largest norm of all arrays of an example together.

    Returns:
      The sum over examples, and the number of clipped gradients, int32[].

    Raises:
      ArgumentError: the first axes differ.

    Example:
      >>> total, clipped = optim.per_example_global_norm_clip(
      ...     [fnp.array([[3.0, 4.0], [0.0, 0.5]])], 1.0
      ... )
      >>> total[0], int(clipped)
      (Array([0.6, 1.3], dtype=float32), 1)

    Reference: Abadi et al. 2016, "Deep learning with differential privacy".
    """
    count = _batch_size("per_example_global_norm_clip", grads)
    squares = fnp.zeros((count,))
    for g in tree.leaves(grads):
        squares = fnp.add(squares, _example_squares(g))
    norms = flat_at_zero(fnp.sqrt, squares)
    return (
        tree.map(lambda g: _clipped_sum(g, norms, l2_norm_clip), grads),
        fnp.sum(fnp.greater(norms, l2_norm_clip), dtype="int32"),
    )


def per_example_layer_norm_clip(
    grads: Updates, global_l2_norm_clip: Scalar, uniform: bool = True
) -> tuple[Updates, Updates]:
    r"""Returns the sum of the examples' gradients, each array clipped separately.

    Args:
      grads: pytree of arrays with one gradient for each example along the first axis.
      global_l2_norm_clip: C, the largest norm of all arrays of an example together.
      uniform: whether the bound for each of the k arrays is :math:`C / \sqrt k`;
        otherwise it is :math:`C \sqrt{d / D}` for an array of d of the D parameters.

    Returns:
      The sum over examples, and the number of clipped gradients of each array, int32[].

    Raises:
      ArgumentError: the first axes differ.

    Example:
      >>> total, clipped = optim.per_example_layer_norm_clip(
      ...     [fnp.array([[3.0, 4.0], [0.0, 0.5]])], 1.0
      ... )
      >>> total[0], int(clipped[0])
      (Array([0.6, 1.3], dtype=float32), 1)

    Reference: McMahan, Ramage, Talwar, Zhang 2018, "Learning differentially private
    recurrent language models".
    """
    count = _batch_size("per_example_layer_norm_clip", grads)
    leaves, treedef = tree.flatten(grads)
    sizes = [typeof(g).size // max(count, 1) for g in leaves]
    total = sum(sizes)
    sums, clipped = [], []
    for g, size in zip(leaves, sizes, strict=True):
        part = 1 / len(leaves) if uniform else size / total
        longest = fnp.multiply(global_l2_norm_clip, part**0.5)
        norms = flat_at_zero(fnp.sqrt, _example_squares(g))
        sums.append(_clipped_sum(g, norms, longest))
        clipped.append(fnp.sum(fnp.greater(norms, longest), dtype="int32"))
    return treedef.unflatten(sums), treedef.unflatten(clipped)
