"""Context managers that find mistakes: no compilation, NaN checks, leak checks."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from fxflow._config import config


def disable_jit(disable: bool = True) -> AbstractContextManager[Any]:
    """Runs jitted functions operation by operation within a `with` block.

    Args:
      disable: whether to; False turns compilation on again inside.

    Returns:
      The context manager. Prints and debuggers see values, not traced ones.

    Example:
      >>> with disable_jit():
      ...     fxflow.jit(lambda x: print(x) or x)(1.0)
      1.0
      1.0
    """
    return config.override(disable_jit=disable)


def debug_nans(enable: bool = True) -> AbstractContextManager[Any]:
    """Raises where a result first contains a NaN, within a `with` block.

    Args:
      enable: whether to.

    Returns:
      The context manager; inside, `FloatingPointError` names operation and line.

    Example:
      >>> with debug_nans():
      ...     fnp.log(1.0).item()
      0.0
    """
    return config.override(debug_nans=enable)


def debug_infs(enable: bool = True) -> AbstractContextManager[Any]:
    """Raises where a result first contains an infinity, within a `with` block.

    Args:
      enable: whether to.

    Returns:
      The context manager; inside, `FloatingPointError` names operation and line.

    Example:
      >>> with debug_infs():
      ...     fnp.log(1.0).item()
      0.0
    """
    return config.override(debug_infs=enable)


def checking_leaks(enable: bool = True) -> AbstractContextManager[Any]:
    """Raises when a traced value outlives its trace, within a `with` block.

    Args:
      enable: whether to.

    Returns:
      The context manager; inside, tracing is slow.

    Example:
      >>> with checking_leaks():
      ...     fxflow.jit(lambda x: x + 1)(1.0).item()
      2.0
    """
    return config.override(check_leaks=enable)
