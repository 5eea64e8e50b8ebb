"""A type together with its place: what a compiled program is chosen by.

Interned like types, so that the key of a call is a tuple of object identities.
"""

from __future__ import annotations

from typing import Any

from fxflow.core.aval import Aval
from fxflow.devices import buffers


class Placed:
    """Type, placement and whether the user asked for that placement.

    Attributes:
      aval: the type.
      placement: which device or devices hold it.
      committed: whether operations must stay there.
    """

    __slots__ = ("_handler", "aval", "committed", "placement")

    aval: Aval
    placement: Any
    committed: bool
    _handler: Any

    def __init__(self, aval: Aval, placement: Any, committed: bool) -> None:
        self.aval, self.placement, self.committed = aval, placement, committed

    @property
    def handler(self) -> Any:
        """What the runtime calls to wrap a raw result of this type and place."""
        try:
            return self._handler
        except AttributeError:
            self._handler = buffers.result_handler(
                self.aval.physical, self.placement, self.committed
            )
            return self._handler

    def __repr__(self) -> str:
        return f"{self.aval}@{self.placement}"


def placed_on(aval: Aval, placement: Any = None, committed: bool = False) -> Placed:
    """Returns the one `Placed` of these parts.

    Args:
      aval: the type.
      placement: the place; None is the default device.
      committed: whether operations must stay there.
    """
    if placement is None:
        placement = buffers.default_placement()
    table = placement.table
    known = table.get((aval, committed))
    if known is None:
        known = table[aval, committed] = Placed(aval, placement, committed)
    result: Placed = known
    return result
