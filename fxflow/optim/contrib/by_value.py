"""Optimizers that adapt to the loss: model-based momentum, coin betting, plateaus."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Mask,
    Params,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    need_extra,
    need_params,
    safe_increment,
    wide_chain,
    zero_count,
)
from fxflow.optim.numerics import positive_root, quotient
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.tree import (
    full_like,
    norm,
    update_moment,
    vdot,
    weight_held,
    zeros_like,
)


class MomoState(NamedTuple):
    """State of `momo`: averages of gradients, losses and products, a lower bound."""

    exp_avg: Updates
    barf: Array
    gamma: Array
    lb: Array
    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax


class MomoAdamState(NamedTuple):
    """State of `momo_adam`: the state of `momo`, and second moments."""

    exp_avg: Updates
    exp_avg_sq: Updates
    barf: Array
    gamma: Array
    lb: Array
    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax


class COCOBState(NamedTuple):
    """State of `scale_by_cocob`: the initial parameters, and the sums for bets."""

    init_particles: Params
    cumulative_gradients: Updates
    scale: Updates
    subgradients: Updates
    reward: Updates


class ReduceLROnPlateauState(NamedTuple):
    """State of `reduce_on_plateau`: the factor, the best loss, and counts."""

    scale: Array
    best_value: Array
    plateau_count: Array
    cooldown_count: Array
    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    avg_value: Array


def _rate(learning_rate: Any, count: Any) -> Any:
    return learning_rate(count) if callable(learning_rate) else learning_rate


def _step(
    rate: Any, most: Any, weight_decay: Any, level: Any, inner: Any, square: Any
) -> Any:
    """Returns the longest step at which the modeled loss is above its lower bound."""
    grow = fnp.add(1.0, fnp.multiply(rate, weight_decay))
    gap = fnp.maximum(fnp.add(fnp.multiply(grow, level), inner), 0.0)
    return fnp.minimum(most, quotient(gap, square))


def _moved(direction: Updates, params: Params, step: Any, grow: Any) -> Updates:
    """Returns updates of a step with weight decay, which divides the parameters."""

    def one(d: Any, p: Any) -> Any:
        shrunk = fnp.multiply(p, fnp.divide(fnp.subtract(1.0, grow), grow))
        return fnp.subtract(shrunk, fnp.multiply(step, d))

    return tree.map(one, direction, params)


def momo(
    learning_rate: ScalarOrSchedule = 1.0,
    beta: Scalar = 0.9,
    lower_bound: Scalar = 0.0,
    weight_decay: Scalar = 0.0,
    adapt_lower_bound: bool = False,
) -> GradientTransformationExtraArgs:
    r"""Makes MoMo: momentum with Polyak's step size.

    It keeps moving averages of the losses f, the gradients g and their products with
    the parameters p, :math:`\bar f`, d and :math:`\gamma = \overline{\langle g,
    p\rangle}`; the step is

    .. math:: p \leftarrow p - \min\left(\eta, \frac{(\bar f + \langle d, p\rangle -
       \gamma - f^*)_+}{\lVert d \rVert^2}\right) d

    Args:
      learning_rate: η, the largest step size: a number or a schedule.
      beta: decay of the averages.
      lower_bound: f*, a lower bound of the loss.
      weight_decay: λ.
      adapt_lower_bound: whether to estimate a better bound.

    Returns:
      A transformation whose `update` needs the parameters, and the loss, `value=`.

    Example:
      >>> tx = optim.contrib.momo()
      >>> p = fnp.array([3.0, 4.0])
      >>> tx.update(p, tx.init(p), p, value=12.5)[0].tolist()
      [-1.5, -2.0]

    Reference: Schaipp, Ohana, Eickenberg, Defazio, Gower 2023, "MoMo: momentum models
    for adaptive learning rates".
    """

    def init(params: Params) -> MomoState:
        level, gamma = (fnp.zeros((), "float32") for _ in range(2))
        bound = fnp.array(lower_bound, "float32")
        return MomoState(zeros_like(params), level, gamma, bound, zero_count())

    def update(
        updates: Updates,
        state: MomoState,
        params: Params | None = None,
        *,
        value: Any = None,
        **extra: Any,
    ) -> tuple[Updates, MomoState]:
        params, value = need_params("momo", params), need_extra("momo", "value", value)
        decay = fnp.where(fnp.equal(state.count, 0), 0.0, beta)
        rate = _rate(learning_rate, state.count)
        mean = update_moment(updates, state.exp_avg, decay, 1)
        level = update_moment(value, state.barf, decay, 1)
        gamma = update_moment(vdot(updates, params), state.gamma, decay, 1)
        inner, square = vdot(mean, params), norm(mean, squared=True)
        bound = state.lb
        grow = fnp.add(1.0, fnp.multiply(rate, weight_decay))
        if adapt_lower_bound:
            bound = _lowered(level - gamma, inner, bound, grow, lower_bound)
        step = _step(rate, rate, weight_decay, level - gamma - bound, inner, square)
        if adapt_lower_bound:
            model = level + inner - gamma
            bound = fnp.maximum(model - 0.5 * step * square, lower_bound)
        out = _moved(mean, params, step, grow)
        new = MomoState(mean, level, gamma, bound, safe_increment(state.count))
        return out, new

    return in_float32(GradientTransformationExtraArgs(init, update))


def _lowered(
    level: Any, inner: Any, bound: Any, grow: Any, least: Any, weight: Any = 1.0
) -> Any:
    """Returns a lower bound of the modeled loss.

    `weight` is the sum of the averages' weights, which corrects their bias.
    """
    cap = grow * level + inner
    below = fnp.maximum(cap / (2.0 * grow * weight), least)
    return fnp.where(fnp.less(cap, grow * weight * bound), below, bound)


def momo_adam(
    learning_rate: ScalarOrSchedule = 1e-2,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    lower_bound: Scalar = 0.0,
    weight_decay: Scalar = 0.0,
    adapt_lower_bound: bool = False,
) -> GradientTransformationExtraArgs:
    """Makes MoMo-Adam: Adam with steps bounded according to the loss.

    Args:
      learning_rate: the largest step size: a number or a schedule.
      b1: decay of first moments and losses.
      b2: decay of second moments.
      eps: added to the square root.
      lower_bound: a lower bound of the loss.
      weight_decay: λ.
      adapt_lower_bound: whether to estimate a better bound.

    Returns:
      A transformation whose `update` needs the parameters, and the loss, `value=`.

    Example:
      >>> tx = optim.contrib.momo_adam(0.5)
      >>> p = fnp.ones(2)
      >>> tx.update(p, tx.init(p), p, value=9.0)[0].tolist()
      [-0.5, -0.5]

    Reference: Schaipp, Ohana, Eickenberg, Defazio, Gower 2023, "MoMo".
    """

    def init(params: Params) -> MomoAdamState:
        level, gamma = (fnp.zeros((), "float32") for _ in range(2))
        bound = fnp.array(lower_bound, "float32")
        moments = zeros_like(params), zeros_like(params)
        return MomoAdamState(*moments, level, gamma, bound, zero_count())

    def update(
        updates: Updates,
        state: MomoAdamState,
        params: Params | None = None,
        *,
        value: Any = None,
        **extra: Any,
    ) -> tuple[Updates, MomoAdamState]:
        params = need_params("momo_adam", params)
        value = need_extra("momo_adam", "value", value)
        count = safe_increment(state.count)
        rate = _rate(learning_rate, state.count)
        mean = update_moment(updates, state.exp_avg, b1, 1)
        second = update_moment(updates, state.exp_avg_sq, b2, 2)
        level = update_moment(value, state.barf, b1, 1)
        gamma = update_moment(vdot(updates, params), state.gamma, b1, 1)
        weight, wide = weight_held(b1, count), weight_held(b2, count)

        def normal(m: Any, v: Any) -> Any:
            return fnp.divide(m, fnp.add(positive_root(fnp.divide(v, wide)), eps))

        direction = tree.map(normal, mean, second)
        inner, square = vdot(mean, params), vdot(mean, direction)
        bound = state.lb
        grow = fnp.add(1.0, fnp.multiply(rate, weight_decay))
        if adapt_lower_bound:
            bound = _lowered(level - gamma, inner, bound, grow, lower_bound, weight)
        rest = level - gamma - weight * bound
        step = _step(rate, rate / weight, weight_decay, rest, inner, square)
        if adapt_lower_bound:
            model = (level + inner - gamma - 0.5 * step * square) / weight
            bound = fnp.maximum(model, lower_bound)
        out = _moved(direction, params, step, grow)
        new = MomoAdamState(mean, second, level, gamma, bound, count)
        return out, new

    return in_float32(GradientTransformationExtraArgs(init, update))


def scale_by_cocob(alpha: Scalar = 100.0, eps: Scalar = 1e-8) -> GradientTransformation:
    """Makes the COCOB transformation: coin betting on gradients, for each parameter.

    Args:
      alpha: the first steps are at most its reciprocal.
      eps: lower bound of the gradients' magnitudes.

    Returns:
      A transformation whose `update` needs the parameters; its updates descend.

    Example:
      >>> tx = optim.contrib.scale_by_cocob()
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Orabona and Tommasi 2017, "Training deep networks without learning rates
    through coin betting".
    """

    def init(params: Params) -> COCOBState:
        return COCOBState(
            tree.map(fnp.copy, params),
            zeros_like(params),
            full_like(params, eps),
            zeros_like(params),
            zeros_like(params),
        )

    def update(
        updates: Updates, state: COCOBState, params: Params | None = None
    ) -> tuple[Updates, COCOBState]:
        params = need_params("scale_by_cocob", params)
        # The sum of negative gradients, as in optax.
        total = tree.map(fnp.subtract, state.cumulative_gradients, updates)
        size = tree.map(lambda s, c: fnp.maximum(s, fnp.abs(c)), state.scale, updates)
        seen = tree.map(
            lambda s, c: fnp.add(s, fnp.abs(c)), state.subgradients, updates
        )

        def won(r: Any, p: Any, p0: Any, c: Any) -> Any:
            gain = fnp.multiply(fnp.subtract(p0, p), c)
            return fnp.maximum(fnp.add(r, gain), 0.0)

        reward = tree.map(won, state.reward, params, state.init_particles, updates)

        def one(p0: Any, p: Any, t: Any, s: Any, g: Any, r: Any) -> Any:
            below = fnp.multiply(s, fnp.maximum(fnp.add(g, s), fnp.multiply(alpha, s)))
            bet = fnp.multiply(quotient(t, below), fnp.add(s, r))
            return fnp.subtract(fnp.add(p0, bet), p)

        out = tree.map(one, state.init_particles, params, total, size, seen, reward)
        new = COCOBState(state.init_particles, total, size, seen, reward)
        return out, new

    return in_float32(GradientTransformation(init, update))


def cocob(
    learning_rate: ScalarOrSchedule = 1.0,
    alpha: Scalar = 100.0,
    eps: Scalar = 1e-8,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes COCOB, which needs no learning rate.

    Args:
      learning_rate: factor of the gradients: 1, or a schedule.
      alpha: the first steps are at most its reciprocal.
      eps: lower bound of the gradients' magnitudes.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.cocob(alpha=2.0)
      >>> u, _ = tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))
      >>> [round(x, 5) for x in u.tolist()]
      [-0.5, -0.5]

    Reference: Orabona and Tommasi 2017, "Training deep networks without learning rates
    through coin betting".
    """
    return wide_chain(
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate, flip_sign=False),
        scale_by_cocob(alpha, eps),
    )


def reduce_on_plateau(
    factor: float = 0.1,
    patience: int = 10,
    rtol: float = 1e-4,
    atol: float = 0.0,
    cooldown: int = 0,
    accumulation_size: int = 1,
    min_scale: float = 0.0,
) -> GradientTransformationExtraArgs:
    """Makes a scale that is reduced when the loss stops decreasing.

    Put it at the end of a chain.

    Args:
      factor: the factor of each reduction, between 0 and 1.
      patience: number of losses without improvement before a reduction.
      rtol: the largest relative improvement to ignore.
      atol: the largest absolute improvement to ignore.
      cooldown: number of losses to ignore after a reduction.
      accumulation_size: number of losses to average.
      min_scale: the smallest scale.

    Returns:
      A transformation; `update` needs the loss, `value=`.

    Raises:
      ArgumentError: the factor is not between 0 and 1, a tolerance is negative, or both
        are 0.

    Example:
      >>> tx = optim.contrib.reduce_on_plateau(0.5, patience=1)
      >>> state = tx.init(fnp.zeros(1))
      >>> for value in (1.0, 2.0):
      ...     u, state = tx.update(fnp.ones(1), state, value=value)
      >>> u.tolist()
      [0.5]
    """
    if not 0.0 < factor < 1.0:
        raise ArgumentError(
            f"reduce_on_plateau: factor must be between 0 and 1, got {factor}"
        )
    if rtol < 0 or atol < 0 or rtol > 1 or (rtol == 0 and atol == 0):
        raise ArgumentError(
            "reduce_on_plateau: rtol (at most 1) and atol must not be negative, nor "
            f"both be 0, got {rtol} and {atol}"
        )

    def init(params: Params) -> ReduceLROnPlateauState:
        one, zero = fnp.ones((), "float32"), fnp.zeros((), "float32")
        infinite = fnp.full((), fnp.inf, "float32")
        counts = zero_count(), zero_count(), zero_count()
        return ReduceLROnPlateauState(one, infinite, *counts, zero)

    def update(
        updates: Updates,
        state: ReduceLROnPlateauState,
        params: Params | None = None,
        *,
        value: Any = None,
        **extra: Any,
    ) -> tuple[Updates, ReduceLROnPlateauState]:
        value = need_extra("reduce_on_plateau", "value", value)
        seen = fnp.add(state.count, 1)
        before = fnp.astype(state.count, state.avg_value.dtype)
        mean = fnp.divide(state.avg_value * before + value, before + 1)
        full = fnp.equal(seen, accumulation_size)
        better = fnp.less(mean, (1 - rtol) * state.best_value - atol)
        best = fnp.where(better, mean, state.best_value)
        waits = fnp.greater(state.cooldown_count, 0)
        flat = fnp.where(better, 0, safe_increment(state.plateau_count))
        flat = fnp.where(waits, 0, flat)
        falls = fnp.logical_and(
            fnp.greater_equal(flat, patience), fnp.logical_not(waits)
        )
        lower = fnp.maximum(fnp.multiply(state.scale, factor), min_scale)
        after = fnp.where(waits, fnp.subtract(state.cooldown_count, 1), 0)
        done = ReduceLROnPlateauState(
            fnp.where(falls, lower, state.scale),
            best,
            fnp.where(falls, 0, flat),
            fnp.where(falls, cooldown, after),
            zero_count(),
            fnp.zeros((), "float32"),
        )
        going = state._replace(count=seen, avg_value=mean)
        new = tree.map(lambda a, b: fnp.where(full, a, b), done, going)
        return tree.map(lambda g: fnp.multiply(new.scale, g), updates), new

    return in_float32(GradientTransformationExtraArgs(init, update))
