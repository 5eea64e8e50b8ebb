"""Numerically safe helpers: sums in float32, positive roots, quotients without nan.

`fxflow.optim` and `fxflow.train` compute everything that accumulates or divides
(moments, norms, averages, sums, ε) in at least float32, and keep it so between steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, ShapeDtypeStruct, dtypes, typeof
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.elementary import flat_at_zero
from fxflow.transforms.custom_jvp import custom_jvp

_NARROW = frozenset(
    d for d in dtypes.ALL if dtypes.is_floating(d) and dtypes.bits(d) < 32
)


def widened(x: Any) -> Any:
    """Returns floats of fewer than 32 bits as float32, and other arrays unchanged.

    Args:
      x: array, or a `ShapeDtypeStruct`.

    Returns:
      `x`, in float32 if it was narrower.
    """
    if getattr(x, "dtype", None) not in _NARROW:
        return x
    if isinstance(x, ShapeDtypeStruct):
        return ShapeDtypeStruct(x.shape, dtypes.float32, sharding=x.sharding)
    return fnp.astype(x, dtypes.float32)


def rest_of(share: Any, x: Any) -> Any:
    """Returns `1 - share`, in the precision of the array it will be multiplied with.

    While `x64` is off, a Python number alone becomes a float32, and the difference adds
    to 1 with the share in float32; with an array of 64 bits it must do so in 64 bits.

    Args:
      share: number.
      x: array.

    Returns:
      A number.
    """
    if isinstance(share, int | float) and is_double(x):
        return 1.0 - share
    return fnp.subtract(1.0, share)


def is_double(x: Any) -> bool:
    """Returns whether an array has floats of 64 bits, or complex numbers of 128."""
    return dtypes.to_real(typeof(x).dtype) == dtypes.float64


def in_wide(f: Callable[..., Any], *arrays: Any) -> Any:
    """Returns a function's result, computed in float32 if arrays have 16 bits.

    Args:
      f: function from arrays to an array.
      *arrays: its arguments.

    Returns:
      The result, in the dtype that the arrays promote to if one of them was widened.
    """
    wide = [widened(x) for x in arrays]
    out = f(*wide)
    if all(new is old for new, old in zip(wide, arrays)):
        return out
    return fnp.astype(out, fnp.result_type(*arrays))


def positive_root(x: Any) -> Any:
    """Returns the square root of a mean of squares, bounded away from 0.

    Args:
      x: float array of nonnegative numbers.

    Returns:
      The square root of `x`, but at least that of the smallest normal number: where all
      squares are 0, gradients over the root are 0 and derivatives are finite.
    """
    return fnp.sqrt(fnp.maximum(x, float(fnp.finfo(typeof(x).dtype).tiny)))


def quotient(above: Any, below: Any) -> Any:
    """Returns a quotient that is 0, with derivative 0, where the divisor is 0.

    Args:
      above: array.
      below: array that broadcasts against it.

    Returns:
      `above / below`.
    """
    none = fnp.equal(below, 0)
    return fnp.where(none, 0, fnp.divide(above, fnp.where(none, 1, below)))


def safe_norm(
    x: ArrayLike,
    min_norm: ArrayLike,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> Array:
    """Returns a norm with a lower bound, with finite derivatives.

    Args:
      x: array.
      min_norm: the lower bound.
      ord: see `fnp.linalg.norm`.
      axis: the axis of the vectors, or two axes of matrices; None means that the array
        is one vector (of its elements, if `ord` is None), or one matrix.
      keepdims: whether the result keeps these axes, with length 1.

    Returns:
      A float array without the axes.

    Raises:
      ArgumentError: `ord` is invalid.
      AxisError: an axis is out of range.

    Special cases:
      The derivative is 0 where the norm is at most `min_norm`.

    Example:
      >>> float(optim.safe_norm(fnp.array([3.0, 4.0]), 1e-6))
      5.0
      >>> fxflow.grad(lambda x: optim.safe_norm(x, 0.0))(fnp.zeros(2)).tolist()
      [0.0, 0.0]
    """
    axes: Any = tuple(axis) if isinstance(axis, Sequence) else axis

    def of(x: Any) -> Any:
        kept = fnp.linalg.norm(x, ord, axes, True)
        small = fnp.less_equal(kept, min_norm)
        # Where the norm is small, avoid its derivative, 0 times inf.
        away = fnp.where(small, fnp.ones_like(x), x)
        least = fnp.astype(min_norm, typeof(kept).dtype)
        norm = fnp.where(small, least, fnp.linalg.norm(away, ord, axes, True))
        return norm if keepdims else fnp.squeeze(norm, axes)

    norm: Array = in_wide(of, x)
    return norm


def safe_root_mean_squares(x: ArrayLike, min_rms: ArrayLike) -> Array:
    r"""Returns :math:`\sqrt{\operatorname{mean} |x|^2}` with a lower bound.

    Args:
      x: array.
      min_rms: the lower bound.

    Returns:
      A 0-d float array; `min_rms` for an empty array.

    Special cases:
      The derivative is 0 where the root is at most `min_rms`.

    Example:
      >>> float(optim.safe_root_mean_squares(fnp.array([1.0, -1.0]), 1e-3))
      1.0
    """
    if not typeof(x).size:
        return fnp.asarray(min_rms, fnp.real(fnp.zeros((), typeof(x).dtype)).dtype)

    def of(x: Any) -> Any:
        root = flat_at_zero(fnp.sqrt, fnp.mean(fnp.square(fnp.abs(x))))
        least = fnp.asarray(min_rms, root.dtype)
        return fnp.where(fnp.less_equal(root, min_rms), least, root)

    root: Array = in_wide(of, x)
    return root


@custom_jvp
def _scaled_back(x: Any, scale: Any) -> Any:
    return x


@_scaled_back.defjvp
def _scaled_back_jvp(primals: Any, tangents: Any) -> Any:
    (x, scale), (dx, _) = primals, tangents
    return x, fnp.astype(fnp.multiply(dx, scale), typeof(x).dtype)


def scale_gradient(inputs: Any, scale: ArrayLike) -> Any:
    """Returns its input, and multiplies derivatives with respect to it by a number.

    Args:
      inputs: pytree of arrays.
      scale: the number. The derivative with respect to it is 0.

    Returns:
      `inputs`.

    Example:
      >>> f = lambda x: fnp.sum(optim.scale_gradient(x, 3.0) ** 2)
      >>> float(f(fnp.array([2.0]))), fxflow.grad(f)(fnp.array([2.0])).tolist()
      (4.0, [12.0])
    """

    def one(x: Any) -> Any:
        # Integers have no derivative.
        return _scaled_back(x, scale) if dtypes.is_inexact(typeof(x).dtype) else x

    return tree.map(one, inputs)


def all_finite(values: Any) -> Array:
    """Returns whether all elements of all leaves are finite.

    Args:
      values: pytree of arrays.

    Returns:
      bool[].

    Example:
      >>> bool(train.precision.all_finite({"w": fnp.array([1.0, fnp.inf])}))
      False
    """
    finite = [fnp.all(fnp.isfinite(leaf)) for leaf in tree.leaves(values)]
    return functools.reduce(fnp.logical_and, finite, fnp.array(True))
