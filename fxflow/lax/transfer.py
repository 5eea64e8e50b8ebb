"""Moving arrays between devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.array import Array, buffer_of, from_host, host_of
from fxflow.core.aval import Aval
from fxflow.core.execute import buffer_at
from fxflow.core.placed import placed_on
from fxflow.core.primitive import register
from fxflow.devices import buffers
from fxflow.lax.families import Structural


def put_array(array: Array, placement: Any) -> Array:
    """Returns a concrete array at a placement, committed to it; copied if it must be.

    Args:
      array: concrete.
      placement: where to.
    """
    placed = placed_on(array.aval, placement, True)
    if array._placed.placement is placement:
        if hasattr(array, "_buffer"):
            return Array(array._buffer, placed)
        return from_host(host_of(array), placed)
    if placement.is_host and array._placed.placement.is_host:
        if not hasattr(array, "_buffer"):
            return from_host(host_of(array), placed)
        return Array(
            buffers.copy_to(array.aval.physical, buffer_of(array), placement), placed
        )
    return Array(buffer_at(array, placement), placed)


@register
class DevicePut(Structural):
    """The operand on another device. dtypes: any. Inside a program: the operand.

    Params:
      device: where to.
    """

    name = "device_put"
    host_safe = False

    def abstract(self, x: Aval, *, device: Any) -> Aval:
        """The operand's type."""
        return x

    def lower(self, ctx: Any, x: str, *, device: Any) -> str:
        """Nothing: a program runs on one place."""
        return x

    def evaluate(self, x: Any, *, device: Any) -> Any:
        """The operand."""
        return x

    def plan(self, placeds: Sequence[Any], params: dict[str, Any]) -> Any:
        """Copies when run eagerly."""
        placement = buffers.placement(params["device"])
        return lambda array: put_array(array, placement)

    def transpose(self, cotangent: Any, *args: Any, device: Any) -> Sequence[Any]:
        """The cotangent stays where it is."""
        return [cotangent]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """The same device."""
        return params
