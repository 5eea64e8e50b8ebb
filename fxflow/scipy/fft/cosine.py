"""Discrete cosine transforms, of types I to IV, by Fourier transforms.

The machinery here serves the sine transforms too, which are cosine transforms of
sequences with other signs, or turned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

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

#: What the docstrings of cosine and sine transforms have in common.
TRANSFORM_DOCS = """
    Args:
      x: array-like[...].
      type: 1, 2, 3 or 4: which transform.
      n: length of the axis; it is truncated or padded with zeros before. None leaves
        it.
      axis: the axis.
      s: length of one axis, or the lengths of several, likewise; -1 leaves one.
      axes: one or several; None is the last ones, for each length in `s` one, or all.
      norm: None or "backward": the inverse is scaled; "forward": the transform is;
        "ortho": both are, which makes them orthogonal.
      overwrite_x: has no effect.
      workers: has no effect.
      orthogonalize: whether to scale the coefficients that occur once so that the
        transform is orthogonal; None: if `norm` is "ortho".

    Returns:
      Float array, or complex of a complex `x`: of both parts by themselves.

    Raises:
      ArgumentError: unknown type or norm, or a length is not positive.
      AxisError: an axis is out of range.
      ...
"""
_docs = shared(
    TRANSFORM_DOCS
    + """
    Source: `scipy.fft.{name}`; J. Makhoul, A Fast Cosine Transform in One and Two
    Dimensions, 1980.
"""
)


@library("type", "n", "axis", "overwrite_x", "workers", "orthogonalize")
@_docs
def dct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns the discrete cosine transform along an axis.

    Example:
      >>> dct(np.array([1.0, 2.0, 3.0])).round(3)
      Array([12.   , -3.464,  0.   ], dtype=float32)
    """
    kind = Kind("dct", type, norm, False, orthogonalize)
    return transformed(kind, x, n, axis)


@library("type", "n", "axis", "overwrite_x", "workers", "orthogonalize")
@_docs
def idct(
    x: ArrayLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns what has a discrete cosine transform along an axis.

    Example:
      >>> idct(dct(np.array([1.0, 2.0, 3.0]))).round(3)
      Array([1., 2., 3.], dtype=float32)
    """
    kind = Kind("idct", type, norm, True, orthogonalize)
    return transformed(kind, x, n, axis)


@library("type", "s", "axes", "overwrite_x", "workers", "orthogonalize")
@_docs
def dctn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns the discrete cosine transform along several axes.

    Raises:
      ShapeError: `s` and `axes` differ in length, or `s` has more axes than `x`.
    """
    kind = Kind("dctn", type, norm, False, orthogonalize)
    return of_axes(kind, x, s, axes)


@library("type", "s", "axes", "overwrite_x", "workers", "orthogonalize")
@_docs
def idctn(
    x: ArrayLike,
    type: int = 2,
    s: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """Returns what has a discrete cosine transform along several axes.

    Raises:
      ShapeError: `s` and `axes` differ in length, or `s` has more axes than `x`.
    """
    kind = Kind("idctn", type, norm, True, orthogonalize)
    return of_axes(kind, x, s, axes)


class Kind(NamedTuple):
    """A transform.

    Attributes:
      name: of the public function.
      type: from 1 to 4.
      norm: what is scaled.
      inverse: whether it undoes the other one.
      orthogonalize: whether coefficients have one length; None: if `norm` is "ortho".
      sine: whether it is of sines.
    """

    name: str
    type: int
    norm: str | None
    inverse: bool
    orthogonalize: bool | None = None
    sine: bool = False


def of_axes(kind: Kind, x: Any, s: Any, axes: Any) -> Array:
    """Transforms several axes."""
    name = kind.name
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
        x = transformed(kind, x, n, axis)
    out: Array = x
    return out


def transformed(kind: Kind, x: Any, n: int | None, axis: int) -> Array:
    """Transforms one axis."""
    name, type, norm, *_ = kind
    (x,) = promote_inexact(name, x)
    if type not in _INVERSE:
        raise ArgumentError(f"{name}: type must be 1, 2, 3 or 4, got {type!r}")
    if norm not in _NORMS:
        raise ArgumentError(
            f'{name}: norm must be None, "backward", "ortho" or "forward", got {norm!r}'
        )
    if dtypes.is_complex(x.aval.dtype):
        parts = fnp.real(x), fnp.imag(x)
        return lax.complex(*[transformed(kind, p, n, axis) for p in parts])
    axis = canonical_axis(name, axis, x.aval.ndim)
    x = fnp.moveaxis(x, axis, -1)
    length = x.aval.shape[-1]
    n = length if n is None else n
    least = 2 if type == 1 and not kind.sine else 1
    if n < least:
        raise ArgumentError(
            f"{name}: type {type} takes at least {least} elements, got {n}"
        )
    if n <= length:
        x = lax.slice_in_dim(x, 0, n, axis=-1)
    else:
        x = fnp.pad(x, [(0, 0)] * (x.aval.ndim - 1) + [(0, n - length)])
    dtype = x.aval.dtype
    wide = convert(x, dtype if dtypes.bits(dtype) >= 32 else dtypes.float32)
    out = convert(_scaled(wide, kind), dtype)
    moved: Array = fnp.moveaxis(out, -1, axis)
    return moved


def _scaled(x: Any, kind: Kind) -> Any:
    n = x.aval.shape[-1]
    type = _INVERSE[kind.type] if kind.inverse else kind.type
    if kind.sine:
        period, plain = (2 * (n + 1) if type == 1 else 2 * n), _plain_sine
    else:
        period, plain = (2 * (n - 1) if type == 1 else 2 * n), _plain
    equal = kind.orthogonalize
    if equal is None:
        equal = kind.norm == "ortho"
    # Coefficients that occur once: the first or the last one, or both.
    ends = ([] if kind.sine else [0, -1]) if type == 1 else [-1 if kind.sine else 0]
    weights = np.ones(n)
    weights[ends] = math.sqrt(2)
    weights = weights.astype(x.aval.dtype)
    if equal and type in (1, 3):
        x = x * weights
    out = plain(x, type)
    if equal and type in (1, 2):
        out = out / weights
    if kind.norm == "ortho":
        return out / math.sqrt(period)
    return out / period if (kind.norm == "forward") != kind.inverse else out


def _plain_sine(x: Any, kind: int) -> Any:
    """Returns the sine transform of the last axis without any scale."""
    n, dtype = x.aval.shape[-1], x.aval.dtype
    if kind == 1:
        zero = fnp.zeros_like(x[..., :1])
        both = fnp.concatenate([zero, x, zero, -fnp.flip(x, -1)], axis=-1)
        return -fnp.imag(fnp.fft.rfft(both))[..., 1 : n + 1]
    # Those of cosines, turned: sin(π/2 - t) is cos(t).
    signs = ((-1.0) ** np.arange(n)).astype(dtype)
    if kind == 2:
        return fnp.flip(_plain(x * signs, 2), -1)
    return signs * _plain(fnp.flip(x, -1), kind)


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
