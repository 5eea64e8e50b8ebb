"""QR decomposition by Householder reflectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.aval import Aval
from fxflow.core.batching import materialize
from fxflow.core.convert import typeof
from fxflow.core.errors import DtypeError, NotDifferentiableError, ShapeError
from fxflow.core.primitive import Primitive, register
from fxflow.lax.complex import complex as complex_
from fxflow.lax.complex import imag
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import add, sub
from fxflow.lax.joining import concatenate
from fxflow.lax.linalg.library import (
    adjoint,
    call,
    corner,
    diagonal_part,
    flops,
    identity,
    lapack_target,
    lower_part,
    matmul,
    plain_call,
    real_name,
    require_matrices,
    upper_part,
    zeros_text,
)
from fxflow.lax.linalg.triangular import triangular_solve
from fxflow.lax.slicing import slice_in_dim


@register
class Geqrf(Primitive):
    """Householder reflectors and R in one matrix, and their factors. LAPACK geqrf."""

    name = "geqrf"
    multi = True
    host_safe = False
    nondifferentiable = "differentiate lax.linalg.qr, which it is a part of"

    def abstract(self, x: Aval) -> list[Aval]:
        """The type of x, and min(m, n) factors."""
        require_matrices(self.name, x)
        return [x.strong(), Aval((*x.shape[:-2], min(x.shape[-2:])), x.dtype)]

    def lower(self, ctx: Any, *operands: str) -> list[str]:
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
        for place in np.ndindex(*x.shape[:-2]):
            if x[place].size:
                flipped, factors = np.linalg.qr(x[place], mode="raw")
                outs[0][place], outs[1][place] = flipped.T, factors
        return outs

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[list[Any], list[bool]]:
        """Leading axes are batch axes already."""
        return self.bind(args[0]), [True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """4 n³ / 3."""
        return {**super().cost(*avals), "flops": flops(avals[0], 4 / 3)}


@register
class HouseholderProduct(Primitive):
    """First columns of a product of Householder reflectors. LAPACK orgqr, ungqr."""

    name = "householder_product"
    host_safe = False
    nondifferentiable = "differentiate lax.linalg.qr, which it is a part of"

    def abstract(self, a: Aval, taus: Aval) -> Aval:
        """The type of the reflectors."""
        require_matrices(self.name, a)
        if a.dtype != taus.dtype:
            raise DtypeError(
                f"{self.name}: reflectors {a} and factors {taus} must have one dtype"
            )
        m, n = a.shape[-2:]
        if taus.ndim != a.ndim - 1 or taus.shape[:-1] != a.shape[:-2]:
            raise ShapeError(
                f"{self.name}: reflectors {a} and factors {taus} must have the same "
                "leading axes, and factors one axis more"
            )
        if m < n or taus.shape[-1] > n:
            raise ShapeError(
                f"{self.name}: there must be at least as many rows as columns, and as "
                f"columns as factors, got reflectors {a} and factors {taus}"
            )
        return a.strong()

    def lower(self, ctx: Any, *operands: str) -> str:
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
        for place in np.ndindex(*a.shape[:-2]):
            q = np.eye(m, n, dtype=a.dtype)
            for k in reversed(range(taus.shape[-1])):
                v = np.concatenate([np.zeros(k), [1], a[place][k + 1 :, k]])
                v = v.astype(a.dtype)
                q = q - taus[place][k] * np.outer(v, v.conj() @ q)
            out[place] = q
        return out

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, bool]:
        """Leading axes are batch axes already."""
        both = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*both), True


@register
class Qr(Primitive):
    """x = Q R, R upper triangular. dtypes: f32, f64, c64, c128. LAPACK geqrf, orgqr.

    Params:
      full_matrices: whether Q is square.
    """

    name = "qr"
    multi = True
    host_safe = False

    def abstract(self, x: Aval, *, full_matrices: bool) -> list[Aval]:
        """Q [m, k] and R [k, n], with k = m or min(m, n)."""
        require_matrices(self.name, x)
        m, n = x.shape[-2:]
        k = m if full_matrices else min(m, n)
        front = x.shape[:-2]
        return [Aval((*front, m, k), x.dtype), Aval((*front, k, n), x.dtype)]

    def lower(self, ctx: Any, *operands: str, full_matrices: bool) -> list[str]:
        """Reflectors, and their product."""
        (x,) = ctx.avals_in
        m, n = x.shape[-2:]
        k = m if full_matrices else min(m, n)

        def decompose(x: Any) -> list[Any]:
            packed, taus = Geqrf.bind(x)
            # As many columns as Q has; of a wide matrix the first m hold reflectors.
            q = HouseholderProduct.bind(corner(packed, m, k), taus)
            return [q, upper_part(corner(packed, k, n))]

        names: list[str] = ctx.compose(decompose, operands)
        return names

    def evaluate(self, x: Any, *, full_matrices: bool) -> list[Any]:
        """`numpy.linalg.qr`."""
        q, r = np.linalg.qr(x, mode="complete" if full_matrices else "reduced")
        return [q, r]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """Q(Ω - Qᴴ dx R⁻¹) + dx R⁻¹ with Ω antihermitian; R follows.

        Of a wide matrix [A B], Q is that of A.

        Source: Walter and Lehmann 2010, "On evaluating higher-order derivatives of the
        QR decomposition of tall matrices with full column rank"; Roberts and Roberts
        2020, "QR and LQ decomposition matrix backpropagation algorithms".
        """
        (x,), (t,) = primals, tangents
        aval = typeof(x)
        m, n = aval.shape[-2:]
        if params["full_matrices"] and m > n:
            raise NotDifferentiableError(
                f"qr of {aval} with full_matrices=True has no derivative: the columns "
                "of Q beyond the first ones are not determined: use full_matrices=False"
            )
        q, r = self.bind(x, **params)
        if not aval.size:
            return [q, r], [full_like(q, 0), full_like(r, 0)]
        k = min(m, n)
        square, change = corner(r, k, k), corner(t, m, k)
        right = triangular_solve(square, change, left_side=False, lower=False)
        inner = matmul(adjoint(q), right)
        low = lower_part(inner, strict=True)
        turn = sub(low, adjoint(low))
        if dtypes.is_complex(aval.dtype):
            phase = imag(diagonal_part(inner))
            turn = add(turn, complex_(full_like(phase, 0), phase))
        dq = add(matmul(q, sub(turn, inner)), right)
        dr = matmul(sub(inner, turn), square)
        if n > k:
            rest = slice_in_dim(x, k, n, axis=aval.ndim - 1)
            rest_change = slice_in_dim(t, k, n, axis=aval.ndim - 1)
            more = add(matmul(adjoint(dq), rest), matmul(adjoint(q), rest_change))
            dr = concatenate([dr, more], aval.ndim - 1)
        return [q, r], [dq, dr]

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[list[Any], list[bool]]:
        """Leading axes are batch axes already."""
        return self.bind(args[0], **params), [True, True]

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """8 n³ / 3."""
        return {**super().cost(*avals, **params), "flops": flops(avals[0], 8 / 3)}


# -- public ------------------------------------------------------------------------


def geqrf(x: Any) -> tuple[Array, Array]:
    """Returns the Householder reflectors of a QR decomposition.

    Args:
      x: f32, f64, c64 or c128[..., m, n].

    Returns:
      A matrix [..., m, n] with R in its upper triangle and the reflectors below, and
      their factors [..., min(m, n)].

    Raises:
      ShapeError: x is no matrix.
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
      ShapeError: the shapes do not fit.
      DtypeError: dtypes differ or are not among these.

    Source: LAPACK orgqr, ungqr.
    """
    result: Array = HouseholderProduct.bind(a, taus)
    return result


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Array, Array]:
    """Decomposes matrices: x = Q R, Q with orthonormal columns, R upper triangular.

    Args:
      x: f32, f64, c64 or c128[..., m, n].
      full_matrices: whether Q is [m, m], or [m, min(m, n)].

    Returns:
      Q and R.

    Raises:
      ShapeError: x is no matrix.
      DtypeError: the dtype is not one of these.
      NotDifferentiableError: a derivative is asked of a square Q of a tall matrix.

    Example:
      >>> import numpy as np
      >>> q, r = qr(np.float32([[3, 1], [4, 2]]))
      >>> print(abs(np.asarray(r)).round(3))
      [[5.  2.2]
       [0.  0.4]]

    Source: LAPACK geqrf, orgqr.
    """
    q, r = Qr.bind(x, full_matrices=bool(full_matrices))
    return q, r
