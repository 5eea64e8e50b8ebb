"""Mixed precision: dtypes of parameters, computation and results, and loss scaling.

Parameters stay float32; the model computes in bfloat16 or float16, which is faster on
hardware that supports it. Small gradients underflow in float16, so the loss is scaled
up before gradients are computed, and a step whose gradients overflow is skipped.

Reference: Micikevicius et al., *Mixed Precision Training*, 2018.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple, TypeVar

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.numerics import all_finite, widened

__all__ = ["LossScale", "Policy", "all_finite", "loss_scale", "policy", "select_tree"]

T = TypeVar("T")

_SHORT = {"half": "float16", "full": "float32", "f16": "float16", "bf16": "bfloat16"}
_SHORT |= {"f32": "float32", "f64": "float64"}


def _cast(values: T, dtype: Any) -> T:
    """Returns a tree with its floating-point leaves in another dtype."""

    def leaf(value: Any) -> Any:
        if is_arraylike(value) and dtypes.is_floating(typeof(value).dtype):
            return fnp.asarray(value).astype(dtype)
        return value

    result: T = tree.map(leaf, values)
    return result


@dataclasses.dataclass(frozen=True)
class Policy:
    """The dtypes of parameters, computation and results.

    Attributes:
      param_dtype: the dtype of parameters and optimizer states.
      compute_dtype: the dtype in which the model computes.
      output_dtype: the dtype of its results.

    Example:
      >>> policy = train.precision.policy("params=f32,compute=bf16,output=f32")
      >>> params = {"w": fnp.ones(2), "steps": fnp.array(3)}
      >>> fxflow.tree.map(lambda x: str(x.dtype), policy.cast_to_compute(params))
      {'steps': 'int32', 'w': 'bfloat16'}
    """

    param_dtype: Any = dtypes.float32
    compute_dtype: Any = dtypes.float32
    output_dtype: Any = dtypes.float32

    def cast_to_param(self, values: T) -> T:
        """Returns a pytree with its floating-point leaves in the parameters' dtype.

        Args:
          values: pytree; other leaves do not change.
        """
        return _cast(values, self.param_dtype)

    def cast_to_compute(self, values: T) -> T:
        """Returns a pytree with its floating-point leaves in the computation's dtype.

        Args:
          values: pytree; other leaves do not change.
        """
        return _cast(values, self.compute_dtype)

    def cast_to_output(self, values: T) -> T:
        """Returns a pytree with its floating-point leaves in the results' dtype.

        Args:
          values: pytree; other leaves do not change.
        """
        return _cast(values, self.output_dtype)


def policy(text: str) -> Policy:
    """Parses a policy.

    Args:
      text: a dtype for all three, or `"params=float32,compute=bfloat16,output=f32"`;
        the default of each is float32. `"half"` is float16, `"full"` float32.

    Returns:
      The policy.

    Raises:
      ArgumentError: a name is not one of the three, or a dtype is not floating point.

    Example:
      >>> train.precision.policy("bf16") == train.precision.policy(
      ...     "params=bf16,compute=bf16,output=bf16")
      True
    """
    names = {"params": "param_dtype", "compute": "compute_dtype"}
    names |= {"output": "output_dtype"}
    if not isinstance(text, str):
        raise ArgumentError(f"policy: expected a string, got {text!r}")
    if "=" not in text:
        return Policy(*[_dtype(text)] * 3)
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, dtype = (word.strip() for word in part.partition("="))
        if name not in names:
            raise ArgumentError(
                f"policy: expected params=, compute= and output=, got {part!r}"
            )
        found[names[name]] = _dtype(dtype)
    return Policy(**found)


def _dtype(text: str) -> Any:
    try:
        dtype = fnp.dtype(_SHORT.get(text, text))
    except TypeError:
        dtype = None
    if dtype is None or not dtypes.is_floating(dtype):
        raise ArgumentError(f"policy: {text!r} is not a floating-point dtype")
    return dtype


# -- the scale of the loss -------------------------------------------------------------


def select_tree(which: ArrayLike, new: T, old: T) -> T:
    """Returns one of two pytrees, selected by a boolean scalar.

    Args:
      which: bool[]; True selects `new`.
      new: pytree of arrays.
      old: pytree of the same structure.

    Returns:
      The selected pytree; both are computed.

    Example:
      >>> float(train.precision.select_tree(fnp.array(False), 1.0, 2.0))
      2.0
    """
    result: T = tree.map(lambda n, o: fnp.where(which, n, o), new, old)
    return result


class LossScale(NamedTuple):
    """A factor for the loss that falls when gradients overflow, and rises again.

    It is a pytree, part of the training state. In a step::

        loss, gradients = fxflow.value_and_grad(scaled_loss)(params, scale, ...)
        gradients = scale.unscale(gradients)
        finite = precision.all_finite(gradients)
        new = optimizer's step
        state = precision.select_tree(finite, new, state)
        scale = scale.adjust(finite)

    Attributes:
      scale: float32[], the factor.
      good_steps: int32[], the number of finite steps since `scale` changed.
      period: int32[], the number of finite steps after which `scale` rises.
      factor: float32[], the factor by which `scale` rises and falls.
      smallest: float32[], the lower bound of `scale`.

    Example:
      >>> scale = train.precision.loss_scale(2.0**15, period=2)
      >>> scale = scale.adjust(fnp.array(False))
      >>> float(scale.scale)
      16384.0
      >>> scale = scale.adjust(fnp.array(True)).adjust(fnp.array(True))
      >>> float(scale.scale)
      32768.0
    """

    scale: Array
    good_steps: Array
    period: Array
    factor: Array
    smallest: Array

    def apply(self, loss: T) -> T:
        """Returns a loss, or a pytree of losses, times the factor, in its dtype.

        Args:
          loss: pytree of floats; float32 is better than float16, whose largest number
            is 65504.
        """

        def leaf(value: Any) -> Any:
            wide = fnp.asarray(widened(value))
            scaled = wide * self.scale.astype(wide.dtype)
            return scaled.astype(typeof(value).dtype)

        result: T = tree.map(leaf, loss)
        return result

    def unscale(self, gradients: T) -> T:
        """Returns gradients divided by the factor, in float32 or wider.

        Args:
          gradients: pytree of floats.
        """

        def leaf(gradient: Any) -> Any:
            wide = fnp.asarray(widened(gradient))
            return wide / self.scale.astype(fnp.finfo(wide.dtype).dtype)

        result: T = tree.map(leaf, gradients)
        return result

    def adjust(self, finite: ArrayLike) -> LossScale:
        """Returns the factor for the next step.

        Args:
          finite: bool[], whether the gradients of this step were finite.
        """
        counted = self.good_steps + 1
        good_step = fnp.asarray(finite)
        rises = good_step & (counted >= self.period)
        grown = self.scale * self.factor
        # A factor that overflowed would never become finite again.
        grown = fnp.where(fnp.isfinite(grown), grown, self.scale)
        fallen = fnp.maximum(self.scale / self.factor, self.smallest)
        scale = fnp.where(good_step, fnp.where(rises, grown, self.scale), fallen)
        good = fnp.where(good_step & ~rises, counted, 0)
        return self._replace(scale=scale, good_steps=good)


def loss_scale(
    initial: float = 2.0**15,
    *,
    period: int = 2000,
    factor: float = 2.0,
    smallest: float = 1.0,
) -> LossScale:
    """Returns a dynamic loss scale.

    Args:
      initial: the initial scale. With `factor=1` it is constant.
      period: the number of steps with finite gradients after which it rises.
      factor: the factor by which it rises, and by which it falls after a step with
        other gradients; at least 1.
      smallest: its lower bound.

    Returns:
      A `LossScale`.

    Raises:
      ArgumentError: a number is out of range.
    """
    if not (initial > 0 and smallest > 0 and factor >= 1 and period >= 1):
        raise ArgumentError(
            f"loss_scale: initial and smallest must be positive, factor and period at "
            f"least 1, got initial={initial}, smallest={smallest}, factor={factor}, "
            f"period={period}"
        )
    floats = (fnp.float32(value) for value in (initial, factor, smallest))
    scale, by, least = floats
    return LossScale(scale, fnp.int32(0), fnp.int32(period), by, least)
