"""Snapshots of a run, at a worker's end; `server.cuts` is the other."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Aval, typeof
from fxflow.distributed.parameter_server.messages import Message
from fxflow.distributed.parameter_server.model import Model
from fxflow.distributed.parameter_server.placement import tensors_of
from fxflow.distributed.parameter_server.server.cuts import _LostCutError
from fxflow.distributed.parameter_server.transport import Deadline
from fxflow.distributed.parameter_server.worker.client import Client
from fxflow.distributed.parameter_server.worker.tickets import HostArray, Pulled
from fxflow.errors import ArgumentError

#: How often a run that does not train yet is asked, in seconds.
_LOOK = 0.2


class Part(NamedTuple):
    """What a snapshot has of one shard.

    Attributes:
      params: its pieces, in the order of the model.
      rest: ``keys`` and ``optimizer``, the optimizer's state; ``rows``: of each table
        blocks of ids, rows and their optimizer's state.
    """

    params: list[HostArray]
    rest: dict[str, Any]


def taken(client: Client) -> list[Part]:
    """Makes a snapshot of all shards.

    Raises:
      DistributedError: a server does not answer in time, or was replaced just now.
    """
    parts = []
    for shard, answer in sorted(_cut(client).items()):
        rows = {t: _rows(client, shard, t) for t in answer.fields["tables"]}
        parts.append(_part(answer, rows))
    return parts


def looked_at(client: Client) -> list[Pulled]:
    """Returns the parameters of all shards after the same pushes, as they travel.

    Raises:
      DistributedError: a server does not answer in time, or was replaced just now.
    """
    found = sorted(_cut(client, looks=True).items())
    return [
        Pulled(
            int(m.fields["version"]), [m.arrays[str(i)] for i in range(len(m.arrays))]
        )
        for _, m in found
    ]


def _cut(client: Client, looks: bool = False) -> dict[int, Message]:
    """Makes a cut, and another one where a server died within it.

    Returns:
      What all shards answer to its second half.

    Raises:
      DistributedError: a server does not answer in time, or none lives long enough.
    """
    deadline = Deadline(client.seconds, "parameters that all servers have")
    while True:
        try:
            return _one_cut(client, looks)
        except _LostCutError:
            if deadline.passed:
                raise


def _one_cut(client: Client, looks: bool) -> dict[int, Message]:
    shards = range(len(client.view.holders))
    which = secrets.randbits(31)
    asked: dict[str, Any] = {"cut": which, "looks": looks}
    begun = client.ask_shards("cut", {s: (asked, {}) for s in shards})
    upto: dict[int, int] = {}
    for answer in begun.values():
        for worker, last in answer.fields["last"]:
            upto[worker] = max(upto.get(worker, 0), last)
    asked["upto"] = sorted(upto.items())
    return client.ask_shards("cut", {s: (asked, {}) for s in shards})


def require_model(client: Client, models: Sequence[Model]) -> None:
    """Waits until a run trains, and checks that it trains this.

    Raises:
      DistributedError: it trains another model, or none yet when time is up.
    """
    deadline = Deadline(client.seconds, "a worker that brings the model")
    while True:
        shards = len(client.view.holders)
        asked: dict[int, Any] = {}
        for shard, model in enumerate(models):
            mine = {"fingerprint": model.fingerprint, "name": client.name}
            asked[shard] = {**mine, "shards": shards}, {}
        answers = client.ask_shards("hello", asked, models)
        if all(answers[s].fields["shards"].get(str(s)) for s in asked):
            return
        deadline.check()
        time.sleep(_LOOK)


def _part(answer: Message, rows: dict[str, Any]) -> Part:
    arrays, keys = answer.arrays, answer.fields["keys"]
    params = [value for name, value in arrays.items() if name.startswith("param/")]
    optimizer = [arrays[f"optimizer/{i}"] for i in range(len(keys))]
    return Part(params, {"keys": keys, "optimizer": optimizer, "rows": rows})


def _rows(client: Client, shard: int, table: str) -> list[list[HostArray]]:
    """Returns blocks of ids, rows and state, read one part after another."""
    blocks: list[list[HostArray]] = []
    part = 0
    while True:
        fields = {"table": table, "part": part}
        answer = client.ask_shards("snapshot", {shard: (fields, {})})[shard]
        if answer.fields["end"]:
            return blocks
        found: dict[str, list[HostArray]] = {}
        for name, values in answer.arrays.items():
            found.setdefault(name.partition("/")[0], []).append(values)
        blocks += found.values()
        part += 1


def params_of(snapshot: Any, like: Any) -> Any:
    """Returns the parameters of a snapshot, as the pytree that they are like.

    Raises:
      ArgumentError: they are others.
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
        value = found.get(tensor.name)
        if value is None or typeof(value) != typeof(leaf):
            was = "nothing" if value is None else typeof(value)
            raise ArgumentError(
                f"init: the snapshot has {was} as {tensor.name!r}, the parameters "
                f"have {typeof(leaf)}"
            )
        values.append(value)
    return tree.structure(like).unflatten(values)


def states_of(
    servers: Sequence[Mapping[str, Any]], models: Sequence[Model]
) -> list[tuple[dict[str, Any], dict[str, HostArray]]]:
    """Returns for each shard fields and arrays of what else it begins with.

    Raises:
      ArgumentError: the snapshot is of another optimizer or other tables.
    """
    given = []
    for server, model in zip(servers, models, strict=True):
        state = [np.asarray(leaf) for leaf in server["optimizer"]]
        types = [Aval(leaf.shape, leaf.dtype) for leaf in state]
        expected = [aval.physical for aval in model.state]
        if types != expected or set(server["rows"]) != set(model.tables):
            raise ArgumentError(
                "init: the snapshot is of another optimizer or other tables: its state "
                f"is {types} for tables {sorted(server['rows'])}, and this run's "
                f"{expected} for {sorted(model.tables)}"
            )
        arrays = {f"optimizer/{i}": leaf for i, leaf in enumerate(state)}
        for name, blocks in server["rows"].items():
            for i, block in enumerate(blocks):
                for j, values in enumerate(block):
                    arrays[f"rows/{name}/{i}/{j}"] = np.asarray(values)
        counts = {name: len(blocks) for name, blocks in server["rows"].items()}
        given.append(({"keys": list(server["keys"]), "rows": counts}, arrays))
    return given
