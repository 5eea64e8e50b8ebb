"""Discrete cosine transforms, of types I to IV, by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axes, canonical_axis, int_tuple
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact

# The type that undoes another one.
_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = (None, "backward", "ortho", "forward")

_docs = shared("""
    Args:
      x: array-like[...].
      type: 1, 2, 3 or 4: which transform.
      n: length of the axis; it is cut or filled up with zeros before. None leaves it.
      axis: which one.
      s: length of one axis, or the lengths of several, likewise; -1 leaves one.
      axes: one or several; None is the last ones, for each length in `s` one, or all.
      norm: None or "backward": the inverse is scaled; "forward": the transform is;
        "ortho": both are, which makes them orthogonal.

    Returns:
      Float array, or complex of a complex `x`: of both parts by themselves.

    Raises:
      ArgumentError: there is no such type or norm, or a length is not positive.
      AxisError: there is no such axis.

    Source: `scipy.fft.{name}`; J. Makhoul, A Fast Cosine Transform in One and Two
    Dimensions, 1980.
""")


@library("type", "n", "axis")
@_docs
def dct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """Returns the discrete cosine transform along an axis.

    Example:
      >>> dct(np.array([1.0, 2.0, 3.0])).round(3)
      Array([12.   , -3.464,  0.   ], dtype=float32)
    """
    return _transformed("dct", x, type, n, axis, norm, inverse=False)


@library("type", "n", "axis")
@_docs
def idct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
) -> Array:
    """Returns what has a discrete cosine transform along an axis.

    Example:
      >>> idct(dct(np.array([1.0, 2.0, 3.0]))).round(3)
      Array([1., 2., 3.], dtype=float32)
    """
    return _transformed("idct", x, type, n, axis, norm, inverse=True)


@library("type", "s", "axes")
@_docs
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Returns the discrete cosine transform along several axes.

    Raises:
      ShapeError: `s` and `axes` differ in length, or `s` has more axes than `x`.
    """
    return _of_axes("dctn", x, type, s, axes, norm, inverse=False)


@library("type", "s", "axes")
@_docs
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """Returns what has a discrete cosine transform along several axes.

    Raises:
      ShapeError: `s` and `axes` differ in length, or `s` has more axes than `x`.
    """
    return _of_axes("idctn", x, type, s, axes, norm, inverse=True)


def _of_axes(
    name: str, x: Any, type: int, s: Any, axes: Any, norm: Any, inverse: bool
) -> Array:
    (x,) = promote_inexact(name, x)
    ndim = x.aval.ndim
    if s is not None:
        one = hasattr(s, "__index__") and not getattr(s, "ndim", 0)
        s = int_tuple(name, "s", (s,) if one else s)
        if axes is None:
            if len(s) > ndim:
                raise ShapeError(f"{name}: s={s} has more axes than {x.aval}")
            axes = range(ndim - len(s), ndim)
    axes = canonical_axes(name, axes, ndim)
    if s is not None and len(s) != len(axes):
        raise ShapeError(f"{name}: s={s} and axes={axes} differ in length")
    for i, axis in enumerate(axes):
        n = None if s is None or s[i] == -1 else s[i]
        x = _transformed(name, x, type, n, axis, norm, inverse)
    out: Array = x
    return out


def _transformed(
    name: str, x: Any, type: int, n: int | None, axis: int, norm: Any, inverse: bool
) -> Array:
    (x,) = promote_inexact(name, x)
    if type not in _INVERSE:
        raise ArgumentError(f"{name}: type must be 1, 2, 3 or 4, got {type!r}")
    if norm not in _NORMS:
        raise ArgumentError(
            f'{name}: norm must be None, "backward", "ortho" or "forward", got {norm!r}'
        )
    if dtypes.is_complex(x.aval.dtype):
        parts = fnp.real(x), fnp.imag(x)
        return lax.complex(
            *[_transformed(name, p, type, n, axis, norm, inverse) for p in parts]
        )
    axis = canonical_axis(name, axis, x.aval.ndim)
    x = fnp.moveaxis(x, axis, -1)
    length = x.aval.shape[-1]
    n = length if n is None else n
    if n < 1 or (type == 1 and n < 2):
        raise ArgumentError(
            f"{name}: type {type} takes at least {1 + (type == 1)} elements, got {n}"
        )
    if n <= length:
        x = lax.slice_in_dim(x, 0, n, axis=-1)
    else:
        x = fnp.pad(x, [(0, 0)] * (x.aval.ndim - 1) + [(0, n - length)])
    kind = _INVERSE[type] if inverse else type
    dtype = x.aval.dtype
    wide = convert(x, dtype if dtypes.bits(dtype) >= 32 else dtypes.float32)
    out = convert(_scaled(wide, kind, norm, inverse), dtype)
    moved: Array = fnp.moveaxis(out, -1, axis)
    return moved


def _scaled(x: Any, kind: int, norm: str | None, inverse: bool) -> Any:
    n = x.aval.shape[-1]
    period = 2 * (n - 1) if kind == 1 else 2 * n
    if norm == "ortho":
        # The coefficients that occur once are as long as those that occur twice.
        root = math.sqrt(2)
        weights = np.ones(n)
        weights[[0, -1] if kind == 1 else [0]] = root
        if kind in (1, 3):
            x = x * weights.astype(x.aval.dtype)
        out = _plain(x, kind)
        if kind in (1, 2):
            out = out / weights.astype(x.aval.dtype)
        return out / math.sqrt(period)
    out = _plain(x, kind)
    return out / period if (norm == "forward") != inverse else out


def _plain(x: Any, kind: int) -> Any:
    """Returns the transform of the last axis without any scale."""
    n, dtype = x.aval.shape[-1], x.aval.dtype
    k = np.arange(n)
    fft = fnp.fft
    if kind == 1:
        both = fnp.concatenate([x, fnp.flip(x[..., 1:-1], -1)], axis=-1)
        return fnp.real(fft.rfft(both))
    kinds = dtypes.to_complex(dtype)
    turn = np.exp(-1j * np.pi * k / (2 * n)).astype(kinds)
    if kind == 2:
        # Elements with even numbers upward, then those with odd ones downward.
        order = fnp.concatenate([x[..., ::2], fnp.flip(x[..., 1::2], -1)], axis=-1)
        return 2 * fnp.real(fft.fft(order) * turn)
    if kind == 3:
        mirror = fnp.concatenate([0 * x[..., :1], fnp.flip(x[..., 1:], -1)], axis=-1)
        both = lax.complex(x, -mirror) * turn.conj()
        order = n * fnp.real(fft.ifft(both))
        back = np.empty(n, np.int32)
        back[::2] = np.arange((n + 1) // 2)
        back[1::2] = n - 1 - np.arange(n // 2)
        return order[..., back]
    spread = fft.fft(convert(x, kinds) * turn, 2 * n)[..., :n]
    final = np.exp(-1j * np.pi * (2 * k + 1) / (4 * n)).astype(kinds)
    return 2 * fnp.real(spread * final)
