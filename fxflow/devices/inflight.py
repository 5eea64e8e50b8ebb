"""Runs programs with collectives one at a time on the CPU.

The devices of a CPU client share one thread pool. A device that reaches a collective
blocks its thread until the others arrive. If several such programs are in flight, their
waiting devices can fill the pool, and no further device arrives (with jaxlib alone,
2,000 calls of a program on 4 devices deadlock within the first hundreds, and the
runtime aborts the process after 40 s). Therefore a program with collectives starts only
when the previous one has finished. GPUs and TPUs run each device's programs in order
and do not need this.
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
    """Returns whether an optimized HLO module has collectives."""
    return re.search(_COLLECTIVE, hlo_text) is not None


def one_at_a_time(launch: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a `launch` that first waits for the previous program.

    Args:
      launch: an executable's ``execute_sharded``.
    """

    def start(buffers: list[Any], with_tokens: bool = False) -> Any:
        with _gate.lock:
            last = _gate.last
            if last is not None:
                # Reading its results raises its failure.
                with contextlib.suppress(RuntimeFailure):
                    last.block_until_ready()
                _gate.last = None  # after the wait, which may be interrupted
            results = launch(buffers, with_tokens=True)
            if not with_tokens:  # else the caller takes the token and waits for it
                _gate.last = results.consume_token()
        return results

    return start


def waiting(seconds: float = 0.05) -> bool:
    """Returns whether a program that `one_at_a_time` launched is still running.

    Args:
      seconds: timeout: the runtime can be waited for but not polled.
    """
    if not _gate.lock.acquire(timeout=seconds):
        return True  # the next program waits for it
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
