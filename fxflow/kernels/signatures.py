"""What the functions that a user gives to a kernel take, in messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from fxflow.errors import ArgumentError

_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def reference_names(
    body: Callable[..., None], operands: int, results: int, scratch: int
) -> list[str]:
    """Returns what messages call the references that a body takes.

    Args:
      body: of a kernel.
      operands, results, scratch: the number of them.
    """
    kinds = ("operand", operands), ("result", results), ("scratch", scratch)
    names = [f"{kind} {i}" for kind, n in kinds for i in range(n)]
    own = [p.name for p in _parameters(body) if p.kind in _POSITIONAL]
    own += [""] * (len(names) - len(own))
    return [
        f"{mine} ({name})" if mine else name
        for mine, name in zip(own, names, strict=False)
    ]


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return [inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)]


def counted(**numbers: int) -> str:
    """Returns numbers of things in words: `1 operand and 2 results`."""
    words = [
        f"{n} {kind}{'s' if n > 1 and kind != 'scratch' else ''}"
        for kind, n in numbers.items()
        if n
    ]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:]))) or "nothing"


def require_takes(
    called: str, what: str, function: Callable[..., Any], count: int, given: str
) -> None:
    """Checks that a function takes a number of positional arguments.

    Args:
      called: the kernel.
      what: the function.
      function: of the user's.
      count: of the arguments.
      given: these in words.

    Raises:
      ArgumentError: it takes fewer, or needs more.
    """
    parameters = _parameters(function)
    names = [p.name for p in parameters if p.kind in _POSITIONAL]
    needed = sum(p.kind in _POSITIONAL and p.default is p.empty for p in parameters)
    any_number = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if needed <= count and (any_number or count <= len(names)):
        return
    fix = "take each of them"
    if needed > count:
        more = ", ".join(names[count:])
        fix = f"make static arguments keyword-only, behind a *: (..., *, {more})"
    raise ArgumentError(
        f"{called}: {what} takes ({', '.join(names)}), but is given {given}: {fix}"
    )
