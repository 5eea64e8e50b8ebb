"""Adan: Adam with Nesterov's momentum of the gradients' changes."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.optim.base import (
    GradientTransformation,
    Mask,
    Params,
    Scalar,
    ScalarOrSchedule,
    Updates,
    in_float32,
    safe_increment,
    wide_chain,
    zero_count,
)
from fxflow.optim.numerics import positive_root, rest_of
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate
from fxflow.optim.tree import bias_correction, update_moment, zeros_like


class ScaleByAdanState(NamedTuple):
    """State of `scale_by_adan`.

    Attributes:
      m: mean gradients.
      v: mean changes of the gradients.
      n: mean squares.
      g: the previous gradients.
      t: number of updates, int32[].
    """

    m: Updates
    v: Updates
    n: Updates
    g: Updates
    t: Array


def scale_by_adan(
    b1: Scalar = 0.98,
    b2: Scalar = 0.92,
    b3: Scalar = 0.99,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 0.0,
) -> GradientTransformation:
    r"""Makes the transformation of Adan.

    With the change :math:`d = g_t - g_{t-1}` (0 at first) and bias-corrected means:

    .. math:: m \leftarrow (1-\beta_1) g + \beta_1 m, \quad
       v \leftarrow (1-\beta_2) d + \beta_2 v, \quad
       n \leftarrow (1-\beta_3) (g + (1-\beta_2) d)^2 + \beta_3 n, \quad
       u = \frac{m + (1-\beta_2) v}{\sqrt{n + \bar\epsilon} + \epsilon}

    The factor of the changes is :math:`1-\beta_2` as in optax; the authors' code has
    β₂.

    Args:
      b1: β₁, decay of the mean gradients.
      b2: β₂, decay of the mean changes.
      b3: β₃, decay of the mean squares.
      eps: ε.
      eps_root: ε̄.

    Returns:
      A transformation whose state is the means and the previous gradients.

    Example:
      >>> tx = optim.scale_by_adan(eps=0.0)
      >>> u, _ = tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))
      >>> [round(x, 5) for x in u.tolist()]
      [1.0, -1.0]

    Reference: Xie, Zhou, Li, Lin, Yan 2022, "Adan: adaptive Nesterov momentum
    algorithm for faster optimizing deep models".
    """

    def init(params: Params) -> ScaleByAdanState:
        m, v, n, g = (zeros_like(params) for _ in range(4))
        return ScaleByAdanState(m, v, n, g, zero_count())

    def update(
        updates: Updates, state: ScaleByAdanState, params: Params | None = None
    ) -> tuple[Updates, ScaleByAdanState]:
        first = fnp.equal(state.t, 0)
        t = safe_increment(state.t)
        change = tree.map(
            lambda g, old: fnp.where(first, 0, fnp.subtract(g, old)), updates, state.g
        )
        ahead = tree.map(
            lambda g, d: fnp.add(g, fnp.multiply(rest_of(b2, d), d)), updates, change
        )
        means = (
            update_moment(updates, state.m, b1, 1),
            update_moment(change, state.v, b2, 1),
            update_moment(ahead, state.n, b3, 2),
        )
        weighed = [bias_correction(x, b, t) for x, b in zip(means, (b1, b2, b3))]

        def one(m: Any, v: Any, n: Any) -> Any:
            root = fnp.add(positive_root(fnp.add(n, eps_root)), eps)
            return fnp.divide(fnp.add(m, fnp.multiply(rest_of(b2, v), v)), root)

        return tree.map(one, *weighed), ScaleByAdanState(*means, updates, t)

    return in_float32(GradientTransformation(init, update))


def adan(
    learning_rate: ScalarOrSchedule,
    b1: Scalar = 0.98,
    b2: Scalar = 0.92,
    b3: Scalar = 0.99,
    eps: Scalar = 1e-8,
    eps_root: Scalar = 1e-8,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
) -> GradientTransformation:
    """Makes Adan.

    Args:
      learning_rate: a number or a schedule.
      b1: decay of the mean gradients.
      b2: decay of the mean changes of the gradients.
      b3: decay of the mean squares.
      eps: added to the square root.
      eps_root: added under the square root.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.adan(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].shape
      (2,)

    Reference: Xie, Zhou, Li, Lin, Yan 2022, "Adan".
    """
    return wide_chain(
        scale_by_adan(b1, b2, b3, eps, eps_root),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )
