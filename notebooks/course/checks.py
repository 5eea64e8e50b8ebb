"""Checks the answers to the exercises of the course."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

#: Whether each exercise that was checked is right; None: not solved yet.
results: dict[int, bool | None] = {}


def check(
    number: int, answer: Callable[..., Any], cases: Iterable[tuple[Any, ...]]
) -> None:
    """Calls an answer, and says whether it returns what is expected.

    Args:
      number: of the exercise in its lesson.
      answer: the function that the reader wrote; while it returns None, it is unsolved.
      cases: the arguments of a call, and last what it returns.
    """
    for *arguments, expected in cases:
        given = answer(*arguments)
        results[number] = None if given is None else same(given, expected)
        if given is None:
            print(f"Exercise {number}: not solved yet")
            return
        if not results[number]:
            shown = ", ".join(map(str, arguments))
            print(f"Exercise {number}: for ({shown})")
            print(f"  your answer: {given}")
            print(f"  expected:    {expected}")
            return
    print(f"Exercise {number}: right")


def same(given: Any, expected: Any) -> bool:
    """Returns whether two values are equal, numbers up to rounding."""
    if isinstance(expected, tuple | list):
        listed = isinstance(given, tuple | list) and len(given) == len(expected)
        return listed and all(map(same, given, expected))
    if isinstance(expected, str | bool | type | np.dtype):
        return bool(given == expected)
    return np.shape(given) == np.shape(expected) and np.allclose(
        given, expected, rtol=1e-4, atol=1e-5
    )
