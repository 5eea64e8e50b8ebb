"""Schur decomposition Q T Qᴴ: T is triangular, Q is unitary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes
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


@register
class Schur(MultipleResults):
    """x = Z T Zᴴ, T upper triangular. dtypes: f32, f64, c64, c128. LAPACK gees.

    For real matrices T has blocks of two where eigenvalues are complex. On GPUs SciPy's
    on the host.

    Params:
      vectors: whether Z is computed.
    """

    name = "schur"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable = (
        "T and Z are not determined by the matrix: signs and the order of eigenvalues "
        "are free; use the derivative of what is computed from them instead"
    )
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval, *, vectors: bool) -> list[Aval]:
        """The type of x, twice if Z is wanted."""
        require_matrices(self.name, x, square=True)
        return [x.strong()] * (1 + vectors)

    def lower(self, ctx: Context, *operands: str, vectors: bool) -> list[str]:
        """LAPACK, or a call back to the host."""
        (x,) = ctx.avals_in
        if not x.size:
            return zeros_text(ctx, ctx.avals_out)
        if ctx.platform != "cpu":
            return host_call(ctx, self, operands, vectors=vectors)
        part = Aval(x.shape[:-1], dtypes.to_real(x.dtype))
        spectrum = [(part, 1), (part, 1)]
        if dtypes.is_complex(x.dtype):
            spectrum = [(Aval(part.shape, x.dtype), 1)]
        info = Aval(x.shape[:-2], np.dtype(np.int32))
        mode = ord("V" if vectors else "N")
        t, z, *_, code = call(
            ctx,
            lapack_target("gees", x.dtype),
            [(operands[0], x, 2)],
            [(x, 2), (x, 2), *spectrum, (info, 0), (info, 0)],
            attributes=f"mode = {mode} : ui8, sort = {ord('N')} : ui8",
            aliases=[(0, 0)],
        )
        return [checked(ctx, name, x, code, core=2) for name in (t, z)[: 1 + vectors]]

    def evaluate(self, x: Any, *, vectors: bool) -> list[Any]:
        """`scipy.linalg.schur`."""
        outs = [np.zeros(x.shape, x.dtype) for _ in range(1 + vectors)]
        kind = "complex" if dtypes.is_complex(x.dtype) else "real"
        for position in np.ndindex(*x.shape[:-2] if x.size else (0,)):
            # nan is not for SciPy to refuse: LAPACK passes it on.
            found = scipy_linalg().schur(x[position], output=kind, check_finite=False)
            for out, value in zip(outs, found, strict=False):
                out[position] = value
        return outs

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        outs = self.bind(args[0], **params)
        return outs, [True] * len(outs)

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """25 n³."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 25.0)}


# -- public ----------------------------------------------------------------------------


def schur(x: Any, *, compute_schur_vectors: bool = True) -> tuple[Array, ...]:
    """Decomposes square matrices: x = Z T Zᴴ, Z unitary, T upper triangular.

    Args:
      x: f32, f64, c64 or c128[..., n, n].
      compute_schur_vectors: whether to return Z, too.

    Returns:
      T and Z, or T alone in a tuple, of the type of x. If x is real, so are both, and
      each pair of complex eigenvalues is a block of two on the diagonal of T.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the dtype is not one of these.

    Special cases:
      nan where the iteration does not converge.

    Example:
      >>> t, z = schur(np.float32([[1, 2], [0, 3]]))
      >>> print(np.asarray(t))
      [[1. 2.]
       [0. 3.]]

    Source: LAPACK gees.
    """
    return tuple(Schur.bind(x, vectors=bool(compute_schur_vectors)))
