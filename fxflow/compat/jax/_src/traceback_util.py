"""`jax._src.traceback_util`: fxflow leaves its own frames out by itself."""

from typing import Any, TypeVar

from fxflow.compat.jax._mirror import listen

T = TypeVar("T")

_exclude_paths: list[str] = []


class UnfilteredStackTrace(Exception):
    """Has the frames that are left out in JAX; never raised here."""


def register_exclusion(path: str) -> None:
    """Does nothing."""


def api_boundary(fun: T, **options: Any) -> T:
    """Returns the function as it is."""
    return fun


def include_frame(frame: Any) -> bool:
    """Returns whether a frame is shown."""
    return True


listen(globals())
