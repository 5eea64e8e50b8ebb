"""The seam to jaxlib's distributed runtime: service, client, CPU collectives.

Processes that compute together share a *coordination service*: a small store through
which the runtime's clients learn each other's devices and addresses. What the runtime
does when something is missing is to end the process, or to wait for minutes. This
module is made so that neither is seen:

* A client connects through a `Relay`, which outlives the service, and beats so rarely
  that the runtime never misses a beat: who is alive is watched by
  `fxflow.distributed`, which knows which process is lost.
* `Collectives.sever` breaks gloo's connections, so that an operation which waits for a
  process that is lost fails at once instead of after its deadline.
* A `StandIn` takes the place of a process that died while a cluster was being formed:
  it fills in what the others wait for, with bytes that they refuse.

Only `fxflow.distributed` uses this; users call `fxflow.distributed.initialize`.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import socket
import struct
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

#: Seconds. A missed heartbeat of the runtime ends the process, so heartbeats have this
#: period: a client of a dead service lives for half of it.
_WEEK = 7 * 24 * 3600
#: The runtime gives a device the number process * 2048 + ordinal.
_IDS_PER_PROCESS = 2048
#: What the messages of its failures begin with.
_GLOO_FAILED = "Gloo"
_TIMED_OUT = "Timed out waiting"
#: Seconds until it must be known why a connection broke.
_PATIENCE = 2.5
#: Where gloo's ranks leave their addresses: "cpu:gloo/<device ids>/<rank>".
_GLOO = "cpu:gloo"
#: What nothing can read: for gloo a list of 2**64 - 1 addresses.
_REFUSED = b"\xff" * 64


# -- what failed in this process -------------------------------------------------------


class _State:
    failure: DistributedError | None = None


_state = _State()


def set_failure(error: DistributedError | None) -> None:
    """Remembers why collectives of this process cannot finish; None forgets it."""
    _state.failure = error


def failure() -> DistributedError | None:
    """Returns why collectives of this process cannot finish; None if they can."""
    return _state.failure


def explain(error: BaseException) -> BaseException:
    """Returns the error to raise for a failure of a program of several processes.

    Args:
      error: what the runtime raised: "Connection closed by peer", a deadline.

    Returns:
      A `DistributedError` that names the process which is lost and has `error` as its
      cause, if one is known to be lost; else `error`.
    """
    if isinstance(error, DistributedError):
        return error
    known = _state.failure
    if known is None and _GLOO_FAILED in str(error) and not timed_out(error):
        for told in _broken:
            told()
        # A broken connection is noticed at once; who broke it, a moment later.
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
    """Returns whether a collective was not broken, but waited for too long."""
    return _TIMED_OUT in str(error)


_broken: list[Callable[[], None]] = []


def on_broken(told: Callable[[], None]) -> None:
    """Has `told` called when a collective of this process was broken, first of all."""
    _broken.append(told)


def _refuse_after_failure() -> None:
    if _state.failure is not None:
        raise _state.failure


clients.before_joining(_refuse_after_failure)


# -- the service -----------------------------------------------------------------------


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Drops what the runtime prints: it warns that `recoverable` is experimental."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no standard error
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

    It listens on the loopback interface alone: what comes from other machines comes
    through the coordinator's port, where it is checked first.

    Attributes:
      address: ``"127.0.0.1:port"``.
      num_processes: how many clients it waits for.
    """

    address: str

    def __init__(self, num_processes: int) -> None:
        self.num_processes = num_processes
        # gRPC shares ports (SO_REUSEPORT): two services on one would each get half of
        # the clients. Held by a socket that does not listen, it is ours alone.
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
                    # Clients have timeouts of their own. After the default, an hour, a
                    # stand-in that still waits would abort this process.
                    cluster_register_timeout=_WEEK,
                    # One process that ends does not take the others with it.
                    recoverable=True,
                )
        except RuntimeFailure as error:
            self._holder.close()
            raise DistributedError(
                f"the coordination service cannot start on {self.address}: {error}"
            ) from None

    def stop(self) -> None:
        """Ends it, when its clients have left or their connections are cut.

        It tells those that are connected, and they end their process.
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
      timeout: seconds for all processes to connect. Call it when all are known to be
        there: the runtime *ends the process* when this passes.
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
        self._gone = False
        self._tell = lost
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
        self._gone = True
        self._tell(reason)

    def close(self, graceful: bool = True) -> None:
        """Leaves; harmless when the service is lost. Do not use `raw` afterwards.

        Args:
          graceful: whether to say so, and wait for the answer. Not where the service
            may go meanwhile.
        """
        client, self.raw = self.raw, None
        if client is None:
            return
        if self._gone or not graceful:
            # A shutdown that is not answered ends the process, so there is none. The
            # client lives on without a service, and the relay with it.
            _abandoned.append((client, self._relay))
            return
        with contextlib.suppress(RuntimeFailure):
            client.shutdown()
        # CPU clients that still live keep a reference; it no longer calls.
        self._relay.close()


_abandoned: list[Any] = []


class StandIn:
    """Takes the place of a process that died while the others wait for it.

    Made in a process that is not one of the cluster's, beside the service.

    Args:
      service: of the cluster.
      process_id: of the process that died.

    Registering waits until all others have registered, so this is done in a thread;
    they must not be turned back before.
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
        # Processes may still be on their way to where they wait.
        while True:
            self._fill(client)
            if self._ended.wait(0.02):
                break
        with contextlib.suppress(RuntimeFailure):
            client.shutdown()

    def _fill(self, client: Any) -> None:
        """Sets, under each key the others may wait for, what they refuse."""
        me = self.process_id
        keys = [f"cpu:local_topology/cpu/{me}", "cpu:global_topology/cpu"]
        with contextlib.suppress(RuntimeFailure):
            for name, _ in client.key_value_dir_get_bytes(_GLOO):
                group, _, _ = name.rpartition("/")
                ids = group.rpartition("/")[2].split(",")
                owners = [int(i) // _IDS_PER_PROCESS for i in ids if i.isdigit()]
                keys += [f"{group}/{k}" for k, o in enumerate(owners) if o == me]
        for key in dict.fromkeys(keys):
            with contextlib.suppress(RuntimeFailure):  # set already: none waits
                client.key_value_set_bytes(key, _REFUSED)

    def close(self, timeout: float = 2.0) -> bool:
        """Leaves, when no process waits any more; returns whether that was possible.

        It is not while it waits itself, for processes that did not register. Then the
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
    """Sends what C++ prints to `std::cout` to standard error; returns whether it can.

    Gloo prints a line for each connection there, from its own threads and whenever a
    program first needs one, and has no option not to. A program's own output would be
    mixed with it. This is ``std::cout.rdbuf(std::cerr.rdbuf())``, by the names that
    compilers for Linux give to it. Output of C, and Python's, is not touched.
    """
    with contextlib.suppress(AttributeError, OSError, ValueError):
        # Only the library that is there already: another would have another cout.
        library = ctypes.CDLL("libstdc++.so.6", mode=os.RTLD_NOLOAD)
        get = library[f"_ZNK{_IOS}{_RDBUF}Ev"]
        get.argtypes, get.restype = [ctypes.c_void_p], ctypes.c_void_p
        put = library[f"_ZN{_IOS}{_RDBUF}EPSt15basic_streambufIcS1_E"]
        put.argtypes, put.restype = [ctypes.c_void_p] * 2, ctypes.c_void_p

        def ios(name: str) -> int:
            # The base that has the buffer is a virtual one: the word three slots
            # before the table of virtual functions says how far into the object.
            stream = ctypes.addressof(ctypes.c_char.in_dll(library, name))
            table = ctypes.c_size_t.from_address(stream).value
            address = table - 3 * ctypes.sizeof(ctypes.c_void_p)
            return stream + ctypes.c_ssize_t.from_address(address).value

        put(ios("_ZSt4cout"), get(ios("_ZSt4cerr")))
        return True
    return False


def _threads() -> set[int]:
    """Returns this process's threads, as the kernel numbers them; none off Linux."""
    try:
        return {int(name) for name in os.listdir("/proc/self/task")}
    except OSError:
        return set()


def _let_others_finish(threads: Iterable[int]) -> None:
    """Keeps gloo's own thread from taking the processor from those it waits for.

    When data comes it wakes, and asks again and again whether a thread that is sending
    has let go of the connection; if it woke in that thread's place, until its time
    slice ends: 4 ms. Threads of batches wait until there is a processor to spare. On 2
    cores a sum of 1 KB over two processes took 3.0 ms so, and takes 0.9 ms.
    """
    if not hasattr(os, "SCHED_BATCH"):
        return
    for thread in threads:
        with contextlib.suppress(OSError):
            if os.sched_getscheduler(thread) == os.SCHED_OTHER:
                os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def _listening_ports() -> set[int]:
    return {own[1] for own, peer in own_connections().values() if peer is None}


class Collectives:
    """How CPU devices of several processes exchange data: gloo over TCP, or MPI.

    Args:
      client: this process's.
      implementation: ``"gloo"`` or ``"mpi"``. The latter needs MPItrampoline's
        wrapper of an MPI library (``MPITRAMPOLINE_LIB``).
      hostname: the address others reach this process at; empty: that of the host's
        name.
      interface: a network interface instead, such as ``"eth0"``.

    Attributes:
      raw: jaxlib's object.
      port: gloo's; 0 if unknown.
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
        self._forged: list[socket.socket] = []
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
        _let_others_finish(_threads() - threads)
        new = _listening_ports() - before
        self.port = new.pop() if len(new) == 1 else 0

    def sever(self, peers: Iterable[int] = ()) -> int:
        """Breaks gloo's connections: what waits for a peer fails at once.

        Args:
          peers: the ports of the other processes' gloo.

        Returns:
          How many connections there were.
        """
        others = set(peers) - {0}
        count = 0
        for descriptor, (own, peer) in own_connections().items():
            if peer is None or not (own[1] == self.port or peer[1] in others):
                continue
            with contextlib.suppress(OSError):
                # `shutdown` acts on the connection, whatever else holds a descriptor of
                # it.
                with socket.socket(fileno=os.dup(descriptor)) as copy:
                    copy.shutdown(socket.SHUT_RDWR)
                count += 1
        return count

    def release(self, peers: Sequence[int]) -> None:
        """Releases whatever waits in gloo for peers that may be lost; call it again.

        A process that is still connecting waits for its peers to call, and for one
        that has given up it would wait half a minute. So the calls it waits for are
        made here: a caller sends but the number of the pair it means, and these count
        up from 0. The connections are then broken like the others.

        Args:
          peers: the ports of all processes' gloo.
        """
        self.sever(peers)
        forged, self._forged = self._forged, []
        for connection in forged:
            connection.close()
        if not self.port:
            return
        for number in range(4 * len(peers) + 8):
            with contextlib.suppress(OSError):
                connection = socket.create_connection(
                    (self._host or socket.gethostname(), self.port), 1
                )
                self._forged.append(connection)
                connection.sendall(struct.pack("@n", number))

    def close(self) -> None:
        """Closes what `release` opened."""
        for connection in self._forged:
            connection.close()
        self._forged = []
