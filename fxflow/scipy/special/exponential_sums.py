"""Sums of exponentials, over axes."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.lax.gradient_control import stop_gradient
from fxflow.nn import normalization
from fxflow.numpy._operands import ArrayLike, Axes, array_of
from fxflow.numpy.reductions import max, sum
from fxflow.scipy.special._operands import operands


@library("axis", "keepdims", "return_sign")
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """Logarithm of the sum of exponentials, without overflow.

    Args:
      a: array-like[...].
      axis: int, tuple of ints, or None for all axes.
      b: array-like of factors of the exponentials, broadcast against `a`.
      keepdims: whether to keep the reduced axes, with length 1.
      return_sign: whether to return the logarithm of the absolute value, and the sign.
      where: bool array that broadcasts to `a`: the elements to include.

    Returns:
      Float or complex array without the reduced axes; with `return_sign` a pair.

    Raises:
      AxisError: an axis is out of range or repeated.
      ArgumentError: an argument is not an array.

    Special cases:
      No elements: -inf. nan if the sum is negative, unless `return_sign`. Where `b`
      is 0, `a` does not matter; the derivative with respect to `b` is exp(a) divided by
      the sum.

    Example:
      >>> logsumexp(np.array([1000.0, 1000.0])).round(2)
      Array(1000.69, dtype=float32)

    Source: `scipy.special.logsumexp`.
    """
    if b is None:
        (x,), scale = operands("logsumexp", a, real=False), None
    else:
        x, scale = operands("logsumexp", a, b, real=False)
    mask = None if where is None else array_of(where, "logsumexp")
    along: Any = axis
    return normalization.logsumexp(x, along, scale, keepdims, return_sign, mask)


@library("axis")
def softmax(x: ArrayLike, axis: Axes = None) -> Array:
    """Exponentials divided by their sum.

    Args:
      x: array-like[...].
      axis: int, tuple of ints, or None for all axes.

    Returns:
      Float array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> softmax(np.array([0.0, 0.0]))
      Array([0.5, 0.5], dtype=float32)

    Source: `scipy.special.softmax`.
    """
    (x,) = operands("softmax", x, real=False)
    top = stop_gradient(max(x, axis=axis, keepdims=True, initial=-math.inf))
    terms = lax.exp(x - top)
    return terms / sum(terms, axis=axis, keepdims=True)


@library("axis")
def log_softmax(x: ArrayLike, axis: Axes = None) -> Array:
    """Logarithm of `softmax`.

    Args:
      x: array-like[...].
      axis: int, tuple of ints, or None for all axes.

    Returns:
      Float array of the shape of `x`.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> log_softmax(np.array([0.0]))
      Array([0.], dtype=float32)

    Source: `scipy.special.log_softmax`.
    """
    (x,) = operands("log_softmax", x, real=False)
    apart = x - stop_gradient(max(x, axis=axis, keepdims=True, initial=-math.inf))
    out: Array = apart - lax.log(sum(lax.exp(apart), axis=axis, keepdims=True))
    return out
