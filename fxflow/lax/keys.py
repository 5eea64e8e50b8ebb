"""Random keys as operands: what moves elements moves the words of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.core.arrays import Aval, dtypes, typeof
from fxflow.core.ir.primitive import table


def is_words(aval: Aval) -> bool:
    """Returns whether a type is of keys, which operations see as words."""
    return dtypes.is_key(aval.dtype)


def on_words(function: Callable[..., Any], *keys: Any) -> Any:
    """Returns keys made by an operation on the words of keys.

    Args:
      function: from the words `u32[..., 2]` of each operand to those of the result (or
        a list of results).
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

    Keys go through this, since their words would make an error hard to understand.
    """
    return primitive.abstract(*avals, **params)
