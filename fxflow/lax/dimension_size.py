"""Sizes as values: `x.sum() / x.shape[0]` where only a call says that length."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes
from fxflow.core.ir.primitive import Batched, Flags, Primitive, Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import size as sizes
from fxflow.errors import ConcretizationError
from fxflow.lax.families import MOVED


@register
class DimensionSize(Primitive):
    """A size as a 0-d integer that yields in promotion. No operands.

    dtypes: int32, int64.

    StableHLO: get_dimension_size, of arguments of the program.

    Params:
      size: the size.
    """

    name = "dimension_size"
    host_kinds = MOVED
    nondifferentiable = "it has no operand"

    def abstract(self, *, size: Any) -> Aval:
        """An integer as Python's are."""
        return Aval((), dtypes.of_python(0), True)

    def lower(self, ctx: Context, *, size: Any) -> str:
        """`constant`, which `core/sizes/stablehlo` replaces where it is not."""
        return ctx.emit(f"stablehlo.constant dense<{size:d}> : {ctx.avals_out[0].mlir}")

    def evaluate(self, *, size: Any) -> Any:
        """The number, if it is one."""
        if not isinstance(size, int):
            raise ConcretizationError(
                f"the size {size} is known only when an exported program is called: "
                "use it within the function that is exported"
            )
        return np.asarray(size, dtypes.of_python(0))

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same for all slices."""
        return self.bind(**params), False


def array_of(size: sizes.Size) -> Array:
    """Returns a size as an array."""
    return DimensionSize.bind(size=size)


sizes._array_of.append(array_of)
