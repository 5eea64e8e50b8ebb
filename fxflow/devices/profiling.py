"""The runtime's profiler: sessions, annotations, a server, memory in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.devices._profiles import (
    ProfileData,
    ProfileEvent,
    ProfileOptions,
    ProfilePlane,
    ProfilerServer,
    TraceMe,
    raw,
)

__all__ = [
    "ProfileData", "ProfileEvent", "ProfileOptions", "ProfilePlane", "ProfilerServer",
    "ProfilerSession", "TraceMe", "heap_profile", "register_subprocess", "start_server",
]  # fmt: skip


class ProfilerSession:
    """A profile that is being recorded; one at a time in a process.

    Args:
      options: what is recorded.
    """

    def __init__(self, options: ProfileOptions | None = None) -> None:
        given = () if options is None else (options,)
        self._session: Any = raw.ProfilerSession(*given)

    def stop(self) -> bytes:
        """Ends it; returns the profile as a serialized `XSpace`."""
        found: bytes = self._session.stop()
        return found

    def export(self, profile: bytes, folder: str) -> None:
        """Writes a profile below `folder`, as TensorBoard and Perfetto read it."""
        self._session.export(profile, folder)


def start_server(port: int) -> ProfilerServer:
    """Starts to answer those who ask for a profile, until the result is dropped."""
    server: ProfilerServer = raw.start_server(port)
    return server


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Adds what another process's server records to this one's profiles."""
    forget: Callable[[], None] = raw.register_subprocess(pid, port)
    return forget


def heap_profile(client: Any) -> bytes:
    """Returns the memory in use on a client's devices, in pprof's format."""
    found: bytes = client.heap_profile()
    return found
