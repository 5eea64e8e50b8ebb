"""Tangents and cotangents that users give: checked against the values they belong to.

One rule for arguments of `jvp`, `vjp` functions and the like, and for what custom rules
return: shape and dtype are those of the value, but that a Python float or complex
number takes the value's precision. An integer is refused where a float is due: `1` for
`1.0` would pass, but `x // 2` for `x / 2` would too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.arrays.array import put_host
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero
from fxflow.errors import DtypeError, ShapeError

# What a message calls a value: text, or what makes it when there is a message.
What = str | Callable[[], str]


def checked_tangent(
    value: Any,
    aval: Aval,
    what: What,
    *,
    numbers: bool = False,
    integers: bool = False,
) -> Any:
    """Returns a tangent or cotangent of a value, or `Zero`.

    Args:
      value: what the user gave.
      aval: the type of the value it is a tangent or cotangent of.
      what: names it in messages.
      numbers: whether any Python number is taken, and anything for an integer, which
        has no tangent: so do backward passes, where `return 0, g` is common.
      integers: whether integers are taken for an integer's cotangent, and not looked
        at: so do functions that `vjp` gives.

    Returns:
      `value` with the tangent dtype of `aval`, or `Zero`.

    Raises:
      ArgumentError: it is not an array.
      ShapeError, DtypeError: it has the wrong shape or dtype.
    """
    expected = aval.tangent()
    if type(value) is Zero or (numbers and expected.dtype == dtypes.float0):
        return Zero(expected)
    if not is_arraylike(value):
        raise not_an_array(value, f"{_text(what)} is")
    given = typeof(value)
    if given.shape != expected.shape:
        raise ShapeError(_message(what, aval, given))
    if expected.dtype == dtypes.float0:
        ignored = integers and (
            dtypes.is_integer(given.dtype) or dtypes.is_bool(given.dtype)
        )
        if given.dtype != dtypes.float0 and not ignored:
            raise DtypeError(
                f"{_message(what, aval, given)}: the tangent of an integer has dtype "
                "float0; pass np.zeros(shape, fxflow.float0)"
            )
        return Zero(expected)
    wide = dtypes.is_wide(expected.dtype)
    if wide and isinstance(value, np.ndarray | np.generic):
        # Taken for 32 bits elsewhere; here the value says what is meant.
        given = given.update(dtype=dtypes.dtype(value.dtype))
        if given.dtype == expected.dtype:
            return put_host(np.array(value), expected)
    if given.dtype == expected.dtype:
        return value
    real = not dtypes.is_complex(given.dtype)
    if (
        given.weak_type
        and (numbers or dtypes.is_inexact(given.dtype))
        and (real or dtypes.is_complex(expected.dtype))
    ):
        # A Python number becomes a constant without a conversion in the graph.
        if isinstance(value, int | float | complex):
            return arith.constant(value, expected.dtype)
        return arith.cast(value, expected.dtype)
    hint = "convert it with .astype(...)"
    if given.weak_type:
        hint = "write 1.0 for 1" if real else "tangents of real values are real"
    raise DtypeError(f"{_message(what, aval, given)}: {hint}")


def checked_cotangent(value: Any, aval: Aval, what: What) -> Any:
    """Returns a cotangent of what a linear function gives; of integers, integers.

    Args:
      value: what the user gave.
      aval: the type of the result.
      what: names it in messages.

    Raises:
      ArgumentError, ShapeError, DtypeError: as `checked_tangent`.
    """
    if not dtypes.is_integer(aval.dtype):
        return checked_tangent(value, aval, what)
    if not is_arraylike(value):
        raise not_an_array(value, f"{_text(what)} is")
    given = typeof(value)
    if given.weak_type and dtypes.is_integer(given.dtype):
        given, value = given.update(dtype=aval.dtype), arith.cast(value, aval.dtype)
    require_type(given, aval, what)
    return value


def require_type(given: Aval, aval: Aval, what: What) -> None:
    """Checks the type of what a rule returned.

    Raises:
      ShapeError, DtypeError: it differs.
    """
    if given.shape != aval.shape:
        raise ShapeError(f"{_text(what)} must be {aval.strong()}, got {given}")
    if given.dtype != aval.dtype:
        raise DtypeError(
            f"{_text(what)} must be {aval.strong()}, got {given}: convert it with "
            ".astype(...)"
        )


def _message(what: What, aval: Aval, given: Aval) -> str:
    expected = aval.tangent()
    of = "" if expected.dtype == aval.dtype else f" for a value of type {aval}"
    return f"{_text(what)} must be {expected.strong()}{of}, got {given}"


def _text(what: What) -> str:
    return what if isinstance(what, str) else what()
