"""Transformations that keep gradients small."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import typeof
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Scalar,
    Updates,
    cast_like,
    global_norm,
    need_params,
    stateless,
)


def clip(max_delta: Scalar) -> GradientTransformation:
    """Makes a transformation that clips each number to `[-max_delta, max_delta]`.

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


def clip_by_global_norm(max_norm: Scalar) -> GradientTransformation:
    r"""Makes a transformation that shortens all gradients together.

    .. math:: g \leftarrow g \min(1,\; c / \lVert g \rVert_2)

    Args:
      max_norm: c, the largest norm of all gradients together.

    Returns:
      A transformation without state.

    Example:
      >>> optim.clip_by_global_norm(1.0).update(fnp.array([3.0, 4.0]), ())[0].tolist()
      [0.6..., 0.8...]

    Reference: Pascanu, Mikolov, Bengio 2013.
    """

    def all_of(updates: Updates, params: Params | None) -> Updates:
        norm = global_norm(updates)
        small = fnp.less(norm, max_norm)

        def one(x: Any) -> Any:
            shorter = fnp.multiply(fnp.divide(x, cast_like(norm, x)), max_norm)
            return fnp.where(small, x, cast_like(shorter, x))

        return tree.map(one, updates)

    return stateless(all_of)


def clip_by_block_rms(threshold: Scalar) -> GradientTransformation:
    r"""Makes a transformation that shrinks each array of too large a root mean square.

    .. math:: g \leftarrow g / \max(1,\; \mathrm{rms}(g) / c)

    Args:
      threshold: c.

    Returns:
      A transformation without state.

    Example:
      >>> optim.clip_by_block_rms(1.0).update(fnp.array([2.0, 2.0]), ())[0].tolist()
      [1.0, 1.0]

    Reference: Shazeer and Stern 2018, "Adafactor".
    """

    def one(x: Any) -> Any:
        rms = fnp.sqrt(fnp.mean(fnp.square(fnp.abs(x))))
        return cast_like(fnp.divide(x, fnp.maximum(1.0, fnp.divide(rms, threshold))), x)

    return stateless(lambda updates, params: tree.map(one, updates))


def unitwise_norm(x: Any) -> Any:
    """Returns the norm of each unit of a weight, broadcast against it.

    A unit is a column of a matrix, or what a kernel of a convolution gives one channel;
    a vector (or a number) is one unit.

    Args:
      x: array of up to four axes.

    Returns:
      An array that broadcasts against `x`.

    Raises:
      ArgumentError: the array has more axes.
    """
    shape = typeof(x).shape
    squares = fnp.square(fnp.abs(x))
    if sum(n > 1 for n in shape) <= 1:
        return fnp.sqrt(fnp.sum(squares))
    if len(shape) > 4:
        raise ArgumentError(
            f"adaptive_grad_clip: weights have at most four axes, got {typeof(x)}: "
            "mask it out"
        )
    axes = (0, 1, 2) if len(shape) == 4 else 0
    return fnp.sqrt(fnp.sum(squares, axes, keepdims=True))


def adaptive_grad_clip(clipping: Scalar, eps: Scalar = 1e-3) -> GradientTransformation:
    r"""Makes a transformation that bounds gradients by the size of the parameters.

    For each unit, with gradient g and parameters p:

    .. math::
       g \leftarrow g \min(1,\; c \max(\lVert p\rVert, \epsilon) / \lVert g\rVert)

    Args:
      clipping: c, the largest ratio of the norms.
      eps: ε, the least norm of parameters that is assumed.

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
        norm = unitwise_norm(gradient)
        largest = fnp.multiply(clipping, fnp.maximum(unitwise_norm(param), eps))
        factor = fnp.divide(largest, fnp.maximum(norm, 1e-6))
        shorter = cast_like(fnp.multiply(gradient, factor), gradient)
        return fnp.where(fnp.less(norm, largest), gradient, shorter)

    def all_of(updates: Updates, params: Params | None) -> Updates:
        return tree.map(one, updates, need_params("adaptive_grad_clip", params))

    return stateless(all_of)
