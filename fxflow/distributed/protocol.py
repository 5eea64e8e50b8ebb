"""The messages between the processes of a run and the coordinator: a class for each.

On the wire a message is its class's name and its fields. Beside these it may have the
number of a request (`id`), which its answer repeats (`re`), and the epoch it is about.
An answer has no class: it is the fields that its request asks for, or an `error`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow.distributed.messages.channel import Message

# -- first messages: what a connection is for ------------------------------------------


class Join(NamedTuple):
    """A process of a fixed run joins as number `process`."""

    process: int
    processes: int
    name: str = "?"


class Enlist(NamedTuple):
    """A worker joins an elastic run; others get its state at `address`."""

    worker: int
    name: str
    address: str


class Runtime(NamedTuple):
    """The connection leads to the runtime's service of an epoch."""

    epoch: int = 0


# -- requests to a group ---------------------------------------------------------------


class Set(NamedTuple):
    """Sets the payload under a key."""

    key: str
    overwrite: bool = False


class Get(NamedTuple):
    """Asks for what is under a key; waits until it is set, if it is to."""

    key: str
    wait: bool = False


class Increment(NamedTuple):
    """Adds to the number under a key."""

    key: str
    by: int


class Delete(NamedTuple):
    """Deletes a key and its folder."""

    key: str


class List(NamedTuple):
    """Asks for the keys in a folder."""

    key: str


class Meet(NamedTuple):
    """Waits for processes (None: all) at a barrier, and exchanges payloads."""

    key: str
    processes: list[int] | None = None


class Cancel(NamedTuple):
    """Withdraws a `Get` or a `Meet` that timed out."""

    key: str
    request: int


class Live(NamedTuple):
    """Asks which processes are alive."""


class Missing(NamedTuple):
    """Asks which processes have not joined."""


class Notice(NamedTuple):
    """The process has received SIGTERM."""


class InStep(NamedTuple):
    """Reports the first step that the process has not begun."""

    step: int


class AskWaiting(NamedTuple):
    """Has each process note whether it waits in a collective."""


class Judge(NamedTuple):
    """Says which processes were late for a collective, and why that is known."""

    processes: list[int]
    why: str


class Ping(NamedTuple):
    """The process is alive."""


class Bye(NamedTuple):
    """The process leaves."""


# -- what workers of an elastic run say ------------------------------------------------


class Ready(NamedTuple):
    """The worker may become a member; it holds these states (`choose_plan`)."""

    holdings: list[Message]


class Prepared(NamedTuple):
    """The member has the state that the epoch begins with."""

    epoch: int


class Failed(NamedTuple):
    """A step failed in a way that may be due to others; or joining did."""

    epoch: int
    step: int
    why: str
    joining: bool


class Done(NamedTuple):
    """The member has the last state."""

    epoch: int
    preempted: bool


class Error(NamedTuple):
    """The program raised an error of its own."""

    why: str


# -- events ----------------------------------------------------------------------------


class Pong(NamedTuple):
    """The coordinator is alive."""


class Refused(NamedTuple):
    """The process is not let in."""

    why: str
    error: str = "refused"


class Welcome(NamedTuple):
    """All processes have joined; `names` are ``host:pid`` of each."""

    names: list[str]


class Hold(NamedTuple):
    """Asks for the step that the process is in; see `stop_agreement`."""


class Until(NamedTuple):
    """All stop before a step, and then ``"stop"`` or ``"reform"``."""

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
    """The worker is a member of an epoch, which goes on from the state of `plan`."""

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
    """The worker is to end at once."""


_CLASSES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(Join, Enlist, Runtime),
        *(Set, Get, Increment, Delete, List, Meet, Cancel, Live, Missing, Notice),
        *(InStep, AskWaiting, Judge, Ping, Bye),
        *(Ready, Prepared, Failed, Done, Error),
        *(Pong, Refused, Welcome, Hold, Until, SayWaiting, Late, Lost),
        *(Form, Go, Abort, End, Fail, Expelled),
    )
}


def written(content: Any, **more: Any) -> Message:
    """Returns a message as the wire has it.

    Args:
      content: of one of the classes here.
      **more: what is sent beside its fields.

    Example:
      >>> written(Set("a"), id=3)
      {'op': 'Set', 'key': 'a', 'overwrite': False, 'id': 3}
    """
    return {"op": type(content).__name__, **content._asdict(), **more}


def read(message: Message) -> Any:
    """Returns the content of a message; fields it does not have are ignored.

    Raises:
      ValueError: there is no such message.
      TypeError: a field is missing.
    """
    kind = _CLASSES.get(message.get("op", ""))
    if kind is None:
        raise ValueError(f"unknown message {message.get('op')}")
    return kind(**{name: message[name] for name in kind._fields if name in message})
