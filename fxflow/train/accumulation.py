"""`accumulate_gradients`: the gradients of a large batch, computed in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import dtypes, typeof
from fxflow.core.boundary import boundary
from fxflow.errors import ShapeError
from fxflow.lax.axes import natural
from fxflow.optim.numerics import widened
from fxflow.transforms.grad import value_and_grad


def accumulate_gradients(
    loss: Callable[..., Any], microbatches: int, *, has_aux: bool = False
) -> Callable[..., Any]:
    """Returns a function that computes loss and gradients of a batch in several parts.

    `lax.scan` processes one part after another, so that only one part needs memory at a
    time. For a loss that is a mean over the batch, the result is that of
    `value_and_grad` up to rounding. 16-bit values are summed in float32 and returned in
    their own dtype. (`optim.MultiSteps` accumulates over several steps.)

    Args:
      loss: `loss(params, batch)` returns a scalar, or with `has_aux` a scalar and a
        pytree of arrays. A batch is a pytree of arrays `[n, …]`.
      microbatches: the number of parts; it must divide `n`.
      has_aux: whether `loss` returns `(loss, aux)`.

    Returns:
      A function of `(params, batch)` that returns `(mean loss, mean gradients)`, or
      with `has_aux` `((mean loss, mean aux), mean gradients)`.

    Raises:
      ShapeError: when called, `n` is not a multiple of `microbatches`.

    Example:
      >>> loss = lambda w, x: fnp.mean((w - x) ** 2)
      >>> f = train.accumulate_gradients(loss, 2)
      >>> value, gradient = f(1.0, fnp.arange(4.0))
      >>> float(value), float(gradient)
      (1.5, -1.0)
    """
    count = natural("accumulate_gradients", "microbatches", microbatches)
    part = value_and_grad(loss, has_aux=has_aux)

    def split(leaf: Any) -> Any:
        aval = typeof(leaf)
        if not aval.ndim or aval.shape[0] % count:
            raise ShapeError(
                f"accumulate_gradients: cannot split a leaf {aval} of the batch into "
                f"{count} equal parts along axis 0"
            )
        return fnp.reshape(leaf, (count, aval.shape[0] // count, *aval.shape[1:]))

    @boundary
    def accumulated(params: Any, batch: Any) -> Any:
        parts = tree.map(split, batch)
        first = part(params, tree.map(lambda leaf: leaf[0], parts))
        if count == 1:
            return first
        rest = tree.map(lambda leaf: leaf[1:], parts)

        def step(total: Any, one: Any) -> tuple[Any, None]:
            return tree.map(fnp.add, total, part(params, one)), None

        total, _ = lax.scan(step, tree.map(widened, first), rest)

        def mean(total: Any, like: Any) -> Any:
            kind = dtypes.to_inexact(typeof(like).dtype)
            return fnp.astype(total / count, kind)

        return tree.map(mean, total, first)

    return accumulated
