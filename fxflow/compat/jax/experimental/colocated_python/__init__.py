"""`jax.experimental.colocated_python`: Python run beside remote devices.

fxflow's devices belong to the process that runs the program, so there is no other
place: the functions raise when they are used, and say so.
"""

from collections.abc import Callable
from typing import Any, NoReturn

from fxflow.compat.jax._mirror import listen


def _nowhere(name: str) -> NoReturn:
    raise NotImplementedError(
        f"fxflow.compat.jax: {name}: fxflow has no devices that belong to another "
        "process; call the function itself"
    )


def colocated_python(fun: Callable[..., Any]) -> Any:
    """Raises: there is no place to run `fun` but here.

    Args:
      fun: a function.

    Returns:
      Never.

    Raises:
      NotImplementedError: always.
    """
    _nowhere("colocated_python")


def colocated_python_class(cls: type) -> Any:
    """Raises: there is no place to keep instances of `cls` but here.

    Args:
      cls: a class.

    Returns:
      Never.

    Raises:
      NotImplementedError: always.
    """
    _nowhere("colocated_python_class")


def colocated_cpu_devices(devices: Any) -> Any:
    """Raises: there is no host but this one.

    Args:
      devices: devices, or a mesh of them.

    Returns:
      Never.

    Raises:
      NotImplementedError: always.
    """
    _nowhere("colocated_cpu_devices")


__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]

listen(globals())
