"""Errors that the package raises and handles internally."""

from __future__ import annotations


class ClientDisconnect(Exception):
    """The client disconnected before its request or its reply was complete."""
