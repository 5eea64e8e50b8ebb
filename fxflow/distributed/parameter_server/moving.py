"""Moves shards between the servers of a run while training continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.polling import (
    PATIENCE,
    ServerPoll,
    ServerStats,
    await_run,
    missing,
    newest_view,
    run_statistics,
)
from fxflow.distributed.parameter_server.views import Places, View, balanced, moved
from fxflow.errors import DistributedError


def move_shard(
    servers: Sequence[str],
    shard: int,
    server: int,
    keys: Keys | None = None,
    *,
    deadline: float = 120.0,
    log: Callable[[str], None] = print,
) -> None:
    """Moves a shard to another server while training continues.

    The server gets the shard's state and the pushes that arrive meanwhile, and then
    serves it in place of the server that did; no push is lost or applied twice. If it
    has a copy already, the two change places. Whenever servers join or leave, shards
    are assigned by their bytes, and may move again.

    Args:
      servers: addresses of servers of the run.
      shard: the number of the shard.
      server: the number of the server that is to serve it.
      keys: the run's keys; None on this machine.
      deadline: seconds within which the server must serve the shard.
      log: called with a line before and after the move.

    Raises:
      DistributedError: unknown shard or server, shards cannot move in this run, or the
        move is not complete in time; the error names what is late.

    Example:
      >>> import numpy as np
      >>> from fxflow import optim
      >>> from fxflow.distributed.parameter_server import (
      ...     LocalServers, asynchronous, move_shard, parameter_server
      ... )
      >>> local = LocalServers(2, shards=4)
      >>> server = parameter_server(
      ...     lambda w, x: (w * x).sum(), optim.sgd(1.0),
      ...     consistency=asynchronous(), cluster=local.cluster,
      ... )
      >>> state = server.init(np.zeros(3, np.float32))
      >>> move_shard(local.cluster.servers, 2, 1, log=lambda line: None)
      >>> local.servers[1].view.served_by(1)
      [1, 2, 3]
      >>> server.close()
      >>> local.close()
    """
    _, view = _state(servers, keys)
    try:
        places = moved(view, shard, server)
    except ValueError as error:
        raise DistributedError(str(error)) from None
    _move(servers, keys, view, places, deadline, log)


def rebalance_shards(
    servers: Sequence[str],
    keys: Keys | None = None,
    *,
    deadline: float = 120.0,
    log: Callable[[str], None] = print,
) -> None:
    """Divides the shards of a run again by the load that its servers measured.

    The load of a shard is the share of its server's time in the last minute. As few
    shards move as the balance requires, as by `move_shard`.

    Args:
      servers: addresses of servers of the run.
      keys: the run's keys; None on this machine.
      deadline: seconds within which all moves must be complete.
      log: called with lines about what moves, and about a shard that is more than a
        server's fair share by itself: only more shards divide its load.

    Raises:
      DistributedError: shards cannot move in this run, no load was measured, or a move
        is not complete in time; the error names what is late.
    """
    stats, view = _state(servers, keys)
    loads = shard_loads(stats, view)
    try:
        places = balanced(view, loads)
    except ValueError as error:
        raise DistributedError(str(error)) from None
    total, share = sum(loads.values()), 1 / len(view.members)
    for shard, load in sorted(loads.items()):
        if load > 1.1 * share * total:
            log(
                f"shard {shard} has {load / total:.0%} of the load, more than a "
                f"server's fair share of {share:.0%}: only a run with more shards "
                "(--shards) divides it"
            )
    _move(servers, keys, view, places, deadline, log)


def shard_loads(stats: Mapping[int, ServerStats], view: View) -> dict[int, float]:
    """Returns the load of each shard that the server that serves it has measured.

    Args:
      stats: the statistics of servers, by number.
      view: the current view.
    """
    found = {}
    for shard in range(len(view.holders)):
        primary = stats.get(view.primary(shard), {})
        of_shard = primary.get("shards", {}).get(str(shard), {})
        if of_shard.get("serves"):
            found[shard] = float(of_shard["load"])
    return found


def _state(
    servers: Sequence[str], keys: Keys | None
) -> tuple[dict[int, ServerStats], View]:
    """Returns the statistics of the servers, and their view.

    Raises:
      DistributedError: no server answers, or the run has not begun.
    """
    stats = run_statistics(servers, keys)
    view = newest_view(stats)
    if view.members and not view.run:
        raise DistributedError(
            "the run has not begun: its shards can move when a worker has joined"
        )
    return stats, view


def _move(
    servers: Sequence[str],
    keys: Keys | None,
    view: View,
    places: Places,
    deadline: float,
    log: Callable[[str], None],
) -> None:
    """Requests planned servers, and waits until they hold what they should.

    Raises:
      DistributedError: they do not in time, or servers joined or left meanwhile.
    """
    changed = [n for n, planned in enumerate(places) if planned != view.places[n]]
    if not changed:
        log("all shards are where they should be")
        return
    for shard in changed:
        log(f"shard {shard}: {_named(view.places[shard])} → {_named(places[shard])}")
    begun = time.monotonic()
    await_run(
        servers,
        keys,
        lambda stats: _late(servers, keys, stats, view, places, changed),
        deadline,
        f"shards {', '.join(map(str, changed))} have not moved",
    )
    log(f"all shards have moved after {time.monotonic() - begun:.1f} s")


def _late(
    servers: Sequence[str],
    keys: Keys | None,
    stats: Mapping[int, ServerStats],
    view: View,
    places: Places,
    changed: Sequence[int],
) -> str:
    """Requests places that are not planned yet; returns what is late, or "".

    Raises:
      DistributedError: servers joined or left since the view.
    """
    planned = newest_view(stats).places
    if planned == places:
        return missing(stats, (), shards=changed)
    if planned != view.places:
        raise DistributedError(
            "servers joined or left, and shards were assigned again: look at the new "
            "assignment (fxflow parameter-server watch), and repeat the request if it "
            "is still needed"
        )
    # Any of them may be the one that proposes the next view.
    plan = messages.Plan([*map(list, view.places)], [*map(list, places)])
    with ServerPoll(servers, keys, patience=PATIENCE) as poll:
        poll.follow(view.addresses, view.peers)
        answers = poll.ask(plan)
    refused = [f"server {a.server}: {a.problem}" for a in answers if a.problem]
    return "; ".join(refused) or "the servers and workers have not agreed on it"


def _named(planned: Sequence[int]) -> str:
    first, *copies = planned
    held = f" (copies on {', '.join(map(str, copies))})" if copies else ""
    return f"server {first}{held}"
