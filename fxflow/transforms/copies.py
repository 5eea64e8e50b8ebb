"""Which of its arguments a compiled program copies, read from the optimised HLO.

A copy is an operation `copy` (or a fusion that ends in one) of the type of an argument,
whose operand is that argument or what was made of it in place: by writing slices, by
scattering, by the rounds of a loop. New values of the same type, as arithmetic makes
them, are not copies. A copy costs a pass over the array's memory; one of a donated
argument is a copy that donation was to save.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple


class ArgumentCopy(NamedTuple):
    """One copy that a program makes of an argument.

    Attributes:
      label: which leaf of the arguments; "" is a captured value.
      nbytes: of the whole array.
      donated: whether the program was given the array's memory.
      in_loop: whether it is made again in each round of a loop.
    """

    label: str
    nbytes: int
    donated: bool
    in_loop: bool


# `ROOT %name = type operation(operands), attributes`; a type may be a tuple of types.
_HEAD = r"\s*(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([a-z][\w\-]*)\((.*)"
_TYPE = r"\w+\[[\d,]*\]"
_IN_PLACE = {"scatter", "dynamic-update-slice"}


@dataclass
class HloInstruction:
    """A line of the optimised program."""

    name: str
    type: str
    operation: str
    rest: str

    @cached_property
    def operands(self) -> list[str]:
        """Names of its operands."""
        depth, end = 0, len(self.rest)
        for i, letter in enumerate(self.rest):
            depth += (letter == "(") - (letter == ")")
            if depth < 0:
                end = i
                break
        return re.findall(r"%([\w.\-]+)", self.rest[:end])

    @property
    def op_name(self) -> str:
        """The scopes and the operation that it comes from."""
        match = re.search(r'op_name="([^"]*)"', self.rest)
        return match[1] if match else ""

    @property
    def number(self) -> int:
        """Which parameter it is, or which item it takes."""
        text = self.rest.split("index=")[-1]
        return int(re.match(r"\d+", text)[0])  # type: ignore[index]

    @property
    def number_of_parameter(self) -> int:
        """Which parameter it is."""
        return int(self.rest.partition(")")[0])

    def all_called(self, attributes: Sequence[str]) -> list[str]:
        """Returns the names of the computations that it calls."""
        names = [self.called(name) for name in attributes]
        several = re.search(r"branch_computations=\{([^}]*)\}", self.rest)
        if several:
            names += [name.strip(" %") for name in several[1].split(",")]
        return [name for name in names if name]

    def called(self, attribute: str) -> str:
        """Returns the name of a computation that it calls."""
        match = re.search(rf"{attribute}=%?([\w.\-]+)", self.rest)
        return match[1] if match else ""


def argument_copies(hlo: str) -> list[tuple[int, bool]]:
    """Returns the copies that a program makes of its arguments.

    Args:
      hlo: text of the optimised module.

    Returns:
      For each copy the position of the argument, and whether it is in a loop.
    """
    return [*HloProgram(hlo).copies()]


class HloProgram:
    """The computations of a module, by name."""

    def __init__(self, hlo: str) -> None:
        self.computations: dict[str, dict[str, HloInstruction]] = {}
        self.roots: dict[str, HloInstruction] = {}
        self.entry = ""
        #: For each loop's body the computation with the loop, and the loop.
        self.loops: dict[str, tuple[str, HloInstruction]] = {}
        where = ""
        for line in hlo.splitlines():
            if line.endswith("{") and not line.startswith((" ", "HloModule")):
                where = line.removeprefix("ENTRY ").split()[0].lstrip("%")
                self.computations[where] = {}
                if line.startswith("ENTRY"):
                    self.entry = where
                continue
            match = re.match(_HEAD, line)
            if match is None or not where:
                continue
            found = HloInstruction(*match.groups())
            self.computations[where][found.name] = found
            if line.lstrip().startswith("ROOT "):
                self.roots[where] = found
            if found.operation == "while":
                self.loops[found.called("body")] = (where, found)

    def copies(self) -> Iterator[tuple[int, bool]]:
        """Yields the copies of arguments."""
        for where in (self.entry, *self.loops):
            for found in self.computations.get(where, {}).values():
                if not self.copies_operand(found):
                    continue
                origin = self.origin(where, found.operands[0], frozenset())
                if origin is not None and _same(origin.type, found.type):
                    yield origin.number, where != self.entry

    def copies_operand(self, found: HloInstruction) -> bool:
        """Returns whether an operation copies its first operand."""
        if found.operation == "fusion":
            root = self.roots.get(found.called("calls"))
            return root is not None and root.operation == "copy"
        return found.operation in ("copy", "copy-start")

    def origin(
        self, where: str, name: str, seen: frozenset[tuple[str, str]]
    ) -> HloInstruction | None:
        """Returns the argument of the program that a value is, or is made of in place.

        Args:
          where: the computation.
          name: of the value.
          seen: values that are being asked for.
        """
        found = self.computations[where].get(name)
        if found is None or (where, name) in seen:
            return None
        seen |= {(where, name)}
        operation = found.operation
        if operation == "parameter":
            return found if where == self.entry else None
        if operation == "get-tuple-element":
            return self.item(where, found.operands[0], found.number, seen)
        if operation == "fusion":
            root = self.roots.get(found.called("calls"))
            if root is None or root.operation not in _IN_PLACE | {"copy", "bitcast"}:
                return None
            for operand in found.operands:
                given = self.computations[where].get(operand)
                if given is not None and _same(given.type, found.type):
                    origin = self.origin(where, operand, seen)
                    if origin is not None:
                        return origin
            return None
        if operation in _IN_PLACE | {"copy", "copy-done", "copy-start", "bitcast"}:
            return self.origin(where, found.operands[0], seen)
        return None

    def item(
        self, where: str, name: str, index: int, seen: frozenset[tuple[str, str]]
    ) -> HloInstruction | None:
        """Returns the argument that an item of a tuple is, see `origin`."""
        found = self.computations[where].get(name)
        if found is None:
            return None
        if found.operation == "parameter" and where in self.loops:
            where, found = self.loops[where]
        if found.operation == "while":
            return self.item(where, found.operands[0], index, seen)
        if found.operation == "tuple":
            return self.origin(where, found.operands[index], seen)
        return None


def _same(one: str, other: str) -> bool:
    """Returns whether two types agree in dtype and shape; layouts may differ."""
    first, second = re.search(_TYPE, one), re.search(_TYPE, other)
    return first is not None and second is not None and first[0] == second[0]
