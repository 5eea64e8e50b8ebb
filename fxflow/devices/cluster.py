"""The interface to jaxlib's distributed runtime: service, client, CPU collectives.

Processes that compute together share a *coordination service*: a small store through
which the runtime's clients learn each other's devices and addresses. When a process is
missing, the runtime ends the others or waits for minutes. This module prevents both:

* A client connects through a `Relay`, which outlives the service. Its heartbeats are so
  rare that the runtime never misses one: `fxflow.distributed` detects lost processes.
* `Collectives.sever` breaks gloo's connections, so that an operation that waits for a
  lost process fails at once instead of at its deadline.
* A `StandIn` takes the place of a process that died while the cluster was forming: it
  sets the keys that the others wait for, to bytes that they refuse.

Only `fxflow.distributed` uses this module; users call `fxflow.distributed.initialize`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from fxflow.devices import clients
from fxflow.devices._jaxlib import RuntimeFailure as RuntimeFailure
from fxflow.devices._jaxlib import raw
from fxflow.devices.callbacks import on_failure
from fxflow.devices.relay import Relay, own_connections
from fxflow.errors import DistributedError

#: Period of the runtime's heartbeats, in seconds. A missed one ends the process: a
#: client of a dead service lives for half of this.
_WEEK = 7 * 24 * 3600
#: The runtime gives a device the number process * 2048 + ordinal.
_IDS_PER_PROCESS = 2048
#: Parts of the messages of gloo's failures.
_GLOO_FAILED = "Gloo"
_TIMED_OUT = "Timed out waiting"
#: Seconds to wait for the cause of a broken connection.
_PATIENCE = 2.5
#: Prefix of the keys of gloo's addresses: "cpu:gloo/<device ids>/<rank>".
_GLOO = "cpu:gloo"
#: An invalid value under every key: for gloo a list of 2**64 - 1 addresses.
_REFUSED = b"\xff" * 64


# -- the failure of this process -------------------------------------------------------


class _State:
    failure: DistributedError | None = None


_state = _State()


def set_failure(error: DistributedError | None) -> None:
    """Records why collectives of this process cannot finish; None resets it."""
    _state.failure = error


def failure() -> DistributedError | None:
    """Returns why collectives of this process cannot finish; None if they can."""
    return _state.failure


def explain(error: BaseException) -> BaseException:
    """Returns the error to raise for a failure of a program of several processes.

    Args:
      error: the runtime's exception: "Connection closed by peer", a deadline.

    Returns:
      A `DistributedError` that names the lost process and has `error` as its cause, if
      a process is known to be lost; else `error`.
    """
    if isinstance(error, DistributedError):
        return error
    known = _state.failure
    if known is None and _GLOO_FAILED in str(error) and not timed_out(error):
        for listener in _broken:
            listener()
        # The cause of a broken connection is known a moment after the break.
        end = time.monotonic() + _PATIENCE
        while known is None and time.monotonic() < end:
            time.sleep(0.01)
            known = _state.failure
    if known is None:
        return error
    result = DistributedError(str(known), known.processes, known.seconds)
    result.__cause__ = error
    return result


on_failure(explain)


def timed_out(error: BaseException) -> bool:
    """Returns whether a collective reached its deadline instead of being broken."""
    return _TIMED_OUT in str(error)


_broken: list[Callable[[], None]] = []


def on_broken(listener: Callable[[], None]) -> None:
    """Calls `listener` when a collective of this process breaks, before it raises."""
    _broken.append(listener)


def _refuse_after_failure() -> None:
    if _state.failure is not None:
        raise _state.failure


clients.before_joining(_refuse_after_failure)


# -- the service -----------------------------------------------------------------------


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hides standard error: the runtime warns that `recoverable` is experimental."""
    try:
        kept = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class Service:
    """The coordination service for `num_processes` clients, on a local port.

    It listens on the loopback interface only: connections from other machines arrive
    at the coordinator's port, which checks them first.

    Attributes:
      address: ``"127.0.0.1:port"``.
      num_processes: number of clients it waits for.
    """

    address: str

    def __init__(self, num_processes: int) -> None:
        self.num_processes = num_processes
        # gRPC shares ports (SO_REUSEPORT): two services on one port would each get half
        # of the clients. A bound socket that does not listen reserves the port.
        self._holder = socket.socket()
        if hasattr(socket, "SO_REUSEPORT"):
            self._holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._holder.bind(("127.0.0.1", 0))
        port = self._holder.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        try:
            with _quiet():
                self._service: Any = raw.get_distributed_runtime_service(
                    self.address,
                    num_processes,
                    heartbeat_timeout=_WEEK,
                    # Clients have their own timeouts. After the default, an hour, a
                    # stand-in that still waits would abort this process.
                    cluster_register_timeout=_WEEK,
                    # A process that ends does not end the others.
                    recoverable=True,
                )
        except RuntimeFailure as error:
            self._holder.close()
            raise DistributedError(
                f"the coordination service cannot start on {self.address}: {error}"
            ) from None

    def stop(self) -> None:
        """Stops the service, after its clients left or their connections were cut.

        A client that is still connected ends its process.
        """
        service, self._service = self._service, None
        if service is not None:
            service.shutdown()
            self._holder.close()


# -- its clients -----------------------------------------------------------------------


def _new_client(address: str, process_id: int, timeout: float) -> Any:
    return raw.get_distributed_runtime_client(
        address,
        process_id,
        init_timeout=max(1, round(timeout)),
        heartbeat_timeout=_WEEK,
        shutdown_on_destruction=False,
    )


class Client:
    """This process's connection to a service.

    Args:
      connect: makes a connection to the service; raises OSError if it cannot.
      process_id: this process's number.
      timeout: seconds for all processes to connect. Make the client only when all are
        known to be present: the runtime *ends the process* when this passes.
      lost: called with the reason, from another thread, when the service is lost.

    Attributes:
      raw: jaxlib's client.
      process_id: this process's number.
    """

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        process_id: int,
        timeout: float,
        lost: Callable[[str], None],
    ) -> None:
        self.process_id = process_id
        self._service_lost = False
        self._on_lost = lost
        self._relay = Relay(connect, self._lost)
        self.raw: Any = _new_client(self._relay.address, process_id, timeout)
        try:
            self.raw.connect()
        except RuntimeFailure as error:
            raise DistributedError(
                f"process {process_id} cannot register with the coordination "
                f"service: {error}"
            ) from None

    def _lost(self, reason: str) -> None:
        self._service_lost = True
        self._on_lost(reason)

    def close(self, graceful: bool = True) -> None:
        """Disconnects; harmless if the service is lost. Do not use `raw` afterwards.

        Args:
          graceful: whether to notify the service and wait for its reply; False if the
            service may stop meanwhile.
        """
        client, self.raw = self.raw, None
        if client is None:
            return
        if self._service_lost or not graceful:
            # A shutdown without a reply ends the process: keep the client and its relay
            # alive instead.
            _abandoned.append((client, self._relay))
            return
        with contextlib.suppress(RuntimeFailure):
            client.shutdown()
        # CPU clients that still live refer to this client, which makes no more calls.
        self._relay.close()


_abandoned: list[Any] = []


class StandIn:
    """Takes the place of a process that died while the others wait for it.

    It runs in the process of the service, which is not a member of the cluster.

    Args:
      service: the cluster's service.
      process_id: number of the process that died.

    A thread registers it, because registering waits until all others have registered;
    they must not be disconnected before.
    """

    def __init__(self, service: Service, process_id: int) -> None:
        self.process_id = process_id
        self._service = service
        self._ended = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="fxflow-stand-in", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        client = _new_client(self._service.address, self.process_id, _WEEK)
        client.connect()
        # Processes may start to wait for a key later.
        while True:
            self._fill(client)
            if self._ended.wait(0.02):
                break
        with contextlib.suppress(RuntimeFailure):
            client.shutdown()

    def _fill(self, client: Any) -> None:
        """Sets each key that the others may wait for to a value that they refuse."""
        me = self.process_id
        keys = [f"cpu:local_topology/cpu/{me}", "cpu:global_topology/cpu"]
        with contextlib.suppress(RuntimeFailure):
            for name, _ in client.key_value_dir_get_bytes(_GLOO):
                group, _, _ = name.rpartition("/")
                ids = group.rpartition("/")[2].split(",")
                owners = [int(i) // _IDS_PER_PROCESS for i in ids if i.isdigit()]
                keys += [f"{group}/{k}" for k, o in enumerate(owners) if o == me]
        for key in dict.fromkeys(keys):
            with contextlib.suppress(RuntimeFailure):  # set already: no process waits
                client.key_value_set_bytes(key, _REFUSED)

    def close(self, timeout: float = 2.0) -> bool:
        """Disconnects, once no process waits any more; returns whether it could.

        It cannot while it waits itself for processes that have not registered. Then the
        service must not be stopped.
        """
        self._ended.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()


# -- collectives of the CPU ------------------------------------------------------------

_RDBUF = "5rdbuf"
_IOS = "St9basic_iosIcSt11char_traitsIcEE"


@functools.cache
def _divert_cout() -> bool:
    """Redirects C++'s `std::cout` to standard error; returns whether it could.

    Gloo prints a line to it for each new connection, from its own threads, and has no
    option to turn this off. The lines would mix with the program's own output. This is
    ``std::cout.rdbuf(std::cerr.rdbuf())``, called by the functions' mangled names on
    Linux. It does not affect the output of C and Python.
    """
    if sys.platform != "linux":
        return False
    with contextlib.suppress(AttributeError, OSError, ValueError):
        # Only the library that is already loaded: another one has another cout.
        library = ctypes.CDLL("libstdc++.so.6", mode=os.RTLD_NOLOAD)
        get = library[f"_ZNK{_IOS}{_RDBUF}Ev"]
        get.argtypes, get.restype = [ctypes.c_void_p], ctypes.c_void_p
        put = library[f"_ZN{_IOS}{_RDBUF}EPSt15basic_streambufIcS1_E"]
        put.argtypes, put.restype = [ctypes.c_void_p] * 2, ctypes.c_void_p

        def ios(name: str) -> int:
            # The buffer belongs to a virtual base class: the word three slots before
            # the table of virtual functions holds its offset in the object.
            stream = ctypes.addressof(ctypes.c_char.in_dll(library, name))
            table = ctypes.c_size_t.from_address(stream).value
            address = table - 3 * ctypes.sizeof(ctypes.c_void_p)
            return stream + ctypes.c_ssize_t.from_address(address).value

        put(ios("_ZSt4cout"), get(ios("_ZSt4cerr")))
        return True
    return False


def _threads() -> set[int]:
    """Returns the kernel's numbers of this process's threads; empty off Linux."""
    try:
        return {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:
        return set()


def _schedule_as_batch(threads: Iterable[int]) -> None:
    """Keeps gloo's own thread from preempting the threads that it waits for.

    When data arrives, gloo's thread wakes and polls until a sending thread releases the
    connection; if it preempted that thread, it polls for a whole time slice (4 ms).
    Under SCHED_BATCH a thread that wakes does not preempt others. On 2 cores this
    shortens a sum of 1 KB over two processes from 3.0 to 0.9 ms.
    """
    if sys.platform != "linux":
        return
    for thread in threads:
        with contextlib.suppress(OSError):
            if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def _listening_ports() -> set[int]:
    return {own[1] for own, peer in own_connections().values() if peer is None}


class Collectives:
    """The collectives of the CPU devices of several processes: gloo over TCP, or MPI.

    Args:
      client: this process's client.
      implementation: ``"gloo"`` or ``"mpi"``. The latter needs MPItrampoline's
        wrapper of an MPI library (``MPITRAMPOLINE_LIB``).
      hostname: the address at which others reach this process; empty: the address of
        the host's name.
      interface: a network interface instead, such as ``"eth0"``.

    Attributes:
      raw: jaxlib's object.
      port: gloo's port; 0 if unknown.
    """

    port: int

    def __init__(
        self,
        client: Client,
        implementation: str = "gloo",
        hostname: str = "",
        interface: str = "",
    ) -> None:
        self.port = 0
        self._host = hostname
        self._fake_calls: list[socket.socket] = []
        try:
            if implementation == "mpi":
                self.raw: Any = raw.make_mpi_collectives()
                self.raw.Init()
                return
            if implementation != "gloo":
                raise ValueError(
                    f"CPU collectives are 'gloo' or 'mpi', got {implementation!r}"
                )
            _divert_cout()
            before, threads = _listening_ports(), _threads()
            self.raw = raw.make_gloo_tcp_collectives(
                distributed_client=client.raw,
                hostname=hostname or None,
                interface=interface or None,
            )
        except RuntimeFailure as error:
            raise DistributedError(
                f"{implementation} collectives cannot start: {error}"
            ) from None
        _schedule_as_batch(_threads() - threads)
        new = _listening_ports() - before
        self.port = new.pop() if len(new) == 1 else 0

    def sever(self, peers: Iterable[int] = ()) -> int:
        """Breaks gloo's connections: an operation that waits for a peer fails at once.

        Args:
          peers: the ports of the other processes' gloo.

        Returns:
          The number of connections.
        """
        others = set(peers) - {0}
        count = 0
        for descriptor, (own, peer) in own_connections().items():
            if peer is None or not (own[1] == self.port or peer[1] in others):
                continue
            with contextlib.suppress(OSError):
                # `shutdown` acts on the connection, not only on this descriptor.
                with socket.socket(fileno=os.dup(descriptor)) as copy:
                    copy.shutdown(socket.SHUT_RDWR)
                count += 1
        return count

    def release(self, peers: Sequence[int]) -> None:
        """Releases threads that wait in gloo for peers that may be lost; call it again.

        A process that is still connecting waits for its peers to call, up to half a
        minute for a lost one. This method makes these calls in their place: a caller
        sends only the number of its pair, counted from 0. `sever` then breaks these
        connections like the others.

        Args:
          peers: the ports of all processes' gloo.
        """
        self.sever(peers)
        previous, self._fake_calls = self._fake_calls, []
        for connection in previous:
            connection.close()
        if not self.port:
            return
        for number in range(4 * len(peers) + 8):
            with contextlib.suppress(OSError):
                connection = socket.create_connection(
                    (self._host or socket.gethostname(), self.port), 1
                )
                self._fake_calls.append(connection)
                connection.sendall(struct.pack("@n", number))

    def close(self) -> None:
        """Closes the connections that `release` opened."""
        for connection in self._fake_calls:
            connection.close()
        self._fake_calls = []
