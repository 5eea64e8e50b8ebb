"""The messages between processes and the coordinator: one class for each.

On the wire, a message has its class's name and its fields. It may also have a request
number (`id`), which the answer repeats (`re`), and an epoch. Answers have no class,
only the fields that the request asks for, or an `error`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow.distributed.messages.channel import Message

# -- first messages: what a connection is for ------------------------------------------


class Register(NamedTuple):
    """Process number `process` joins a run of a fixed number of processes."""

    process: int
    processes: int
    name: str = "?"


class RegisterWorker(NamedTuple):
    """A worker joins an elastic run; it serves its state at `address`."""

    worker: int
    name: str
    address: str


class RegisterTask(NamedTuple):
    """The launcher of task number `task` joins; the task listens at `address`."""

    task: int
    tasks: int
    name: str
    address: str


class Runtime(NamedTuple):
    """The connection is for the runtime's service of an epoch."""

    epoch: int = 0


# -- requests to a group ---------------------------------------------------------------


class Meet(NamedTuple):
    """Waits for processes (None: all) at a barrier, and exchanges payloads."""

    key: str
    processes: list[int] | None = None


class Cancel(NamedTuple):
    """Withdraws a `Meet` that timed out."""

    key: str
    request: int


class Missing(NamedTuple):
    """Asks which processes have not joined."""


class Notice(NamedTuple):
    """The process has received SIGTERM."""


class InStep(NamedTuple):
    """Reports the first step that the process has not begun."""

    step: int


class AskWaiting(NamedTuple):
    """Asks all processes to report whether they wait in a collective."""


class ReportWaiting(NamedTuple):
    """The process waits in a collective."""


class ListWaiting(NamedTuple):
    """Asks which processes have reported that they wait in a collective."""


class Judge(NamedTuple):
    """Reports which processes were late for a collective, and the error's message."""

    processes: list[int]
    why: str


class Ping(NamedTuple):
    """The process is alive."""


class Bye(NamedTuple):
    """The process leaves."""


# -- messages of workers of an elastic run ---------------------------------------------


class Ready(NamedTuple):
    """The worker is ready for an epoch; it holds these states (see `choose_plan`)."""

    holdings: list[Message]


class Prepared(NamedTuple):
    """The member has the state from which the epoch starts."""

    epoch: int


class Failed(NamedTuple):
    """Joining or a step failed, possibly because of other workers."""

    epoch: int
    step: int
    why: str
    joining: bool


class Done(NamedTuple):
    """The member has run the last step."""

    epoch: int
    preempted: bool


class Error(NamedTuple):
    """The program raised an error."""

    why: str


# -- events ----------------------------------------------------------------------------


class PingReply(NamedTuple):
    """The coordinator is alive."""


class Refused(NamedTuple):
    """The coordinator refuses the process."""

    why: str
    error: str = "refused"


class AllJoined(NamedTuple):
    """All processes have joined; `names` has the ``host:pid`` of each."""

    names: list[str]


class Hold(NamedTuple):
    """Asks for the first step that the process has not begun; see `preemption`."""


class Until(NamedTuple):
    """No process runs `step` or later ones; `then` is ``"stop"`` or ``"reform"``."""

    step: int
    then: str


class SayWaiting(NamedTuple):
    """Asks whether the process waits in a collective."""


class Late(NamedTuple):
    """These processes were late for a collective."""

    processes: list[int]
    why: str


class Lost(NamedTuple):
    """A process is lost."""

    process: int
    name: str
    why: str


class Form(NamedTuple):
    """The worker is a member of an epoch, which starts from the state of `plan`."""

    rank: int
    members: list[int]
    names: list[str]
    plan: Message


class Go(NamedTuple):
    """All members are prepared: they may connect."""


class Abort(NamedTuple):
    """The epoch is over."""

    why: str


class End(NamedTuple):
    """The run has ended: ``"done"`` or ``"preempted"``."""

    outcome: str


class Fail(NamedTuple):
    """The run has failed."""

    why: str


class Expelled(NamedTuple):
    """The worker must end at once."""


class Ended(NamedTuple):
    """The program of a run of tasks has ended with this exit status."""

    status: int


_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Register, RegisterWorker, RegisterTask, Runtime),
        *(Meet, Cancel, Missing, Notice, InStep),
        *(AskWaiting, ReportWaiting, ListWaiting, Judge, Ping, Bye),
        *(Ready, Prepared, Failed, Done, Error),
        *(PingReply, Refused, AllJoined, Hold, Until, SayWaiting, Late, Lost),
        *(Form, Go, Abort, End, Fail, Expelled, Ended),
    )
}


def written(content: Any, **more: Any) -> Message:
    """Returns a message in its wire form.

    Args:
      content: an instance of a class of this module.
      **more: further fields, such as `id`.

    Example:
      >>> written(Cancel("a", 2), id=3)
      {'op': 'Cancel', 'key': 'a', 'request': 2, 'id': 3}
    """
    return {"op": type(content).__name__, **content._asdict(), **more}


def read(message: Message) -> Any:
    """Returns a message as an instance of its class; ignores unknown fields.

    Raises:
      ValueError: the class is unknown.
      TypeError: a field is missing.
    """
    kind = _CLASSES.get(message.get("op", ""))
    if kind is None:
        raise ValueError(f"unknown message {message.get('op')}")
    return kind(**{name: message[name] for name in kind._fields if name in message})
