"""Drops from a program what its finding does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.programs.drawing import Program

if TYPE_CHECKING:
    from tests.programs.search import Finding


def smaller(program: Program) -> list[Program]:
    """Programs that lack one step: a result, or a step that its operand stands in for.

    They are numbered, so that each answer names its program.
    """
    found = []
    for place in reversed(range(len(program.steps))):
        without = program.without(place)
        if without is not None:
            found.append(without)
            continue
        number = len(program.inputs) + place
        stand_in = program.steps[place].operands[0]
        steps = tuple(
            replace(
                step,
                operands=tuple(stand_in if i == number else i for i in step.operands),
            )
            for step in program.steps
        )
        skipped = replace(program, steps=steps).without(place)
        if skipped is not None:
            found.append(skipped)
    base = program.seed % 10**9 * 1000
    return [replace(one, seed=base + i) for i, one in enumerate(found)]


def shrunk(finding: Finding, still: Callable[[Sequence[Program]], Any]) -> Finding:
    """Returns the same finding of a smaller program.

    Args:
      finding: what was found.
      still: runs programs and returns the findings of the same way.
    """
    while True:
        found = still(smaller(finding.program))
        if not found:
            return finding
        finding = min(found, key=lambda one: len(one.program.steps))
