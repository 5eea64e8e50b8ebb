"""L-BFGS: estimates the curvature from the last gradients."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    ScalarOrSchedule,
    Updates,
    chain,
    in_float32,
    need_params,
    safe_increment,
    zero_count,
)
from fxflow.optim.linesearch import scale_by_zoom_linesearch
from fxflow.optim.numerics import quotient
from fxflow.optim.scaling import scale_by_learning_rate
from fxflow.optim.tree import add_scale, cast_like, norm, scale, vdot, zeros_like


class ScaleByLBFGSState(NamedTuple):
    """State of `scale_by_lbfgs`.

    The memories are ring buffers along the first axis: update t is at t modulo their
    size.

    Attributes:
      count: number of updates, int32[].
      params: the previous parameters.
      updates: the previous gradients.
      diff_params_memory: differences of parameters.
      diff_updates_memory: differences of gradients.
      weights_memory: reciprocal inner products of both; 0 for unused entries.
    """

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    params: Params
    updates: Updates
    diff_params_memory: Params
    diff_updates_memory: Updates
    weights_memory: Array


def scale_by_lbfgs(
    memory_size: int = 10, scale_init_precond: bool = True
) -> GradientTransformation:
    r"""Makes the transformation of L-BFGS: multiplies by an estimated inverse Hessian.

    The estimate maps the last m differences of gradients to those of parameters, and is
    otherwise as close as possible to a multiple of the identity.

    Args:
      memory_size: m.
      scale_init_precond: whether that multiple is
        :math:`\langle\Delta p, \Delta g\rangle / \lVert\Delta g\rVert^2` of the last
        step, and :math:`\min(1, 1 / \lVert g \rVert)` at first; otherwise it is 1.

    Returns:
      A transformation whose state is the differences; it needs the parameters.

    Raises:
      ArgumentError: `memory_size` is not positive.

    Example:
      >>> tx = optim.scale_by_lbfgs()
      >>> p = fnp.zeros(2)
      >>> tx.update(fnp.array([3.0, 4.0]), tx.init(p), p)[0].tolist()
      [0.6..., 0.8...]

    Reference: Nocedal and Wright 2006, "Numerical optimization", algorithm 7.4; Liu and
    Nocedal 1989.
    """
    if memory_size < 1:
        raise ArgumentError(
            f"scale_by_lbfgs: memory_size must be positive, got {memory_size}"
        )

    def init(params: Params) -> ScaleByLBFGSState:
        def memory(p: Any) -> Any:
            return fnp.broadcast_to(fnp.zeros_like(p), (memory_size, *fnp.shape(p)))

        return ScaleByLBFGSState(
            zero_count(),
            zeros_like(params),
            zeros_like(params),
            tree.map(memory, params),
            tree.map(memory, params),
            fnp.zeros((memory_size,), norm(params).dtype),
        )

    def update(
        updates: Updates, state: ScaleByLBFGSState, params: Params | None = None
    ) -> tuple[Updates, ScaleByLBFGSState]:
        params = need_params("scale_by_lbfgs", params)
        first = fnp.equal(state.count, 0)
        place = fnp.remainder(fnp.subtract(state.count, 1), memory_size)

        def difference(new: Any, old: Any) -> Any:
            return fnp.where(first, 0, fnp.subtract(new, old))

        dp = tree.map(difference, params, state.params)
        dg = tree.map(difference, updates, state.updates)
        product = fnp.real(vdot(dg, dp))

        def written(memory: Any, new: Any) -> Any:
            return memory.at[place].set(fnp.where(first, memory[place], new))

        params_memory = tree.map(written, state.diff_params_memory, dp)
        updates_memory = tree.map(written, state.diff_updates_memory, dg)
        weights = written(state.weights_memory, quotient(1.0, product))

        factor: Any = 1.0
        if scale_init_precond:
            known = quotient(product, norm(dg, squared=True))
            begin = fnp.minimum(1.0, quotient(1.0, norm(updates)))
            factor = fnp.where(first, begin, known)

        # From the newest to the oldest difference and back.
        order = fnp.remainder(fnp.subtract(place, fnp.arange(memory_size)), memory_size)
        ordered = tree.map(
            lambda memory: memory[order], (params_memory, updates_memory, weights)
        )

        out = two_loops(updates, ordered, factor)
        return out, ScaleByLBFGSState(
            safe_increment(state.count),
            params,
            updates,
            params_memory,
            updates_memory,
            weights,
        )

    return in_float32(GradientTransformation(init, update))


def two_loops(updates: Updates, ordered: Any, factor: Any) -> Updates:
    """Returns the product of the estimated inverse Hessian and a vector.

    Args:
      updates: the vector, a pytree.
      ordered: differences of parameters and of gradients, pytrees whose first axis has
        the newest first, and the reciprocals of their inner products, 0 for none.
      factor: the multiple of the identity to begin with.
    """

    def down(q: Any, memory: Any) -> tuple[Any, Any]:
        dp, dg, weight = memory
        share = fnp.multiply(weight, fnp.real(vdot(dp, q)))
        return add_scale(q, fnp.negative(share), dg), share

    def up(r: Any, memory: Any) -> tuple[Any, None]:
        (dp, dg, weight), share = memory
        back = fnp.multiply(weight, fnp.real(vdot(dg, r)))
        return add_scale(r, fnp.subtract(share, back), dp), None

    q, shares = lax.scan(down, updates, ordered)
    r = cast_like(scale(factor, q), updates)
    return lax.scan(up, r, (ordered, shares), reverse=True)[0]


#: Near the solution, a step size of 1 is right.
_SEARCH = scale_by_zoom_linesearch(20, initial_guess_strategy="one")


def lbfgs(
    learning_rate: ScalarOrSchedule | None = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = _SEARCH,
) -> GradientTransformationExtraArgs:
    """Makes L-BFGS, for smooth functions whose gradients are exact.

    Args:
      learning_rate: factor of steps before the search: a number or a schedule; None
        means 1.
      memory_size: number of differences of gradients to keep.
      scale_init_precond: whether to scale the initial estimate; see `scale_by_lbfgs`.
      linesearch: the line search; None means to use the learning rate alone.

    Returns:
      A transformation whose `update` needs the parameters, and with a search `value`,
      `grad` and `value_fn`: see `scale_by_zoom_linesearch`.

    Example:
      >>> def loss(x):
      ...     return fnp.sum((x - 1.0) ** 4 + x**2)
      >>> tx = optim.lbfgs()
      >>> x = fnp.zeros(2)
      >>> state = tx.init(x)
      >>> for _ in range(8):
      ...     value, grad = optim.value_and_grad_from_state(loss)(x, state=state)
      ...     u, state = tx.update(
      ...         grad, state, x, value=value, grad=grad, value_fn=loss
      ...     )
      ...     x = optim.apply_updates(x, u)
      >>> round(float(x[0]), 3)
      0.41

    Reference: Liu and Nocedal 1989, "On the limited memory BFGS method for large scale
    optimization".
    """
    parts = [
        scale_by_lbfgs(memory_size, scale_init_precond),
        scale_by_learning_rate(1.0 if learning_rate is None else learning_rate),
    ]
    return chain(*parts, *([] if linesearch is None else [linesearch]))
