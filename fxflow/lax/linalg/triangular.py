"""Cholesky decomposition and systems with a triangular matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.complex import conj
from fxflow.lax.elementwise import add, mul, sub
from fxflow.lax.linalg.library import (
    adjoint,
    call,
    checked,
    diagonal_part,
    flops,
    lapack_target,
    lower_part,
    matmul,
    require_matrices,
    swapped,
    upper_part,
    zeros_text,
)
from fxflow.lax.reshaping import expand_dims, reshape, squeeze


@register
class Cholesky(Primitive):
    """Lower triangular L with L Lᴴ = x. dtypes: f32, f64, c64, c128. LAPACK potrf.

    Only the lower triangle is read. NaN where a matrix is not positive definite.
    """

    name = "cholesky"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval) -> Aval:
        """The type of x."""
        require_matrices(self.name, x, square=True)
        return x.strong()

    def lower(self, ctx: Context, *operands: str) -> str:
        """LAPACK on the CPU, StableHLO's `cholesky` elsewhere."""
        (x,) = ctx.avals_in
        if not x.size:
            return operands[0]
        if ctx.platform == "cpu":
            info = Aval(x.shape[:-2], dtypes.int32)
            result, code = call(
                ctx,
                lapack_target("potrf", x.dtype),
                [(operands[0], x, 2)],
                [(x, 2), (info, 0)],
                # 76 is ord("L").
                attributes="uplo = 76 : ui8",
                aliases=[(0, 0)],
            )
            result = checked(ctx, result, x, code, core=2)
        else:
            result = ctx.emit(
                f"stablehlo.cholesky {operands[0]}, lower = true : {x.mlir}"
            )
        # What the libraries leave above the diagonal is not specified.
        (out,) = ctx.compose(lower_part, [result], [x])
        return out

    def evaluate(self, x: Any) -> Any:
        """`numpy.linalg.cholesky`, NaN where it fails."""
        flat = x.reshape(-1, *x.shape[-2:]) if x.size else x
        out = np.empty_like(flat)
        for i, matrix in enumerate(flat):
            try:
                out[i] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                out[i] = np.tril(np.full_like(matrix, np.nan))
        return out.reshape(x.shape)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """L φ(L⁻¹ dx L⁻ᴴ), where φ halves the diagonal and drops what is above.

        Source: Murray 2016, "Differentiation of the Cholesky decomposition".
        """
        (x,), (t,) = primals, tangents
        factor = self.bind(x)
        right = _solve(factor, t, left_side=False, transpose_a=True, conjugate_a=True)
        inner = lower_part(_solve(factor, right, left_side=True))
        halved = sub(inner, mul(diagonal_part(inner), 0.5))
        return factor, matmul(factor, halved)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0]), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """n³ / 3."""
        return {**super().cost(*avals), "flops": flops(avals[0], 1 / 3)}


def _solve(
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool = True,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    return TriangularSolve.bind(
        a,
        b,
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        conjugate_a=conjugate_a and dtypes.is_complex(typeof(a).dtype),
        unit_diagonal=unit_diagonal,
    )


@register
class TriangularSolve(Primitive):
    """Solves op(a) x = b, or x op(a) = b, for a triangular a. Linear in b.

    dtypes: f32, f64, c64, c128. BLAS trsm; StableHLO: triangular_solve.
    """

    name = "triangular_solve"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, a: Aval, b: Aval, **params: Any) -> Aval:
        """The type of b."""
        require_matrices(self.name, a, square=True)
        require_matrices(self.name, b)
        if a.dtype != b.dtype:
            raise DtypeError(
                f"{self.name}: matrix {a} and right-hand side {b} must have one dtype: "
                "convert one with .astype(...)"
            )
        axis = -2 if params["left_side"] else -1
        if a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2]:
            raise ShapeError(
                f"{self.name}: matrix {a} and right-hand side {b} must have the same "
                "leading axes: broadcast one"
            )
        if b.shape[axis] != a.shape[-1]:
            raise ShapeError(
                f"{self.name}: matrix {a} does not fit right-hand side {b}: "
                f"axis {axis} must be {a.shape[-1]}"
            )
        return b.strong()

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """BLAS on the CPU, `triangular_solve` elsewhere."""
        a, b = ctx.avals_in
        if not b.size:
            return zeros_text(ctx, ctx.avals_out)[0]
        left, low = params["left_side"], params["lower"]
        unit, swap = params["unit_diagonal"], params["transpose_a"]
        if ctx.platform == "cpu":
            how = ("C" if params["conjugate_a"] else "T") if swap else "N"
            letters = {
                "diag": "U" if unit else "N",
                "side": "L" if left else "R",
                "trans_x": how,
                "uplo": "L" if low else "U",
            }
            (out,) = call(
                ctx,
                lapack_target("trsm", a.dtype),
                [(operands[0], a, 2), (operands[1], b, 2)],
                [(b, 2)],
                attributes=", ".join(
                    f"{k} = {ord(v)} : ui8" for k, v in letters.items()
                ),
                aliases=[(0, 1)],
            )
            return out
        word = "NO_TRANSPOSE"
        if swap:
            word = "ADJOINT" if params["conjugate_a"] else "TRANSPOSE"
        return ctx.emit(
            f'"stablehlo.triangular_solve"({", ".join(operands)}) <{{'
            f"left_side = {_flag(left)}, lower = {_flag(low)}, "
            f"transpose_a = #stablehlo<transpose {word}>, "
            f"unit_diagonal = {_flag(unit)}}}> : ({a.mlir}, {b.mlir}) -> {b.mlir}"
        )

    def evaluate(self, a: Any, b: Any, **params: Any) -> Any:
        """`numpy.linalg.solve` of the triangle."""
        if not b.size:
            return np.zeros(b.shape, b.dtype)
        matrix = np.tril(a) if params["lower"] else np.triu(a)
        if params["unit_diagonal"]:
            n = a.shape[-1]
            matrix = matrix * (1 - np.eye(n)) + np.eye(n)
            matrix = matrix.astype(a.dtype)
        if params["transpose_a"]:
            matrix = np.swapaxes(matrix, -1, -2)
        if params["conjugate_a"]:
            matrix = matrix.conj()
        if params["left_side"]:
            return np.linalg.solve(matrix, b)
        # x A = b is Aᵀ xᵀ = bᵀ.
        flipped = np.linalg.solve(np.swapaxes(matrix, -1, -2), np.swapaxes(b, -1, -2))
        return np.ascontiguousarray(np.swapaxes(flipped, -1, -2))

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The solution for what the change of a makes of it."""
        a, b = primals
        ta, tb = tangents
        out = self.bind(a, b, **params)
        right = tb
        if type(ta) is not Zero:
            part = lower_part if params["lower"] else upper_part
            # The rest of the matrix is never read, nor is a unit diagonal.
            change = part(ta, strict=params["unit_diagonal"])
            if params["transpose_a"]:
                change = adjoint(change) if params["conjugate_a"] else swapped(change)
            moved = matmul(change, out) if params["left_side"] else matmul(out, change)
            right = arith.add(tb, arith.neg(moved))
        if type(right) is Zero:
            return out, right
        return out, self.bind(a, right, **params)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The system with the transposed matrix."""
        a, b = args
        if type(a) is Var or type(b) is not Var:
            return super().transpose(cotangent, *args, **params)
        if params["transpose_a"] and params["conjugate_a"]:
            a = conj(a)
        turned = {
            **params,
            "transpose_a": not params["transpose_a"],
            "conjugate_a": False,
        }
        return [None, self.bind(a, cotangent, **turned)]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """A leading axis; more right-hand sides if the matrix is one for all."""
        a, b = args
        if not mapped[0] and typeof(a).ndim == 2:
            return _more_sides(self, size, a, b, params), True
        both = [materialize(v, size, m) for v, m in zip(args, mapped, strict=True)]
        return self.bind(*both, **params), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """N for each element of the result."""
        out = super().cost(*avals, **params)
        return {**out, "flops": float(avals[1].size * avals[0].shape[-1])}


def _more_sides(
    primitive: Primitive, size: int, a: Any, b: Any, params: dict[str, Any]
) -> Any:
    _, rows, columns = typeof(b).shape
    if params["left_side"]:
        wide = reshape(transpose(b, (1, 0, 2)), (rows, size * columns))
        out = reshape(primitive.bind(a, wide, **params), (rows, size, columns))
        return transpose(out, (1, 0, 2))
    tall = reshape(b, (size * rows, columns))
    return reshape(primitive.bind(a, tall, **params), (size, rows, columns))


def _flag(value: bool) -> str:
    return "true" if value else "false"


# -- public ----------------------------------------------------------------------------


def symmetrized(x: Any) -> Any:
    """Returns the mean of matrices and their conjugate transposes."""
    return mul(add(x, adjoint(x)), 0.5)


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """Decomposes positive definite matrices: x = L Lᴴ.

    Args:
      x: f32, f64, c64 or c128[..., n, n], symmetric or Hermitian.
      symmetrize_input: whether to take the mean of x and xᴴ first; otherwise only the
        lower triangle is read.

    Returns:
      Lower triangular matrices of the type of x.

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the dtype is not one of these.

    Special cases:
      NaN where a matrix is not positive definite.

    Example:
      >>> print(cholesky(np.float32([[4, 2], [2, 5]])))
      [[2. 0.]
       [1. 2.]]

    Source: LAPACK potrf; StableHLO cholesky.
    """
    aval = typeof(x)
    require_matrices("cholesky", aval, square=True)
    return Cholesky.bind(symmetrized(x) if symmetrize_input else x)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solves op(a) x = b (`left_side`) or x op(a) = b for triangular matrices.

    Args:
      a: f32, f64, c64 or c128[..., n, n]; only one triangle is read.
      b: of the same dtype, [..., n, m] on the left side, [..., m, n] on the right, or a
        vector [..., n].
      left_side: on which side of x the matrix stands.
      lower: which triangle is read.
      transpose_a: solve with the transpose.
      conjugate_a: solve with the conjugate.
      unit_diagonal: take the diagonal as ones, unread.

    Returns:
      x, of the type of b.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: dtypes differ or are not among these.

    Special cases:
      A zero on the diagonal gives inf or NaN.

    Example:
      >>> a = np.float32([[2, 0], [1, 4]])
      >>> print(triangular_solve(a, np.float32([[2], [9]]), left_side=True, lower=True))
      [[1.]
       [2.]]

    Source: BLAS trsm; StableHLO triangular_solve.
    """
    vector = typeof(b).ndim == typeof(a).ndim - 1
    if vector:
        b = expand_dims(b, (-1 if left_side else -2,))
    conjugate_a = conjugate_a and dtypes.is_complex(typeof(a).dtype)
    # BLAS and StableHLO conjugate only what they transpose.
    if conjugate_a and not transpose_a:
        a, conjugate_a = conj(a), False
    out: Array = TriangularSolve.bind(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a,
        unit_diagonal=bool(unit_diagonal),
    )
    return squeeze(out, (-1 if left_side else -2,)) if vector else out
