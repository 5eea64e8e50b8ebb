"""Pulls that wait."""

import time

from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.peers import UNKNOWN, PendingPull


def test_a_pull_ends_at_its_deadline() -> None:
    before = time.monotonic()
    pull = PendingPull(b"peer", 7, messages.Pull(2, 5, 4, 1, 30.0), 5)
    assert (pull.shard, pull.seen) == (2, 4)
    assert before + 30 <= pull.end <= time.monotonic() + 30
    assert not UNKNOWN.name and not UNKNOWN.peer
