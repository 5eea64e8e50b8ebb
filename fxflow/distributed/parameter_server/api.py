"""`parameter_server`: the function that makes a worker's `ParameterServer`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from fxflow.distributed.compression import Code
from fxflow.distributed.parameter_server.consistency import Consistency
from fxflow.distributed.parameter_server.filters import (
    Filter,
    filter_of,
    pull_filter_of,
)
from fxflow.distributed.parameter_server.running import Cluster, cluster_of
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.worker.training import ParameterServer
from fxflow.errors import ArgumentError
from fxflow.transforms.arguments import require_callable


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
    )
