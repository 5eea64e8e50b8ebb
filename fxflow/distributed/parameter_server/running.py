"""Finds the servers of a run in a cluster, starts servers here, and joins a run."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fxflow.distributed.addresses import server_address
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys, keys_of
from fxflow.distributed.messages.zeromq import Dialer, Hub
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.server.store import kept_view
from fxflow.distributed.parameter_server.views import View, first_view
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.distributed.parameter_server.worker.tickets import Deadline
from fxflow.errors import ArgumentError, DistributedError

#: What `fxflow launch --ps` sets.
SERVERS, TASK = "FXFLOW_PS_SERVERS", "FXFLOW_PS_TASK"
COPIES, SHARDS = "FXFLOW_PS_COPIES", "FXFLOW_PS_SHARDS"
WORKERS, CHIEF = "FXFLOW_PS_WORKERS", "FXFLOW_PS_CHIEF"
JOBS = ("ps", "worker", "chief", "evaluator")

_runs = itertools.count()


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes of a run.

    Attributes:
      servers: addresses of the jobs `ps`, ``host:port``.
      job: of this process: `ps`, `worker`, `chief`, `evaluator`, or, for a
        `ParameterReader`, `reader`.
      index: of this process among those of its job.
      keys: of the run; None on the loopback.
      workers: the initial number of jobs `worker`; 0: unknown. More may join.
      chief: whether it has a job `chief`, which trains like the workers.
      shards: the number of shards of the parameters, the same as on the servers; 0:
        one for each server.
    """

    servers: tuple[str, ...]
    job: str = "worker"
    index: int = 0
    keys: Keys | None = None
    workers: int = 0
    chief: bool = False
    shards: int = 0

    @property
    def name(self) -> str:
        """This process's name in messages, such as "worker 2"."""
        return f"{self.job} {self.index}"

    @property
    def trains(self) -> bool:
        """Whether this process is a worker or the chief, and does not only read."""
        return self.job not in ("evaluator", "reader")

    @property
    def trainers(self) -> tuple[str, ...]:
        """The names of the processes that train: the chief, then the workers."""
        chief = ("chief 0",) if self.chief else ()
        return (*chief, *(f"worker {index}" for index in range(self.workers)))

    @property
    def rank(self) -> int:
        """This process's number among those that train, for its share of the data.

        Less than `len(trainers)`, unless it joined later.
        """
        return self.index + (self.chief and self.job == "worker")


def cluster_of(
    given: Cluster | Mapping[str, Any] | str | None,
    environment: Mapping[str, str] | None = None,
) -> Cluster | None:
    """Returns the cluster that an argument `cluster` describes.

    Args:
      given: a `Cluster`; ``{"ps": ["host:port", ...], "worker": [...]}`` or the path of
        a JSON file with that; None: the environment's.
      environment: variables; None: those of this process.

    Returns:
      The cluster; None if neither names one.

    Raises:
      ArgumentError: it has no servers, one of its addresses is missing, duplicate or
        malformed, it cannot be read, or this process is not one of its tasks.
    """
    env = os.environ if environment is None else environment
    if isinstance(given, Cluster):
        return given
    if isinstance(given, str):
        try:
            given = json.loads(Path(given).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"parameter_server: the cluster {given!r} cannot be read: {error}"
            ) from None
    task = env.get(TASK, "")
    if given is None and env.get(SERVERS):
        given = {"ps": env[SERVERS].split(",")}
    if given is None and env.get("TF_CONFIG"):
        given, config_task = _tf_config(env["TF_CONFIG"])
        task = task or config_task
    if given is None:
        return None
    if not isinstance(given, Mapping) or not given.get("ps"):
        raise ArgumentError(
            "parameter_server: a cluster names its servers, "
            f"{{'ps': ['host:port', ...], 'worker': [...]}}; got {given!r}"
        )
    _check_jobs(given)
    job, index = _job_and_index(task or "worker:0", given)
    return Cluster(
        tuple(given["ps"]),
        job,
        index,
        keys_of(env),
        len(given.get("worker", ())) or _count(env, WORKERS),
        bool(given.get("chief") or job == "chief" or _count(env, CHIEF)),
        _count(env, SHARDS),
    )


def _check_jobs(given: Mapping[str, Any]) -> None:
    """Checks jobs and addresses of a cluster.

    Raises:
      ArgumentError: a job is unknown, or an address missing, duplicate or malformed.
    """
    owners: dict[str, str] = {}
    for job, addresses in given.items():
        listed = isinstance(addresses, Sequence) and not isinstance(addresses, str)
        if job not in JOBS or not listed:
            raise ArgumentError(
                f"parameter_server: the jobs of a cluster are {', '.join(JOBS)}, each "
                f"with a list of addresses; got {job!r}: {addresses!r}"
            )
        for index, address in enumerate(addresses):
            where = f"parameter_server: the cluster's {job} {list(addresses)} have"
            if not address:
                raise ArgumentError(f"{where} a gap at {index}")
            if addresses.count(address) > 1:
                raise ArgumentError(f"{where} {address!r} twice")
            if owners.setdefault(str(address), job) != job:
                raise ArgumentError(f"{where} {address!r}, as {owners[address]} has")
            try:
                server_address(str(address))
            except DistributedError as error:
                raise ArgumentError(
                    f"parameter_server: {job} {index}: {error}"
                ) from None


def _count(environment: Mapping[str, str], name: str) -> int:
    """Returns the value of a variable, a whole number; 0 without it."""
    text = environment.get(name) or "0"
    if not (text.isascii() and text.isdigit()):
        raise ArgumentError(
            f"parameter_server: {name} must be a whole number, got {text!r}"
        )
    return int(text)


def _tf_config(text: str) -> tuple[Any, str]:
    """Returns the cluster and the task of a ``TF_CONFIG``."""
    try:
        config = json.loads(text)
        place = config.get("task") or {}
        task = f"{place.get('type', 'worker')}:{place.get('index', 0)}"
        return config.get("cluster"), task
    except (ValueError, AttributeError) as error:
        raise ArgumentError(
            "parameter_server: TF_CONFIG must read {'cluster': {'ps': [...], ...}, "
            f"'task': {{'type': ..., 'index': ...}}}}; got {text!r}: {error}"
        ) from None


def _job_and_index(task: str, jobs: Mapping[str, Sequence[str]]) -> tuple[str, int]:
    """Returns the job and index of a task ``job:index`` of the cluster."""
    job, _, index = task.partition(":")
    if job not in JOBS or not (index.isascii() and index.isdigit()):
        raise ArgumentError(
            f"parameter_server: a task reads job:index, its job one of "
            f"{', '.join(JOBS)}; got {task!r}"
        )
    # Jobs other than servers need no address.
    if job in jobs and int(index) >= len(jobs[job]):
        raise ArgumentError(
            f"parameter_server: this is {job} {index}, and the cluster has "
            f"{len(jobs[job])} of them, numbered from 0"
        )
    return job, int(index)


class LocalServers:
    """Servers in threads of this process.

    Args:
      count: the number of servers.
      shards: the number of shards of the parameters; 0: one for each server. With
        more, servers may join and leave.
      copies: the number of servers that hold each shard.

    Attributes:
      cluster: for the argument `cluster` of `parameter_server`.
      servers: in the order in which they were started.

    Example:
      >>> import numpy as np
      >>> from fxflow.distributed.parameter_server import asynchronous, parameter_server
      >>> def loss(w, x):
      ...     return fnp.mean((w - x) ** 2)
      >>> servers = LocalServers(2, shards=6)
      >>> options = {"consistency": asynchronous(), "cluster": servers.cluster}
      >>> server = parameter_server(loss, optim.sgd(0.5), **options)
      >>> state = server.init(np.zeros(6, np.float32))
      >>> servers.add()
      2
      >>> state, _ = server.step(state, 1.0)  # the new server receives shards
      >>> server.close()
      >>> servers.close()
    """

    cluster: Cluster
    servers: list[ShardServer]

    def __init__(self, count: int = 1, *, shards: int = 0, copies: int = 1) -> None:
        self._run = next(_runs)
        addresses = list(map(self._address, range(count)))
        self.cluster = Cluster(tuple(addresses), shards=shards)
        view = first_view(addresses, copies, shards)
        self.servers = []
        self._threads: list[threading.Thread] = []
        for number, address in enumerate(addresses):
            hub = Hub()
            self._start(ShardServer(hub, hub.listen(address), number, view))

    def _address(self, number: int) -> str:
        return f"inproc://fxflow-server-{self._run}-{number}"

    def _start(self, server: ShardServer) -> None:
        self.servers.append(server)
        name = f"fxflow-parameter-server-{server.number}"
        thread = threading.Thread(target=server.serve, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def add(self, deadline: float = 60.0) -> int:
        """Starts a new server, which joins the run; it receives shards afterwards.

        Args:
          deadline: seconds after which it gives up. The running servers admit it, so
            the run must have begun.

        Returns:
          The number of the new server.

        Raises:
          DistributedError: there is no shard for it, or no server admits it.
        """
        address, hub = self._address(len(self.servers)), Hub()
        try:
            listener = hub.listen(address)
            number, view = enlist(self.cluster.servers, address, deadline=deadline)
        except BaseException:
            hub.close()
            raise
        self._start(ShardServer(hub, listener, number, view))
        return number

    def close(self) -> None:
        """Stops the servers."""
        for server in self.servers:
            server.stop()
        for thread in self._threads:
            thread.join(10)


def connect(
    cluster: Cluster | None, deadline: float
) -> tuple[WorkerClient, Callable[[], None]]:
    """Connects a worker.

    Args:
      cluster: the cluster of the servers; None: one server within this process.
      deadline: seconds after which a wait fails.

    Returns:
      The connection, and a function that closes it.
    """
    if cluster is None:
        local = LocalServers()
        client = client_of(local.cluster, deadline)

        def finish() -> None:
            client.close()
            local.close()

        return client, finish
    client = client_of(cluster, deadline)
    return client, client.close


def client_of(cluster: Cluster, deadline: float) -> WorkerClient:
    """Returns the connection of a process to the servers.

    Args:
      cluster: the cluster, with this process's job.
      deadline: seconds after which a wait fails.
    """
    return WorkerClient(
        first_view(cluster.servers, shards=cluster.shards),
        keys=cluster.keys,
        name=cluster.name,
        deadline=deadline,
        workers=cluster.trainers,
        joins=cluster.trains,
    )


# -- joining ---------------------------------------------------------------------------

#: Seconds between two requests to a server.
_RETRY = 0.2


def enlist(
    servers: Sequence[str],
    address: str,
    keys: Keys | None = None,
    *,
    folder: Path | None = None,
    deadline: float = 60.0,
) -> tuple[int, View]:
    """Requests admission to a run, and waits until its servers have agreed on it.

    A server that was in the run before and has stored the view sends no request: all
    other servers may have left.

    Args:
      servers: addresses of some running servers, in any order.
      address: where workers and servers will reach the new server.
      keys: the run's keys; None on the loopback interface.
      folder: the new server's folder.
      deadline: seconds after which the request fails.

    Returns:
      The new server's number, and the view that includes it.

    Raises:
      DistributedError: no shard is left for the server, the servers belong to two runs,
        no server answers in time, or those that answer do not agree in time.
    """
    kept = kept_view(folder)
    if kept is not None and address in kept.addresses:
        return kept.addresses.index(address), kept
    time_limit, sent = Deadline(deadline, "a place in the run"), 0.0
    with Hub(keys) as hub:
        request = _JoinRequest(hub, address, servers)
        while True:
            if time.monotonic() - sent >= _RETRY:
                sent = time.monotonic()
                request.send()
            hub.wait(_RETRY)
            found = request.receive()
            if found is not None:
                return found
            time_limit.check(request.awaited)


class _JoinRequest:
    """A request to the given servers, and to all servers in their views.

    The given servers may not include those that decide.
    """

    def __init__(self, hub: Hub, address: str, servers: Sequence[str]) -> None:
        self._hub, self._address = hub, address
        self._dialers: dict[str, Dialer] = {s: hub.dial(s) for s in servers}
        self._view: View | None = None
        self._why = ""

    def send(self) -> None:
        """Sends the request to all of them."""
        for dialer in self._dialers.values():
            dialer.send(Message.of(messages.Enlist(self._address)))

    def receive(self) -> tuple[int, View] | None:
        """Returns the number and the view once a server has sent them; else None."""
        for dialer in list(self._dialers.values()):
            for message in dialer.receive():
                fields = message.fields
                if isinstance(fields, messages.Failure):
                    why = fields.why
                    raise DistributedError(f"the server at {dialer.address}: {why}")
                if isinstance(fields, messages.Enlisted):
                    view = View.from_json(fields.view)
                    self._note(dialer, view, fields.why)
                    if fields.number >= 0:
                        return fields.number, view
        return None

    def _note(self, dialer: Dialer, view: View, why: str) -> None:
        known = self._view
        if known is not None and 0 not in (known.run, view.run):
            if known.run != view.run:
                raise DistributedError(
                    f"the given servers belong to two runs: {dialer.address} is in "
                    f"another run than {', '.join(known.addresses)}. Give the servers "
                    "of one run"
                )
            if known.epoch > view.epoch:
                return
        self._view, self._why = view, why
        for server in view.peers:
            other = view.addresses[server]
            if other != self._address and other not in self._dialers:
                self._dialers[other] = self._hub.dial(other)

    @property
    def awaited(self) -> str:
        """The servers, or the event, that the request waits for."""
        silent = (f"{a} ({d.problem})" for a, d in self._dialers.items() if d.problem)
        return self._why or ", ".join(silent) or ", ".join(self._dialers)
