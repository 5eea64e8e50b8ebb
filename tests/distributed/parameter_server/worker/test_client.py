"""A client, with servers that die, restart or never existed."""

import dataclasses
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.zeromq import Hub
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.consistency import asynchronous, bsp
from fxflow.distributed.parameter_server.model import Model, make_model
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.views import View, first_view
from fxflow.distributed.parameter_server.worker import client as clients
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.errors import DistributedError
from tests.distributed.parameter_server.server.harness import kill, running
from tests.distributed.parameter_server.server.harness import worker as joined

pytest.importorskip("zmq")

ZEROS = np.zeros(3, np.float32)
ONES = np.ones(3, np.float32)


class Running:
    """A server in a thread, with a port."""

    def __init__(self, address: str, folder: Path | None = None, **options: Any):
        hub = Hub()
        listener = hub.listen(address)
        self.view = first_view([listener.address])
        self.server = ShardServer(hub, listener, 0, self.view, folder=folder, **options)
        self.thread = threading.Thread(target=self.server.serve)
        self.thread.start()

    def stop(self) -> str:
        self.server.stop()
        self.thread.join()
        return self.view.addresses[0]


def model(consistency: Any = None) -> list[Model]:
    # The parameters are the sum of all pushes.
    return [make_model(["w"], [ZEROS], optim.sgd(-1.0), consistency or asynchronous())]


def client(view: View, **options: Any) -> WorkerClient:
    return WorkerClient(view, deadline=options.pop("deadline", 20.0), **options)


def total(worker: WorkerClient, ticket: Any) -> float:
    ((_, params),) = worker.wait(ticket)
    return float(params[0][0])


def test_each_push_is_applied_once() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view, name="worker 5")
    assert total(worker, worker.begin(model(), [[ZEROS]])) == 0
    for n in range(1, 20):
        assert total(worker, worker.push([[ONES]])) == n
    assert total(worker, worker.push(None, "non-finite")) == 19
    assert worker.dropped == {"non-finite": 1}
    stats = worker.ask({0: messages.Stats()})[0].fields.stats
    assert stats["shards"]["0"]["pushes"] == 20
    assert [w["name"] for w in stats["workers"].values()] == ["worker 5"]
    worker.close()
    assert running.server.shards[0].group.version == 20
    end = time.monotonic() + 10
    # The server may handle `Leave` later.
    while len(running.server.shards[0].group):
        assert time.monotonic() < end
        time.sleep(0.01)
    running.stop()


def test_a_server_recovers_from_its_log(tmp_path: Path) -> None:
    running = Running("127.0.0.1:0", tmp_path)
    worker = client(running.view)
    worker.wait(worker.begin(model(), [[ZEROS]]))
    for n in range(1, 4):
        assert total(worker, worker.push([[ONES]])) == n
    address = running.stop()
    ticket = worker.push([[ONES]])  # no server is running
    again = Running(address.removeprefix("tcp://"), tmp_path)
    assert total(worker, ticket) == 4
    assert total(worker, worker.push([[ONES]])) == 5
    assert again.server.shards[0].counts.pushes == 5
    worker.close()
    again.stop()


def test_a_server_that_restarts_without_its_log_is_an_error() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view)
    worker.wait(worker.begin(model(), [[ZEROS]]))
    worker.wait(worker.push([[ONES]]))
    address = running.stop()
    again = Running(address.removeprefix("tcp://"))
    with pytest.raises(DistributedError, match=r"server 0 .*returned without shard 0"):
        worker.wait(worker.push([[ONES]]))
    again.stop()
    worker.close()


def test_an_error_names_the_late_worker() -> None:
    running = Running("127.0.0.1:0")
    one = client(running.view, name="worker 1", deadline=1.5)
    two = client(running.view, name="worker 2")
    one.wait(one.begin(model(bsp()), [[ZEROS]]))
    two.wait(two.begin(model(bsp()), [[ZEROS]]))
    with pytest.raises(DistributedError, match="waits for worker 2, heard"):
        one.wait(one.push([[ONES]]))
    two.close()
    one.close()
    running.stop()


def test_a_silent_worker_is_dropped_and_joins_again() -> None:
    running = Running("127.0.0.1:0", lost_after=1.0)
    one, two = client(running.view, name="one"), client(running.view, name="two")
    one.wait(one.begin(model(bsp()), [[ZEROS]]))
    two.wait(two.begin(model(bsp()), [[ZEROS]]))
    two._beat = lambda now: None  # type: ignore[method-assign]
    ticket = one.push([[ONES]])
    # It waited for two until the server counted that as lost.
    assert total(one, ticket) == 1
    assert len(running.server.shards[0].group) == 1
    running.server._lost_after = 60.0  # or a busy machine may lose it again
    del two._beat
    ticket = two.push([[ONES]])
    assert total(one, one.push([[ONES]])) == 2
    assert total(two, ticket) == 2
    assert len(running.server.shards[0].group) == 2
    two.close()
    one.close()
    running.stop()


def die(worker: WorkerClient) -> None:
    kill(worker)
    worker._thread.join(10)


@pytest.mark.parametrize("again", [False, True], ids=["alone", "again"])
def test_a_round_does_not_wait_for_a_killed_worker(again: bool) -> None:
    running = Running("127.0.0.1:0", lost_after=60.0)
    one, two = client(running.view, name="one"), client(running.view, name="two")
    one.wait(one.begin(model(bsp()), [[ZEROS]]))
    two.wait(two.begin(model(bsp()), [[ZEROS]]))
    tickets = one.push([[ONES]]), two.push([[ONES]])
    assert [total(one, tickets[0]), total(two, tickets[1])] == [1, 1]
    two.push([[ONES]])
    die(two)
    ticket = one.push([[ONES]])
    if again:  # it rejoins before the server notices its silence
        two = client(running.view, name="two")
        two.wait(two.begin(model(bsp()), [[ZEROS]]))
        assert len(running.server.shards[0].group) == 2
    assert total(one, ticket) == 2
    if not again:
        assert total(one, one.push([[ONES]])) == 3
    else:
        tickets = one.push([[ONES]]), two.push([[ONES]])
        assert total(one, tickets[0]) == total(two, tickets[1])
        two.close()
        # It has sent `Leave`, but the server may handle it later.
        deadline = time.monotonic() + 10
        while len(running.server.shards[0].names) > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert running.server.shards[0].names == {one.number: "one"}
    one.close()
    running.stop()


def test_a_restarted_server_knows_its_workers(tmp_path: Path) -> None:
    running = Running("127.0.0.1:0", tmp_path)
    one, two = client(running.view, name="one"), client(running.view, name="two")
    one.wait(one.begin(model(bsp()), [[ZEROS]]))
    two.wait(two.begin(model(bsp()), [[ZEROS]]))
    address = running.stop()
    die(two)
    again = Running(address.removeprefix("tcp://"), tmp_path, lost_after=1.5)
    assert sorted(again.server.shards[0].names.values()) == ["one", "two"]
    # This process never hears from it, and stops waiting for it.
    assert total(one, one.push([[ONES]])) == 1
    one.close()
    again.stop()


def test_answers_to_an_earlier_phase_are_ignored() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view)
    worker.wait(worker.begin(model(), [[ZEROS]]))
    (shard,) = worker._shards.values()
    stale = messages.Joined(0, shard.round, clock=0, version=0, last=0)
    empty = messages.Welcome(
        *(0, shard.round, worker.view.to_json(), 0, 1, "cpu", {"0": ""}, 1, 0, False)
    )
    for n in (1, 2):
        assert total(worker, worker.push([[ONES]])) == n
    worker._enter(shard, "hello")
    # Otherwise, the errors are "returned without" and "has lost pushes 1 to 2".
    worker._on_welcome(shard, Message.of(empty), empty)
    worker._on_joined(shard, Message.of(stale), stale)
    assert total(worker, worker.push([[ONES]])) == 3
    worker.close()
    running.stop()


def test_invalid_requests_get_an_answer() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view)
    with pytest.raises(
        DistributedError, match="servers do not accept the message 'params'"
    ):
        worker.ask({0: messages.Params(0, 0, 0, same=True)})[0]
    # There is no model yet.
    assert worker.ask({0: messages.Gradient(0, 0, 0)})[0].kind == "refuse"
    with pytest.raises(DistributedError, match="there is no shard 7"):
        worker.ask({0: messages.PullRows(7)})[0]
    assert worker.ask({0: messages.Stats()})[0].kind == "stats_ok"
    worker.close()
    running.stop()


def test_addresses_that_need_keys_are_rejected_at_once() -> None:
    with pytest.raises(DistributedError, match="needs keys"):
        client(first_view(["10.1.2.3:7000"]))


def test_a_cluster_that_differs_from_the_run_is_an_error() -> None:
    running = Running("127.0.0.1:0")
    (address,) = running.view.addresses
    for addresses, message in (
        (
            [address, "127.0.0.1:1"],
            "the run has 1 shards, the cluster of worker 2: give",
        ),
        (["127.0.0.1:1", address], "the run has 1 shards"),
    ):
        worker = client(first_view(addresses))
        with pytest.raises(DistributedError, match=message):
            worker.wait(worker.begin(model() * 2, [[ZEROS]] * 2))
        worker.close()
    running.stop()


def test_a_server_with_another_number_is_an_error() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view)
    with pytest.raises(DistributedError, match="it is server 0 of its run, and not 1"):
        worker.ask({0: messages.Hello(0, server=1)})
    worker.close()
    running.stop()


def test_a_worker_that_waits_long_names_the_server(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_REPORT", 0.3)
    worker = client(first_view(["127.0.0.1:1"]), name="worker 7", deadline=1.0)
    ticket = worker.begin(model(), [[ZEROS]])
    late = (
        r"from server 0 at 127.0.0.1:1 \(no process answers there yet\) did not arrive"
    )
    with pytest.raises(DistributedError, match=late):
        worker.wait(ticket, report=True)
    report = capfd.readouterr().err
    assert "worker 7 waits for server 0 at 127.0.0.1:1 (no process answers" in report
    worker.close()


def test_a_server_with_an_old_view_receives_the_current_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The server that decided on the view died before announcing it to the others.
    worker = client(first_view(["inproc://a", "inproc://b"], 2))
    sent: list[Message] = []
    monkeypatch.setattr(worker, "_send", lambda server, message: sent.append(message))
    worker._enter_view(worker.view._replace(epoch=5, servers=(1, 2), workers=(3,)))
    old = Message.of(messages.Prepare(1, 1), epoch=3)
    worker._on(1, old)
    (first,) = sent
    assert (first.kind, View.from_json(first.fields.view)) == ("view", worker.view)
    worker._on(1, dataclasses.replace(old, epoch=5))
    assert [message.kind for message in sent] == ["view", "promise"]
    monkeypatch.undo()
    worker.close()


def test_a_worker_leaves_even_if_its_first_request_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would take its vote along, which a server's death might make needed."""
    monkeypatch.setattr(clients, "_LEAVE", 60.0)
    lost: list[int] = []
    with running(tmp_path, 2) as run, joined(run), joined(run) as leaving:
        run.until(lambda view: leaving.number in view.workers)
        while leaving.number not in leaving.view.workers:
            time.sleep(0.01)
        send = leaving._send

        def lossy(number: int, message: Message) -> Any:
            if isinstance(message.fields, messages.Leave) and number not in lost:
                lost.append(number)
                return None
            return send(number, message)

        monkeypatch.setattr(leaving, "_send", lossy)
        leaving.close()
        assert sorted(lost) == [0, 1]
        assert leaving.number not in leaving.view.workers
