"""One row of a table as a parameter of its own, and an optimizer for rows.

`by_rows` updates the rows that a step names by `updated_row`; so do parameter servers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    Scalar,
    ScalarOrSchedule,
    State,
    Updates,
    apply_updates,
    cast_like,
    in_float32,
    real_parts,
    wide_chain,
)
from fxflow.optim.moments import ScaleByRssState, root_scaled
from fxflow.optim.scaling import scale_by_learning_rate


def updated_row(
    optimizer: GradientTransformation,
    row: Any,
    state: State,
    gradient: Any,
    scale: Any = None,
) -> tuple[Any, State]:
    """Returns a row of a table and its state after an update.

    Args:
      optimizer: the optimizer.
      row: the row.
      state: its state.
      gradient: its gradient.
      scale: factor of the change of the row; None: 1.
    """
    updates, new = optimizer.update(cast_like(gradient, row), state, row)
    if scale is not None:
        updates = fnp.multiply(updates, cast_like(scale, row))
    return apply_updates(row, updates), tree.map(cast_like, new, state)


def strong(x: Any) -> Array:
    """Returns an array of the same dtype that is not weak.

    Args:
      x: array.
    """
    array = fnp.asarray(x)
    return fnp.asarray(array, array.dtype)


def sum_dtype(dtype: Any) -> np.dtype[Any]:
    """Returns the dtype in which gradients of rows are added: at least 32 bits.

    Args:
      dtype: dtype of the rows.
    """
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


# -- an optimizer for rows -------------------------------------------------------------


def rowwise_adagrad(
    learning_rate: ScalarOrSchedule,
    initial_accumulator_value: Scalar = 0.1,
    eps: Scalar = 1e-7,
) -> GradientTransformationExtraArgs:
    r"""Makes AdaGrad with one number of state for each row.

    .. math::
       s \leftarrow s + \operatorname{mean}(g^2), \quad
       p \leftarrow p - \eta g / \sqrt{s + \epsilon}

    The mean is over the last axis. The state of a table of rows of 64 numbers takes a
    64th of that of `adagrad`.

    Args:
      learning_rate: η.
      initial_accumulator_value: initial s.
      eps: ε.

    Returns:
      A transformation. Where s is 0, so is the update.

    Example:
      >>> tx = optim.rowwise_adagrad(1.0, 3.5, eps=0.0)
      >>> tx.update(fnp.array([3.0, 4.0]), tx.init(fnp.zeros(2)))[0].tolist()
      [-0.75, -1.0]

    Reference: Mudigere et al. 2022, "Software-hardware co-design for fast and scalable
    training of deep learning recommendation models".
    """
    return wide_chain(
        _scale_by_row_rss(initial_accumulator_value, eps),
        scale_by_learning_rate(learning_rate),
    )


def _scale_by_row_rss(initial: Scalar, eps: Scalar) -> GradientTransformation:
    """Makes `scale_by_rss` with the mean of squares over the last axis."""

    def mean(x: Any) -> Any:
        return fnp.mean(x, -1, keepdims=True) if typeof(x).ndim else x

    def init(params: Params) -> ScaleByRssState:
        def one(p: Any) -> Any:
            shape = typeof(p).shape
            return fnp.full((*shape[:-1], 1) if shape else (), initial, p.dtype)

        return ScaleByRssState(tree.map(one, real_parts(params)))

    def update(
        updates: Updates, state: ScaleByRssState, params: Params | None = None
    ) -> tuple[Updates, ScaleByRssState]:
        def total(g: Any, s: Any) -> Any:
            return fnp.add(mean(fnp.square(fnp.abs(g))), s)

        sums = tree.map(total, updates, state.sum_of_squares)
        out = tree.map(lambda s, g: root_scaled(s, g, eps), sums, updates)
        return out, ScaleByRssState(sums)

    return in_float32(GradientTransformation(init, update))
