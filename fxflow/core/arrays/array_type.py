"""A type together with its placement: what a compiled program is chosen by.

Interned like types, so that the key of a call is a tuple of object identities.
"""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays.aval import Aval, Shape
from fxflow.core.source import at_fault
from fxflow.devices import OutOfMemoryError, buffers, memory


class ArrayType:
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
        if placement.is_host and 0 < memory.host_memory() < aval.nbytes:
            # The system would lend the memory, and end the process when it is written.
            raise OutOfMemoryError(
                f"{at_fault()}{aval} takes {aval.nbytes:,} bytes, more than the "
                f"{memory.host_memory():,} that this machine has"
            )
        self.aval, self.placement, self.committed = aval, placement, committed

    @property
    def handler(self) -> Any:
        """What the runtime calls to wrap a raw result of this type and placement."""
        try:
            return self._handler
        except AttributeError:
            self._handler = buffers.result_handler(
                self.aval.physical, self.placement, self.committed
            )
            return self._handler

    def __repr__(self) -> str:
        return f"{self.aval}@{self.placement}"


def type_on(aval: Aval, placement: Any = None, committed: bool = False) -> ArrayType:
    """Returns the one `ArrayType` of these parts.

    Args:
      aval: the type.
      placement: None is the default device's.
      committed: whether operations must stay there.

    Raises:
      OutOfMemoryError: the machine does not have the memory for it.
    """
    if placement is None:
        placement = buffers.default_placement()
    # There, not in a table of this module: it goes when the device's client does.
    table = placement.table
    known: ArrayType | None = table.get((aval, committed))
    if known is None:
        # Another thread's, if it was quicker: an `ArrayType` is known by its identity.
        made = ArrayType(aval, placement, committed)
        known = table.setdefault((aval, committed), made)
    return known


def require_room(shape: Shape, dtype: Any) -> None:
    """Checks that an array can be made, before NumPy is asked to.

    Args:
      shape: of the largest array that there will be.
      dtype: of it.

    Raises:
      ShapeError: it is larger than any memory.
      OutOfMemoryError: the machine does not have the memory for it.
    """
    type_on(Aval(shape, dtype))
