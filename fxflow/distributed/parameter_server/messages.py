"""The messages of the parameter server, with the fields of each kind.

`request` is a number that the sender gives a request, and that the answer repeats; it
is negative for requests that a caller of `WorkerClient` waits for. `shard` is the shard
that a message concerns, or −1. Arrays are sent in addition to the fields, by name.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow.distributed.messages.codec import fields_of

#: A view, as `View.to_json` gives it.
ViewFields = dict[str, Any]


# -- a worker begins -------------------------------------------------------------------


@fields_of("hello")
class Hello(NamedTuple):
    """Asks a server what it serves.

    Attributes:
      server: number of the server, according to the sender.
      shards: number of shards, according to the sender.
      fingerprint: fingerprint of the sender's model; None: not given.
    """

    shard: int
    name: str = ""
    request: int = 0
    server: int | None = None
    shards: int | None = None
    fingerprint: str | None = None


@fields_of("welcome")
class Welcome(NamedTuple):
    """Answers `Hello`.

    Attributes:
      shards: fingerprint of the model of each shard that the server serves, or "".
      parts: number of parts of a snapshot's rows that the shard has.
      waits: whether another worker sends the rest of them.
    """

    shard: int
    request: int
    view: ViewFields
    server: int
    incarnation: int
    platform: str
    shards: dict[str, str]
    pid: int
    parts: int
    waits: bool


@fields_of("model")
class Offer(NamedTuple):
    """Offers a model, with the initial values of its parameters.

    Attributes:
      model: the fields of `Model.to_message`.
      workers: names of the workers with which rounds begin.
      keys: kinds of random keys in the optimizer's state of a snapshot; None: the run
        does not begin with a snapshot.
      snapshot: its name.
      parts: number of parts of its rows, which follow.
    """

    shard: int
    model: dict[str, Any]
    workers: list[str]
    request: int = 0
    keys: list[str] | None = None
    snapshot: str | None = None
    parts: int | None = None


@fields_of("push_rows")
class PushRows(NamedTuple):
    """Sends a part of the rows of a snapshot."""

    shard: int
    table: str
    snapshot: str
    request: int = 0


@fields_of("model_ok")
class ModelAck(NamedTuple):
    """Answers `Offer` and `PushRows`.

    Attributes:
      begun: whether the shard is trained; if not, it lacks rows of a snapshot.
    """

    shard: int
    request: int
    parts: int
    waits: bool
    begun: bool


@fields_of("join")
class Join(NamedTuple):
    """A worker joins a shard; also an entry of the log."""

    shard: int
    fingerprint: str
    name: str = ""
    request: int = 0


@fields_of("joined")
class Joined(NamedTuple):
    """Answers `Join`.

    Attributes:
      last: number of the worker's last push that the shard has.
    """

    shard: int
    request: int
    clock: int
    version: int
    last: int


@fields_of("leave")
class Leave(NamedTuple):
    """A worker leaves; with a shard and a reason, an entry of the log."""

    shard: int = -1
    why: str = ""


# -- a worker trains -------------------------------------------------------------------


@fields_of("push")
class Gradient(NamedTuple):
    """Pushes a gradient, or a step without one; also an entry of the log.

    Attributes:
      seen: version of the parameters that the gradient was computed from.
      have: version that the worker has.
      pull: whether to send the parameters afterwards.
      deadline: seconds that the pull may wait.
      why: why there is no gradient.
    """

    shard: int
    clock: int
    seen: int
    have: int = -1
    pull: bool = False
    request: int = 0
    deadline: float = 0.0
    why: str = ""


@fields_of("ack")
class Ack(NamedTuple):
    """Acknowledges `Gradient` or `Leave`.

    Attributes:
      dropped: why the gradient was not used; empty: it was or will be used.
    """

    shard: int = -1
    request: int = 0
    version: int = 0
    dropped: str = ""


@fields_of("pull")
class Pull(NamedTuple):
    """Requests parameters; see `Gradient`."""

    shard: int
    clock: int
    have: int
    request: int
    deadline: float


@fields_of("params")
class Params(NamedTuple):
    """Answers `Pull`; with a sequence number also acknowledges that push.

    Attributes:
      same: whether the worker already has this version; if so, there are no arrays.
      at: to a reader: position of the copy that answers.
      behind: to a reader: nanoseconds for which that copy may lack acknowledged
        entries; 0: it is the primary's.
    """

    shard: int
    request: int
    version: int
    same: bool
    dropped: str = ""
    at: list[int] | None = None
    behind: int = 0


@fields_of("read")
class Read(NamedTuple):
    """An entry of the log: a worker has read the parameters."""

    shard: int


@fields_of("pull_rows")
class PullRows(NamedTuple):
    """Requests rows of tables, by arrays of ids.

    Attributes:
      create: whether to create missing rows; else they are not, but the answer has
        their initial values.
      within, at: see `ReadParams`, if no rows are created.
    """

    shard: int
    request: int = 0
    create: bool = True
    within: float = 0.0
    at: list[int] | None = None


@fields_of("rows")
class Rows(NamedTuple):
    """Answers `PullRows`; in a file, a block of the rows of one table.

    Attributes:
      at, behind: see `Params`.
    """

    shard: int = -1
    request: int = 0
    table: str = ""
    at: list[int] | None = None
    behind: int = 0


@fields_of("describe")
class Describe(NamedTuple):
    """Asks which parameters and tables a shard has."""

    shard: int
    request: int = 0


@fields_of("described")
class Described(NamedTuple):
    """Answers `Describe`, with a description as JSON in an array.

    Attributes:
      begun: whether the shard is trained; if not, there is no description.
    """

    shard: int
    request: int
    view: ViewFields
    begun: bool


@fields_of("read_params")
class ReadParams(NamedTuple):
    """Requests the current parameters at once; `Params` answers.

    Attributes:
      have: version that the reader has.
      epoch: of the position of the copy that sent it; 0: there is none.
      within: seconds for which a copy that answers may lack acknowledged entries; 0:
        only the primary answers.
      at: position of an earlier answer; a copy that is not as advanced refuses. None:
        there was none.
    """

    shard: int
    have: int = -1
    request: int = 0
    epoch: int = 0
    within: float = 0.0
    at: list[int] | None = None


#: Why a copy of a shard refuses a reader, which then asks the primary.
BEHIND = "behind"


@fields_of("refuse")
class Refuse(NamedTuple):
    """The server lacks what must come before: the worker restarts the protocol.

    Attributes:
      last: number of the worker's last push that the shard has.
    """

    shard: int
    request: int
    why: str
    last: int = 0


@fields_of("error")
class Failure(NamedTuple):
    """A request failed.

    Attributes:
      again: whether the server abandoned a snapshot, and the worker may retry.
      model: description of the run's model, if the worker trains another one.
      late: names of the workers that a read waited for.
      rejected: whether it was a push, which changed nothing and can never be accepted.
    """

    why: str
    shard: int = -1
    request: int = 0
    again: bool = False
    model: dict[str, Any] | None = None
    late: list[str] | None = None
    rejected: bool = False


@fields_of("heartbeat")
class Heartbeat(NamedTuple):
    """A worker is alive.

    Attributes:
      sent: time of sending, in nanoseconds of the worker's clock.
      kinds, ahead: fields for its spans, while traced; see `monitor.tracing`.
    """

    name: str
    sent: int = 0
    kinds: list[Any] | None = None
    ahead: int = 0


@fields_of("pong")
class Pong(NamedTuple):
    """Answers `Heartbeat`.

    Attributes:
      inside: the shards whose group has the worker.
      absent: servers that this one waits for.
      lost: why the view can no longer change; empty: it can.
      trace: whether to record spans; None: the run is not traced.
      clock: the worker's `sent`, and the server's time.
    """

    incarnation: int
    inside: list[int]
    absent: list[int]
    lost: str
    trace: bool | None = None
    clock: list[int] | None = None


# -- between servers -------------------------------------------------------------------


@fields_of("alive")
class Alive(NamedTuple):
    """A heartbeat of a server; see `server.agreement.Heard`.

    Attributes:
      began: start time of its process, in nanoseconds.
      sent, echoes: see `server.echoes.Echoes.note`.
      sizes: number and bytes of each shard that it serves.
      at: number and position of each shard that it holds.
    """

    server: int
    incarnation: int
    began: int
    kept: bool
    leaving: bool
    sizes: list[list[float]]
    at: list[list[int]]
    sent: int
    echoes: list[list[int]]


@fields_of("view")
class Announce(NamedTuple):
    """Announces a view."""

    view: ViewFields


@fields_of("entry")
class Entry(NamedTuple):
    """An entry of a shard's log, for a copy; without a kind, requests its position.

    Attributes:
      after: position before the entry.
      kind, epoch, fields: those of the entry; the message has its other numbers and its
        arrays.
    """

    shard: int
    after: list[int]
    kind: str = ""
    epoch: int = 0
    fields: list[Any] | None = None


@fields_of("entry_ok")
class EntryAck(NamedTuple):
    """Answers `Entry` and `State`; also the head of a log on disk.

    Attributes:
      at: position of the copy.
      gap: whether the copy lacks entries before the received one.
    """

    shard: int
    server: int
    at: list[int]
    gap: bool


@fields_of("state")
class State(NamedTuple):
    """The whole state of a shard, most of it in an array; also in files.

    Attributes:
      at: position of the shard.
      runs: generations of rows that make up a snapshot on disk.
      records: number of blocks in a file of rows, at its end.
    """

    shard: int = -1
    at: list[int] | None = None
    runs: list[int] | None = None
    records: int = 0


@fields_of("prepare")
class Prepare(NamedTuple):
    """Requests a voter's promise; see `paxos`."""

    turn: int
    proposer: int


@fields_of("promise")
class Promised(NamedTuple):
    """Answers `Prepare`.

    Attributes:
      accepted: turn, proposer and view of the last accepted vote; None: none.
    """

    turn: int
    proposer: int
    voter: int
    accepted: dict[str, Any] | None


@fields_of("vote")
class Accept(NamedTuple):
    """Asks a voter to accept a view."""

    turn: int
    proposer: int
    view: ViewFields


@fields_of("vote_ok")
class Accepted(NamedTuple):
    """Answers `Accept`."""

    turn: int
    proposer: int
    voter: int


@fields_of("enlist")
class Enlist(NamedTuple):
    """A new server asks to join the run."""

    address: str


@fields_of("enlisted")
class Enlisted(NamedTuple):
    """Answers `Enlist`.

    Attributes:
      number: number of the new server; −1: it is not admitted yet.
      why: what the answering server waits for.
    """

    view: ViewFields
    number: int
    why: str


# -- snapshots and statistics ----------------------------------------------------------


@fields_of("cut")
class Cut(NamedTuple):
    """Holds a shard for a snapshot; `upto` names the pushes that are part of it.

    Attributes:
      cut: number of the cut.
      params_only: whether the snapshot has only the parameters.
      upto: numbers of workers and of their last pushes.
      save: name of the snapshot whose rows the servers write; empty: they send them.
      since: name of an earlier one: the snapshot needs only rows that changed since.
    """

    shard: int
    cut: int
    params_only: bool = False
    upto: list[list[int]] | None = None
    request: int = 0
    save: str = ""
    since: str = ""


@fields_of("cut_ok")
class CutMade(NamedTuple):
    """Answers `Cut`.

    Attributes:
      last: numbers of workers and of their last pushes that the shard has.
      version: version of the parameters.
      keys: kinds of random keys in the optimizer's state.
      tables: names of the tables whose rows can be read.
    """

    shard: int
    request: int
    last: list[list[int]] | None = None
    version: int = 0
    keys: list[str] | None = None
    tables: list[str] | None = None


@fields_of("snapshot")
class ReadRows(NamedTuple):
    """Requests a part of the rows of a cut."""

    shard: int
    cut: int
    table: str
    part: int
    request: int = 0


@fields_of("snapshot_ok")
class RowsRead(NamedTuple):
    """Answers `ReadRows`.

    Attributes:
      end: whether there are no more rows.
    """

    shard: int
    request: int
    end: bool


@fields_of("save")
class SaveRows(NamedTuple):
    """Asks a server to write rows of a cut to files, and for their number so far."""

    shard: int
    cut: int
    folder: str
    request: int = 0


@fields_of("saved")
class RowsSaved(NamedTuple):
    """Answers `SaveRows`.

    Attributes:
      written: number of rows written so far.
      tables: descriptions of the files, by table; None: they are not complete.
    """

    shard: int
    request: int
    written: int
    tables: dict[str, Any] | None = None


@fields_of("stats")
class Stats(NamedTuple):
    """Requests a server's statistics."""

    request: int = 0


@fields_of("stats_ok")
class StatsReply(NamedTuple):
    """Answers `Stats`."""

    request: int
    stats: dict[str, Any]


@fields_of("restart")
class Restart(NamedTuple):
    """Asks a server to end with the status that requests a restart."""

    request: int = 0


@fields_of("restart_ok")
class Restarting(NamedTuple):
    """Answers `Restart`: the server ends, and is to be started again."""

    request: int
    incarnation: int


@fields_of("plan")
class Plan(NamedTuple):
    """Asks servers to move shards.

    Attributes:
      before: the planned servers of each shard; with others, the request is void.
      places: the planned servers that are to replace them.
    """

    before: list[list[int]]
    places: list[list[int]]
    request: int = 0


@fields_of("planned")
class Planned(NamedTuple):
    """Answers `Plan`: the server has noted it, and the servers agree on it next."""

    request: int


@fields_of("trace")
class Trace(NamedTuple):
    """Requests the recorded spans.

    Attributes:
      on: whether to keep recording.
      last: whether this is the last request.
    """

    on: bool
    last: bool = False
    request: int = 0


@fields_of("trace_ok")
class Traces(NamedTuple):
    """Answers `Trace`; see `monitor.tracing`.

    Attributes:
      own, told: kinds of the server's spans, and of the workers' spans.
      ahead: nanoseconds by which the server's clock is ahead of each worker's.
      names: names of the workers.
    """

    own: list[Any]
    told: list[Any]
    ahead: dict[str, int]
    clock: int
    request: int = 0
    names: dict[str, str] | None = None
