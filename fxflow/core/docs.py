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
from typing import Any, TypeVar

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


def shared(text: str) -> Callable[[F], F]:
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

    def decorate(function: F) -> F:
        doc = function.__doc__
        if not doc:
            return function  # python -OO
        own = _sections(inspect.cleandoc(doc))
        for title, body in common.items():
            body = body.replace("{name}", function.__name__)
            if title == "Args":
                body = _arguments(function, own.get(title, ""), body)
            elif title == "Raises":
                body = _errors(own.get(title, ""), body)
            elif title in own:
                continue
            own[title] = body
        parts = [own.pop(""), *(f"{t}:{own[t]}" for t in _ORDER if t in own)]
        function.__doc__ = "\n\n".join(part for part in parts if part)
        return function

    return decorate


def _sections(doc: str) -> dict[str, str]:
    """Returns what stands under each title, and under "" what stands before."""
    first, *rest = _HEADER.split(doc)
    return {"": first, **dict(zip(rest[::2], rest[1::2]))}


def _entries(body: str) -> dict[str, str]:
    """Returns the entries of a section, each with its line break, by what they name."""
    entries = re.split(r"(?=\n  \S)", body)
    return {e.split(":")[0].strip(" \n*"): e for e in entries if e.strip()}


def _arguments(function: Callable[..., Any], own: str, common: str) -> str:
    """Returns the entries of the arguments, in the order of the signature."""
    code = function.__code__
    stars = (inspect.CO_VARARGS, inspect.CO_VARKEYWORDS)
    count = code.co_argcount + code.co_kwonlyargcount
    count += sum(bool(code.co_flags & star) for star in stars)
    taken = code.co_varnames[:count]
    listed = _entries(own)
    named = {n.strip(" *") for names in listed for n in names.split(",")}
    listed |= {n: e for n, e in _entries(common).items() if n not in named}
    order = {name: i for i, name in enumerate(taken)}
    known = {n: order.get(n.split(",")[0], count) for n in listed}
    kept = [n for n in listed if n in order or n not in _entries(common)]
    return "".join(listed[n] for n in sorted(kept, key=known.__getitem__))


def _errors(own: str, common: str) -> str:
    """Returns the entries of the errors, with those of the function in their place."""
    mine, listed = _entries(own), {**_entries(common), "...": ""}
    listed["..."] = "".join(e for name, e in mine.items() if name not in listed)
    return "".join(mine.get(name, entry) for name, entry in listed.items())
