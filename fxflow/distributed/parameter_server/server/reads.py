"""Answers to requests that change nothing: a shard's description and statistics."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np

from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.shard import Shard
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.program_text import type_text
from fxflow.errors import DistributedError

Arrays = dict[str, np.ndarray[Any, Any]]


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
    shard: Shard, read: messages.ReadParams
) -> tuple[messages.Params, Arrays]:
    """Returns the answer to a reader, with the parameters as workers pull them.

    Args:
      shard: the shard.
      read: the request.

    Raises:
      DistributedError: the run has not begun.
      EntryError: the update that made the parameters failed.
    """
    if not shard.fingerprint:
        raise DistributedError("the run has not begun: it has no parameters to read")
    version = shard.group.version
    same = version == read.have
    values = [] if same else shard.encoded()
    params = messages.Params(read.shard, read.request, version, same)
    return params, {str(i): value for i, value in enumerate(values)}


def statistics(number: int, shard: Shard, view: View, serves: bool) -> dict[str, Any]:
    """Returns the state and statistics of a shard, as JSON.

    Args:
      number: number of the shard.
      shard: the shard.
      view: the server's view.
      serves: whether the server serves the shard.
    """
    return {
        "bytes": shard.model.nbytes if shard.model else 0,
        "index": shard.position.entries,
        "version": shard.group.version,
        "serves": serves,
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
