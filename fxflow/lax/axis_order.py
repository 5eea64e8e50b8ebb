"""Order of axes and elements: `transpose` and `rev`, views on the host.

Arrays of keys are moved as key data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter, methodcaller
from typing import Any

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir.primitive import Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import AxisError
from fxflow.lax.axes import distinct_axes
from fxflow.lax.families import MOVED, Structural
from fxflow.lax.keys import map_key_data


@register
class Transpose(Structural):
    """The axes in another order. All dtypes. StableHLO: transpose."""

    name = "transpose"
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.permuted
    sums: Callable[..., Any] = layouts.linear

    def abstract(self, x: Aval, *, permutation: tuple[int, ...]) -> Aval:
        """The lengths in the new order."""
        if sorted(permutation) != list(range(x.ndim)):
            raise AxisError(
                f"transpose: permutation must hold each axis of {x} once, got "
                f"{permutation}"
            )
        shape = x.shape
        return Aval(tuple([shape[d] for d in permutation]), x.dtype, x.weak_type)

    def lower(self, ctx: Context, x: str, *, permutation: tuple[int, ...]) -> str:
        """`transpose`."""
        return ctx.emit(
            f"stablehlo.transpose {x}, dims = {list(permutation)} : "
            f"({ctx.avals_in[0].mlir}) -> {ctx.avals_out[0].mlir}"
        )

    def evaluate(self, x: Any, *, permutation: tuple[int, ...]) -> Any:
        """`np.transpose`."""
        return x.transpose(permutation)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """`np.ndarray.transpose`."""
        return methodcaller("transpose", params["permutation"])

    def transpose(
        self, cotangent: Any, x: Any, *, permutation: tuple[int, ...]
    ) -> Values:
        """The inverse permutation."""
        inverse = [0] * len(permutation)
        for new, old in enumerate(permutation):
            inverse[old] = new
        return [Transpose.bind(cotangent, permutation=tuple(inverse))]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {"permutation": (0, *(d + 1 for d in params["permutation"]))}


def transpose(operand: Any, permutation: Sequence[int]) -> Array:
    """Puts the axes in another order.

    Args:
      operand: array of any dtype.
      permutation: axis `i` of the result is axis `permutation[i]` of `operand`.

    Returns:
      Array of the dtype of `operand`, its lengths permuted.

    Raises:
      AxisError: `permutation` does not name each axis once.

    Example:
      >>> transpose(np.zeros((2, 3), "f4"), (1, 0)).shape
      (3, 2)

    Source: StableHLO `transpose`.
    """
    aval = typeof(operand)
    axes = distinct_axes("transpose", permutation, aval.ndim, "permutation")
    if len(axes) != aval.ndim:
        raise AxisError(
            f"transpose: permutation must hold each axis of {aval} once, got {axes}"
        )
    if axes == tuple(range(aval.ndim)) and isinstance(operand, Array):
        return operand
    if dtypes.is_key(aval.dtype):
        # The axes of the key data stay last.
        words = tuple(range(aval.ndim, aval.physical.ndim))
        keys: Array = map_key_data(
            lambda w: Transpose.bind(w, permutation=axes + words), operand
        )
        return keys
    return Transpose.bind(operand, permutation=axes)


@register
class Rev(Structural):
    """The elements in reverse along some axes. All dtypes. StableHLO: reverse."""

    name = "rev"
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.partly

    def abstract(self, x: Aval, *, dimensions: tuple[int, ...]) -> Aval:
        """Unchanged."""
        return x

    def lower(self, ctx: Context, x: str, *, dimensions: tuple[int, ...]) -> str:
        """`reverse`."""
        return ctx.emit(
            f"stablehlo.reverse {x}, dims = {list(dimensions)} : "
            f"{ctx.avals_out[0].mlir}"
        )

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Indexing by `::-1`."""
        dims = params["dimensions"]
        back = slice(None, None, -1)
        return itemgetter(
            tuple(
                back if d in dims else slice(None)
                for d in range(max(dims, default=-1) + 1)
            )
        )

    def transpose(self, cotangent: Any, x: Any, **params: Any) -> Values:
        """The same reversal."""
        return [Rev.bind(cotangent, **params)]

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Axis 0 stays in front."""
        return {"dimensions": tuple(d + 1 for d in params["dimensions"])}


def rev(operand: Any, dimensions: Sequence[int]) -> Array:
    """Reverses the order of the elements along some axes.

    Args:
      operand: array of any dtype.
      dimensions: the axes.

    Returns:
      Array of the type of `operand`.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> rev(np.array([1, 2, 3], "i4"), (0,))
      Array([3, 2, 1], dtype=int32)

    Source: StableHLO `reverse`.
    """
    aval = typeof(operand)
    dims = distinct_axes("rev", dimensions, aval.ndim)
    if dtypes.is_key(aval.dtype):
        keys: Array = map_key_data(lambda w: Rev.bind(w, dimensions=dims), operand)
        return keys
    return Rev.bind(operand, dimensions=dims)
