"""Optimizers with second moments in little memory: Adafactor and SM3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.numpy._operands import DTypeLike
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
from fxflow.optim.clipping import clip_by_block_rms
from fxflow.optim.numerics import positive_root, quotient, rest_of
from fxflow.optim.scaling import (
    add_decayed_weights,
    scale,
    scale_by_learning_rate,
    scale_by_param_block_rms,
)
from fxflow.optim.traces import ema
from fxflow.optim.tree import zeros_like


class FactoredState(NamedTuple):
    """State of `scale_by_factored_rms`.

    An array has either row and column means or all second moments; the fields that it
    does not use are arrays of one element.
    """

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    v_row: Updates
    v_col: Updates
    v: Updates


class ScaleBySM3State(NamedTuple):
    """State of `scale_by_sm3`: each array's bounds along its axes, and momentum."""

    mu: Updates
    nu: Updates


def _power_decay(step: Any, exponent: Any) -> Any:
    """Returns the paper's decay, 1 - t^-c, where t is the number of the update."""
    # At least 1: before the offset t is not positive, and its power is not finite.
    t = fnp.add(fnp.maximum(fnp.astype(step, dtypes.float32), 0.0), 1.0)
    return fnp.subtract(1.0, fnp.power(t, fnp.negative(exponent)))


def _two_largest(shape: tuple[int, ...], least: int) -> tuple[int, int] | None:
    """Returns the axes to factor, the second largest and the largest, or None."""
    if len(shape) < 2:
        return None
    *_, second, first = sorted(range(len(shape)), key=shape.__getitem__)
    return None if shape[second] < least else (second, first)


def scale_by_factored_rms(
    factored: bool = True,
    decay_rate: Scalar = 0.8,
    step_offset: int = 0,
    min_dim_size_to_factor: int = 128,
    epsilon: Scalar = 1e-30,
    decay_rate_fn: Callable[[Any, Any], Any] = _power_decay,
) -> GradientTransformation:
    r"""Makes the transformation of Adafactor: divides by estimated root mean squares.

    It keeps only the means r of the rows and c of the columns of a matrix's second
    moments; :math:`v_{ij} = r_i c_j / \bar r` is the best estimate of rank 1.

    Args:
      factored: whether to factor second moments; otherwise all are kept.
      decay_rate: the exponent of the decay, :math:`1 - t^{-0.8}`.
      step_offset: subtracted from the number of updates; before the offset, the decay
        is 0. (optax 0.2.8 gives nan.)
      min_dim_size_to_factor: an array is factored if two of its axes are at least this
        long.
      epsilon: added to squared gradients.
      decay_rate_fn: `decay_rate_fn(step, decay_rate)` returns the decay.

    Returns:
      A transformation whose state is the means.

    Example:
      >>> tx = optim.scale_by_factored_rms(min_dim_size_to_factor=2)
      >>> state = tx.init(fnp.zeros((3, 2)))
      >>> state.v_row.shape, state.v_col.shape, state.v.shape
      ((2,), (3,), (1,))

    Reference: Shazeer and Stern 2018, "Adafactor: adaptive learning rates with
    sublinear memory cost".
    """

    def axes_of(x: Any) -> tuple[int, int] | None:
        shape = typeof(x).shape
        return _two_largest(shape, min_dim_size_to_factor) if factored else None

    def init(params: Params) -> FactoredState:
        def start(param: Any) -> tuple[Any, ...]:
            aval, axes = typeof(param), axes_of(param)
            # Distinct arrays, so that a state can be donated.
            shapes: list[tuple[int, ...]] = [(1,), (1,), aval.shape]
            if axes is not None:
                shapes = [
                    tuple(n for i, n in enumerate(aval.shape) if i != axis)
                    for axis in (axes[1], axes[0])
                ]
                shapes.append((1,))
            return tuple(fnp.zeros(shape, aval.dtype) for shape in shapes)

        leaves, treedef = tree.flatten(params)
        parts = [start(param) for param in leaves]
        return FactoredState(
            zero_count(),
            *(treedef.unflatten([part[i] for part in parts]) for i in range(3)),
        )

    def update(
        updates: Updates, state: FactoredState, params: Params | None = None
    ) -> tuple[Updates, FactoredState]:
        decay = decay_rate_fn(fnp.subtract(state.count, step_offset), decay_rate)

        def mean(new: Any, old: Any) -> Any:
            kept = fnp.multiply(decay, old)
            return fnp.add(kept, fnp.multiply(fnp.subtract(1.0, decay), new))

        def one(g: Any, row: Any, col: Any, v: Any) -> tuple[Any, Any, Any, Any]:
            axes = axes_of(g)
            square = fnp.add(fnp.square(fnp.abs(g)), epsilon)
            if axes is None:
                new = mean(square, v)
                return fnp.divide(g, positive_root(new)), row, col, new
            second, first = axes
            row = mean(fnp.mean(square, first), row)
            col = mean(fnp.mean(square, second), col)
            within = second - 1 if second > first else second
            share = quotient(row, fnp.mean(row, within, keepdims=True))
            out = fnp.divide(g, fnp.expand_dims(positive_root(share), first))
            out = fnp.divide(out, fnp.expand_dims(positive_root(col), second))
            return out, row, col, v

        leaves, treedef = tree.flatten(updates)
        old = [treedef.flatten_up_to(part) for part in state[1:]]
        new = [one(g, *own) for g, *own in zip(leaves, *old)]
        out, *kept = (treedef.unflatten([part[i] for part in new]) for i in range(4))
        return out, FactoredState(safe_increment(state.count), *kept)

    return in_float32(GradientTransformation(init, update))


def adafactor(
    learning_rate: ScalarOrSchedule | None = None,
    min_dim_size_to_factor: int = 128,
    decay_rate: Scalar = 0.8,
    decay_offset: int = 0,
    multiply_by_parameter_scale: bool = True,
    clipping_threshold: Scalar | None = 1.0,
    momentum: Scalar | None = None,
    dtype_momentum: DTypeLike = dtypes.float32,
    weight_decay_rate: Scalar | None = None,
    eps: Scalar = 1e-30,
    factored: bool = True,
    weight_decay_mask: Mask = None,
) -> GradientTransformation:
    """Makes Adafactor: adaptive steps for large models, in little memory.

    Args:
      learning_rate: a number or a schedule; None means that the size of the steps
        depends only on that of the parameters.
      min_dim_size_to_factor: an array is factored if two of its axes are at least this
        long.
      decay_rate: the exponent of the decay of second moments.
      decay_offset: subtracted from the number of updates, for fine-tuning.
      multiply_by_parameter_scale: whether steps are relative to the parameters' size.
      clipping_threshold: the largest root mean square of a step; None means no bound.
      momentum: decay of the mean of the steps; None means no momentum.
      dtype_momentum: dtype of that mean.
      weight_decay_rate: λ; None means no decay.
      eps: added to squared gradients.
      factored: whether to keep only means of rows and columns.
      weight_decay_mask: which parameters decay; see `masked`.

    Returns:
      A transformation whose `update` needs the parameters.

    Example:
      >>> tx = optim.adafactor(0.5)
      >>> tx.update(fnp.ones(2), tx.init(fnp.ones(2)), fnp.ones(2))[0].tolist()
      [-0.5, -0.5]

    Reference: Shazeer and Stern 2018, "Adafactor".
    """
    parts = [
        scale_by_factored_rms(
            factored, decay_rate, decay_offset, min_dim_size_to_factor, eps
        )
    ]
    if clipping_threshold is not None:
        parts.append(clip_by_block_rms(clipping_threshold))
    if learning_rate is not None:
        parts.append(scale_by_learning_rate(learning_rate, flip_sign=False))
    if multiply_by_parameter_scale:
        parts.append(scale_by_param_block_rms())
    if momentum is not None:
        parts.append(ema(momentum, False, dtype_momentum))
    if weight_decay_rate is not None:
        parts.append(add_decayed_weights(weight_decay_rate, weight_decay_mask))
    return wide_chain(*parts, scale(-1.0))


def scale_by_sm3(
    b1: Scalar = 0.9, b2: Scalar = 1.0, eps: Scalar = 1e-8
) -> GradientTransformation:
    r"""Makes the transformation of SM3: AdaGrad with a number for each row and column.

    The smallest number of an element's row, column, … bounds its sum of squares; each
    number is the largest bound in its row, column, ….

    Args:
      b1: decay of the mean of the steps.
      b2: decay of the sums of squares; 1 means no decay.
      eps: added under the square root.

    Returns:
      A transformation whose state is these numbers and the mean.

    Example:
      >>> tx = optim.scale_by_sm3(b1=0.0, eps=0.0)
      >>> tx.update(fnp.array([3.0, -2.0]), tx.init(fnp.zeros(2)))[0].tolist()
      [1.0, -1.0]

    Reference: Anil, Gupta, Koren, Singer 2019, "Memory-efficient adaptive
    optimization".
    """

    def init(params: Params) -> ScaleBySM3State:
        def covers(param: Any) -> list[Any]:
            aval = typeof(param)
            return [fnp.zeros((n,), aval.dtype) for n in aval.shape]

        return ScaleBySM3State(tree.map(covers, params), zeros_like(params))

    def update(
        updates: Updates, state: ScaleBySM3State, params: Params | None = None
    ) -> tuple[Updates, ScaleBySM3State]:
        new_share = 1.0 if isinstance(b2, int | float) and b2 == 1 else 1.0 - b2

        def bound(g: Any, covers: list[Any]) -> Any:
            ndim = typeof(g).ndim
            least: Any = None
            for axis, cover in enumerate(covers):
                own = fnp.expand_dims(cover, [i for i in range(ndim) if i != axis])
                least = own if least is None else fnp.minimum(least, own)
            square = fnp.multiply(new_share, fnp.square(fnp.abs(g)))
            return square if least is None else fnp.add(fnp.multiply(b2, least), square)

        def cover(total: Any, axis: int) -> Any:
            others = tuple(i for i in range(typeof(total).ndim) if i != axis)
            return fnp.max(total, others)

        leaves, treedef = tree.flatten(updates)
        covers = treedef.flatten_up_to(state.mu)
        totals = [bound(g, own) for g, own in zip(leaves, covers, strict=True)]

        def step(g: Any, total: Any, mean: Any) -> Any:
            root = positive_root(fnp.add(total, eps))
            now = fnp.where(fnp.greater(total, 0), fnp.divide(g, root), 0)
            new = fnp.multiply(rest_of(b1, now), now)
            return fnp.add(new, fnp.multiply(b1, mean))

        means = treedef.flatten_up_to(state.nu)
        out = [step(*own) for own in zip(leaves, totals, means, strict=True)]
        mu = [
            [cover(total, i) for i in range(len(old))]
            for total, old in zip(totals, covers, strict=True)
        ]
        nu = treedef.unflatten(out)
        return nu, ScaleBySM3State(treedef.unflatten(mu), nu)

    return in_float32(GradientTransformation(init, update))


def sm3(
    learning_rate: ScalarOrSchedule, momentum: Scalar = 0.9
) -> GradientTransformation:
    """Makes SM3, AdaGrad in little memory.

    Args:
      learning_rate: the size of steps: a number or a schedule.
      momentum: decay of the mean of the steps.

    Returns:
      A transformation.

    Example:
      >>> tx = optim.sm3(0.5, momentum=0.0)
      >>> u, _ = tx.update(fnp.array([3.0]), tx.init(fnp.zeros(1)))
      >>> round(float(u[0]), 5)
      -0.5

    Reference: Anil, Gupta, Koren, Singer 2019, "Memory-efficient adaptive
    optimization".
    """
    return wide_chain(scale_by_sm3(momentum), scale_by_learning_rate(learning_rate))
