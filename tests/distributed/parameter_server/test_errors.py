"""Errors name the entry and the worker that they concern."""

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import EntryError


def test_an_entry_error_names_the_push_and_its_worker() -> None:
    error = EntryError(Message.of(messages.Gradient(0, 0, 0), 3, 7), "no memory")
    assert str(error) == "push 7 of worker 3: no memory" and error.worker == 3
    assert str(EntryError(Message.of(messages.Leave(), 2), "full")) == (
        "leave of worker 2: full"
    )
