"""`jax.experimental.checkify`: checks of concrete values.

`check` raises at once where its condition is known. What turns checks of traced values
into results, `checkify`, is not here yet: it raises `NotImplementedError`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.compat.jax._mirror import listen
from fxflow.core import tree
from fxflow.core.ir.trace import Tracer
from fxflow.devices import RuntimeFailure as JaxRuntimeError

ErrorCategory = type


class JaxException(Exception):
    """A check that failed."""


class NaNError(JaxException):
    """A NaN was made."""


class OOBError(JaxException):
    """An index was out of bounds."""


class DivisionByZeroError(JaxException):
    """A number was divided by zero."""


class FailedCheckError(JaxException):
    """A condition of `check` did not hold."""


user_checks: frozenset[type] = frozenset({FailedCheckError})
nan_checks: frozenset[type] = frozenset({NaNError})
index_checks: frozenset[type] = frozenset({OOBError})
div_checks: frozenset[type] = frozenset({DivisionByZeroError})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class Error:
    """What `checkify` gives beside the result."""

    def __init__(self, message: str | None = None) -> None:
        self._message = message

    def get(self) -> str | None:
        """Returns the message of the first check that failed, or None."""
        return self._message

    def throw(self) -> None:
        """Raises the first check that failed."""
        check_error(self)


Out = Any


def check(pred: Any, msg: str, *args: Any, debug: bool = False, **kwargs: Any) -> None:
    """Raises if a condition does not hold.

    Args:
      pred: bool[].
      msg: a format of the arguments.
      *args: for the format.
      debug: whether it may be left out, as `debug_check` is.
      **kwargs: for the format.

    Raises:
      JaxRuntimeError: the condition does not hold.
      NotImplementedError: it is traced.
    """
    if isinstance(pred, Tracer):
        if debug:
            return
        raise NotImplementedError(
            "fxflow.compat.jax: checkify.check of a traced value; fxflow has no "
            "checkify yet (use fxflow.debug.callback, or config.debug_nans)"
        )
    if not np.all(np.asarray(pred)):
        values = [np.asarray(a) for a in args]
        raise JaxRuntimeError(
            msg.format(*values, **tree.map(np.asarray, kwargs)) + " (`check` failed)"
        )


def debug_check(pred: Any, msg: str, *args: Any, **kwargs: Any) -> None:
    """Raises if a condition does not hold; does nothing where it is traced."""
    check(pred, msg, *args, debug=True, **kwargs)


def check_error(error: Error) -> None:
    """Raises what an `Error` holds."""
    if error.get() is not None:
        raise JaxRuntimeError(error.get())


def checkify(
    f: Callable[..., Any], errors: frozenset[type] = user_checks
) -> Callable[..., Any]:
    """Raises: fxflow has no such transformation yet.

    Args:
      f: the function.
      errors: which checks.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "fxflow.compat.jax: fxflow has no checkify yet (use fxflow.debug.callback, or "
        "config.debug_nans)"
    )


__all__ = [
    "Error",
    "ErrorCategory",
    "JaxException",
    "JaxRuntimeError",
    "Out",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "nan_checks",
    "user_checks",
]

listen(globals())
