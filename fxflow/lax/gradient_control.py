"""`stop_gradient`: a value that derivatives take for a constant."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import dtypes, is_arraylike, typeof
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.lax.families import ANY, MOVED, Elementwise

T = TypeVar("T")


@register
class StopGradient(Elementwise):
    """The operand, with derivative zero. dtypes: any. Lowered to nothing."""

    name = "stop_gradient"
    is_constant = True
    host_kinds = MOVED
    kinds = ANY
    numpy = np.asarray
    partials = (None,)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The operand itself."""
        return operands[0]


def stop_gradient(x: T) -> T:
    """Returns its argument, which derivatives take for a constant.

    Args:
      x: array or pytree of arrays; leaves that are not arrays stay as they are.

    Returns:
      The same values. The tangent and the cotangent of the result are zero.

    Example:
      >>> float(fxflow.grad(lambda x: x * stop_gradient(x))(3.0))
      3.0

      A target that is computed from the same weights but must not be moved by them:

      >>> def loss(w):
      ...     target = stop_gradient(2.0 * w)
      ...     return (w - target) ** 2
      >>> float(fxflow.grad(loss)(1.0))
      -2.0
    """
    result: T = tree.map(
        lambda leaf: StopGradient.bind(leaf) if _differentiable(leaf) else leaf, x
    )
    return result


def _differentiable(leaf: Any) -> bool:
    return is_arraylike(leaf) and dtypes.is_inexact(typeof(leaf).dtype)
