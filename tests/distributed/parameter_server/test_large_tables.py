"""Tables larger than a worker's memory are saved and restored part by part.

A run restores each row of another run once, whichever process dies meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import nn, optim
from fxflow.distributed.messages import zeromq
from fxflow.distributed.parameter_server import (
    Cluster,
    TableSpec,
    asynchronous,
    parameter_server,
)
from fxflow.distributed.parameter_server.server import snapshots
from fxflow.distributed.parameter_server.tables import cuts, remote
from fxflow.distributed.parameter_server.tables.remote import RowParts
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.errors import DistributedError
from fxflow.train.checkpoint import Checkpointer
from tests.distributed.parameter_server.server.harness import Run, running

pytest.importorskip("zmq")
pytest.importorskip("lmdb")

PARAMS = {"b": np.zeros((), np.float32)}
IDS = np.arange(0, 7000, 7)
SENT = 1000


def server_of(run: Run, folder: Path, index: int = 0) -> Any:
    rows = TableSpec(
        "words",
        4,
        optim.adam(0.1),
        nn.initializers.ones,
        rows_in_memory=100,
        folder=str(folder),
    )
    cluster = Cluster(run.view.addresses, index=index, shards=len(run.view.holders))
    return parameter_server(
        lambda params, found, batch: fnp.sum(found["words"] ** 2) * batch + params["b"],
        optim.sgd(0.1),
        consistency=asynchronous(),
        cluster=cluster,
        tables=[rows],
        deadline=30,
    )


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Makes blocks and parts small; records the bytes of messages that have rows."""
    monkeypatch.setattr(snapshots, "_BYTES", SENT // 2)
    monkeypatch.setattr(cuts, "BLOCK_BYTES", SENT // 2)
    monkeypatch.setattr(remote, "PART_BYTES", SENT)
    found: list[int] = []
    send = zeromq._End._send

    def sent(end: Any, to: bytes, message: Any, waiting: Any) -> Any:
        if message.kind in ("model", "push_rows", "snapshot_ok", "entry"):
            rows = (x for n, x in message.arrays.items() if "text/" not in n)
            found.append(sum(values.nbytes for values in rows))
        return send(end, to, message, waiting)

    monkeypatch.setattr(zeromq._End, "_send", sent)
    return found


def rows_of(server: Any) -> Any:
    return np.asarray(server.rows({"words": IDS})["words"])


def trained(run: Run, folder: Path) -> Any:
    """Returns a worker of a run that has trained."""
    server = server_of(run, folder)
    state = server.init(PARAMS)
    for ids in (IDS, IDS[::7], IDS[::2]):
        state, _ = server.step(state, np.float32(1), ids={"words": ids})
    return server


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Any]]:
    """Yields a checkpoint of two servers, and its rows."""
    folder = tmp_path_factory.mktemp("kept")
    with running(folder / "run", 2) as run:
        server = trained(run, folder)
        with Checkpointer(folder / "kept") as checkpoints:
            checkpoints.save(0, server.snapshot(folder / "rows"))
        yield folder / "kept", rows_of(server)
        server.close()


def restored(kept: tuple[Path, Any]) -> Any:
    return Checkpointer(kept[0]).restore(mmap=True)


@pytest.mark.parametrize("servers", [1, 2, 3])
def test_no_message_has_many_rows(
    tmp_path: Path, sizes: list[int], kept: tuple[Path, Any], servers: int
) -> None:
    given = restored(kept)
    (block,) = given["servers"][0]["rows"]["words"]
    assert all(isinstance(values, np.memmap) for values in block)
    assert sum(values.nbytes for values in block) > 20 * SENT
    with running(tmp_path, servers) as run:
        server = server_of(run, tmp_path)
        server.init(PARAMS, given)
        assert np.array_equal(rows_of(server), kept[1])
        again = server.snapshot(tmp_path / "rows")
        assert list((tmp_path / "rows").iterdir()) == []  # the files have no names
        server.close()
    found = [table["rows"]["words"][0][0] for table in again["servers"]]
    assert np.array_equal(np.sort(np.concatenate(found)), IDS)
    assert max(sizes) <= SENT


def before_call(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int, what: Any
) -> None:
    """Calls `what` once, before call number `at` of a method."""
    call, count = getattr(owner, name), 0

    def called(self: Any, *args: Any) -> Any:
        nonlocal count
        if name != "ask" or "ReadRows" in str(args[0]):
            count += 1
            if count == at:
                what()
        return call(self, *args)

    monkeypatch.setattr(owner, name, called)


def killed(run: Run, again: bool) -> Callable[[], None]:
    """Returns a function that kills, or restarts (`again`), the server of shard 0."""

    def kill() -> None:
        number = run.now().primary(0)
        run.stop(number)
        if again:
            run.start(number)

    return kill


WAYS = [pytest.param(2, 2, False, id="copies"), pytest.param(2, 1, True, id="logs")]


@pytest.mark.parametrize(("servers", "copies", "logs"), WAYS)
def test_a_server_dies_while_a_worker_reads_rows(
    tmp_path: Path,
    sizes: list[int],
    monkeypatch: pytest.MonkeyPatch,
    servers: int,
    copies: int,
    logs: bool,
) -> None:
    with running(tmp_path / "run", servers, copies=copies, logs=logs) as run:
        server = trained(run, tmp_path)
        before = rows_of(server)
        before_call(monkeypatch, WorkerClient, "ask", 5, killed(run, logs))
        taken = server.snapshot(tmp_path / "rows")
        assert np.array_equal(rows_of(server), before)
        server.close()
    found = [table["rows"]["words"][0] for table in taken["servers"]]
    ids, rows, *_ = (np.concatenate(x) for x in zip(*found, strict=True))
    assert np.array_equal(np.sort(ids), IDS)
    assert np.array_equal(rows[np.argsort(ids)], before)


@pytest.mark.parametrize(("servers", "copies", "logs"), WAYS)
def test_a_server_dies_while_a_worker_sends_rows(
    tmp_path: Path,
    sizes: list[int],
    kept: tuple[Path, Any],
    monkeypatch: pytest.MonkeyPatch,
    servers: int,
    copies: int,
    logs: bool,
) -> None:
    with running(tmp_path, servers, copies=copies, logs=logs) as run:
        server = server_of(run, tmp_path)
        before_call(monkeypatch, RowParts, "__getitem__", 9, killed(run, logs))
        server.init(PARAMS, restored(kept))
        assert np.array_equal(rows_of(server), kept[1])
        server.close()


def test_a_worker_dies_and_another_continues(
    tmp_path: Path,
    sizes: list[int],
    kept: tuple[Path, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = threading.Event()
    indices: list[int] = []
    wait, make = WorkerClient._wait_for_rows, RowParts.__getitem__

    def waiting(client: WorkerClient, *args: Any) -> None:
        assert client.name == "worker 1"
        waits.set()
        wait(client, *args)

    def made(parts: RowParts, index: int) -> Any:
        indices.append(index)
        if len(indices) == 5:
            second.start()
            assert waits.wait(20)  # the answer says that another worker sends the rows
            raise RuntimeError("died")
        return make(parts, index)

    monkeypatch.setattr(WorkerClient, "_wait_for_rows", waiting)
    monkeypatch.setattr(RowParts, "__getitem__", made)
    with running(tmp_path, 1) as run:
        one, two = (server_of(run, tmp_path, index) for index in range(2))
        second = threading.Thread(target=lambda: two.init(PARAMS, restored(kept)))
        with pytest.raises(RuntimeError, match="died"):
            one.init(PARAMS, restored(kept))
        second.join(30)
        assert np.array_equal(rows_of(two), kept[1])
        # It starts at the part where the first died; late answers cause repetitions.
        first, others = indices[:5], indices[5:]
        assert min(others) == first[-1]
        assert {*first, *others} == set(range(max(others) + 1))
        # The run has begun: a worker without the snapshot trains with its rows.
        three = server_of(run, tmp_path, 2)
        three.init(PARAMS)
        assert np.array_equal(rows_of(three), kept[1])
        for server in (one, two, three):
            server.close()


def test_a_worker_with_another_snapshot_is_rejected(
    tmp_path: Path,
    sizes: list[int],
    kept: tuple[Path, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def die() -> None:
        raise RuntimeError("died")

    with running(tmp_path, 1) as run:
        with monkeypatch.context() as patch:
            before_call(patch, RowParts, "__getitem__", 3, die)
            with pytest.raises(RuntimeError, match="died"):
                server_of(run, tmp_path).init(PARAMS, restored(kept))
        for given in ({**restored(kept), "name": "another"}, None):
            server = server_of(run, tmp_path, 1)
            with pytest.raises(
                DistributedError, match=r"2 of .* parts have arrived, and"
            ):
                server.init(PARAMS, given)
            server.close()


# -- processes with little memory ------------------------------------------------------

WORKER = """
import resource, sys
import numpy as np
import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim
from fxflow.distributed.parameter_server import (
    Cluster, TableSpec, asynchronous, parameter_server)
from fxflow.distributed.parameter_server.worker import client
from fxflow.distributed.parameter_server.tables.remote import RowParts
from fxflow.train.checkpoint import Checkpointer

servers, shards, what, folder = sys.argv[1:]
ROWS, WIDTH, STEP = 98304, 512, 4096
table = TableSpec("t", WIDTH, optim.adam(0.1), nn.initializers.ones,
                  rows_in_memory=1024, folder=folder + "/rows")
server = parameter_server(
    lambda params, rows, batch: fnp.sum(rows["t"] * batch) + params,
    optim.sgd(0.1), consistency=asynchronous(),
    cluster=Cluster(tuple(servers.split(",")), shards=int(shards)), tables=[table])
checkpoints = Checkpointer(folder + "/kept")
fxflow.devices()  # starts XLA, whose threads and memory do not count

def limit(more):
    status = open("/proc/self/status").read()
    (data,) = (int(l.split()[1]) for l in status.splitlines() if "VmData" in l)
    resource.setrlimit(resource.RLIMIT_DATA, (data * 1024 + more,) * 2)

def report(owner, name, line):
    call = getattr(owner, name)
    def reporting(self, *args):
        if name != "ask" or "ReadRows" in str(args[0]):
            print(line, flush=True)
        return call(self, *args)
    setattr(owner, name, reporting)

def expected(ids):
    # Each row had one push; adam's first step has the size of its rate.
    return 1 - 0.1 * (ids % 3 - 1)[:, None] * np.ones(WIDTH)

if what == "out":
    state = server.init(np.zeros((), np.float32))
    for start in range(0, ROWS, STEP):
        ids = np.arange(start, start + STEP)
        batch = (ids % 3 - 1.0).astype(np.float32)[:, None]
        state, _ = server.step(state, batch, ids={"t": ids})
    server.params(state)
    print("trained", flush=True)
    sys.stdin.readline()
    report(client.WorkerClient, "ask", "part")
    limit(96 << 20)
    checkpoints.save(0, server.snapshot(folder + "/tmp"))
    checkpoints.close()
else:
    report(RowParts, "__getitem__", "part")
    limit(96 << 20)
    server.init(np.zeros((), np.float32), checkpoints.restore(mmap=True))
    rng = np.random.default_rng(0)
    for ids in np.split(rng.permutation(ROWS)[:4000], 8):
        rows = np.asarray(server.rows({"t": ids})["t"])
        np.testing.assert_allclose(rows, expected(ids), rtol=1e-5)
print("done", flush=True)
server.close()
"""


class Processes:
    """Servers and a worker with limited memory."""

    def __init__(self, folder: Path, servers: int, copies: int, shards: int) -> None:
        self.folder, self.copies, self.shards = folder, copies, shards
        folder.mkdir()
        self.addresses = [f"ipc://{folder}/{number}" for number in range(servers)]
        self.servers = {number: self.serve(number) for number in range(servers)}
        self.workers: list[subprocess.Popen[str]] = []

    def serve(self, number: int) -> subprocess.Popen[str]:
        arguments = ["--number", str(number), "--servers", ",".join(self.addresses)]
        arguments += ["--folder", str(self.folder / f"ps-{number}")]
        arguments += ["--copies", str(self.copies), "--shards", str(self.shards)]
        # A slow server must not receive a whole shard again, which takes more memory.
        arguments += ["--silent-after", "3"]
        module = "fxflow.distributed.parameter_server"
        return subprocess.Popen([sys.executable, "-m", module, *arguments], text=True)

    def limit(self, more: int) -> None:
        """Limits the memory that servers may take in addition to the current one."""
        for server in self.servers.values():
            status = Path(f"/proc/{server.pid}/status").read_text()
            data = int(re.search(r"VmData:\s+(\d+) kB", status)[1]) * 1024  # type: ignore[index]
            resource.prlimit(server.pid, resource.RLIMIT_DATA, (data + more,) * 2)

    def work(self, what: str, folder: Path) -> subprocess.Popen[str]:
        arguments = [",".join(self.addresses), str(self.shards), what, str(folder)]
        self.workers.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        return self.workers[-1]

    def kill(self, number: int) -> None:
        self.servers[number].kill()
        self.servers[number].wait()
        if self.copies == 1:
            self.servers[number] = self.serve(number)

    def close(self) -> None:
        for process in [*self.servers.values(), *self.workers]:
            process.kill()
            process.communicate()


def until(worker: subprocess.Popen[str], line: str, times: int = 1) -> None:
    assert worker.stdout is not None
    for output in worker.stdout:
        times -= output.strip() == line
        if not times:
            return
    raise AssertionError(f"{line!r} did not arrive, status {worker.wait()}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("servers", "copies", "shards", "dies"),
    [(1, 1, 0, "worker"), (2, 1, 0, "server"), (2, 2, 3, "server")],
)
def test_processes_with_little_memory(
    tmp_path: Path, servers: int, copies: int, shards: int, dies: str
) -> None:
    """The table has 600 MB; a worker may take 100 MB for it, a server twice that."""
    with contextlib.closing(
        Processes(tmp_path / "a", servers, copies, shards)
    ) as processes:
        worker = processes.work("out", tmp_path)
        until(worker, "trained")
        processes.limit(200 << 20)
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
        until(worker, "part", 5)
        if dies == "server":
            processes.kill(0)
        until(worker, "done")
        assert worker.wait(60) == 0
    size = sum(path.stat().st_size for path in (tmp_path / "kept").rglob("arrays-*"))
    assert size > 600e6
    with contextlib.closing(
        Processes(tmp_path / "b", servers, copies, shards)
    ) as processes:
        worker = processes.work("in", tmp_path)
        until(worker, "part", 20)
        processes.limit(200 << 20)
        until(worker, "part", 20)
        if dies == "server":
            processes.kill(0)
        if dies == "worker":
            os.kill(worker.pid, signal.SIGKILL)
            worker = processes.work("in", tmp_path)
        until(worker, "done")
        assert worker.wait(60) == 0
