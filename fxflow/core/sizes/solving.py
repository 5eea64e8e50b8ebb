"""What the names of sizes stand for, from the lengths of a call's arguments.

An axis says what a name is that stands in it times a number, where all others in it are
known: `2*t + b` says `t` once `b` is known. Each axis that is not needed for that is a
condition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fxflow.core.sizes.size import Size, made


class Equation(NamedTuple):
    """An axis of an argument.

    Attributes:
      size: what its type says.
      length: what it is in the call.
      what: what messages call it.
    """

    size: Size
    length: Any
    what: str


class Step(NamedTuple):
    """What an axis says: `name` is `(length - rest) / factor`.

    Attributes:
      equation: of the axis.
      name: None if it says nothing new, and has to be right.
      factor: that the name is multiplied by.
      rest: what is added to it.
    """

    equation: Equation
    name: str | None
    factor: int
    rest: Any


def solved(equations: Sequence[Equation]) -> tuple[list[Step], set[str]]:
    """Returns in which order axes say what the names are, and which stay open.

    Args:
      equations: all axes with sizes.

    Returns:
      The steps, conditions last, and the names that no axis says.
    """
    steps: list[Step] = []
    known: set[str] = set()
    waiting = list(equations)
    found = True
    while found:
        found = False
        for equation in list(waiting):
            open_names = equation.size.names() - known
            if len(open_names) != 1:
                continue
            (name,) = open_names
            alone = ((name, 1),)
            terms = dict(equation.size.terms)
            factor = terms.pop(alone, 0)
            rest = made(terms, equation.size.scope)
            if not factor or (isinstance(rest, Size) and name in rest.names()):
                continue
            steps.append(Step(equation, name, factor, rest))
            known.add(name)
            waiting.remove(equation)
            found = True
    missing = {n for equation in waiting for n in equation.size.names()} - known
    checks = [Step(e, None, 1, 0) for e in waiting if e.size.names() <= known]
    return steps + checks, missing
