"""Random keys as operands: what moves elements moves the key data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.core.arrays import Aval, typeof
from fxflow.core.ir.primitive import table


def map_key_data(function: Callable[..., Any], *keys: Any) -> Any:
    """Returns keys made by an operation on key data.

    Args:
      function: from the key data `u32[..., 2]` of each operand to that of the result
        (or of a list of results).
      *keys: of one key dtype.

    Raises:
      DtypeError: the operands are not all keys of one kind.
    """
    dtype = typeof(keys[0]).dtype
    out = function(*map(table["random_unwrap"].bind, keys))
    wrap = table["random_wrap"].bind
    if isinstance(out, list):
        return [wrap(o, dtype=dtype) for o in out]
    return wrap(out, dtype=dtype)


def check(primitive: Any, *avals: Aval, **params: Any) -> Any:
    """Returns the type an operation would give, having checked the operands' types.

    Keys go through this: types of key data would make an error hard to understand.
    """
    return primitive.abstract(*avals, **params)
