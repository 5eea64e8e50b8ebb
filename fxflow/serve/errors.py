"""What the parts of serving raise for each other."""

from __future__ import annotations


class ClientDisconnect(Exception):
    """The client disconnected before its request or its reply was complete."""
