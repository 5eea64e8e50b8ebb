"""Sophia: momentum divided by an estimate of the Hessian's diagonal, clipped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    Params,
    Scalar,
    ScalarOrSchedule,
    State,
    Updates,
    cast_like,
    chain,
    need_extra,
    need_params,
    safe_increment,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.numerics import widened
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.tree import (
    bias_correction,
    random_like,
    update_moment,
    zeros_like,
)
from fxflow.transforms.grad import grad
from fxflow.transforms.jvp import jvp


class HutchinsonState(NamedTuple):
    """State of `hutchinson_estimator_diag_hessian`: the next random key."""

    key: Array


class SophiaState(NamedTuple):
    """State of `sophia`: the count, both averages, the state of the estimator."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    mu: Updates
    nu: Updates
    hessian_fn_state: State


def hutchinson_estimator_diag_hessian(
    random_seed: Array | int | None = None,
) -> GradientTransformationExtraArgs:
    r"""Makes random estimates of the diagonal of the Hessian: :math:`z \circ H z`.

    The elements of z are ±1 at random, so the expected estimate is the diagonal. Each
    estimate takes one derivative of the gradient.

    Args:
      random_seed: a random key, or its seed; None means 0.

    Returns:
      A transformation that ignores the gradients; its `update` needs the parameters and
      `obj_fn=`, the loss as a function of parameters.

    Raises:
      ArgumentError: (from `update`) the parameters or `obj_fn` are missing.

    Example:
      >>> tx = optim.contrib.hutchinson_estimator_diag_hessian(0)
      >>> x = fnp.array([1.0, 2.0])
      >>> loss = lambda x: fnp.sum(x**3)
      >>> tx.update(x, tx.init(x), x, obj_fn=loss)[0].tolist()
      [6.0, 12.0]

    Reference: Hutchinson 1989; Bekas, Kokiopoulou, Saad 2007.
    """
    name = "hutchinson_estimator_diag_hessian"

    def init(params: Params) -> HutchinsonState:
        seed = 0 if random_seed is None else random_seed
        return HutchinsonState(random.key(seed) if isinstance(seed, int) else seed)

    def update(
        updates: Updates,
        state: HutchinsonState,
        params: Params | None = None,
        obj_fn: Callable[[Params], Any] | None = None,
        **extra: Any,
    ) -> tuple[Updates, HutchinsonState]:
        params = need_params(name, params)
        loss = need_extra(name, "obj_fn", obj_fn)
        later, now = random.split(state.key)
        z = random_like(now, params, random.rademacher)
        _, product = jvp(grad(loss), (params,), (z,))
        return tree.map(fnp.multiply, z, product), HutchinsonState(later)

    return GradientTransformationExtraArgs(init, update)


def sophia(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.965,
    b2: Scalar = 0.99,
    eps: Scalar = 1e-8,
    weight_decay: Scalar = 1e-4,
    weight_decay_mask: Mask = None,
    gamma: Scalar = 0.01,
    clip_threshold: Scalar | None = 1.0,
    update_interval: int = 10,
    hessian_diagonal_fn: GradientTransformation | None = None,
    mu_dtype: DTypeLike | None = None,
) -> GradientTransformationExtraArgs:
    r"""Makes Sophia: averaged gradients over averaged curvature, clipped.

    .. math:: -\eta \operatorname{clip}(\hat m / \max(\gamma h, \epsilon), \rho)

    Args:
      learning_rate: a number or a schedule.
      b1: decay of the average m of gradients.
      b2: decay of the average h of estimates of the Hessian's diagonal.
      eps: ε > 0, lower bound of γ h.
      weight_decay: λ.
      weight_decay_mask: which parameters decay; see `masked`.
      gamma: γ: for larger values, fewer elements are clipped.
      clip_threshold: ρ; None means no clipping.
      update_interval: number of updates between estimates of the diagonal.
      hessian_diagonal_fn: a transformation that makes the estimates; None means
        `hutchinson_estimator_diag_hessian()`.
      mu_dtype: dtype of the average of gradients; None means that of the parameters,
        but at least float32.

    Returns:
      A transformation whose `update` needs the parameters and the estimator's
      arguments, such as `update(..., obj_fn=loss)`.

    Raises:
      ArgumentError: (from `update`) an argument of the estimator is missing.

    Example:
      >>> loss = lambda x: fnp.sum(x**4)
      >>> tx = optim.contrib.sophia(0.1)
      >>> x = fnp.array([1.0, -2.0])
      >>> u, _ = tx.update(fxflow.grad(loss)(x), tx.init(x), x, obj_fn=loss)
      >>> fnp.round(u, 3).tolist()
      [-0.1..., 0.1...]

    Reference: Liu, Li, Hall, Liang, Ma 2023, "Sophia: a scalable stochastic
    second-order optimizer for language model pre-training".
    """
    if hessian_diagonal_fn is None:
        hessian_diagonal_fn = hutchinson_estimator_diag_hessian()
    estimator = with_extra_args_support(hessian_diagonal_fn)

    def init(params: Params) -> SophiaState:
        wide = tree.map(widened, params)
        return SophiaState(
            zero_count(),
            zeros_like(wide, mu_dtype),
            zeros_like(wide),
            estimator.init(params),
        )

    def update(
        updates: Updates,
        state: SophiaState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, SophiaState]:
        count = safe_increment(state.count)
        gradients, before = (tree.map(widened, part) for part in (updates, state.mu))
        mu = update_moment(gradients, before, b1, 1)

        def estimated() -> tuple[Updates, State]:
            found, own = estimator.update(
                updates, state.hessian_fn_state, params, **extra
            )
            nu = update_moment(tree.map(widened, found), state.nu, b2, 1)
            return tree.map(cast_like, nu, state.nu), own

        due = fnp.equal(fnp.remainder(state.count, update_interval), 0)
        nu, own = lax.cond(due, estimated, lambda: (state.nu, state.hessian_fn_state))

        def one(m: Any, h: Any, update: Any) -> Any:
            step = fnp.divide(m, fnp.maximum(fnp.multiply(gamma, widened(h)), eps))
            if clip_threshold is not None:
                step = fnp.clip(step, fnp.negative(clip_threshold), clip_threshold)
            return cast_like(step, update)

        steps = tree.map(one, bias_correction(mu, b1, count), nu, updates)
        mu = tree.map(cast_like, mu, state.mu)
        return steps, SophiaState(count, mu, nu, own)

    return chain(
        GradientTransformationExtraArgs(init, update),
        add_decayed_weights(weight_decay, weight_decay_mask),
        scale_by_learning_rate(learning_rate),
    )
