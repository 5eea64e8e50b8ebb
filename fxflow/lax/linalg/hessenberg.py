"""Hessenberg form: what algorithms for eigenvalues begin with.

The reflectors that lead to it are returned packed, as LAPACK does:
`householder_product` of them is the orthonormal matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval
from fxflow.core.ir.primitive import Batched, Flags, MultipleResults, Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.lax.linalg.library import (
    call,
    checked,
    flops,
    host_call,
    lapack_target,
    require_matrices,
    scipy_linalg,
    zeros_text,
)


class Condensed(MultipleResults):
    """Square matrices to packed ones and some vectors: Hessenberg or tridiagonal."""

    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable: ClassVar[str | None] = (
        "the reflectors are not determined by the matrix"
    )
    layout: Callable[..., Any] = layouts.matrices

    def each(self, x: Any, outs: list[Any], name: str, **options: Any) -> list[Any]:
        """Fills results with those of SciPy's wrapper, which reports an error last."""
        for position in np.ndindex(*x.shape[:-2] if x.size else (0,)):
            function = scipy_linalg().get_lapack_funcs(name, (x[position],))
            *found, _ = function(x[position], **options)
            for out, value in zip(outs, found, strict=True):
                # SciPy's wrapper gives one factor where there is none.
                out[position] = value[: out.shape[-1]] if value.ndim == 1 else value
        return outs

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        outs = self.bind(args[0], **params)
        return outs, [True] * len(outs)


@register
class Hessenberg(Condensed):
    """x = Q H Qᴴ, H zero below the subdiagonal. dtypes: f32, f64, c64, c128.

    LAPACK gehrd; on GPUs SciPy's on the host.
    """

    name = "hessenberg"

    def abstract(self, x: Aval) -> list[Aval]:
        """H with the reflectors below its subdiagonal, and their n - 1 factors."""
        require_matrices(self.name, x, square=True)
        count = max(x.shape[-1] - 1, 0)
        return [x.strong(), Aval((*x.shape[:-2], count), x.dtype)]

    def lower(self, ctx: Context, *operands: str) -> list[str]:
        """LAPACK, or a call back to the host."""
        (x,), (_, taus) = ctx.avals_in, ctx.avals_out
        if not x.size:
            return zeros_text(ctx, ctx.avals_out)
        if not taus.size:
            return [operands[0], *zeros_text(ctx, [taus])]
        if ctx.platform != "cpu":
            return host_call(ctx, self, operands)
        info = Aval(x.shape[:-2], np.dtype(np.int32))
        packed, factors, code = call(
            ctx,
            lapack_target("gehrd", x.dtype),
            [(operands[0], x, 2)],
            [(x, 2), (taus, 1), (info, 0)],
            attributes=f"low = 1 : i32, high = {x.shape[-1]} : i32",
            aliases=[(0, 0)],
        )
        return [
            checked(ctx, packed, x, code, core=2),
            checked(ctx, factors, taus, code, core=1),
        ]

    def evaluate(self, x: Any) -> list[Any]:
        """SciPy's gehrd."""
        outs = [
            np.zeros(a.shape, a.dtype) for a in self.abstract(Aval(x.shape, x.dtype))
        ]
        return self.each(x, outs, "gehrd")

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """10 n³ / 3."""
        return {**super().cost(*avals), "flops": flops(avals[0], 10 / 3)}


# -- public ----------------------------------------------------------------------------


def hessenberg(a: Any) -> tuple[Array, Array]:
    """Reduces square matrices to Hessenberg form: a = Q H Qᴴ.

    Args:
      a: f32, f64, c64 or c128[..., n, n].

    Returns:
      A matrix [..., n, n] with H on and above the first subdiagonal and reflectors
      below it, and their factors [..., n - 1]. Q without its first row and column is
      `householder_product` of the matrix without its first row and last column.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the dtype is not one of these.

    Example:
      >>> packed, taus = hessenberg(np.float32([[1, 2], [3, 4]]))
      >>> packed.shape, taus.shape
      ((2, 2), (1,))

    Source: LAPACK gehrd.
    """
    packed, taus = Hessenberg.bind(a)
    return packed, taus
