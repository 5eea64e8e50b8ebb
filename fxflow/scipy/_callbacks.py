"""Callbacks of users, which see the iterates of solvers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.errors import ArgumentError
from fxflow.lax.callbacks import debug_callback


def showing(name: str, callback: Any) -> Callable[..., None] | None:
    """Returns the function that calls the user's callback on the host; None of None.

    Args:
      name: of the function, for messages.
      callback: the user's; its result is ignored.

    Raises:
      ArgumentError: the callback is not a function.
    """
    if callback is None:
        return None
    if not callable(callback):
        raise ArgumentError(f"{name}: callback must be a function, got {callback!r}")

    def call(*given: Any) -> None:
        callback(*given)

    return lambda *given: debug_callback(call, *given)
