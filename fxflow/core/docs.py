'''What the docstrings of a family of functions have in common, written once.

    reduction_docs = shared("""
        Args:
          a: array-like[...].
          axis: int, tuple of ints, or None for all axes.

        Source: `numpy.{name}`.
    """)

    @reduction_docs
    def ptp(a, axis=None):
        """Returns the greatest elements minus the least."""

`help(ptp)` shows one docstring with all of it.
'''

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_ORDER = (
    "Args",
    "Returns",
    "Raises",
    "Special cases",
    "Example",
    "Source",
    "Reference",
)
_HEADER = re.compile(rf"\n\n({'|'.join(_ORDER)}):")
_ENTRY = re.compile(r"(?=\n  \S)")


class Completes(Protocol):
    """A decorator that completes docstrings, as `shared` makes it."""

    def __call__(self, function: F, /) -> F:
        """Returns the function, its docstring completed."""
        ...


def shared(text: str) -> Completes:
    """Makes a decorator that completes docstrings.

    What a function says itself, it keeps: its own description of an argument or an
    error, and its own sections, come before what is shared.

    Args:
      text: sections of a docstring; `{name}` is the name of the function. Arguments
        that a function does not take are left out. A line `...` under Raises is where
        a function's own errors go, which is else the end.

    Returns:
      A decorator of functions that have a docstring.
    """
    common = _sections("\n\n" + inspect.cleandoc(text))
    arguments = _entries(common.pop("Args", ""))
    errors = {**_entries(common.pop("Raises", "")), "...": ""}
    del common[""]

    def decorate(function: F) -> F:
        doc = function.__doc__
        if not doc:
            return function  # python -OO
        own = _sections(inspect.cleandoc(doc))
        own["Args"] = _arguments(function, _entries(own.get("Args", "")), arguments)
        own["Raises"] = _errors(_entries(own.get("Raises", "")), errors)
        for title, body in common.items():
            own.setdefault(title, body)
        parts = [own[""], *(f"{t}:{own[t]}" for t in _ORDER if own.get(t))]
        whole = "\n\n".join(parts)
        function.__doc__ = whole.replace("{name}", function.__name__)
        return function

    return decorate


def _sections(doc: str) -> dict[str, str]:
    """Returns what stands under each title, and under "" what stands before."""
    first, *rest = _HEADER.split(doc)
    return {"": first, **dict(zip(rest[::2], rest[1::2]))}


def _entries(body: str) -> dict[str, str]:
    """Returns the entries of a section, each with its line break, by what they name."""
    entries = _ENTRY.split(body)[1:]
    return {entry.split(":")[0].strip("\n *"): entry for entry in entries}


def _arguments(
    function: Callable[..., Any], own: dict[str, str], common: dict[str, str]
) -> str:
    """Returns the entries of the arguments, in the order of the signature."""
    code = function.__code__
    stars = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount
    count += sum(bool(code.co_flags & star) for star in stars)
    # An entry may be of several arguments: `x, y: numbers.`
    entries = {
        name.strip(" *"): e for names, e in own.items() for name in names.split(",")
    }
    listed = [entries.get(n) or common.get(n, "") for n in code.co_varnames[:count]]
    return "".join(dict.fromkeys(listed))


def _errors(own: dict[str, str], common: dict[str, str]) -> str:
    """Returns the entries of the errors, the function's own at the line `...`."""
    others = "".join(e for name, e in own.items() if name not in common)
    return "".join(
        others if name == "..." else own.get(name, entry)
        for name, entry in common.items()
    )
