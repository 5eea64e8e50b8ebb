"""Recent variants of Adam: ADOPT, ACProp, AdEMAMix, MADGRAD; and normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.adams import adam_docs
from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Params,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    need_params,
    safe_increment,
    stateless,
    wide_chain,
    zero_count,
)
from fxflow.optim.moments import ScaleByAdamState
from fxflow.optim.numerics import positive_root, quotient
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.tree import bias_correction, norm, update_moment, zeros_like


class ScaleByAdemamixState(NamedTuple):
    """State of `scale_by_ademamix`: a fast and a slow average, and second moments."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    count_m2: Array
    m1: Updates
    m2: Updates
    nu: Updates


class ScaleBySimplifiedAdEMAMixState(NamedTuple):
    """State of `scale_by_simplified_ademamix`: the count, a sum, second moments."""

    t: Array
    m: Updates
    n: Updates


class MadgradState(NamedTuple):
    """State of `scale_by_madgrad`: sums of squares and gradients, first parameters."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    grad_sum_sq: Updates
    s: Updates
    x0: Params


def _root(v: Any, eps: Any, eps_root: Any = 0.0) -> Any:
    return fnp.add(positive_root(fnp.add(v, eps_root)), eps)


def _clip_bound(step: Any) -> Any:
    """Returns ADOPT's bound on normalized gradients: the fourth root of the count."""
    return fnp.power(fnp.astype(step, float), 0.25)


@adam_docs
def scale_by_adopt(
    b1: Scalar = 0.9,
    b2: Scalar = 0.9999,
    eps: Scalar = 1e-6,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
    use_clipping: bool = True,
    clip_value_fn: Callable[[Any], Any] = _clip_bound,
) -> GradientTransformation:
    r"""Makes the transformation of ADOPT, which converges with any β₂.

    .. math:: m \leftarrow (1-\beta_1) \frac{g}{\max(\sqrt{v}, \epsilon)} + \beta_1 m,
       \quad u = m, \quad v \leftarrow (1-\beta_2) g^2 + \beta_2 v

    It divides a gradient by the second moments before it; the first one only sets v.

    Args:
      eps: ε.
      use_clipping: whether to clip normalized gradients.
      clip_value_fn: their bound, a function of the number of updates so far.

    Example:
      >>> tx = optim.contrib.scale_by_adopt()
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].tolist()
      [0.0, 0.0]

    Reference: Taniguchi et al. 2024, "ADOPT: modified Adam can converge with any β₂
    with the optimal rate".
    """

    def init(params: Params) -> ScaleByAdamState:
        mu = zeros_like(params, mu_dtype)
        return ScaleByAdamState(zero_count(), mu, zeros_like(params))

    def update(
        updates: Updates, state: ScaleByAdamState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdamState]:
        first = fnp.equal(state.count, 0)
        decay = fnp.where(first, 0.0, b2)

        def normal(g: Any, v: Any) -> Any:
            x = fnp.divide(g, fnp.maximum(positive_root(v), eps))
            if use_clipping:
                bound = clip_value_fn(state.count)
                x = fnp.clip(x, fnp.negative(bound), bound)
            return fnp.where(first, 0.0, x)

        steps = tree.map(normal, updates, state.nu)
        mu = update_moment(steps, state.mu, b1, 1)
        out = update_moment(steps, mu, b1, 1) if nesterov else mu
        nu = update_moment(updates, state.nu, decay, 2)
        new = ScaleByAdamState(safe_increment(state.count), mu, nu)
        return out, new

    return in_float32(GradientTransformation(init, update))


@adam_docs
def adopt(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.9999,
    eps: Scalar = 1e-6,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
    use_clipping: bool = True,
    clip_value_fn: Callable[[Any], Any] = _clip_bound,
) -> GradientTransformation:
    """Makes ADOPT, a variant of Adam that converges with any β₂.

    Args:
      eps: ε, lower bound of the square root.
      use_clipping: whether to clip normalized gradients.
      clip_value_fn: their bound, a function of the number of updates so far.

    Example:
      >>> tx = optim.contrib.adopt(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Taniguchi et al. 2024, "ADOPT".
    """
    return wide_chain(
        scale_by_adopt(
            b1,
            b2,
            eps,
            mu_dtype,
            nesterov=nesterov,
            use_clipping=use_clipping,
            clip_value_fn=clip_value_fn,
        ),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def scale_by_acprop(
    b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-16, eps_root: Scalar = 1e-16
) -> GradientTransformation:
    r"""Makes the transformation of ACProp: gradients over the spread of earlier ones.

    .. math:: u = \frac{g}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}, \quad
       v \leftarrow (1-\beta_2) (g - m)^2 + \beta_2 v + \bar\epsilon

    Example:
      >>> tx = optim.contrib.scale_by_acprop()
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].tolist()
      [1.0, 1.0]

    Reference: Zhuang et al. 2021, "Momentum centering and asynchronous update for
    adaptive gradient methods".
    """

    def init(params: Params) -> ScaleByAdamState:
        return ScaleByAdamState(zero_count(), zeros_like(params), zeros_like(params))

    def update(
        updates: Updates, state: ScaleByAdamState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdamState]:
        first = fnp.equal(state.count, 0)
        count = fnp.maximum(state.count, 1)
        spread = bias_correction(state.nu, b2, count)

        def one(g: Any, v: Any) -> Any:
            return fnp.where(first, g, fnp.divide(g, _root(v, eps)))

        out = tree.map(one, updates, spread)
        errors = tree.map(fnp.subtract, updates, state.mu)
        nu = update_moment(errors, state.nu, b2, 2)
        nu = tree.map(lambda v: fnp.add(v, eps_root), nu)
        mu = update_moment(updates, state.mu, b1, 1)
        new = ScaleByAdamState(safe_increment(state.count), mu, nu)
        return out, new

    return in_float32(GradientTransformation(init, update))


@adam_docs
def acprop(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes ACProp: divides gradients by AdaBelief's spread of earlier gradients.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.acprop(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].tolist()
      [-0.5, -0.5]

    Reference: Zhuang et al. 2021, "Momentum centering and asynchronous update for
    adaptive gradient methods".
    """
    return wide_chain(
        scale_by_acprop(b1, b2, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def _at(value: Any, count: Any) -> Any:
    return value(count) if callable(value) else value


@adam_docs
def scale_by_ademamix(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    b3: ScalarOrSchedule = 0.9999,
    alpha: ScalarOrSchedule = 6.0,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    r"""Makes the transformation of AdEMAMix: Adam with a second, much slower average.

    .. math:: u = \frac{m_1 / (1-\beta_1^t) + \alpha m_2}
       {\sqrt{v / (1 - \beta_2^t) + \bar\epsilon} + \epsilon}

    Args:
      b3: β₃, decay of the slow average: a number or a schedule.
      alpha: α, its weight: a number or a schedule.

    Example:
      >>> tx = optim.contrib.scale_by_ademamix()
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Pagliardini, Ablin, Grangier 2024, "The AdEMAMix optimizer: better,
    faster, older".
    """

    def init(params: Params) -> ScaleByAdemamixState:
        fast, slow = (zeros_like(params, mu_dtype) for _ in range(2))
        return ScaleByAdemamixState(
            zero_count(), zero_count(), fast, slow, zeros_like(params)
        )

    def update(
        updates: Updates, state: ScaleByAdemamixState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdemamixState]:
        count = safe_increment(state.count)
        slow, weight = _at(b3, state.count_m2), _at(alpha, state.count_m2)
        m1 = update_moment(updates, state.m1, b1, 1)
        m2 = update_moment(updates, state.m2, slow, 1)
        nu = update_moment(updates, state.nu, b2, 2)

        def one(m: Any, older: Any, v: Any) -> Any:
            both = fnp.add(m, fnp.multiply(weight, older))
            return fnp.divide(both, _root(v, eps, eps_root))

        mean, square = bias_correction(m1, b1, count), bias_correction(nu, b2, count)
        out = tree.map(one, mean, m2, square)
        later = safe_increment(state.count_m2)
        new = ScaleByAdemamixState(count, later, m1, m2, nu)
        return out, new

    return in_float32(GradientTransformation(init, update))


@adam_docs
def ademamix(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    b3: ScalarOrSchedule = 0.9999,
    alpha: ScalarOrSchedule = 5.0,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes AdEMAMix: AdamW with a second, much slower average.

    Args:
      b3: decay of the slow average: a number or a schedule.
      alpha: its weight: a number or a schedule.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.ademamix(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Pagliardini, Ablin, Grangier 2024, "The AdEMAMix optimizer".
    """
    return wide_chain(
        scale_by_ademamix(b1, b2, b3, alpha, eps, eps_root, mu_dtype),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


@adam_docs
def scale_by_simplified_ademamix(
    b1: Scalar = 0.99,
    b2: Scalar = 0.95,
    alpha: Scalar = 0.0,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
) -> GradientTransformation:
    r"""Makes the transformation of simplified AdEMAMix: a slow sum and the gradient.

    .. math:: m \leftarrow g + \beta_1 m, \quad u = \frac{\alpha g + m}
       {\sqrt{v / (1 - \beta_2^t) + \bar\epsilon} + \epsilon}

    Args:
      b1: β₁, decay of the sum.
      alpha: α, weight of the gradient.

    Example:
      >>> tx = optim.contrib.scale_by_simplified_ademamix()
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Morwani, Vyas, Zhang, Kakade 2025, "Connections between schedule-free
    optimizers, AdEMAMix, and accelerated SGD variants".
    """

    def init(params: Params) -> ScaleBySimplifiedAdEMAMixState:
        zeros = zeros_like(params), zeros_like(params)
        return ScaleBySimplifiedAdEMAMixState(zero_count(), *zeros)

    def update(
        updates: Updates,
        state: ScaleBySimplifiedAdEMAMixState,
        params: Params | None = None,
    ) -> tuple[Updates, ScaleBySimplifiedAdEMAMixState]:
        t = safe_increment(state.t)
        total = tree.map(lambda g, m: fnp.add(g, fnp.multiply(b1, m)), updates, state.m)
        square = update_moment(updates, state.n, b2, 2)

        def one(g: Any, m: Any, v: Any) -> Any:
            both = fnp.add(fnp.multiply(alpha, g), m)
            return fnp.divide(both, _root(v, eps, eps_root))

        out = tree.map(one, updates, total, bias_correction(square, b2, t))
        new = ScaleBySimplifiedAdEMAMixState(t, total, square)
        return out, new

    return in_float32(GradientTransformation(init, update))


@adam_docs
def simplified_ademamix(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.99,
    b2: Scalar = 0.95,
    alpha: Scalar = 0.0,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes simplified AdEMAMix. Its steps are 1 / (1 - b1) times as long as Adam's.

    Args:
      b1: decay of the sum.
      alpha: weight of the gradient.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.simplified_ademamix(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Morwani, Vyas, Zhang, Kakade 2025, "Connections between schedule-free
    optimizers, AdEMAMix, and accelerated SGD variants".
    """
    return wide_chain(
        scale_by_simplified_ademamix(b1, b2, alpha, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def scale_by_madgrad(
    learning_rate: ScalarOrSchedule, momentum: Scalar = 0.9, eps: Scalar = 1e-6
) -> GradientTransformation:
    r"""Makes the transformation of MADGRAD: dual averaging with a cubic root.

    With :math:`\lambda_t = (\eta + \epsilon) \sqrt{t + 1}` and
    :math:`z = p_0 - s / (\sqrt[3]{v} + \epsilon)`:

    .. math:: s \leftarrow s + \lambda_t g, \quad v \leftarrow v + \lambda_t g^2,
       \quad p \leftarrow \mu p + (1 - \mu) z

    Args:
      learning_rate: η: a number or a schedule.
      momentum: μ.
      eps: ε.

    Returns:
      A transformation whose `update` needs the parameters; its updates descend.

    Example:
      >>> tx = optim.contrib.scale_by_madgrad(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Defazio and Jelassi 2021, "Adaptivity without compromise: a momentumized,
    adaptive, dual averaged gradient method".
    """

    def init(params: Params) -> MadgradState:
        return MadgradState(
            zero_count(),
            zeros_like(params),
            zeros_like(params),
            tree.map(fnp.copy, params),
        )

    def update(
        updates: Updates, state: MadgradState, params: Params | None = None
    ) -> tuple[Updates, MadgradState]:
        params = need_params("scale_by_madgrad", params)
        count = safe_increment(state.count)
        rate = fnp.add(_at(learning_rate, state.count), eps)
        weight = fnp.multiply(rate, fnp.sqrt(count))
        squares = tree.map(
            lambda v, g: fnp.add(v, fnp.multiply(weight, fnp.square(g))),
            state.grad_sum_sq,
            updates,
        )
        total = tree.map(
            lambda s, g: fnp.add(s, fnp.multiply(weight, g)), state.s, updates
        )

        def one(p: Any, p0: Any, s: Any, v: Any) -> Any:
            # Bounded away from 0, where the cubic root has no derivative.
            root = fnp.cbrt(fnp.square(positive_root(v)))
            z = fnp.subtract(p0, fnp.divide(s, fnp.add(root, eps)))
            return fnp.multiply(fnp.subtract(1.0, momentum), fnp.subtract(z, p))

        out = tree.map(one, params, state.x0, total, squares)
        new = MadgradState(count, squares, total, state.x0)
        return out, new

    return in_float32(GradientTransformation(init, update))


def madgrad(
    learning_rate: ScalarOrSchedule,
    momentum: Scalar = 0.9,
    weight_decay: Scalar = 0.0,
    eps: Scalar = 1e-6,
) -> GradientTransformation:
    """Makes MADGRAD.

    Args:
      learning_rate: a number or a schedule.
      momentum: weight of the previous parameters.
      weight_decay: λ, added to the gradients.
      eps: added to the cubic root.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.contrib.madgrad(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Defazio and Jelassi 2021, "Adaptivity without compromise".
    """
    return wide_chain(
        add_decayed_weights(weight_decay),
        scale_by_madgrad(learning_rate, momentum, eps),
    )


def normalize() -> GradientTransformation:
    r"""Makes a normalization of all arrays together: :math:`g / \lVert g \rVert`.

    Returns:
      A transformation without state. Gradients of norm 0 stay 0 (in optax 0.2.8 they
      become nan).

    Example:
      >>> optim.contrib.normalize().update(fnp.array([3.0, 4.0]), ())[0].tolist()
      [0.6..., 0.8...]
    """

    def all_of(updates: Updates, params: Params | None) -> Updates:
        length = norm(updates)
        return tree.map(lambda g: quotient(g, length), updates)

    return in_float32(stateless(all_of))
