"""Restarts the servers of a run one by one while training continues."""

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
    run_statistics,
)
from fxflow.distributed.parameter_server.views import View
from fxflow.errors import DistributedError

#: Exit status of a server that is to be started again.
RESTART = 75


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
    numbers = sorted(run_statistics(servers, keys))

    def wait_for(what: str, before: Mapping[int, int]) -> dict[int, ServerStats]:
        return await_run(
            servers,
            keys,
            lambda stats: missing(stats, numbers, before),
            deadline,
            f"{what} and those after it have not restarted",
        )

    for number in numbers:
        stats = wait_for(f"server {number}", {})
        before = stats[number]["incarnation"]
        address = View.from_json(stats[number]["view"]).addresses[number]
        begun = time.monotonic()
        with ServerPoll({number: address}, keys, patience=PATIENCE) as poll:
            (answer,) = poll.ask(messages.Restart())
        if answer.message is None:
            raise DistributedError(
                f"server {number} at {address} was not restarted: {answer.problem}"
            )
        wait_for(f"server {number} at {address}", {number: before})
        log(f"server {number} serves again after {time.monotonic() - begun:.1f} s")
