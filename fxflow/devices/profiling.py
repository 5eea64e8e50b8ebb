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
    """Records a profile; a process can record one at a time.

    Args:
      options: what to record; None for the defaults.
    """

    def __init__(self, options: ProfileOptions | None = None) -> None:
        given = () if options is None else (options,)
        self._session: Any = raw.ProfilerSession(*given)

    def stop(self) -> bytes:
        """Stops recording; returns the profile as a serialized `XSpace`."""
        found: bytes = self._session.stop()
        return found

    def export(self, profile: bytes, folder: str) -> None:
        """Writes a profile to `folder`, for TensorBoard and Perfetto."""
        self._session.export(profile, folder)


def start_server(port: int) -> ProfilerServer:
    """Starts a server of profiles, which runs until the result is dropped."""
    server: ProfilerServer = raw.start_server(port)
    return server


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Adds the records of another process's server to this process's profiles."""
    unregister: Callable[[], None] = raw.register_subprocess(pid, port)
    return unregister


def heap_profile(client: Any) -> bytes:
    """Returns the memory in use on a client's devices, in pprof's format."""
    found: bytes = client.heap_profile()
    return found
