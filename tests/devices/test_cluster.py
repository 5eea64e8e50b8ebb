"""The distributed runtime: its effects on a process, tested in new processes."""

import socket
import sys
from collections.abc import Callable

import pytest

from fxflow.devices import cluster
from fxflow.devices.relay import own_connections
from fxflow.errors import DistributedError

Run = Callable[..., str]

# The process is both ends: a service, and its clients, through relays.
BOTH = """
import socket, sys, threading, time
from fxflow.devices import clients, cluster

service = cluster.Service(2)
host, port = service.address.split(":")
lost = []

connections = []

def connect():
    connection = socket.create_connection((host, int(port)))
    connections.append(connection)
    return connection

def client(number):
    return cluster.Client(connect, number, 20, lambda why: lost.append((number, why)))

made = {}
def make(number):
    made[number] = client(number)
"""


def run_both(run_python: Run, code: str) -> str:
    return run_python(BOTH + code + "\nsys.stdout.flush()\nimport os; os._exit(0)\n")


def test_clients_register_with_the_service(run_python: Run) -> None:
    code = """
threads = [threading.Thread(target=make, args=(n,)) for n in range(2)]
for t in threads: t.start()
for t in threads: t.join()
made[0].raw.key_value_set("k", "v")
assert made[1].raw.blocking_key_value_get("k", 1000) == "v"
for n in made: made[n].close(); made[n].close()
time.sleep(0.1)
service.stop(); service.stop()
assert lost == []
assert made[0].raw is None
with socket.socket() as s: assert s.connect_ex((host, int(port))) != 0
print("fine")
"""
    assert run_both(run_python, code) == "fine\n"


def test_clients_survive_the_service(run_python: Run) -> None:
    """Without the relay, the runtime would end the process."""
    code = """
threads = [threading.Thread(target=make, args=(n,)) for n in range(2)]
for t in threads: t.start()
for t in threads: t.join()
for connection in connections: connection.shutdown(socket.SHUT_RDWR)
service.stop()
end = time.monotonic() + 5
while len(lost) < 2 and time.monotonic() < end: time.sleep(0.01)
assert sorted(n for n, _ in lost) == [0, 1], lost
time.sleep(1.0)
for n in made: made[n].close()
print("alive")
"""
    assert run_both(run_python, code) == "alive\n"


def test_a_stand_in_releases_the_other_processes(run_python: Run) -> None:
    """Process 1 never joins; process 0 fails at once instead of after minutes."""
    code = """
stand_in = cluster.StandIn(service, 1)
only = client(0)
collectives = cluster.Collectives(only, hostname="127.0.0.1")
assert collectives.port > 0
clients.configure_cpu(
    distributed_client=only.raw, node_id=0, num_nodes=2, collectives=collectives.raw
)
started = time.monotonic()
try: clients.client("cpu")
except clients.BackendError as error: print("refused")
assert time.monotonic() - started < 10
assert stand_in.close()
collectives.release([collectives.port]); collectives.close()
"""
    assert run_both(run_python, code) == "refused\n"


def test_a_stand_in_that_waits_cannot_disconnect(run_python: Run) -> None:
    code = """
stand_in = cluster.StandIn(service, 1)
assert not stand_in.close(0.3)
print("stuck")
"""
    assert run_both(run_python, code) == "stuck\n"


def test_gloos_thread_does_not_preempt_others(run_python: Run) -> None:
    if sys.platform != "linux":
        pytest.skip("reads /proc/self/task")
    code = """
import contextlib, os
def policies():
    found = {}
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has ended
            found[thread] = os.sched_getscheduler(int(thread))
    return found
stand_in = cluster.StandIn(service, 1)
only = client(0)
before = policies()
collectives = cluster.Collectives(only, hostname="127.0.0.1")
after = policies()
assert {after[t] for t in after.keys() & before.keys()} == {os.SCHED_OTHER}, after
# The runtime may start other threads, too, before or after gloo's.
assert os.SCHED_BATCH in [after[t] for t in after.keys() - before.keys()], after
print("waits")
"""
    assert run_both(run_python, code) == "waits\n"


def test_sever_closes_gloos_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("reads /proc/self/fd")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert (port, None) in [(own[1], to) for own, to in own_connections().values()]
        caller = socket.create_connection(("127.0.0.1", port))
        called, _ = listener.accept()
        collectives = object.__new__(cluster.Collectives)
        collectives.port = 0
        assert collectives.sever() == 0
        assert collectives.sever([port]) == 1  # the caller's end
        assert called.recv(1) == caller.recv(1) == b""
        caller.close()
        called.close()


def test_unknown_collectives_are_refused() -> None:
    client = object.__new__(cluster.Client)
    with pytest.raises(ValueError, match="'gloo' or 'mpi', got 'smoke'"):
        cluster.Collectives(client, "smoke")


def test_explain_names_the_lost_process() -> None:
    cause = RuntimeError("Connection closed by peer")
    assert cluster.explain(cause) is cause
    try:
        cluster.set_failure(DistributedError("process 1 is lost", [1]))
        found = cluster.explain(cause)
        assert isinstance(found, DistributedError)
        assert (str(found), found.processes) == ("process 1 is lost", (1,))
        assert found.__cause__ is cause
        assert cluster.explain(found) is found
    finally:
        cluster.set_failure(None)
    assert cluster.failure() is None


def test_a_distributed_error_holds_sorted_processes_and_seconds() -> None:
    error = DistributedError("late", [2, 0], 5.0)
    assert (error.processes, error.seconds) == ((0, 2), 5.0)
    assert isinstance(error, RuntimeError)
