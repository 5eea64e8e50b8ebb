"""The transfer guard: logs or forbids copies between host and devices.

A copy is *explicit* if `device_put` or `device_get` makes it. On the CPU, host memory
is device memory: a device-to-host transfer is not a copy; a host-to-device transfer
counts as one, so that a program can be checked without an accelerator.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from fxflow._config import config
from fxflow.errors import TransferError

T = TypeVar("T")

TO_DEVICE = "host-to-device"
TO_HOST = "device-to-host"
BETWEEN = "device-to-device"


#: Whether any thread has ever set a guard; until then copies are not checked.
on: bool = False
_NAMES = ("", "_host_to_device", "_device_to_host", "_device_to_device")


def _changed(level: str | None) -> None:
    global on
    on = on or level not in (None, "allow")


for _name in _NAMES:
    config.on_change(f"transfer_guard{_name}", _changed)
    _changed(getattr(config, f"transfer_guard{_name}"))


class _Current(threading.local):
    explicit = False


_current = _Current()
_log = logging.getLogger("fxflow")

_HINTS = {
    TO_DEVICE: "put it there with fxflow.device_put",
    TO_HOST: "fetch it with fxflow.device_get",
    BETWEEN: "move it with fxflow.device_put",
}


def explicitly(function: Callable[..., T], *args: Any) -> T:
    """Calls a function whose copies are explicit."""
    before, _current.explicit = _current.explicit, True
    try:
        return function(*args)
    finally:
        _current.explicit = before


def guard(direction: str, what: Any, where: Any) -> None:
    """Allows, logs or forbids a copy, according to the options.

    Args:
      direction: `TO_DEVICE`, `TO_HOST` or `BETWEEN`.
      what: the type of the array.
      where: the target of the copy.

    Raises:
      TransferError: the copy is not allowed.
    """
    own = (
        config.transfer_guard_host_to_device
        if direction is TO_DEVICE
        else config.transfer_guard_device_to_host
        if direction is TO_HOST
        else config.transfer_guard_device_to_device
    )
    level = own or config.transfer_guard
    if level == "allow":
        return
    explicit = _current.explicit
    if explicit and level in ("log", "disallow"):
        return
    text = f"{direction} transfer of {what} to {where}"
    if level.startswith("log"):
        _log.warning(text)
        return
    hint = "" if explicit else f": {_HINTS[direction]}, which is explicit"
    raise TransferError(
        f"the transfer guard ({level}) does not allow the {text}{hint}, or allow it "
        'in a block: with fxflow.transfer_guard("allow")'
    )
