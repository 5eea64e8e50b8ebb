"""Snapshots replace logs, and a process killed at any point loses nothing."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.messages import codec
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.consistency import asynchronous
from fxflow.distributed.parameter_server.model import make_model
from fxflow.distributed.parameter_server.server.archive import (
    Archive,
    EntryLog,
    read_log,
)
from fxflow.distributed.parameter_server.server.store import Store
from fxflow.distributed.parameter_server.tables.spec import TableSpec
from fxflow.errors import DistributedError
from fxflow.nn import initializers

W = np.zeros(200, np.float32)
IDS = 40


class Killed(BaseException):
    """The process ended here."""


class Disk:
    """Replaces functions that write, so that the process dies at any byte."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng, self.left, self.dead = random.Random(0), -1, False
        self._files: list[Any] = []
        write, begin = os.write, EntryLog.__init__

        def noted(log: EntryLog, path: Path) -> None:
            begin(log, path)
            self._files.append(log._file)

        monkeypatch.setattr(EntryLog, "__init__", noted)
        monkeypatch.setattr(os, "write", self._half(write))
        for owner, name in ((os, "fsync"), (Path, "replace"), (Path, "unlink")):
            monkeypatch.setattr(owner, name, self._step(getattr(owner, name)))

    def lives(self, rng: random.Random, writes: int) -> None:
        """Begins a process that is killed in write number `writes`; −1: never."""
        self.rng, self.left, self.dead = rng, writes, False
        while self._files:
            self._files.pop().close()

    def _dies(self) -> bool:
        self.left -= not self.dead
        self.dead = self.dead or self.left == 0
        return self.dead

    def _half(self, write: Callable[[int, Any], int]) -> Callable[[int, Any], int]:
        def half(file: int, data: Any) -> int:
            was = self.dead
            if not self._dies():
                return write(file, data)
            if not was:
                write(file, data[: self.rng.randint(0, len(data))])
            raise Killed

        return half

    def _step(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **kwargs: Any) -> Any:
            was = self.dead
            if not self._dies():
                return call(*args, **kwargs)
            if not was and self.rng.random() < 0.5:
                call(*args, **kwargs)
            raise Killed

        return step


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def opened(folder: Path, size: int = 4000) -> Store:
    store = Store(0, folder, snapshot_bytes=size)
    store.open(0)
    return store


def begun(folder: Path, size: int = 4000, rows: Path | None = None) -> Store:
    """Returns a store whose shard sums pushes, in `w` and in rows of a table."""
    store = opened(folder, size)
    place = {} if rows is None else {"folder": str(rows), "rows_in_memory": 8}
    table = TableSpec("t", 2, optim.sgd(-1.0), initializers.zeros, **place)
    model = make_model(
        ["w"], [W], optim.sgd(-1.0), asynchronous(rate="fixed"), tables=[table]
    )
    fields, arrays = model.to_message()
    offer = messages.Offer(0, fields, [])
    store.append(0, Message.of(offer, 1, 0, 1, {**arrays, "param/w": W}))
    store.append(0, Message.of(messages.Join(0, ""), 1, 0, 1))
    return store


def push(store: Store, number: int) -> None:
    ids = np.array([number % IDS, (7 * number + 1) % IDS])
    arrays = {
        "0": np.ones_like(W),
        "rows/t/ids": ids,
        "rows/t/gradients": np.ones((2, 2), np.float32),
    }
    fields = messages.Gradient(0, number - 1, number - 1)
    assert store.append(0, Message.of(fields, 1, number, 1, arrays)) == ""


def rows_after(count: int) -> np.ndarray[Any, Any]:
    rows = np.zeros(IDS)
    for number in range(1, count + 1):
        rows[number % IDS] += 1
        rows[(7 * number + 1) % IDS] += 1
    return rows


def check(store: Store, count: int) -> None:
    shard = store.shards[0]
    assert shard.ledger.last(1) == count
    np.testing.assert_array_equal(np.asarray(shard.params[0]), np.full_like(W, count))
    rows = shard.table("t").pull(np.arange(IDS))
    np.testing.assert_array_equal(rows[:, 0], rows_after(count))


def settle(store: Store) -> None:
    thread = store._archives[0]._thread
    if thread is not None:
        thread.join()


def taken(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


@pytest.mark.parametrize("on_disk", [False, True])
def test_files_do_not_grow_with_the_run(tmp_path: Path, on_disk: bool) -> None:
    if on_disk:
        pytest.importorskip("lmdb")
    folder = tmp_path / "logs"
    store = begun(folder, rows=tmp_path / "rows" if on_disk else None)
    record, most = 0, 0
    for number in range(1, 301):
        before = store._archives[0]._log.size
        push(store, number)
        record = max(record, store._archives[0]._log.size - before)
        settle(store)
        most = max(most, taken(folder))
    state = max(path.stat().st_size for path in folder.glob("*.state"))
    # Twice a snapshot, its rows and a log; a single log would have 300 records.
    bound = 2 * (state + max(4000, state) + record) + 4 * 4000
    assert most < bound < 300 * record / 2
    store.close()
    again = opened(folder)
    check(again, 300)
    assert again._archives[0]._since * record < max(4000, state) + record
    again.close()


def test_a_snapshot_has_only_the_rows_that_changed(tmp_path: Path) -> None:
    store = begun(tmp_path, size=1 << 30)
    for number in range(1, 81):
        push(store, number)
    store._write_snapshot(0, store._archives[0])
    settle(store)
    push(store, 81)
    store._write_snapshot(0, store._archives[0])
    settle(store)
    first, second = sorted(tmp_path.glob("*.rows"))
    assert 2 * second.stat().st_size < first.stat().st_size
    push(store, 82)
    store.close()
    again = opened(tmp_path)
    assert {name: len(b.ids) for name, b in again._archives[0].rows()} == {"t": 2}
    check(again, 82)
    again.close()


def test_pushes_continue_while_a_snapshot_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    sync = EntryLog.sync
    store = begun(tmp_path, size=1 << 30)

    def late(log: EntryLog) -> None:
        if log.path.suffix != ".log":
            held.wait(10)
        sync(log)

    monkeypatch.setattr(EntryLog, "sync", late)
    for number in range(1, 4):
        push(store, number)
    store._write_snapshot(0, store._archives[0])
    for number in range(4, 9):
        push(store, number)
    assert not list(tmp_path.glob("*.state"))
    held.set()
    settle(store)
    assert len(list(tmp_path.glob("*.state"))) == 1
    store.close()
    again = opened(tmp_path)
    assert again._archives[0]._since == 5
    check(again, 8)
    again.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    "seed",
    [pytest.param(s, marks=[pytest.mark.soak] if s > 2 else []) for s in range(200)],
)
def test_a_process_killed_at_any_byte_loses_nothing(
    tmp_path: Path, disk: Disk, seed: int
) -> None:
    rng = random.Random(seed)
    size = rng.choice((1500, 4000))
    begun(tmp_path, size).close()
    count = 0
    for _ in range(8):
        disk.lives(rng, rng.randint(1, 120))
        store, entered = None, count
        try:
            store = opened(tmp_path, size)
            for _ in range(rng.randint(1, 40)):
                entered += 1
                push(store, entered)
                count = entered
                if rng.random() < 0.1:
                    state = store.state(0)
                    store.load(0, state)
                if rng.random() < 0.5:
                    settle(store)
        except Killed:
            assert disk.dead
        finally:
            disk.dead, disk.left = True, 0
            if store is not None:
                store.close()  # the dead process's file descriptors
        disk.lives(rng, -1)
        again = opened(tmp_path, size)
        found = again.shards[0].ledger.last(1)
        # A push that was not acknowledged may exist or not.
        assert count <= found <= entered
        check(again, found)
        count = found
        again.close()
    disk.lives(rng, -1)


def test_a_log_whose_predecessor_is_incomplete_is_ignored(tmp_path: Path) -> None:
    store = begun(tmp_path, size=1 << 30)
    push(store, 1)
    archive = store._archives[0]
    archive._finish = lambda *_: None  # type: ignore[method-assign]
    store._write_snapshot(0, archive)
    push(store, 2)
    store.close()
    first, second = sorted(tmp_path.glob("*.log"))
    with first.open("r+b") as file:  # as a loss of power may leave it
        file.truncate(first.stat().st_size - 1)
    again = opened(tmp_path)
    check(again, 0)
    assert not second.exists()
    push(again, 1)
    again.close()


@pytest.mark.parametrize("kind", ["state", "rows"])
def test_a_damaged_snapshot_is_named(tmp_path: Path, kind: str) -> None:
    store = begun(tmp_path, size=1 << 30)
    push(store, 1)
    store._write_snapshot(0, store._archives[0])
    settle(store)
    store.close()
    (path,) = tmp_path.glob(f"*.{kind}")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DistributedError, match=f"000001.{kind} is damaged"):
        opened(tmp_path)


def test_a_snapshot_that_cannot_be_written_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = begun(tmp_path)

    def full(self: Archive, *_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Archive, "_finish", full)
        for number in range(1, 41):
            push(store, number)
        settle(store)
    said = capfd.readouterr().err
    assert "was not written, its log continues" in said and said.count("fxflow") < 5
    for number in range(41, 101):
        push(store, number)
        settle(store)
    assert list(tmp_path.glob("*.state"))
    store.close()
    again = opened(tmp_path)
    check(again, 100)
    again.close()


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left"), MemoryError()], ids=repr
)
def test_a_snapshot_after_a_failed_one_has_all_changed_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    store = begun(tmp_path, size=1 << 30)
    archive = store._archives[0]

    def fail(self: Archive, *_: Any) -> None:
        raise error

    for fails, end in ((False, 31), (True, 41), (False, 42)):
        for number in range(store.shards[0].ledger.last(1) + 1, end):
            push(store, number)
        with monkeypatch.context() as patch:
            if fails:
                patch.setattr(Archive, "_finish", fail)
            store._write_snapshot(0, archive)
            settle(store)
    store.close()
    again = opened(tmp_path)
    check(again, 41)
    again.close()


# -- log -------------------------------------------------------------------------------


def entries(count: int) -> list[Message]:
    big = np.arange(700_000, dtype=np.float32)  # several frames
    return [
        Message.of(messages.Gradient(0, i, 0), 1, i, arrays={"0": big + i})
        for i in range(count)
    ]


def numbers(path: Path) -> list[int]:
    found = []
    for entry in read_log(path):
        np.testing.assert_array_equal(
            entry.arrays["0"][:3], np.arange(3) + entry.sequence
        )
        found.append(entry.sequence)
    return found


def test_written_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a" / "log"
    assert list(read_log(path)) == []
    for _ in range(2):
        log = EntryLog(path)
        for entry in entries(2):
            log.append(entry)
        log.sync()
        assert log.size == path.stat().st_size
        log.close()
    assert numbers(path) == [0, 1, 0, 1]


def test_the_log_of_another_version_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    with monkeypatch.context() as patch:
        patch.setattr(codec, "VERSION", codec.VERSION + 1)
        log = EntryLog(path)
        log.append(entries(1)[0])
        log.close()
    size = path.stat().st_size
    with pytest.raises(DistributedError, match="another version of fxflow"):
        list(read_log(path))
    assert path.stat().st_size == size


@pytest.mark.parametrize("cut", [1, 5, 100, 2_799_990])
def test_an_incomplete_record_is_truncated(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    log = EntryLog(path)
    for entry in entries(2):
        log.append(entry)
    log.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - cut)
    assert numbers(path) == [0]
    assert path.stat().st_size == size // 2
    log = EntryLog(path)
    log.append(entries(2)[1])
    log.close()
    assert numbers(path) == [0, 1]


def test_reading_stops_at_a_damaged_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EntryLog(path)
    for entry in entries(3):
        log.append(entry)
    log.close()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert numbers(path) == [0]


def test_reading_without_repair_truncates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EntryLog(path)
    log.append(entries(1)[0])
    log.close()
    with path.open("r+b") as file:
        file.truncate(log.size - 1)
    assert list(read_log(path, repair=False)) == []
    assert path.stat().st_size == log.size - 1
