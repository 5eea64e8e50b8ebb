"""Answers to requests that change nothing: parameters, rows, statistics."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.errors import NotServedError
from fxflow.distributed.parameter_server.monitor.tracing import Meter
from fxflow.distributed.parameter_server.server.replicas import Replicas
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.program_text import type_text
from fxflow.errors import DistributedError

Arrays = dict[str, np.ndarray[Any, Any]]
_Reply = Callable[..., None]


class Reads:
    """Answers processes that read parameters and rows.

    Args:
      replicas: the server's shards, and which of them it serves.
      meter: counts what is sent.
      reply: sends an answer: `ShardServer` waits until what it contains is committed.

    Attributes:
      handlers: the methods that answer each kind of request.
    """

    handlers: dict[type, Callable[[bytes, Message, Any], None]]

    def __init__(self, replicas: Replicas, meter: Meter, reply: _Reply) -> None:
        self._replicas, self._meter, self._reply = replicas, meter, reply
        self.handlers = {
            messages.PullRows: self._on_pull_rows,
            messages.Describe: self._on_describe,
            messages.ReadParams: self._on_read_params,
        }

    def _on_pull_rows(
        self, peer: bytes, message: Message, pull: messages.PullRows
    ) -> None:
        found = self._readable(peer, message, pull, 0.0 if pull.create else pull.within)
        if found is None:
            return
        shard, behind = found
        tables = {name: shard.table(name) for name in message.arrays}
        rows = {
            name: tables[name].pull(ids) if pull.create else tables[name].read(ids)
            for name, ids in message.arrays.items()
        }
        self._meter.moved("pull", {}, rows, tables=True)
        answer = messages.Rows(pull.shard, pull.request)
        if not pull.create:
            answer = answer._replace(at=list(shard.position), behind=behind)
        self._reply(peer, message, answer, rows)

    def _on_describe(
        self, peer: bytes, message: Message, asked: messages.Describe
    ) -> None:
        shard = self._replicas.served(asked.shard)
        view, begun = self._replicas.view.to_json(), bool(shard.fingerprint)
        described = messages.Described(asked.shard, asked.request, view, begun)
        self._reply(peer, message, described, description(shard))

    def _on_read_params(
        self, peer: bytes, message: Message, read: messages.ReadParams
    ) -> None:
        found = self._readable(peer, message, read, read.within)
        if found is None:
            return
        shard, behind = found
        params, arrays = current_params(shard, read, behind)
        if shard.model is not None:
            self._meter.moved("pull", shard.model.filters["pull"], arrays)
        self._reply(peer, message, params, arrays)

    def _readable(
        self,
        peer: bytes,
        message: Message,
        read: messages.ReadParams | messages.PullRows,
        within: float,
    ) -> tuple[Shard, int] | None:
        """Returns what `Replicas.readable` does; None: the reader was refused."""
        if within > 0:
            # It must know the copies, and the primary if it is refused.
            self._replicas.send_view(peer, message)
        try:
            return self._replicas.readable(read.shard, within, read.at)
        except NotServedError:
            if not within > 0:
                raise
        refusal = messages.Refuse(read.shard, read.request, messages.BEHIND)
        self._reply(peer, message, refusal)
        return None


def description(shard: Shard) -> Arrays:
    """Returns what a process without the model's code must know to read a shard.

    Args:
      shard: the shard.

    Returns:
      An array of bytes, ``"text"``: JSON with the names and types of the pieces of
      parameters, and the specification of each table. Empty before the run begins.
    """
    model = shard.model
    if model is None or not shard.fingerprint:
        return {}
    described = {
        "names": model.names,
        "params": [type_text(aval) for aval in model.params],
        "tables": {name: table.description for name, table in model.tables.items()},
        "fingerprint": model.fingerprint,
    }
    return {"text": np.frombuffer(json.dumps(described).encode(), np.uint8)}


def current_params(
    shard: Shard, read: messages.ReadParams, behind: int = 0
) -> tuple[messages.Params, Arrays]:
    """Returns the answer to a reader, with the parameters as workers pull them.

    Args:
      shard: the shard.
      read: the request.
      behind: nanoseconds for which the shard may lack acknowledged entries.

    Raises:
      DistributedError: the run has not begun.
      EntryError: the update that made the parameters failed.
    """
    if not shard.fingerprint:
        raise DistributedError("the run has not begun: it has no parameters to read")
    version = shard.group.version
    # A copy may have had entries that were lost with the primary: then other entries
    # have made the same version, in a later epoch.
    same = (version, shard.position.epoch) == (read.have, read.epoch)
    values = [] if same else shard.encoded()
    at = list(shard.position)
    params = messages.Params(
        read.shard, read.request, version, same, at=at, behind=behind
    )
    return params, {str(i): value for i, value in enumerate(values)}


def statistics(
    number: int, shard: Shard, view: View, serves: bool, load: float
) -> dict[str, Any]:
    """Returns the state and statistics of a shard, as JSON.

    Args:
      number: number of the shard.
      shard: the shard.
      view: the server's view.
      serves: whether the server serves the shard.
      load: the share of its recent time that the server spent on the shard.
    """
    return {
        "bytes": shard.model.nbytes if shard.model else 0,
        "index": shard.position.entries,
        "version": shard.group.version,
        "serves": serves,
        "load": load,
        "holders": list(view.holders[number]),
        "places": list(view.places[number]),
        "missing": len({*view.places[number]} - {*view.holders[number]}),
        "tables": {
            name: {**table.counts._asdict(), "bytes": table.nbytes}
            for name, table in shard.tables.items()
        },
        **dataclasses.asdict(shard.counts),
        "clocks": {str(w): shard.group[w].clock for w in shard.group},
    }
