"""A worker's training step: workers compute gradients, servers make the updates."""

from __future__ import annotations

import dataclasses
import functools
import os
import secrets
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow import optim
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, as_array, dtypes
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.core.boundary import require_callable
from fxflow.distributed.compression import Code
from fxflow.distributed.parameter_server.consistency import Consistency
from fxflow.distributed.parameter_server.filters import (
    Filter,
    coded_types,
    filter_of,
    pull_filter_of,
)
from fxflow.distributed.parameter_server.model import Model, make_model
from fxflow.distributed.parameter_server.monitor import trace
from fxflow.distributed.parameter_server.placement import (
    PlacementPlan,
    place,
    tensors_of,
)
from fxflow.distributed.parameter_server.running import Cluster, cluster_of, connect
from fxflow.distributed.parameter_server.tables.cache import Gathered, WorkerTables
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.worker import saving, snapshots
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.distributed.parameter_server.worker.pieces import (
    Cutter,
    ParameterShape,
    recut,
)
from fxflow.distributed.parameter_server.worker.tickets import Pulled, Ticket
from fxflow.distributed.parameter_server.worker.traffic import TrafficReport
from fxflow.distributed.program_text import adopted
from fxflow.distributed.zero import StepMetrics
from fxflow.errors import ArgumentError, DtypeError, NonFiniteError
from fxflow.optim.numerics import all_finite
from fxflow.transforms.grad import value_and_grad
from fxflow.transforms.jit import jit

NON_FINITE = ("reject", "skip", "apply")
REJECTED = ("error", "skip")
_NOT_BEGUN = "parameter_server: call init(params) first"


class WorkerState(NamedTuple):
    """The state that one step of a worker passes to the next.

    Attributes:
      number: number of the step. A state is used once, as the parameters are on the
        servers.
      own: if workers make local steps: their parameters, their optimizer's state, and
        the servers' parameters that they started from; else None.
      residual: what the filter has not sent so far.
    """

    number: int
    own: Any
    residual: Any


@dataclasses.dataclass
class _Run:
    """What `init` has begun: the connection, and the last step with its pull."""

    client: WorkerClient
    finish: Callable[[], None]
    shape: ParameterShape
    models: list[Model]
    number: int = 0
    ticket: Ticket | None = None


class ParameterServer:
    """Functions of a worker's state. Made by `parameter_server`.

    Every worker of a cluster makes one and calls the same functions with its own
    batches, at its own pace. The state has only numbers and residuals: the servers hold
    the parameters and the optimizer's state.
    """

    def __init__(
        self,
        loss_fn: Callable[..., Any],
        optimizer: Any,
        *,
        consistency: Consistency,
        cluster: Cluster | None,
        code: Filter,
        pull: Filter,
        has_aux: bool,
        non_finite: str,
        deadline: float,
        tables: Sequence[TableSpec],
        row_staleness: int,
        rejected: str = "error",
    ) -> None:
        if rejected not in REJECTED:
            raise ArgumentError(
                "parameter_server: rejected must be one of "
                f"{', '.join(map(repr, REJECTED))}, got {rejected!r}"
            )
        if non_finite not in NON_FINITE:
            raise ArgumentError(
                "parameter_server: non_finite must be one of "
                f"{', '.join(map(repr, NON_FINITE))}, got {non_finite!r}"
            )
        if tables and consistency.pushes == "changes":
            raise ArgumentError(
                f"parameter_server: with {consistency} workers make local steps, but "
                "rows of tables are updated by servers only"
            )
        self.consistency = consistency
        self._tables = WorkerTables(tables, bound=row_staleness)
        self._loss_fn, self._optimizer, self._has_aux = loss_fn, optimizer, has_aux
        self._code, self._pull, self._non_finite = code, pull, non_finite
        self._cluster, self._deadline = cluster, deadline
        self._skips_rejected = rejected == "skip"
        self._begun: _Run | None = None
        #: What the programs are compiled for: tree, plan and types of the parameters.
        self._structure: tuple[Any, ...] = ()
        #: Number of steps with a gradient that was not finite.
        self.non_finite: int = 0
        #: Number of these that were skipped.
        self.skipped: int = 0

    def __repr__(self) -> str:
        optimizer = type(self._optimizer).__name__
        return f"<parameter server of {optimizer}, {self.consistency}>"

    # -- public ------------------------------------------------------------------------

    def init(self, params: Any, snapshot: Any = None) -> WorkerState:
        """Joins the run: all workers start from the first worker's parameters.

        An evaluator does not join: it waits until the run has begun, checks that it has
        the same model, and may start and exit at any time.

        Args:
          params: pytree of floating or complex arrays.
          snapshot: a result of `snapshot`, to start from its parameters (`params` then
            gives their structure), optimizer state and rows. All workers must have the
            same; one of them sends the rows of tables, part by part, and another
            continues if it dies. Rows in files (`snapshot(folder)`,
            `checkpoint.restore(mmap=True)`) are never in memory as a whole.

        Returns:
          The state for the first step.

        Raises:
          DistributedError: a server does not answer in time, or trains another model.
          DtypeError: a parameter has an integer or boolean dtype.
          ArgumentError: a group of the filter has no parameter; the snapshot has other
            parameters or another optimizer; or it has another number of servers and an
            optimizer state that is not by rows and cannot be divided again.
        """
        self.close()
        if snapshot is not None:
            params = snapshots.params_of(snapshot, params)
        params = tree.map(as_array, params)
        _require_trainable(params)
        client, finish = connect(self._cluster, self._deadline)
        client.skips_rejected = self._skips_rejected
        weakref.finalize(self, finish)
        shards = len(client.view.holders)
        plan = place(tensors_of(params), shards)
        if shards != len(client.view.addresses):
            plan = dataclasses.replace(plan, noun="shard")
        self._code.check([tensor.name for tensor in plan.tensors])
        shape = ParameterShape(tree.structure(params), Cutter(plan), [], self._pull)
        parts = shape.parts(params)
        types = [
            {name: ShapeDtypeStruct(x.shape, x.dtype) for name, x in part.items()}
            for part in parts
        ]
        structure = shape.treedef, plan, types
        if structure != self._structure:
            self._structure = structure
            for program in ("_whole", "_gradient", "_change"):
                self.__dict__.pop(program, None)
        models = [
            make_model(
                list(like),
                list(like.values()),
                self._optimizer,
                self.consistency,
                code=self._code,
                pull=self._pull,
                tables=list(self._tables.specs.values()),
            )
            for like in types
        ]
        shape = shape._replace(types=types)
        run = self._begun = _Run(client, finish, shape, models)
        if not self._joins:
            snapshots.require_model(client, models)
            return WorkerState(0, None, None)
        given = None
        if snapshot is not None:
            servers = self._servers_of(snapshot, params)
            given = snapshots.beginnings(snapshot, servers, models)
        ticket = client.begin(models, [list(p.values()) for p in parts], given)
        residual = [self._code.init(values) for values in parts]
        own = None
        # Wait here, so that `init` raises an error in the model.
        pulled = client.wait(ticket, report=True)
        if self.consistency.pushes == "changes":
            start = self._joined(pulled)
            own = start, jit(self._optimizer.init)(start), start
        run.ticket = ticket
        return WorkerState(0, own, residual)

    def _servers_of(self, snapshot: Any, params: Any) -> Any:
        """Returns the optimizer's state for each of the current servers."""
        servers, cutter = snapshot["servers"], self._run.shape.cutter
        if len(servers) == len(cutter.names):
            return servers
        changes = self.consistency.pushes == "changes"
        init = (lambda pieces: ()) if changes else self._optimizer.init
        tensors = tensors_of(params)
        types = [ShapeDtypeStruct(x.shape, x.dtype) for x in tree.leaves(params)]
        named = {t.name: like for t, like in zip(tensors, types, strict=True)}
        before = Cutter(place(tensors, len(servers)))
        return recut(servers, init, before, cutter, named)

    def step(
        self,
        state: WorkerState,
        batch: Any,
        *shared: Any,
        ids: Mapping[str, Any] | None = None,
    ) -> tuple[WorkerState, StepMetrics]:
        """Makes one training step: waits for parameters, pushes a gradient.

        Args:
          state: a result of `init` or `step`.
          batch: this worker's batch, for the loss function.
          *shared: more arguments of the loss function, such as a random key.
          ids: for each table, the ids of the rows that the loss function gets:
            integers, of any shape.

        Returns:
          The next state, and loss and aux of the batch before the update.

        Raises:
          DistributedError: the parameters did not arrive in time; it names the late
            servers.
          NonFiniteError: the gradient is not finite, with `non_finite="reject"`.
          ArgumentError: this process is an evaluator.
        """
        if not self._joins:
            raise ArgumentError(
                f"parameter_server: {self._run.client.name} does not train: read the "
                "run with `params(state)`, `rows` and `snapshot`"
            )
        run = self._run
        with run.client.tracing.recorder.span("step", 0, run.number + 1):
            if self.consistency.pushes == "changes":
                return self._local_step(state, batch, shared)
            return self._gradient_step(state, batch, shared, ids or {})

    def _gradient_step(
        self,
        state: WorkerState,
        batch: Any,
        shared: Sequence[Any],
        ids: Mapping[str, Any],
    ) -> tuple[WorkerState, StepMetrics]:
        span = self._run.client.tracing.recorder.span
        parts = _params_of(self._pulled(state))
        gathered = self._gathered(ids, state.number)
        rows = {name: (adopted(g.rows), g.inverse) for name, g in gathered.items()}
        with span("gradient"):
            (loss, aux), coded, row_gradients, finite, residual = self._gradient(
                parts, rows, state.residual, batch, shared
            )
            # The copy to the host waits for the computation.
            sent = self._sent(state, coded, finite, loss)
        if sent is None:
            residual, pushed = state.residual, None
        else:
            pushed = self._tables.parts(gathered, row_gradients, len(parts))
        return self._pushed(state, sent, residual, pushed), StepMetrics(loss, aux)

    def rows(self, ids: Mapping[str, Any], state: Any = None) -> dict[str, Any]:
        """Returns the current rows of tables.

        Args:
          ids: integers of any shape, by table; other tables are not read.
          state: not used: the servers hold the rows. (The state of a
            `train.table_trainer` without servers does.)

        Returns:
          Arrays with the shape of the ids followed by that of a row, by table.
        """
        client = self._run.client
        count = len(client.view.holders)
        fresh = WorkerTables([self._tables.specs[name] for name in ids])
        found = fresh.gather(client.rows, count, ids, 0)
        return {name: g.rows[g.inverse] for name, g in found.items()}

    def params(self, state: WorkerState) -> Any:
        """Returns the parameters that the state's next step begins with.

        Args:
          state: a result of `init` or `step`. An evaluator always gets the newest
            parameters, from all servers after the same pushes of each worker.

        Raises:
          DistributedError: a server does not answer in time.
        """
        if not self._joins:
            return self._joined(snapshots.current_params(self._run.client))
        if state.own is not None:
            return state.own[0]
        return self._joined(self._pulled(state))

    def snapshot(self, folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
        """Returns the state of all servers at one moment.

        It includes the same pushes of each worker on every server. Training continues
        meanwhile: pushes wait only for the few messages in which servers agree on the
        moment. It does not include gradients that wait for others (in rounds), or the
        state of workers (residuals; their own parameters in `local_sgd` and
        `elastic_averaging`).

        Args:
          folder: folder on a disk, to which rows of tables are written as they arrive,
            for tables that do not fit into memory. None: rows are kept in memory.

        Returns:
          A pytree of NumPy arrays and strings for `init` or `train.checkpoint.save`:
          ``"params"`` are the parameters, structured like those of `init`;
          ``"servers"`` has each server's optimizer state and rows of tables;
          ``"name"`` is unique to the snapshot. With a folder, rows are read-only
          memory maps of files without a name, which take space until no array refers
          to them.

        Raises:
          ArgumentError: `init` was not called, or `close` was.
          DistributedError: a server does not answer in time, or was replaced just now.
          OSError: the folder is full, or cannot be written to.

        Source: Chandy, Lamport 1985, "Distributed snapshots: determining global states
        of distributed systems".
        """
        shape = self._run.shape
        found = snapshots.take(self._run.client, folder)
        names = [tensor.name for tensor in shape.cutter.plan.tensors]
        tensors = shape.cutter.join(_params_of(found))
        params = [np.asarray(tensors[name]) for name in names]
        return {
            "params": shape.treedef.unflatten(params),
            "servers": [part.rest for part in found],
            "name": secrets.token_hex(8),
        }

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        incremental: bool = True,
        keep: int | None = None,
    ) -> int:
        """Saves the state of all servers at one moment: they write their rows.

        Like `snapshot`, but rows of tables do not pass through this process: each
        server writes those of its shards while training continues; after the first
        snapshot in a folder, only rows that have changed since the last one, until
        these exceed the tables. A snapshot counts once its manifest is written. Begin a
        run with `init(params, load_snapshot(folder))`, on any number of servers.

        Args:
          folder: a folder that this process and all servers reach under this path.
          incremental: whether servers may write changed rows only.
          keep: number of snapshots to keep in the folder; None: all.

        Returns:
          The number of the snapshot in the folder.

        Raises:
          ArgumentError: `init` was not called, or `keep` is less than 1.
          DistributedError: a server does not answer in time, or cannot write its rows.
          OSError: the folder cannot be written to.
        """
        cutter = self._run.shape.cutter
        return saving.save(
            self._run.client,
            folder,
            lambda parts: cutter.join(_params_of(parts)),
            incremental=incremental,
            keep=keep,
        )

    def traffic(self) -> TrafficReport:
        """Returns the traffic since `init`, and its size without encoding.

        Raises:
          ArgumentError: `init` was not called, or `close` was.
        """
        run = self._run
        pulled = [coded_types(self._pull, like)[0] for like in run.shape.types]
        return TrafficReport(
            *run.client.traffic(),
            exchange=self._code.name,
            pull=self._pull.name,
            exact_bytes=sum(model.nbytes for model in run.models),
            push_bytes=_nbytes(model.coded for model in run.models),
            pull_bytes=_nbytes(pulled),
        )

    @property
    def plan(self) -> PlacementPlan:
        """Which rows of which tensor lie in which shard; known after `init`.

        Each server of the plan is a shard. If there are more shards than servers, each
        server serves several (`fxflow parameter-server watch` shows which).
        """
        return self._run.shape.cutter.plan

    def trace(self, path: str | os.PathLike[str]) -> AbstractContextManager[None]:
        """Traces all servers and workers of the run while a `with` block lasts.

        Args:
          path: file to write, for https://ui.perfetto.dev; see `monitor.trace`.

        Returns:
          A context manager.

        Raises:
          DistributedError: no server can be traced.
          OSError: the file cannot be written.
        """
        client = self._run.client
        keys = self._cluster.keys if self._cluster else None
        servers = {s: client.view.addresses[s] for s in client.view.peers}
        return trace(path, servers, keys)

    @property
    def rejected(self) -> int:
        """Number of pushes since `init` that servers rejected, which were left out."""
        return self._run.client.rejected

    def close(self) -> None:
        """Leaves the run, and stops servers within this process."""
        run, self._begun = self._begun, None
        if run is not None:
            run.finish()

    # -- waiting -----------------------------------------------------------------------

    @property
    def _run(self) -> _Run:
        if self._begun is None:
            raise ArgumentError(_NOT_BEGUN)
        return self._begun

    @property
    def _joins(self) -> bool:
        return self._cluster is None or self._cluster.trains

    def _pulled(self, state: WorkerState) -> list[Pulled]:
        """Waits for the pull of the last step."""
        run = self._run
        if run.ticket is None:
            raise ArgumentError(_NOT_BEGUN)
        if state.number != run.number:
            raise ArgumentError(
                f"parameter_server: this is the state after step {state.number}, but "
                f"step {run.number} has been pushed: use each state only once, because "
                "the servers have changed"
            )
        with run.client.tracing.recorder.span("pull"):
            return run.client.wait(run.ticket)

    def _gathered(self, ids: Mapping[str, Any], clock: int) -> dict[str, Gathered]:
        if not ids and not self._tables.specs:
            return {}
        client = self._run.client
        return self._tables.gather(client.rows, len(client.view.holders), ids, clock)

    def _pushed(
        self, state: WorkerState, sent: Any, residual: Any, rows: Any = None
    ) -> WorkerState:
        run, why = self._run, "" if sent is not None else "non-finite"
        with run.client.tracing.recorder.span("push"):
            run.ticket = run.client.push(sent, why, rows)
        run.number = state.number + 1
        return WorkerState(run.number, None, residual)

    def _sent(self, state: WorkerState, coded: Any, finite: Any, loss: Any) -> Any:
        """Returns the arrays to push, on the host; None: skip the gradient."""
        is_finite = bool(finite)
        self.non_finite += not is_finite
        if self._non_finite != "apply" and not is_finite:
            if self._non_finite == "reject":
                raise NonFiniteError(
                    f"parameter_server: the gradient of step {state.number} is not "
                    f"finite (loss {float(loss):g}); it was not pushed. "
                    "non_finite='skip' leaves such steps out and counts them"
                )
            self.skipped += 1
            return None
        return [[np.asarray(x) for x in part] for part in coded]

    # -- programs ----------------------------------------------------------------------

    def _joined(self, found: Iterable[Any]) -> Any:
        """Returns the parameters from the pieces that servers sent."""
        return self._whole(_params_of(found))

    @functools.cached_property
    def _whole(self) -> Any:
        return jit(self._run.shape.whole)

    @functools.cached_property
    def _gradient(self) -> Any:
        """From (pieces, rows, residual, batch, shared) to a step's results.

        These are loss and aux, encoded pieces, gradients of rows, whether all gradients
        are finite, and the residual. Rows are `(rows, inverse)` by table.
        """

        def loss(params: Any, rows: Any, which: Any, batch: Any, shared: Any) -> Any:
            if not self._tables.specs:
                return self._loss_fn(params, batch, *shared)
            chosen = {name: rows[name][which[name]] for name in rows}
            return self._loss_fn(params, chosen, batch, *shared)

        def gradient(
            parts: Any, tables: Any, residual: Any, batch: Any, shared: Any
        ) -> Any:
            params = self._run.shape.whole(parts)
            rows = {name: pair[0] for name, pair in tables.items()}
            which = {name: pair[1] for name, pair in tables.items()}
            function = value_and_grad(loss, (0, 1), has_aux=self._has_aux)
            result, (dense, sparse) = function(params, rows, which, batch, shared)
            result = result if self._has_aux else (result, None)
            finite = all_finite((dense, sparse))
            coded, residual = self._coded(self._run.shape.parts(dense), residual)
            return result, coded, sparse, finite, residual

        return jit(gradient)

    def _coded(self, parts: Any, residual: Any) -> tuple[Any, Any]:
        pairs = [self._code.encode(p, r) for p, r in zip(parts, residual, strict=True)]
        return [tree.leaves(code) for code, _ in pairs], [rest for _, rest in pairs]

    # -- local steps -------------------------------------------------------------------

    def _local_step(
        self, state: WorkerState, batch: Any, shared: Sequence[Any]
    ) -> tuple[WorkerState, StepMetrics]:
        """Makes a local step; exchanges changes every `rule.steps` steps."""
        rule = self.consistency
        params, opt_state, base = state.own
        if rule.in_rounds and state.number and state.number % rule.steps == 0:
            params = base = self._joined(self._pulled(state))
        params, opt_state, (loss, aux), finite = self._local_update(
            params, opt_state, batch, shared
        )
        client = self._run.client
        number = state.number + 1
        residual = state.residual
        if number % rule.steps:
            self._run.number = number
        else:
            if not rule.in_rounds:
                base = self._joined(client.wait(client.pull()))
            params, coded, fine, residual = self._change(params, base, residual)
            sent = self._sent(state, coded, fnp.logical_and(finite, fine), loss)
            self._pushed(state, sent, residual)
        own = params, opt_state, base
        return WorkerState(number, own, residual), StepMetrics(loss, aux)

    @functools.cached_property
    def _local_update(self) -> Any:
        """From (params, optimizer state, batch, shared) to these, result and finite."""

        def step(params: Any, opt_state: Any, batch: Any, shared: Any) -> Any:
            function = value_and_grad(self._loss_fn, has_aux=self._has_aux)
            result, gradient = function(params, batch, *shared)
            updates, opt_state = self._optimizer.update(gradient, opt_state, params)
            finite = all_finite(gradient)
            result = result if self._has_aux else (result, None)
            return optim.apply_updates(params, updates), opt_state, result, finite

        return jit(step)

    @functools.cached_property
    def _change(self) -> Any:
        """From (params, the servers', residual) to params, coded, finite, residual."""
        alpha = self.consistency.alpha

        def change(params: Any, base: Any, residual: Any) -> Any:
            delta = tree.map(lambda x, y: x - y, params, base)
            if alpha is not None:
                delta = tree.map(lambda d: alpha * d, delta)
                params = tree.map(lambda x, d: x - d, params, delta)
            coded, residual = self._coded(self._run.shape.parts(delta), residual)
            return params, coded, all_finite(delta), residual

        return jit(change)


def _params_of(found: Iterable[Any]) -> list[list[Array]]:
    """Returns the pieces of parameters that servers sent, as arrays."""
    return [[adopted(x) for x in part.params] for part in found]


def _nbytes(types: Iterable[Sequence[Aval]]) -> int:
    return sum(a.size * a.dtype.itemsize for avals in types for a in avals)


def _require_trainable(params: Any) -> None:
    for tensor in tensors_of(params):
        dtype = dtypes.dtype(tensor.dtype)
        if not dtypes.is_inexact(dtype):
            raise DtypeError(
                f"parameter_server: parameter {tensor.name!r} is "
                f"{Aval(tensor.shape, dtype)}, which has no gradient: pass what "
                "is not trained to the loss function with the batch"
            )


def parameter_server(
    loss_fn: Callable[..., Any],
    optimizer: Any,
    *,
    consistency: Consistency,
    exchange: str | Code | Filter = "f32",
    pull: Literal["f32", "bf16", "f16"] = "f32",
    has_aux: bool = False,
    cluster: Cluster | Mapping[str, Any] | str | None = None,
    non_finite: Literal["reject", "skip", "apply"] = "reject",
    deadline: float = 60.0,
    tables: Sequence[TableSpec] = (),
    row_staleness: int = 0,
    rejected: Literal["error", "skip"] = "error",
) -> ParameterServer:
    """Returns a `ParameterServer`: a worker's interface to the servers.

    Servers are processes that hold the parameters and apply the optimizer's updates.
    Workers join and leave; each pushes gradients of its own batches at its own pace,
    and the consistency bounds how far apart workers may run. The optimizer of a server
    sees only what that server holds: if it treats each tensor or element separately,
    the result is the same as on one device. (For devices that step together, see
    `sharded_optimizer`.)

    Args:
      loss_fn: `loss_fn(params, batch, *shared) -> loss`, or `(loss, aux)`, of this
        worker's batch.
      optimizer: an object with `init(params)` and `update(gradients, state, params)`,
        such as those of `fxflow.optim`.
      consistency: how far apart workers may run: `bsp()`, `ssp(staleness)`,
        `asynchronous()`, `backup(workers, spares)`, `softsync(n)`, `local_sgd(steps)`,
        `elastic_averaging(steps, alpha)`.
      exchange: how workers send gradients: "f32" (or the dtype of the parameters, if
        that is wider); a code: "bf16", "f16", "int8", "one_bit" or a `Code` of
        `distributed.compression`; or a `Filter` of `parameter_server.filters`, which
        selects the largest entries, or codes groups of parameters differently. What a
        code loses or a filter leaves out is added to the next gradient.
      pull: how servers send parameters, and so the precision of `params` on workers:
        "f32" (unchanged), "bf16" or "f16". Servers keep the parameters' own dtypes.
      has_aux: whether `loss_fn` returns `(loss, aux)`.
      cluster: where the servers are: a `Cluster`, a dictionary or JSON file
        ``{"ps": ["host:port", ...], "worker": [...]}``; None: the cluster of `fxflow
        launch` or ``TF_CONFIG`` if one is set, else one server within this process.
      non_finite: what to do with a gradient that has inf or nan: "reject" raises an
        error, "skip" drops and counts it, "apply" pushes it.
      deadline: seconds after which a wait for a server fails.
      tables: sparse tables, whose rows are created on first use. With tables, the loss
        is `loss_fn(params, rows, batch, *shared)`: `rows` has the rows that
        `step(ids=)` names, by table.
      row_staleness: number of steps for which a worker may reuse a row that it pulled.
      rejected: what to do with a push that a server rejects, such as one whose rows
        are not finite: "error" ends this worker's training, "skip" leaves the push out
        in the shards that reject it, counts it (`ParameterServer.rejected`, and on the
        servers as dropped), prints the reason of the first, and goes on. Other shards
        may have applied their part of the push.

    Returns:
      A `ParameterServer`, whose methods (`init`, `step`, `params`, ...) are functions
      of a state that the caller keeps.

    Raises:
      ArgumentError: an option is not among those above, or the cluster cannot be read.

    Reference: Li et al. 2014, "Scaling distributed machine learning with the parameter
    server".

    Example:
      >>> from fxflow.distributed.parameter_server import asynchronous, parameter_server
      >>> def loss(w, batch):
      ...     x, y = batch
      ...     return fnp.mean((x @ w - y) ** 2)
      >>> batch = fnp.ones((8, 2)), fnp.ones(8)
      >>> server = parameter_server(loss, optim.sgd(0.5), consistency=asynchronous())
      >>> state = server.init(fnp.zeros(2))
      >>> state, metrics = server.step(state, batch)
      >>> float(metrics.loss), server.params(state).tolist()
      (1.0, [1.0, 1.0])
      >>> server.close()
    """
    require_callable(loss_fn, "parameter_server")
    if not isinstance(consistency, Consistency):
        raise ArgumentError(
            "parameter_server: consistency must be bsp(), ssp(4), asynchronous(), ... "
            f"of fxflow.distributed.parameter_server, got {consistency!r}"
        )
    return ParameterServer(
        loss_fn,
        optimizer,
        consistency=consistency,
        cluster=cluster_of(cluster),
        code=filter_of(exchange),
        pull=pull_filter_of(pull),
        has_aux=has_aux,
        non_finite=non_finite,
        deadline=deadline,
        tables=tables,
        row_staleness=row_staleness,
        rejected=rejected,
    )
