"""Requests to servers whose callers wait for the answers."""

from __future__ import annotations

import itertools
import queue
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.model import Model, difference
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.parameter_server.worker.copies import CopyRotation
from fxflow.distributed.parameter_server.worker.tickets import Deadline
from fxflow.errors import DistributedError

HostArray = np.ndarray[Any, Any]
#: Seconds after which a request is repeated.
RETRY = 5.0
#: Seconds after which a request to a copy goes to the primary instead, and for which a
#: copy that did not answer, or had too old a state, is not asked.
_COPY_PATIENCE, _AVOID_SILENT, _AVOID_OLD = 0.5, 5.0, 0.5


def error_text(message: Message, model: Model | None = None) -> str:
    """Returns an error's text, and how the run's model differs from the worker's.

    Args:
      message: a `messages.Failure`.
      model: the worker's model; None: it is not compared.
    """
    failure: messages.Failure = message.fields
    if model is None or not failure.model:
        return failure.why
    return f"{failure.why}. {difference(model.described, failure.model)}"


class _Question(NamedTuple):
    """A request about a shard; it may be sent repeatedly."""

    request: int
    shard: int
    message: Message
    box: queue.SimpleQueue[Message]


class Questions:
    """The unanswered requests of a client. Several threads may ask.

    Args:
      sender: the number of the worker; 0: it does not train.
      call: calls a function in a turn of the client.
      send: sends a message to a server, in a turn.
      view: returns the client's view.
      late: returns a description of the servers of some shards.
      wait: waits for an answer: see `Turns.wait`.
    """

    def __init__(
        self,
        sender: int,
        call: Callable[..., None],
        send: Callable[[int, Message], None],
        view: Callable[[], View],
        late: Callable[[Sequence[int]], str],
        wait: Callable[..., Message],
    ) -> None:
        self._sender, self._call, self._send = sender, call, send
        self._view, self._late, self._wait = view, late, wait
        self._requests = itertools.count(1)  # `next` is atomic
        self._open: dict[int, _Question] = {}
        self._rotation = CopyRotation()

    def __len__(self) -> int:
        return len(self._open)

    def ask(
        self,
        requests: Sequence[tuple[int, Any, Mapping[str, HostArray]]],
        seconds: float,
        models: Sequence[Model] | None = None,
        *,
        copies: bool = False,
    ) -> list[Message]:
        """Sends requests, and waits for all answers: see `WorkerClient.ask_together`.

        Args:
          requests: shard, request and arrays of each.
          seconds: seconds after which the wait fails.
          models: the worker's models, for errors about a different one.
          copies: whether servers with copies get requests.

        Raises:
          DistributedError: a server did not answer in time, or refused.
        """
        questions = [self._question(*request) for request in requests]
        kinds = ", ".join(sorted({repr(q.message.kind) for q in questions}))
        deadline = Deadline(seconds, f"answers to {kinds}")
        view, servers = self._view(), dict[int, int]()
        if copies:
            shards = sorted({q.shard for q in questions})
            servers = self._rotation.choose(view, shards, time.monotonic())
            servers = {n: s for n, s in servers.items() if s != view.primary(n)}
        try:
            # Together: a turn may cost more than sending.
            self._call(self._send_first, questions, servers)
            return [
                self._answer(
                    *(q, deadline, models[q.shard] if models else None),
                    servers.get(q.shard),
                )
                for q in questions
            ]
        finally:
            for question in questions:
                del self._open[question.request]

    def _question(
        self, shard: int, fields: Any, arrays: Mapping[str, HostArray]
    ) -> _Question:
        request = -next(self._requests)
        message = Message.of(
            fields._replace(request=request), worker=self._sender, arrays=dict(arrays)
        )
        question = _Question(request, shard, message, queue.SimpleQueue())
        self._open[request] = question
        return question

    def _answer(
        self,
        question: _Question,
        deadline: Deadline,
        model: Model | None,
        copy: int | None,
    ) -> Message:
        """Waits for an answer; repeats the request to the current primary.

        Raises:
          DistributedError: none arrives in time, or the server refuses.
        """
        while True:
            patience = RETRY
            if copy is not None:
                patience = min(_COPY_PATIENCE, deadline.seconds / 3)
            try:
                reply = self._wait(
                    lambda: not question.box.empty(),
                    min(patience, deadline.left),
                    lambda seconds: question.box.get(timeout=seconds),
                )
                said = reply.fields
                refused = isinstance(said, messages.Refuse)
                if not refused or said.why != messages.BEHIND:
                    break
                avoided = _AVOID_OLD
            except queue.Empty:
                deadline.check(self._late([question.shard]))
                avoided = _AVOID_SILENT
            if copy is not None:
                self._rotation.avoid(copy, time.monotonic() + avoided)
                copy = None
            self._call(self._send_to_primary, question)
        if isinstance(reply.fields, messages.Failure):
            where = self._late([question.shard])
            kind = LostCutError if reply.fields.again else DistributedError
            raise kind(f"{where}: {error_text(reply, model)}")
        return reply

    # -- in a turn of the client -------------------------------------------------------

    def note(self, message: Message) -> None:
        """Gives an answer to the caller that waits for it, if any."""
        question = self._open.get(message.fields.request)
        if question is not None:
            question.box.put(message)

    def repeat(self) -> None:
        """Sends all requests again: the view has changed."""
        for question in list(self._open.values()):
            self._send_to_primary(question)

    def fail(self, why: str) -> None:
        """Ends all waits with an error."""
        for question in list(self._open.values()):
            question.box.put(Message.of(messages.Failure(why)))

    def _send_first(
        self, questions: Sequence[_Question], servers: Mapping[int, int]
    ) -> None:
        primary = self._view().primary
        for question in questions:
            server = servers.get(question.shard, primary(question.shard))
            self._send(server, question.message)

    def _send_to_primary(self, question: _Question) -> None:
        self._send(self._view().primary(question.shard), question.message)
