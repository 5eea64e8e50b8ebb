"""Operations with faults, for the tests of the search."""

from __future__ import annotations

import os
from typing import Any

from tests.programs.operations import Api, add


def _abort(api: Api, x: Any) -> Any:
    """Ends the process, as a fault in C++ does."""
    os.abort()


def _biased(api: Api, x: Any) -> Any:
    """One more than x where it is traced."""
    try:
        return x + 0 * int(x.sum())
    except TypeError:
        return x + 1


add("abort", "planted", _abort)
add("biased", "planted", _biased)
