import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.distributed.parameter_server.monitor.figures import (
    Figures,
    Monitor,
    ServerFigures,
    WorkerFigures,
    bins,
    redrawn,
    scalars,
    table,
)

pytest.importorskip("zmq")

from fxflow import optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    asynchronous,
    filters,
    parameter_server,
)
from fxflow.distributed.parameter_server.monitor.figures import flat_counts
from tests.distributed.parameter_server.server.harness import (
    push,
    running,
    worker,
)

PARAMS = {"a": np.ones((64, 64), np.float32), "b": np.ones(4, np.float32)}


def loss(params: Any, batch: Any) -> Any:
    return (params["a"].sum() + params["b"].sum()) * batch


def test_counts_and_rates_of_a_run() -> None:
    local = LocalServers(2)
    exchange = filters.by_group({"b": "f32"}, "int8")
    server = parameter_server(
        loss,
        optim.sgd(0.1),
        consistency=asynchronous(),
        cluster=local.cluster,
        exchange=exchange,
    )
    with Monitor(local.cluster.servers) as monitor:
        state = server.init(PARAMS)
        before = monitor.look()
        for _ in range(5):
            state, _ = server.step(state, np.float32(1))
        server.params(state)
        after = monitor.look()
        traffic = server.traffic()
    server.close()
    local.close()
    assert before.seconds == 0 and after.seconds > 0
    (worker,) = after.workers
    assert (worker.name, worker.clock) == ("worker 0", 5)
    assert worker.rate > 0 and worker.silent < 5
    assert after.total("pushes") == {"": 10.0}  # 5 at each server
    assert after.total("staleness") == {"0": 10.0}
    assert after.rate("updates")[""] > 0
    # Bytes by filter count arrays; those of messages also count the frames.
    assert sum(after.total("push").values()) == 5 * traffic.push_bytes
    assert after.total("push")["f32"] == 5 * 16
    pushed = after.total("received_bytes")["push"]
    assert 1 < pushed / (5 * traffic.push_bytes) < 2
    assert all(0 < s.load <= 1 for s in after.servers)
    assert [number for s in after.servers for number, _ in s.served] == [0, 1]


def test_a_late_worker_begins_at_the_clock_of_the_fastest(
    tmp_path: Path,
) -> None:
    with running(tmp_path, 2) as run, worker(run, name="first") as first:
        for _ in range(4):
            first.wait(push(first))
        with worker(run, name="late") as late, Monitor(run.view.addresses) as monitor:
            late.wait(push(late))
            clocks = {w.name: w.clock for w in monitor.look().workers}
    assert clocks == {"first": 4, "late": 5}


def test_replicas_are_not_counted_twice() -> None:
    def shard(serves: bool) -> dict[str, Any]:
        return {
            "serves": serves,
            "pushes": 3,
            "updates": 2,
            "repeated": 0,
            "dropped": {"stale": 1},
            "staleness": {"0": 2},
        }

    stats = {
        "shards": {"0": shard(True), "1": shard(False)},
        "traffic": {"sent": {"pong": 4}, "dropped": {"slow": 1}},
        "filters": {"push": {"f32": 8}},
        "busy": {"push": 0.5},
        "cpu": 1.5,
    }
    assert flat_counts(stats) == {
        ("pushes", ""): 3,
        ("updates", ""): 2,
        ("repeated", ""): 0,
        ("dropped", "stale"): 1,
        ("staleness", "0"): 2,
        ("sent", "pong"): 4,
        ("dropped_messages", "slow"): 1,
        ("push", "f32"): 8,
        ("busy", "push"): 0.5,
        ("cpu", ""): 1.5,
    }


def test_a_monitor_with_a_sequence_follows_servers_that_join() -> None:
    local = LocalServers(1, shards=2)
    options: Any = {"consistency": asynchronous(), "cluster": local.cluster}
    server = parameter_server(loss, optim.sgd(0.1), **options)
    with Monitor(local.cluster.servers) as monitor:
        server.init(PARAMS)
        local.add()
        alone = Monitor({0: local.cluster.servers[0]})
        for watched, count in ((monitor, 2), (alone, 1)):
            watched.look()
            figures = watched.look()
            assert len(figures.servers) == count
            assert not any(found.problem for found in figures.servers)
        alone.close()
    assert str(server.plan).startswith("shard")
    server.close()
    local.close()


# -- numbers for logs ------------------------------------------------------------------

COUNTS = {("dropped", "stale"): 3.0, ("staleness", "0"): 9.0}
RATES = {
    ("pushes", ""): 4.0,
    ("busy", "push"): 0.25,
    ("staleness", "0"): 3.0,
    ("staleness", "4"): 1.0,
    ("push", "int8(256)"): 100.0,
    ("received_bytes", "push"): 120.0,
}
SERVERS = [
    ServerFigures(0, "a:1", "", COUNTS, RATES, {"shards": {}}),
    ServerFigures(1, "b:1", "gone", {}, {}, {}),
]


def test_scalars_of_two_readings() -> None:
    figures = Figures(2.0, SERVERS, [WorkerFigures("worker 0", 9, 2.5, 0.25)])
    assert scalars(figures, "ps") == {
        "ps/answering": 1,
        "ps/pushes_per_second": 4,
        "ps/updates_per_second": 0,
        "ps/bytes_in_per_second": 120,
        "ps/bytes_out_per_second": 0,
        "ps/load/0": 0.25,
        "ps/push/int8(256)": 100,
        "ps/staleness": 1,
        "ps/dropped/stale": 3,
        "ps/clock/worker 0": 9,
    }


def test_scalars_of_the_first_reading_have_no_rates() -> None:
    once = SERVERS[0]._replace(rates={})
    assert scalars(Figures(0.0, [once], [])) == {
        "servers/answering": 1,
        "servers/staleness": 0,
        "servers/dropped/stale": 3,
    }


# -- as text ---------------------------------------------------------------------------

SHARD = {
    "serves": True,
    "version": 7,
    "bytes": 4_000_000,
    "holders": [0],
    "places": [0],
}
SHOWN_COUNTS = {
    ("pushes", ""): 100.0,
    ("staleness", "0"): 60.0,
    ("staleness", "3"): 40.0,
    ("dropped", "stale"): 3.0,
}
SHOWN_RATES = {
    ("pushes", ""): 12.5,
    ("staleness", "0"): 3.0,
    ("staleness", "3"): 1.0,
    ("busy", "push"): 0.25,
    ("received_bytes", "push"): 2e6,
    ("push", "int8(256)"): 1.9e6,
}
STATS = {"shards": {"0": SHARD}, "waiting": 2}
SHOWN_SERVERS = [
    ServerFigures(0, "a:1", "", SHOWN_COUNTS, SHOWN_RATES, STATS),
    ServerFigures(1, "b:1", "the connection was lost", {}, {}, {}),
]
WORKERS = [WorkerFigures("worker 0", 9, 2.5, 0.26), WorkerFigures("chief 0", 10, 0, 3)]
TABLE = """
server  load  pushes/s  updates/s  in/s  out/s  version  holds  waiting  shards
0        25%      12.5          0  2 MB    0 B        7   4 MB        2       0
1          -         -          -     -      -        -      -        -       -
server 1 at b:1 does not answer: the connection was lost
worker    clock  steps/s      heard
worker 0      9      2.5  0.3 s ago
chief 0      10        0  3.0 s ago
staleness  pushes  now
0           75.0%  ██████████████████
1            0.0%
2            0.0%
3-4         25.0%  ██████
dropped         stale 3 (0/s)
in by kind      push 2 MB/s
push by filter  int8(256) 1.9 MB/s
"""


def test_the_table_of_two_readings() -> None:
    text = table(Figures(2.0, SHOWN_SERVERS, WORKERS))
    first, rest = text.split("\n", 1)
    assert first.endswith("2 servers, 2 workers, over 2.0 s")
    assert "\n" + rest == TABLE


def test_shards_that_move_are_listed() -> None:
    moving = {**SHARD, "places": [2, 0]}
    stats = {**STATS, "shards": {"0": SHARD, "4": moving, "5": moving}}
    text = table(Figures(2.0, [SHOWN_SERVERS[0]._replace(stats=stats)], []))
    assert "moving shards: 4 to server 2, 5 to server 2" in text.splitlines()


def test_the_table_of_the_first_reading_has_no_rates() -> None:
    once = SHOWN_SERVERS[0]._replace(rates={})
    text = table(Figures(0.0, [once], WORKERS[:1]))
    assert "over" not in text
    assert "since the start" in text and "60.0%" in text
    assert text.splitlines()[2].split()[1:6] == ["-"] * 5


def test_staleness_is_counted_in_bins_of_powers_of_two() -> None:
    assert bins({}) == {"0": 0, "1": 0}
    found = bins({"0": 1, "2": 2, "3": 3, "4": 4, "5": 5, "9": 6, "99": 0})
    assert found == {"0": 1, "1": 0, "2": 2, "3-4": 7, "5-8": 5, "9-16": 6}


def test_text_is_cut_to_the_size_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = os.terminal_size((5, 4))
    monkeypatch.setattr(shutil, "get_terminal_size", lambda *args, **kwargs: size)
    assert redrawn("1234567\n2\n3\n4\n5\n", 0) == ("\x1b[J12345\n2\n3\n", 3)
    assert redrawn("1\n", 3) == ("\x1b[3A\x1b[J1\n", 1)
