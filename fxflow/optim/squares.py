"""Transformations that remember squares of gradients alone.

In the formulas g is a gradient, u the update, t the number of updates so far with this
one; sums and squares are elementwise. Where a dtype is given, it is that of the memory;
updates keep the dtype of the gradients.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Scalar,
    Updates,
    cast_like,
    full_like,
    increment,
    moments,
    real_parts,
    unbiased,
    zero_count,
    zeros_like,
)
from fxflow.optim.moments import ScaleByAdamState


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


def _inverse_root(square: Any, eps: Scalar, inside: bool) -> Any:
    if inside:
        return lax.rsqrt(fnp.add(square, eps))
    return fnp.divide(1.0, fnp.add(fnp.sqrt(square), eps))


def scale_by_rms(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    r"""Makes updates of RMSProp: gradients over their root mean square.

    .. math:: v \leftarrow (1-\beta) g^2 + \beta v, \quad u = g / \sqrt{v + \epsilon}

    Args:
      decay: β.
      eps: ε.
      initial_scale: v at the beginning.
      eps_in_sqrt: whether ε is added under the root (as above) or to the root.
      bias_correction: whether v is divided by :math:`1 - \beta^t`.

    Returns:
      A transformation that remembers v.

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
        count = increment(state.count)
        nu = moments(updates, state.nu, decay, 2)
        mean = unbiased(nu, decay, count) if bias_correction else nu

        def one(v: Any, g: Any) -> Any:
            return cast_like(fnp.multiply(g, _inverse_root(v, eps, eps_in_sqrt)), g)

        out = tree.map(one, mean, updates)
        return out, ScaleByRmsState(count, tree.map(cast_like, nu, state.nu))

    return GradientTransformation(init, update)


def scale_by_stddev(
    decay: Scalar = 0.9,
    eps: Scalar = 1e-8,
    initial_scale: Scalar = 0.0,
    eps_in_sqrt: bool = True,
    bias_correction: bool = False,
) -> GradientTransformation:
    r"""Makes updates of centred RMSProp: gradients over their standard deviation.

    .. math:: m \leftarrow (1-\beta) g + \beta m, \quad v \leftarrow (1-\beta) g^2 +
       \beta v, \quad u = g / \sqrt{v - m^2 + \epsilon}

    Args:
      decay: β.
      eps: ε.
      initial_scale: v at the beginning.
      eps_in_sqrt: whether ε is added under the root (as above) or to the root.
      bias_correction: whether m and v are divided by :math:`1 - \beta^t`.

    Returns:
      A transformation that remembers both moments.

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
        count = increment(state.count)
        mu = moments(updates, state.mu, decay, 1)
        nu = moments(updates, state.nu, decay, 2)
        mean, square = mu, nu
        if bias_correction:
            mean, square = unbiased(mu, decay, count), unbiased(nu, decay, count)

        def one(m: Any, v: Any, g: Any) -> Any:
            variance = fnp.subtract(v, fnp.square(fnp.abs(m)))
            factor = _inverse_root(variance, eps, eps_in_sqrt)
            return cast_like(fnp.multiply(g, factor), g)

        out = tree.map(one, mean, square, updates)
        mu = tree.map(cast_like, mu, state.mu)
        return out, ScaleByAdamState(count, mu, tree.map(cast_like, nu, state.nu))

    return GradientTransformation(init, update)


def scale_by_rss(
    initial_accumulator_value: Scalar = 0.1, eps: Scalar = 1e-7
) -> GradientTransformation:
    r"""Makes updates of AdaGrad: gradients over the root of the sum of their squares.

    .. math:: s \leftarrow s + g^2, \quad u = g / \sqrt{s + \epsilon}

    Args:
      initial_accumulator_value: s at the beginning.
      eps: ε.

    Returns:
      A transformation that remembers s. Where s is 0, so is the update.

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
            return cast_like(fnp.add(fnp.square(fnp.abs(g)), s), s)

        def one(s: Any, g: Any) -> Any:
            root = lax.rsqrt(fnp.add(s, eps))
            return cast_like(fnp.multiply(fnp.where(fnp.greater(s, 0), root, 0), g), g)

        sums = tree.map(total, updates, state.sum_of_squares)
        return tree.map(one, sums, updates), ScaleByRssState(sums)

    return GradientTransformation(init, update)


def scale_by_adadelta(rho: Scalar = 0.9, eps: Scalar = 1e-6) -> GradientTransformation:
    r"""Makes updates of AdaDelta, which have the unit of the parameters.

    .. math:: v \leftarrow (1-\rho) g^2 + \rho v, \quad
       u = g\, \sqrt{x + \epsilon} / \sqrt{v + \epsilon}, \quad
       x \leftarrow (1-\rho) u^2 + \rho x

    Args:
      rho: ρ.
      eps: ε.

    Returns:
      A transformation that remembers v and x.

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
        squares = moments(updates, state.e_g, rho, 2)

        def one(g: Any, v: Any, x: Any) -> Any:
            above, below = (fnp.sqrt(fnp.add(s, eps)) for s in (x, v))
            return cast_like(fnp.multiply(fnp.divide(above, below), g), g)

        out = tree.map(one, updates, squares, state.e_x)
        steps = moments(out, state.e_x, rho, 2)
        return out, ScaleByAdaDeltaState(
            tree.map(cast_like, squares, state.e_g),
            tree.map(cast_like, steps, state.e_x),
        )

    return GradientTransformation(init, update)
