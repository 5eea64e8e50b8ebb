"""Optimizers that minimize a regularized sum of all gradients so far: FTRL."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.optim.base import (
    GradientTransformation,
    Params,
    Rate,
    Scalar,
    Updates,
    in_float32,
    need_params,
)


class FtrlState(NamedTuple):
    """State of `ftrl`.

    Attributes:
      linear: z, the linear part of the objective.
      sum_of_squares: n, sums of squared gradients.
    """

    linear: Updates
    sum_of_squares: Updates


def ftrl(
    learning_rate: Rate,
    l1: Scalar = 0.0,
    l2: Scalar = 0.0,
    beta: Scalar = 1.0,
    initial_accumulator_value: Scalar = 0.0,
) -> GradientTransformation:
    r"""Makes FTRL-Proximal: parameters that are exactly 0 until they matter.

    .. math::
       z \leftarrow z + g - \frac{\sqrt{n + g^2} - \sqrt n}{\eta} p, \quad
       n \leftarrow n + g^2, \quad
       p \leftarrow \begin{cases} 0 & |z| \le \lambda_1 \\
       -\frac{z - \operatorname{sign}(z) \lambda_1}{(\beta + \sqrt n) / \eta +
       \lambda_2} & \text{otherwise} \end{cases}

    For `λ₁ = λ₂ = 0`, a step is `p - η g / (β + √n)`. The initial z is that of the
    initial parameters, which need not be 0.

    Args:
      learning_rate: η; not a schedule.
      l1: λ₁, which makes parameters 0.
      l2: λ₂.
      beta: β.
      initial_accumulator_value: initial n.

    Returns:
      A transformation whose `update` needs the parameters.

    Raises:
      ArgumentError: the learning rate is a schedule.

    Example:
      >>> tx = optim.ftrl(0.5, l1=1.0)
      >>> params = fnp.zeros(2)
      >>> tx.update(fnp.array([3.0, 0.5]), tx.init(params), params)[0].tolist()
      [-0.25, 0.0]

    Reference: McMahan et al. 2013, "Ad click prediction: a view from the trenches".
    """

    def strength(n: Any) -> Any:
        root = fnp.add(fnp.sqrt(n), beta)
        return fnp.add(fnp.divide(root, learning_rate), l2)

    def init(params: Params) -> FtrlState:
        def squares(p: Any) -> Any:
            return fnp.full_like(p, initial_accumulator_value)

        def linear(p: Any, n: Any) -> Any:
            pull = fnp.multiply(p, strength(n))
            return fnp.negative(fnp.add(pull, fnp.multiply(fnp.sign(p), l1)))

        sums = tree.map(squares, params)
        return FtrlState(tree.map(linear, params, sums), sums)

    def update(
        updates: Updates, state: FtrlState, params: Params | None = None
    ) -> tuple[Updates, FtrlState]:
        params = need_params("ftrl", params)
        sums = tree.map(
            lambda g, n: fnp.add(n, fnp.square(g)), updates, state.sum_of_squares
        )

        def line(g: Any, z: Any, n: Any, before: Any, p: Any) -> Any:
            grown = fnp.subtract(fnp.sqrt(n), fnp.sqrt(before))
            pull = fnp.multiply(fnp.divide(grown, learning_rate), p)
            return fnp.subtract(fnp.add(z, g), pull)

        linear = tree.map(
            line, updates, state.linear, sums, state.sum_of_squares, params
        )

        def change(z: Any, n: Any, p: Any) -> Any:
            over = fnp.subtract(fnp.abs(z), l1)
            best = fnp.divide(fnp.multiply(fnp.sign(z), over), strength(n))
            best = fnp.where(fnp.greater(over, 0), fnp.negative(best), 0)
            return fnp.subtract(best, p)

        return tree.map(change, linear, sums, params), FtrlState(linear, sums)

    return in_float32(GradientTransformation(init, update))
