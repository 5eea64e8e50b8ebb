"""Householder reflectors: what QR decompositions are made of.

A reflector is H = I - τ v vᴴ; v is 1 where it begins and lies below the diagonal of a
matrix, τ is its factor. Q is the product H₁ H₂ … of those in a matrix's columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.primitive import (
    Batched,
    Flags,
    MultipleResults,
    Primitive,
    Values,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import smaller
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axis_order import transpose
from fxflow.lax.complex import conj
from fxflow.lax.control_flow.scan import scan
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.elementwise import add, mul, sub
from fxflow.lax.linalg.library import (
    adjoint,
    call,
    corner,
    flops,
    host_call,
    identity,
    lapack_target,
    lower_part,
    matmul,
    plain_call,
    real_name,
    require_matrices,
    scipy_linalg,
    zeros_text,
)
from fxflow.lax.reshaping import expand_dims

_WHOLE = "differentiate lax.linalg.qr, which it is a part of"


@register
class Geqrf(MultipleResults):
    """Householder reflectors and R in one matrix, and their factors. LAPACK geqrf."""

    name = "geqrf"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable = _WHOLE
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval) -> list[Aval]:
        """The type of x, and min(m, n) factors."""
        require_matrices(self.name, x)
        return [x.strong(), Aval((*x.shape[:-2], smaller(*x.shape[-2:])), x.dtype)]

    def lower(self, ctx: Context, *operands: str) -> list[str]:
        """LAPACK, cuSOLVER or XLA's own."""
        (x,), (_, factors) = ctx.avals_in, ctx.avals_out
        if not x.size:
            return zeros_text(ctx, ctx.avals_out)
        if ctx.platform == "tpu":
            return plain_call(ctx, "Qr", operands, ctx.avals_out, "")
        target = "cusolver_geqrf_ffi"
        if ctx.platform == "cpu":
            target = lapack_target("geqrf", x.dtype)
        return call(
            ctx,
            target,
            [(operands[0], x, 2)],
            [(x, 2), (factors, 1)],
            aliases=[(0, 0)],
        )

    def evaluate(self, x: Any) -> list[Any]:
        """`numpy.linalg.qr` in raw form."""
        outs = [
            np.zeros(a.shape, a.dtype) for a in self.abstract(Aval(x.shape, x.dtype))
        ]
        for position in np.ndindex(*x.shape[:-2]):
            if x[position].size:
                # NumPy shows LAPACK's column-major memory as it is: transposed.
                flipped, factors = np.linalg.qr(x[position], mode="raw")
                outs[0][position], outs[1][position] = flipped.T, factors
        return outs

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0]), [True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """4 n³ / 3."""
        return {**super().cost(*avals), "flops": flops(avals[0], 4 / 3)}


def _require_factors(name: str, a: Aval, taus: Aval) -> None:
    if a.dtype != taus.dtype:
        raise DtypeError(
            f"{name}: reflectors {a} and factors {taus} must have one dtype"
        )
    if taus.ndim != a.ndim - 1 or taus.shape[:-1] != a.shape[:-2]:
        raise ShapeError(
            f"{name}: reflectors {a} and factors {taus} must have the same leading "
            "axes, and reflectors one axis more"
        )
    m, n = a.shape[-2:]
    if m < n or taus.shape[-1] > n:
        raise ShapeError(
            f"{name}: there must be at least as many rows as columns, and as columns "
            f"as factors, got reflectors {a} and factors {taus}"
        )


@register
class HouseholderProduct(Primitive):
    """First columns of a product of Householder reflectors. LAPACK orgqr, ungqr."""

    name = "householder_product"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable = _WHOLE
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, a: Aval, taus: Aval) -> Aval:
        """The type of the reflectors."""
        require_matrices(self.name, a)
        _require_factors(self.name, a, taus)
        return a.strong()

    def lower(self, ctx: Context, *operands: str) -> str:
        """LAPACK, cuSOLVER or XLA's own."""
        a, taus = ctx.avals_in
        if not a.size:
            return zeros_text(ctx, [a])[0]
        if not taus.size:
            (unit,) = ctx.compose(lambda: identity(a.shape, a.dtype), [], [])
            return str(unit)
        if ctx.platform == "tpu":
            target = "ProductOfElementaryHouseholderReflectors"
            return plain_call(ctx, target, operands, [a], "")[0]
        target = "cusolver_orgqr_ffi"
        if ctx.platform == "cpu":
            target = lapack_target(real_name("orgqr/ungqr", a.dtype), a.dtype)
        (out,) = call(
            ctx,
            target,
            [(operands[0], a, 2), (operands[1], taus, 1)],
            [(a, 2)],
            aliases=[(0, 0)],
        )
        return out

    def evaluate(self, a: Any, taus: Any) -> Any:
        """The reflectors, multiplied from the last to the first."""
        out = np.zeros(a.shape, a.dtype)
        m, n = a.shape[-2:]
        for position in np.ndindex(*a.shape[:-2]):
            q = np.eye(m, n, dtype=a.dtype)
            for k in reversed(range(taus.shape[-1])):
                # The 1 is not stored: R has its diagonal there.
                v = np.concatenate([np.zeros(k), [1], a[position][k + 1 :, k]])
                v = v.astype(a.dtype)
                q = q - taus[position][k] * np.outer(v, v.conj() @ q)
            out[position] = q
        return out

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        both = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*both), True


@register
class Ormqr(Primitive):
    """A matrix times the product of reflectors. LAPACK ormqr, unmqr.

    Params:
      left: whether the product of reflectors is the left factor.
      transpose: whether it is transposed and conjugated.
    """

    name = "ormqr"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable = (
        "multiply with lax.linalg.qr's Q instead, which can be differentiated"
    )
    layout: Callable[..., Any] = layouts.matrices

    def abstract(
        self, a: Aval, taus: Aval, c: Aval, *, left: bool, transpose: bool
    ) -> Aval:
        """The type of the matrix."""
        for aval in (a, c):
            require_matrices(self.name, aval)
        _require_factors(self.name, a, taus)
        if c.dtype != a.dtype:
            raise DtypeError(
                f"{self.name}: reflectors {a} and matrix {c} must have one dtype"
            )
        axis = -2 if left else -1
        if c.shape[:-2] != a.shape[:-2] or c.shape[axis] != a.shape[-2]:
            raise ShapeError(
                f"{self.name}: reflectors {a} of length {a.shape[-2]} act on axis "
                f"{axis} of a matrix with the same leading axes, got {c}"
            )
        return c.strong()

    def lower(self, ctx: Context, *operands: str, left: bool, transpose: bool) -> str:
        """LAPACK, cuSOLVER, or one reflector after the other."""
        a, taus, c = ctx.avals_in
        if not c.size or not taus.size:
            return operands[2]
        if ctx.platform == "tpu":
            (out,) = ctx.compose(
                lambda a, taus, c: _one_by_one(a, taus, c, left, transpose), operands
            )
            return out
        target = "cusolver_ormqr_ffi"
        if ctx.platform == "cpu":
            target = lapack_target(real_name("ormqr/unmqr", a.dtype), a.dtype)
        (out,) = call(
            ctx,
            target,
            [(operands[0], a, 2), (operands[1], taus, 1), (operands[2], c, 2)],
            [(c, 2)],
            attributes=f"left = {str(left).lower()}, "
            f"transpose = {str(transpose).lower()}",
            aliases=[(0, 2)],
        )
        return out

    def evaluate(
        self, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool
    ) -> Any:
        """The whole product, then the matrix."""
        m, n = a.shape[-2:]
        square = np.zeros((*a.shape[:-1], m), a.dtype)
        square[..., :n] = a
        # `register` puts the instance in the class's place.
        product: Any = HouseholderProduct
        q = product.evaluate(square, taus)
        if transpose:
            q = np.conj(np.swapaxes(q, -1, -2))
        return q @ c if left else c @ q

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        given = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*given, **params), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """4 m n k."""
        count = 4.0 * avals[2].size * avals[1].shape[-1]
        return {**super().cost(*avals, **params), "flops": count}


def _one_by_one(a: Any, taus: Any, c: Any, left: bool, turned: bool) -> Any:
    """Applies reflectors in the order in which they stand beside the matrix."""
    shape = typeof(a).shape
    count = typeof(taus).shape[-1]
    ndim = len(shape)
    a = corner(a, shape[-2], count)
    # The 1 of each reflector is not stored: R has its diagonal there.
    columns = add(lower_part(a, strict=True), identity(typeof(a).shape, a.dtype))
    first = (ndim - 1, *range(ndim - 1))
    columns = transpose(columns, first)
    factors = transpose(taus, (ndim - 2, *range(ndim - 2)))
    if turned and dtypes.is_complex(typeof(taus).dtype):
        factors = conj(factors)

    def apply(c: Any, reflector: Any) -> Any:
        v, factor = reflector
        v = expand_dims(v, (ndim - 1,))
        scaled = mul(v, expand_dims(factor, (ndim - 2, ndim - 1)))
        if left:
            return sub(c, matmul(scaled, matmul(adjoint(v), c))), None
        return sub(c, matmul(matmul(c, scaled), adjoint(v))), None

    out, _ = scan(apply, c, (columns, factors), reverse=left != turned)
    return out


@register
class Geqp3(MultipleResults):
    """Reflectors of a QR decomposition with exchanged columns. LAPACK geqp3.

    On GPUs SciPy's on the host.
    """

    name = "geqp3"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    nondifferentiable = "differentiate lax.linalg.qr(pivoting=True)"
    layout: Callable[..., Any] = layouts.matrices

    def abstract(self, x: Aval) -> list[Aval]:
        """The type of x, which column comes at each position, and min(m, n) factors."""
        require_matrices(self.name, x)
        front, (m, n) = x.shape[:-2], x.shape[-2:]
        order = Aval((*front, n), np.dtype(np.int32))
        return [x.strong(), order, Aval((*front, smaller(m, n)), x.dtype)]

    def lower(self, ctx: Context, *operands: str) -> list[str]:
        """LAPACK, or a call back to the host."""
        (x,), (_, order, factors) = ctx.avals_in, ctx.avals_out
        if not x.size:
            zero, _, none = zeros_text(ctx, ctx.avals_out)
            (positions,) = ctx.compose(lambda: _positions(order), [], [])
            return [zero, positions, none]
        if ctx.platform != "cpu":
            return host_call(ctx, self, operands)
        # To LAPACK 0 means that a column may be exchanged.
        (free,) = zeros_text(ctx, [order])
        packed, exchanged, taus = call(
            ctx,
            lapack_target("geqp3", x.dtype),
            [(operands[0], x, 2), (free, order, 1)],
            [(x, 2), (order, 1), (factors, 1)],
            aliases=[(0, 0), (1, 1)],
        )
        # LAPACK counts from 1.
        (exchanged,) = ctx.compose(lambda p: sub(p, 1), [exchanged], [order])
        return [packed, exchanged, taus]

    def evaluate(self, x: Any) -> list[Any]:
        """SciPy's geqp3."""
        outs = [
            np.zeros(a.shape, a.dtype) for a in self.abstract(Aval(x.shape, x.dtype))
        ]
        if not x.size:
            outs[1][...] = np.arange(x.shape[-1])
            return outs
        for position in np.ndindex(*x.shape[:-2]):
            function = scipy_linalg().get_lapack_funcs("geqp3", (x[position],))
            packed, order, factors, *_ = function(x[position])
            for out, value in zip(outs, (packed, order - 1, factors), strict=True):
                out[position] = value
        return outs

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0]), [True, True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """4 n³ / 3."""
        return {**super().cost(*avals), "flops": flops(avals[0], 4 / 3)}


def _positions(order: Aval) -> Any:
    return broadcasted_iota(order.dtype, order.shape, order.ndim - 1)


# -- public ----------------------------------------------------------------------------


def geqrf(x: Any) -> tuple[Array, Array]:
    """Returns the Householder reflectors of a QR decomposition.

    Args:
      x: f32, f64, c64 or c128[..., m, n].

    Returns:
      A matrix [..., m, n] with R in its upper triangle and the reflectors below, and
      their factors [..., min(m, n)].

    Raises:
      ShapeError: x is not a matrix.
      DtypeError: the dtype is not one of these.

    Source: LAPACK geqrf.
    """
    packed, taus = Geqrf.bind(x)
    return packed, taus


def householder_product(a: Any, taus: Any) -> Array:
    """Returns the first columns of the product of Householder reflectors.

    Args:
      a: f32, f64, c64 or c128[..., m, n], m ≥ n: reflectors below the diagonal.
      taus: of the same dtype, [..., k], k ≤ n: their factors.

    Returns:
      A matrix with orthonormal columns, of the type of a.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: dtypes differ or are not among these.

    Source: LAPACK orgqr, ungqr.
    """
    return HouseholderProduct.bind(a, taus)


def geqp3(x: Any) -> tuple[Array, Array, Array]:
    """Returns the Householder reflectors of a QR decomposition with pivoting.

    Args:
      x: f32, f64, c64 or c128[..., m, n].

    Returns:
      A matrix [..., m, n] with R in its upper triangle and the reflectors below; the
      columns of x in the order they were taken, i32[..., n]; and the reflectors'
      factors [..., min(m, n)].

    Raises:
      ShapeError: x is not a matrix.
      DtypeError: the dtype is not one of these.

    Source: LAPACK geqp3.
    """
    packed, order, taus = Geqp3.bind(x)
    return packed, order, taus


def ormqr(
    a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiplies matrices with the Q that Householder reflectors stand for.

    Q is [..., m, m] and is not formed.

    Args:
      a: f32, f64, c64 or c128[..., m, k']: reflectors below the diagonal, as `geqrf`
        gives them.
      taus: of the same dtype, [..., k], k ≤ k' ≤ m: their factors.
      c: of the same dtype, [..., m, n], or [..., n, m] if Q stands right of it.
      left: whether to return Q c, or c Q.
      transpose: whether to take Qᴴ instead of Q.

    Returns:
      A matrix of the type of c.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: dtypes differ or are not among these.

    Example:
      >>> x = np.float32([[3, 1], [4, 2]])
      >>> r = ormqr(*geqrf(x), x, transpose=True)
      >>> print(abs(np.asarray(r)).round(3))
      [[5.  2.2]
       [0.  0.4]]

    Source: LAPACK ormqr, unmqr.
    """
    return Ormqr.bind(a, taus, c, left=bool(left), transpose=bool(transpose))
