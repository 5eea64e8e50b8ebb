"""Programs whose devices wait for each other, one at a time on the CPU.

The devices of a CPU client share one pool of threads. A device that reached a
collective holds its thread until the others arrive; if several such programs are in
flight, their waiting devices can fill the pool and no device arrives any more (with
jaxlib alone 2,000 calls of a program on 4 devices stop within the first hundreds, and
the process is aborted after 40 s). So a program with collectives is launched when the
one before it has finished. GPUs and TPUs run each device's programs in order and do not
need this.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable
from typing import Any

from fxflow.devices._jaxlib import RuntimeFailure
from fxflow.devices.clients import on_clear
from fxflow.devices.process import on_exit

_COLLECTIVE = (
    r"\b(all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|"
    r"collective-broadcast|ragged-all-to-all)(-start)?\("
)


class _Gate:
    __slots__ = ("last", "lock")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last: Any = None

    def clear(self) -> None:
        self.last = None


_gate = _Gate()
on_clear(_gate.clear)
on_exit(lambda: _gate.last)


def has_collectives(hlo_text: str) -> bool:
    """Returns whether devices wait for each other in an optimised HLO module."""
    return re.search(_COLLECTIVE, hlo_text) is not None


def one_at_a_time(launch: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `launch`, waiting for the program before.

    Args:
      launch: an executable's ``execute_sharded``.
    """

    def start(buffers: list[Any], with_tokens: bool = False) -> Any:
        with _gate.lock:
            last = _gate.last
            if last is not None:
                # A failure is raised where the results are read.
                with contextlib.suppress(RuntimeFailure):
                    last.block_until_ready()
                _gate.last = None  # not before: the wait may be interrupted
            results = launch(buffers, with_tokens=True)
            if not with_tokens:  # else the caller waits for it, and takes the token
                _gate.last = results.consume_token()
        return results

    return start


def waiting(seconds: float = 0.05) -> bool:
    """Returns whether a program that `one_at_a_time` launched is not through.

    Args:
      seconds: how long it may take to find out; the runtime can only be waited for.
    """
    if not _gate.lock.acquire(timeout=seconds):
        return True  # the next one waits for it
    last = _gate.last
    _gate.lock.release()
    if last is None:
        return False

    def wait() -> None:
        with contextlib.suppress(RuntimeFailure):
            last.block_until_ready()

    thread = threading.Thread(target=wait, name="fxflow-waiting", daemon=True)
    thread.start()
    thread.join(seconds)
    return thread.is_alive()
