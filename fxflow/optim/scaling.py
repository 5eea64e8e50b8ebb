"""Transformations that scale by a number, a schedule, a norm or the parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.errors import ArgumentError
from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Params,
    Scalar,
    ScalarOrSchedule,
    Schedule,
    Updates,
    identity,
    in_float32,
    need_params,
    safe_increment,
    stateless,
    zero_count,
)
from fxflow.optim.masking import masked
from fxflow.optim.numerics import quotient, safe_root_mean_squares
from fxflow.optim.tree import norm


class ScaleByScheduleState(NamedTuple):
    """State of `scale_by_schedule`: the number of updates."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax


class AddNoiseState(NamedTuple):
    """State of `add_noise`: the number of updates, and the next key."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    rng_key: Array


class ZeroNansState(NamedTuple):
    """State of `zero_nans`: whether each array had a nan in the last update."""

    found_nan: Updates


def scale(step_size: Scalar) -> GradientTransformation:
    """Makes a transformation that multiplies by a number.

    Args:
      step_size: the number.

    Returns:
      A transformation without state.

    Example:
      >>> optim.scale(2.0).update(fnp.array([3.0, 4.0]), ())[0].tolist()
      [6.0, 8.0]
    """

    def one(x: Any) -> Any:
        return fnp.multiply(step_size, x)

    return in_float32(stateless(lambda updates, params: tree.map(one, updates)))


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Makes a transformation that multiplies by the values of a schedule.

    Args:
      step_size_fn: function of the number of updates so far.

    Returns:
      A transformation whose state is the number of updates.

    Example:
      >>> tx = optim.scale_by_schedule(lambda count: count + 1)
      >>> state = tx.init(0.0)
      >>> _, state = tx.update(fnp.ones(1), state)
      >>> tx.update(fnp.ones(1), state)[0].tolist()
      [2.0]
    """

    def init(params: Params) -> ScaleByScheduleState:
        return ScaleByScheduleState(zero_count())

    def update(
        updates: Updates, state: ScaleByScheduleState, params: Params | None = None
    ) -> tuple[Updates, ScaleByScheduleState]:
        factor = step_size_fn(state.count)
        scaled = tree.map(lambda x: fnp.multiply(factor, x), updates)
        return scaled, ScaleByScheduleState(safe_increment(state.count))

    return in_float32(GradientTransformation(init, update))


def scale_by_learning_rate(
    learning_rate: ScalarOrSchedule | None = None, *, flip_sign: bool = True
) -> GradientTransformation:
    """Makes the transformation that descends along the gradient.

    Args:
      learning_rate: a number, or a function of the number of updates so far; None
        means no scaling: updates keep their sign, too.
      flip_sign: whether to descend (True) or ascend.

    Returns:
      A transformation that multiplies by the (negative) learning rate, or does nothing.

    Example:
      >>> optim.scale_by_learning_rate(0.5).update(fnp.array([4.0]), ())[0].tolist()
      [-2.0]
    """
    if learning_rate is None:
        return identity()
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    return scale(sign * learning_rate)


def scale_by_sign() -> GradientTransformation:
    """Makes a transformation that replaces updates by their signs.

    Returns:
      A transformation without state.

    Example:
      >>> optim.scale_by_sign().update(fnp.array([3.0, -4.0]), ())[0].tolist()
      [1.0, -1.0]
    """
    return stateless(lambda updates, params: tree.map(fnp.sign, updates))


def scale_by_trust_ratio(
    min_norm: Scalar = 0.0, trust_coefficient: Scalar = 1.0, eps: Scalar = 0.0
) -> GradientTransformation:
    r"""Makes a transformation that scales each array to the norm of its parameters.

    .. math:: u \leftarrow u\; c\,\lVert p \rVert / (\lVert u \rVert + \epsilon)

    Args:
      min_norm: lower bound of the norms.
      trust_coefficient: c.
      eps: ε.

    Returns:
      A transformation without state, which needs the parameters. Arrays do not change
      if one of their norms is 0.

    Example:
      >>> tx = optim.scale_by_trust_ratio()
      >>> tx.update(fnp.array([3.0, 4.0]), (), fnp.array([0.0, 10.0]))[0].tolist()
      [6.0, 8.0]

    Reference: You, Gitman, Ginsburg 2017 (LARS); You et al. 2020 (LAMB).
    """

    def one(x: Any, param: Any) -> Any:
        of_param, of_update = (fnp.maximum(norm(a), min_norm) for a in (param, x))
        ratio = quotient(
            fnp.multiply(trust_coefficient, of_param), fnp.add(of_update, eps)
        )
        none = fnp.logical_or(fnp.equal(of_param, 0.0), fnp.equal(of_update, 0.0))
        return fnp.multiply(x, fnp.where(none, 1.0, ratio))

    def all_of(updates: Updates, params: Params | None) -> Updates:
        return tree.map(one, updates, need_params("scale_by_trust_ratio", params))

    return in_float32(stateless(all_of))


def scale_by_param_block_rms(min_scale: Scalar = 1e-3) -> GradientTransformation:
    """Makes a transformation that scales each array by its parameters' RMS.

    Args:
      min_scale: lower bound of the root mean square.

    Returns:
      A transformation without state, which needs the parameters.

    Example:
      >>> tx = optim.scale_by_param_block_rms()
      >>> tx.update(fnp.ones(2), (), fnp.array([3.0, 3.0]))[0].tolist()
      [3.0, 3.0]

    Reference: Shazeer and Stern 2018, "Adafactor".
    """

    def one(x: Any, param: Any) -> Any:
        return fnp.multiply(x, safe_root_mean_squares(param, min_scale))

    def all_of(updates: Updates, params: Params | None) -> Updates:
        return tree.map(one, updates, need_params("scale_by_param_block_rms", params))

    return in_float32(stateless(all_of))


def normalize_by_update_norm(
    scale_factor: Scalar = 1.0, eps: Scalar = 1e-6
) -> GradientTransformation:
    r"""Makes a normalization: :math:`s\, g / (\lVert g\rVert + \epsilon)`.

    Args:
      scale_factor: s.
      eps: ε.

    Returns:
      A transformation without state. Gradients of 0 stay 0 for every ε.

    Example:
      >>> tx = optim.normalize_by_update_norm(eps=0.0)
      >>> tx.update(fnp.array([3.0, 4.0]), ())[0].tolist()
      [0.6..., 0.8...]
    """

    def all_of(updates: Updates, params: Params | None) -> Updates:
        factor = quotient(scale_factor, fnp.add(norm(updates), eps))
        return tree.map(lambda x: fnp.multiply(x, factor), updates)

    return in_float32(stateless(all_of))


def centralize() -> GradientTransformation:
    """Makes a transformation that subtracts means over all axes but the first.

    Returns:
      A transformation without state; it does not change vectors and scalars.

    Example:
      >>> optim.centralize().update(fnp.array([[1.0, 3.0]]), ())[0].tolist()
      [[-1.0, 1.0]]

    Reference: Yong, Huang, Hua, Zhang 2020, "Gradient centralization".
    """

    def one(x: Any) -> Any:
        ndim = typeof(x).ndim
        if ndim < 2:
            return x
        return fnp.subtract(x, fnp.mean(x, tuple(range(1, ndim)), keepdims=True))

    return in_float32(stateless(lambda updates, params: tree.map(one, updates)))


def add_decayed_weights(
    weight_decay: ScalarOrSchedule = 0.0, mask: Mask = None
) -> GradientTransformation:
    r"""Makes a transformation that adds parameters: :math:`u \leftarrow u + \lambda p`.

    Args:
      weight_decay: λ: a number, or a function of the number of updates so far.
      mask: which parameters decay: a pytree of bools (or a prefix of one), or a
        function from parameters to such a pytree; None means all.

    Returns:
      A transformation that needs the parameters.

    Example:
      >>> tx = optim.add_decayed_weights(0.1)
      >>> tx.update(fnp.ones(1), tx.init(0.0), fnp.array([10.0]))[0].tolist()
      [2.0]

    Reference: Loshchilov and Hutter 2019, "Decoupled weight decay regularization".
    """

    def add(updates: Updates, params: Params | None, factor: Any) -> Updates:
        def one(x: Any, param: Any) -> Any:
            return fnp.add(x, fnp.multiply(factor, param))

        return tree.map(one, updates, need_params("add_decayed_weights", params))

    def init(params: Params) -> ScaleByScheduleState:
        return ScaleByScheduleState(zero_count())

    def update(
        updates: Updates, state: ScaleByScheduleState, params: Params | None = None
    ) -> tuple[Updates, ScaleByScheduleState]:
        new = add(updates, params, weight_decay(state.count))
        return new, ScaleByScheduleState(safe_increment(state.count))

    if callable(weight_decay):
        decay = GradientTransformation(init, update)
    else:
        decay = stateless(lambda updates, params: add(updates, params, weight_decay))
    decay = in_float32(decay)
    return decay if mask is None else masked(decay, mask)


def add_noise(
    eta: Scalar, gamma: Scalar, key: Any = None, *, seed: int | None = None
) -> GradientTransformation:
    r"""Makes a transformation that adds normal noise of decreasing variance.

    .. math:: g \leftarrow g + \mathcal N(0,\; \eta / (1 + t)^\gamma)

    Args:
      eta: η, the initial variance.
      gamma: γ, exponent of its decrease.
      key: a random key.
      seed: seed of the key, in place of `key`.

    Returns:
      A transformation whose state is the number of updates and a key.

    Raises:
      ArgumentError: neither or both of `key` and `seed` are given.

    Example:
      >>> tx = optim.add_noise(0.1, 0.5, seed=0)
      >>> tx.update(fnp.ones(3), tx.init(fnp.ones(3)))[0].shape
      (3,)

    Reference: Neelakantan et al. 2015, "Adding gradient noise improves learning".
    """
    if (key is None) == (seed is None):
        raise ArgumentError("add_noise: pass either a random key or a seed")
    first = random.key(seed) if key is None else key

    def init(params: Params) -> AddNoiseState:
        return AddNoiseState(zero_count(), fnp.copy(first))

    def update(
        updates: Updates, state: AddNoiseState, params: Params | None = None
    ) -> tuple[Updates, AddNoiseState]:
        leaves, treedef = tree.flatten(updates)
        count = safe_increment(state.count)
        keys: Any = random.split(state.rng_key, len(leaves) + 1)
        deviation = fnp.sqrt(fnp.divide(eta, fnp.power(count, gamma)))

        def noisy(i: int, x: Any) -> Any:
            aval = typeof(x)
            noise = random.normal(keys[i + 1], aval.shape, aval.dtype)
            return fnp.add(x, fnp.multiply(deviation, noise))

        new = [noisy(i, x) for i, x in enumerate(leaves)]
        return treedef.unflatten(new), AddNoiseState(count, keys[0])

    return in_float32(GradientTransformation(init, update))


def zero_nans() -> GradientTransformation:
    """Makes a transformation that replaces nan by 0.

    Returns:
      A transformation whose state is whether each array had a nan.

    Example:
      >>> tx = optim.zero_nans()
      >>> u, state = tx.update(fnp.array([fnp.nan, 2.0]), tx.init(fnp.zeros(2)))
      >>> u.tolist(), bool(state.found_nan)
      ([0.0, 2.0], True)
    """

    def init(params: Params) -> ZeroNansState:
        return ZeroNansState(tree.map(lambda p: fnp.full((), False), params))

    def update(
        updates: Updates, state: ZeroNansState, params: Params | None = None
    ) -> tuple[Updates, ZeroNansState]:
        found = tree.map(lambda x: fnp.any(fnp.isnan(x)), updates)
        out = tree.map(lambda x: fnp.where(fnp.isnan(x), 0, x), updates)
        return out, ZeroNansState(found)

    return GradientTransformation(init, update)


def keep_params_nonnegative() -> GradientTransformation:
    """Makes a transformation that keeps parameters nonnegative.

    Returns:
      A transformation without state, which needs the parameters.

    Example:
      >>> tx = optim.keep_params_nonnegative()
      >>> tx.update(fnp.array([-5.0, -1.0]), (), fnp.array([2.0, 2.0]))[0].tolist()
      [-2.0, -1.0]
    """

    def one(x: Any, param: Any) -> Any:
        below = fnp.less(fnp.add(param, x), 0.0)
        return fnp.where(below, fnp.negative(param), x)

    def all_of(updates: Updates, params: Params | None) -> Updates:
        return tree.map(one, updates, need_params("keep_params_nonnegative", params))

    return stateless(all_of)
