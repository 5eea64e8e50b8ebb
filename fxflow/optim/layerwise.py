"""Layer-wise optimizers: steps scaled by the norms of whole arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes
from fxflow.numpy._operands import DTypeLike
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Rate,
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
from fxflow.optim.numerics import positive_root, rest_of
from fxflow.optim.scaling import (
    add_decayed_weights,
    scale_by_learning_rate,
    scale_by_trust_ratio,
)
from fxflow.optim.tree import norm, zeros_like


class ScaleByNovogradState(NamedTuple):
    """State of `scale_by_novograd`: count, mean steps, squared norms."""

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    mu: Updates
    nu: Updates


class ScaleByDistanceOverGradientsState(NamedTuple):
    """State of `scale_by_distance_over_gradients`, for each array.

    Attributes:
      max_dist: the largest distance from the initial parameters.
      grads_sum_of_squares: the sum of the squared norms of the gradients.
      init_params: the initial parameters.
    """

    max_dist: Updates
    grads_sum_of_squares: Updates
    init_params: Params


def _square(x: Any) -> Any:
    return norm(x, squared=True)


def scale_by_novograd(
    b1: Scalar = 0.9,
    b2: Scalar = 0.25,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
    weight_decay: Scalar = 0.0,
    mu_dtype: DTypeLike | None = None,
) -> GradientTransformation:
    r"""Makes the transformation of NovoGrad: momentum of normalized gradients.

    .. math:: v \leftarrow (1-\beta_2) \lVert g\rVert^2 + \beta_2 v, \quad
       m \leftarrow \beta_1 m + \frac{g}{\sqrt{v + \bar\epsilon} + \epsilon} + \lambda p

    At the first step, v is the squared norm.

    Args:
      b1: β₁, decay of m.
      b2: β₂, decay of v.
      eps: ε.
      eps_root: ε̄.
      weight_decay: λ.
      mu_dtype: dtype of m; None means that of the parameters, but at least float32.

    Returns:
      A transformation whose state is m and v; it needs the parameters. Updates have the
      dtype of the gradients (in optax 0.2.8 they have `mu_dtype`).

    Example:
      >>> tx = optim.scale_by_novograd(eps=0.0)
      >>> p = fnp.zeros(2)
      >>> tx.update(fnp.array([3.0, 4.0]), tx.init(p), p)[0].tolist()
      [0.6..., 0.8...]

    Reference: Ginsburg et al. 2019, "Stochastic gradient methods with layer-wise
    adaptive moments".
    """

    def init(params: Params) -> ScaleByNovogradState:
        nu = tree.map(lambda p: fnp.zeros((), fnp.real(p).dtype), params)
        return ScaleByNovogradState(zero_count(), zeros_like(params, mu_dtype), nu)

    def update(
        updates: Updates, state: ScaleByNovogradState, params: Params | None = None
    ) -> tuple[Updates, ScaleByNovogradState]:
        params = need_params("scale_by_novograd", params)
        first = fnp.equal(state.count, 0)

        def second(g: Any, v: Any) -> Any:
            square = _square(g)
            later = fnp.add(
                fnp.multiply(rest_of(b2, square), square), fnp.multiply(b2, v)
            )
            return fnp.where(first, square, later)

        def mean(g: Any, v: Any, p: Any, m: Any) -> Any:
            root = fnp.add(positive_root(fnp.add(v, eps_root)), eps)
            step = fnp.add(fnp.divide(g, root), fnp.multiply(weight_decay, p))
            return fnp.add(fnp.multiply(b1, m), step)

        nu = tree.map(second, updates, state.nu)
        mu = tree.map(mean, updates, nu, params, state.mu)
        return mu, ScaleByNovogradState(safe_increment(state.count), mu, nu)

    return in_float32(GradientTransformation(init, update))


def novograd(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.9,
    b2: Scalar = 0.25,
    eps: Scalar = 1e-6,
    eps_root: Scalar = 0.0,
    weight_decay: Scalar = 0.0,
) -> GradientTransformation:
    """Makes NovoGrad: Adam with one second moment for each array.

    Args:
      learning_rate: a number or a schedule.
      b1: decay of the first moments.
      b2: decay of the second moments.
      eps: added to the square root.
      eps_root: added under the square root.
      weight_decay: λ, added before the mean.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.novograd(0.5, eps=0.0)
      >>> tx.update(fnp.array([3.0]), tx.init(fnp.ones(1)), fnp.ones(1))[0].tolist()
      [-0.5]

    Reference: Ginsburg et al. 2019, "Stochastic gradient methods with layer-wise
    adaptive moments".
    """
    return wide_chain(
        scale_by_novograd(b1, b2, eps, eps_root, weight_decay),
        scale_by_learning_rate(learning_rate),
    )


def fromage(learning_rate: Rate, min_norm: Scalar = 1e-6) -> GradientTransformation:
    r"""Makes Fromage: relative steps that preserve the parameters' norms.

    .. math:: p \leftarrow \frac{1}{\sqrt{1 + \eta^2}}
       \left(p - \eta\, g\, \frac{\lVert p\rVert}{\lVert g\rVert}\right)

    Args:
      learning_rate: η.
      min_norm: lower bound of the norms.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.fromage(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Bernstein, Vahdat, Yue, Liu 2020, "On the distance between two neural
    networks and the stability of learning".
    """
    square = learning_rate * learning_rate
    root = (1.0 + square) ** 0.5
    return wide_chain(
        scale_by_trust_ratio(min_norm),
        scale_by_learning_rate(learning_rate / root),
        # 1 / root - 1, without cancellation.
        add_decayed_weights(-square / (root * (1.0 + root))),
    )


def scale_by_param_block_norm(min_scale: Scalar = 1e-3) -> GradientTransformation:
    """Makes a transformation that scales each array by its parameters' Euclidean norm.

    Args:
      min_scale: lower bound of the norm.

    Returns:
      A transformation without state, which needs the parameters.

    Example:
      >>> tx = optim.scale_by_param_block_norm()
      >>> tx.update(fnp.ones(2), (), fnp.array([3.0, 4.0]))[0].tolist()
      [5.0, 5.0]
    """

    def one(x: Any, param: Any) -> Any:
        return fnp.multiply(x, fnp.maximum(norm(param), min_scale))

    def all_of(updates: Updates, params: Params | None) -> Updates:
        return tree.map(one, updates, need_params("scale_by_param_block_norm", params))

    return in_float32(stateless(all_of))


def scale_by_distance_over_gradients(
    reps_rel: Scalar = 1e-6,
    eps: Scalar = 1e-8,
    param_dtype: DTypeLike = dtypes.float32,
    global_scale: Scalar = 1.0,
) -> GradientTransformation:
    r"""Makes the transformation of layer-wise DoG, which needs no learning rate.

    .. math:: d \leftarrow \max(d, \lVert p - p_0 \rVert), \quad
       s \leftarrow s + \lVert g \rVert^2, \quad u = c\, g\, d / \sqrt{s + \epsilon}

    The initial d is :math:`r\, (1 + \lVert p_0 \rVert)`.

    Args:
      reps_rel: r.
      eps: ε.
      param_dtype: dtype of the state.
      global_scale: c.

    Returns:
      A transformation whose state is d, s and :math:`p_0`; it needs the parameters.

    Example:
      >>> tx = optim.scale_by_distance_over_gradients()
      >>> p = fnp.ones(2)
      >>> tx.update(fnp.ones(2), tx.init(p), p)[0].shape
      (2,)

    Reference: Ivgi, Hinder, Carmon 2023, "DoG is SGD's best friend".
    """
    dtype = dtypes.dtype(param_dtype)

    def init(params: Params) -> ScaleByDistanceOverGradientsState:
        def first(p: Any) -> Any:
            return fnp.astype(fnp.multiply(reps_rel, fnp.add(1.0, norm(p))), dtype)

        return ScaleByDistanceOverGradientsState(
            tree.map(first, params),
            tree.map(lambda p: fnp.zeros((), dtype), params),
            tree.map(lambda p: fnp.array(p, dtype), params),
        )

    def update(
        updates: Updates,
        state: ScaleByDistanceOverGradientsState,
        params: Params | None = None,
    ) -> tuple[Updates, ScaleByDistanceOverGradientsState]:
        params = need_params("scale_by_distance_over_gradients", params)

        def distance(p: Any, start: Any, most: Any) -> Any:
            return fnp.maximum(most, norm(fnp.subtract(p, start)))

        def total(g: Any, s: Any) -> Any:
            return fnp.add(s, _square(g))

        def one(g: Any, most: Any, s: Any) -> Any:
            rate = fnp.divide(most, positive_root(fnp.add(s, eps)))
            return fnp.multiply(fnp.multiply(global_scale, rate), g)

        most = tree.map(distance, params, state.init_params, state.max_dist)
        sums = tree.map(total, updates, state.grads_sum_of_squares)
        out = tree.map(one, updates, most, sums)
        return out, ScaleByDistanceOverGradientsState(most, sums, state.init_params)

    return in_float32(GradientTransformation(init, update))
