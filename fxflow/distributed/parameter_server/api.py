"""The one function that makes parameter servers of both planes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

from fxflow.devices.meshes import Mesh
from fxflow.distributed.compression import Code
from fxflow.distributed.parameter_server.consistency import Consistency
from fxflow.distributed.parameter_server.filters import (
    Filter,
    filter_of,
    pull_filter_of,
)
from fxflow.distributed.parameter_server.running import Cluster, cluster_of
from fxflow.distributed.parameter_server.synchronous.server import ParameterServer
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.distributed.parameter_server.worker.training import AsynchronousServer
from fxflow.errors import ArgumentError
from fxflow.transforms.arguments import require_callable


@overload
def parameter_server(
    loss_fn: Callable[..., Any],
    optimizer: Any,
    *,
    consistency: None = None,
    exchange: str | Code = "f32",
    has_aux: bool = False,
    mesh: Mesh | None = None,
    axis_name: Any = "server",
    combine: str = "mean",
) -> ParameterServer: ...


@overload
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
) -> AsynchronousServer: ...


def parameter_server(
    loss_fn: Callable[..., Any],
    optimizer: Any,
    *,
    consistency: Consistency | None = None,
    exchange: str | Code | Filter = "f32",
    pull: Literal["f32", "bf16", "f16"] = "f32",
    has_aux: bool = False,
    mesh: Mesh | None = None,
    axis_name: Any = "server",
    combine: str = "mean",
    cluster: Cluster | Mapping[str, Any] | str | None = None,
    non_finite: Literal["reject", "skip", "apply"] = "reject",
    deadline: float = 60.0,
    tables: Sequence[TableSpec] = (),
    row_staleness: int = 0,
) -> ParameterServer | AsynchronousServer:
    """Makes a parameter server: of devices in step, or of processes at their own pace.

    Without `consistency`, every device keeps a piece of every parameter and of the
    optimizer's state, so that they take a fraction of the memory each. In a step it
    gathers the parameters, computes the gradients of its part of the batch, gets the
    sum of its piece of them (a reduce-scatter), and updates its piece. The update is
    that of one device with the whole batch, for any optimizer: one that looks at all
    gradients (their norm, say) sees all.

    With a `consistency`, servers are processes that hold the parameters and make the
    optimizer's updates; workers come and go, and each pushes gradients of its own
    batches at its own pace. An optimizer sees what one server holds: one that looks at
    each tensor or element by itself gives what it gives on one device.

    Args:
      loss_fn: `loss_fn(params, batch, *shared) -> loss`, or `(loss, aux)`: of one
        device's or worker's part of the batch. On devices it may use collectives over
        `axis_name`.
      optimizer: `init(params)` and `update(gradients, state, params)`, as those of
        `fxflow.optim`.
      consistency: how far workers may run apart: `bsp()`, `ssp(staleness)`,
        `asynchronous()`, `backup(workers, spares)`, `softsync(n)`, `local_sgd(steps)`,
        `elastic_averaging(steps, alpha)`; None: devices in step.
      exchange: how gradients travel: "f32" (in the dtype of the parameters if that is
        wider), or coded: "bf16", "f16", "int8" or a `Code` of
        `distributed.compression`, which send a half or a quarter and remember what they
        lost for the next step. With a consistency also a `Filter` of
        `parameter_server.filters`: one bit, the largest entries, by groups of names.
      pull: how parameters travel to the workers, and so what `params` returns there:
        "f32" (as they are), "bf16" or "f16". Servers keep and update them as they are.
        With a consistency only.
      has_aux: whether `loss_fn` returns `(loss, aux)`.
      mesh: the devices; None is the current mesh if it has the axis, else all devices.
        Axes besides `axis_name` are left to the compiler. Devices in step only.
      axis_name: of the axis along which parameters and batches are divided. Devices in
        step only.
      combine: how loss, gradients and aux of the whole batch follow from those of its
        parts: "mean" (the loss is a mean over examples) or "sum". Devices in step only.
      cluster: where the servers are: a `Cluster`, a dictionary or JSON file
        ``{"ps": ["host:port", ...], "worker": [...]}``; None: what `fxflow launch` or
        ``TF_CONFIG`` says, and without these a server within this process.
      non_finite: what becomes of a gradient with inf or nan: "reject" raises, "skip"
        leaves it out and counts it, "apply" pushes it. With a consistency only.
      deadline: seconds after which a wait for a server fails. With a consistency only.
      tables: sparse tables, whose rows are made when they are first touched. Then
        `loss_fn(params, rows, batch, *shared)` gets the rows that `step(ids=)` names,
        by table. With a consistency only.
      row_staleness: for how many steps a worker may use a row that it pulled before.
        With a consistency only.

    Returns:
      A `ParameterServer` or an `AsynchronousServer`: functions of a state that is the
      caller's, `init`, `step` and `params` in both.

    Raises:
      ArgumentError: an option is none of those above, or of the other plane; the mesh
        has no such axis; the cluster cannot be read.

    Reference: Li et al. 2014, "Scaling distributed machine learning with the parameter
    server"; Rajbhandari et al. 2020, "ZeRO: memory optimizations toward training
    trillion parameter models".

    Example:
      >>> from fxflow.distributed.parameter_server import asynchronous, parameter_server
      >>> def loss(w, batch):
      ...     x, y = batch
      ...     return fnp.mean((x @ w - y) ** 2)
      >>> batch = fnp.ones((8, 2)), fnp.ones(8)
      >>> server = parameter_server(loss, optim.sgd(0.5))
      >>> state = server.init(fnp.zeros(2))
      >>> state, metrics = server.step(state, batch)
      >>> float(metrics.loss), server.params(state).tolist()
      (1.0, [1.0, 1.0])

      At one's own pace:

      >>> server = parameter_server(loss, optim.sgd(0.5), consistency=asynchronous())
      >>> state = server.init(fnp.zeros(2))
      >>> state, metrics = server.step(state, batch)
      >>> float(metrics.loss), server.params(state).tolist()
      (1.0, [1.0, 1.0])
      >>> server.close()
    """
    require_callable(loss_fn, "parameter_server")
    if consistency is None:
        _none_of(
            {
                "cluster": cluster is not None,
                "non_finite": non_finite != "reject",
                "pull": pull != "f32",
                "tables": bool(tables),
            },
            "needs a consistency: bsp(), ssp(4), asynchronous(), ...",
        )
        if isinstance(exchange, Filter):
            raise ArgumentError(
                "parameter_server: exchange is a Filter, which needs a consistency; "
                "devices in step take 'f32', 'bf16', 'f16', 'int8' or a Code"
            )
        return ParameterServer(
            loss_fn,
            optimizer,
            mesh=mesh,
            axis_name=axis_name,
            exchange=exchange,
            has_aux=has_aux,
            combine=combine,
        )
    if not isinstance(consistency, Consistency):
        raise ArgumentError(
            "parameter_server: consistency must be bsp(), ssp(4), asynchronous(), ... "
            f"of fxflow.distributed.parameter_server, got {consistency!r}"
        )
    _none_of(
        {"mesh": mesh is not None, "combine": combine != "mean"},
        "is for devices in step, that is consistency=None",
    )
    return AsynchronousServer(
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


def _none_of(given: Mapping[str, bool], why: str) -> None:
    for name, is_given in given.items():
        if is_given:
            raise ArgumentError(f"parameter_server: {name} {why}")
