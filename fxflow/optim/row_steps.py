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
gradients of the id are added. In compiled steps of large tables on CPUs, a kernel does
that with a small hash table, and visits each distinct row once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import shown
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.kernels.gallery.rows import update_rows
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.base import GradientTransformation
from fxflow.optim.rows import strong, sum_dtype, updated_row
from fxflow.transforms.vmap import vmap

#: Numbers in the gradients for which a kernel is worth compiling, and the bytes of a
#: table, whose memory a kernel takes only if it is large.
_LEAST, _LEAST_BYTES = 1 << 14, 1 << 20


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
        held, structure = tree.flatten((whole, state.rows))
        flat = _inside(listed, whole.shape[0])
        values = fnp.reshape(values, (flat.shape[0], *whole.shape[1:]))
        values = values.astype(sum_dtype(whole.dtype))

        def one(rows: Any, gradient: Any) -> list[Any]:
            row, own = tree.unflatten(structure, list(rows))
            return tree.leaves(updated_row(optimizer, row, own, gradient))

        def plain(ids: Any, values: Any, place: Any, *held: Any) -> list[Any]:
            old = [x.at[ids].get(mode="clip") for x in held]
            rows, sums, place = _summed(values, ids, place, whole.shape[0])
            new = vmap(one)(old, sums)
            pairs = zip(held, new, strict=True)
            return [place, *(x.at[rows].set(y, mode="drop") for x, y in pairs)]

        place = fnp.asarray(state.place)
        if _is_for_kernel(flat, values, whole):
            found = update_rows(one, flat, values, place, held, reference=plain)
        else:
            found = plain(flat, values, place, *held)
        kept, rows = tree.unflatten(structure, found[1:])
        return kept, RowState(rows, found[0])

    return RowTransformation(init, update)


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


def _inside(listed: Array, count: int) -> Array:
    """Returns ids in a row as int32: from 0, and `count` for those outside."""
    flat = fnp.reshape(listed, (math.prod(listed.shape),))
    if flat.dtype.itemsize < 4:  # The number of rows may not fit.
        flat = flat.astype(dtypes.int32)
    flat = fnp.where(fnp.less(flat, 0), fnp.add(flat, count), flat)
    inside = fnp.logical_and(fnp.greater_equal(flat, 0), fnp.less(flat, count))
    return fnp.where(inside, flat, count).astype(dtypes.int32)


def _is_for_kernel(flat: Array, values: Array, table: Array) -> bool:
    """Returns whether a kernel is worth compiling, and can work in place."""
    traced = isinstance(flat, Tracer) or isinstance(table, Tracer)
    return traced and values.size >= _LEAST and table.nbytes >= _LEAST_BYTES


def _summed(
    values: Array, flat: Array, place: Array, count: int
) -> tuple[Array, Array, Array]:
    """Returns distinct ids at one position of each, their sums, and the new `place`.

    The other positions have the id `count`.
    """
    order = fnp.arange(flat.shape[0], dtype=dtypes.int32)
    place = place.at[flat].set(order, mode="drop")
    first = place.at[flat].get(mode="fill", fill_value=flat.shape[0])
    sums = fnp.zeros_like(values).at[first].add(values, mode="drop")
    return fnp.where(fnp.equal(first, order), flat, count), sums, place
