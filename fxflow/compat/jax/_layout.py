"""Layouts, which fxflow leaves to the compiler: what names them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """The order of an array's axes in memory."""

    major_to_minor: tuple[int, ...]
    tiling: Any = None
    sub_byte_element_size_in_bits: int = 0

    AUTO = object()


@dataclass(frozen=True)
class Format:
    """A layout and a sharding."""

    layout: Any = None
    sharding: Any = None


__all__ = ["Format", "Layout"]
