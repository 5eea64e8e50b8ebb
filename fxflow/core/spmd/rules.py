"""Rules of operations that know of several devices, axes or memories.

`Primitive` inherits them with the answers of all other operations: the result differs
where an operand does, no axis is named, everything is in the device's own memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

from fxflow.core.arrays import Axes
from fxflow.core.arrays.aval import NOWHERE

if TYPE_CHECKING:
    from fxflow.core.ir.graph import Node


class AxisRules:
    """Named axes (of `vmap`, `pmap`, meshes), and along which of them results differ.

    Attributes:
      axis_params: names of parameters that hold named axes.
      types_inside: whether `abstract` takes the results' types from a graph, `vma`
        included.
    """

    axis_params: ClassVar[tuple[str, ...]] = ()
    types_inside: ClassVar[bool] = False

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Returns whether the operation names the axis."""
        for param in self.axis_params:
            names = params[param]
            if names == axis_name or (isinstance(names, tuple) and axis_name in names):
                return True
        return False

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        **params: Any,
    ) -> tuple[Any, Any]:
        """Like `batch`, when `axis_name` is one that the operation itself names."""
        raise NotImplementedError

    def vma(self, given: Sequence[Axes], params: dict[str, Any]) -> Axes:
        """Returns the tracked axes along which the results may vary.

        See `core/spmd/varying`.

        Args:
          given: those of the operands' types.
          params: as bound.
        """
        return NOWHERE.union(*given)

    def mesh(self, params: dict[str, Any]) -> Any:
        """Returns the mesh that the operation itself names, or None."""
        return None

    def inside(self, params: dict[str, Any]) -> AbstractContextManager[Any]:
        """Returns the scope in which the graphs of its parameters stand."""
        return nullcontext()


class MemoryRules:
    """Memories other than the device's own; see `core/spmd/memories.py`."""

    def names_memory(self, params: dict[str, Any]) -> bool:
        """Returns whether the operation itself puts values in another memory."""
        return False

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Returns where operands must be and results are (see `core/spmd/memories`).

        Args:
          node: the operation.
          kinds: where its operands are.
          layout: rewrites the graphs of its parameters.

        Returns:
          A `Rewritten`; None for an operation that computes: all in the device's own.
        """
        return None
