"""Makes and restores snapshots of a run; `server.snapshots` is the servers' side."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval, as_array, typeof
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import LostCutError
from fxflow.distributed.parameter_server.model import Model
from fxflow.distributed.parameter_server.placement import tensors_of
from fxflow.distributed.parameter_server.tables.remote import (
    Beginning,
    RowFiles,
    RowParts,
)
from fxflow.distributed.parameter_server.worker.client import WorkerClient
from fxflow.distributed.parameter_server.worker.tickets import (
    Deadline,
    HostArray,
    Pulled,
)
from fxflow.errors import ArgumentError

T = TypeVar("T")
Folder = str | os.PathLike[str]
#: Seconds between requests to a run that does not train yet.
_POLL = 0.2
#: Try a cut at least this many times while servers die, even after the deadline.
_TRIES = 3


class SnapshotPart(NamedTuple):
    """One shard's part of a snapshot.

    Attributes:
      params: its pieces, in the order of the model.
      rest: ``keys`` and ``optimizer``: the optimizer's state; ``rows``: for each table,
        blocks of ids, rows and their optimizer's state.
    """

    params: list[HostArray]
    rest: dict[str, Any]


def take(client: WorkerClient, folder: Folder | None = None) -> list[SnapshotPart]:
    """Takes a snapshot of all shards.

    Args:
      client: this worker's client.
      folder: folder for the rows; None: memory.

    Raises:
      DistributedError: a server does not answer in time, or was replaced just now.
      OSError: the folder cannot be written to.
    """

    def read() -> list[SnapshotPart]:
        which, answers = _cut(client)
        tables = {s: list(m.fields.tables) for s, m in answers.items()}
        rows = _rows(client, which, tables, folder)
        return [part_of(answer, rows[s]) for s, answer in sorted(answers.items())]

    return with_retries(client, read)


def current_params(client: WorkerClient) -> list[Pulled]:
    """Returns the encoded parameters of all shards after the same pushes.

    Raises:
      DistributedError: a server does not answer in time, or was replaced just now.
    """
    _, answers = with_retries(client, lambda: _cut(client, params_only=True))
    found = sorted(answers.items())
    return [
        Pulled(m.fields.version, [m.arrays[str(i)] for i in range(len(m.arrays))])
        for _, m in found
    ]


def with_retries(client: WorkerClient, make: Callable[[], T]) -> T:
    """Makes a cut; tries again if a server dies meanwhile.

    Args:
      client: this process's client.
      make: makes the cut, and returns what it needs.

    Raises:
      DistributedError: a server does not answer in time, or servers keep dying.
    """
    deadline = Deadline(client.seconds, "parameters that all servers have")
    for tries in itertools.count(1):
        try:
            return make()
        except LostCutError:
            if deadline.passed and tries >= _TRIES:
                raise
    raise AssertionError("not reached")


def cut_for(
    client: WorkerClient, save: str, since: str
) -> tuple[int, dict[int, Message]]:
    """Makes a cut whose rows the servers write; returns what `_cut` returns.

    Args:
      client: this process's client.
      save: name of the snapshot.
      since: name of an earlier one; see `messages.Cut`.

    Raises:
      DistributedError: a server does not answer in time, or was replaced just now.
    """
    return _cut(client, save=save, since=since)


def _cut(
    client: WorkerClient,
    params_only: bool = False,
    *,
    save: str = "",
    since: str = "",
) -> tuple[int, dict[int, Message]]:
    """Makes a cut; returns its number and all shards' answers to its second half."""
    shards = range(len(client.view.holders))
    which = secrets.randbits(31)
    begun = client.ask({s: messages.Cut(s, which, params_only) for s in shards})
    upto: dict[int, int] = {}
    for answer in begun.values():
        for worker, last in answer.fields.last:
            upto[worker] = max(upto.get(worker, 0), last)
    named = [[worker, last] for worker, last in sorted(upto.items())]
    asked = {
        s: messages.Cut(s, which, params_only, named, save=save, since=since)
        for s in shards
    }
    return which, client.ask(asked)


def require_model(client: WorkerClient, models: Sequence[Model]) -> None:
    """Waits until a run trains, and checks that it trains these models.

    Raises:
      DistributedError: it trains another model, or does not train in time.
    """
    deadline = Deadline(client.seconds, "the model", "any worker")
    while True:
        shards = len(client.view.holders)
        asked = {
            shard: messages.Hello(
                shard, client.name, shards=shards, fingerprint=model.fingerprint
            )
            for shard, model in enumerate(models)
        }
        answers = client.ask(asked, models=models)
        if all(answers[s].fields.shards.get(str(s)) for s in asked):
            return
        deadline.check()
        time.sleep(_POLL)


def part_of(answer: Message, rows: dict[str, Any]) -> SnapshotPart:
    """Returns a shard's part of a snapshot.

    Args:
      answer: the shard's answer to the second half of a cut.
      rows: blocks of rows, by table.
    """
    arrays, keys = answer.arrays, answer.fields.keys
    params = [value for name, value in arrays.items() if name.startswith("param/")]
    optimizer = [arrays[f"optimizer/{i}"] for i in range(len(keys))]
    return SnapshotPart(params, {"keys": keys, "optimizer": optimizer, "rows": rows})


def _rows(
    client: WorkerClient,
    which: int,
    tables: dict[int, list[str]],
    folder: Folder | None,
) -> dict[int, dict[str, list[list[HostArray]]]]:
    """Reads the rows of a cut, part by part, from all shards concurrently.

    Args:
      client: this worker's client.
      which: number of the cut.
      tables: names of the tables of each shard.
      folder: folder for the rows; None: memory.

    Returns:
      Blocks of ids, rows and state, by shard and table.
    """
    found: dict[int, dict[str, list[list[HostArray]]]] = {s: {} for s in tables}
    read = {shard: _collector(folder) for shard in tables}
    left, parts = {s: n for s, n in tables.items() if n}, dict.fromkeys(tables, 0)
    while left:
        asked = {
            shard: messages.ReadRows(shard, which, names[0], parts[shard])
            for shard, names in left.items()
        }
        for shard, answer in client.ask(asked).items():
            name, *others = left[shard]
            for block in _blocks_of(answer):
                read[shard].append(block)
            parts[shard] += 1
            if answer.fields.end:
                rows = read[shard]
                found[shard][name] = rows if isinstance(rows, list) else rows.blocks()
                left[shard], parts[shard] = others, 0
                read[shard] = _collector(folder)
        left = {shard: names for shard, names in left.items() if names}
    return found


def _collector(folder: Folder | None) -> list[list[HostArray]] | RowFiles:
    return [] if folder is None else RowFiles(folder)


def _blocks_of(answer: Message) -> list[list[HostArray]]:
    """Returns the blocks of ids, rows and state in a part."""
    found: dict[str, list[HostArray]] = {}
    for name, values in answer.arrays.items():
        found.setdefault(name.partition("/")[0], []).append(values)
    return list(found.values())


def params_of(snapshot: Any, like: Any) -> Any:
    """Returns the parameters of a snapshot, in the structure of `like`.

    Raises:
      ArgumentError: the snapshot has other parameters.
    """
    if not isinstance(snapshot, Mapping) or not {"params", "servers"} <= set(snapshot):
        raise ArgumentError(
            "init: the snapshot must be what `snapshot()` returned, a dictionary of "
            f"'params' and 'servers'; got {type(snapshot).__name__}"
        )
    if not snapshot["servers"]:
        raise ArgumentError("init: the snapshot has the state of no server")
    names = (tensor.name for tensor in tensors_of(snapshot["params"]))
    found = dict(zip(names, tree.leaves(snapshot["params"]), strict=True))
    values = []
    for tensor, leaf in zip(tensors_of(like), tree.leaves(like), strict=True):
        expected, value = typeof(leaf).strong(), found.get(tensor.name)
        if value is not None:
            value = as_array(value, expected.dtype)
        if value is None or typeof(value) != expected:
            given = "nothing" if value is None else typeof(value)
            raise ArgumentError(
                f"init: the snapshot has {given} as {tensor.name!r}, the parameters "
                f"have {expected}"
            )
        values.append(value)
    if len(values) < len(found):
        more = sorted(found.keys() - {tensor.name for tensor in tensors_of(like)})
        raise ArgumentError(
            f"init: the snapshot also has {', '.join(map(repr, more))}, which the "
            "parameters lack"
        )
    return tree.structure(like).unflatten(values)


def beginnings(
    snapshot: Mapping[str, Any],
    servers: Sequence[Mapping[str, Any]],
    models: Sequence[Model],
) -> list[Beginning]:
    """Returns the initial state of each shard in addition to its parameters.

    Args:
      snapshot: the snapshot; its rows are not copied.
      servers: the optimizer's state, cut for the current shards.
      models: a model for each shard.

    Raises:
      ArgumentError: the snapshot is of another optimizer or other tables.
    """
    old = [server["rows"] for server in snapshot["servers"]]
    which = str(snapshot.get("name", ""))
    given = []
    for number, (server, model) in enumerate(zip(servers, models, strict=True)):
        if len(old) == len(servers):
            tables, share = old[number], None
        else:
            tables, share = _joined(old), (number, len(servers))
        state = [np.asarray(leaf) for leaf in server["optimizer"]]
        types = [Aval(leaf.shape, leaf.dtype) for leaf in state]
        expected = [aval.physical for aval in model.state]
        if types != expected or set(tables) != set(model.tables):
            raise ArgumentError(
                "init: the snapshot is of another optimizer or other tables: its state "
                f"is {types} for tables {sorted(tables)}, and this run's "
                f"{expected} for {sorted(model.tables)}"
            )
        arrays = {f"optimizer/{i}": leaf for i, leaf in enumerate(state)}
        rows = RowParts(tables, share)
        given.append(Beginning(list(server["keys"]), which, arrays, rows))
    return given


def _joined(servers: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Returns the blocks of all servers, by table."""
    found: dict[str, list[Any]] = {}
    for tables in servers:
        for name, blocks in tables.items():
            found.setdefault(name, []).extend(blocks)
    return found
