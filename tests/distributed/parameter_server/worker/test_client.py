"""A client beside servers that die, come back, or never were."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.parameter_server.consistency import asynchronous, bsp
from fxflow.distributed.parameter_server.model import Model, make_model
from fxflow.distributed.parameter_server.server.process import Server
from fxflow.distributed.parameter_server.transport import Hub
from fxflow.distributed.parameter_server.views import View, first_view
from fxflow.distributed.parameter_server.worker.client import Client
from fxflow.errors import DistributedError

pytest.importorskip("zmq")

ZEROS = np.zeros(3, np.float32)
ONES = np.ones(3, np.float32)


class Running:
    """A server in a thread, at a port."""

    def __init__(self, address: str, folder: Path | None = None, **options: Any):
        hub = Hub()
        listener = hub.listen(address)
        self.view = first_view([listener.address])
        self.server = Server(hub, listener, 0, self.view, folder=folder, **options)
        self.thread = threading.Thread(target=self.server.serve)
        self.thread.start()

    def stop(self) -> str:
        self.server.stop()
        self.thread.join()
        return self.view.addresses[0]


def model(consistency: Any = None) -> list[Model]:
    # Adds up what is pushed.
    return [make_model(["w"], [ZEROS], optim.sgd(-1.0), consistency or asynchronous())]


def client(view: View, **options: Any) -> Client:
    return Client(view, deadline=options.pop("deadline", 20.0), **options)


def total(worker: Client, ticket: Any) -> float:
    ((_, params),) = worker.wait(ticket)
    return float(params[0][0])


def test_what_is_pushed_is_added_up() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view, name="worker 5")
    assert total(worker, worker.begin(model(), [[ZEROS]])) == 0
    for n in range(1, 20):
        assert total(worker, worker.push([[ONES]])) == n
    assert total(worker, worker.push(None, "non-finite")) == 19
    assert worker.dropped == {"non-finite": 1}
    stats = worker.ask(0, "stats").fields["stats"]
    assert stats["shards"]["0"]["pushes"] == 20
    assert [w["name"] for w in stats["workers"].values()] == ["worker 5"]
    worker.close()
    assert running.server.shards[0].group.version == 20
    running.stop()
    assert len(running.server.shards[0].group) == 0  # it said goodbye


def test_a_server_comes_back_from_its_log(tmp_path: Path) -> None:
    running = Running("127.0.0.1:0", tmp_path)
    worker = client(running.view)
    worker.wait(worker.begin(model(), [[ZEROS]]))
    for n in range(1, 4):
        assert total(worker, worker.push([[ONES]])) == n
    address = running.stop()
    ticket = worker.push([[ONES]])  # nobody is there
    again = Running(address.removeprefix("tcp://"), tmp_path)
    assert total(worker, ticket) == 4
    assert total(worker, worker.push([[ONES]])) == 5
    assert again.server.shards[0].counts.pushes == 5
    worker.close()
    again.stop()


def test_a_server_that_comes_back_empty_is_told_apart() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view)
    worker.wait(worker.begin(model(), [[ZEROS]]))
    worker.wait(worker.push([[ONES]]))
    address = running.stop()
    again = Running(address.removeprefix("tcp://"))
    with pytest.raises(DistributedError, match=r"server 0 .*came back without shard 0"):
        worker.wait(worker.push([[ONES]]))
    again.stop()
    worker.close()


def test_who_is_late_is_named() -> None:
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


def test_a_silent_worker_is_let_go_and_joins_again() -> None:
    running = Running("127.0.0.1:0", lost_after=1.0)
    one, two = client(running.view, name="one"), client(running.view, name="two")
    one.wait(one.begin(model(bsp()), [[ZEROS]]))
    two.wait(two.begin(model(bsp()), [[ZEROS]]))
    two._beat = lambda now: None  # type: ignore[method-assign]
    ticket = one.push([[ONES]])
    # It waited for two, until that was taken for lost.
    assert total(one, ticket) == 1
    assert len(running.server.shards[0].group) == 1
    del two._beat
    ticket = two.push([[ONES]])
    assert total(one, one.push([[ONES]])) == 2
    assert total(two, ticket) == 2
    assert len(running.server.shards[0].group) == 2
    two.close()
    one.close()
    running.stop()


def test_bad_requests_are_answered() -> None:
    running = Running("127.0.0.1:0")
    worker = client(running.view)
    with pytest.raises(DistributedError, match="takes no message 'params'"):
        worker.ask(0, "params")
    assert worker.ask(0, "push", shard=0).kind == "refuse"  # there is no model yet
    with pytest.raises(DistributedError, match="'shard'"):
        worker.ask(0, "pull")
    assert worker.ask(0, "stats").kind == "stats_ok"
    worker.close()
    running.stop()
