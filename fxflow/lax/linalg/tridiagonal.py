"""Tridiagonal matrices: made of Hermitian ones, and systems with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, as_array, dtypes, typeof
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
from fxflow.core.runtime.library import library
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.bitwise import bitwise_and, bitwise_or
from fxflow.lax.comparison import eq, gt, lt, ne
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import full, full_like
from fxflow.lax.elementwise import abs, add, div, mul, neg, sub
from fxflow.lax.elementwise import max as maximum
from fxflow.lax.gradient_control import stop_gradient
from fxflow.lax.keys import check
from fxflow.lax.linalg.hessenberg import Condensed
from fxflow.lax.linalg.library import (
    as_rows,
    call,
    checked,
    flops,
    host_call,
    lapack_target,
    real_name,
    require_matrices,
    zeros_text,
)
from fxflow.lax.padding import shifted
from fxflow.lax.reduction import reduce_max
from fxflow.lax.reshaping import expand_dims, squeeze
from fxflow.lax.select import select
from fxflow.lax.slicing import index_in_dim, slice_in_dim


@register
class Tridiagonal(Condensed):
    """x = Q T Qᴴ of a Hermitian x, T real and tridiagonal. LAPACK sytrd, hetrd.

    dtypes: f32, f64, c64, c128.

    Params:
      lower: which triangle of x is read.
    """

    name = "tridiagonal"

    def abstract(self, x: Aval, *, lower: bool) -> list[Aval]:
        """Packed reflectors, both diagonals, and the reflectors' factors."""
        require_matrices(self.name, x, square=True)
        real, n = dtypes.to_real(x.dtype), x.shape[-1]
        front, count = x.shape[:-2], max(n - 1, 0)
        return [
            x.strong(),
            Aval((*front, n), real),
            Aval((*front, count), real),
            Aval((*front, count), x.dtype),
        ]

    def lower(self, ctx: Context, *operands: str, lower: bool) -> list[str]:
        """LAPACK, cuSOLVER, or a call back to the host."""
        (x,), outs = ctx.avals_in, ctx.avals_out
        if not x.size:
            return zeros_text(ctx, outs)
        if ctx.platform == "tpu":
            return host_call(ctx, self, operands, lower=lower)
        if ctx.platform == "cpu":
            target = lapack_target(real_name("sytrd/hetrd", x.dtype), x.dtype)
            attributes = f"uplo = {ord('L' if lower else 'U')} : ui8"
        else:
            target, attributes = "cusolver_sytrd_ffi", f"lower = {str(lower).lower()}"
        info = Aval(x.shape[:-2], np.dtype(np.int32))
        cores = (2, 1, 1, 1)
        *found, code = call(
            ctx,
            target,
            [(operands[0], x, 2)],
            [*zip(outs, cores, strict=True), (info, 0)],
            attributes=attributes,
            aliases=[(0, 0)],
        )
        return [
            checked(ctx, name, aval, code, core=core)
            for name, aval, core in zip(found, outs, cores, strict=True)
        ]

    def evaluate(self, x: Any, *, lower: bool) -> list[Any]:
        """SciPy's sytrd."""
        avals = self.abstract(Aval(x.shape, x.dtype), lower=lower)
        outs = [np.zeros(a.shape, a.dtype) for a in avals]
        return self.each(x, outs, real_name("sytrd/hetrd", x.dtype), lower=int(lower))

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """4 n³ / 3."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 4 / 3)}


@register
class TridiagonalSolve(Primitive):
    """Solves T x = b for a tridiagonal T. Linear in b. dtypes: f32, f64, c64, c128.

    LAPACK gtsv (with row exchanges), cuSPARSE gtsv2; the Thomas algorithm on TPUs.
    """

    name = "tridiagonal_solve"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.diagonals

    def abstract(self, dl: Aval, d: Aval, du: Aval, b: Aval) -> Aval:
        """The type of b."""
        require_matrices(self.name, b)
        if not dl.dtype == d.dtype == du.dtype == b.dtype:
            raise DtypeError(
                f"{self.name}: diagonals and right-hand side must have one dtype, got "
                f"{dl}, {d}, {du} and {b}: convert with .astype(...)"
            )
        if not dl.shape == d.shape == du.shape == b.shape[:-1]:
            raise ShapeError(
                f"{self.name}: diagonals must be [..., n] for a right-hand side "
                f"[..., n, k], got {dl}, {d}, {du} and {b}"
            )
        return b.strong()

    def lower(self, ctx: Context, *operands: str) -> str:
        """LAPACK, cuSPARSE, or a scan."""
        dl, d, du, b = ctx.avals_in
        if not b.size:
            return zeros_text(ctx, [b])[0]
        if ctx.platform == "tpu":
            (out,) = ctx.compose(_thomas, operands)
            return out
        given = [(operands[i], a, 1) for i, a in enumerate((dl, d, du))]
        given.append((operands[3], b, 2))
        if ctx.platform == "gpu":
            (out,) = call(ctx, "cusparse_gtsv2_ffi", given, [(b, 2)], aliases=[(0, 3)])
            return out
        info = Aval(b.shape[:-2], np.dtype(np.int32))
        *_, out, code = call(
            ctx,
            lapack_target("gtsv", b.dtype),
            given,
            [(dl, 1), (d, 1), (du, 1), (b, 2), (info, 0)],
            aliases=[(i, i) for i in range(4)],
        )
        return checked(ctx, out, b, code, core=2)

    def evaluate(self, dl: Any, d: Any, du: Any, b: Any) -> Any:
        """`numpy.linalg.solve` of the whole matrix."""
        n = d.shape[-1]
        matrix = np.zeros((*d.shape, n), d.dtype)
        i = np.arange(n)
        matrix[..., i, i] = d
        matrix[..., i[1:], i[:-1]] = dl[..., 1:]
        matrix[..., i[:-1], i[1:]] = du[..., :-1]
        return np.linalg.solve(matrix, b)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The solution for what the change of the matrix makes of it."""
        dl, d, du, b = primals
        x = self.bind(dl, d, du, b)
        if not typeof(b).size:
            return x, Zero(typeof(b).tangent())
        axis = typeof(b).ndim - 2
        right = tangents[3]
        for change, value in (
            (tangents[0], shifted(x, axis, False, 0)),
            (tangents[1], x),
            (tangents[2], shifted(x, axis, True, 0)),
        ):
            if type(change) is not Zero:
                moved = mul(as_rows(change, typeof(x).shape), value)
                right = arith.add(right, arith.neg(moved))
        if type(right) is Zero:
            return x, right
        return x, self.bind(dl, d, du, right)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The system with the transposed matrix."""
        dl, d, du, b = args
        if type(b) is not Var or any(type(a) is Var for a in (dl, d, du)):
            return super().transpose(cotangent, *args)
        if not b.aval.size:
            return [None, None, None, cotangent]
        axis = typeof(d).ndim - 1
        low, up = shifted(du, axis, False, 0), shifted(dl, axis, True, 0)
        return [None, None, None, self.bind(low, d, up, cotangent)]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        given = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*given), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """8 n."""
        return {**super().cost(*avals), "flops": 8.0 * avals[3].size}


def _thomas(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Eliminates forwards, then substitutes backwards, without row exchanges."""
    ndim = typeof(d).ndim
    first = (ndim - 1, *range(ndim - 1))
    rows = [transpose(v, first) for v in (dl, d, du)]
    sides = transpose(b, (ndim - 1, *range(ndim - 1), ndim))
    shape, dtype = typeof(sides).shape[1:], typeof(sides).dtype

    def wide(v: Any) -> Any:
        return as_rows(v, shape)

    def eliminate(carry: Any, row: Any) -> Any:
        ratio, value = carry
        low, middle, up, side = row
        pivot = sub(middle, mul(low, ratio))
        ratio = div(up, pivot)
        value = div(sub(side, mul(wide(low), value)), wide(pivot))
        return (ratio, value), (ratio, value)

    def substitute(later: Any, row: Any) -> Any:
        ratio, value = row
        out = sub(value, mul(wide(ratio), later))
        return out, out

    start = (full(shape[:-1], 0, dtype), full(shape, 0, dtype))
    _, reduced = scan(eliminate, start, (*rows, sides))
    _, out = scan(substitute, full(shape, 0, dtype), reduced, reverse=True)
    return transpose(out, (*range(1, ndim), 0, ndim))


@library()
def _perturbed(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """Solves with row exchanges; pivots too small to divide by become larger."""
    ndim, n = typeof(d).ndim, typeof(d).shape[-1]
    first = (ndim - 1, *range(ndim - 1))
    low, middle, up = (transpose(v, first) for v in (dl, d, du))
    sides = transpose(b, (ndim - 1, *range(ndim - 1), ndim))
    shape, dtype = typeof(sides).shape[1:], typeof(sides).dtype
    none = full(shape[:-1], 0, dtype)
    # The last element of `du` is not part of the matrix.
    up = concatenate([slice_in_dim(up, 0, n - 1), expand_dims(none, (0,))], 0)

    def wide(v: Any) -> Any:
        return as_rows(v, shape)

    def eliminate(carry: Any, row: Any) -> Any:
        # What is left of one row (in two columns) and how large that row was, and the
        # next one, in three. That goes first of which the pivot is more of the whole.
        (p, q, y, size), (a, b, c, z) = carry, row
        next_size = add(add(abs(a), abs(b)), abs(c))
        exchange = gt(mul(abs(a), size), mul(abs(p), next_size))
        exchange = bitwise_or(exchange, bitwise_and(eq(p, none), ne(a, none)))
        pivot, other = select(exchange, a, p), select(exchange, p, a)
        lost = eq(pivot, none)
        ratio = div(other, select(lost, full(shape[:-1], 1, dtype), pivot))
        ratio = select(lost, none, ratio)
        second, third = select(exchange, b, q), select(exchange, c, none)
        value = select(wide(exchange), z, y)
        p = sub(select(exchange, q, b), mul(ratio, second))
        q = sub(select(exchange, none, c), mul(ratio, third))
        y = sub(select(wide(exchange), y, z), mul(wide(ratio), value))
        size = select(exchange, size, next_size)
        return (p, q, y, size), (pivot, second, third, value)

    p, q, y = (index_in_dim(v, 0, 0, keepdims=False) for v in (middle, up, sides))
    rest = tuple(slice_in_dim(v, 1, n) for v in (low, middle, up, sides))
    (p, _, y, _), above = scan(eliminate, (p, q, y, add(abs(p), abs(q))), rest)
    rows = [
        concatenate([v, expand_dims(last, (0,))], 0)
        for v, last in zip(above, (p, none, none, y), strict=True)
    ]
    info = dtypes.finfo(dtype)
    largest = nothing = full(shape[:-1], 0, dtypes.to_real(dtype))
    for part in rows[:3]:
        largest = maximum(largest, reduce_max(abs(stop_gradient(part)), (0,)))
    step = mul(largest, float(info.eps))
    step = wide(select(eq(step, nothing), full_like(step, float(info.eps)), step))
    least = full(shape, float(info.tiny), dtypes.to_real(dtype))

    def substitute(later: Any, row: Any) -> Any:
        (x1, x2), (pivot, second, third, value) = later, row
        value = sub(sub(value, mul(wide(second), x1)), mul(wide(third), x2))
        pivot = wide(pivot)
        size = abs(pivot)
        # As LAPACK's lagts: where the quotient would be too large for the dtype.
        small = bitwise_or(lt(size, least), gt(mul(abs(value), least), size))
        more = step
        if not dtypes.is_complex(dtype):
            # The sign of 1 / pivot, since -0 has one, too.
            below = lt(div(full_like(pivot, 1), pivot), full_like(pivot, 0))
            more = select(below, neg(step), step)
        pivot = select(small, add(pivot, convert_element_type(more, dtype)), pivot)
        x = div(value, pivot)
        return (x, x1), x

    behind = full(shape, 0, dtype)
    _, out = scan(substitute, (behind, behind), tuple(rows), reverse=True)
    return transpose(out, (*range(1, ndim), 0, ndim))


# -- public ----------------------------------------------------------------------------


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduces Hermitian matrices to real tridiagonal form: a = Q T Qᴴ.

    Args:
      a: f32, f64, c64 or c128[..., n, n], Hermitian; one triangle is read.
      lower: which.

    Returns:
      A matrix [..., n, n] that holds reflectors on its other side of the first sub- (or
      super-) diagonal, the diagonal of T, real[..., n], its second one, real[...,
      n - 1], and the reflectors' factors [..., n - 1].

    Raises:
      ShapeError: the matrices are not square.
      DtypeError: the dtype is not one of these.

    Example:
      >>> _, d, e, _ = tridiagonal(np.float32([[2, 1], [1, 3]]))
      >>> print(d, abs(e))
      [2. 3.] [1.]

    Source: LAPACK sytrd, hetrd.
    """
    packed, diagonal, second, taus = Tridiagonal.bind(a, lower=bool(lower))
    return packed, diagonal, second, taus


def tridiagonal_solve(
    dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
) -> Array:
    """Solves T x = b for tridiagonal matrices.

    Args:
      dl: f32, f64, c64 or c128[..., n]: the lower diagonal, T[i, i-1]; the first
        element is not used.
      d: of the same type: the diagonal.
      du: of the same type: the upper diagonal, T[i, i+1]; the last element is not used.
      b: of the same dtype, [..., n, k] or [n].
      perturb_singular: whether to change pivots that are (almost) 0 by the rounding
        error of the largest, so that x is finite: large where the matrix is singular,
        as the iteration for eigenvectors needs it.

    Returns:
      x, of the type of b.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: dtypes differ or are not among these.

    Special cases:
      NaN where a matrix is singular, without `perturb_singular`.

    Example:
      >>> ones = np.ones(3, "f4")
      >>> x = tridiagonal_solve(ones, 3 * ones, ones, np.float32([[4], [5], [4]]))
      >>> print(np.asarray(x).round(3).ravel())
      [1. 1. 1.]

    Source: LAPACK gtsv; gttrf and lagts.
    """
    vector = typeof(b).ndim == typeof(d).ndim
    if vector:
        b = expand_dims(b, (-1,))
    result: Array
    if perturb_singular:
        kind = check(TridiagonalSolve, *map(typeof, (dl, d, du, b)))
        result = _perturbed(dl, d, du, b) if kind.size else as_array(b)
    else:
        result = TridiagonalSolve.bind(dl, d, du, b)
    return squeeze(result, (-1,)) if vector else result
