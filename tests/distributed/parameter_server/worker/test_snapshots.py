"""Snapshots: the same pushes on every server, and runs that begin with them."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import nn, optim, tree
from fxflow.distributed.parameter_server import (
    LocalServers,
    TableSpec,
    asynchronous,
    bsp,
    parameter_server,
)
from fxflow.errors import ArgumentError, DistributedError
from fxflow.train import checkpoint

pytest.importorskip("zmq")

X = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
PARAMS = {"layers": [{"b": np.zeros(3, np.float32)}, {"w": np.ones(6, np.float32)}]}


def loss(params: Any, x: Any) -> Any:
    one, two = params["layers"]
    return fnp.mean((x @ two["w"]) ** 2) + fnp.sum((one["b"] - 1) ** 2)


def adam_server(local: LocalServers, **options: Any) -> Any:
    return parameter_server(
        loss, optim.adam(0.1), consistency=bsp(), cluster=local.cluster, **options
    )


def equal(one: Any, two: Any) -> bool:
    leaves = zip(tree.leaves(one), tree.leaves(two), strict=True)
    return tree.structure(one) == tree.structure(two) and all(
        np.array_equal(a, b) for a, b in leaves
    )


def test_servers_have_the_same_pushes_while_workers_go_on() -> None:
    local = LocalServers(3)
    zeros = [np.zeros(2, np.float32) for _ in range(3)]
    end = threading.Event()

    def server_of() -> Any:
        # Adds one to every parameter in each step.
        return parameter_server(
            lambda ws, x: sum(fnp.sum(w) for w in ws) * x,
            optim.sgd(-1.0),
            consistency=asynchronous(rate="fixed"),
            cluster=local.cluster,
        )

    def work() -> None:
        server = server_of()
        state = server.init(zeros)
        while not end.is_set():
            state, _ = server.step(state, np.float32(1))
        server.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    chief = server_of()
    state = chief.init(zeros)
    last = 0.0
    for _ in range(20):
        state, _ = chief.step(state, np.float32(1))
        values = {float(x) for w in chief.snapshot()["params"] for x in w}
        (value,) = values
        assert value > last
        last = value
    end.set()
    for thread in threads:
        thread.join()
    chief.close()
    local.close()


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    local = LocalServers(2)
    server = adam_server(local)
    state = server.init(PARAMS)
    for _ in range(3):
        state, _ = server.step(state, X)
    snapshot = server.snapshot()
    assert equal(snapshot["params"], tree.map(np.asarray, server.params(state)))
    checkpoint.save(tmp_path, snapshot)
    for _ in range(3):
        state, _ = server.step(state, X)
    expected = server.params(state)
    server.close()
    local.close()

    again = LocalServers(2)
    server = adam_server(again)
    state = server.init(PARAMS, checkpoint.restore(tmp_path))
    for _ in range(3):
        state, _ = server.step(state, X)
    assert equal(expected, server.params(state))
    server.close()
    again.close()


def test_rows_of_tables_come_again(tmp_path: Path) -> None:
    spec = TableSpec("words", 2, optim.adam(0.1), nn.initializers.ones)

    def rows_loss(params: Any, rows: Any, batch: Any) -> Any:
        return fnp.sum(rows["words"] * batch) + params["b"]

    def server_of(local: LocalServers) -> Any:
        return parameter_server(
            rows_loss,
            optim.sgd(0.1),
            consistency=asynchronous(),
            cluster=local.cluster,
            tables=[spec],
        )

    params, ids = {"b": np.zeros((), np.float32)}, np.arange(0, 20_000, 7)
    local = LocalServers(2)
    server = server_of(local)
    state = server.init(params)
    for _ in range(2):
        state, _ = server.step(state, np.float32(1), ids={"words": ids})
    snapshot = server.snapshot()
    assert sum(
        len(b[0]) for s in snapshot["servers"] for b in s["rows"]["words"]
    ) == len(ids)
    state, _ = server.step(state, np.float32(1), ids={"words": ids})
    expected = np.asarray(server.rows({"words": ids})["words"])
    server.close()
    local.close()

    again = LocalServers(2)
    server = server_of(again)
    state = server.init(params, snapshot)
    state, _ = server.step(state, np.float32(1), ids={"words": ids})
    assert np.array_equal(server.rows({"words": ids})["words"], expected)
    server.close()
    again.close()


def test_snapshots_of_other_runs() -> None:
    local = LocalServers(2)
    server = adam_server(local)
    with pytest.raises(ArgumentError, match="call init"):
        server.snapshot()
    server.init(PARAMS)
    snapshot = server.snapshot()
    server.close()
    for given, message in (
        (3, "a dictionary of 'params' and 'servers'; got int"),
        ({**snapshot, "params": {}}, r"has nothing as 'layers/0/b', .* f32\[3\]"),
        (
            {**snapshot, "servers": snapshot["servers"][:1]},
            "of 1 servers and there are 2",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            server.init(PARAMS, given)
    other = parameter_server(
        loss, optim.sgd(0.1), consistency=bsp(), cluster=local.cluster
    )
    with pytest.raises(ArgumentError, match="another optimizer or other tables"):
        other.init(PARAMS, snapshot)
    local.close()


def test_a_server_that_is_gone_is_named() -> None:
    local = LocalServers(2)
    server = adam_server(local, deadline=1.0)
    server.init(PARAMS)
    local.servers[1].stop()
    with pytest.raises(DistributedError, match="answers to 'cut' from server 1"):
        server.snapshot()
    local.close()
