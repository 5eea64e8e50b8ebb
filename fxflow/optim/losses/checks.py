"""Checks of losses' arguments, and products of probabilities and logarithms."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, is_arraylike, not_an_array, typeof
from fxflow.errors import DtypeError, ShapeError


def floats(name: str, what: str, x: Any) -> Any:
    """Returns an argument, checked to be a float array.

    Args:
      name: name of the loss, for messages.
      what: the argument's name.
      x: the argument.

    Returns:
      `x`.

    Raises:
      ArgumentError: it is not an array.
      DtypeError: its dtype is not floating.
    """
    if not is_arraylike(x):
        raise not_an_array(x, f"{name}: {what} is")
    aval = typeof(x)
    if not dtypes.is_floating(aval.dtype):
        raise DtypeError(
            f"{name}: {what} must be floats, got {aval}: convert with .astype"
        )
    return x


def difference(name: str, predictions: Any, targets: Any) -> Any:
    """Returns the errors; requires equal shapes, because broadcasting hides mistakes.

    Args:
      name: name of the loss, for messages.
      predictions: float array.
      targets: array of the same shape, or 0-d; None means 0.

    Returns:
      Predictions minus targets.

    Raises:
      DtypeError: the predictions are not floats.
      ShapeError: the shapes differ.
    """
    floats(name, "predictions", predictions)
    if targets is None:
        return predictions
    if not is_arraylike(targets):
        raise not_an_array(targets, f"{name}: targets is")
    given, wanted = typeof(predictions), typeof(targets)
    if wanted.ndim and given.shape != wanted.shape:
        raise ShapeError(
            f"{name}: predictions and targets must have one shape, got {given} and "
            f"{wanted}"
        )
    return fnp.subtract(predictions, targets)


def same_shapes(name: str, predictions: Any, targets: Any) -> None:
    """Checks that two shapes are equal, because broadcasting hides mistakes.

    Args:
      name: name of the loss, for messages.
      predictions: array.
      targets: array.

    Raises:
      ArgumentError: the targets are not an array.
      ShapeError: the shapes differ.
    """
    if not is_arraylike(targets):
        raise not_an_array(targets, f"{name}: targets is")
    given, wanted = typeof(predictions), typeof(targets)
    if given.shape != wanted.shape:
        raise ShapeError(
            f"{name}: expected arrays of one shape, got {given} and {wanted}"
        )


def weighted_logs(weights: Any, logs: Any) -> Any:
    """Returns products that are 0 where a weight is 0 and its logarithm infinite.

    Args:
      weights: array, such as probabilities.
      logs: float array that broadcasts against it, such as their logarithms.

    Returns:
      `weights * logs`, or 0 with derivatives 0 in that case.
    """
    none = fnp.logical_and(fnp.equal(weights, 0), fnp.isinf(logs))
    return fnp.multiply(weights, fnp.where(none, 0, logs))
