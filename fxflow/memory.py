"""Memories by name, as in `device_put(x, memory.Space.Host)`."""

from fxflow.devices.memory_kinds import Space

__all__ = ["Space"]
