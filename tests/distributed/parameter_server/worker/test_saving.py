"""Snapshots whose rows servers write: whole, then what changed, on any servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import nn, optim, tree
from fxflow import numpy as fnp
from fxflow.distributed.parameter_server import (
    LocalServers,
    TableSpec,
    asynchronous,
    load_snapshot,
    parameter_server,
    saved_snapshots,
)
from fxflow.distributed.parameter_server.server.saving import RowWriter
from fxflow.distributed.parameter_server.worker import saving
from fxflow.errors import ArgumentError, DistributedError

pytest.importorskip("zmq")

PARAMS = {"layer": {"b": np.zeros(2, np.float32), "w": np.ones((5, 2), np.float32)}}
EVERY = np.arange(40)


def loss(params: Any, rows: Any, x: Any) -> Any:
    found = fnp.mean(params["layer"]["w"] ** 2) + fnp.sum(params["layer"]["b"] * x)
    return found + fnp.sum(rows["a"] ** 2) * x + fnp.sum(rows["b"] ** 2)


TABLES = [
    TableSpec("a", 3, optim.adagrad(0.1), expire_after=50, stored="int8"),
    TableSpec("b", (), optim.sgd(0.1), nn.initializers.ones),
]


class Run:
    def __init__(
        self,
        servers: int,
        snapshot: Any = None,
        tables: Any = TABLES,
        shards: int = 0,
    ) -> None:
        self.local = LocalServers(servers, shards=shards)
        self.server = parameter_server(
            loss,
            optim.adam(0.1),
            consistency=asynchronous(),
            cluster=self.local.cluster,
            deadline=20,
            tables=tables,
        )
        self.state = self.server.init(PARAMS, snapshot)

    def step(self, *ids: int) -> None:
        named = {"a": np.array(ids), "b": np.array(ids) // 2}
        self.state, _ = self.server.step(self.state, np.float32(0.5), ids=named)
        self.server.params(self.state)

    def values(self) -> Any:
        rows = self.server.rows({"a": EVERY, "b": EVERY})
        return tree.map(np.asarray, (self.server.params(self.state), rows))

    def close(self) -> None:
        self.server.close()
        self.local.close()


def check_equal(one: Any, two: Any) -> None:
    for a, b in zip(tree.leaves(one), tree.leaves(two), strict=True):
        assert np.array_equal(a, b)


def generations(folder: Path, number: int) -> list[list[tuple[str, int, bool]]]:
    manifest = json.loads((folder / f"snapshot-{number:06}.json").read_text())
    return [
        [(g["folder"][:6], g["rows"], g["whole"]) for g in tables["a"]]
        for tables in manifest["shards"]
    ]


@pytest.mark.slow
def test_changes_are_saved_and_a_run_continues_on_other_servers(
    tmp_path: Path,
) -> None:
    run, expected = Run(2), {}
    for ids in (1, 2, 3, 4, 5, 6, 7, 8), (2, 3), (3, 30):
        run.step(*ids)
        number = run.server.save(tmp_path)
        expected[number] = run.values()
    run.close()
    assert saved_snapshots(tmp_path) == [1, 2, 3]
    # Even ids are on server 0, odd ones on server 1; pulled rows do not change.
    assert generations(tmp_path, 3) == [
        [("000001", 4, True), ("000002", 1, False), ("000003", 1, False)],
        [("000001", 4, True), ("000002", 1, False), ("000003", 1, False)],
    ]
    assert not list(tmp_path.rglob("*.new"))
    for number, servers in (3, 3), (2, 1), (1, 2):
        snapshot = load_snapshot(tmp_path, None if number == 3 else number)
        again = Run(servers, snapshot)
        check_equal(again.values(), expected[number])
        if servers == 3:
            again.step(3, 4)  # the optimizer's state continues, too
            assert again.server.save(tmp_path) == 4
            assert all(g[-1][2] for g in generations(tmp_path, 4))
        again.close()


@pytest.mark.slow
def test_shards_are_split_and_merged_by_a_snapshot(tmp_path: Path) -> None:
    """A run that changes its number of shards learns what an unbroken one does."""
    tables = [
        TableSpec("a", 3, optim.adagrad(0.1)),
        TableSpec("b", (), optim.adam(0.1), nn.initializers.ones),
    ]
    steps = [tuple(range(i, i + 5)) for i in (0, 3, 1, 3, 0, 4, 2, 2)]
    unbroken = Run(2, tables=tables)
    for ids in steps:
        unbroken.step(*ids)
    expected = unbroken.values()
    unbroken.close()
    run = Run(1, tables=tables, shards=2)
    for split, ids in zip((0, 0, 4, 0, 0, 1, 0, 0), steps, strict=True):
        if split:
            run.server.save(tmp_path)
            before = run.values()
            run.close()
            run = Run(1, load_snapshot(tmp_path), tables, shards=split)
            assert len(run.local.servers[0].view.holders) == split
            check_equal(run.values(), before)
        run.step(*ids)
    for a, b in zip(tree.leaves(run.values()), tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    run.close()


@pytest.mark.slow
def test_only_some_snapshots_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(1)
    run.step(*range(10))
    for step in range(4):
        run.step(step)
        run.server.save(tmp_path, keep=2)
    # The base of the changes is needed still.
    assert saved_snapshots(tmp_path) == [3, 4]
    folders = {path.name[:6] for path in tmp_path.iterdir() if path.is_dir()}
    assert folders == {"000001", "000002", "000003", "000004"}
    expected = run.values()
    monkeypatch.setattr(saving, "_wants_all", lambda manifest: True)
    run.server.save(tmp_path, keep=1)
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
    run.close()
    again = Run(1, load_snapshot(tmp_path))
    check_equal(again.values(), expected)
    again.close()
    with pytest.raises(ArgumentError, match="keep must be at least 1, got 0"):
        Run(1).server.save(tmp_path, keep=0)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    simple = [TableSpec(t, (), optim.sgd(0.1), nn.initializers.ones) for t in "ab"]
    run = Run(1, tables=simple)
    run.step(1, 2, 3)
    run.server.save(folder)
    run.close()
    return folder


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def of_version(path: Path) -> None:
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": 2}))


@pytest.mark.parametrize(
    ("which", "change", "message"),
    [
        ("*/shard-0000/table-0.1", damage, "table-0.1, a file .* is damaged"),
        ("*/shard-0000/table-0.0", shorten, "it has 23 bytes, 24 were written"),
        ("*/shard-0000/table-1.0", Path.unlink, "No such file"),
        ("*/dense", damage, "dense is missing or damaged"),
        ("*/dense", Path.unlink, "dense is missing or damaged"),
        ("snapshot-*.json", of_version, "format 2, this fxflow reads format 1"),
        ("snapshot-*.json", shorten, "cannot be read"),
    ],
)
def test_a_damaged_snapshot_is_refused(
    saved: Path, which: str, change: Callable[[Path], None], message: str
) -> None:
    (path,) = saved.glob(which)
    before = path.read_bytes()
    change(path)
    with pytest.raises(DistributedError, match=message):
        load_snapshot(saved)
    path.write_bytes(before)
    assert load_snapshot(saved)["name"].startswith("000001-")


def test_messages_of_another_version_are_refused(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fxflow.distributed.messages import codec

    monkeypatch.setattr(codec, "VERSION", codec.VERSION + 1)
    with pytest.raises(DistributedError, match="was written by another version"):
        load_snapshot(saved)


def test_missing_snapshots_are_named(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(ArgumentError, match="has no snapshot: it has"):
        load_snapshot(tmp_path)
    with pytest.raises(ArgumentError, match=r"has no snapshot 7: it has \[1\]"):
        load_snapshot(saved, 7)


@pytest.mark.slow
def test_a_snapshot_that_cannot_be_written_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(1)
    run.step(1, 2)
    assert run.server.save(tmp_path) == 1

    def fail(self: RowWriter, name: str) -> Any:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RowWriter, "_write", fail)
        with pytest.raises(DistributedError, match=r"server 0 .*No space left"):
            run.server.save(tmp_path)
    assert saved_snapshots(tmp_path) == [1]
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1
    run.step(5)
    assert run.server.save(tmp_path) == 2
    # The changes that the failed snapshot had are not lost.
    assert generations(tmp_path, 2)[0][-1] == ("000002", 3, True)
    expected = run.values()
    run.close()
    again = Run(2, load_snapshot(tmp_path))
    check_equal(again.values(), expected)
    again.close()


@pytest.mark.slow
def test_rows_of_another_cut_are_not_saved() -> None:
    run = Run(1)
    run.step(1)
    client = run.server._run.client
    from fxflow.distributed.parameter_server import messages

    with pytest.raises(DistributedError, match="make another one"):
        client.ask({0: messages.SaveRows(0, 5, "/nowhere")})
    run.close()
