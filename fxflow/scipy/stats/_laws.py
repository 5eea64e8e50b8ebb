"""Distributions by their names, for functions that take one."""

from __future__ import annotations

import sys
from typing import Any

from fxflow.errors import ArgumentError
from fxflow.scipy.stats._protocol import PACKAGE, Distribution


def law_of(name: str, dist: Any, method: str = "ppf") -> Any:
    """Returns a distribution.

    Args:
      name: of the function that takes it.
      dist: a distribution, its name, or an object with the method.
      method: which it must have.

    Raises:
      ArgumentError: there is none of the name, or the object has no such method.
    """
    found = dist
    if isinstance(dist, str):
        found = sys.modules.get(f"{PACKAGE}.{dist}")
        if not isinstance(found, Distribution):
            raise ArgumentError(
                f"{name}: dist must be the name of a distribution of "
                f"fxflow.scipy.stats, got {dist!r}"
            )
    if not callable(getattr(found, method, None)):
        raise ArgumentError(
            f"{name}: dist must be a distribution, its name, or an object with "
            f"`{method}`, got {dist!r}"
        )
    return found
