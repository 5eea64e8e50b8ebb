"""Errors within the package, which no user sees."""

from __future__ import annotations


class ClientDisconnect(Exception):
    """The client disconnected before its request or its reply was complete."""
