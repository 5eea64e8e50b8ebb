"""Complex numbers and their parts.

Derivatives are those of holomorphic functions: a tangent is a complex number, and a
transpose does not conjugate. So the cotangent of `imag` is multiplied by -i.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Dual, Values, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import DtypeError
from fxflow.lax._operands import operands
from fxflow.lax.families import (
    ADDED,
    COMPLEX,
    INEXACT,
    Elementwise,
    Linear,
    require_kind,
)


class _Part(Linear, Elementwise):
    """The real or the imaginary part."""

    kinds = COMPLEX

    def result_dtype(self, dtype: Any) -> Any:
        """The dtype of the parts."""
        return dtypes.to_real(dtype)


def _host_real(x: Any) -> Any:
    return np.real(x)


def _host_imag(x: Any) -> Any:
    return np.imag(x)


@register
class Real(_Part):
    """Real part. dtypes: complex. StableHLO: real."""

    name = "real"
    host_kinds = ADDED
    hlo = "stablehlo.real"
    numpy = _host_real

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent as a complex number."""
        zero = arith.constant(0, typeof(cotangent).dtype)
        return [Complex.bind(cotangent, zero)]


@register
class Imag(_Part):
    """Imaginary part. dtypes: complex. StableHLO: imag."""

    name = "imag"
    host_kinds = ADDED
    hlo = "stablehlo.imag"
    numpy = _host_imag

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """-i times the cotangent."""
        zero = arith.constant(0, typeof(cotangent).dtype)
        # Cotangents pair with tangents as Re(ct · t), without a conjugate, as in JAX.
        return [Complex.bind(zero, arith.neg(cotangent))]


def _host_complex(re: Any, im: Any) -> Any:
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, dtypes.to_complex(re.dtype))
    # Not re + 1j * im, which is nan where im is infinite.
    out.real, out.imag = re, im
    return out


@register
class Complex(Elementwise):
    """re + i im. dtypes: f32, f64. StableHLO: complex."""

    name = "complex"
    linear_in_inexact = True
    host_kinds = ADDED
    kinds = frozenset("f")
    hlo = "stablehlo.complex"
    numpy = _host_complex
    linear = True

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """Complex of twice the width."""
        if avals[0].dtype not in (dtypes.float32, dtypes.float64):
            raise DtypeError(
                f"complex: parts must be f32 or f64 arrays, got {avals[0]}: convert "
                "them with .astype(...) first"
            )
        return super().abstract(*avals, **params)

    def result_dtype(self, dtype: Any) -> Any:
        """The complex dtype with such parts."""
        return dtypes.to_complex(dtype)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The complex number of the tangents."""
        out = self.bind(*primals)
        part = typeof(primals[0]).dtype
        if all(type(t) is Zero for t in tangents):
            return out, Zero(typeof(out).tangent())
        return out, self.bind(
            *(arith.constant(0, part) if type(t) is Zero else t for t in tangents)
        )

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The real part, and minus the imaginary part."""
        re, im = args
        return [
            Real.bind(cotangent) if type(re) is Var else None,
            arith.neg(Imag.bind(cotangent)) if type(im) is Var else None,
        ]


def _host_conj(x: Any) -> Any:
    if dtypes.is_complex(x.dtype):
        return np.conjugate(x)
    return x.astype(dtypes.to_complex(x.dtype))


@register
class Conj(Linear, Elementwise):
    """Complex conjugate. dtypes: f32, f64, complex; always gives complex.

    StableHLO: real, imag, negate, complex.
    """

    name = "conj"
    host_kinds = ADDED
    kinds = INEXACT
    numpy = _host_conj

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The complex dtype of that width."""
        dtype = avals[0].dtype
        if dtype not in (dtypes.float32, dtypes.float64):
            require_kind(self.name, avals[0], COMPLEX)
        return Aval(avals[0].shape, dtypes.to_complex(dtype), avals[0].weak_type)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The same real part, the negative imaginary part."""
        if not dtypes.is_complex(ctx.avals_in[0].dtype):

            def widened(x: Any) -> Any:
                return Complex.bind(x, arith.constant(0, typeof(x).dtype))

            return ctx.compose(widened, operands)[0]

        def conjugated(z: Any) -> Any:
            return Complex.bind(Real.bind(z), arith.neg(Imag.bind(z)))

        return ctx.compose(conjugated, operands)[0]

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The conjugate; for a real operand, its real part."""
        (x,) = args
        if dtypes.is_complex(x.aval.dtype):
            return [self.bind(cotangent)]
        return [Real.bind(cotangent)]


def real(x: Any, /) -> Array:
    """Returns the real part.

    Args:
      x: complex array.

    Returns:
      A float array of the shape of `x`, half as wide.

    Raises:
      DtypeError: `x` is not complex.

    Example:
      >>> real(np.complex64(1 + 2j))
      Array(1., dtype=float32)

    Source: StableHLO `real`.
    """
    return Real.bind(x)


def imag(x: Any, /) -> Array:
    """Returns the imaginary part.

    Args:
      x: complex array.

    Returns:
      A float array of the shape of `x`, half as wide.

    Raises:
      DtypeError: `x` is not complex.

    Example:
      >>> imag(np.complex64(1 + 2j))
      Array(2., dtype=float32)

    Source: StableHLO `imag`.
    """
    return Imag.bind(x)


def complex(x: Any, y: Any, /) -> Array:
    """Returns the complex number x + iy.

    Args:
      x: f32 or f64 array, the real part.
      y: the imaginary part, of the same dtype.

    Returns:
      A c64 or c128 array of their shape.

    Raises:
      DtypeError: the parts are of another dtype.
      ShapeError: the shapes are incompatible.

    Example:
      >>> complex(np.float32(1), 2.0)
      Array(1.+2.j, dtype=complex64)

    Source: StableHLO `complex`.
    """
    return Complex.bind(*operands("complex", x, y))


def conj(x: Any, /) -> Array:
    """Returns the complex conjugate.

    Args:
      x: complex, f32 or f64 array.

    Returns:
      A complex array of the shape of `x`.

    Raises:
      DtypeError: `x` is of another dtype.

    Example:
      >>> conj(np.complex64(1 + 2j))
      Array(1.-2.j, dtype=complex64)

    Source: composed of StableHLO `real`, `imag`, `negate` and `complex`.
    """
    return Conj.bind(x)
