"""Systems with a tridiagonal matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core import arith
from fxflow.core.array import Array
from fxflow.core.aval import Aval
from fxflow.core.batching import materialize
from fxflow.core.convert import typeof
from fxflow.core.errors import DtypeError, ShapeError
from fxflow.core.graph import Var
from fxflow.core.primitive import Primitive, Zero, register
from fxflow.lax.creation import full
from fxflow.lax.elementwise import div, mul, sub
from fxflow.lax.linalg.library import (
    as_rows,
    call,
    checked,
    lapack_target,
    require_matrices,
    zeros_text,
)
from fxflow.lax.recurrence import shifted
from fxflow.lax.scan import scan
from fxflow.lax.shape import expand_dims, squeeze, transpose


@register
class TridiagonalSolve(Primitive):
    """Solves T x = b for a tridiagonal T. Linear in b. dtypes: f32, f64, c64, c128.

    LAPACK gtsv (with row exchanges), cuSPARSE gtsv2; the Thomas algorithm on TPUs.
    """

    name = "tridiagonal_solve"
    host_safe = False

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

    def lower(self, ctx: Any, *operands: str) -> str:
        """LAPACK, cuSPARSE, or a scan."""
        dl, d, du, b = ctx.avals_in
        if not b.size:
            return zeros_text(ctx, [b])[0]
        if ctx.platform == "tpu":
            (out,) = ctx.compose(_thomas, operands)
            return str(out)
        given = [(operands[i], a, 1) for i, a in enumerate((dl, d, du))]
        given.append((operands[3], b, 2))
        if ctx.platform == "gpu":
            (out,) = call(ctx, "cusparse_gtsv2_ffi", given, [(b, 2)], aliases=[(0, 3)])
            return str(out)
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

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
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

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """The system with the transposed matrix."""
        dl, d, du, b = args
        if type(b) is not Var or any(type(a) is Var for a in (dl, d, du)):
            return super().transpose(cotangent, *args)
        if not b.aval.size:
            return [None, None, None, cotangent]
        axis = typeof(d).ndim - 1
        low, up = shifted(du, axis, False, 0), shifted(dl, axis, True, 0)
        return [None, None, None, self.bind(low, d, up, cotangent)]

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, bool]:
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


# -- public ------------------------------------------------------------------------


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Array:
    """Solves T x = b for tridiagonal matrices.

    Args:
      dl: f32, f64, c64 or c128[..., n]: the lower diagonal, T[i, i-1]; the first
        element is not used.
      d: of the same type: the diagonal.
      du: of the same type: the upper diagonal, T[i, i+1]; the last element is not used.
      b: of the same dtype, [..., n, k] or [n].

    Returns:
      x, of the type of b.

    Raises:
      ShapeError: the shapes do not fit.
      DtypeError: dtypes differ or are not among these.

    Special cases:
      NaN where a matrix is singular.

    Example:
      >>> import numpy as np
      >>> ones = np.ones(3, "f4")
      >>> x = tridiagonal_solve(ones, 3 * ones, ones, np.float32([[4], [5], [4]]))
      >>> print(np.asarray(x).round(3).ravel())
      [1. 1. 1.]

    Source: LAPACK gtsv.
    """
    vector = typeof(b).ndim == typeof(d).ndim
    if vector:
        b = expand_dims(b, (-1,))
    result: Array = TridiagonalSolve.bind(dl, d, du, b)
    return squeeze(result, (-1,)) if vector else result
