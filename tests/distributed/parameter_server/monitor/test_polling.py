"""Real servers in threads of this process, and an address without a server."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("zmq")

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.zeromq import Hub
from fxflow.distributed.parameter_server import LocalServers, messages
from fxflow.distributed.parameter_server.monitor import polling
from fxflow.distributed.parameter_server.monitor.polling import (
    ServerPoll,
    await_run,
    missing,
)
from fxflow.distributed.parameter_server.views import first_view
from fxflow.errors import DistributedError


def test_a_silent_server_is_named_and_the_others_answer() -> None:
    local = LocalServers(2)
    silent = "ipc:///tmp/fxflow-no-server-there"
    with ServerPoll([*local.cluster.servers, silent], patience=1.5) as servers:
        first = servers.ask(messages.Stats())
        begun = time.monotonic()
        again = servers.ask(messages.Stats())
        took = time.monotonic() - begun
    local.close()
    for answers in (first, again):
        assert [answer.problem for answer in answers[:2]] == ["", ""]
        assert "no process answers there" in answers[2].problem
        assert answers[2].message is None
    for number, answer in enumerate(again[:2]):
        assert answer.message is not None
        assert answer.message.fields.stats["server"] == number
        assert answer.asked < answer.heard
    assert took < 1.0  # the silent server is not waited for again


def test_a_stopped_server_gets_one_request_until_it_answers(
    tmp_path: Path,
) -> None:
    with Hub() as hub:
        listener = hub.listen(f"ipc://{tmp_path}/s")
        ends = threading.Event()

        def admit() -> None:  # completes the handshake of new connections
            while not ends.is_set():
                hub.wait(0.01)

        thread = threading.Thread(target=admit)
        thread.start()
        with ServerPoll([listener.address], patience=0.3) as servers:
            (silent,) = servers.ask(messages.Stats())
            servers.ask(messages.Stats())
            assert "has not answered for 0." in silent.problem
            ends.set()
            thread.join()
            hub.wait(1)
            ((peer, message),) = listener.receive()
            stats = messages.StatsReply(message.fields.request, {})
            listener.send(peer, Message.of(stats))
            time.sleep(0.05)
            # The late answer is to the old request; only now a new one is sent.
            (late,) = servers.ask(messages.Stats())
            assert late.message is None
            hub.wait(1)
            assert len(listener.receive()) == 1


def test_an_error_of_a_server_is_its_problem() -> None:
    local = LocalServers(1)
    with ServerPoll(local.cluster.servers) as servers:
        (answer,) = servers.ask(messages.Ack())  # type: ignore[arg-type]
    local.close()
    assert answer.problem == "servers do not accept the message 'ack'"


def test_an_address_beyond_this_machine_needs_keys() -> None:
    with pytest.raises(DistributedError, match="needs keys"):
        ServerPoll(["10.1.2.3:7000"])


def test_what_is_missing_until_shards_are_in_their_places() -> None:
    view = first_view(["a:1", "b:1"], 2).to_json()
    serving = {
        number: {
            "server": number,
            "incarnation": 10 + number,
            "epoch": 1,
            "view": view,
            "shards": {str(s): {"serves": s == number} for s in range(2)},
        }
        for number in range(2)
    }
    assert missing(serving, [0, 1], {0: 3}) == ""
    assert missing(serving, [0, 1], {0: 10}) == "server 0 has not ended"
    assert missing({0: serving[0]}, [0, 1]) == "servers [1] do not answer"
    idle = {**serving[1], "shards": {}}
    late = missing({0: serving[0], 1: idle}, [0, 1])
    assert late == "server 1 does not serve shard 1"
    assert missing({0: serving[0], 1: idle}, [0, 1], shards=[0]) == ""
    view["holders"] = [[0], [1, 0]]
    assert missing(serving, [0, 1]) == "servers [1] lack shard 0"
    assert missing(serving, [0, 1], shards=[1]) == ""


def test_a_run_is_looked_at_until_nothing_is_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[Any] = [DistributedError("none answers"), {0: "late"}, {0: ""}]

    def look(*_: object) -> Any:
        found = looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def wait(deadline: float) -> Any:
        return await_run(["a:1"], None, lambda stats: str(stats[0]), deadline, "it is")

    monkeypatch.setattr(polling, "run_statistics", look)
    monkeypatch.setattr(polling, "_POLL", 0.0)
    assert wait(60.0) == {0: ""}
    for last in ({0: "no"}, DistributedError("no")):
        looks.append(last)
        with pytest.raises(DistributedError, match=r"^it is within -1 s, because no$"):
            wait(-1.0)
