"""Hessian-vector products, and diagonals of the Hessian and of the Fisher information.

A loss here is `loss(params, inputs, targets)`; a vector has the elements of all
parameters, one array after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.base import Params
from fxflow.optim.vectors import joined, like_parts
from fxflow.transforms.grad import grad
from fxflow.transforms.jvp import jvp
from fxflow.transforms.vmap import vmap

Loss = Callable[[Params, Any, Any], Any]

_docs = shared("""
    Args:
      loss: `loss(params, inputs, targets)`, a real number.
      params: pytree of float arrays, with n elements in total.
      inputs: argument of the loss.
      targets: argument of the loss.

    Raises:
      ShapeError: the length of the vector is not n.
""")


def _product(loss: Loss, v: Any, params: Params, inputs: Any, targets: Any) -> Params:
    def gradient(params: Params) -> Params:
        return grad(loss)(params, inputs, targets)

    return jvp(gradient, (params,), (like_parts("hvp", v, params),))[1]


@_docs
def hvp(loss: Loss, v: ArrayLike, params: Params, inputs: Any, targets: Any) -> Params:
    """Returns the product of the Hessian and a vector.

    Args:
      v: float[n], the vector.

    Returns:
      A pytree like the parameters.

    Example:
      >>> loss = lambda p, x, y: fnp.sum((p * x - y) ** 2)
      >>> x = fnp.array([1.0, 3.0])
      >>> optim.second_order.hvp(loss, fnp.ones(2), fnp.zeros(2), x, 0.0).tolist()
      [2.0, 18.0]
    """
    return _product(loss, v, params, inputs, targets)


@_docs
def hessian_diag(loss: Loss, params: Params, inputs: Any, targets: Any) -> Array:
    """Returns the diagonal of the Hessian.

    It computes n Hessian-vector products at once, so it is for small models.

    Returns:
      float[n].

    Example:
      >>> loss = lambda p, x, y: fnp.sum((p * x - y) ** 2)
      >>> x = fnp.array([1.0, 3.0])
      >>> optim.second_order.hessian_diag(loss, fnp.zeros(2), x, 0.0).tolist()
      [2.0, 18.0]
    """
    vector = joined(params)

    def element(unit: Any) -> Any:
        product = joined(_product(loss, unit, params, inputs, targets))
        return fnp.vdot(unit, product)

    units = fnp.eye(vector.shape[0], dtype=vector.dtype)
    diagonal: Array = vmap(element)(units)
    return diagonal


@_docs
def fisher_diag(
    negative_log_likelihood: Loss, params: Params, inputs: Any, targets: Any
) -> Array:
    """Returns squared gradients: the diagonal of the observed Fisher information.

    Args:
      negative_log_likelihood: the loss.

    Returns:
      float[n].

    Example:
      >>> loss = lambda p, x, y: fnp.sum((p * x - y) ** 2)
      >>> x = fnp.array([1.0, 3.0])
      >>> optim.second_order.fisher_diag(loss, fnp.ones(2), x, 0.0).tolist()
      [4.0, 324.0]
    """
    gradient = grad(negative_log_likelihood)(params, inputs, targets)
    return joined(tree.map(fnp.square, gradient))
