"""PJRT plug-ins: accelerators' runtimes as shared libraries."""

from __future__ import annotations

from ._jaxlib import Client
from .errors import BackendError


def present() -> tuple[str, ...]:
    """Return the platforms whose plug-in is installed, best first."""
    return ()


def is_present(platform: str) -> bool:
    """Return whether the plug-in of `platform` is installed."""
    return platform in present()


def make_client(platform: str) -> Client:
    """Load the plug-in of `platform` and return its client."""
    raise BackendError("no plug-in of that name is installed")
