"""A server without a network: tests hand it messages and read its answers."""

import dataclasses
import time
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.consistency import (
    Consistency,
    asynchronous,
    bsp,
)
from fxflow.distributed.parameter_server.model import make_model
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.views import first_view
from fxflow.distributed.program_text import Runner
from fxflow.errors import DistributedError

W = np.zeros(2, np.float32)


class Wire:
    """Replaces hub and listener, and records the messages sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, Message]] = []

    def send(self, peer: bytes, message: Message) -> bool:
        self.sent.append((peer, message))
        return True

    def only(self, kind: str) -> tuple[bytes, Message]:
        """Returns the only message of a kind, and its receiver."""
        (found,) = [item for item in self.sent if item[1].kind == kind]
        return found

    def kinds(self) -> list[str]:
        found = [message.kind for _, message in self.sent]
        self.sent.clear()
        return found


def server_of(
    workers: int, consistency: Consistency | None = None, awaited: Any = ()
) -> tuple[ShardServer, Wire, str]:
    wire: Any = Wire()
    server = ShardServer(wire, wire, 0, first_view(["a:1"]), lost_after=5.0)
    model = make_model(["w"], [W], optim.sgd(1.0), consistency or bsp())
    fields, arrays = model.to_message()
    offered = {**arrays, "param/w": W}
    offer = messages.Offer(0, fields, list(awaited))
    server.handle(b"1", Message.of(offer, 1, 0, 1, offered))
    for worker in range(1, workers + 1):
        join = messages.Join(0, model.fingerprint, f"w{worker}")
        server.handle(b"%d" % worker, Message.of(join, worker, 0, 1))
    wire.kinds()
    return server, wire, model.fingerprint


def push(worker: int, number: int = 1, **more: Any) -> Message:
    last = number - 1
    fields = messages.Gradient(0, last, last, last, True, 1, 10.0)._replace(**more)
    return Message.of(fields, worker, number, 1, {"0": np.ones(2, np.float32)})


def pull(worker: int, **more: Any) -> Message:
    fields = messages.Pull(0, clock=0, have=-1, request=1, deadline=2.0)
    return Message.of(fields._replace(**more), worker, 0, 1)


def test_a_pull_waits_for_the_round() -> None:
    server, wire, _ = server_of(2)
    server.handle(b"1", push(1))
    assert wire.kinds() == ["ack"]
    server.handle(b"2", push(2))
    kinds = {(peer, message.kind) for peer, message in wire.sent}
    assert kinds == {(b"1", "params"), (b"2", "params")}
    params = [m for _, m in wire.sent if m.kind == "params"]
    assert all(m.arrays["0"].tolist() == [-1.0, -1.0] for m in params)


def test_a_repeated_push_is_acknowledged_again_and_applied_once() -> None:
    server, wire, _ = server_of(1)
    for _ in range(3):
        server.handle(b"1", push(1))
    # The answer with the parameters is also the acknowledgement.
    assert [message.sequence for _, message in wire.sent] == [1, 1, 1]
    assert wire.kinds() == ["params"] * 3
    assert server.shards[0].group.version == 1


def test_a_worker_that_joins_twice_keeps_its_clock() -> None:
    server, wire, fingerprint = server_of(1, asynchronous())
    again = messages.Join(0, fingerprint)
    server.handle(b"2", Message.of(again, 2, 0, 1))
    for number in (1, 2, 3):
        server.handle(b"1", push(1, number))
    server.handle(b"2", Message.of(again, 2, 0, 1))
    assert wire.sent[-1][1].fields.clock == 0
    server.handle(b"2", push(2, 1))
    assert server.shards[0].counts.dropped == {}


def test_a_push_that_is_early_or_of_an_unknown_worker_is_refused() -> None:
    server, wire, _ = server_of(1)
    server.handle(b"1", push(1, number=2))
    assert wire.sent[-1][1].fields.why == "early"
    server.handle(b"9", push(9))
    assert wire.sent[-1][1].fields.why == "join"
    assert server.shards[0].counts.pushes == 0


def test_a_pull_of_a_known_version_is_answered_without_arrays() -> None:
    server, wire, _ = server_of(1)
    server.handle(b"1", pull(1, have=0))
    ((_, answer),) = wire.sent
    assert (answer.fields.same, answer.arrays) == (True, {})


def test_a_late_pull_fails_and_names_the_late_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, wire, _ = server_of(2)
    server.handle(b"1", push(1, deadline=2.0))
    wire.kinds()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3.0)
    server._check_timeouts(time.monotonic())
    peer, error = wire.only("error")
    assert peer == b"1"
    assert "waits for w2, heard 3." in error.fields.why
    monkeypatch.setattr(time, "monotonic", lambda: now + 6.0)
    server._check_timeouts(time.monotonic())  # both have been silent too long
    assert len(server.shards[0].group) == 0


def test_the_first_round_waits_for_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    server, wire, fingerprint = server_of(2, awaited=["w1", "w2", "w3"])
    server.handle(b"1", pull(1))
    server.handle(b"2", pull(2, deadline=60.0))
    assert wire.kinds() == []
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 3.0)
    server._check_timeouts(time.monotonic())
    peer, error = wire.only("error")
    assert (peer, error.fields.why) == (b"1", "waits for w3, which has not joined yet")
    wire.kinds()
    # A worker that joined once is not awaited again; another one may join.
    server.handle(b"1", Message.of(messages.Leave(), 1))
    for worker, name in ((3, "w3"), (4, "w4")):
        join = messages.Join(0, fingerprint, name)
        server.handle(b"3", Message.of(join, worker, 0, 1))
    assert wire.kinds() == ["ack", "params", "joined", "joined"]


def test_asynchronous_workers_do_not_wait_for_each_other() -> None:
    server, wire, _ = server_of(1, asynchronous(), awaited=["w1", "w2"])
    server.handle(b"1", pull(1))
    assert wire.kinds() == ["params"]


@pytest.mark.parametrize(
    "message",
    [
        pull(1, shard=7),
        dataclasses.replace(push(1), arrays={"0": np.ones(2, np.float64)}),
        Message.of(messages.Join(0, "other"), 1, 0, 1),
        Message.of(messages.Offer(0, {"programs": 3}, []), 1, 0, 1),
        Message.of(messages.Accept(1, 0, {}), 1),
        Message.of(messages.Ack(), 1),
        Message("control", 1),
    ],
    ids=lambda message: message.kind,
)
def test_an_invalid_message_gets_an_error_and_changes_nothing(message: Message) -> None:
    server, wire, _ = server_of(1)
    before = server.shards[0].position
    server.handle(b"1", message)
    assert wire.kinds() == ["error"]
    assert server.shards[0].position == before


def test_a_part_of_another_dtype_is_named() -> None:
    server, wire, _ = server_of(1)
    bad = push(1)
    server.handle(b"1", dataclasses.replace(bad, arrays={"0": np.ones(2, np.int32)}))
    ((_, error),) = wire.sent
    assert "w1 sent i32[2] as part 0, where the model has f32[2]" in error.fields.why
    server.handle(b"1", push(1))
    assert wire.sent[-1][1].kind == "params"


def test_a_model_that_cannot_be_trained_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire: Any = Wire()
    server = ShardServer(wire, wire, 0, first_view(["a:1"]))
    model = make_model(["w"], [W], optim.sgd(1.0), asynchronous())
    fields, arrays = model.to_message()
    offer = messages.Offer(0, fields, [])
    message = Message.of(offer, 1, 0, 1, {**arrays, "param/w": W})
    with monkeypatch.context() as patch:
        patch.setattr(Runner, "__call__", greedy)
        server.handle(b"1", message)
    ((_, error),) = wire.sent
    assert "the program 'init' of 'w': MemoryError: 1 TB" in error.fields.why
    assert server.shards[0].model is None
    server.handle(b"1", message)
    assert wire.kinds() == ["error", "model_ok"]


def greedy(*_: object) -> None:
    raise MemoryError("1 TB")


def test_a_failing_update_is_reported_and_ends_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, wire, _ = server_of(2, asynchronous())
    came = [(b"1", push(1))]
    stub: Any = wire
    stub.wait = lambda seconds: None
    stub.receive = lambda: [came.pop()] if came else []
    stub.close = lambda **_: None
    monkeypatch.setattr(Runner, "__call__", greedy)
    why = "server 0 ends: it cannot apply push 1 of w1: 'w': MemoryError: 1 TB"
    with pytest.raises(DistributedError, match=why):
        server.serve()
    sent = dict(wire.sent)
    assert set(sent) == {b"1", b"2"}
    assert all(m.kind == "error" and why in m.fields.why for m in sent.values())


def test_an_error_in_an_answer_affects_no_other_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, wire, _ = server_of(1)
    monkeypatch.setattr(server, "stats", greedy)
    server.handle(b"1", Message.of(messages.Stats(-1), 1, 0, 1))
    server.handle(b"1", pull(1))
    assert wire.kinds() == ["error", "params"]
