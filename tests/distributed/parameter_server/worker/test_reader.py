"""Readers see what the servers have, within a bound, and change nothing."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fxflow import nn, optim, tree
from fxflow import numpy as fnp
from fxflow.core.arrays.aval import ShapeDtypeStruct
from fxflow.distributed.parameter_server import (
    LocalServers,
    ParameterReader,
    Reading,
    TableSpec,
    asynchronous,
    parameter_server,
    running,
)
from fxflow.distributed.parameter_server.server import replicas
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.worker import questions
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
        sent: list[Any] = []
        ask = reader._client.ask_together

        def noted(asked: Any, **options: Any) -> Any:
            sent.append(asked)
            return ask(asked, **options)

        reader._client.ask_together = noted  # type: ignore[method-assign]
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


# -- copies ----------------------------------------------------------------------------


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Yields a run with two copies whose servers never seem silent."""
    patient = functools.partial(ShardServer, silent_after=60.0)
    monkeypatch.setattr(running, "ShardServer", patient)
    monkeypatch.setattr(replicas, "_BEATS", 3000)  # 50 heartbeats per second
    monkeypatch.setattr(questions, "_COPY_PATIENCE", 60.0)
    made = Run(2, copies=2)
    # Both servers know that the other one is in the last view.
    wait_until(lambda: all(confirmed(made, server) for server in (0, 1)))
    yield made
    made.worker.close()
    made.local.close()


def confirmed(run: Run, server: int) -> bool:
    one, two = (run.local.servers[s] for s in (server, 1 - server))
    echoes, view = one._replicas._echoes, one.view
    same = view == two.view and view.holders == view.places
    return same and bool(echoes.confirmed(1 - server, two.incarnation, view.epoch))


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


def pulls(run: Run) -> list[int]:
    """Returns the numbers of requests for rows that the servers have received."""
    traffic = (server.listener.traffic.to_dict() for server in run.local.servers)
    return [counts["received"].get("pull_rows", 0) for counts in traffic]


def copies_reader(run: Run, **options: Any) -> ParameterReader:
    reader = reader_of(run, **{"copies": True, "staleness": 600, **options})
    wait_until(lambda: reader._client.view == run.local.servers[0].view)
    return reader


def test_reads_are_spread_over_copies(copied: Run) -> None:
    copied.step([0, 2])
    with copies_reader(copied) as reader:
        before = pulls(copied)
        for i in range(0, 16, 2):  # all in shard 0
            found = reader.rows({"words": [i]})
            check_all(found.values, 0 if i < 3 else 1)
            assert found.age < 600
        after = pulls(copied)
        assert [b - a for a, b in zip(before, after, strict=True)] == [4, 4]
        assert copied.created() == 2 * 2  # in each copy; reading has created none
        check_all(reader.params().values, -1)


def test_reads_without_copies_go_to_the_primary(copied: Run) -> None:
    for options in {"copies": False}, {"staleness": 0}:
        with copies_reader(copied, **options) as reader:
            before = pulls(copied)
            for i in range(0, 12, 2):
                check_all(reader.rows({"words": [i]}).values, 1)
            after = pulls(copied)
            assert [b - a for a, b in zip(before, after, strict=True)] == [6, 0]


def test_an_old_copy_does_not_answer(copied: Run) -> None:
    copied.step([0])
    echoes = copied.local.servers[1]._replicas._echoes
    for since in (lambda *_: None, lambda *_: time.monotonic_ns() - 301 * 10**9):
        echoes.confirmed = since  # type: ignore[method-assign, assignment]
        with copies_reader(copied) as reader:
            for i in (0, 2, 4, 6):
                found = reader.rows({"words": [i]})
                check_all(found.values, 0 if i == 0 else 1)
                assert found.age < 300


def test_the_age_includes_that_of_the_copy(copied: Run) -> None:
    for server in copied.local.servers:
        echoes = server._replicas._echoes
        since = time.monotonic_ns() - 200 * 10**9
        echoes.confirmed = lambda *_, s=since: s  # type: ignore[method-assign]
    with copies_reader(copied) as reader:
        ages = sorted(reader.rows({"words": [i]}).age for i in (0, 2))
        assert ages[0] < 100 and ages[1] >= 200
        assert reader.params().age >= 200  # of one of the shards


def test_answers_of_copies_do_not_go_back(copied: Run) -> None:
    with copies_reader(copied) as reader:
        # An answer came from a copy that had more than the other one has now.
        ahead = [10**6, 0]
        reader._at = {0: ahead}
        before = pulls(copied)
        for i in (0, 2, 4, 6):
            check_all(reader.rows({"words": [i]}).values, 1)
        primary, copy = (b - a for a, b in zip(before, pulls(copied), strict=True))
        assert primary == 4 and copy >= 1
        assert reader._at == {0: ahead}


def test_a_version_of_an_earlier_epoch_is_sent_again(copied: Run) -> None:
    copied.step()
    with copies_reader(copied) as reader:
        check_all(reader.params().values, -1)
        for shard, part in reader._parts.items():
            # Its last entry was lost with the primary, and another has its version.
            lost = [np.full_like(value, 7) for value in part.values]
            reader._parts[shard] = part._replace(values=lost, asked=0, epoch=1)
        check_all(reader.params().values, -1)
        for shard, part in reader._parts.items():
            reader._parts[shard] = part._replace(asked=0)
        kept = [part.values for part in reader._parts.values()]
        check_all(reader.params().values, -1)
        for part, values in zip(reader._parts.values(), kept, strict=True):
            assert part.values is values  # they were not sent again


@pytest.mark.slow
def test_no_read_lacks_what_was_acknowledged_before_its_age() -> None:
    """While a worker pushes and a server dies, whatever the machine's speed."""
    run, errors = Run(3, copies=3), []
    #: When each push was acknowledged, and how many there were then.
    acknowledged = [(float("-inf"), 0)]
    stop = threading.Event()

    def read(reader: ParameterReader, one: Any) -> None:
        last = 0.0
        try:
            while not stop.is_set():
                begun = time.monotonic()
                reading = one(reader)
                oldest = begun - reading.age  # no later than the values' own time
                least = max(n for t, n in list(acknowledged) if t < oldest)
                value = -float(reading.values)
                assert last <= value and least <= value, (last, least, value)
                last = value
        except BaseException as error:
            errors.append(error)

    readers = [reader_of(run, copies=True, staleness=0.4, deadline=30) for _ in "ab"]

    def params_of(reader: ParameterReader) -> Reading:
        found = reader.params()
        return found._replace(values=found.values["b"][0])

    def row_of(reader: ParameterReader) -> Reading:
        found = reader.rows({"words": [3]})
        return found._replace(values=found.values["words"][0, 0] - 1)

    reads = params_of, row_of
    threads = [
        threading.Thread(target=read, args=given)
        for given in zip(readers, reads, strict=True)
    ]
    for thread in threads:
        thread.start()
    for count in range(1, 41):
        run.step([3])
        acknowledged.append((time.monotonic(), count))
        if count == 20:
            run.local.servers[1].stop()
        time.sleep(0.02)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert errors == []
    for reader in readers:
        check_all(reader.params(staleness=0).values, -40)
        reader.close()
    run.worker.close()
    run.local.close()


@pytest.mark.slow
def test_a_reader_of_copies_goes_on_when_a_server_is_lost() -> None:
    run = Run(2, copies=2)
    run.step([0])
    with reader_of(run, copies=True, staleness=5.0, deadline=30.0) as reader:
        reader.rows({"words": [0]})
        run.local.servers[0].stop()
        run.step([0])
        found = reader.rows({"words": np.arange(8)}, staleness=0)
        check_all(found.values["words"][1:], 1)
        check_all(found.values["words"][0], -1)
        check_all(reader.rows({"words": [10, 11]}).values, 1)
    run.worker.close()
    run.local.close()


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
