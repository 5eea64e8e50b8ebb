"""Eigenvalues and eigenvectors of symmetric and Hermitian matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError
from fxflow.lax.complex import real
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import add, div, mul, sub
from fxflow.lax.linalg.library import (
    adjoint,
    as_columns,
    as_rows,
    call,
    checked,
    diagonal,
    flops,
    identity,
    lapack_target,
    matmul,
    plain_call,
    real_name,
    require_matrices,
    zeros_text,
)
from fxflow.lax.linalg.triangular import symmetrized
from fxflow.lax.slicing import slice_in_dim


@register
class Eigh(MultipleResults):
    """Eigenvectors, ascending eigenvalues. dtypes: f32, f64, c64, c128. LAPACK syevd.

    Params:
      lower: which triangle is read.
    """

    name = "eigh"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval, *, lower: bool) -> list[Aval]:
        """Matrices, and real vectors."""
        require_matrices(self.name, x, square=True)
        return [x.strong(), Aval(x.shape[:-1], dtypes.to_real(x.dtype))]

    def lower(self, ctx: Context, *operands: str, lower: bool) -> list[str]:
        """LAPACK, cuSOLVER or XLA's own."""
        (x,), (vectors, values) = ctx.avals_in, ctx.avals_out
        if not x.size:
            return zeros_text(ctx, ctx.avals_out)
        if ctx.platform == "tpu":
            # Lower triangle, sorted, at most 100 sweeps, to this tolerance.
            extra = f'backend_config = "{int(lower)},1,100,1e-6"'
            return plain_call(ctx, "Eigh", operands, ctx.avals_out, extra)
        target = "cusolver_syevd_ffi"
        attributes = f"algorithm = 0 : ui8, lower = {'true' if lower else 'false'}"
        if ctx.platform == "cpu":
            target = lapack_target(real_name("syevd/heevd", x.dtype), x.dtype)
            triangle = ord("L" if lower else "U")
            attributes = f"mode = {ord('V')} : ui8, uplo = {triangle} : ui8"
        info = Aval(x.shape[:-2], dtypes.int32)
        v, w, code = call(
            ctx,
            target,
            [(operands[0], x, 2)],
            [(vectors, 2), (values, 1), (info, 0)],
            attributes=attributes,
            aliases=[(0, 0)],
        )
        return [
            checked(ctx, v, vectors, code, core=2),
            checked(ctx, w, values, code, core=1),
        ]

    def evaluate(self, x: Any, *, lower: bool) -> list[Any]:
        """`numpy.linalg.eigh`."""
        values, vectors = np.linalg.eigh(x, "L" if lower else "U")
        return [vectors.astype(x.dtype), values]

    def jvp(self, primals: Values, tangents: Values, *, lower: bool) -> Dual:
        """Dw = diag(Vᴴ dx V), dV = V (F ∘ Vᴴ dx V) with F = 1 / (w_j - w_i).

        Source: Giles 2008, "An extended collection of matrix derivative results".
        """
        (x,), (t,) = primals, tangents
        v, w = self.bind(x, lower=lower)
        shape, dtype = typeof(v).shape, typeof(w).dtype
        if not typeof(x).size:
            return [v, w], [full_like(v, 0), full_like(w, 0)]
        ones = identity(shape, dtype)
        gaps = sub(as_columns(w, shape), as_rows(w, shape))
        # One over the gap, and 0 on the diagonal, where the gap is 0.
        weights = sub(div(full_like(ones, 1), add(gaps, ones)), ones)
        inner = matmul(adjoint(v), matmul(symmetrized(t), v))
        dv = matmul(v, mul(convert_element_type(weights, typeof(v).dtype), inner))
        dw = diagonal(inner)
        if dtypes.is_complex(typeof(dw).dtype):
            dw = real(dw)
        return [v, w], [dv, dw]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0], **params), [True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """9 n³."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 9.0)}


# -- public ----------------------------------------------------------------------------


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Array, Array]:
    """Returns eigenvectors and eigenvalues of symmetric or Hermitian matrices.

    Args:
      x: f32, f64, c64 or c128[..., n, n].
      lower: which triangle is read, if `symmetrize_input` is false.
      symmetrize_input: whether to take the mean of x and xᴴ first.
      sort_eigenvalues: has no effect: they are always ascending.
      subset_by_index: a range of eigenvalues to return, by index; None is all.

    Returns:
      Matrices [..., n, k] of eigenvectors in columns, and real vectors [..., k] of
      ascending eigenvalues.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the dtype is not one of these.
      ArgumentError: the range is not within 0 and n.

    Special cases:
      Eigenvectors of equal eigenvalues have no derivative: it is inf or NaN, and an
      error under `debug_nans`. So is that of functions that do not depend on which
      vectors are chosen, and the second derivative of the eigenvalues, even of their
      sum, because they depend on more than derivatives of vectors and values:
      `scipy.linalg.funm(x, f, hermitian=True)`, its `trace`, which is the sum of f of
      the eigenvalues, and `scipy.linalg.spectral_projector` have the right ones.

    Example:
      >>> v, w = eigh(np.float32([[2, 1], [1, 2]]))
      >>> print(np.asarray(w).round(3))
      [1. 3.]

    Source: LAPACK syevd, heevd.
    """
    aval = typeof(x)
    require_matrices("eigh", aval, square=True)
    if symmetrize_input:
        x = symmetrized(x)
    v, w = Eigh.bind(x, lower=bool(lower))
    if subset_by_index is None:
        return v, w
    start, stop = subset_by_index
    if not 0 <= start < stop <= aval.shape[-1]:
        raise ArgumentError(
            f"eigh: subset_by_index {subset_by_index} must be a range within 0 and "
            f"{aval.shape[-1]} for {aval}"
        )
    return (
        slice_in_dim(v, start, stop, axis=aval.ndim - 1),
        slice_in_dim(w, start, stop, axis=aval.ndim - 2),
    )
