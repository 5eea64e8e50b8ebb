"""Where the compiler puts what a program computes: its buffer assignment.

The runtime gives it as a serialized `xla.BufferAssignmentProto`, and the program as an
`xla.HloModuleProto`. Both are read here, field by field: none of the packages that
fxflow needs reads protocol buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

Fields = dict[int, list[Any]]


@dataclass(frozen=True)
class Assigned:
    """A buffer: an array, or a part of a tuple, in a place in memory.

    Attributes:
      nbytes: its size.
      allocation: number of the block of memory that it is in.
      offset: in that block.
      kind: of the block: `"argument"`, `"result"`, `"temporary"` or `"constant"`.
      parameter: number of the argument, or None.
      computation: name of the computation with the instruction.
      instruction: name of what makes it; that of a parameter for an argument.
      item: which item, if the instruction gives a tuple; else None.
      type: such as `f32[64,64]`.
    """

    nbytes: int
    allocation: int
    offset: int
    kind: str
    parameter: int | None
    computation: str
    instruction: str
    item: int | None
    type: str


#: Names of `xla.PrimitiveType`, as fxflow prints them.
_TYPES = {
    1: "bool", 2: "i8", 3: "i16", 4: "i32", 5: "i64", 6: "u8", 7: "u16", 8: "u32",
    9: "u64", 10: "f16", 11: "f32", 12: "f64", 13: "tuple", 15: "c64", 16: "bf16",
    18: "c128",
}  # fmt: skip


def assigned_buffers(assignment: bytes, module: bytes) -> list[Assigned]:
    """Returns the buffers of a program.

    Those of computations that one instruction runs for each element are left out.

    Args:
      assignment: a `BufferAssignmentProto`.
      module: the `HloModuleProto` that it is of.
    """
    top = _fields(assignment)
    where = _instructions(module)
    places = {}
    for logical in map(_fields, top.get(1, ())):
        place = _fields(_one(logical, 3, b""))
        path = _numbers(place.get(3, ()))
        places[_one(logical, 1, 0)] = _one(place, 4, 0), path[-1] if path else None
    found = []
    for allocation in map(_fields, top.get(3, ())):
        if _one(allocation, 3, 0):  # of one thread
            continue
        kind, parameter = "temporary", None
        if _one(allocation, 12, 0):
            kind = "constant"
        elif _one(allocation, 5, 0):
            kind, parameter = "argument", _one(allocation, 6, 0)
        elif _one(allocation, 7, 0):
            kind = "result"
        for part in map(_fields, allocation.get(9, ())):
            number, item = places[_one(part, 1, 0)]
            made = where.get(number)
            if made is None:
                continue
            shape = made.shape
            if item is not None:
                shape = _fields((shape.get(4) or [b""])[item])
            found.append(
                Assigned(
                    _one(part, 3, 0),
                    _one(allocation, 1, 0),
                    _one(part, 2, 0),
                    kind,
                    parameter,
                    made.computation,
                    made.name,
                    item,
                    _type(shape),
                )
            )
    return found


class _Instruction(NamedTuple):
    name: str
    computation: str
    shape: Fields


def _instructions(module: bytes) -> dict[int, _Instruction]:
    """Returns the instructions of a module by their ids."""
    found = {}
    for computation in map(_fields, _fields(module).get(3, ())):
        around = _one(computation, 1, b"").decode()
        for instruction in map(_fields, computation.get(2, ())):
            found[_one(instruction, 35, 0)] = _Instruction(
                _one(instruction, 1, b"").decode(),
                around,
                _fields(_one(instruction, 3, b"")),
            )
    return found


def _type(shape: Fields) -> str:
    """Returns `f32[3,4]` of an `xla.ShapeProto`."""
    name = _TYPES.get(_one(shape, 2, 0), "other")
    if name == "tuple":
        return name
    return f"{name}[{','.join(map(str, _numbers(shape.get(3, ()))))}]"


# -- protocol buffers ------------------------------------------------------------------


def _one(fields: Fields, number: int, default: Any) -> Any:
    return fields.get(number, (default,))[-1]


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _fields(data: bytes) -> Fields:
    """Returns the fields of a message: numbers, and bytes of texts and messages."""
    found: Fields = {}
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        value: Any
        match key & 7:
            case 0:
                value, at = _varint(data, at)
            case 2:
                length, at = _varint(data, at)
                value, at = data[at : at + length], at + length
            case 1:
                value, at = data[at : at + 8], at + 8
            case _:
                value, at = data[at : at + 4], at + 4
        found.setdefault(key >> 3, []).append(value)
    return found


def _numbers(parts: Any) -> list[int]:
    """Returns a repeated number, packed or not."""
    return [number for part in parts for number in _unpacked(part)]


def _unpacked(part: Any) -> Iterator[int]:
    if isinstance(part, int):
        yield part
        return
    at = 0
    while at < len(part):
        number, at = _varint(part, at)
        yield number
