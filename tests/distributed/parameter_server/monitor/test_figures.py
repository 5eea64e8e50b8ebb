from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zmq")

from fxflow import optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    asynchronous,
    filters,
    parameter_server,
)
from fxflow.distributed.parameter_server.monitor import (
    Figures,
    Monitor,
    ServerFigures,
    WorkerFigures,
    scalars,
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
