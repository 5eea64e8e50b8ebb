"""Readers see what the servers have, within a bound, and change nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fxflow import nn, optim, tree
from fxflow import numpy as fnp
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.distributed.parameter_server import (
    LocalServers,
    ParameterReader,
    TableSpec,
    asynchronous,
    parameter_server,
)
from fxflow.errors import ArgumentError, DistributedError, OutOfRangeError

pytest.importorskip("zmq")

PARAMS = {"b": np.zeros(2, np.float32), "w": np.zeros((6, 2), np.float32)}
SPEC = TableSpec("words", 2, optim.sgd(1.0), nn.initializers.ones, rows=100)


def loss(params: Any, rows: Any, x: Any) -> Any:
    # Each step subtracts one from each parameter and from each named row.
    return sum(fnp.sum(leaf) for leaf in tree.leaves((params, rows))) * x


class Run:
    """Servers, and a worker."""

    def __init__(self, servers: int = 2, **options: Any) -> None:
        self.local = LocalServers(servers, **options)
        self.worker = parameter_server(
            loss,
            optim.sgd(1.0),
            consistency=asynchronous(rate="fixed"),
            cluster=self.local.cluster,
            tables=[SPEC],
        )
        self.state = self.worker.init(PARAMS)

    def step(self, ids: Any = (3,)) -> None:
        ids = {"words": np.asarray(ids)}
        self.state, _ = self.worker.step(self.state, np.float32(1), ids=ids)
        self.worker.params(self.state)  # waits for the acknowledgement

    def created(self) -> int:
        servers = [server.shards.values() for server in self.local.servers]
        return sum(len(s.tables["words"]) for shards in servers for s in shards)


@pytest.fixture
def run() -> Iterator[Run]:
    made = Run()
    yield made
    made.worker.close()
    made.local.close()


def reader_of(run: Run, **options: Any) -> ParameterReader:
    return ParameterReader(run.local.cluster, **{"like": PARAMS, **options})


def check_all(values: Any, expected: float) -> None:
    for leaf in tree.leaves(values):
        assert np.all(np.asarray(leaf) == expected)


def test_a_reader_sees_every_acknowledged_update(run: Run) -> None:
    with reader_of(run, staleness=0) as reader:
        assert reader.tables["words"].shape == (2,)
        for steps in range(3):
            found = reader.params()
            check_all(found.values, -steps)
            assert tree.structure(found.values) == tree.structure(PARAMS)
            rows = reader.rows({"words": np.array([[3, 4], [3, 3]])}).values["words"]
            assert rows.shape == (2, 2, 2)
            check_all(rows[:, 0], 1 - steps)
            check_all(rows[0, 1], 1)
            run.step()


def test_values_are_reused_for_their_staleness_only(run: Run) -> None:
    ids = {"words": [3]}
    with reader_of(run, staleness=600) as reader:
        reader.params(), reader.rows(ids)
        run.step()
        time.sleep(0.01)
        params, rows = reader.params(), reader.rows(ids)
        check_all(params.values, 0)
        check_all(rows.values, 1)
        assert 0.01 <= params.age < 600 and 0.01 <= rows.age < 600
        sent = reader._client.traffic()[0]["read_params"]
        check_all(reader.params(staleness=0).values, -1)
        check_all(reader.rows(ids, staleness=0.005).values, 0)
        assert reader._client.traffic()[0]["read_params"] > sent
        check_all(reader.params().values, -1)


def test_parameters_and_rows_are_read_together(run: Run) -> None:
    """All requests are sent before any answer is waited for."""
    with reader_of(run, staleness=600) as reader:
        sent = []
        ask = reader._client.ask_together
        reader._client.ask_together = lambda asked, *args: (
            sent.append(asked)
            or ask(  # type: ignore[method-assign,func-returns-value]
                asked, *args
            )
        )
        for steps, staleness in enumerate((600, 0, 600)):
            params, rows = reader.read({"words": [3, 4]}, staleness=staleness)
            seen = min(steps, 1)
            check_all(params.values, -seen)
            assert rows.values["words"][:, 0].tolist() == [1 - seen, 1]
            assert 0 <= params.age < 600 and 0 <= rows.age < 600
            run.step()
        # Parameters of two shards and rows of two shards; the third call needs none.
        assert [len(asked) for asked in sent] == [4, 4]
        kinds = [type(fields).__name__ for _, fields, _ in sent[0]]
        assert sorted(kinds) == ["PullRows", "PullRows", "ReadParams", "ReadParams"]
        assert not reader._client._questions
    with ParameterReader(run.local.cluster) as reader:
        with pytest.raises(ArgumentError, match="like="):
            reader.read({"words": [3]})
        assert reader.rows({}).values == {}


def test_rows_in_memory_are_returned_without_a_request(run: Run) -> None:
    with reader_of(run, staleness=0, start=30.0) as reader:
        reader.rows({"words": [3, 5]})
        sent = reader._client.traffic()[0]
        rows, here, age = reader.cached("words", np.array([5, 4, 3, 5]))
        assert here.tolist() == [True, False, True, True] and 0 < age < 600
        check_all(rows[here], 1)
        assert not rows[1].any()
        assert reader.cached("words", np.array([4]))[2] == 0
        assert reader._client.traffic()[0] == sent


def test_reading_creates_no_rows(run: Run) -> None:
    before = run.created()
    with reader_of(run, staleness=0) as reader:
        check_all(reader.rows({"words": np.arange(50)}).values, 1)
    assert run.created() == before
    run.step([7])
    assert run.created() == before + 1


def test_a_reader_is_not_a_worker(run: Run) -> None:
    with reader_of(run) as reader:
        reader.params(), reader.rows({"words": [1]})
        for server in run.local.servers:
            assert len(server.stats()["workers"]) == 1
            assert len(server.view.workers) <= 1


@pytest.mark.slow
def test_a_reader_follows_servers_that_join() -> None:
    run = Run(2, shards=6)
    with reader_of(run, staleness=0) as reader:
        run.step()
        added = run.local.add()
        deadline = time.monotonic() + 30
        while not run.local.servers[added].view.served_by(added):
            assert time.monotonic() < deadline
            run.step()
            time.sleep(0.05)
        run.step()
        expected = run.worker.params(run.state)
        found = reader.params().values
        assert np.array_equal(found["w"], expected["w"])
        ids = {"words": np.arange(20)}
        assert np.array_equal(
            reader.rows(ids).values["words"], run.worker.rows(ids, None)["words"]
        )
    run.worker.close()
    run.local.close()


@pytest.mark.slow
def test_a_reader_needs_only_types_and_any_view(run: Run) -> None:
    like = tree.map(lambda x: ShapeDtypeStruct(x.shape, x.dtype), PARAMS)
    with reader_of(run, like=like) as reader:
        check_all(reader.params().values, 0)
    with reader_of(run, like=None) as reader:
        with pytest.raises(ArgumentError, match="give like="):
            reader.params()
        check_all(reader.rows({"words": [5]}).values, 1)


@pytest.mark.slow
def test_late_servers_are_named_or_old_values_returned() -> None:
    run = Run(1)
    options = {"staleness": 0, "deadline": 0.3}
    strict = reader_of(run, **options)
    lenient = reader_of(run, on_late="stale", **options)
    lenient.params(), lenient.rows({"words": [3]})
    run.worker.close()
    run.local.close()
    with pytest.raises(DistributedError, match=r"server 0 at .* within 0\.3 s"):
        strict.params()
    with pytest.raises(DistributedError, match="server 0"):
        lenient.rows({"words": [3, 4]})  # Row 4 was never read.
    old = lenient.params()
    check_all(old.values, 0)
    assert old.age > 0.3
    check_all(lenient.rows({"words": [3]}).values, 1)
    strict.close(), lenient.close()


@pytest.mark.slow
def test_threads_share_a_reader(run: Run) -> None:
    errors: list[BaseException] = []

    def read() -> None:
        last = 0.0
        try:
            for _ in range(20):
                value = float(reader.params().values["b"][0])
                assert value <= last
                last = value
                reader.rows({"words": np.arange(10)})
        except BaseException as error:
            errors.append(error)

    with reader_of(run, staleness=0) as reader:
        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            run.step()
        for thread in threads:
            thread.join()
        check_all(reader.params().values, -5)
    assert not errors


def test_what_a_reader_refuses(run: Run) -> None:
    for options, match in [
        ({"staleness": -1}, "staleness ≥ 0"),
        ({"deadline": 0}, "deadline > 0"),
        ({"cached_rows": 0}, "cached_rows ≥ 1"),
        ({"on_late": "wait"}, "'error', 'stale'"),
        ({"like": {**PARAMS, "c": np.zeros(2, np.float32)}}, "the run has none"),
        ({"like": {**PARAMS, "b": np.zeros(3, np.float32)}}, r"like has f32\[3\] 'b'"),
    ]:
        with pytest.raises(ArgumentError, match=match):
            reader_of(run, **options)
    with pytest.raises(ArgumentError, match="give the run's servers"):
        ParameterReader()
    with reader_of(run) as reader:
        with pytest.raises(ArgumentError, match="there is no table 'x'"):
            reader.rows({"x": [1]})
        with pytest.raises(OutOfRangeError, match="from 0 to 99"):
            reader.rows({"words": [100]})
        with pytest.raises(ArgumentError, match="integers"):
            reader.rows({"words": [0.5]})


def test_a_reader_waits_for_the_run_to_begin_and_says_so() -> None:
    local = LocalServers(1)
    with pytest.raises(DistributedError, match=r"the model from any worker .* 0\.5 s"):
        ParameterReader(local.cluster, like=PARAMS, deadline=0.5)
    local.close()
