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


def log_compiles(enable: bool = True) -> AbstractContextManager[Any]:
    """Logs what is traced, lowered and compiled within a `with` block.

    Args:
      enable: whether to.

    Returns:
      The context manager; inside, the logger `fxflow` gets a warning with the time of
      each step, and with the types of the arguments.

    Example:
      >>> with log_compiles(False):
      ...     fxflow.jit(lambda x: x + 1)(1.0).item()
      2.0
    """
    return config.override(log_compiles=enable)


def transfer_guard(level: str) -> AbstractContextManager[Any]:
    """Watches over copies between the host and devices within a `with` block.

    A copy is explicit if it was asked for, by `device_put` or `device_get`; implicit is
    that of a NumPy array or a Python number given to an operation, and that of an array
    which NumPy, `float()` or `print` looks at. On a CPU nothing leaves the device, for
    its memory is the host's.

    Args:
      level: `"allow"`; `"log"` (a warning of the logger `fxflow`) or `"disallow"` (an
        error), both of implicit copies; `"log_explicit"` or `"disallow_explicit"`, of
        all.

    Returns:
      The context manager; inside, a copy that is not allowed is a `TransferError`.

    Raises:
      ValueError: there is no such level.

    Example:
      >>> with transfer_guard("disallow"):
      ...     float(fnp.sum(fnp.ones(3)))
      3.0
    """
    return config.override(
        transfer_guard=level,
        transfer_guard_host_to_device=None,
        transfer_guard_device_to_host=None,
        transfer_guard_device_to_device=None,
    )


def transfer_guard_host_to_device(level: str) -> AbstractContextManager[Any]:
    """Watches over copies from the host to devices; see `transfer_guard`.

    Args:
      level: as there.

    Returns:
      The context manager.

    Raises:
      ValueError: there is no such level.

    Example:
      >>> with transfer_guard_host_to_device("disallow"):
      ...     fnp.ones(2).shape
      (2,)
    """
    return config.override(transfer_guard_host_to_device=level)


def transfer_guard_device_to_host(level: str) -> AbstractContextManager[Any]:
    """Watches over copies from devices to the host; see `transfer_guard`.

    Args:
      level: as there.

    Returns:
      The context manager.

    Raises:
      ValueError: there is no such level.

    Example:
      >>> with transfer_guard_device_to_host("disallow"):
      ...     fxflow.device_get(fnp.ones(2)).tolist()
      [1.0, 1.0]
    """
    return config.override(transfer_guard_device_to_host=level)


def transfer_guard_device_to_device(level: str) -> AbstractContextManager[Any]:
    """Watches over copies between devices; see `transfer_guard`.

    Args:
      level: as there.

    Returns:
      The context manager.

    Raises:
      ValueError: there is no such level.

    Example:
      >>> with transfer_guard_device_to_device("disallow"):
      ...     fnp.ones(2).shape
      (2,)
    """
    return config.override(transfer_guard_device_to_device=level)
