"""`jax.experimental.checkify`: fxflow's, with JAX's class of errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from fxflow import checkify as _checkify
from fxflow.compat.jax._mirror import mirror
from fxflow.core import tree
from fxflow.devices import RuntimeFailure as JaxRuntimeError
from fxflow.errors import CheckError


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except CheckError as error:
            raise JaxRuntimeError(str(error)) from None

    return call


class Error(_checkify.Error):
    """What went wrong in a function that `checkify` transformed."""

    throw = _raising(_checkify.Error.throw)


tree.register_pytree_node(
    Error,
    lambda e: ((e.code, e.values), e.sites),
    lambda sites, parts: Error(parts[0], parts[1], sites),
)
init_error = Error()
check = _raising(_checkify.check)
check_error = _raising(_checkify.check_error)


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
