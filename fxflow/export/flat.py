"""FlatBuffers, as far as the artifacts of `export` need them: tables and vectors.

A table is a position in the bytes. Its *vtable*, before or after it, has the offset of
each numbered field in the table, or 0 if it is absent. Unsigned forward offsets point
to strings, vectors and other tables. The reader trusts nothing: it checks each position
against the bytes, and reads no more objects than the bytes can hold, so that no input
makes it loop forever or read beyond the end.

Source: the FlatBuffers internals document.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.errors import ExportError

_NUMBERS = {
    "int8": "b",
    "uint8": "B",
    "int16": "h",
    "uint16": "H",
    "uint32": "I",
}


class Number(NamedTuple):
    """A number to write.

    Attributes:
      kind: `int8`, `uint8`, `int16`, `uint16` or `uint32`.
      value: the number.
    """

    kind: str
    value: int


class Numbers(NamedTuple):
    """A vector of numbers to write.

    Attributes:
      kind: as for `Number`.
      values: the numbers.
    """

    kind: str
    values: Sequence[int]


# A table to write: field number → a `Number`, `Numbers`, str, bytes, another table, or
# a list of strings or tables. None is an absent field.
Fields = dict[int, Any]


# -- writing ---------------------------------------------------------------------------


def write(root: Fields, identifier: bytes) -> bytes:
    """Returns the bytes of a table and everything it refers to.

    Args:
      root: the table.
      identifier: the four-byte file identifier.
    """
    writer = _Writer()
    writer.out += bytes(4) + identifier
    writer.place(0, root)
    return bytes(writer.out)


class _Writer:
    """Writes parents before their children, so that all offsets point forwards."""

    def __init__(self) -> None:
        self.out = bytearray()

    def align(self, size: int) -> None:
        self.out += bytes(-len(self.out) % size)

    def place(self, slot: int, value: Any) -> None:
        """Writes an object, and its offset at `slot`."""
        self.align(4)
        at = self.table(value) if isinstance(value, dict) else self.vector(value)
        struct.pack_into("<I", self.out, slot, at - slot)

    def vector(self, value: Any) -> int:
        out, at = self.out, len(self.out)
        if isinstance(value, list):
            out += struct.pack("<I", len(value)) + bytes(4 * len(value))
            for i, item in enumerate(value):
                self.place(at + 4 + 4 * i, item)
        elif isinstance(value, Numbers):
            letter = _NUMBERS[value.kind]
            count = len(value.values)
            out += struct.pack(f"<I{count}{letter}", count, *value.values)
        else:
            text = isinstance(value, str)
            try:
                data = value.encode() if text else bytes(value)
            except UnicodeEncodeError as error:
                raise ExportError(f"the text {value!r} has no UTF-8: {error}") from None
            # Strings end with a zero byte, which their length does not include.
            out += struct.pack("<I", len(data)) + data + bytes(text)
        return at

    def table(self, fields: Fields) -> int:
        present = {i: v for i, v in fields.items() if v is not None}
        count = max(present, default=-1) + 1
        vtable = len(self.out)
        # Large fields first, so that each is aligned to its size.
        sizes = {
            i: struct.calcsize(_NUMBERS[v.kind]) if isinstance(v, Number) else 4
            for i, v in present.items()
        }
        offsets, size = {}, 4
        for i in sorted(present, key=lambda i: -sizes[i]):
            offsets[i], size = size, size + sizes[i]
        listed = [offsets.get(i, 0) for i in range(count)]
        self.out += struct.pack(f"<{2 + count}H", 4 + 2 * count, size, *listed)
        self.align(4)
        at = len(self.out)
        self.out += struct.pack("<i", at - vtable) + bytes(size - 4)
        for i, value in present.items():
            if isinstance(value, Number):
                letter = _NUMBERS[value.kind]
                struct.pack_into(f"<{letter}", self.out, at + offsets[i], value.value)
        for i, value in present.items():
            if not isinstance(value, Number):
                self.place(at + offsets[i], value)
        return at


# -- reading ---------------------------------------------------------------------------


class Buffer:
    """Reads bytes as tables.

    Args:
      data: the bytes.

    Attributes:
      root: the root table.

    Raises:
      ExportError: the bytes have no valid root table.
    """

    left: int
    root: Table

    def __init__(self, data: bytes) -> None:
        self.data = data
        # Each object takes at least four bytes, and has one parent.
        self.left = len(data) // 4 + 1
        self.root = Table(self, self.follow(0))

    def unpack(self, form: str, at: int) -> int:
        """Returns the number at a position.

        Raises:
          ExportError: the position is outside the bytes.
        """
        if at < 0 or at + struct.calcsize(form) > len(self.data):
            raise ExportError(f"the artifact is damaged: byte {at} is out of bounds")
        value: int = struct.unpack_from(form, self.data, at)[0]
        return value

    def follow(self, at: int) -> int:
        """Returns the position that the offset at a position points to.

        Raises:
          ExportError: it points outside the bytes, or there are too many offsets.
        """
        self.left -= 1
        if self.left < 0:
            raise ExportError("the artifact is damaged: it refers to parts twice")
        step = self.unpack("<I", at)
        if step < 4 or at + step + 4 > len(self.data):
            raise ExportError(
                f"the artifact is damaged: the offset at byte {at} is out of bounds"
            )
        return at + step


class Table:
    """A table in the bytes.

    Args:
      buffer: the bytes.
      at: position of the table.

    Raises:
      ExportError: its vtable is outside the bytes.
    """

    def __init__(self, buffer: Buffer, at: int) -> None:
        self._buffer, self._at = buffer, at
        self._vtable = at - buffer.unpack("<i", at)
        self._size = buffer.unpack("<H", self._vtable)
        buffer.unpack("<H", self._vtable + max(self._size - 2, 0))

    def _field(self, slot: int) -> int:
        """Returns the position of a field, or 0 if it is absent."""
        offset = 4 + 2 * slot
        if offset + 2 > self._size:
            return 0
        found = self._buffer.unpack("<H", self._vtable + offset)
        return self._at + found if found else 0

    def number(self, slot: int, kind: str, default: int = 0) -> int:
        """Returns a number.

        Args:
          slot: number of the field.
          kind: as for `Number`.
          default: value of an absent field.
        """
        at = self._field(slot)
        return self._buffer.unpack(f"<{_NUMBERS[kind]}", at) if at else default

    def _vector(self, slot: int, size: int) -> tuple[int, int]:
        """Returns the position of the first item of a vector, and the item count."""
        at = self._field(slot)
        if not at:
            return 0, 0
        at = self._buffer.follow(at)
        count = self._buffer.unpack("<I", at)
        if count * size > len(self._buffer.data) - at - 4:
            raise ExportError("the artifact is damaged: a part of it is too long")
        return at + 4, count

    def bytes(self, slot: int) -> bytes:
        """Returns a vector of bytes; empty if it is absent."""
        at, count = self._vector(slot, 1)
        return self._buffer.data[at : at + count]

    def has(self, slot: int) -> bool:
        """Returns whether a field is present."""
        return bool(self._field(slot))

    def string(self, slot: int) -> str:
        """Returns a string; empty if it is absent.

        Raises:
          ExportError: it is not UTF-8.
        """
        return _text(self.bytes(slot))

    def numbers(self, slot: int, kind: str) -> tuple[int, ...]:
        """Returns a vector of numbers; empty if it is absent."""
        letter = _NUMBERS[kind]
        at, count = self._vector(slot, struct.calcsize(letter))
        dtype = np.dtype(f"<{letter}" if letter in "hHI" else letter)
        return tuple(np.frombuffer(self._buffer.data, dtype, count, at).tolist())

    def strings(self, slot: int) -> tuple[str, ...]:
        """Returns a vector of strings; empty if it is absent."""
        at, count = self._vector(slot, 4)
        found = []
        for i in range(count):
            where = self._buffer.follow(at + 4 * i)
            length = self._buffer.unpack("<I", where)
            if length > len(self._buffer.data) - where - 4:
                raise ExportError("the artifact is damaged: a text is too long")
            found.append(_text(self._buffer.data[where + 4 : where + 4 + length]))
        return tuple(found)

    def table(self, slot: int) -> Table | None:
        """Returns another table, or None if it is absent."""
        at = self._field(slot)
        return Table(self._buffer, self._buffer.follow(at)) if at else None

    def tables(self, slot: int) -> list[Table]:
        """Returns a vector of tables; empty if it is absent."""
        at, count = self._vector(slot, 4)
        return [
            Table(self._buffer, self._buffer.follow(at + 4 * i)) for i in range(count)
        ]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ExportError(
            "the artifact is damaged: a text in it is not UTF-8"
        ) from None
