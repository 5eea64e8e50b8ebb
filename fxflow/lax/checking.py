"""Checks of values, as an operation: `check`, and what `checkify` finds.

The operation takes a *code* (0: nothing is wrong, `i`: what `sites[i - 1]` says) and
the values that the messages show. Run at once it raises; `checkify` makes a result of
it; compiled otherwise it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core import tree
from fxflow.core.arrays import Aval, as_array, dtypes, is_arraylike, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import (
    CHECK,
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    register,
    table,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.source import user_line
from fxflow.errors import ArgumentError, CheckError, ShapeError
from fxflow.lax.arg_extremum import argmax
from fxflow.lax.bitwise import bitwise_not
from fxflow.lax.comparison import ne
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim


class ErrorCategory:
    """A kind of mistake that `checkify` looks for."""


class FailedCheckError(ErrorCategory):
    """A condition of `check` did not hold."""


class NaNError(ErrorCategory):
    """An operation gave NaN."""


class OOBError(ErrorCategory):
    """An index was out of bounds."""


class DivisionByZeroError(ErrorCategory):
    """A number was divided by zero."""


class Site(Frozen):
    """A place in a program where something may be wrong.

    Attributes:
      category: of the mistake.
      text: format of the message.
      avals: types of the values that it shows.
      structure: of these, as `(args, kwargs)`.
      line: the user's.
    """

    category: type[ErrorCategory]
    text: str
    avals: tuple[Aval, ...]
    structure: Any
    line: str

    def message(self, values: Sequence[Any]) -> str:
        """Returns the message for concrete values."""
        shown = [np.asarray(v)[()] for v in values]
        args, kwargs = self.structure.unflatten(shown)
        text = self.text.format(*args, **kwargs)
        failed = " (`check` failed)" if self.category is FailedCheckError else ""
        return f"{text}{failed}"


def message(sites: Sequence[Site], code: int, values: Sequence[Any]) -> tuple[str, str]:
    """Returns the message of what a code says, and its line.

    Args:
      sites: of the code.
      code: not 0.
      values: of all sites.
    """
    start = sum(len(site.avals) for site in sites[: code - 1])
    site = sites[code - 1]
    return site.message(values[start : start + len(site.avals)]), site.line


@register
class Check(MultipleResults):
    """Raises what a code says is wrong. dtypes: i32 code, any values. Not lowered.

    Params:
      sites: what the codes say.
      debug: whether it does nothing but under `checkify`.
    """

    name = "check"
    host_kinds: ClassVar[frozenset[str]] = frozenset()

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """Nothing."""
        return []

    def effects(self, **params: Any) -> frozenset[Any]:
        """It is kept, although it gives nothing."""
        return frozenset((CHECK,))

    def evaluate(self, *values: Any, sites: tuple[Site, ...], debug: bool) -> list[Any]:
        """Raises, or does nothing."""
        code = int(np.asarray(values[0]))
        if code and not debug:
            text, line = message(sites, code, values[1:])
            raise CheckError(f"{text} at {line}")
        return []

    def plan(self, arg_types: Values, params: dict[str, Any]) -> Any:
        """Raises at once."""
        return lambda *arrays: self.evaluate(*arrays, **params)

    def lower(
        self, ctx: Context, *operands: str, sites: tuple[Site, ...], debug: bool
    ) -> list[str]:
        """Nothing, or refuses."""
        if not debug:
            raise ArgumentError(
                f"checkify.check at {sites[0].line} is compiled, and a program cannot "
                "raise: transform the function with checkify.checkify first, as in "
                "jit(checkify.checkify(f)), or use checkify.debug_check, which does "
                "nothing then"
            )
        return []

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The check of the values."""
        return self.bind(*primals, **params), []

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """Nothing is wrong with a row that does not take part."""
        code, *values = args
        none = arith.zeros(typeof(code))
        return self.bind(table["select_n"].bind(active, none, code), *values, **params)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The first slice where something is wrong."""
        if not size:
            return [], []
        code, *values = args
        first: Any = 0
        if mapped[0]:
            first = argmax(ne(code, np.int32(0)), 0, np.int32)
            code = dynamic_index_in_dim(code, first, 0, keepdims=False)
        values = [
            dynamic_index_in_dim(v, first, 0, keepdims=False) if flag else v
            for v, flag in zip(values, mapped[1:], strict=True)
        ]
        return self.bind(code, *values, **params), []


def check(pred: Any, msg: str, *args: Any, debug: bool = False, **kwargs: Any) -> None:
    """Checks a condition, which may be traced.

    Concrete, it raises at once. In a function that `checkify` transforms, a condition
    that does not hold becomes part of the function's error. Anywhere else a traced
    condition is refused when the program is compiled, since programs cannot raise.

    Args:
      pred: bool[]; what must hold.
      msg: a format of the arguments that follow, as for `str.format`.
      *args: arrays or numbers, or pytrees of them.
      debug: whether it does nothing but under `checkify`.
      **kwargs: likewise, by name.

    Raises:
      CheckError: the condition is concrete and does not hold.
      ArgumentError: `pred` is not a bool, or an argument is not an array.
      ShapeError: `pred` has axes.

    Example:
      >>> check(fnp.float32(1.0) > 0, "must be positive, got {}", 1.0)
    """
    if not is_arraylike(pred) or not dtypes.is_bool(typeof(pred).dtype):
        shown = typeof(pred) if is_arraylike(pred) else repr(pred)
        raise ArgumentError(f"check: pred must be a bool, got {shown}: compare it")
    aval = typeof(pred)
    if aval.shape:
        raise ShapeError(
            f"check: pred must be a scalar, got {aval}: reduce it with .all()"
        )
    leaves, structure = tree.flatten((args, kwargs))
    for leaf in leaves:
        if not is_arraylike(leaf):
            raise ArgumentError(
                "check: what the message shows must be arrays or numbers, got "
                f"{leaf!r}: put it into the message"
            )
    # A key is shown by its words.
    unwrap = table["random_unwrap"].bind
    leaves = [unwrap(x) if dtypes.is_key(typeof(x).dtype) else x for x in leaves]
    avals = tuple(typeof(leaf) for leaf in leaves)
    site = Site(FailedCheckError, str(msg), avals, structure, user_line())
    code = convert_element_type(bitwise_not(as_array(pred)), np.int32)
    Check.bind(code, *leaves, sites=(site,), debug=bool(debug))


def debug_check(pred: Any, msg: str, *args: Any, **kwargs: Any) -> None:
    """Checks a condition where `checkify` looks for it, and does nothing elsewhere.

    Args:
      pred: bool[]; what must hold.
      msg: a format of the arguments that follow.
      *args: see `check`.
      **kwargs: see `check`.

    Raises:
      ArgumentError: `pred` is not a bool, or an argument is not an array.
      ShapeError: `pred` has axes.

    Example:
      >>> fxflow.jit(lambda x: debug_check(x > 0, "must be positive"))(-1.0)
    """
    check(pred, msg, *args, debug=True, **kwargs)
