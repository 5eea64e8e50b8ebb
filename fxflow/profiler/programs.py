"""Functions compiled so that their instructions lead back to the user's lines.

`Marks` names the nodes; an event in a profile is named like an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from fxflow.core import tree
from fxflow.errors import ArgumentError
from fxflow.transforms.jit import jit
from fxflow.transforms.marking import OTHER, Marks, Operation
from fxflow.transforms.stages import Compiled, Traced

__all__ = ["OTHER", "Instruction", "Operation", "ProfiledProgram"]


class Instruction(NamedTuple):
    """A line of the optimised program.

    Attributes:
      opcode: such as `fusion`.
      node: number of the operation that it comes from; of a fusion, the one that gives
        its result.
      called: computations it runs.
    """

    opcode: str
    node: int
    called: tuple[str, ...]


_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) .*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (.*)$")
_OPCODE = re.compile(r" ([a-z][a-z0-9\-]*)\(")
_CALLED = re.compile(
    r"(?:calls|to_apply|condition|body|branch_computations|true_computation|"
    r"false_computation)=(?:\{([^}]*)\}|(%?[\w.\-]+))"
)
_NAME = re.compile(r'op_name="([^"]*)"')


class ProfiledProgram:
    """A function compiled so that its instructions can be traced back.

    Args:
      function: to be compiled; one that `jit` made keeps its options.
      args: of the function.
      kwargs: likewise.

    Raises:
      ArgumentError: the function has static arguments.

    Attributes:
      compiled: runs it.
      name: of the function.
      operations: of its graph, and of graphs inside, by number; the last is `OTHER`.
      instructions: of the optimised program, by name.
      members: names of the instructions of each computation.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any
    ) -> None:
        jitted: Any = function if hasattr(function, "trace") else jit(function)
        traced: Traced = jitted.trace(*args, **kwargs)
        self.name: str = traced.name
        if tree.structure((args, kwargs)) != traced.in_tree:
            raise ArgumentError(
                f"report: {self.name} has static arguments: report a function that has "
                "them already, such as lambda x: f(x, 3)"
            )
        self._marks = Marks(traced.graph)
        self.operations = self._marks.operations
        # It runs several times on the same arguments.
        donated = (False,) * len(traced.donated)
        traced = replace(traced, graph=self._marks.graph, donated=donated)
        self.compiled: Compiled = traced.lower().compile()
        self.instructions: dict[str, Instruction] = {}
        self.members: dict[str, list[str]] = {}
        self._read(self.compiled.as_text())

    def _read(self, text: str) -> None:
        members: list[str] = []
        for line in text.splitlines():
            begun = _COMPUTATION.match(line)
            if begun:
                members = self.members[begun[1]] = []
                continue
            found = _INSTRUCTION.match(line)
            opcode = _OPCODE.search(found[2]) if found else None
            if found is None or opcode is None:
                continue
            called = [
                name.strip(" %")
                for several, one in _CALLED.findall(found[2])
                for name in (several or one).split(",")
            ]
            members.append(found[1])
            named = _NAME.search(found[2])
            self.instructions[found[1]] = Instruction(
                opcode[1], self._marks.number(named[1] if named else ""), tuple(called)
            )

    def holds(self, name: str, seen: set[str]) -> bool:
        """Returns whether an instruction runs others that are among those seen.

        Its time is theirs: that of a loop is its body's.
        """
        instruction = self.instructions.get(name)
        if instruction is None or instruction.opcode not in _CONTROL:
            return False
        return any(
            member in seen
            for computation in instruction.called
            for member in self.members.get(computation, ())
        )


_CONTROL = {"while", "conditional", "call", "async-start", "async-done"}
