"""Private attributes of JAX's objects that packages read, on fxflow's classes.

They are added here when this package is imported, so that fxflow itself has none.
"""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays import Aval
from fxflow.core.ir.trace import Trace
from fxflow.devices.shardings import Sharding, local_part

_ATTRIBUTES: dict[type, dict[str, Any]] = {
    # equinox, to tell its own interpreter from others.
    Trace: {"main": property(lambda trace: trace)},
    Aval: {
        "at_least_vspace": Aval.tangent,
        "str_short": lambda aval, *short, **options: str(aval.strong()),
        "strip_weak_type": Aval.strong,
        "to_cotangent_aval": Aval.tangent,
        "to_tangent_aval": Aval.tangent,
    },
    # orbax
    Sharding: {
        "_device_assignment": property(lambda sharding: sharding.devices),
        "_addressable_device_assignment": property(
            lambda sharding: tuple(local_part(sharding.devices))
        ),
    },
}


def add_attributes() -> None:
    """Adds them; a second call changes nothing."""
    for kind, attributes in _ATTRIBUTES.items():
        for name, value in attributes.items():
            setattr(kind, name, value)
