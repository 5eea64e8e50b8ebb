"""Optimizers by rows: a step costs by the rows that it reads, not by the table's size.

A model reads some rows of a table, `table[ids]`. The gradient with respect to these
rows says all about that of the table, which is zero elsewhere, so it is never made:

    rows = table[ids]
    value, (dense, sparse) = value_and_grad(loss, (0, 1))(params, rows, batch)
    table, state = tx.update(sparse, ids, table, state)    # tx = optim.by_rows(...)

Each row has its own state and number of updates, as on parameter servers, which use the
same function of one row (`updated_row`).

The gradients of a repeated id are added up first. No sorting is needed for that: each
position in the list of ids writes itself into one integer of its row, `place[ids] = 0,
1, 2, …`. Whatever remains there names one position for each distinct id, at which the
gradients of the id are added.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import shown
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike
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
from fxflow.transforms.vmap import vmap


class RowState(NamedTuple):
    """State of `by_rows`.

    Attributes:
      rows: the optimizer's state for each row: arrays with an axis of rows in front.
      place: int32[rows]: where a step finds repeated ids; its contents mean nothing
        between steps.
    """

    rows: Any
    place: Any


class RowUpdateFn(Protocol):
    """The type of the `update` of `by_rows`."""

    def __call__(
        self, gradients: ArrayLike, ids: ArrayLike, table: ArrayLike, state: RowState
    ) -> tuple[Array, RowState]:
        """Returns the new table and its state."""
        ...


class RowTransformation(NamedTuple):
    """A pair of pure functions that update the rows of a table.

    Attributes:
      init: `init(table) -> state`.
      update: `update(gradients, ids, table, state) -> (table, state)`.
    """

    init: Callable[[ArrayLike], RowState]
    update: RowUpdateFn


def by_rows(optimizer: GradientTransformation) -> RowTransformation:
    """Makes an optimizer of a table that reads and writes only the rows of a step.

    `sgd`, `momentum`, `adagrad`, `rowwise_adagrad`, `adam` (known as lazy Adam), `ftrl`
    and any other optimizer treat each row as a parameter of its own: it has its own
    state and number of updates, a norm is that of one row, and weight decay and
    momentum act when a step reads the row. For a row that every step reads, the result
    is that of `optimizer` on the table.

    Under `jit` with the table and the state donated, both are updated in place: the
    time depends on the number of ids, and on the table's size only in as far as it
    exceeds the processor's caches. Update in a program of its own, or look at
    `Compiled.copies()`: in the program of the loss, XLA may put off reading rows until
    they have changed, and copies the table first.

    Args:
      optimizer: an optimizer of this package.

    Returns:
      `init(table)` makes the state of a table, float[rows, ...].
      `update(gradients, ids, table, state)` returns the new table and state: `ids` are
      int[...], with repetitions, whose gradients are added up (in at least float32);
      `gradients` are floats `[*ids.shape, ...]`, with respect to `table[ids]`. Negative
      ids count from the end, and those outside of the table are left out.

    Raises:
      ArgumentError: the optimizer is not one.
      DtypeError: (from `init` and `update`) the table is not floating, or ids are not
        integers.
      ShapeError: (from `init` and `update`) the table has no axis of rows, or the
        gradients have another shape.

    Example:
      >>> tx = optim.by_rows(optim.sgd(0.5))
      >>> table = fnp.zeros((4, 2))
      >>> ids = np.array([3, 1, 3])
      >>> tx.update(np.ones((3, 2)), ids, table, tx.init(table))[0][:, 0].tolist()
      [0.0, -0.5, 0.0, -1.0]

    Reference: the sparse gradients of `torch.nn.EmbeddingBag(sparse=True)`, and
    `torch.optim.SparseAdam`.
    """
    if not (hasattr(optimizer, "init") and hasattr(optimizer, "update")):
        raise ArgumentError(
            "by_rows: expected a gradient transformation, such as optim.adagrad(0.1) "
            f"makes, got {shown(optimizer)}"
        )

    def init(table: ArrayLike) -> RowState:
        given = _table(table)

        def first(row: Any) -> Any:
            # With weak types, the state after a step would have other types.
            return tree.map(strong, optimizer.init(row))

        place = fnp.zeros(given.shape[:1], dtypes.int32)
        if not given.shape[0]:
            empty = vmap(first)(fnp.zeros((1, *given.shape[1:]), given.dtype))
            return RowState(tree.map(lambda leaf: leaf[:0], empty), place)
        return RowState(vmap(first)(given), place)

    def update(
        gradients: ArrayLike, ids: ArrayLike, table: ArrayLike, state: RowState
    ) -> tuple[Array, RowState]:
        whole = _table(table)
        listed, values = _checked(gradients, ids, whole)
        if not whole.shape[0] or not values.size:
            return whole, state
        flat, sums, place = _summed(values, listed, state.place, whole)

        def one(row: Any, own: Any, gradient: Any) -> Any:
            return updated_row(optimizer, row, own, gradient)

        held: Any = (whole, state.rows)
        old: Any = tree.map(lambda x: x.at[flat].get(mode="clip"), held)
        kept, rows = tree.map(
            lambda x, new: x.at[sums.rows].set(new, mode="drop"),
            held,
            vmap(one)(old[0], old[1], sums.values),
        )
        return kept, RowState(rows, place)

    return RowTransformation(init, update)


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


class _Sums(NamedTuple):
    """Gradients by distinct id: at one position of each; others have a row outside."""

    rows: Any
    values: Any


def _table(table: ArrayLike) -> Array:
    """Returns a table, checked."""
    given = fnp.asarray(table)
    if not dtypes.is_floating(given.dtype):
        raise DtypeError(f"by_rows: the table must be real floating, got {given.aval}")
    if not given.ndim:
        raise ShapeError(
            f"by_rows: the table must have an axis of rows, got {given.aval}"
        )
    return given


def _checked(gradients: ArrayLike, ids: ArrayLike, table: Array) -> tuple[Array, Array]:
    """Returns ids and gradients as arrays."""
    listed, values = fnp.asarray(ids), fnp.asarray(gradients)
    if not dtypes.is_integer(listed.dtype):
        raise DtypeError(f"by_rows: ids must be integers, got {listed.aval}")
    wanted = (*listed.shape, *table.shape[1:])
    if values.shape != wanted:
        raise ShapeError(
            f"by_rows: gradients must have the shape {list(wanted)} of table[ids], got "
            f"{values.aval} for ids {listed.aval} and the table {table.aval}"
        )
    return listed, values


def _summed(
    values: Array, listed: Array, place: Any, table: Array
) -> tuple[Any, _Sums, Any]:
    """Returns ids in a row, sums of their gradients, and the new `place`."""
    count, row = table.shape[0], table.shape[1:]
    number = math.prod(listed.shape)
    flat = fnp.reshape(listed, (number,))
    if flat.dtype.itemsize < 4:  # The number of rows may not fit.
        flat = flat.astype(dtypes.int32)
    flat = fnp.where(fnp.less(flat, 0), fnp.add(flat, count), flat)
    inside = fnp.logical_and(fnp.greater_equal(flat, 0), fnp.less(flat, count))
    flat = fnp.where(inside, flat, count).astype(dtypes.int32)
    order = fnp.arange(number, dtype=dtypes.int32)
    place = fnp.asarray(place).at[flat].set(order, mode="drop")
    first = place.at[flat].get(mode="fill", fill_value=number)
    wide = sum_dtype(table.dtype)
    values = fnp.reshape(values, (number, *row)).astype(wide)
    sums = fnp.zeros((number, *row), wide).at[first].add(values, mode="drop")
    rows = fnp.where(fnp.equal(first, order), flat, count)
    return flat, _Sums(rows, sums), place


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
