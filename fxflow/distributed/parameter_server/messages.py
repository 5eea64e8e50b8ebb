"""The messages of the parameter server: the fields of each kind.

`request` is the sender's number of a question, which the answer repeats; a worker's own
questions have negative ones. `shard` is the shard that a message is about, or −1.
Arrays travel beside the fields, by name.
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
      server: number that the asker takes it for.
      shards: how many the asker counts.
      fingerprint: of the model that the asker trains; None: it does not say.
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
      shards: fingerprint of the model of each shard that is served here, or "".
      parts: of a snapshot's rows that the shard has.
      waits: whether another worker brings more of them.
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
    """Offers a model, with the first values of its parameters.

    Attributes:
      model: as `Model.to_message` gives it.
      workers: names of those with whom rounds begin.
      keys: kinds of random keys in the optimizer's state that a snapshot has; None: the
        run does not begin with a snapshot.
      snapshot: its name.
      parts: of its rows, which follow.
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
    """Brings a part of the rows of a snapshot."""

    shard: int
    table: str
    snapshot: str
    request: int = 0


@fields_of("model_ok")
class ModelTaken(NamedTuple):
    """Answers `Offer` and `PushRows`.

    Attributes:
      begun: whether the shard trains; if not, it lacks rows of a snapshot.
    """

    shard: int
    request: int
    parts: int
    waits: bool
    begun: bool


@fields_of("join")
class Join(NamedTuple):
    """A worker joins a shard; also an entry."""

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
    """A worker leaves; with a shard and a reason an entry."""

    shard: int = -1
    why: str = ""


# -- a worker trains -------------------------------------------------------------------


@fields_of("push")
class Gradient(NamedTuple):
    """Pushes a gradient, or a step without one; also an entry.

    Attributes:
      seen: version of the parameters that the gradient is of.
      have: version that the worker has.
      pull: whether the parameters are to follow.
      deadline: seconds for which the pull may wait.
      why: there is no gradient.
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
    """Acknowledges a push, or that a worker leaves.

    Attributes:
      dropped: why the gradient was not used; empty: it was, or will be.
    """

    shard: int = -1
    request: int = 0
    version: int = 0
    dropped: str = ""


@fields_of("pull")
class Pull(NamedTuple):
    """Asks for parameters; see `Gradient`."""

    shard: int
    clock: int
    have: int
    request: int
    deadline: float


@fields_of("params")
class Params(NamedTuple):
    """Answers `Pull`; with a sequence number also acknowledges that push.

    Attributes:
      same: whether it is the version that the worker has: then there are no arrays.
    """

    shard: int
    request: int
    version: int
    same: bool
    dropped: str = ""


@fields_of("read")
class Read(NamedTuple):
    """An entry: a worker has read the parameters."""

    shard: int


@fields_of("pull_rows")
class PullRows(NamedTuple):
    """Asks for rows of tables, by arrays of ids."""

    shard: int
    request: int = 0


@fields_of("rows")
class Rows(NamedTuple):
    """Answers `PullRows`; in a file, a block of the rows of one table."""

    shard: int = -1
    request: int = 0
    table: str = ""


@fields_of("refuse")
class Refuse(NamedTuple):
    """A server lacks what must come before: the worker begins again.

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
      again: whether a snapshot was given up, and another one may be made.
      model: what the run trains, if the worker trains another model.
      late: what a read waited for.
    """

    why: str
    shard: int = -1
    request: int = 0
    again: bool = False
    model: dict[str, Any] | None = None
    late: list[str] | None = None


@fields_of("heartbeat")
class Heartbeat(NamedTuple):
    """A worker is alive.

    Attributes:
      sent: when, in nanoseconds of its clock.
      kinds, ahead: of its spans, if the server traces; see `monitor.tracing`.
    """

    name: str
    sent: int = 0
    kinds: list[Any] | None = None
    ahead: int = 0


@fields_of("pong")
class Pong(NamedTuple):
    """Answers `Heartbeat`.

    Attributes:
      inside: the shards that count the worker.
      absent: servers that this one waits for.
      lost: why no view can follow; empty if one can.
      trace: whether spans are recorded; None: nothing traces.
      clock: the worker's `sent`, and the time here.
    """

    incarnation: int
    inside: list[int]
    absent: list[int]
    lost: str
    trace: bool | None = None
    clock: list[int] | None = None


# -- servers among themselves ----------------------------------------------------------


@fields_of("alive")
class Alive(NamedTuple):
    """A heartbeat of a server; see `server.agreement.Heard`.

    Attributes:
      began: when its process did, in nanoseconds.
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


@fields_of("view")
class ViewIs(NamedTuple):
    """Tells of the view."""

    view: ViewFields


@fields_of("entry")
class Entry(NamedTuple):
    """An entry of a shard's log, for a copy; without a kind, asks for its position.

    Attributes:
      after: position before it.
      kind, epoch, fields: of the entry; its other numbers and arrays are the message's.
    """

    shard: int
    after: list[int]
    kind: str = ""
    epoch: int = 0
    fields: list[Any] | None = None


@fields_of("entry_ok")
class EntryTaken(NamedTuple):
    """Answers `Entry` and `State`; heads a log on disk.

    Attributes:
      at: position of the copy.
      gap: whether it lacks entries before the one that came.
    """

    shard: int
    server: int
    at: list[int]
    gap: bool


@fields_of("state")
class State(NamedTuple):
    """All of a shard, with most of it in an array; also in files.

    Attributes:
      at: position of the shard.
      runs: generations of rows that a snapshot on disk consists of.
      records: blocks in a file of rows, at its end.
    """

    shard: int = -1
    at: list[int] | None = None
    runs: list[int] | None = None
    records: int = 0


@fields_of("prepare")
class Prepare(NamedTuple):
    """Asks a voter for a promise; see `paxos`."""

    turn: int
    proposer: int


@fields_of("promise")
class Promised(NamedTuple):
    """Answers `Prepare`.

    Attributes:
      accepted: turn, proposer and view of the vote before; None: there was none.
    """

    turn: int
    proposer: int
    voter: int
    accepted: dict[str, Any] | None


@fields_of("vote")
class PutToVote(NamedTuple):
    """Asks a voter to accept a view."""

    turn: int
    proposer: int
    view: ViewFields


@fields_of("vote_ok")
class Accepted(NamedTuple):
    """Answers `PutToVote`."""

    turn: int
    proposer: int
    voter: int


@fields_of("enlist")
class Enlist(NamedTuple):
    """A new server asks for a place in the run."""

    address: str


@fields_of("enlisted")
class Enlisted(NamedTuple):
    """Answers `Enlist`.

    Attributes:
      number: of the new server; −1: not yet.
      why: what the server that answers waits for.
    """

    view: ViewFields
    number: int
    why: str


# -- snapshots and questions -----------------------------------------------------------


@fields_of("cut")
class Cut(NamedTuple):
    """Holds a shard for a snapshot; with `upto` names the pushes that are part of it.

    Attributes:
      cut: its number.
      looks: whether for the parameters only.
      upto: numbers of workers and of their last pushes.
    """

    shard: int
    cut: int
    looks: bool = False
    upto: list[list[int]] | None = None
    request: int = 0


@fields_of("cut_ok")
class CutMade(NamedTuple):
    """Answers `Cut`.

    Attributes:
      last: numbers of workers and of their last pushes that the shard has.
      version: of the parameters.
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
    """Asks for a part of the rows of a cut."""

    shard: int
    cut: int
    table: str
    part: int
    request: int = 0


@fields_of("snapshot_ok")
class RowsRead(NamedTuple):
    """Answers `ReadRows`.

    Attributes:
      end: whether there were no more.
    """

    shard: int
    request: int
    end: bool


@fields_of("stats")
class Stats(NamedTuple):
    """Asks a server what it did."""

    request: int = 0


@fields_of("stats_ok")
class StatsAre(NamedTuple):
    """Answers `Stats`."""

    request: int
    stats: dict[str, Any]


@fields_of("trace")
class Trace(NamedTuple):
    """Asks for what was recorded.

    Attributes:
      on: whether to go on.
      last: whether it is the last time.
    """

    on: bool
    last: bool = False
    request: int = 0


@fields_of("trace_ok")
class Traces(NamedTuple):
    """Answers `Trace`; see `monitor.tracing`.

    Attributes:
      own, told: kinds of the server's spans and of those of workers.
      ahead: nanoseconds by which the server's clock is ahead of each worker's.
      names: of the workers.
    """

    own: list[Any]
    told: list[Any]
    ahead: dict[str, int]
    clock: int
    request: int = 0
    names: dict[str, str] | None = None
