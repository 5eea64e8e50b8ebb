"""QR decomposition by Householder reflectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Aval, dtypes, typeof
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
from fxflow.core.sizes import smaller
from fxflow.core.spmd import layouts
from fxflow.errors import NotDifferentiableError
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.complex import complex as complex_
from fxflow.lax.complex import imag
from fxflow.lax.concatenation import concatenate
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import add, sub
from fxflow.lax.gather_scatter.gather import take_along
from fxflow.lax.linalg.householder import Geqp3, Geqrf, HouseholderProduct
from fxflow.lax.linalg.library import (
    adjoint,
    corner,
    diagonal_part,
    flops,
    lower_part,
    matmul,
    require_matrices,
    scipy_linalg,
    upper_part,
)
from fxflow.lax.linalg.triangular import triangular_solve
from fxflow.lax.slicing import slice_in_dim


@register
class Qr(MultipleResults):
    """x = Q R, R upper triangular. dtypes: f32, f64, c64, c128. LAPACK geqrf, orgqr.

    Params:
      full_matrices: whether Q is square.
    """

    name = "qr"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval, *, full_matrices: bool) -> list[Aval]:
        """Q [m, k] and R [k, n], with k = m or min(m, n)."""
        require_matrices(self.name, x)
        m, n = x.shape[-2:]
        k = m if full_matrices else smaller(m, n)
        front = x.shape[:-2]
        return [Aval((*front, m, k), x.dtype), Aval((*front, k, n), x.dtype)]

    def lower(self, ctx: Context, *operands: str, full_matrices: bool) -> list[str]:
        """Reflectors, and their product."""
        (x,) = ctx.avals_in
        m, n = x.shape[-2:]
        k = m if full_matrices else smaller(m, n)

        def decompose(x: Any) -> list[Any]:
            packed, taus = Geqrf.bind(x)
            # As many columns as Q has; of a wide matrix the first m hold reflectors.
            q = HouseholderProduct.bind(corner(packed, m, k), taus)
            return [q, upper_part(corner(packed, k, n))]

        return ctx.compose(decompose, operands)

    def evaluate(self, x: Any, *, full_matrices: bool) -> list[Any]:
        """`numpy.linalg.qr`."""
        q, r = np.linalg.qr(x, mode="complete" if full_matrices else "reduced")
        return [q, r]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """See `_changes`."""
        (x,), (t,) = primals, tangents
        q, r = self.bind(x, **params)
        return [q, r], _changes(self.name, x, t, q, r, **params)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0], **params), [True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """8 n³ / 3."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 8 / 3)}


def _changes(
    name: str, x: Any, t: Any, q: Any, r: Any, full_matrices: bool
) -> list[Any]:
    """Returns the tangents: dQ = Q(Ω - Qᴴ dx R⁻¹) + dx R⁻¹, Ω antihermitian; R follows.

    For a wide matrix [A B], Q is that of A.

    Source: Walter and Lehmann 2010, "On evaluating higher-order derivatives of the QR
    decomposition of tall matrices with full column rank"; Roberts and Roberts 2020, "QR
    and LQ decomposition matrix backpropagation algorithms".
    """
    aval = typeof(x)
    m, n = aval.shape[-2:]
    if full_matrices and m > n:
        raise NotDifferentiableError(
            f"{name} of {aval} with full_matrices=True has no derivative: the columns "
            "of Q beyond the first ones are not determined: use full_matrices=False"
        )
    if not aval.size:
        return [full_like(q, 0), full_like(r, 0)]
    k = smaller(m, n)
    square, change = corner(r, k, k), corner(t, m, k)
    right = triangular_solve(square, change, left_side=False, lower=False)
    inner = matmul(adjoint(q), right)
    low = lower_part(inner, strict=True)
    turn = sub(low, adjoint(low))
    if dtypes.is_complex(aval.dtype):
        # The diagonal of R stays real: Ω takes the imaginary part.
        phase = imag(diagonal_part(inner))
        turn = add(turn, complex_(full_like(phase, 0), phase))
    dq = add(matmul(q, sub(turn, inner)), right)
    dr = matmul(sub(inner, turn), square)
    if n > k:
        # The columns beyond the square part are R = Qᴴ x.
        rest = slice_in_dim(x, k, n, axis=aval.ndim - 1)
        rest_change = slice_in_dim(t, k, n, axis=aval.ndim - 1)
        more = add(matmul(adjoint(dq), rest), matmul(adjoint(q), rest_change))
        dr = concatenate([dr, more], aval.ndim - 1)
    return [dq, dr]


@register
class PivotedQr(MultipleResults):
    """x[:, p] = Q R, the diagonal of R decreasing. dtypes: f32, f64, c64, c128.

    LAPACK geqp3, orgqr. Column by column, the one with the longest rest comes next.

    Params:
      full_matrices: whether Q is square.
    """

    name = "pivoted_qr"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval, *, full_matrices: bool) -> list[Aval]:
        """Q [m, k], R [k, n] and p [n], with k = m or min(m, n)."""
        require_matrices(self.name, x)
        m, n = x.shape[-2:]
        k = m if full_matrices else smaller(m, n)
        front = x.shape[:-2]
        order = Aval((*front, n), np.dtype(np.int32))
        return [Aval((*front, m, k), x.dtype), Aval((*front, k, n), x.dtype), order]

    def lower(self, ctx: Context, *operands: str, full_matrices: bool) -> list[str]:
        """Reflectors, and their product."""
        (x,) = ctx.avals_in
        m, n = x.shape[-2:]
        k = m if full_matrices else smaller(m, n)

        def decompose(x: Any) -> list[Any]:
            packed, order, taus = Geqp3.bind(x)
            q = HouseholderProduct.bind(corner(packed, m, k), taus)
            return [q, upper_part(corner(packed, k, n)), order]

        return ctx.compose(decompose, operands)

    def evaluate(self, x: Any, *, full_matrices: bool) -> list[Any]:
        """SciPy's qr."""
        avals = self.abstract(Aval(x.shape, x.dtype), full_matrices=full_matrices)
        outs = [np.zeros(a.shape, a.dtype) for a in avals]
        if not x.size:
            m, k = avals[0].shape[-2:]
            outs[0][...] = np.eye(m, k)
            outs[2][...] = np.arange(x.shape[-1])
            return outs
        mode = "full" if full_matrices else "economic"
        for position in np.ndindex(*x.shape[:-2]):
            found = scipy_linalg().qr(x[position], mode=mode, pivoting=True)
            for out, value in zip(outs, found, strict=True):
                out[position] = value
        return outs

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """That of the matrix with its columns exchanged; the order is constant."""
        (x,), (t,) = primals, tangents
        q, r, order = self.bind(x, **params)
        aval = typeof(x)
        positions = broadcast_in_dim(
            order, aval.shape, (*range(aval.ndim - 2), aval.ndim - 1)
        )
        x, t = (take_along(v, positions, aval.ndim - 1) for v in (x, t))
        changes = _changes("qr", x, t, q, r, **params)
        return [q, r, order], [*changes, Zero(typeof(order).tangent())]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0], **params), [True, True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """8 n³ / 3."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 8 / 3)}


# -- public ----------------------------------------------------------------------------


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True) -> Any:
    """Decomposes matrices: x = Q R, Q with orthonormal columns, R upper triangular.

    Args:
      x: f32, f64, c64 or c128[..., m, n].
      pivoting: whether to exchange columns, such that the diagonal of R decreases and
        shows the rank.
      full_matrices: whether Q is [m, m], or [m, min(m, n)].

    Returns:
      Q and R; with `pivoting` also p, i32[..., n]: x[..., p] = Q R.

    Raises:
      ShapeError: x is not a matrix.
      DtypeError: the dtype is not one of these.
      NotDifferentiableError: a derivative is asked of a square Q of a tall matrix.

    Example:
      >>> q, r = qr(np.float32([[3, 1], [4, 2]]))
      >>> print(abs(np.asarray(r)).round(3))
      [[5.  2.2]
       [0.  0.4]]

    Source: LAPACK geqrf, geqp3, orgqr.
    """
    kind: Any = PivotedQr if pivoting else Qr
    return tuple(kind.bind(x, full_matrices=bool(full_matrices)))
