"""What all transforms share: operands, axes, lengths, factors."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axes
from fxflow.lax.fourier import FftType
from fxflow.numpy._operands import ArrayLike, array_of, convert

# XLA transforms at most three axes at once.
_AT_ONCE = 3


def _factor(name: str, norm: Any, count: int, *, forward: bool) -> float:
    """Returns what a transform without any factor is multiplied by."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(
            f'{name}: norm must be "backward", "ortho" or "forward", got {norm!r}'
        )
    if norm == "ortho":
        root: float = float(count) ** -0.5
        return root
    divided = norm == "forward" if forward else norm in (None, "backward")
    return 1 / count if divided else 1.0


def _resized(x: Any, axis: int, length: int) -> Any:
    have = x.aval.shape[axis]
    if have == length:
        return x
    if have > length:
        return lax.slice_in_dim(x, 0, length, axis=axis)
    config = [(0, 0, 0)] * x.aval.ndim
    config[axis] = (0, length - have, 0)
    return lax.pad(x, lax.full((), 0, x.aval.dtype), config)


def complex_operand(name: str, a: Any) -> Any:
    """Returns a complex array of a dtype that XLA transforms."""
    x = array_of(a, name)
    dtype = dtypes.to_inexact(x.aval.dtype)
    if dtypes.bits(dtype) < 32:
        dtype = dtypes.float32
    return convert(x, dtypes.to_complex(dtype))


def _real_operand(name: str, a: Any) -> Any:
    x = array_of(a, name)
    dtype = dtypes.to_inexact(x.aval.dtype)
    if dtypes.is_complex(dtype):
        raise DtypeError(
            f"{name}: takes real numbers, got {x.aval}: use the complex one"
        )
    if dtypes.bits(dtype) < 32:
        dtype = dtypes.float32
    return convert(x, dtype)


def _lengths(
    name: str, s: Any, axes: Any, shape: tuple[int, ...], half: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the axes, and their lengths in the (real) domain that is given.

    Args:
      name: of the function, for messages.
      s: lengths as the user gave them.
      axes: as the user gave them.
      shape: shape of the array.
      half: whether the last axis holds half of a spectrum.
    """
    ndim = len(shape)
    if axes is None:
        dims = tuple(range(0 if s is None else ndim - len(s), ndim))
        if dims and dims[0] < 0:
            raise ShapeError(f"{name}: {len(s)} lengths for an array of {ndim} axes")
    else:
        dims = canonical_axes(name, axes, ndim)
    if half:
        _require_axis(name, dims)
    if s is None:
        lengths = [shape[i] for i in dims]
        if half:
            # Half a spectrum does not tell an even length from an odd one: NumPy's
            # choice.
            lengths[-1] = 2 * (lengths[-1] - 1)
    else:
        if len(s) != len(dims):
            raise ArgumentError(
                f"{name}: {len(s)} lengths were given for {len(dims)} axes"
            )
        try:
            lengths = [
                shape[i] if n is None or n == -1 else operator.index(n)
                for n, i in zip(s, dims, strict=True)
            ]
        except TypeError:
            raise ArgumentError(f"{name}: s must be integers, got {s!r}") from None
    for n in lengths:
        if n < 1:
            raise ShapeError(f"{name}: transforms have at least one point, got {n}")
    return dims, tuple(lengths)


def _require_axis(name: str, dims: tuple[int, ...]) -> None:
    if not dims:
        raise ArgumentError(f"{name}: there is no axis to transform")


def _transformed(x: Any, kind: FftType, axes: Sequence[int], lengths: Any) -> Any:
    """Transforms some axes, which have the right lengths."""
    ndim = x.aval.ndim
    rest = [i for i in range(ndim) if i not in axes]
    order = (*rest, *axes)
    plain = order == tuple(range(ndim))
    if not plain:
        x = lax.transpose(x, order)
    x = lax.fft(x, kind, tuple(lengths))
    if not plain:
        x = lax.transpose(x, tuple(int(i) for i in np.argsort(order)))
    return x


def _complex_axes(x: Any, kind: FftType, axes: Sequence[int]) -> Any:
    for i in range(0, len(axes), _AT_ONCE):
        some = axes[i : i + _AT_ONCE]
        x = _transformed(x, kind, some, [x.aval.shape[d] for d in some])
    return x


def _scaled(x: Array, factor: float) -> Array:
    if factor == 1.0:
        return x
    real = dtypes.to_real(x.aval.dtype)
    return x * np.asarray(factor).astype(real)[()]


def _fitted(
    name: str, x: Any, s: Any, axes: Any, *, half: bool = False
) -> tuple[Any, tuple[int, ...], tuple[int, ...], int]:
    """Returns an array cut or filled up, its axes, their lengths, all points' number.

    Args:
      name: of the function, for messages.
      x: array or tracer.
      s: lengths as the user gave them.
      axes: as the user gave them.
      half: whether the last axis holds half of a spectrum.
    """
    dims, lengths = _lengths(name, s, axes, x.aval.shape, half)
    held = (*lengths[:-1], lengths[-1] // 2 + 1) if half else lengths
    for i, n in zip(dims, held, strict=True):
        x = _resized(x, i, n)
    return x, dims, lengths, math.prod(lengths)


def full_transform(
    name: str, a: ArrayLike, s: Any, axes: Any, norm: Any, *, forward: bool
) -> Array:
    """Transforms complex numbers.

    Args:
      name: of the function, for messages.
      a: array-like.
      s: lengths as the user gave them.
      axes: as the user gave them.
      norm: as the user gave it.
      forward: whether to transform, or back.
    """
    x, dims, _, count = _fitted(name, complex_operand(name, a), s, axes)
    out = _complex_axes(x, FftType.FFT if forward else FftType.IFFT, dims)
    # XLA's inverse divides by the number of points already.
    factor = _factor(name, norm, count, forward=forward)
    return _scaled(out, factor if forward else factor * count)


def half_transform(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    """Transforms real numbers to half of a spectrum; see `full_transform`."""
    x, dims, lengths, count = _fitted(name, _real_operand(name, a), s, axes)
    _require_axis(name, dims)
    if len(dims) <= _AT_ONCE:
        out = _transformed(x, FftType.RFFT, dims, lengths)
    else:
        out = _transformed(x, FftType.RFFT, dims[-1:], lengths[-1:])
        out = _complex_axes(out, FftType.FFT, dims[:-1])
    return _scaled(out, _factor(name, norm, count, forward=True))


def half_inverse(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    """Transforms half of a spectrum to real numbers; see `full_transform`."""
    operand = complex_operand(name, a)
    x, dims, lengths, count = _fitted(name, operand, s, axes, half=True)
    if len(dims) <= _AT_ONCE:
        out = _transformed(x, FftType.IRFFT, dims, lengths)
    else:
        x = _complex_axes(x, FftType.IFFT, dims[:-1])
        out = _transformed(x, FftType.IRFFT, dims[-1:], lengths[-1:])
    return _scaled(out, _factor(name, norm, count, forward=False) * count)


def opposite(name: str, norm: Any) -> Any:
    """Returns the norm of the other direction."""
    _factor(name, norm, 1, forward=True)
    return {None: "forward", "backward": "forward", "forward": "backward"}.get(
        norm, norm
    )
