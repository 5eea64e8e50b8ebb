"""GaLore: moments of gradients in a low-dimensional subspace, to save memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, typeof
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
    in_float32,
    safe_increment,
    wide_chain,
    with_extra_args_support,
    zero_count,
)
from fxflow.optim.contrib.orthogonal import MuonDimensionNumbers, sides
from fxflow.optim.moments import scale_by_adam
from fxflow.optim.scaling import add_decayed_weights, scale_by_learning_rate


class GaLoreDimensionNumbers(NamedTuple):
    """The axes of a weight that are the rows and the columns of its matrix.

    Attributes:
      reduction_axis: the axis or axes of the inputs.
      output_axis: the axis or axes of the outputs, which are all others.
    """

    reduction_axis: int | Sequence[int] = 0
    output_axis: int | Sequence[int] = 1


class GaLoreState(NamedTuple):
    """State of `scale_by_galore`: the count, the inner state, bases of subspaces.

    A basis is float[n, rank] for the longer side n of a matrix, and empty for other
    arrays.
    """

    count: Array  # type: ignore[assignment] # hides tuple.count, as in optax
    base_optimizer_state: State
    projector: Updates


class _Matrix(NamedTuple):
    """How an array is a matrix."""

    order: tuple[int, ...]
    inputs: int
    outputs: int

    @property
    def is_tall(self) -> bool:
        return self.inputs >= self.outputs


def _matrix(x: Any, numbers: Any) -> _Matrix | None:
    """Returns how an array is a matrix; None if it is not one."""
    aval = typeof(x)
    if numbers is None:
        return None
    order, inputs, outputs = sides("galore", x, MuonDimensionNumbers(*numbers))
    given = [(a,) if isinstance(a, int) else tuple(a) for a in numbers]
    if len(given[0]) + len(given[1]) != aval.ndim:
        raise ArgumentError(
            f"galore: each axis of {aval} must be a reduction or an output axis, got "
            f"{numbers}"
        )
    return _Matrix(order, inputs, outputs)


def _matrices(numbers: Any, values: Updates) -> list[_Matrix | None]:
    """Returns how each array is a matrix."""
    given = numbers(values) if callable(numbers) else numbers
    leaves = tree.leaves(values)
    own: list[Any]
    if given is None:
        own = [
            GaLoreDimensionNumbers() if typeof(leaf).ndim == 2 else None
            for leaf in leaves
        ]
    else:
        own = []

        def spread(part: Any, below: Any) -> None:
            own.extend([part] * len(tree.leaves(below)))

        tree.map(spread, given, values, is_leaf=_is_numbers)
    return [_matrix(leaf, part) for leaf, part in zip(leaves, own, strict=True)]


def _is_numbers(x: Any) -> bool:
    return x is None or isinstance(x, GaLoreDimensionNumbers)


def _flat(x: Any, m: _Matrix) -> Any:
    return fnp.reshape(fnp.transpose(x, m.order), (m.inputs, m.outputs))


def _basis(x: Any, m: _Matrix, rank: int) -> Any:
    """Returns the leading singular vectors of the longer side.

    Without derivatives, which equal singular values do not have.
    """
    g = lax.stop_gradient(_flat(x, m))
    u, _, vh = fnp.linalg.svd(g, full_matrices=False)
    return u[:, :rank] if m.is_tall else fnp.transpose(vh[:rank])


def _down(x: Any, basis: Any, m: _Matrix) -> Any:
    g = _flat(x, m)
    return fnp.matmul(fnp.transpose(basis), g) if m.is_tall else fnp.matmul(g, basis)


def _up(low: Any, basis: Any, m: _Matrix, like: Any) -> Any:
    g = fnp.matmul(basis, low) if m.is_tall else fnp.matmul(low, fnp.transpose(basis))
    shape = typeof(like).shape
    back = tuple(sorted(range(len(m.order)), key=m.order.__getitem__))
    return fnp.transpose(fnp.reshape(g, [shape[a] for a in m.order]), back)


def scale_by_galore(
    rank: int = 128,
    update_proj_gap: int = 200,
    scale: Scalar = 1.0,
    base_optimizer: GradientTransformation | None = None,
    weight_dimension_numbers: Any = None,
) -> GradientTransformationExtraArgs:
    r"""Makes a transformation that acts on gradients in low-dimensional subspaces.

    For a tall matrix with gradient G the updates are :math:`s P\, T(P^T G)`, where P
    are the leading left singular vectors of an earlier G, and T is the inner
    transformation, whose state is as small as :math:`P^T G`. For a wide matrix, P are
    right singular vectors, and it is applied from the right.

    Args:
      rank: number of singular vectors, bounded by the matrix.
      update_proj_gap: number of updates between computations of P; the inner state
        stays.
      scale: s, the factor of the updates of matrices.
      base_optimizer: the inner transformation; None means `scale_by_adam`. It does not
        get the parameters.
      weight_dimension_numbers: a pytree (or a prefix of one) of
        `GaLoreDimensionNumbers`, with None for arrays that are not matrices, or a
        function from parameters to such a pytree; None means that arrays of two axes
        are matrices.

    Returns:
      A transformation.

    Raises:
      ArgumentError: `rank` or `update_proj_gap` is below 1, or (from `init` or
        `update`) dimension numbers do not name each axis once.

    Example:
      >>> tx = optim.contrib.scale_by_galore(rank=2)
      >>> state = tx.init(fnp.zeros((100, 10)))
      >>> state.base_optimizer_state.mu.shape, state.projector.shape
      ((2, 10), (100, 2))

    Reference: Zhao et al. 2024, "GaLore: memory-efficient LLM training by gradient
    low-rank projection".
    """
    for name, value in (("rank", rank), ("update_proj_gap", update_proj_gap)):
        if value < 1:
            raise ArgumentError(
                f"scale_by_galore: {name} must be positive, got {value}"
            )
    inner = with_extra_args_support(
        scale_by_adam() if base_optimizer is None else base_optimizer
    )

    def low_like(x: Any, m: _Matrix | None) -> Any:
        if m is None:
            return x
        r = min(rank, m.inputs, m.outputs)
        shape = (r, m.outputs) if m.is_tall else (m.inputs, r)
        return fnp.zeros(shape, typeof(x).dtype)

    def empty_basis(x: Any, m: _Matrix | None) -> Any:
        if m is None:
            return fnp.zeros((0, 0), typeof(x).dtype)
        r = min(rank, m.inputs, m.outputs)
        return fnp.zeros((max(m.inputs, m.outputs), r), typeof(x).dtype)

    def init(params: Params) -> GaLoreState:
        leaves, treedef = tree.flatten(params)
        ms = _matrices(weight_dimension_numbers, params)
        lows = treedef.unflatten(map(low_like, leaves, ms))
        bases = treedef.unflatten(map(empty_basis, leaves, ms))
        return GaLoreState(zero_count(), inner.init(lows), bases)

    def update(
        updates: Updates,
        state: GaLoreState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, GaLoreState]:
        leaves, treedef = tree.flatten(updates)
        ms = _matrices(weight_dimension_numbers, updates)
        old = tree.leaves(state.projector)

        def renewed() -> list[Any]:
            return [
                b if m is None else _basis(x, m, typeof(b).shape[1])
                for x, m, b in zip(leaves, ms, old, strict=True)
            ]

        due = fnp.equal(fnp.remainder(state.count, update_proj_gap), 0)
        bases = lax.cond(due, renewed, lambda: old)
        lows = [
            x if m is None else _down(x, b, m)
            for x, m, b in zip(leaves, ms, bases, strict=True)
        ]
        steps, own = inner.update(
            treedef.unflatten(lows), state.base_optimizer_state, **extra
        )
        out = [
            u if m is None else fnp.multiply(scale, _up(u, b, m, x))
            for u, m, b, x in zip(tree.leaves(steps), ms, bases, leaves, strict=True)
        ]
        return treedef.unflatten(out), GaLoreState(
            safe_increment(state.count), own, treedef.unflatten(bases)
        )

    return in_float32(GradientTransformationExtraArgs(init, update))


def galore(
    learning_rate: ScalarOrSchedule,
    rank: int = 128,
    update_proj_gap: int = 200,
    scale: Scalar = 1.0,
    base_optimizer: GradientTransformation | None = None,
    weight_decay: Scalar = 0.0,
    mask: Mask = None,
    weight_dimension_numbers: Any = None,
) -> GradientTransformationExtraArgs:
    """Makes GaLore: Adam with moments of projected gradients.

    Args:
      learning_rate: a number or a schedule.
      rank: number of singular vectors; see `scale_by_galore`.
      update_proj_gap: number of updates between their computations.
      scale: factor of the updates of matrices.
      base_optimizer: the inner transformation; None means `scale_by_adam`.
      weight_decay: λ.
      mask: which parameters decay; see `masked`.
      weight_dimension_numbers: how arrays are matrices; see `scale_by_galore`.

    Returns:
      A transformation whose `update` needs the parameters.

    Raises:
      ArgumentError: `rank` or `update_proj_gap` is below 1.

    Example:
      >>> tx = optim.contrib.galore(0.1, rank=2)
      >>> w = fnp.ones((4, 3))
      >>> tx.update(w, tx.init(w), w)[0].shape
      (4, 3)

    Reference: Zhao et al. 2024, "GaLore: memory-efficient LLM training by gradient
    low-rank projection".
    """
    return wide_chain(
        scale_by_galore(
            rank, update_proj_gap, scale, base_optimizer, weight_dimension_numbers
        ),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )
