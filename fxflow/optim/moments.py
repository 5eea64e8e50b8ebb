"""Scaling by moments of gradients: Adam and its variants, and second moments alone.

In the formulas g is a gradient, u the update, and t the number of updates including
this one; operations are elementwise. A dtype argument is the dtype of the state;
updates keep the dtype of the gradients. For gradients of 16 bits, these transformations
compute in float32, and moments without a dtype are float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Scalar,
    Updates,
    in_float32,
    real_parts,
    safe_increment,
    zero_count,
)
from fxflow.optim.numerics import positive_root, quotient, rest_of
from fxflow.optim.tree import (
    bias_correction as unbiased,
)
from fxflow.optim.tree import (
    full_like,
    power_sum,
    update_infinity_moment,
    update_moment,
    weight_held,
    zeros_like,
)


class ScaleByAdamState(NamedTuple):
    """State of `scale_by_adam` and its variants: count, first and second moments."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    mu: Updates
    nu: Updates


class ScaleByAmsgradState(NamedTuple):
    """State of `scale_by_amsgrad`: Adam's state, and the largest second moments."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    mu: Updates
    nu: Updates
    nu_max: Updates


def _divided(mean: Any, square: Any, eps: Scalar, eps_root: Scalar) -> Any:
    """Returns `mean / (√(square + eps_root) + eps)`."""
    root = positive_root(fnp.add(square, eps_root))
    return fnp.divide(mean, fnp.add(root, eps))


def _nesterov(mu: Updates, updates: Updates, b1: Scalar, count: Any) -> Updates:
    """Returns the first moments of Nesterov's variant."""
    later = unbiased(mu, b1, safe_increment(count))
    now = unbiased(updates, b1, count)
    return tree.map(lambda g, m: power_sum(g, b1, m, 1), now, later)


def _adam_init(params: Params, mu_dtype: DTypeLike | None = None) -> ScaleByAdamState:
    mu = zeros_like(params, mu_dtype)
    return ScaleByAdamState(zero_count(), mu, zeros_like(real_parts(params)))


def _adam_like(
    b1: Scalar,
    b2: Scalar,
    second: Callable[[Updates, Updates, Updates], Updates],
    step: Callable[[Any, Any, Any], Any],
    *,
    init: Callable[[Params], ScaleByAdamState] = _adam_init,
    nesterov: bool = False,
    debias: bool = True,
) -> GradientTransformation:
    """Makes a transformation whose state is two moments.

    Args:
      b1: decay of the first moments.
      b2: decay of the second moments.
      second: takes gradients, new first and old second moments; returns new second
        moments.
      step: takes the count, a first and a second moment; returns an update.
      init: makes the initial state.
      nesterov: whether to use Nesterov momentum.
      debias: whether to correct the bias of the second moments for `step`.
    """

    def update(
        updates: Updates, state: ScaleByAdamState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdamState]:
        count = safe_increment(state.count)
        mu = update_moment(updates, state.mu, b1, 1)
        nu = second(updates, mu, state.nu)
        mean = (
            _nesterov(mu, updates, b1, count) if nesterov else unbiased(mu, b1, count)
        )
        square = unbiased(nu, b2, count) if debias else nu
        out = tree.map(lambda m, v: step(count, m, v), mean, square)
        return out, ScaleByAdamState(count, mu, nu)

    return in_float32(GradientTransformation(init, update))


_moment_docs = shared("""
    Args:
      b1: β₁, decay of the first moments m.
      eps: ε.
      mu_dtype: dtype of the first moments; None means that of the parameters, but at
        least float32.
      nesterov: whether to use Nesterov momentum.

    Returns:
      A transformation whose state is both moments.
""")


@_moment_docs
def scale_by_adam(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes the transformation of Adam: mean gradients over root mean squares.

    .. math::
       m \leftarrow (1-\beta_1) g + \beta_1 m, \quad v \leftarrow (1-\beta_2) g^2 +
       \beta_2 v, \quad u = \frac{m / (1-\beta_1^t)}
       {\sqrt{v / (1-\beta_2^t) + \bar\epsilon} + \epsilon}

    Args:
      b1: β₁, decay of the first moments.
      b2: β₂, decay of the second moments.
      eps_root: ε̄; must be positive to differentiate through the update.

    Example:
      >>> tx = optim.scale_by_adam(eps=0.0)
      >>> u, _ = tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))
      >>> [round(x, 5) for x in u.tolist()]
      [1.0, -1.0]

    Reference: Kingma and Ba 2015; Dozat 2016 (Nesterov).
    """

    def second(updates: Updates, mu: Updates, nu: Updates) -> Updates:
        return update_moment(updates, nu, b2, 2)

    def step(count: Any, m: Any, v: Any) -> Any:
        return _divided(m, v, eps, eps_root)

    def init(params: Params) -> ScaleByAdamState:
        return _adam_init(params, mu_dtype)

    return _adam_like(b1, b2, second, step, init=init, nesterov=nesterov)


@_moment_docs
def scale_by_amsgrad(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
    bias_correction_mu: bool = True,
    bias_correction_nu: bool = True,
) -> GradientTransformation:
    r"""Makes the transformation of AMSGrad: Adam with the largest second moments.

    .. math:: \hat v \leftarrow \max(\hat v,\; v / (1-\beta_2^t)), \quad
       u = \frac{m / (1-\beta_1^t)}{\sqrt{\hat v + \bar\epsilon} + \epsilon}

    Args:
      b2: β₂, decay of the second moments v.
      eps_root: ε̄.
      bias_correction_mu: whether to correct the bias of m, as above.
      bias_correction_nu: whether to correct the bias of v, as above.

    Returns:
      A transformation whose state is both moments and the maximum.

    Example:
      >>> tx = optim.scale_by_amsgrad(eps=0.0)
      >>> u, _ = tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))
      >>> [round(x, 5) for x in u.tolist()]
      [1.0, -1.0]

    Reference: Reddi, Kale, Kumar 2018, "On the convergence of Adam and beyond".
    """

    def init(params: Params) -> ScaleByAmsgradState:
        adam = _adam_init(params, mu_dtype)
        return ScaleByAmsgradState(*adam, zeros_like(real_parts(params)))

    def update(
        updates: Updates, state: ScaleByAmsgradState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAmsgradState]:
        mu = update_moment(updates, state.mu, b1, 1)
        nu = update_moment(updates, state.nu, b2, 2)
        count = safe_increment(state.count)
        square = unbiased(nu, b2, count) if bias_correction_nu else nu
        most = tree.map(fnp.maximum, state.nu_max, square)
        mean = unbiased(mu, b1, count) if bias_correction_mu else mu
        out = tree.map(lambda m, v: _divided(m, v, eps, eps_root), mean, most)
        return out, ScaleByAmsgradState(count, mu, nu, most)

    return in_float32(GradientTransformation(init, update))


@_moment_docs
def scale_by_adamax(
    b1: Scalar = 0.9, b2: Scalar = 0.999, eps: Scalar = 1e-8
) -> GradientTransformation:
    r"""Makes the transformation of AdaMax: Adam with the maximum norm.

    .. math:: v \leftarrow \max(|g| + \epsilon,\; \beta_2 v), \quad
       u = \frac{m}{(1-\beta_1^t)\, v}

    Args:
      b2: β₂, decay of the maximum.

    Returns:
      A transformation whose state is the mean and the maximum.

    Example:
      >>> tx = optim.scale_by_adamax(eps=0.0)
      >>> u, _ = tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))
      >>> [round(x, 5) for x in u.tolist()]
      [1.0, -1.0]

    Reference: Kingma and Ba 2015, section 7.
    """

    def second(updates: Updates, mu: Updates, nu: Updates) -> Updates:
        return update_infinity_moment(updates, nu, b2, eps)

    def step(count: Any, m: Any, v: Any) -> Any:
        return quotient(m, v)

    return _adam_like(b1, b2, second, step, debias=False)


@_moment_docs
def scale_by_belief(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-16,
    eps_root: Scalar = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes the transformation of AdaBelief: Adam with the variance of gradients.

    .. math:: v \leftarrow (1-\beta_2) (g - m)^2 + \beta_2 v + \bar\epsilon, \quad
       u = \frac{m / (1-\beta_1^t)}{\sqrt{v / (1-\beta_2^t)} + \epsilon}

    Args:
      b2: β₂, decay of the variance.
      eps_root: ε̄.

    Returns:
      A transformation whose state is the mean and the variance.

    Example:
      >>> tx = optim.scale_by_belief()
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Zhuang et al. 2020, "AdaBelief optimizer".
    """

    def second(updates: Updates, mu: Updates, nu: Updates) -> Updates:
        errors = tree.map(fnp.subtract, updates, mu)
        return tree.map(
            lambda v: fnp.add(v, eps_root), update_moment(errors, nu, b2, 2)
        )

    def step(count: Any, m: Any, v: Any) -> Any:
        return _divided(m, v, eps, 0.0)

    return _adam_like(b1, b2, second, step, nesterov=nesterov)


@_moment_docs
def scale_by_yogi(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-3,
    eps_root: Scalar = 0.0,
    initial_accumulator_value: Scalar = 1e-6,
) -> GradientTransformation:
    r"""Makes the transformation of Yogi: Adam with bounded changes of second moments.

    .. math:: v \leftarrow v - (1-\beta_2)\, \operatorname{sign}(v - g^2)\, g^2

    Args:
      b1: β₁, decay of the first moments.
      b2: β₂ of the second moments.
      eps: ε, added to the square root.
      eps_root: added under the square root.
      initial_accumulator_value: initial value of both moments.

    Example:
      >>> tx = optim.scale_by_yogi()
      >>> tx.update(fnp.ones(2), tx.init(fnp.zeros(2)))[0].shape
      (2,)

    Reference: Zaheer et al. 2018, "Adaptive methods for nonconvex optimization".
    """

    def init(params: Params) -> ScaleByAdamState:
        start = initial_accumulator_value
        return ScaleByAdamState(
            zero_count(), full_like(params, start), full_like(real_parts(params), start)
        )

    def second(updates: Updates, mu: Updates, nu: Updates) -> Updates:
        def one(g: Any, v: Any) -> Any:
            square = fnp.square(fnp.abs(g))
            sign = fnp.sign(fnp.subtract(v, square))
            step = fnp.multiply(fnp.multiply(rest_of(b2, g), sign), square)
            return fnp.subtract(v, step)

        return tree.map(one, updates, nu)

    def step(count: Any, m: Any, v: Any) -> Any:
        return _divided(m, v, eps, eps_root)

    return _adam_like(b1, b2, second, step, init=init)


@_moment_docs
def scale_by_radam(
    b1: Scalar = 0.9,
    b2: Scalar = 0.999,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    threshold: Scalar = 5.0,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    r"""Makes the transformation of rectified Adam, which begins with plain momentum.

    With :math:`\rho_\infty = 2/(1-\beta_2) - 1` and
    :math:`\rho_t = \rho_\infty - 2 t \beta_2^t / (1-\beta_2^t)`: while :math:`\rho_t`
    is below the threshold the update is :math:`m/(1-\beta_1^t)`; afterwards it is
    Adam's times

    .. math:: \sqrt{\frac{(\rho_t-4)(\rho_t-2)\rho_\infty}
       {(\rho_\infty-4)(\rho_\infty-2)\rho_t}}

    Args:
      b2: β₂, decay of the second moments.
      eps: added to the square root.
      eps_root: added under the square root.
      threshold: threshold of :math:`\rho_t`. If it is below 4, steps are 0 until
        :math:`\rho_t` exceeds 4. (optax 0.2.8 gives nan.)

    Example:
      >>> tx = optim.scale_by_radam()
      >>> u, _ = tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))
      >>> round(float(u[0]), 5)
      3.0

    Reference: Liu et al. 2020, "On the variance of the adaptive learning rate".
    """
    if isinstance(b2, int | float) and not 0 <= b2 < 1:
        raise ArgumentError(f"scale_by_radam: b2 must be in [0, 1), got {b2}")
    # The paper's ρ∞: the number of gradients that second moments average in the limit.
    most = 2.0 / (1.0 - b2) - 1.0

    def second(updates: Updates, mu: Updates, nu: Updates) -> Updates:
        return update_moment(updates, nu, b2, 2)

    def step(count: Any, m: Any, v: Any) -> Any:
        weight = weight_held(b2, count)
        power = fnp.subtract(1.0, weight)
        # ρ is that number so far: for few gradients the estimate of the variance is too
        # inaccurate to divide by, and the step is plain momentum.
        t = fnp.astype(count, float)
        lost = fnp.divide(fnp.multiply(fnp.multiply(2.0, t), power), weight)
        rho = fnp.subtract(most, lost)
        above = fnp.multiply(fnp.subtract(rho, 4.0), fnp.subtract(rho, 2.0))
        below = fnp.multiply((most - 4.0) * (most - 2.0), rho)
        ratio = fnp.divide(fnp.multiply(above, most), below)
        factor = fnp.sqrt(fnp.maximum(ratio, 0.0))
        adam = fnp.multiply(factor, _divided(m, v, eps, eps_root))
        return fnp.where(fnp.greater_equal(rho, threshold), adam, m)

    return _adam_like(b1, b2, second, step, nesterov=nesterov)


# -- second moments alone --------------------------------------------------------------


class ScaleByRmsState(NamedTuple):
    """State of `scale_by_rms`: the count and the second moments."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    nu: Updates


class ScaleByRssState(NamedTuple):
    """State of `scale_by_rss`: the sums of squares."""

    sum_of_squares: Updates


class ScaleByAdaDeltaState(NamedTuple):
    """State of `scale_by_adadelta`: second moments of gradients and of updates."""

    e_g: Updates
    e_x: Updates


def _over_root(g: Any, square: Any, eps: Scalar, inside: bool) -> Any:
    """Returns `g / √(square + eps)`, or unless `inside`, `g / (√square + eps)`."""
    if inside:
        return fnp.divide(g, positive_root(fnp.add(square, eps)))
    return fnp.divide(g, fnp.add(positive_root(square), eps))


def scale_by_rms(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    r"""Makes the transformation of RMSProp: gradients over their root mean square.

    .. math:: v \leftarrow (1-\beta) g^2 + \beta v, \quad u = g / \sqrt{v + \epsilon}

    Args:
      decay: β.
      eps: ε.
      initial_scale: initial v.
      eps_in_sqrt: whether ε is added under the square root (as above) or to it.
      bias_correction: whether v is divided by :math:`1 - \beta^t`.

    Returns:
      A transformation whose state is v.

    Example:
      >>> tx = optim.scale_by_rms(0.75, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [2.0]

    Reference: Tieleman and Hinton 2012.
    """

    def init(params: Params) -> ScaleByRmsState:
        return ScaleByRmsState(
            zero_count(), full_like(real_parts(params), initial_scale)
        )

    def update(
        updates: Updates, state: ScaleByRmsState, params: Params | None = None
    ) -> tuple[Updates, ScaleByRmsState]:
        count = safe_increment(state.count)
        nu = update_moment(updates, state.nu, decay, 2)
        mean = unbiased(nu, decay, count) if bias_correction else nu

        def one(v: Any, g: Any) -> Any:
            return _over_root(g, v, eps, eps_in_sqrt)

        return tree.map(one, mean, updates), ScaleByRmsState(count, nu)

    return in_float32(GradientTransformation(init, update))


def scale_by_stddev(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    r"""Makes the transformation of centered RMSProp: divides by standard deviations.

    .. math:: m \leftarrow (1-\beta) g + \beta m, \quad v \leftarrow (1-\beta) g^2 +
       \beta v, \quad u = g / \sqrt{v - m^2 + \epsilon}

    Args:
      decay: β.
      eps: ε.
      initial_scale: initial v.
      eps_in_sqrt: whether ε is added under the square root (as above) or to it.
      bias_correction: whether m and v are divided by :math:`1 - \beta^t`.

    Returns:
      A transformation whose state is both moments.

    Example:
      >>> tx = optim.scale_by_stddev()
      >>> tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))[0].shape
      (1,)

    Reference: Graves 2013, "Generating sequences with recurrent neural networks".
    """

    def init(params: Params) -> ScaleByAdamState:
        nu = full_like(real_parts(params), initial_scale)
        return ScaleByAdamState(zero_count(), zeros_like(params), nu)

    def update(
        updates: Updates, state: ScaleByAdamState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdamState]:
        count = safe_increment(state.count)
        mu = update_moment(updates, state.mu, decay, 1)
        nu = update_moment(updates, state.nu, decay, 2)
        mean, square = mu, nu
        if bias_correction:
            mean, square = (
                unbiased(mu, decay, count),
                unbiased(nu, decay, count),
            )

        def one(m: Any, v: Any, g: Any) -> Any:
            # Rounding errors can make it negative if gradients do not change.
            variance = fnp.maximum(fnp.subtract(v, fnp.square(fnp.abs(m))), 0.0)
            return _over_root(g, variance, eps, eps_in_sqrt)

        out = tree.map(one, mean, square, updates)
        return out, ScaleByAdamState(count, mu, nu)

    return in_float32(GradientTransformation(init, update))


def scale_by_rss(
    initial_accumulator_value: Scalar = 0.1, eps: Scalar = 1e-7
) -> GradientTransformation:
    r"""Makes the transformation of AdaGrad: gradients over the root of summed squares.

    .. math:: s \leftarrow s + g^2, \quad u = g / \sqrt{s + \epsilon}

    Args:
      initial_accumulator_value: initial s.
      eps: ε.

    Returns:
      A transformation whose state is s. Where s is 0, so is the update.

    Example:
      >>> tx = optim.scale_by_rss(7.0, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))[0].tolist()
      [0.75]

    Reference: Duchi, Hazan, Singer 2011.
    """

    def init(params: Params) -> ScaleByRssState:
        return ScaleByRssState(full_like(real_parts(params), initial_accumulator_value))

    def update(
        updates: Updates, state: ScaleByRssState, params: Params | None = None
    ) -> tuple[Updates, ScaleByRssState]:
        def total(g: Any, s: Any) -> Any:
            return fnp.add(fnp.square(fnp.abs(g)), s)

        sums = tree.map(total, updates, state.sum_of_squares)
        out = tree.map(lambda s, g: root_scaled(s, g, eps), sums, updates)
        return out, ScaleByRssState(sums)

    return in_float32(GradientTransformation(init, update))


def root_scaled(square: Any, gradient: Any, eps: Scalar) -> Any:
    """Returns a gradient over the root of a sum of squares; 0 where the sum is 0.

    Args:
      square: the sum, which broadcasts against the gradient.
      gradient: the gradient.
      eps: added under the root.
    """
    root = positive_root(fnp.add(square, eps))
    return fnp.where(fnp.greater(square, 0), fnp.divide(gradient, root), 0)


def scale_by_adadelta(rho: Scalar = 0.9, eps: Scalar = 1e-6) -> GradientTransformation:
    r"""Makes the transformation of AdaDelta: updates in the parameters' unit.

    .. math:: v \leftarrow (1-\rho) g^2 + \rho v, \quad
       u = g\, \sqrt{x + \epsilon} / \sqrt{v + \epsilon}, \quad
       x \leftarrow (1-\rho) u^2 + \rho x

    Args:
      rho: ρ.
      eps: ε.

    Returns:
      A transformation whose state is v and x.

    Example:
      >>> tx = optim.scale_by_adadelta()
      >>> tx.update(fnp.ones(1), tx.init(fnp.zeros(1)))[0].shape
      (1,)

    Reference: Zeiler 2012.
    """

    def init(params: Params) -> ScaleByAdaDeltaState:
        zeros = zeros_like(real_parts(params))
        return ScaleByAdaDeltaState(zeros, zeros_like(real_parts(params)))

    def update(
        updates: Updates, state: ScaleByAdaDeltaState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdaDeltaState]:
        squares = update_moment(updates, state.e_g, rho, 2)

        def one(g: Any, v: Any, x: Any) -> Any:
            above, below = (positive_root(fnp.add(s, eps)) for s in (x, v))
            return fnp.multiply(fnp.divide(above, below), g)

        out = tree.map(one, updates, squares, state.e_x)
        steps = update_moment(out, state.e_x, rho, 2)
        return out, ScaleByAdaDeltaState(squares, steps)

    return in_float32(GradientTransformation(init, update))
