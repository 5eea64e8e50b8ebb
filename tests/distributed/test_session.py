"""Joining and leaving a run, in child processes."""

import re
import sys
import time
from collections.abc import Callable

import pytest

from fxflow.distributed import initialize, is_initialized, session, shutdown

from .conftest import Run

Start = Callable[..., Run]

# The program of each process; PORT, COUNT and NUMBER are on the command line.
PROGRAM = """
import os, signal, sys, time
import numpy as np
import fxflow, fxflow.numpy as fnp
from fxflow import distributed
from fxflow.distributed.session import current

port, count, number, what = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
started = time.monotonic()
distributed.initialize(
    f"127.0.0.1:{port}", count, number, initialization_timeout=15,
    heartbeat_timeout_seconds=1.5,
)
assert distributed.is_initialized()
print(f"UP {time.monotonic() - started:.3f}", flush=True)
assert fxflow.process_index() == number and fxflow.process_count() == count
assert [d.process_index for d in fxflow.devices()] == list(range(count))
assert fxflow.local_device_count() == 1
add = fxflow.pmap(lambda x: fxflow.lax.psum(x, "i"), axis_name="i")
ones = fnp.ones((1, 4))
assert add(ones).tolist() == [[float(count)] * 4]
if what != "fine":
    who, with_signal = map(int, what.split(":"))
    if number == who:
        time.sleep(0.2)
        if with_signal:
            os.kill(os.getpid(), with_signal)
        raise ValueError("my own mistake")
    started = time.monotonic()
    try:
        for _ in range(1000):
            add(ones).block_until_ready()
            time.sleep(0.01)
    except Exception as error:
        assert time.monotonic() - started < 10
        print("RAISED", flush=True)
    try:
        current().coordination.barrier("b", 5)
    except distributed.DistributedError as error:
        print("BARRIER", error, flush=True)
if number == 0 and what == "fine":
    time.sleep(0.2)
distributed.shutdown()
distributed.shutdown()
assert not distributed.is_initialized()
if what == "fine":
    assert fxflow.device_count() == 1  # alone again
print("DONE", flush=True)
"""


@pytest.fixture
def run_all(
    start: Start, write: Callable[..., str], free_port: int
) -> Callable[..., list[Run]]:
    def run_all(count: int, what: str) -> list[Run]:
        file = write(PROGRAM)
        return [
            start(sys.executable, file, str(free_port), str(count), str(n), what)
            for n in range(count)
        ]

    return run_all


def test_processes_join_and_leave(run_all: Callable[..., list[Run]]) -> None:
    runs = run_all(3, "fine")
    for run in runs:
        assert run.end(30) == 0, run.text
        assert "DONE" in run.out[-1], run.text
        # gloo's output goes to standard error; nothing else does.
        assert not any("[Gloo]" in line or "peer" in line for line in run.out), run.text
        text = "".join(run.err)
        assert "is connected to" in text, run.text
        assert not re.search("Error|error|fxflow|Traceback", text), run.text


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("1:9", "process 1 .* is lost: its connection was closed"),
        ("1:19", "process 1 .* is lost: no heartbeat arrived for 1.5 s"),
        ("1:0", "process 1 .* is lost: its connection was closed"),
        ("0:9", "coordinator at .* .process 0. is lost: its connection was closed"),
    ],
    ids=["killed", "stopped", "raised", "coordinator"],
)
def test_the_others_notice_a_lost_process(
    run_all: Callable[..., list[Run]], what: str, why: str
) -> None:
    started = time.monotonic()
    runs = run_all(3, what)
    lost = int(what[0])
    for number, run in enumerate(runs):
        if number == lost:
            continue
        assert run.end(20) == 0, run.text
        assert any("RAISED" in line for line in run.out), run.text
        assert any("BARRIER" in line for line in run.out), run.text
        assert re.search(why, run.text), run.text
    assert time.monotonic() - started < 20


EARLY = """
import os, sys, time
import fxflow
fxflow.distributed.initialize(f"127.0.0.1:{sys.argv[1]}", 2, int(sys.argv[2]))
if sys.argv[2] == "1":
    os._exit(0)
time.sleep(1)
try:
    fxflow.devices()
except fxflow.distributed.DistributedError as error:
    print("TOLD", error, flush=True)
os._exit(0)
"""


def test_a_loss_before_the_devices_start_is_reported(
    start: Start, write: Callable[..., str], free_port: int
) -> None:
    """Creating a client must not wait for a process that has exited."""
    file = write(EARLY)
    runs = [start(sys.executable, file, str(free_port), str(n)) for n in range(2)]
    assert [run.end(20) for run in runs] == [0, 0], runs[0].text
    assert any("TOLD process 1" in line for line in runs[0].out), runs[0].text


# Process 1 dies just before it does what the others do, or wait for.
MOMENT = """
import os, sys, time
import numpy as np
import fxflow
from fxflow import lax
from fxflow.devices import clients
from fxflow.distributed import multihost, session

port, number, when = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
compare = multihost.check_same_program

def die(*args, **options):
    if when == "connect":
        compare(*args, **options)
    time.sleep(0.5)
    os.kill(os.getpid(), 9)

if number == 1:
    if when == "register":
        session.Client = die
    elif when == "create":
        clients._make = die
    else:
        multihost.check_same_program = die
try:
    fxflow.distributed.initialize(
        f"127.0.0.1:{port}", 3, number, initialization_timeout=60
    )
    f = fxflow.pmap(lambda x: lax.psum(x, "i"), "i")
    started = time.monotonic()
    np.asarray(f(np.ones((1, 4), np.float32)))
except fxflow.distributed.DistributedError as error:
    print("TOLD", error, flush=True)
    raise SystemExit(3)
"""


@pytest.mark.parametrize("when", ["register", "create", "connect"])
def test_a_loss_during_connecting_is_reported(
    start: Start, write: Callable[..., str], free_port: int, when: str
) -> None:
    """By itself, the runtime would wait for one to five minutes."""
    file = write(MOMENT)
    runs = [start(sys.executable, file, str(free_port), str(n), when) for n in range(3)]
    assert runs[1].end(30) == -9, runs[1].text
    died = time.monotonic()
    for run in (runs[0], runs[2]):
        assert run.end(20) == 3, run.text
        assert re.search(r"TOLD .*process(es)? 1\b.* connection was closed", run.text)
    assert time.monotonic() - died < 10


def test_a_process_that_does_not_join_is_named(
    start: Start, write: Callable[..., str], free_port: int
) -> None:
    code = (
        "from fxflow import distributed\n"
        "distributed.initialize('127.0.0.1:%d', 2, 0, initialization_timeout=0.5)\n"
    )
    run = start(sys.executable, write(code % free_port))
    assert run.end(20) == 1
    assert "process 1 of 2 did not join within 0.5 s; process 0 did" in run.text
    other = start(
        sys.executable, write((code % free_port).replace("2, 0", "2, 1"), "other.py")
    )
    assert other.end(20) == 1
    assert f"no coordinator answers at 127.0.0.1:{free_port} within 0.5 s" in other.text


def test_initializing_after_using_devices_is_refused(
    start: Start, write: Callable[..., str]
) -> None:
    code = (
        "import fxflow\n"
        "fxflow.devices()\n"
        "fxflow.distributed.initialize('127.0.0.1:1', 2, 0)\n"
    )
    run = start(sys.executable, write(code))
    assert run.end(20) == 1
    assert "before anything that uses devices; already started: cpu" in run.text


def test_a_single_process_initializes_once(
    start: Start, write: Callable[..., str]
) -> None:
    code = (
        "import fxflow\n"
        "from fxflow import distributed\n"
        "distributed.initialize(num_processes=1, process_id=0)\n"
        "try: distributed.initialize(num_processes=1, process_id=0)\n"
        "except RuntimeError as error: print(error)\n"
        "print(fxflow.numpy.ones(3).sum(), fxflow.process_count())\n"
    )
    run = start(sys.executable, write(code))
    assert run.end(20) == 0, run.text
    assert "was already called" in run.out[0]
    assert run.out[1] == "3.0 1"


@pytest.fixture
def nothing_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session.clients, "started", lambda: ())
    for name in ("ADDRESS", "HOSTED"):
        monkeypatch.delenv(f"FXFLOW_COORDINATOR_{name}", raising=False)


@pytest.mark.usefixtures("nothing_started")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "coordinator_address, num_processes, process_id not given"),
        (("h:1", 2), "process_id not given.* set FXFLOW_PROCESS_ID"),
        (("h:1", 2, 2), "process_id must be 0 to 1, got 2"),
        (("h:1", 2, -1), "process_id must be 0 to 1, got -1"),
        (("h:1", 0, 0), "num_processes must be at least 1, got 0"),
        (("h", 2, 0), "must be host:port"),
        (("h:1", 2, 0, []), "local_device_ids must be numbers"),
        (("h:1", 2, 0, [-1]), "local_device_ids must be numbers"),
    ],
)
def test_invalid_arguments_are_refused(
    arguments: tuple[object, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        initialize(*arguments)  # type: ignore[arg-type]
    assert not is_initialized()


def test_shutdown_without_initialize() -> None:
    shutdown()
    assert session.current() is None


def test_local_process_id(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.local_process_id() == 0
    monkeypatch.setenv("FXFLOW_LOCAL_PROCESS_ID", "3")
    assert session.local_process_id() == 3
