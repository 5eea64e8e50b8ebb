"""Why a jitted function was traced again: which argument changed, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow._config import config
from fxflow.core import source, tree
from fxflow.core.arrays import Aval
from fxflow.core.runtime.library import exact
from fxflow.errors import RetraceWarning

# Warned at 10 traces of one function, then at 20, 40, 80, …: each message differs, so
# Python's filter could not join one for every trace.
WARN_FROM = 10


class Signature(NamedTuple):
    """What one trace of a function depended on.

    Attributes:
      labels_of: gives the names of the leaves of the arguments.
      avals: their types.
      structure: of the arguments.
      static: the static arguments by name.
      context: named axes and options.
    """

    labels_of: Callable[[], list[str]]
    avals: tuple[Aval, ...]
    structure: Any
    static: dict[str, Any]
    context: Any

    def differences(self, other: Signature) -> list[str]:
        """Returns in words what differs from another signature to this one."""
        found = []
        for name, value in self.static.items():
            before = other.static.get(name, _MISSING)
            if before is _MISSING:
                found.append(f"static argument {name} is new: {value!r}")
            elif before != value or exact(before) != exact(value):
                found.append(
                    f"static argument {name} changed from {before!r} to {value!r}"
                )
        labels, before_labels = self.labels_of(), other.labels_of()
        before_avals = dict(zip(before_labels, other.avals, strict=False))
        if self.structure != other.structure and labels == before_labels:
            found.append(
                f"structure changed from {tree.written(other.structure)} to "
                f"{tree.written(self.structure)}"
            )
        for label, aval in zip(labels, self.avals, strict=False):
            earlier = before_avals.pop(label, None)
            if earlier is None:
                found.append(f"argument {label} is new: {aval}")
            elif earlier is not aval:
                found.append(f"argument {label} changed from {earlier} to {aval}")
        found += [f"argument {label} is missing" for label in before_avals]
        if self.context != other.context:
            found.append("an option or a named axis around the call changed")
        return found


_MISSING = object()
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


def explain_retrace(
    name: str, new: Signature, earlier: Sequence[Signature], count: int
) -> None:
    """Says why a function is traced again, if that was asked for or happens often.

    Args:
      name: of the function.
      new: what it is traced for now.
      earlier: the most recent signatures; at least one.
      count: how often it will have been traced.
    """
    often = count >= WARN_FROM
    times, rest = divmod(count, WARN_FROM)
    if often and not config.explain_retraces and (rest or times & (times - 1)):
        return
    if not (config.explain_retraces or often):
        return
    why = _reason(new, earlier)
    message = f"{name} is traced for the {_ordinal(count)} time: {why}"
    if often:
        message += (
            ". Each trace compiles a new program: pad arrays to a few shapes, pass "
            "changing numbers as arrays rather than static arguments, define the "
            "function once"
        )
    source.warn(message, RetraceWarning)


def _reason(new: Signature, earlier: Sequence[Signature]) -> str:
    # The nearest known signature, of equally near ones the latest: what changed from
    # there is what cost this trace.
    differences = min(map(new.differences, reversed(earlier)), key=len)
    if differences:
        return "; ".join(differences)
    return (
        "nothing in the arguments changed: the function is a new object (a lambda "
        "or a function defined in a loop), or it closes over traced values"
    )


def reasons(signatures: Sequence[Signature]) -> list[str]:
    """Returns why each trace after the first was made.

    Args:
      signatures: what the traces depended on, in their order.
    """
    return [_reason(signatures[i], signatures[:i]) for i in range(1, len(signatures))]


def _ordinal(number: int) -> str:
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}{_ENDINGS.get(number % 10, 'th')}"
