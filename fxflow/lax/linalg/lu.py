"""LU decomposition with partial pivoting."""

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
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_at_least, is_symbolic, smaller
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq, lt
from fxflow.lax.control_flow.fori_loop import fori_loop
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.elementwise import add, sub
from fxflow.lax.linalg.library import (
    call,
    checked,
    corner,
    flops,
    identity,
    lapack_target,
    lower_part,
    matmul,
    plain_call,
    require_matrices,
    upper_part,
    zeros_text,
)
from fxflow.lax.linalg.triangular import triangular_solve
from fxflow.lax.reduction import ReduceSum
from fxflow.lax.select import select


@register
class Lu(MultipleResults):
    """P x = L U. dtypes: f32, f64, c64, c128. LAPACK getrf.

    Results: L (unit diagonal, not stored) and U in one matrix, the pivots, and the
    permutation of the rows.
    """

    name = "lu"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval) -> list[Aval]:
        """Matrices of the same shape, min(m, n) pivots, m rows."""
        require_matrices(self.name, x)
        m, n = x.shape[-2:]
        front = x.shape[:-2]
        return [
            x.strong(),
            Aval((*front, smaller(m, n)), dtypes.int32),
            Aval((*front, m), dtypes.int32),
        ]

    def lower(self, ctx: Context, *operands: str) -> list[str]:
        """LAPACK, cuSOLVER or XLA's own."""
        (x,) = ctx.avals_in
        outs = ctx.avals_out
        _, pivots, permutation = outs
        rows = x.shape[-2]
        if not x.size:
            rising = np.broadcast_to(np.arange(rows, dtype=np.int32), permutation.shape)
            return [*zeros_text(ctx, outs[:2]), ctx.constant(rising)]
        if ctx.platform == "tpu":
            return plain_call(
                ctx, "LuDecomposition", operands, outs, "api_version = 2 : i32"
            )
        target = "cusolver_getrf_ffi"
        if ctx.platform == "cpu":
            target = lapack_target("getrf", x.dtype)
        info = Aval(x.shape[:-2], dtypes.int32)
        result, positions, code = call(
            ctx,
            target,
            [(operands[0], x, 2)],
            [(x, 2), (pivots, 1), (info, 0)],
            aliases=[(0, 0)],
        )
        (positions,) = ctx.compose(
            lambda p: sub(p, full(pivots.shape, 1, np.int32)), [positions], [pivots]
        )
        # Positive codes mean a zero pivot, which is not a failure of the decomposition.
        (failed,) = ctx.compose(
            lambda c: select(_negative(c), c, full(info.shape, 0, np.int32)),
            [code],
            [info],
        )
        result = checked(ctx, result, x, failed, core=2)
        (order,) = ctx.compose(lambda p: permutation_of(p, rows), [positions], [pivots])
        return [result, positions, order]

    def evaluate(self, x: Any) -> list[Any]:
        """Elimination, column by column."""
        out = [np.zeros(a.shape, a.dtype) for a in self.abstract(_aval(x))]
        m, n = x.shape[-2:]
        for position in np.ndindex(*x.shape[:-2]):
            a, pivots, order = x[position].copy(), out[1][position], np.arange(m)
            for k in range(min(m, n)):
                # What LAPACK takes for the size of a complex pivot.
                size = np.abs(a[k:, k].real) + np.abs(a[k:, k].imag)
                p = k + int(np.argmax(size))
                pivots[k] = p
                a[[k, p]], order[[k, p]] = a[[p, k]], order[[p, k]]
                if a[k, k] != 0:
                    a[k + 1 :, k] /= a[k, k]
                    a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
            out[0][position], out[2][position] = a, order
        return out

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """L tril(F) + triu(F) U with F = L⁻¹ P dx U⁻¹, both factors made square.

        Source: de Hoog, Anderssen and Lukas 2011, "Differentiation of matrix
        functionals using triangular factorization".
        """
        (x,), (t,) = primals, tangents
        factors, pivots, order = self.bind(x)
        aval = typeof(x)
        m, n = aval.shape[-2:]
        k, front = smaller(m, n), aval.shape[:-2]
        zeros = [Zero(typeof(v).tangent()) for v in (pivots, order)]
        if not aval.size:
            return [factors, pivots, order], [t, *zeros]
        low = lower_part(corner(factors, m, k), strict=True)
        low = add(corner(low, m, m), identity((*front, m, m), aval.dtype))
        up = corner(upper_part(corner(factors, k, n)), n, n)
        # A wide U becomes square by unit rows.
        if not is_at_least(k, n):
            ones = identity((*front, n, n), aval.dtype)
            inner = corner(identity((*front, k, k), aval.dtype), n, n)
            up = add(up, sub(ones, inner))
        wide = broadcast_in_dim(order, (*front, m, m), tuple(range(len(front) + 1)))
        columns = broadcasted_iota(np.int32, (*front, m, m), len(front) + 1)
        swap = convert_element_type(eq(wide, columns), aval.dtype)
        inner = triangular_solve(
            low, matmul(swap, t), left_side=True, lower=True, unit_diagonal=True
        )
        inner = triangular_solve(up, inner, left_side=False, lower=False)
        change = add(
            matmul(low, lower_part(inner, strict=True)), matmul(upper_part(inner), up)
        )
        return [factors, pivots, order], [change, *zeros]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0]), [True] * 3

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """2 n³ / 3."""
        return {**super().cost(*avals), "flops": flops(avals[0], 2 / 3)}


def _aval(x: Any) -> Aval:
    return Aval(x.shape, x.dtype)


def _negative(code: Any) -> Any:
    return lt(code, full(typeof(code).shape, 0, np.int32))


def permutation_of(pivots: Any, size: int) -> Any:
    """Returns the permutation that a sequence of exchanges of rows makes.

    Args:
      pivots: i32[..., k]: row i is exchanged with row pivots[i].
      size: number of rows.
    """
    aval = typeof(pivots)
    front, count = aval.shape[:-1], aval.shape[-1]
    shape = (*front, size)
    last = len(front)
    index = broadcasted_iota(np.int32, shape, last)
    if not count or not aval.size:
        return index
    steps = broadcasted_iota(np.int32, aval.shape, last)

    def spread(row: Any) -> Any:
        return broadcast_in_dim(row, shape, tuple(range(last)))

    def pick(values: Any, hit: Any) -> Any:
        nothing = full(typeof(values).shape, 0, np.int32)
        return ReduceSum.bind(select(hit, values, nothing), axes=(last,))

    def exchange(i: Any, order: Any) -> Any:
        here = eq(index, broadcast_in_dim(i, shape, ()))
        other = pick(pivots, eq(steps, broadcast_in_dim(i, aval.shape, ())))
        there = eq(index, spread(other))
        mine, theirs = pick(order, here), pick(order, there)
        return select(here, spread(theirs), select(there, spread(mine), order))

    stop = count if is_symbolic((count,)) else np.int32(count)
    return fori_loop(np.int32(0), stop, exchange, index)


# -- public ----------------------------------------------------------------------------


def lu(x: Any) -> tuple[Array, Array, Array]:
    """Decomposes matrices with row exchanges: x[permutation] = L U.

    Args:
      x: f32, f64, c64 or c128[..., m, n].

    Returns:
      L and U in one matrix [..., m, n] (the unit diagonal of L is not stored); the
      pivots i32[..., min(m, n)]: row i was exchanged with row pivots[i]; and the
      permutation i32[..., m] of the rows.

    Raises:
      ShapeError: x is not a matrix.
      DtypeError: the dtype is not one of these.

    Special cases:
      A singular matrix has a zero on the diagonal of U.

    Example:
      >>> factors, pivots, permutation = lu(np.float32([[1, 2], [4, 4]]))
      >>> print(factors, pivots, permutation)
      [[4.   4.  ]
       [0.25 1.  ]] [1 1] [1 0]

    Source: LAPACK getrf.
    """
    factors, pivots, permutation = Lu.bind(x)
    return factors, pivots, permutation


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """Returns the permutation that the pivots of `lu` stand for.

    Args:
      pivots: i32[..., k].
      permutation_size: number of rows, at least k.

    Returns:
      i32[..., permutation_size].

    Raises:
      DtypeError: the pivots are not int32.
      ShapeError: the pivots are 0-d.
      ArgumentError: there are more pivots than rows.

    Example:
      >>> print(lu_pivots_to_permutation(np.int32([2, 2, 2]), 3))
      [2 0 1]

    Source: LAPACK laswp.
    """
    aval = typeof(pivots)
    if aval.dtype != dtypes.int32:
        raise DtypeError(f"lu_pivots_to_permutation: pivots must be int32, got {aval}")
    if not aval.ndim:
        raise ShapeError(f"lu_pivots_to_permutation: takes vectors, got {aval}")
    if aval.shape[-1] > permutation_size:
        raise ArgumentError(
            f"lu_pivots_to_permutation: {aval} has more pivots than permutation_size "
            f"{permutation_size}"
        )
    result: Array = permutation_of(pivots, permutation_size)
    return result
