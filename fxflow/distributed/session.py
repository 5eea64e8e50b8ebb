"""Joining and leaving a run: `initialize` and `shutdown`.

After `initialize`, `fxflow.devices()` lists the devices of all processes, and programs
may span them. A `Session` is a process's participation in the run.

When a process is lost, the others cannot finish their collectives. So they close gloo's
connections at once: a waiting collective then raises an error that names the lost
process, instead of waiting for its deadline.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from fxflow._config import config
from fxflow.devices import clients, inflight
from fxflow.devices.callbacks import on_failure
from fxflow.devices.cluster import (
    Client,
    Collectives,
    failure,
    on_broken,
    set_failure,
    timed_out,
)
from fxflow.distributed import protocol
from fxflow.distributed.addresses import Address, is_loopback
from fxflow.distributed.clusters import ClusterMembership, detect
from fxflow.distributed.clusters.fxflow import Environment
from fxflow.distributed.coordination import Coordination
from fxflow.distributed.coordinator import Coordinator, listing
from fxflow.distributed.preemption import Agreement
from fxflow.errors import DistributedError


class Session:
    """This process's participation in a run, or in an epoch of an elastic run.

    Args:
      membership: this process's number, the run's size and coordinator.
      coordination: the connection to the coordinator.
      coordinator: the coordinator itself, if it runs in this process.
      agreement: agrees on the step at which all processes stop; None in an elastic run.

    Attributes:
      client: the client of the runtime's service; None before `connect`.
      collectives: the CPU's collectives; None if there is only one process.
      peers: the gloo ports of all processes.
    """

    def __init__(
        self,
        membership: ClusterMembership,
        coordination: Coordination,
        coordinator: Coordinator | None = None,
        agreement: Agreement | None = None,
    ) -> None:
        self.membership = membership
        self.coordination = coordination
        self.coordinator = coordinator
        self.agreement = agreement
        self.client: Client | None = None
        self.collectives: Collectives | None = None
        self.peers: list[int] = []
        self._is_left = threading.Event()

    def connect(
        self, connect: Callable[[], socket.socket], timeout: float, kind: str = "gloo"
    ) -> None:
        """Makes the next CPU client span all processes.

        Args:
          connect: returns a connection to the runtime's service.
          timeout: seconds.
          kind: the kind of the CPU's collectives.
        """
        coordination = self.coordination
        rank, size = coordination.process_id, coordination.num_processes
        self.client = Client(connect, rank, timeout, lambda reason: None)
        if size == 1:
            clients.configure_cpu()
            return
        collectives = Collectives(
            self.client, kind, hostname=coordination.connection.channel.own_host
        )
        # Keep them: after the loss of a process they cannot be exchanged any more.
        ports = coordination.exchange("ports", str(collectives.port).encode(), timeout)
        self.peers = [int(port) for port in ports]
        self.collectives = collectives
        clients.configure_cpu(
            distributed_client=self.client.raw,
            node_id=rank,
            num_nodes=size,
            collectives=collectives.raw,
        )

    def fail(self, error: DistributedError) -> None:
        """Makes everything that waits for other processes fail now.

        Args:
          error: the reason.
        """
        set_failure(error)
        if self.agreement is not None:
            self.agreement.wake()
        if self.collectives is not None:
            # A collective may be waiting for a process that is stopped, not dead, and
            # therefore still has its connections open.
            self.collectives.sever(self.peers)
            threading.Thread(
                target=self._release, name="fxflow-release", daemon=True
            ).start()

    def _release(self) -> None:
        """Unblocks threads that are still connecting to lost peers."""
        assert self.collectives is not None
        pause = 0.0
        while not self._is_left.wait(pause):
            self.collectives.release(self.peers)
            pause = min(1.0, max(0.05, pause * 1.2))

    def leave(self, *, graceful: bool = True, rejoins: bool = False) -> None:
        """Releases the devices and leaves the runtime's service.

        Args:
          graceful: whether to sign off at the service, which must still run.
          rejoins: whether this process joins again. If so, this closes connections that
            live arrays would keep open.
        """
        self._is_left.set()
        clients.configure_plugins()
        clients.clear_backends()
        clients.configure_cpu()
        if self.collectives is not None:
            if rejoins:
                self.collectives.sever(self.peers)
            self.collectives.close()
        if rejoins:
            gc.collect()  # arrays keep their client, and so its connections, alive
        if self.client is not None:
            self.client.close(graceful=graceful)


class _State:
    session: Session | None = None
    #: Whether an uncaught exception is ending the process.
    failed: bool = False
    hooks: bool = False


_state = _State()
_lock = threading.RLock()


def current() -> Session | None:
    """Returns this process's session; None before `initialize` and after `shutdown`."""
    return _state.session


def enter(session: Session | None) -> None:
    """Sets this process's session; for `elastic`, which rejoins by itself."""
    _state.session = session


def is_initialized() -> bool:
    """Returns whether this process has joined a run.

    Returns:
      True between `initialize` and `shutdown`.
    """
    return _state.session is not None


def local_process_id() -> int:
    """Returns this process's number among the processes on its machine.

    Returns:
      The number that the launcher or the cluster manager sets; 0 if neither does.
    """
    session = _state.session
    known = session and session.membership.local_process_id
    if known is None:
        known = Environment(os.environ).membership().local_process_id
    return known or 0


# -- joining ---------------------------------------------------------------------------


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    *,
    cluster_detection_method: str | None = None,
    initialization_timeout: float = 300,
    heartbeat_timeout_seconds: float = 100,
    shutdown_timeout_seconds: float = 300,
    coordinator_bind_address: str | None = None,
    cpu_collectives: str = "gloo",
) -> None:
    """Joins the other processes of this run; call it before using devices.

    Omitted arguments come from the variables ``FXFLOW_COORDINATOR_ADDRESS``,
    ``FXFLOW_NUM_PROCESSES``, ``FXFLOW_PROCESS_ID`` (which ``fxflow launch`` sets), and
    otherwise from the cluster manager: Slurm, Open MPI, Kubernetes, torchrun,
    TF_CONFIG, GKE and GCE TPU.

    Process 0 runs the coordinator unless the launcher does. When a process is lost, the
    collectives and barriers of the others raise `DistributedError`; nothing hangs.

    Args:
      coordinator_address: ``host:port`` of process 0 or the launcher.
      num_processes: the number of processes.
      process_id: this process's number, from 0.
      local_device_ids: the machine's accelerators that this process uses; None for all.
      cluster_detection_method: the cluster manager to use: ``"slurm"``, ``"openmpi"``,
        ``"kubernetes"``, ``"torchrun"``, ``"tf_config"``, ``"gke_tpu"``,
        ``"gce_tpu"``, ``"fxflow"``; ``"deactivate"`` for none; None detects it.
      initialization_timeout: seconds for all processes to join.
      heartbeat_timeout_seconds: seconds of silence after which a process counts as
        lost.
      shutdown_timeout_seconds: seconds that `shutdown` waits for the others.
      coordinator_bind_address: the address at which process 0 listens. The default is
        the coordinator's port, on all interfaces unless its address is a loopback
        address. If other machines can reach it, ``FXFLOW_TOKEN``, the run's secret,
        must be set to the same text in all processes.
      cpu_collectives: ``"gloo"`` or ``"mpi"``.

    Raises:
      RuntimeError: the process has already joined, or has used its devices.
      ValueError: an argument is missing or invalid.
      DistributedError: the port is in use, no coordinator answers, or a process did not
        arrive; the message names it.

    Example:
      On the first of two machines (on the second, `process_id` is 1)::

          fxflow.distributed.initialize("10.0.0.1:1234", 2, 0)
    """
    with _lock:
        if _state.session is not None:
            raise RuntimeError(
                "fxflow.distributed.initialize was already called; it joins a run once "
                "(call fxflow.distributed.shutdown first to join another)"
            )
        if clients.started():
            raise RuntimeError(
                "fxflow.distributed.initialize must come before anything that uses "
                f"devices; already started: {', '.join(clients.started())}. Move the "
                "call to the start of the program"
            )
        membership = _cluster_membership(
            coordinator_address, num_processes, process_id, cluster_detection_method
        )
        visible = _visible(local_device_ids)
        set_failure(None)
        _state.session = _join(
            membership,
            visible,
            initialization_timeout,
            heartbeat_timeout_seconds,
            coordinator_bind_address,
            cpu_collectives,
        )
        _state.failed = False
        if not _state.hooks:
            _state.hooks = True
            atexit.register(_at_exit)
            _note_failures()
        _timeouts["shutdown"] = shutdown_timeout_seconds


_timeouts = {"shutdown": 300.0}


def _cluster_membership(
    address: str | None, count: int | None, number: int | None, method: str | None
) -> ClusterMembership:
    """Returns this process's membership; the arguments override the environment."""
    given = None not in (address, count, number)
    found = None if given else detect(method)
    if found is None:
        own = Environment(os.environ).membership()
        # The launcher's token and `hosted` hold even if the arguments give the rest.
        same = address in (None, own.coordinator_address)
        found = own if same else ClusterMembership()
    result = found._replace(
        coordinator_address=address or found.coordinator_address,
        num_processes=found.num_processes if count is None else count,
        process_id=found.process_id if number is None else number,
    )
    if result.num_processes == 1 and result.coordinator_address is None:
        # A single process may use any port of this machine.
        result = result._replace(coordinator_address="127.0.0.1:0")
    missing = [
        name
        for name in ("coordinator_address", "num_processes", "process_id")
        if getattr(result, name) is None
    ]
    if missing:
        variables = [_VARIABLES[name] for name in missing]
        raise ValueError(
            f"initialize: {', '.join(missing)} not given, nor set by a cluster "
            f"manager. Give the arguments, set {', '.join(variables)}, or start the "
            "program with fxflow launch"
        )
    size, rank = result.num_processes, result.process_id
    assert size is not None and rank is not None and result.coordinator_address
    if size < 1:
        raise ValueError(f"initialize: num_processes must be at least 1, got {size}")
    if not 0 <= rank < size:
        raise ValueError(
            f"initialize: process_id must be 0 to {size - 1}, got {rank} "
            f"(num_processes is {size})"
        )
    if result.coordinator_address != "127.0.0.1:0":
        Address.parse(result.coordinator_address, what="a coordinator address")
    return result


_VARIABLES = {
    "coordinator_address": "FXFLOW_COORDINATOR_ADDRESS",
    "num_processes": "FXFLOW_NUM_PROCESSES",
    "process_id": "FXFLOW_PROCESS_ID",
}


def _visible(local_device_ids: int | Sequence[int] | None) -> list[int] | None:
    if local_device_ids is None:
        return None
    if isinstance(local_device_ids, int):
        ids = [local_device_ids]
    else:
        ids = list(local_device_ids)
    if not ids or any(not isinstance(i, int) or i < 0 for i in ids):
        raise ValueError(
            "initialize: local_device_ids must be numbers of this machine's devices, "
            f"from 0; got {local_device_ids!r}"
        )
    return ids


def _join(
    membership: ClusterMembership,
    visible: list[int] | None,
    timeout: float,
    heartbeat: float,
    bind: str | None,
    implementation: str,
) -> Session:
    address, size, rank = membership[:3]
    assert address is not None and size is not None and rank is not None
    coordinator = None
    if rank == 0 and not membership.hosted:
        host, port = Address.parse(address, any_port=True)
        # Port 0 is for a single process: no other process needs to know the port.
        coordinator = Coordinator(
            bind or (address if is_loopback(host) else f"0.0.0.0:{port}"),
            size,
            token=membership.token,
            heartbeat_timeout=heartbeat,
        )
        if not port:
            address = str(Address("127.0.0.1", coordinator.port))
            membership = membership._replace(coordinator_address=address)
    coordination = None
    agreement = Agreement()

    def on_event(event: Any, epoch: int) -> None:
        if isinstance(event, (protocol.Hold, protocol.Until)):
            agreement.handle(event)
        else:
            _on_event(event)

    try:
        coordination = Coordination.join(
            address,
            rank,
            size,
            timeout=timeout,
            token=membership.token,
            heartbeat_timeout=heartbeat,
            on_event=on_event,
            on_lost=_on_lost,
        )
        agreement.attach(coordination)
        known = coordination.connection

        def connect() -> socket.socket:
            return known.connect_runtime(30, token=membership.token)

        session = Session(membership, coordination, coordinator, agreement)
        session.connect(connect, timeout, implementation)
        assert session.client is not None
        clients.configure_plugins(
            distributed_client=session.client.raw,
            node_id=rank,
            num_nodes=size,
            visible_devices=visible,
        )
    except BaseException:
        if coordination is not None:
            coordination.close()
        if coordinator is not None:
            if failure() is not None:
                _wait_for_leaving(coordinator)
            coordinator.stop()
        raise
    return session


# -- when a process is lost ------------------------------------------------------------


def _log(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        print(f"fxflow: {text}", file=sys.stderr, flush=True)


def _fail(error: DistributedError) -> None:
    """Makes everything that waits for other processes fail; the first error counts."""
    if failure() is not None:
        return
    _log(str(error))
    session = _state.session
    if session is None:
        set_failure(error)
        return
    session.fail(error)
    if any(platform != "cpu" for platform in clients.started()):
        _end_later()


def _on_event(event: Any) -> None:
    if isinstance(event, protocol.SayWaiting):
        threading.Thread(
            target=_report_waiting, name="fxflow-where", daemon=True
        ).start()
    elif isinstance(event, protocol.Late):
        _fail(DistributedError(event.why, event.processes))
    elif isinstance(event, protocol.Lost):
        error = DistributedError(
            f"process {event.process} ({event.name}) is lost: {event.why}; "
            "collectives and barriers cannot continue",
            [event.process],
        )
        _fail(error)


def _on_lost(reason: str) -> None:
    session = _state.session
    where = session.membership.coordinator_address if session else "?"
    hosted = session is not None and session.membership.hosted
    host = "the launcher" if hosted else "process 0"
    error = DistributedError(
        f"the coordinator at {where} ({host}) is lost: {reason}; collectives and "
        "barriers cannot continue",
        [] if hosted else [0],
    )
    _fail(error)


def _end_later() -> None:
    """Ends this process after a delay, unless it leaves an accelerator's collective."""

    def end() -> None:
        if _state.session is not None and failure() is not None:
            _log("ending this process: it has not ended by itself")
            os._exit(1)

    timer = threading.Timer(config.collective_timeout, end)
    timer.daemon = True
    timer.start()


# -- leaving ---------------------------------------------------------------------------


def shutdown() -> None:
    """Leaves the run after waiting for the others; further calls do nothing.

    It is called when Python exits. After an error, it does not wait.

    Raises:
      DistributedError: another process did not arrive. This process has left anyway.
    """
    with _lock:
        session = _state.session
        if session is None:
            return
        problem: DistributedError | None = None
        if failure() is None and not _state.failed:
            try:
                session.coordination.barrier("fxflow/shutdown", _timeouts["shutdown"])
            except DistributedError as error:
                problem = error
        _state.session = None
        if session.agreement is not None:
            session.agreement.close()
        # After a loss, a coordinator in another process may end while this process
        # signs off, because it hardly waits for the others.
        session.leave(graceful=failure() is None or bool(session.coordinator))
        # Without a sign-off, the others learn that this process failed.
        session.coordination.close(graceful=not _state.failed)
        if session.coordinator is not None:
            if failure() is not None or (problem is None and not _state.failed):
                _wait_for_leaving(session.coordinator)
            session.coordinator.stop()
        set_failure(None)
        if problem is not None:
            raise problem


def _wait_for_leaving(coordinator: Coordinator) -> None:
    """Waits briefly for the other processes to sign off before the port closes.

    If a process was lost, the others may still be learning about it from the
    coordinator's stand-in.
    """
    group = coordinator.group
    end = time.monotonic() + (5.0 if failure() is not None else 2.0)
    while time.monotonic() < end:
        with coordinator.lock:
            if len(group.departed) >= group.size:
                return
        time.sleep(0.02)


#: Seconds within which a running process reports that it waits.
_ANSWER = 1.0


def _note_waiting() -> None:
    """Reports that this process waits in a collective."""
    session = _state.session
    if session is not None:
        with contextlib.suppress(OSError):
            session.coordination.post(protocol.ReportWaiting())


on_broken(_note_waiting)


def _report_waiting() -> None:
    if inflight.waiting():
        _note_waiting()


def _late(error: BaseException) -> BaseException:
    """Returns an error that names the processes that were late for a collective.

    The process whose deadline passes first asks all others. Each process that waits in
    a collective stores a key; a process without a key is late. All processes receive
    the result: by then the first process has closed its connections, and the others
    must not mistake it for the late one. Collectives cannot continue after that.
    """
    session = _state.session
    if session is None or not timed_out(error) or failure() is not None:
        return error
    coordination = session.coordination
    missing = set(range(coordination.num_processes))
    try:
        _note_waiting()
        with contextlib.suppress(OSError):
            coordination.post(protocol.AskWaiting())
        end = time.monotonic() + _ANSWER
        while missing and time.monotonic() < end:
            time.sleep(0.05)
            missing -= set(coordination.waiting())
            known = failure()
            if known is not None:  # another process was first
                return DistributedError(str(known), known.processes, known.seconds)
    except DistributedError as lost:
        return lost
    if not missing:
        return error
    result = DistributedError(
        f"a collective did not finish within {config.collective_timeout:g} s "
        f"(fxflow.config.collective_timeout): {listing(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} late: stopped, stuck or doing "
        "something else",
        missing,
        config.collective_timeout,
    )
    with contextlib.suppress(OSError):
        coordination.post(protocol.Judge(sorted(missing), str(result)))
    set_failure(result)
    return result


on_failure(_late)


def _note_failures() -> None:
    """Records whether an uncaught exception ends the process."""
    before = sys.excepthook

    def hook(*details: Any) -> None:
        _state.failed = True
        before(*details)

    sys.excepthook = hook


def _at_exit() -> None:
    try:
        shutdown()
    except DistributedError as error:
        _log(str(error))
