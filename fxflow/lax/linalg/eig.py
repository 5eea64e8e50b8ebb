"""Eigenvalues and eigenvectors of general matrices."""

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
from fxflow.errors import NotDifferentiableError
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq
from fxflow.lax.complex import complex as complex_
from fxflow.lax.complex import conj, real
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full_like
from fxflow.lax.elementwise import add, div, mul, sub
from fxflow.lax.linalg.library import (
    as_columns,
    as_rows,
    call,
    checked,
    diagonal,
    flops,
    host_call,
    identity,
    lapack_target,
    matmul,
    require_matrices,
    zeros_text,
)
from fxflow.lax.linalg.lu import lu
from fxflow.lax.linalg.triangular import triangular_solve
from fxflow.lax.reduction import ReduceSum


@register
class Eig(MultipleResults):
    """Eigenvalues, left and right eigenvectors. dtypes: f32, f64, c64, c128.

    LAPACK geev; on accelerators NumPy's on the host.

    Params:
      left: whether left eigenvectors are computed.
      right: whether right ones are.
    """

    name = "eig"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval, *, left: bool, right: bool) -> list[Aval]:
        """Complex vectors and matrices."""
        require_matrices(self.name, x, square=True)
        dtype = dtypes.to_complex(x.dtype)
        vectors = Aval(x.shape, dtype)
        return [Aval(x.shape[:-1], dtype)] + [vectors] * (left + right)

    def lower(self, ctx: Context, *operands: str, left: bool, right: bool) -> list[str]:
        """LAPACK, or a call back to the host."""
        (x,), outs = ctx.avals_in, ctx.avals_out
        if not x.size:
            return zeros_text(ctx, outs)
        if ctx.platform != "cpu":
            return host_call(ctx, self, operands, left=left, right=right)
        is_complex = dtypes.is_complex(x.dtype)
        values, vectors = outs[0], Aval(x.shape, outs[0].dtype)
        part = values.update(dtype=dtypes.to_real(x.dtype))
        # For a real matrix LAPACK gives real and imaginary parts of the eigenvalues.
        spectrum = [(values, 1)] if is_complex else [(part, 1), (part, 1)]
        info = Aval(x.shape[:-2], dtypes.int32)
        sides = [ord("V" if side else "N") for side in (left, right)]
        *found, vl, vr, code = call(
            ctx,
            lapack_target("geev", x.dtype),
            [(operands[0], x, 2)],
            [*spectrum, (vectors, 2), (vectors, 2), (info, 0)],
            attributes=f"compute_left = {sides[0]} : ui8, "
            f"compute_right = {sides[1]} : ui8",
        )
        if not is_complex:
            found = ctx.compose(complex_, found, [part, part])
        result = [checked(ctx, found[0], values, code, core=1)]
        result += [checked(ctx, vl, vectors, code, core=2)] * left
        result += [checked(ctx, vr, vectors, code, core=2)] * right
        return result

    def evaluate(self, x: Any, *, left: bool, right: bool) -> list[Any]:
        """`numpy.linalg.eig`; left vectors from the inverse of the right ones."""
        values, vectors = np.linalg.eig(x)
        dtype = dtypes.to_complex(x.dtype)
        outs = [values.astype(dtype)]
        if left:
            # The rows of V⁻¹ are left eigenvectors.
            rows = np.linalg.inv(vectors)
            other = np.conj(np.swapaxes(rows, -1, -2))
            size = np.linalg.norm(other, axis=-2, keepdims=True)
            outs.append((other / size).astype(dtype))
        if right:
            outs.append(vectors.astype(dtype))
        return outs

    def jvp(
        self, primals: Values, tangents: Values, *, left: bool, right: bool
    ) -> Dual:
        """Dw = diag(V⁻¹ dx V); dV = V (F ∘ V⁻¹ dx V), vectors kept of length one.

        Source: Giles 2008, "An extended collection of matrix derivative results";
        Boeddeker et al. 2017, "On the computation of complex-valued gradients" (the
        phase in which the vector's own component does not change).
        """
        if left:
            raise NotDifferentiableError(
                "eig: left eigenvectors have no derivative: pass "
                "compute_left_eigenvectors=False"
            )
        (x,), (t,) = primals, tangents
        w, v = self.bind(x, left=False, right=True)
        shape, dtype = typeof(v).shape, typeof(v).dtype
        if not typeof(x).size:
            outs = [w, v][: 1 + right]
            return outs, [full_like(o, 0) for o in outs]
        change = convert_element_type(t, dtype)
        inner = solve(v, matmul(change, v))
        dw = diagonal(inner)
        if not right:
            return [w], [dw]
        ones = identity(shape, dtype)
        gaps = sub(as_columns(w, shape), as_rows(w, shape))
        # One over the gap, and 0 on the diagonal, where the gap is 0.
        f = sub(div(full_like(ones, 1), add(gaps, ones)), ones)
        dv = matmul(v, mul(f, inner))
        last = len(shape) - 2
        # Vectors of length one move across themselves: what is along them is taken
        # away.
        along = real(ReduceSum.bind(mul(conj(v), dv), axes=(last,)))
        along = convert_element_type(along, dtype)
        return [w, v], [dw, sub(dv, mul(v, as_columns(along, shape)))]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        outs = self.bind(args[0], **params)
        return outs, [True] * len(outs)

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """25 n³."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 25.0)}


def solve(a: Any, b: Any) -> Any:
    """Returns the solutions of a x = b for square matrices, by LU."""
    factors, _, order = lu(a)
    shape = typeof(a).shape
    wide = broadcast_in_dim(order, shape, tuple(range(len(shape) - 1)))
    columns = broadcasted_iota(np.int32, shape, len(shape) - 1)
    swap = convert_element_type(eq(wide, columns), typeof(a).dtype)
    low = triangular_solve(
        factors, matmul(swap, b), left_side=True, lower=True, unit_diagonal=True
    )
    return triangular_solve(factors, low, left_side=True, lower=False)


# -- public ----------------------------------------------------------------------------


def eig(
    x: Any,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
) -> list[Array]:
    """Returns eigenvalues and eigenvectors of square matrices.

    Args:
      x: f32, f64, c64 or c128[..., n, n].
      compute_left_eigenvectors: whether to compute u with uᴴ x = w uᴴ.
      compute_right_eigenvectors: whether to compute v with x v = w v.

    Returns:
      Complex eigenvalues [..., n] in no particular order, then left and right
      eigenvectors [..., n, n] in columns, of length one, where asked for.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the dtype is not one of these.
      NotDifferentiableError: a derivative is asked of left eigenvectors.

    Special cases:
      Eigenvectors of equal eigenvalues have no derivative: it is inf or NaN.

    Example:
      >>> w, v = eig(np.float32([[0, 1], [-1, 0]]), compute_left_eigenvectors=False)
      >>> print(np.sort(np.asarray(w).imag))
      [-1.  1.]

    Source: LAPACK geev.
    """
    return Eig.bind(
        x,
        left=bool(compute_left_eigenvectors),
        right=bool(compute_right_eigenvectors),
    )
