"""Snapshots have the same pushes on every server, and runs begin with them."""

import dataclasses
import threading
import time
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
    messages,
    parameter_server,
)
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.server.snapshots import Cuts
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


def test_servers_have_the_same_pushes_while_workers_continue() -> None:
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


def test_a_run_continues_from_a_checkpoint(tmp_path: Path) -> None:
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


def test_rows_of_tables_are_restored(tmp_path: Path) -> None:
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


def test_snapshots_that_do_not_fit_are_rejected() -> None:
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
        ({**snapshot, "servers": []}, "has the state of no server"),
    ):
        with pytest.raises(ArgumentError, match=message):
            server.init(PARAMS, given)
    with pytest.raises(ArgumentError, match="snapshot also has 'layers/0/b', 'layers"):
        server.init({}, snapshot)
    other = parameter_server(
        loss, optim.sgd(0.1), consistency=bsp(), cluster=local.cluster
    )
    with pytest.raises(ArgumentError, match="another optimizer or other tables"):
        other.init(PARAMS, snapshot)
    local.close()


def test_an_error_names_a_lost_server() -> None:
    local = LocalServers(2)
    server = adam_server(local)
    server.init(PARAMS)
    server._run.client.seconds = 1.0
    local.servers[1].stop()
    with pytest.raises(DistributedError, match="answers to 'cut' from server 1"):
        server.snapshot()
    local.close()


def evaluator_of(local: LocalServers, **options: Any) -> Any:
    cluster = dataclasses.replace(local.cluster, job="evaluator")
    return adding(cluster, **options)


def adding(cluster: Any, **options: Any) -> Any:
    """Adds one to every parameter in each step."""
    return parameter_server(
        lambda ws, x: sum(fnp.sum(w) for w in ws) * x,
        optim.sgd(-1.0),
        consistency=options.pop("consistency", asynchronous(rate="fixed")),
        cluster=cluster,
        deadline=20,
        **options,
    )


ZEROS = [np.zeros(2, np.float32) for _ in range(2)]


def test_an_evaluator_reads_without_being_a_member() -> None:
    local = LocalServers(2)
    evaluator, seen = evaluator_of(local, consistency=bsp()), []
    begun, end = threading.Event(), threading.Event()

    def read() -> None:
        state = evaluator.init(ZEROS)  # waits for the run
        while not end.is_set():
            seen.append({float(x) for w in evaluator.params(state) for x in w})
            begun.set()

    thread = threading.Thread(target=read)
    thread.start()
    worker = adding(local.cluster, consistency=bsp())
    state = worker.init(ZEROS)
    assert begun.wait(20)
    for _ in range(30):  # rounds do not wait for the evaluator
        state, _ = worker.step(state, np.float32(1))
    worker.params(state)
    end.set()
    thread.join()
    assert evaluator.params(None)[0].tolist() == [30.0, 30.0]
    assert evaluator.snapshot()["params"][1].tolist() == [30.0, 30.0]
    # Each read returned all servers after the same pushes.
    assert all(len(values) == 1 for values in seen)
    assert seen == sorted(seen, key=min)
    for server in local.servers:
        assert set(server._workers) == {worker._run.client.number}
        (shard,) = server.shards.values()
        assert list(shard.group) == [worker._run.client.number]
    with pytest.raises(ArgumentError, match="evaluator 0 does not train"):
        evaluator.step(state, np.float32(1))
    evaluator.close()
    worker.close()
    local.close()


def test_an_evaluator_of_another_model_is_rejected() -> None:
    local = LocalServers(2)
    worker = adding(local.cluster)
    worker.init(ZEROS)
    evaluator = evaluator_of(local, consistency=bsp())
    with pytest.raises(DistributedError, match="evaluator 0 has another model"):
        evaluator.init(ZEROS)
    evaluator.close()
    worker.close()
    local.close()


def test_an_evaluator_without_a_run_names_what_it_waits_for() -> None:
    local = LocalServers(1)
    evaluator = evaluator_of(local)
    evaluator._deadline = 0.5
    with pytest.raises(DistributedError, match="the model from any worker"):
        evaluator.init(ZEROS)
    evaluator.close()
    local.close()


def test_an_evaluator_that_dies_within_a_cut_delays_no_worker() -> None:
    local = LocalServers(2)
    worker = adding(local.cluster)
    state = worker.init(ZEROS)
    evaluator = evaluator_of(local)
    evaluator.init(ZEROS)
    evaluator._run.client.ask({s: messages.Cut(s, 1) for s in range(2)})
    evaluator.close()
    begun = time.monotonic()
    state, _ = worker.step(state, np.float32(1))
    assert worker.params(state)[0].tolist() == [1.0, 1.0]
    assert time.monotonic() - begun < 5
    worker.close()
    local.close()


def test_a_lost_cut_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    local = LocalServers(2)
    worker = adding(local.cluster)
    worker.init(ZEROS)
    evaluator = evaluator_of(local)
    state = evaluator.init(ZEROS)
    define, shards = Cuts.define, []

    def lost(self: Cuts, fields: messages.Cut, *args: Any) -> Any:
        shards.append(fields.shard)
        if len(shards) < 3:  # as if another server served the shard now
            raise LostCutError("lost")
        return define(self, fields, *args)

    monkeypatch.setattr(Cuts, "define", lost)
    assert evaluator.params(state)[0].tolist() == [0.0, 0.0]
    assert len(shards) > 3
    evaluator.close()
    worker.close()
    local.close()
