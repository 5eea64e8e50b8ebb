"""`jax.experimental.checkify`: fxflow's, with JAX's class of errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fxflow import checkify as _checkify
from fxflow.compat.jax._mirror import mirror
from fxflow.core import tree
from fxflow.core.ir.trace import Tracer
from fxflow.errors import CheckError


class JaxRuntimeError(ValueError):
    """A check failed."""


class Error(_checkify.Error):
    """What went wrong in a function that `checkify` transformed."""

    def throw(self) -> None:
        """Raises the error, if there is one.

        Raises:
          JaxRuntimeError: a check failed.
        """
        check_error(self)


tree.register_pytree_node(
    Error,
    lambda e: ((e.code, e.values), e.sites),
    lambda sites, parts: Error(parts[0], parts[1], sites),
)
init_error: Error = Error()


def check_error(error: Error) -> None:
    """Raises the error that `checkify` gave; see `fxflow.checkify.check_error`.

    Args:
      error: the first result of a function that `checkify` transformed.

    Raises:
      JaxRuntimeError: a check failed.
    """
    if not isinstance(error, Error) or isinstance(error.code, Tracer):
        _checkify.check_error(error)
        return
    said = error.get()
    if said is not None:
        raise JaxRuntimeError(said)


def check(pred: Any, msg: str, *args: Any, **kwargs: Any) -> None:
    """Checks a condition, which may be traced; see `fxflow.checkify.check`.

    Args:
      pred: bool[]; what must hold.
      msg: a format of the arguments that follow.
      *args: arrays or pytrees of them.
      **kwargs: likewise, by name, and `debug`.

    Raises:
      JaxRuntimeError: the condition is concrete and does not hold.
    """
    try:
        _checkify.check(pred, msg, *args, **kwargs)
    except CheckError as error:
        raise JaxRuntimeError(str(error)) from None


def checkify(
    f: Callable[..., Any], errors: frozenset[Any] = _checkify.user_checks
) -> Callable[..., tuple[Error, Any]]:
    """Makes a function that returns what went wrong; see `fxflow.checkify.checkify`.

    Args:
      f: function of arrays or pytrees of them.
      errors: what to look for.

    Returns:
      A function of the same arguments that returns a pair `(error, result)`.
    """
    checked = _checkify.checkify(f, errors)

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        error, out = checked(*args, **kwargs)
        return Error(error.code, error.values, error.sites), out

    return call


Out = Any

__all__ = [*mirror(globals(), "fxflow.checkify"), "JaxRuntimeError", "Out"]
