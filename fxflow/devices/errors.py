"""What can go wrong at the seam to the runtime."""

from __future__ import annotations

__all__ = [
    "BackendError",
    "CompileError",
    "DeletedBufferError",
    "OutOfMemoryError",
    "ForkedError",
    "PlacementError",
]


class BackendError(RuntimeError):
    """A platform was asked for that cannot be used; the message says why."""


class CompileError(RuntimeError):
    """XLA refused or failed to compile a program.

    Attributes:
        module_text: the program, or None if it was not text.
    """

    module_text: str | None = None


class DeletedBufferError(RuntimeError):
    """A buffer was used after it was deleted or donated."""


class OutOfMemoryError(MemoryError):
    """An array, or what a program needs besides, does not fit a device's memory."""


class ForkedError(RuntimeError):
    """fxflow was used in a process forked from one that had started its runtime."""


class PlacementError(ValueError):
    """A mesh or a sharding that does not fit: its devices, its axes or the array."""
