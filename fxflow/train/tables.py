"""Training with tables of embeddings: in one compiled program, or on servers.

A model with tables is a function `loss(params, rows, batch)`. A step names ids by
table, and `rows` has the rows of these ids. Where the tables are does not concern it:

    trainer = table_trainer(loss, optim.adam(1e-3), tables)
    trainer = table_trainer(loss, optim.adam(1e-3), tables, consistency=asynchronous())

The first one holds them in the state of this process, in arrays that a step updates in
place; the second one is a worker of a `parameter_server`. Both create and update rows
by the same functions.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, as_array, dtypes
from fxflow.core.boundary import require_callable
from fxflow.core.ir.trace import Tracer
from fxflow.distributed.parameter_server.consistency import Consistency
from fxflow.distributed.parameter_server.tables.spec import TableSpec, row_functions
from fxflow.distributed.parameter_server.worker.training import (
    NON_FINITE,
    ParameterServer,
    parameter_server,
)
from fxflow.distributed.zero import StepMetrics
from fxflow.errors import ArgumentError, NonFiniteError
from fxflow.lax.kernels.pages import is_huge, room
from fxflow.optim.base import apply_updates
from fxflow.optim.numerics import all_finite
from fxflow.optim.row_steps import RowState, RowTransformation, by_rows
from fxflow.transforms.grad import value_and_grad
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.jit import jit

#: Number of rows that are created together.
_BLOCK = 8192


class TrainerState(NamedTuple):
    """The state of a `TableTrainer`: a pytree of arrays, which checkpoints can hold.

    Attributes:
      params: the dense parameters.
      opt_state: their optimizer's state.
      tables: by name, the rows of a table and their `optim.RowState`.
    """

    params: Any
    opt_state: Any
    tables: dict[str, tuple[Any, RowState]]


class TableTrainer:
    """Functions of a `TrainerState`. Made by `table_trainer`.

    They are those of a `ParameterServer`, whose state has no tables. A step consumes
    its state: the arrays of the tables are updated in place.
    """

    def __init__(
        self,
        loss_fn: Callable[..., Any],
        optimizer: Any,
        tables: Sequence[TableSpec],
        *,
        has_aux: bool,
        non_finite: str,
    ) -> None:
        self._loss_fn, self._optimizer, self._has_aux = loss_fn, optimizer, has_aux
        self._non_finite = non_finite
        self._specs = {spec.name: spec for spec in tables}
        #: The arrays of tables that this trainer has made and that still exist.
        self._own: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._by_rows = {
            spec.name: by_rows(spec.optimizer)
            for spec in tables
            if spec.optimizer is not None  # `table_trainer` has checked that
        }

    def __repr__(self) -> str:
        return f"<trainer of the tables {sorted(self._specs)}>"

    def init(self, params: Any) -> TrainerState:
        """Returns the first state, with all rows of all tables.

        Args:
          params: pytree of the dense parameters.
        """
        params = tree.map(as_array, params)
        tables = {}
        for name, spec in self._specs.items():
            make = functools.partial(_first_rows, spec, self._by_rows[name])
            tables[name] = jit(make)()
        self._note(tables)
        # A step donates its state, and these arrays are the caller's.
        params = tree.map(fnp.copy, params)
        return TrainerState(params, jit(self._optimizer.init)(params), tables)

    def step(
        self,
        state: TrainerState,
        batch: Any,
        *shared: Any,
        ids: Mapping[str, Any] | None = None,
    ) -> tuple[TrainerState, StepMetrics]:
        """Makes one training step.

        Its time depends on the number of ids, not on the sizes of the tables.

        Args:
          state: a result of `init` or `step`; its arrays are deleted, since the next
            state has their memory.
          batch: the batch, for the loss function.
          *shared: more arguments of the loss function, such as a random key.
          ids: for each table, the ids of the rows that the loss function gets:
            integers, of any shape. Rows of a repeated id get the sum of its gradients.

        Returns:
          The next state, and loss and aux of the batch before the update.

        Raises:
          NonFiniteError: the gradient is not finite, with `non_finite="reject"`; the
            state can be used again.
          ArgumentError: a table is missing or unknown, ids are not integers, or the
            step is traced with `non_finite="reject"`.
          OutOfRangeError: an id is negative, or at least the number of rows. Under
            `jit`, the loss function gets nan.
        """
        named = self._checked(ids or {}, every=True)
        loss, aux, gradients, finite = self._gradient(state, named, batch, shared)
        if self._non_finite == "reject":
            if isinstance(finite, Tracer):
                raise ArgumentError(
                    "table_trainer: under jit, a step cannot raise an error for a "
                    "gradient that is not finite: pass non_finite='skip' or 'apply'"
                )
            if not bool(finite):
                raise NonFiniteError(
                    f"table_trainer: the gradient is not finite (loss {float(loss):g})"
                    "; the step was not made. non_finite='skip' leaves such steps out"
                )
        flag = finite if self._non_finite == "skip" else None
        state = state._replace(tables=tree.map(self._placed, state.tables))
        state = self._update(state, named, gradients, flag)
        self._note(state.tables)
        return state, StepMetrics(loss, aux)

    def _note(self, tables: Any) -> None:
        """Notes that this trainer has made the arrays of tables."""
        for leaf in tree.leaves(tables):
            self._own[id(leaf)] = leaf

    def _placed(self, array: Any) -> Any:
        """Returns an array of a table in huge pages, if that is where it should be.

        The arrays of a checkpoint are NumPy's, which an update cannot overwrite: it
        would copy them to pages of 4 KiB. An array that is copied here is deleted.
        """
        known = isinstance(array, Tracer) or self._own.get(id(array)) is array
        if known or not is_huge(Aval(array.shape, array.dtype)):
            return array
        if isinstance(array, Array) and len(array.devices()) > 1:
            return array
        moved = _moved(array)
        if isinstance(array, Array):
            array.delete()
        return moved

    def rows(self, ids: Mapping[str, Any], state: TrainerState) -> dict[str, Any]:
        """Returns rows of tables.

        Args:
          ids: integers of any shape, by table; other tables are not read.
          state: a result of `init` or `step`.

        Returns:
          Arrays with the shape of the ids followed by that of a row, by table.

        Raises:
          ArgumentError: a table is unknown, or ids are not integers.
          OutOfRangeError: an id is negative, or at least the number of rows.
        """
        found: dict[str, Any] = self._read(
            state.tables, self._checked(ids, every=False)
        )
        return found

    def params(self, state: TrainerState) -> Any:
        """Returns the dense parameters.

        Args:
          state: a result of `init` or `step`.
        """
        return state.params

    def close(self) -> None:
        """Does nothing; a `ParameterServer` leaves its run."""

    # -- programs ----------------------------------------------------------------------

    def _checked(self, ids: Mapping[str, Any], every: bool) -> dict[str, Any]:
        """Returns ids as int32."""
        unknown = set(ids) - set(self._specs)
        if unknown or (every and len(ids) < len(self._specs)):
            raise ArgumentError(
                f"table_trainer: ids must name the tables {sorted(self._specs)}, got "
                f"{sorted(ids)}"
            )
        found = {}
        for name, given in ids.items():
            if not isinstance(given, Tracer):
                given = np.asarray(given)
            if given.size and not dtypes.is_integer(given.dtype):
                raise ArgumentError(
                    f"table_trainer: table {name!r}: ids must be integers, got "
                    f"{dtypes.short_name(given.dtype)}"
                )
            if isinstance(given, np.ndarray) and given.size:
                self._specs[name].check_ids(given.min(), given.max(), "table_trainer")
            found[name] = given.astype(np.int32)
        return found

    @functools.cached_property
    def _read(self) -> Any:
        return jit(_rows_of)

    # The gradient and the update are two programs. In one, XLA may read the rows again
    # for the loss after the update has changed them, so it would copy the table.

    @functools.cached_property
    def _gradient(self) -> Any:
        """From (state, ids, batch, shared) to a step's results.

        These are loss and aux, both gradients, and whether these are finite.
        """

        def gradient(state: TrainerState, ids: Any, batch: Any, shared: Any) -> Any:
            def loss(params: Any, rows: Any) -> Any:
                return self._loss_fn(params, rows, batch, *shared)

            function = value_and_grad(loss, (0, 1), has_aux=self._has_aux)
            result, gradients = function(state.params, _rows_of(state.tables, ids))
            result = result if self._has_aux else (result, None)
            return *result, gradients, all_finite(gradients)

        return jit(gradient)

    @functools.cached_property
    def _update(self) -> Any:
        """From (state, ids, gradients, finite) to the next state, which may be equal.

        It is if `finite` is false; None: the gradients need not be finite.
        """

        def update(state: TrainerState, ids: Any, gradients: Any, finite: Any) -> Any:
            dense, sparse = gradients
            old = state.params, state.opt_state
            updates, opt_state = self._optimizer.update(dense, old[1], old[0])
            new = apply_updates(old[0], updates), opt_state
            if finite is not None:
                new = tree.map(lambda n, o: fnp.where(finite, n, o), new, old)
            tables = {}
            for name, (table, own) in state.tables.items():
                which = ids[name]
                if finite is not None:
                    which = fnp.where(finite, which, table.shape[0])
                one = self._by_rows[name].update
                tables[name] = one(sparse[name], which, table, own)
            return TrainerState(*new, tables)

        return jit(update, donate_argnums=0)


def _rows_of(tables: Any, ids: Any) -> dict[str, Array]:
    """Returns the rows of ids, by table."""
    return {
        name: tables[name][0].at[which].get(mode="fill", fill_value=np.nan)
        for name, which in ids.items()
    }


def _first_rows(spec: TableSpec, optimizer: RowTransformation) -> Any:
    """Returns the initial rows of a table, and their `RowState`."""
    assert spec.rows is not None
    create, count = row_functions(spec).init, spec.rows

    def block(start: Any, size: int) -> Any:
        low = fnp.add(start, fnp.arange(size, dtype=dtypes.int32))
        low = low.astype(dtypes.uint32)
        rows = create(fnp.stack([fnp.zeros_like(low), low], -1))[0]
        return rows, optimizer.init(rows)

    return _written(count, block)


@jit
def _moved(array: Array) -> Any:
    """Returns a copy of an array in huge pages, if there are any."""

    def block(start: Any, size: int) -> Any:
        return lax.dynamic_slice_in_dim(array, start, size, 0)

    return _written(len(array), block)


def _written(count: int, block: Callable[[Any, int], Any]) -> Any:
    """Returns arrays of `count` rows in huge pages, if there are any.

    Args:
      count: number of rows.
      block: `block(start, size)` returns a pytree of the arrays' rows from `start`.
    """
    size = min(_BLOCK, count)

    def some(i: Any, held: Any) -> Any:
        start = fnp.minimum(i * size, count - size)

        def put(whole: Any, part: Any) -> Any:
            return lax.dynamic_update_slice_in_dim(whole, part, start, 0)

        return tree.map(put, held, block(start, size))

    one = eval_shape(lambda: block(np.int32(0), size))
    avals = [Aval((count, *x.shape[1:]), x.dtype) for x in tree.leaves(one)]
    empty = [room(aval, number) for number, aval in enumerate(avals)]
    start = tree.unflatten(tree.structure(one), empty)
    return lax.fori_loop(0, -(-count // size), some, start)


def table_trainer(
    loss_fn: Callable[..., Any],
    optimizer: Any,
    tables: Sequence[TableSpec],
    *,
    consistency: Consistency | None = None,
    has_aux: bool = False,
    non_finite: Literal["reject", "skip", "apply"] = "reject",
    **servers: Any,
) -> TableTrainer | ParameterServer:
    """Returns a trainer of a model with tables of embeddings, here or on servers.

    Without `consistency`, this process holds the tables as arrays of all their rows. A
    step reads and writes only the rows that its ids name, in place: it takes a network
    about as long with 10 million rows as with 100,000. With `consistency`, the same
    model trains on the servers of a `parameter_server`. Both have the same
    methods, `init`, `step(state, batch, ids=...)`, `params`, `rows(ids, state)` and
    `close`; one worker gets the same rows from both, up to rounding.

    Args:
      loss_fn: `loss_fn(params, rows, batch, *shared) -> loss`, or `(loss, aux)`: `rows`
        has, by table, the rows of the ids of the step, `float[*ids.shape, *row]`.
      optimizer: an optimizer of the dense parameters.
      tables: tables of embeddings. Without servers, each needs the number of its rows
        (`TableSpec(rows=)`), and has no rows on disk.
      consistency: None: one process; else the consistency of workers, such as
        `asynchronous()`.
      has_aux: whether `loss_fn` returns `(loss, aux)`.
      non_finite: what to do with a gradient that has inf or nan: "reject" raises an
        error, "skip" leaves the step out, "apply" makes it. In one process, steps
        with the latter two do not wait for the gradient, and run under `jit`, too.
      **servers: other arguments of `parameter_server`, such as `cluster`.

    Returns:
      A `TableTrainer`, or a `ParameterServer`.

    Raises:
      ArgumentError: an option is not among those above, two tables have the same name,
        or a table without servers has no number of rows or a folder.

    Example:
      >>> from fxflow.distributed.parameter_server import TableSpec
      >>> words = TableSpec("words", 4, optim.adagrad(0.1), rows=1000)
      >>> def loss(w, rows, y):
      ...     return fnp.mean((fnp.sum(rows["words"], 1) @ w - y) ** 2)
      >>> trainer = train.table_trainer(loss, optim.sgd(0.1), [words])
      >>> state = trainer.init(fnp.ones(4))
      >>> ids = {"words": np.array([[3, 7, 7], [999, 3, 0]])}
      >>> for _ in range(50):
      ...     state, metrics = trainer.step(state, np.array([1.0, -1.0]), ids=ids)
      >>> bool(metrics.loss < 1e-3)
      True
    """
    require_callable(loss_fn, "table_trainer")
    if consistency is not None:
        return parameter_server(
            loss_fn,
            optimizer,
            consistency=consistency,
            has_aux=has_aux,
            non_finite=non_finite,
            tables=tables,
            **servers,
        )
    if servers:
        raise ArgumentError(
            f"table_trainer: {sorted(servers)} are for servers: pass consistency= too"
        )
    if non_finite not in NON_FINITE:
        raise ArgumentError(
            f"table_trainer: non_finite must be one of {list(NON_FINITE)}, got "
            f"{non_finite!r}"
        )
    names = [spec.name for spec in tables]
    if len(set(names)) < len(names):
        raise ArgumentError(f"table_trainer: two tables have the same name: {names}")
    for spec in tables:
        if spec.optimizer is None:
            raise ArgumentError(
                f"table_trainer: {spec}: give it an optimizer, such as "
                "optim.adagrad(0.1)"
            )
        if spec.rows is None or spec.rows_in_memory is not None:
            raise ArgumentError(
                f"table_trainer: {spec}: one process holds all rows in memory: give "
                "rows=, and not rows_in_memory=; servers (consistency=) create rows "
                "when they are used, and keep them on disk"
            )
        if spec.expire_after is not None or spec.admit_after > 1:
            raise ArgumentError(
                f"table_trainer: {spec}: in one process all rows exist from the start: "
                "expire_after and admit_after are for servers (consistency=)"
            )
        if spec.stored != "exact":
            raise ArgumentError(
                f"table_trainer: {spec}: one process stores rows as they are: "
                f"stored={spec.stored!r} is for servers (consistency=)"
            )
    return TableTrainer(
        loss_fn, optimizer, tables, has_aux=has_aux, non_finite=non_finite
    )
