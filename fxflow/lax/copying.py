"""Copies, and barriers that the compiler moves nothing across."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import Array, Aval
from fxflow.core.ir.graph import Node, Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.memories import kept
from fxflow.lax.families import MOVED, Linear


@register
class Copy(Linear):
    """The same values in memory of their own. dtypes: any, keys included."""

    name = "copy"
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.partly
    sums: Callable[..., Any] = layouts.linear

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The same type."""
        return avals[0]

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """No-op: XLA aliases results with arguments only where they are donated."""
        return operands[0]

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """A copy."""
        return np.array(values[0])

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent."""
        return [cotangent]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same."""
        return self.bind(*args), True


def copy(x: Any, /) -> Array:
    """Returns a copy of the array.

    Args:
      x: array of any dtype.

    Returns:
      An array of the same shape, dtype and values.

    Example:
      >>> copy(np.float32(1))
      Array(1., dtype=float32)

    Source: StableHLO has no such operation; the result of a program is a copy.
    """
    return Copy.bind(x)


@register
class OptimizationBarrier(MultipleResults):
    """Its operands, computed together before anything that uses them.

    dtypes: any. StableHLO: optimization_barrier.
    """

    name = "optimization_barrier"
    host_kinds = MOVED
    linear = True
    layout: Callable[..., Any] = layouts.each_its_own
    sums: Callable[..., Any] = layouts.own_sums

    def abstract(self, *avals: Aval, **params: Any) -> list[Aval]:
        """The same types."""
        return list(avals)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> list[str]:
        """`optimization_barrier`."""
        if not operands:
            return []
        types = ", ".join(a.mlir for a in ctx.avals_in)
        return ctx.emit_many(
            len(operands),
            f"stablehlo.optimization_barrier {', '.join(operands)} : {types}",
        )

    def evaluate(self, *values: Any, **params: Any) -> list[Any]:
        """The operands."""
        return list(values)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """A barrier for the values, and one for the tangents."""
        outs = self.bind(*primals)
        # A barrier for zeros would give them elements.
        live = [t for t in tangents if type(t) is not Zero]
        kept = iter(self.bind(*live)) if live else iter(())
        return outs, [t if type(t) is Zero else next(kept) for t in tangents]

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """A barrier for the cotangents."""
        live = [c for c in cotangent if type(c) is not Zero]
        kept = iter(self.bind(*live)) if live else iter(())
        cts = [c if type(c) is Zero else next(kept) for c in cotangent]
        return [c if type(a) is Var else None for a, c in zip(args, cts, strict=True)]

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The operands'."""
        return kept(node, kinds)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """A barrier for the batches."""
        return self.bind(*args), list(mapped)


def optimization_barrier(operand: Any, /) -> Any:
    """Returns the arrays of a pytree, not to be computed later or twice.

    The compiler moves nothing across: whatever uses one of the results waits for all
    of them, and what computes them is not merged with an equal computation elsewhere.

    Args:
      operand: pytree of arrays.

    Returns:
      The same pytree.

    Example:
      >>> optimization_barrier((np.float32(1), np.int32(2)))
      (Array(1., dtype=float32), Array(2, dtype=int32))

    Source: StableHLO `optimization_barrier`.
    """
    leaves, treedef = tree.flatten(operand)
    return treedef.unflatten(OptimizationBarrier.bind(*leaves))
