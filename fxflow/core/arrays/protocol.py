"""Objects that stand for an array: they have a method that returns it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_names = ["__fxflow_array__"]


def array_method(value: Any) -> Callable[[], Any] | None:
    """Returns the method that gives the array that an object stands for, or None.

    Args:
      value: anything; a class does not stand for one, whatever its objects do.
    """
    for name in _names:
        method: Callable[[], Any] | None = getattr(value, name, None)
        if method is not None and not isinstance(value, type):
            return method
    return None


def accept(name: str) -> None:
    """Lets objects with a method of another name stand for arrays, too.

    Args:
      name: of the method.
    """
    if name not in _names:
        _names.append(name)
