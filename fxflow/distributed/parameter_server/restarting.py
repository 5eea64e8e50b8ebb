"""Restarts the servers of a run one by one while training continues."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.polling import (
    ServerPoll,
    ServerStats,
    missing,
    run_statistics,
)
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import DistributedError

#: Exit status of a server that is to be started again.
RESTART = 75
#: Seconds between two looks at a server that restarts.
_POLL = 0.1
#: Seconds for which a server may not answer a question.
_PATIENCE = 5.0


def restart_servers(
    servers: Sequence[str],
    keys: Keys | None = None,
    *,
    deadline: float = 120.0,
    log: Callable[[str], None] = print,
) -> None:
    """Restarts the servers of a run one by one, such as for an upgrade.

    A server ends without leaving the run, and continues from its log or from the copies
    of its shards; workers send the pushes that it did not acknowledge again, so none is
    lost or applied twice. The next server is restarted when every shard is served, and
    all copies are complete. What started the servers must start a server that exits
    with status 75 again: `fxflow launch`, Kubernetes and systemd do.

    Args:
      servers: addresses of all servers, in order.
      keys: the run's keys; None on this machine.
      deadline: seconds within which each server must serve again.
      log: called with a line for each server.

    Raises:
      DistributedError: a server has neither a folder nor copies; or it, or one that it
        waits for, did not return in time. The servers after it were not restarted.
    """
    numbers = sorted(run_statistics(servers, keys, _PATIENCE))
    for number in numbers:
        stats = _await(servers, keys, numbers, deadline, f"server {number} may restart")
        before = stats[number]["incarnation"]
        address = View.from_json(stats[number]["view"]).addresses[number]
        begun = time.monotonic()
        with ServerPoll({number: address}, keys, patience=_PATIENCE) as poll:
            (answer,) = poll.ask(messages.Restart())
        if answer.message is None:
            raise DistributedError(
                f"server {number} at {address} was not restarted: {answer.problem}"
            )
        _await(
            servers,
            keys,
            numbers,
            deadline,
            f"server {number} at {address} has restarted",
            {number: before},
        )
        log(f"server {number} serves again after {time.monotonic() - begun:.1f} s")


def _await(
    servers: Sequence[str],
    keys: Keys | None,
    numbers: Sequence[int],
    deadline: float,
    what: str,
    before: Mapping[int, int] | None = None,
) -> dict[int, ServerStats]:
    """Waits until all servers answer and hold what they should.

    Args:
      servers: addresses of all servers.
      keys: the run's keys.
      numbers: the servers that must answer.
      deadline: seconds after which the wait fails.
      what: the awaited state, for the error.
      before: incarnations that must have ended, by server.

    Raises:
      DistributedError: a server is late; the error says which.
    """
    end = time.monotonic() + deadline
    while True:
        try:
            stats = run_statistics(servers, keys, _PATIENCE)
            late = missing(stats, numbers, before or {})
        except DistributedError as error:
            stats, late = {}, str(error)
        if not late:
            return stats
        if time.monotonic() > end:
            raise DistributedError(
                f"{what}: not within {deadline:g} s, because {late}; the servers after "
                "it were not restarted"
            )
        time.sleep(_POLL)
