"""Fourier transforms of the last axes."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, as_array, dtypes, put_host, typeof
from fxflow.core.ir.primitive import Batched, Flags, Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import int_tuple
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.complex import conj
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import mul
from fxflow.lax.families import ADDED, Linear


class FftType(enum.IntEnum):
    """Kind of Fourier transform.

    Attributes:
      FFT: complex to complex, forwards: Σ x exp(-2πi jk/n).
      IFFT: complex to complex, back: the same with +, over n.
      RFFT: real to the first n // 2 + 1 complex coefficients of the last axis.
      IRFFT: those coefficients to real.
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_NUMPY: dict[FftType, Callable[..., Any]] = {
    FftType.FFT: np.fft.fftn,
    FftType.IFFT: np.fft.ifftn,
    FftType.RFFT: np.fft.rfftn,
    FftType.IRFFT: np.fft.irfftn,
}


@register
class Fft(Linear):
    """Fourier transform of the last axes. dtypes: f32, f64, c64, c128. StableHLO: fft.

    Params:
      fft_type: which.
      fft_lengths: of the axes, in the real domain.
    """

    name = "fft"
    host_kinds = ADDED
    layout: Callable[..., Any] = layouts.partly

    def abstract(
        self, x: Aval, *, fft_type: FftType, fft_lengths: tuple[int, ...]
    ) -> Aval:
        """The lengths, halved in the last axis of a real transform's coefficients."""
        real = fft_type is FftType.RFFT
        wanted = "float32 or float64" if real else "complex64 or complex128"
        given = dtypes.is_floating(x.dtype) if real else dtypes.is_complex(x.dtype)
        if not given or dtypes.bits(x.dtype) < 32:
            raise DtypeError(
                f"fft: {fft_type.name} takes {wanted} arrays, got {x}: convert it with "
                ".astype(...) first"
            )
        count = len(fft_lengths)
        if not 1 <= count <= 3:
            raise ArgumentError(
                f"fft: one to three axes are transformed at once, got fft_lengths "
                f"{fft_lengths}: transform the others in a second call"
            )
        if x.ndim < count:
            raise ShapeError(
                f"fft: fft_lengths {fft_lengths} need at least {count} axes, got {x}"
            )
        expected = fft_lengths
        halved = (*fft_lengths[:-1], fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0)
        if fft_type is FftType.IRFFT:
            expected = halved
        if x.shape[-count:] != expected:
            raise ShapeError(
                f"fft: {fft_type.name} of lengths {fft_lengths} takes an array whose "
                f"last axes are {expected}, got {x}: pad or slice it first"
            )
        front = x.shape[:-count]
        if real:
            return Aval((*front, *halved), dtypes.to_complex(x.dtype))
        if fft_type is FftType.IRFFT:
            return Aval((*front, *fft_lengths), dtypes.to_real(x.dtype))
        return x.strong()

    def lower(
        self,
        ctx: Context,
        *operands: str,
        fft_type: FftType,
        fft_lengths: tuple[int, ...],
    ) -> str:
        """`fft`."""
        (x,), (out,) = ctx.avals_in, ctx.avals_out
        if not out.size or not x.size:
            return ctx.constant(np.zeros((), out.dtype), out)
        return ctx.emit(
            f"stablehlo.fft {operands[0]}, type = {fft_type.name}, "
            f"length = {list(fft_lengths)} : ({x.mlir}) -> {out.mlir}"
        )

    def host_function(
        self, *, fft_type: FftType, fft_lengths: tuple[int, ...]
    ) -> Callable[..., Any]:
        """`numpy.fft` with everything filled in."""
        transform = _NUMPY[fft_type]
        axes = tuple(range(-len(fft_lengths), 0))

        def call(x: Any) -> Any:
            out = self.abstract(
                Aval(x.shape, x.dtype), fft_type=fft_type, fft_lengths=fft_lengths
            )
            if not x.size or not out.size:
                return np.zeros(out.shape, out.dtype)
            return transform(x, fft_lengths, axes).astype(out.dtype, copy=False)

        return call

    def transpose(
        self,
        cotangent: Any,
        *args: Any,
        fft_type: FftType,
        fft_lengths: tuple[int, ...],
    ) -> Values:
        """The same transform of complex ones, which are symmetric; else the inverse.

        A real transform keeps half of the coefficients: each but the first and, of an
        even length, the last one stands for two.
        """
        if fft_type in (FftType.FFT, FftType.IFFT):
            return [self.bind(cotangent, fft_type=fft_type, fft_lengths=fft_lengths)]
        total = math.prod(fft_lengths)
        if fft_type is FftType.RFFT:
            # The inverse divides by n, and takes a coefficient twice where it stands
            # for two.
            weights = total / _multiplicity(fft_lengths[-1])
            weighted = mul(conj(cotangent), _along_last(weights, typeof(cotangent)))
            out = self.bind(weighted, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
            return [out]
        half = self.bind(cotangent, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        weights = _multiplicity(fft_lengths[-1]) / max(total, 1)
        return [mul(conj(half), _along_last(weights, typeof(half)))]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """Leading axes are batch axes already."""
        return self.bind(args[0], **params), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """5 n log2 n, as is customary."""
        n = math.prod(params["fft_lengths"])
        flops = 5.0 * avals[0].size * math.log2(max(n, 2))
        return {**super().cost(*avals, **params), "flops": flops}


def _multiplicity(length: int) -> np.ndarray[Any, Any]:
    """Returns how many coefficients each of a real transform stands for."""
    weights = np.full(length // 2 + 1 if length else 0, 2.0)
    # Coefficient k stands for -k as well, but 0 and, of an even length, the middle one
    # for themselves alone.
    weights[:1] = 1.0
    if length % 2 == 0:
        weights[-1:] = 1.0
    return weights


def _along_last(weights: np.ndarray[Any, Any], aval: Aval) -> Any:
    value = weights.astype(dtypes.to_real(aval.dtype))
    row = convert_element_type(
        put_host(value, Aval(value.shape, value.dtype)), aval.dtype
    )
    return broadcast_in_dim(row, aval.shape, (aval.ndim - 1,))


# -- public ----------------------------------------------------------------------------


def fft(x: Any, fft_type: FftType | str | int, fft_lengths: Sequence[int]) -> Array:
    """Transforms the last axes.

    Args:
      x: c64 or c128[..., *lengths]; for `RFFT` f32 or f64; for `IRFFT` complex, the
        last axis `n // 2 + 1` long.
      fft_type: an `FftType`, or its name.
      fft_lengths: of the transformed axes in the real domain, at most three.

    Returns:
      An array; of `RFFT` complex with a last axis of `n // 2 + 1`, of `IRFFT` real.

    Raises:
      DtypeError: the dtype does not go with the type of transform.
      ShapeError: the last axes have other lengths.
      ArgumentError: unknown type, or too many axes.

    Special cases:
      `IRFFT` ignores the imaginary part of the first and, of an even length, the last
      coefficient. Without `fft_lengths` there is nothing to transform.

    Example:
      >>> print(fft(np.float32([1, 0, 0, 0]), "RFFT", (4,)))
      [1.+0.j 1.+0.j 1.+0.j]

    Source: StableHLO fft.
    """
    if isinstance(fft_type, str):
        name = fft_type.rpartition(".")[2].upper()
        if name not in FftType.__members__:
            raise ArgumentError(
                f"fft: unknown type {fft_type!r}: use one of "
                f"{', '.join(FftType.__members__)}"
            )
        fft_type = FftType[name]
    else:
        try:
            fft_type = FftType(fft_type)
        except ValueError:
            raise ArgumentError(
                f"fft: unknown type {fft_type!r}: use an FftType or its name"
            ) from None
    lengths = int_tuple("fft", "fft_lengths", fft_lengths)
    complex_input = fft_type in (FftType.FFT, FftType.IFFT)
    if complex_input and dtypes.is_floating(typeof(x).dtype):
        x = convert_element_type(x, dtypes.to_complex(typeof(x).dtype))
    if not lengths:
        return as_array(x)
    return Fft.bind(x, fft_type=fft_type, fft_lengths=lengths)
