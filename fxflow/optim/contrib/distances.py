"""Optimizers without a learning rate: they estimate the distance to the solution."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, is_arraylike, typeof
from fxflow.core.boundary import shown
from fxflow.errors import ArgumentError
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
    identity,
    in_float32,
    need_params,
    safe_increment,
    wide_chain,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.numerics import positive_root, quotient, widened
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.tree import (
    cast_like as all_cast_like,
)
from fxflow.optim.tree import (
    norm,
    scale,
    sub,
    update_moment,
    vdot,
    weight_held,
    zeros_like,
)


class DAdaptAdamWState(NamedTuple):
    """State of `dadapt_adamw`: moments, a sum of gradients, and the estimate."""

    exp_avg: Updates
    exp_avg_sq: Updates
    grad_sum: Updates
    estim_lr: Array
    numerator_weighted: Array
    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax


class ProdigyState(NamedTuple):
    """State of `prodigy`: the state of `dadapt_adamw`, and the initial parameters."""

    exp_avg: Updates
    exp_avg_sq: Updates
    grad_sum: Updates
    params0: Params
    estim_lr: Array
    numerator_weighted: Array
    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax


class DoGState(NamedTuple):
    """State of `dog`: initial parameters, distance from them, sum of squared norms."""

    is_init_step: Array
    init_params: Params
    max_dist: Array
    sum_sq_norm_grads: Array


class DoWGState(NamedTuple):
    """State of `dowg`: initial parameters, weighted squared norms, squared distance."""

    init_params: Params
    weighted_sq_norm_grads: Array
    estim_sq_dist: Array


class MechanicState(NamedTuple):
    """State of `mechanize`: the inner state, the factors, and their sums."""

    base_optimizer_state: State
    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    r: Array
    m: Array
    v: Array
    s: Array
    x0: Params


def _pair(name: str, what: str, given: Any) -> tuple[Any, Any]:
    """Returns the two elements of an argument."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(
            f"{name}: {what} must have two elements, got {shown(given)}"
        )
    return given[0], given[1]


def _betas(name: str, given: Any) -> tuple[Any, Any]:
    b1, b2 = _pair(name, "betas", given)
    for b in (b1, b2):
        if not (is_arraylike(b) and typeof(b).ndim == 0):
            raise ArgumentError(
                f"{name}: betas must be two numbers, got {shown(given)}"
            )
    return b1, b2


def _rate(learning_rate: Any, count: Any) -> Any:
    return learning_rate(count) if callable(learning_rate) else learning_rate


def _debias(b1: Any, b2: Any, count: Any) -> Any:
    return fnp.divide(fnp.sqrt(weight_held(b2, count)), weight_held(b1, count))


def dadapt_adamw(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: tuple[Scalar, Scalar] = (0.9, 0.999),
    eps: Scalar = 1e-8,
    estim_lr0: Scalar = 1e-6,
    weight_decay: Scalar = 0.0,
) -> GradientTransformation:
    """Makes AdamW with D-adaptation, which estimates the learning rate.

    Args:
      learning_rate: factor of the estimate: 1, or a schedule with a warm-up.
      betas: decays of the first and the second moments.
      eps: added to the square root.
      estim_lr0: the initial estimate, which never decreases.
      weight_decay: λ.

    Returns:
      A transformation whose `update` needs the parameters.

    Raises:
      ArgumentError: `betas` are not two numbers.

    Example:
      >>> tx = optim.contrib.dadapt_adamw()
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Defazio and Mishchenko 2023, "Learning-rate-free learning by
    D-adaptation".
    """
    b1, b2 = _betas("dadapt_adamw", betas)
    b3 = b2**0.5

    def init(params: Params) -> DAdaptAdamWState:
        return DAdaptAdamWState(
            zeros_like(params),
            zeros_like(params),
            zeros_like(params),
            fnp.full((), estim_lr0, "float32"),
            fnp.zeros((), "float32"),
            zero_count(),
        )

    def update(
        updates: Updates, state: DAdaptAdamWState, params: Params | None = None
    ) -> tuple[Updates, DAdaptAdamWState]:
        params = need_params("dadapt_adamw", params)
        count = safe_increment(state.count)
        rate = fnp.multiply(_rate(learning_rate, state.count), _debias(b1, b2, count))
        step = fnp.multiply(state.estim_lr, rate)
        before = tree.map(
            lambda s, v: fnp.divide(s, fnp.add(positive_root(v), eps)),
            state.grad_sum,
            state.exp_avg_sq,
        )
        numerator = fnp.multiply(step, vdot(updates, before))
        scaled = scale(step, updates)
        mean = update_moment(scaled, state.exp_avg, b1, 1)
        square = update_moment(updates, state.exp_avg_sq, b2, 2)
        total = update_moment(scaled, state.grad_sum, b3, 1)
        weighted = fnp.add(
            fnp.multiply(b3, state.numerator_weighted), fnp.multiply(1 - b3, numerator)
        )
        guess = quotient(weighted, fnp.multiply(1 - b3, norm(total, 1)))
        estimate = fnp.maximum(state.estim_lr, guess)

        def one(m: Any, v: Any, p: Any) -> Any:
            adam = fnp.divide(m, fnp.add(positive_root(v), eps))
            decay = fnp.multiply(fnp.multiply(weight_decay, step), p)
            return fnp.negative(fnp.add(adam, decay))

        out = tree.map(one, mean, square, params)
        new = DAdaptAdamWState(mean, square, total, estimate, weighted, count)
        return out, new

    return in_float32(GradientTransformation(init, update))


def prodigy(
    learning_rate: ScalarOrSchedule = 1.0,
    betas: tuple[Scalar, Scalar] = (0.9, 0.999),
    beta3: Scalar | None = None,
    eps: Scalar = 1e-8,
    estim_lr0: Scalar = 1e-6,
    estim_lr_coef: Scalar = 1.0,
    weight_decay: Scalar = 0.0,
    safeguard_warmup: bool = False,
) -> GradientTransformation:
    """Makes Prodigy: AdamW with a learning rate estimated faster than by D-adaptation.

    Args:
      learning_rate: factor of the estimate: 1, or a schedule.
      betas: decays of the first and the second moments.
      beta3: decay of the estimate's sums; None means the square root of the second
        decay.
      eps: added to the square root.
      estim_lr0: the initial estimate, which never decreases.
      estim_lr_coef: factor of later estimates.
      weight_decay: λ.
      safeguard_warmup: whether to leave the learning rate out of the estimate's
        denominator, for a long warm-up.

    Returns:
      A transformation whose `update` needs the parameters.

    Raises:
      ArgumentError: `betas` are not two numbers.

    Example:
      >>> tx = optim.contrib.prodigy()
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Mishchenko and Defazio 2023, "Prodigy: an expeditiously adaptive
    parameter-free learner".
    """
    b1, b2 = _betas("prodigy", betas)
    b3 = b2**0.5 if beta3 is None else beta3

    def init(params: Params) -> ProdigyState:
        return ProdigyState(
            zeros_like(params),
            zeros_like(params),
            zeros_like(params),
            tree.map(fnp.copy, params),
            fnp.full((), estim_lr0, "float32"),
            fnp.zeros((), "float32"),
            zero_count(),
        )

    def update(
        updates: Updates, state: ProdigyState, params: Params | None = None
    ) -> tuple[Updates, ProdigyState]:
        params = need_params("prodigy", params)
        count = safe_increment(state.count)
        rate = fnp.multiply(_rate(learning_rate, state.count), _debias(b1, b2, count))
        d = state.estim_lr
        step = fnp.multiply(d, rate)
        share = fnp.divide(d, estim_lr0)
        weight = fnp.multiply(share, d if safeguard_warmup else step)
        scaled = scale(d, updates)
        mean = update_moment(scaled, state.exp_avg, b1, 1)
        square = update_moment(scaled, state.exp_avg_sq, b2, 2)
        total = tree.map(
            lambda s, g: fnp.add(fnp.multiply(b3, s), fnp.multiply(weight, g)),
            state.grad_sum,
            updates,
        )
        far = vdot(updates, sub(state.params0, params))
        weighted = fnp.add(
            fnp.multiply(b3, state.numerator_weighted),
            fnp.multiply(fnp.multiply(share, step), far),
        )
        guess = fnp.multiply(estim_lr_coef, quotient(weighted, norm(total, 1)))
        estimate = fnp.maximum(d, guess)

        def one(m: Any, v: Any, p: Any) -> Any:
            adam = fnp.divide(m, fnp.add(positive_root(v), fnp.multiply(d, eps)))
            both = fnp.add(adam, fnp.multiply(weight_decay, p))
            return fnp.negative(fnp.multiply(step, both))

        out = tree.map(one, mean, square, params)
        new = ProdigyState(
            mean, square, total, state.params0, estimate, weighted, count
        )
        return out, new

    return in_float32(GradientTransformation(init, update))


def _decay(weight_decay: Scalar | None, mask: Mask) -> GradientTransformation:
    if weight_decay is None:
        return identity()
    return add_decayed_weights(weight_decay, mask)


def dog(
    learning_rate: ScalarOrSchedule = 1.0,
    init_step: tuple[str, Scalar] = ("heuristic", 1e-6),
    eps: Scalar = 1e-8,
    weight_decay: Scalar | None = None,
    mask: Mask = None,
) -> GradientTransformation:
    r"""Makes DoG: steps of distance over gradients.

    .. math:: p \leftarrow p - \eta\, g \frac{\max_i \lVert p_i - p_0 \rVert}
       {\sqrt{\sum_i \lVert g_i\rVert^2 + \epsilon}}

    Args:
      learning_rate: η: 1, or a schedule.
      init_step: the first step: `("distance", d)`, `("learning_rate", r)`, or
        `("heuristic", c)` for a distance of :math:`c (1 + \lVert p_0 \rVert)`.
      eps: ε.
      weight_decay: λ; None means no decay.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Raises:
      ArgumentError: the kind of the first step is unknown.

    Example:
      >>> tx = optim.contrib.dog(init_step=("learning_rate", 0.5))
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].tolist()
      [-0.5, -0.5]

    Reference: Ivgi, Hinder, Carmon 2023, "DoG is SGD's best friend".
    """
    kind, size = _pair("dog", "init_step", init_step)
    if kind not in ("distance", "learning_rate", "heuristic"):
        raise ArgumentError(
            'dog: init_step[0] must be "distance", "learning_rate" or "heuristic", got '
            f"{init_step!r}"
        )

    def init(params: Params) -> DoGState:
        first: Any = size
        if kind == "heuristic":
            first = fnp.multiply(size, fnp.add(1.0, norm(params)))
        elif kind == "learning_rate":
            first = 0.0
        return DoGState(
            fnp.full((), True),
            tree.map(fnp.copy, params),
            fnp.asarray(first, "float32"),
            fnp.zeros((), "float32"),
        )

    def update(
        updates: Updates, state: DoGState, params: Params | None = None
    ) -> tuple[Updates, DoGState]:
        params = need_params("dog", params)
        far = norm(sub(params, state.init_params))
        most = fnp.maximum(state.max_dist, far)
        total = fnp.add(state.sum_sq_norm_grads, norm(updates, squared=True))
        rate = fnp.divide(most, positive_root(fnp.add(total, eps)))
        if kind == "learning_rate":
            rate = fnp.where(state.is_init_step, size, rate)
        out = tree.map(lambda g: fnp.multiply(rate, g), updates)
        return out, DoGState(fnp.full((), False), state.init_params, most, total)

    return wide_chain(
        _decay(weight_decay, mask),
        in_float32(GradientTransformation(init, update)),
        scale_by_learning_rate(learning_rate),
    )


def dowg(
    learning_rate: ScalarOrSchedule = 1.0,
    init_estim_sq_dist: Scalar | None = None,
    eps: Scalar = 1e-4,
    weight_decay: Scalar | None = None,
    mask: Mask = None,
) -> GradientTransformation:
    r"""Makes DoWG: like `dog`, with gradients weighted by the distance.

    .. math:: r = \max_i \lVert p_i - p_0\rVert, \quad v \leftarrow v + r^2 \lVert
       g\rVert^2, \quad p \leftarrow p - \eta\, g\, r^2 / (\sqrt v + \epsilon)

    Args:
      learning_rate: η: 1, or a schedule.
      init_estim_sq_dist: the initial :math:`r^2`; None means ε.
      eps: ε.
      weight_decay: λ; None means no decay.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.dowg()
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Khaled, Mishchenko, Jin 2023, "DoWG unleashed".
    """
    first = eps if init_estim_sq_dist is None else init_estim_sq_dist

    def init(params: Params) -> DoWGState:
        return DoWGState(
            tree.map(fnp.copy, params),
            fnp.zeros((), "float32"),
            fnp.asarray(first, "float32"),
        )

    def update(
        updates: Updates, state: DoWGState, params: Params | None = None
    ) -> tuple[Updates, DoWGState]:
        params = need_params("dowg", params)
        far = norm(sub(params, state.init_params), squared=True)
        square = fnp.maximum(state.estim_sq_dist, far)
        gradients = fnp.multiply(square, norm(updates, squared=True))
        total = fnp.add(state.weighted_sq_norm_grads, gradients)
        rate = fnp.divide(square, fnp.add(positive_root(total), eps))
        out = tree.map(lambda g: fnp.multiply(rate, g), updates)
        return out, DoWGState(state.init_params, total, square)

    return wide_chain(
        _decay(weight_decay, mask),
        in_float32(GradientTransformation(init, update)),
        scale_by_learning_rate(learning_rate),
    )


def mechanize(
    base_optimizer: GradientTransformation,
    weight_decay: Scalar = 0.01,
    eps: Scalar = 1e-8,
    s_init: Scalar = 1e-6,
    num_betas: int = 6,
) -> GradientTransformationExtraArgs:
    r"""Makes Mechanic, which scales an optimizer's steps by a learned factor.

    The sum of the optimizer's steps is a direction from the initial parameters; coin
    betting finds the distance along it.

    Args:
      base_optimizer: any optimizer, with a learning rate of about 1.
      weight_decay: λ of the factor.
      eps: ε.
      s_init: the initial factor.
      num_betas: n: the bets' decays are :math:`1 - 10^{-1}, \ldots, 1 - 10^{-n}`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.mechanize(optim.sgd(1.0), s_init=0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].tolist()
      [-0.5, -0.5]

    Reference: Cutkosky, Defazio, Mehta 2023, "Mechanic: a learning rate tuner".
    """
    inner = with_extra_args_support(base_optimizer)

    def init(params: Params) -> MechanicState:
        r, m, v = (fnp.zeros((num_betas,), "float32") for _ in range(3))
        return MechanicState(
            inner.init(params),
            zero_count(),
            r,
            m,
            v,
            fnp.full((num_betas,), s_init, "float32"),
            tree.map(fnp.copy, tree.map(widened, params)),
        )

    def update(
        updates: Updates,
        state: MechanicState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, MechanicState]:
        params = need_params("mechanize", params)
        betas = fnp.subtract(
            1.0, fnp.power(10.0, fnp.negative(fnp.arange(1.0, num_betas + 1)))
        )
        steps, own = inner.update(updates, state.base_optimizer_state, params, **extra)
        wide, updates = (tree.map(widened, part) for part in (params, updates))
        moved = sub(wide, tree.map(widened, state.x0))
        factor = fnp.sum(state.s)
        direction = scale(quotient(1.0, fnp.add(factor, eps)), moved)
        pull = quotient(norm(updates), fnp.add(norm(wide), eps))
        decay = fnp.multiply(fnp.multiply(weight_decay, factor), pull)
        gain = fnp.negative(
            fnp.add(
                vdot(direction, updates), fnp.multiply(decay, vdot(direction, wide))
            )
        )
        bounded = fnp.clip(gain, fnp.negative(state.m), state.m)
        r = fnp.add(fnp.multiply(betas, state.r), fnp.multiply(state.s, bounded))
        m = fnp.maximum(fnp.multiply(betas, state.m), fnp.add(fnp.abs(gain), eps))
        v = fnp.add(fnp.multiply(fnp.square(betas), state.v), fnp.square(gain))
        wealth = fnp.add(fnp.multiply(s_init / num_betas, m), fnp.maximum(r, 0.0))
        s = fnp.divide(wealth, fnp.add(positive_root(v), eps))
        total = fnp.sum(s)

        def one(d: Any, u: Any, far: Any) -> Any:
            new = fnp.multiply(total, fnp.add(d, widened(u)))
            return cast_like(fnp.subtract(new, far), u)

        out = tree.map(one, direction, steps, moved)
        new = MechanicState(own, safe_increment(state.count), r, m, v, s, state.x0)
        return out, all_cast_like(new, state)

    return GradientTransformationExtraArgs(init, update)
