"""Singular value decomposition."""

from __future__ import annotations

import math
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
from fxflow.core.sizes import is_at_least, larger, smaller
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, NotDifferentiableError
from fxflow.lax.axis_order import rev
from fxflow.lax.comparison import eq
from fxflow.lax.complex import real
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, sub
from fxflow.lax.linalg.eigh import Eigh
from fxflow.lax.linalg.library import (
    adjoint,
    as_columns,
    as_rows,
    call,
    checked,
    corner,
    diagonal,
    diagonal_part,
    flops,
    identity,
    lapack_target,
    matmul,
    nan_unless_finite,
    require_matrices,
    zeros_text,
)
from fxflow.lax.linalg.qr import Qr
from fxflow.lax.select import select
from fxflow.lax.slicing import slice_in_dim

# cuSOLVER's batched routine takes matrices up to this size, and gives full ones only.
_GPU_BATCHED = 32


@register
class Svd(MultipleResults):
    """x = U diag(s) Vᴴ, s descending. dtypes: f32, f64, c64, c128. LAPACK gesdd.

    Results: s, and if `compute_uv` U and Vᴴ.

    Params:
      full_matrices: whether U and V are square.
      compute_uv: whether to compute them.
    """

    name = "svd"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval, *, full_matrices: bool, compute_uv: bool) -> list[Aval]:
        """Vectors of min(m, n) singular values, and matrices."""
        require_matrices(self.name, x)
        m, n = x.shape[-2:]
        front, k = x.shape[:-2], smaller(m, n)
        values = Aval((*front, k), dtypes.to_real(x.dtype))
        if not compute_uv:
            return [values]
        rows, columns = (m, n) if full_matrices else (k, k)
        return [
            values,
            Aval((*front, m, rows), x.dtype),
            Aval((*front, columns, n), x.dtype),
        ]

    def lower(
        self, ctx: Context, *operands: str, full_matrices: bool, compute_uv: bool
    ) -> list[str]:
        """LAPACK, cuSOLVER, or QR and eigenvalues on TPUs."""
        (x,), outs = ctx.avals_in, ctx.avals_out
        if not x.size:
            return [
                str(n)
                for a in outs
                for n in (
                    zeros_text(ctx, [a])
                    if not a.size or a is outs[0]
                    else ctx.compose(lambda a=a: identity(a.shape, a.dtype), [], [])
                )
            ]
        if ctx.platform == "cpu":
            return self._lapack(ctx, operands[0], x, full_matrices, compute_uv)
        if ctx.platform == "gpu":
            return self._cusolver(ctx, operands[0], x, full_matrices, compute_uv)
        return ctx.compose(
            lambda v: _by_eigenvalues(v, full_matrices)[: len(outs)], operands
        )

    def _lapack(
        self, ctx: Context, operand: str, x: Aval, full: bool, compute_uv: bool
    ) -> list[str]:
        mode = ("A" if full else "S") if compute_uv else "N"
        # Without U and V, LAPACK still wants their types.
        shapes = self.abstract(x, full_matrices=full or not compute_uv, compute_uv=True)
        values, left, right = shapes
        info = Aval(x.shape[:-2], dtypes.int32)
        operand = nan_unless_finite(ctx, operand, x)
        _, s, u, vh, code = call(
            ctx,
            lapack_target("gesdd", x.dtype),
            [(operand, x, 2)],
            [(x, 2), (values, 1), (left, 2), (right, 2), (info, 0)],
            attributes=f"mode = {ord(mode)} : ui8",
            aliases=[(0, 0)],
        )
        found = [checked(ctx, s, values, code, core=1)]
        if compute_uv:
            found.append(checked(ctx, u, left, code, core=2))
            found.append(checked(ctx, vh, right, code, core=2))
        return found

    def _cusolver(
        self, ctx: Context, operand: str, x: Aval, full: bool, compute_uv: bool
    ) -> list[str]:
        m, n = x.shape[-2:]
        k, front = smaller(m, n), x.shape[:-2]
        small = is_at_least(_GPU_BATCHED, larger(m, n))
        batched = small and not is_at_least(1, math.prod(front))
        whole = full or batched or not compute_uv
        values = Aval((*front, k), dtypes.to_real(x.dtype))
        left = Aval((*front, m, m if whole else k), x.dtype)
        right = Aval((*front, n, n if whole else k), x.dtype)
        info = Aval(front, dtypes.int32)
        flags = ["true" if flag else "false" for flag in (compute_uv, whole)]
        _, s, u, v, code = call(
            ctx,
            "cusolver_gesvdj_ffi",
            [(operand, x, 2)],
            [(x, 2), (values, 1), (left, 2), (right, 2), (info, 0)],
            attributes=f"compute_uv = {flags[0]}, full_matrices = {flags[1]}",
            aliases=[(0, 0)],
        )
        found = [checked(ctx, s, values, code, core=1)]
        if compute_uv:
            u = checked(ctx, u, left, code, core=2)
            v = checked(ctx, v, right, code, core=2)
            rows, columns = (m, n) if full else (k, k)
            found += ctx.compose(
                lambda u, v: [corner(u, m, rows), adjoint(corner(v, n, columns))],
                [u, v],
                [left, right],
            )
        return found

    def evaluate(self, x: Any, *, full_matrices: bool, compute_uv: bool) -> list[Any]:
        """`numpy.linalg.svd`."""
        if not compute_uv:
            return [np.linalg.svd(x, compute_uv=False)]
        u, s, vh = np.linalg.svd(x, full_matrices)
        return [s, u, vh]

    def jvp(
        self,
        primals: Values,
        tangents: Values,
        *,
        full_matrices: bool,
        compute_uv: bool,
    ) -> Dual:
        """Derivative of the singular values, and of both bases within their planes.

        Source: Townsend 2016, "Differentiating the singular value decomposition".
        """
        (x,), (t,) = primals, tangents
        aval = typeof(x)
        m, n = aval.shape[-2:]
        if compute_uv and full_matrices and m != n:
            raise NotDifferentiableError(
                f"svd of {aval} with full_matrices=True has no derivative: the vectors "
                "beyond the first ones are not determined: use full_matrices=False"
            )
        s, u, vh = self.bind(x, full_matrices=False, compute_uv=True)
        if not aval.size:
            outs = self.bind(x, full_matrices=full_matrices, compute_uv=compute_uv)
            return outs, [full_like(o, 0) for o in outs]
        k, dtype, is_complex = smaller(m, n), aval.dtype, dtypes.is_complex(aval.dtype)
        square = (*aval.shape[:-2], k, k)
        v = adjoint(vh)
        inner = matmul(adjoint(u), matmul(t, v))
        ds = diagonal(inner)
        ds = real(ds) if is_complex else ds
        if not compute_uv:
            return [s], [ds]
        ones = identity(square, typeof(s).dtype)
        columns, rows = as_columns(s, square), as_rows(s, square)
        inverse = _inverse(s, dtype)
        # By the Hermitian and the skew part of UᴴTV, which need the differences and the
        # sums of the singular values: their squares would over- or underflow.
        gaps = add(sub(columns, rows), ones)
        apart = sub(div(full_like(ones, 1), gaps), ones)
        between = _inverse(add(columns, rows), dtype)
        even = mul(add(inner, adjoint(inner)), 0.5)
        odd = mul(sub(inner, adjoint(inner)), 0.5)
        turn = diagonal_part(odd)
        even = mul(convert_element_type(apart, dtype), even)
        odd = mul(between, sub(odd, turn))
        left, right = add(even, odd), sub(even, odd)
        if is_complex:
            # The phase of each pair of vectors is free: V keeps its own.
            left = add(left, mul(turn, as_columns(inverse, square)))
        du, dv = matmul(u, left), matmul(v, right)
        if not is_at_least(k, m):
            du = add(du, _outside(u, matmul(t, v), inverse))
        if not is_at_least(k, n):
            dv = add(dv, _outside(v, matmul(adjoint(t), u), inverse))
        return [s, u, vh], [ds, du, adjoint(dv)]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        outs = self.bind(args[0], **params)
        return outs, [True] * len(outs)

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """About 20 n³ with vectors, 4 n³ without."""
        factor = 20.0 if params["compute_uv"] else 4.0
        return {**super().cost(*avals, **params), "flops": flops(avals[0], factor)}


def _inverse(s: Any, dtype: Any) -> Any:
    """Returns 1 / s, and zero for zero."""
    zero = eq(s, full_like(s, 0))
    safe = select(zero, full_like(s, 1), s)
    inverse = select(zero, full_like(s, 0), div(full_like(s, 1), safe))
    return convert_element_type(inverse, dtype)


def _outside(basis: Any, change: Any, inverse: Any) -> Any:
    """Returns the part of a change outside a basis, over the singular values."""
    inside = matmul(basis, matmul(adjoint(basis), change))
    shape = typeof(change).shape
    return mul(sub(change, inside), as_columns(inverse, shape))


def _by_eigenvalues(x: Any, full_matrices: bool) -> list[Any]:
    """Returns s, U and Vᴴ by QR, eigenvectors of RᴴR, and QR once more.

    The columns of R V are orthogonal but for rounding; the second QR makes them exactly
    so, and its diagonal holds the singular values, whose error is that of the largest.
    """
    m, n = typeof(x).shape[-2:]
    if m < n:
        s, v, uh = _by_eigenvalues(adjoint(x), full_matrices)
        return [s, adjoint(uh), adjoint(v)]
    q, r = Qr.bind(x, full_matrices=full_matrices)
    square = corner(r, n, n)
    v, _ = Eigh.bind(matmul(adjoint(square), square), lower=True)
    # Eigenvalues ascend, singular values descend.
    v = rev(v, (typeof(v).ndim - 1,))
    # R V is U diag(s); divided by s it would not be orthonormal where s is small.
    turned, scaled = Qr.bind(matmul(square, v), full_matrices=False)
    d = diagonal(scaled)
    s = abs_(d)
    none = eq(s, full_like(s, 0))
    size = convert_element_type(select(none, full_like(s, 1), s), typeof(d).dtype)
    # The diagonal may be negative or complex, singular values are not.
    phase = select(none, full_like(d, 1), div(d, size))
    u = mul(turned, as_columns(phase, typeof(turned).shape))
    if full_matrices and m > n:
        # The columns of Q beyond the first n stay as they are.
        inner = corner(identity(typeof(square).shape, typeof(q).dtype), m, m)
        u = add(corner(u, m, m), sub(identity(typeof(q).shape, typeof(q).dtype), inner))
    return [s, matmul(q, u), adjoint(v)]


# -- public ----------------------------------------------------------------------------


def svd(
    x: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> Array | tuple[Array, Array, Array]:
    """Decomposes matrices: x = U diag(s) Vᴴ.

    Args:
      x: f32, f64, c64 or c128[..., m, n].
      full_matrices: whether U is [m, m] and Vᴴ [n, n], or [m, k] and [k, n] with
        k = min(m, n).
      compute_uv: whether to compute U and Vᴴ.
      subset_by_index: a range of singular values to return, by index; None is all.

    Returns:
      U, s (real, descending) and Vᴴ; or s alone.

    Raises:
      ShapeError: x is not a matrix.
      DtypeError: the dtype is not one of these.
      ArgumentError: the range is not within 0 and k, or `full_matrices` is set with it.
      NotDifferentiableError: a derivative is asked of square U and V of a matrix that
        is not square.

    Special cases:
      Vectors of equal singular values have no derivative: it is inf or NaN, and an
      error under `debug_nans`, also that of functions that do not depend on which
      vectors are chosen. There, `scipy.linalg.generalized_funm(x, f)`, which is
      U f(s) Vᴴ, `scipy.linalg.polar`, `numpy.linalg.pinv`, `lstsq` and the nuclear norm
      have the right one.

    Example:
      >>> print(svd(np.float32([[0, 2], [1, 0]]), compute_uv=False))
      [2. 1.]

    Source: LAPACK gesdd.
    """
    aval = typeof(x)
    require_matrices("svd", aval)
    if subset_by_index is not None:
        start, stop = subset_by_index
        if not 0 <= start < stop <= min(aval.shape[-2:]):
            raise ArgumentError(
                f"svd: subset_by_index {subset_by_index} must be a range within 0 and "
                f"{min(aval.shape[-2:])} for {aval}"
            )
        if full_matrices and compute_uv:
            raise ArgumentError(
                "svd: subset_by_index goes with full_matrices=False only"
            )
    outs = Svd.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv))
    if subset_by_index is not None:
        last = aval.ndim - 1
        axes = (last - 1, last, last - 1)
        outs = [
            slice_in_dim(out, start, stop, axis=axis)
            for out, axis in zip(outs, axes, strict=False)
        ]
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh
