"""The classes of jaxlib's profiler, with types."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import jaxlib._profile_data as _profile_data
import jaxlib._profiler as _profiler

#: Functions of the extension module, without types.
raw: Any = _profiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    class ProfileOptions:
        """Options of a profile.

        Attributes:
          host_tracer_level: 0 for nothing of the host, 1 for annotations, 2 for the
            runtime as well, 3 for everything.
          python_tracer_level: 1 for each call of a Python function, 0 for none.
          enable_hlo_proto: whether the profile contains the compiled programs.
          device_tracer_level: 1 for the devices' work, 0 for none.
        """

        host_tracer_level: int
        python_tracer_level: int
        enable_hlo_proto: bool
        include_dataset_ops: bool
        advanced_configuration: dict[str, str | int | bool]
        repository_path: str
        session_id: str
        start_timestamp_ns: int
        duration_ms: int
        raise_error_on_start_failure: bool

    class ProfileEvent:
        """An event; its times are nanoseconds since the profile began."""

        @property
        def name(self) -> str: ...
        @property
        def start_ns(self) -> float: ...
        @property
        def duration_ns(self) -> float: ...
        @property
        def end_ns(self) -> float: ...
        @property
        def stats(self) -> Iterator[tuple[str, Any]]: ...

    class ProfileLine:
        """The events of a thread, or of a device's stream."""

        @property
        def name(self) -> str: ...
        @property
        def events(self) -> Iterator[ProfileEvent]: ...

    class ProfilePlane:
        """The lines of a host or a device."""

        @property
        def name(self) -> str: ...
        @property
        def lines(self) -> Iterator[ProfileLine]: ...
        @property
        def stats(self) -> Iterator[tuple[str, Any]]: ...

    class ProfileData:
        """A profile, the content of a `<host>.xplane.pb` file."""

        @property
        def planes(self) -> Iterator[ProfilePlane]: ...
        @staticmethod
        def from_file(proto_file_path: str) -> ProfileData: ...
        @staticmethod
        def from_serialized_xspace(serialized_xspace: bytes) -> ProfileData: ...
        def find_plane_with_name(self, name: str) -> ProfilePlane | None: ...

    class TraceMe:
        """A context manager that records a named span of the host's time."""

        def __init__(self, name: str, /, **metadata: Any) -> None: ...
        def __enter__(self) -> TraceMe: ...
        def __exit__(self, *error: object) -> None: ...
        def set_metadata(self, **metadata: Any) -> None: ...
        @staticmethod
        def is_enabled() -> bool: ...

    class ProfilerServer:
        """A server of profiles over the network."""
else:
    ProfileOptions = _profiler.ProfileOptions
    ProfileData = _profile_data.ProfileData
    ProfileEvent = _profile_data.ProfileEvent
    ProfilePlane = _profile_data.ProfilePlane
    TraceMe = _profiler.TraceMe
    ProfilerServer = _profiler.ProfilerServer

    def _statistics_type() -> type:
        """Returns the type of iterators over statistics, without Python 3.13's warning.

        jaxlib makes the type when first needed, and again after it was collected; if
        warnings are errors, each time aborts the process.
        """
        profile = ProfileData.from_serialized_xspace(b"\x0a\0")  # one empty plane
        with warnings.catch_warnings(action="ignore"):
            return next(type(plane.stats) for plane in profile.planes)

    _kept = _statistics_type()
