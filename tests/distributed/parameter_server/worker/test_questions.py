"""Requests whose answers callers wait for, without servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.views import first_view
from fxflow.distributed.parameter_server.worker import questions
from fxflow.distributed.parameter_server.worker.copies import CopyRotation
from fxflow.distributed.parameter_server.worker.questions import Questions
from fxflow.errors import DistributedError

VIEW = first_view(["a:1", "b:1"], copies=2)


class Servers:
    """Answers at once, as `answers` says: a server's answer to a request, or None."""

    def __init__(self, answers: Callable[[int, Any], Any]) -> None:
        self.asked: list[int] = []
        self._answers = answers
        self.questions = Questions(
            0,
            lambda function, *args: function(*args),
            self.send,
            lambda: VIEW,
            lambda shards: f"the servers of {[*shards]}",
            lambda is_done, seconds, result: result(seconds),
        )
        self.questions._rotation = CopyRotation(first=1)

    def send(self, server: int, message: Message) -> None:
        self.asked.append(server)
        answer = self._answers(server, message.fields)
        if answer is not None:
            self.questions.note(Message.of(answer))

    def ask(self, *, copies: bool = True, seconds: float = 10.0) -> Any:
        request = 0, messages.ReadParams(0), {}
        (found,) = self.questions.ask([request], seconds, copies=copies)
        assert len(self.questions) == 0
        return found.fields


def params(server: int, read: Any) -> messages.Params:
    return messages.Params(0, read.request, server, False)


def test_a_copy_answers_in_its_turn() -> None:
    servers = Servers(params)
    assert [servers.ask().version for _ in range(4)] == [1, 0, 1, 0]
    assert [servers.ask(copies=False).version for _ in range(2)] == [0, 0]


def test_the_primary_answers_for_a_copy_that_refuses() -> None:
    def answers(server: int, read: Any) -> Any:
        if server == 1:
            return messages.Refuse(0, read.request, messages.BEHIND)
        return params(server, read)

    servers = Servers(answers)
    assert servers.ask().version == 0
    assert servers.asked == [1, 0]
    servers.ask(), servers.ask()
    assert servers.asked == [1, 0, 0, 0]  # it is avoided for a while


def test_the_primary_answers_for_a_silent_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "_COPY_PATIENCE", 0.01)
    servers = Servers(lambda server, read: params(0, read) if server == 0 else None)
    assert servers.ask().version == 0
    assert servers.asked == [1, 0]
    servers.ask(), servers.ask()
    assert servers.asked == [1, 0, 0, 0]


def test_late_and_failed_answers_are_errors() -> None:
    silent = Servers(lambda server, read: None)
    with pytest.raises(
        DistributedError, match=r"'read_params' from the servers of \[0\] .* 0\.05 s"
    ):
        silent.ask(seconds=0.05)
    for again, kind in (False, DistributedError), (True, LostCutError):
        failed = Servers(
            lambda _, read, again=again: messages.Failure(
                "no memory", 0, read.request, again
            )
        )
        with pytest.raises(kind, match=r"the servers of \[0\]: no memory") as caught:
            failed.ask()
        assert isinstance(caught.value, LostCutError) == again


def test_requests_are_repeated_and_end_with_the_client() -> None:
    def answers(server: int, read: Any) -> Any:
        if len(servers.asked) == 1:
            servers.questions.repeat()  # a new view
            return None
        return params(len(servers.asked), read)

    servers = Servers(answers)
    assert servers.ask(copies=False).version == 2

    def ends(server: int, read: Any) -> None:
        ended.questions.fail("the client has ended")

    ended = Servers(ends)
    with pytest.raises(DistributedError, match="the client has ended"):
        ended.ask()
