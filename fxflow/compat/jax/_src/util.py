"""`jax._src.util`: what jaxprs are walked with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fxflow.compat.jax._mirror import listen
from fxflow.compat.jax.api_util import safe_map


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Returns a list of tuples, after checking that the lists are of one length.

    Raises:
      ValueError: they are not.
    """
    return list(zip(*args, strict=True))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Returns the first and the second of each pair."""
    first, second = list(zip(*pairs, strict=True)) or ((), ())
    return first, second


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Returns parts of given lengths, and what remains."""
    parts, start = [], 0
    for n in ns:
        parts.append(list(args[start : start + n]))
        start += n
    return [*parts, list(args[start:])]


def partition_list(
    choice: Sequence[bool], items: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Returns what is not chosen and what is."""
    out: tuple[list[Any], list[Any]] = ([], [])
    for chosen, item in zip(choice, items, strict=True):
        out[bool(chosen)].append(item)
    return out


def merge_lists(
    choice: Sequence[bool], off: Sequence[Any], on: Sequence[Any]
) -> list[Any]:
    """Returns one list of two, the inverse of `partition_list`."""
    parts = iter(off), iter(on)
    return [next(parts[bool(chosen)]) for chosen in choice]


def wraps(wrapped: Any, **options: Any) -> Callable[[Any], Any]:
    """Names a function after another."""

    def apply(fun: Any) -> Any:
        fun.__name__ = getattr(wrapped, "__name__", "<unnamed function>")
        fun.__doc__ = getattr(wrapped, "__doc__", None)
        fun.__wrapped__ = wrapped
        return fun

    return apply


__all__ = [
    "merge_lists",
    "partition_list",
    "safe_map",
    "safe_zip",
    "split_list",
    "unzip2",
    "wraps",
]

listen(globals())
