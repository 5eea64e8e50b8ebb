"""Shards move on request and by load under training, and no push is lost."""

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    asynchronous,
    move_shard,
    moving,
    parameter_server,
    rebalance_shards,
)
from fxflow.distributed.parameter_server.command import main
from fxflow.distributed.parameter_server.monitor import polling
from fxflow.distributed.parameter_server.moving import shard_loads
from fxflow.distributed.parameter_server.views import first_view
from fxflow.errors import DistributedError
from tests.distributed.parameter_server.server.harness import (
    Run,
    push,
    running,
    totals,
    worker,
)

pytest.importorskip("zmq")


@contextlib.contextmanager
def training(run: Run) -> Iterator[list[int]]:
    """Yields while a worker pushes; the list has the pushes, and no more afterwards.

    It has the count of pushes and, when it has ended, the sum in each shard.
    """
    stop, pushes, errors = threading.Event(), [0], []

    def train() -> None:
        try:
            with worker(run) as client:
                while not stop.is_set():
                    found = totals(client, push(client))
                    pushes[0] += 1
                    assert found == [pushes[0]] * len(found)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=train)
    thread.start()
    try:
        pushed(pushes, 1)
        yield pushes
        pushed(pushes, pushes[0] + 1)  # after everything that happened
    finally:
        stop.set()
        thread.join(60)
    assert errors == []


def pushed(pushes: list[int], count: int) -> None:
    """Waits until the worker has made a number of pushes."""
    end = time.monotonic() + 60
    while pushes[0] < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def check_sums(run: Run, pushes: list[int], copies: int) -> None:
    for shard in range(len(run.now().holders)):
        assert run.sums(shard) == [pushes[0]] * copies, run.described()


@pytest.mark.parametrize("copies", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_push_is_lost_while_a_shard_moves(tmp_path: Path, copies: int) -> None:
    lines: list[str] = []
    with running(tmp_path, 3, copies=copies, shards=4) as run:
        servers = list(run.view.addresses)
        with training(run) as pushes:
            for server in (1, 2, 0):
                before = pushes[0]
                move_shard(servers[:1], 3, server, deadline=60, log=lines.append)
                assert run.now().primary(3) == server
                assert len(run.now().holders[3]) == copies
                pushed(pushes, before + 3)
            assert [held[0] for held in run.now().holders[:3]] == [0, 1, 2]
        check_sums(run, pushes, copies)
    assert lines[0].startswith("shard 3: server 0")
    assert lines[1].startswith("all shards have moved after")
    # Server 0 has lent its place to server 1, and then got it back.
    assert len(lines) == 6


def test_hot_shards_move_apart_under_training(tmp_path: Path) -> None:
    lines: list[str] = []
    with running(tmp_path, 2, copies=1, shards=4) as run:
        servers = list(run.view.addresses)
        with training(run) as pushes:
            # Shards 0 and 2 of server 0 cost it 1,000 times what they did.
            for shard in (0, 2):
                hot = run.servers[0].meter.loads
                hot.add(shard, 1000.0, time.monotonic())
            rebalance_shards(servers, deadline=60, log=lines.append)
            view = run.now()
            assert sorted(view.primary(shard) for shard in (0, 2)) == [0, 1]
            assert view.holders == view.places
        check_sums(run, pushes, 1)
    assert any("more than a server's fair share" in line for line in lines) is False


@pytest.mark.slow
def test_balanced_shards_stay_and_a_shard_that_is_too_hot_is_named(
    tmp_path: Path,
) -> None:
    lines: list[str] = []
    with running(tmp_path, 2, copies=1, shards=4) as run, worker(run) as client:
        client.wait(push(client))
        for shard in range(4):
            server = run.servers[shard % 2]
            server.meter.loads.add(shard, 1000.0, time.monotonic())
        before = run.now().places
        rebalance_shards(run.view.addresses, log=lines.append)
        assert lines == ["all shards are where they should be"]
        assert run.now().places == before
        run.servers[1].meter.loads.add(3, 1e4, time.monotonic())
        rebalance_shards(run.view.addresses, log=lines.append)
        assert run.now().served_by(run.now().primary(3)) == [3]
        (line,) = [line for line in lines if "fair share" in line]
        assert line.startswith("shard 3 has ") and "(--shards) divides it" in line
        assert totals(client, push(client)) == [2] * 4


def test_a_server_without_a_shard_is_not_asked_for_its_load() -> None:
    view = first_view(["a:1", "b:1"], shards=3)
    stats: dict[int, Any] = {
        0: {"shards": {"0": {"serves": True, "load": 0.5}}},
        1: {"shards": {"1": {"serves": False, "load": 0.2}}},
    }
    assert shard_loads(stats, view) == {0: 0.5}


# -- errors ----------------------------------------------------------------------------


def test_what_cannot_move_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(tmp_path, 2, copies=1, shards=4) as run:
        servers = list(run.view.addresses)
        with pytest.raises(DistributedError, match="has not begun"):
            move_shard(servers, 0, 1)
        with worker(run) as client:
            client.wait(push(client))
            for shard, server, why in [
                (4, 1, "there is no shard 4: the run has 4, numbered from 0"),
                (-1, 1, "there is no shard -1"),
                (0, 2, "server 2 is not one of the servers that hold shards, [0, 1]"),
            ]:
                text = f"--servers={','.join(servers)}"
                assert main(["move", text, "--", str(shard), str(server)]) == 1
                assert why in capsys.readouterr().err
            assert run.now().holders == run.view.holders


def test_fixed_shards_do_not_move() -> None:
    local = LocalServers(2)
    server = parameter_server(
        lambda w, x: (w * x).sum(),
        optim.sgd(1.0),
        consistency=asynchronous(),
        cluster=local.cluster,
    )
    server.init(np.zeros(3, np.float32))
    for ask in (
        lambda: move_shard(local.cluster.servers, 0, 1),
        lambda: rebalance_shards(local.cluster.servers),
    ):
        with pytest.raises(DistributedError, match=r"2 shards is fixed .* --ps-shards"):
            ask()
    server.close()
    local.close()


@pytest.mark.slow
def test_a_late_move_is_named(tmp_path: Path) -> None:
    with running(tmp_path, 2, copies=1, shards=4) as run, worker(run) as client:
        client.wait(push(client))
        servers = run.view.addresses
        # Server 1 never says that it has the shard.
        run.servers[1]._replicas._send_position = lambda *_, **__: None  # type: ignore[method-assign]
        with pytest.raises(
            DistributedError,
            match=r"shards 0 have not moved within 0\.1 s, because .*(lack|agreed)",
        ):
            move_shard(servers, 0, 1, deadline=0.1, log=lambda line: None)
        assert totals(client, push(client)) == [2] * 4


def test_another_plan_in_between_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path, 2, copies=1, shards=4) as run, worker(run) as client:
        client.wait(push(client))
        servers, statistics = run.view.addresses, polling.run_statistics

        def move_another(*args: Any) -> Any:
            monkeypatch.setattr(polling, "run_statistics", statistics)
            move_shard(servers, 1, 0, log=lambda line: None)
            return statistics(*args)

        # Both are planned for the same view; this one is the second.
        state = moving._state(servers, None)
        monkeypatch.setattr(moving, "_state", lambda *_: state)
        monkeypatch.setattr(polling, "run_statistics", move_another)
        with pytest.raises(DistributedError, match="assigned again"):
            move_shard(servers, 0, 1, log=lambda line: None)
        assert run.now().places == ((0,), (0,), (0,), (1,))
