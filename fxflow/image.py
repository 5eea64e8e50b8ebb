"""Resampling of images: any number of axes is resized, moved and stretched.

Each axis is multiplied by a matrix of weights, those of the input's pixels in one of
the output's, so everything is differentiable: by the image, the scale and the
translation. Pixels are squares whose centers are at the half integers.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.boundary import public as _public
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_symbolic
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axes, canonical_shape
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """How a pixel is made of those that are near it."""

    NEAREST = 0
    """The nearest one."""
    LINEAR = 1
    """Linear interpolation; with `antialias` a triangular filter."""
    LANCZOS3 = 2
    """The Lanczos kernel of radius 3: a windowed sinc."""
    LANCZOS5 = 3
    """The Lanczos kernel of radius 5."""
    CUBIC = 4
    """Keys' cubic kernel with a = -1/2."""
    CUBIC_PYTORCH = 5
    """PyTorch's: if not `antialias` a = -3/4, and pixels at the edge are repeated."""
    AREA = 6
    """The mean of the pixels which the new one covers, each by the part covered."""

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """Returns the method of a name.

        Args:
          s: `"nearest"`; `"linear"`, `"bilinear"`, `"trilinear"` or `"triangle"`;
            `"cubic"`, `"bicubic"` or `"tricubic"`; `"lanczos3"`; `"lanczos5"`;
            `"cubic-pytorch"`; `"area"`.

        Returns:
          The method.

        Raises:
          ArgumentError: there is none of this name.
        """
        method = _NAMES.get(s)
        if method is None:
            known = ", ".join(f'"{name}"' for name in _NAMES)
            raise ArgumentError(
                f"unknown resize method {s!r}: it must be one of {known}"
            )
        return method


_NAMES = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


# -- kernels, of a distance that is not negative ---------------------------------------


def _triangle(x: Any) -> Any:
    return fnp.maximum(0, 1 - x)


def _keys(a: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = a * (((x - 5) * x + 8) * x - 4)
        return fnp.where(x < 1, near, fnp.where(x < 2, far, 0))

    return kernel


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        # The factors' quotient is 1 at 0, where its derivative is 0 too.
        tiny = x <= 1e-3
        z = fnp.where(tiny, 1.0, x) * math.pi
        value = radius * fnp.sin(z) * fnp.sin(z / radius) / (z * z)
        near = 1 - (math.pi * x) ** 2 * (1 + 1 / radius**2) / 6
        return fnp.where(tiny, near, fnp.where(x > radius, 0, value))

    return kernel


_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: _triangle,
    ResizeMethod.LANCZOS3: _lanczos(3.0),
    ResizeMethod.LANCZOS5: _lanczos(5.0),
    ResizeMethod.CUBIC: _keys(-0.5),
    ResizeMethod.CUBIC_PYTORCH: _keys(-0.5),
}
_PYTORCH = _keys(-0.75)


# -- weights ---------------------------------------------------------------------------


def _weights(
    n: int, m: int, scale: Any, translation: Any, method: ResizeMethod, antialias: bool
) -> Any:
    """Returns the weights [n, m] of the pixels of an axis in those of the new one."""
    dtype = scale.aval.dtype
    inverse = 1 / scale
    centers = (fnp.arange(m, dtype=dtype) + 0.5 - translation) * inverse
    pixels = fnp.arange(n, dtype=dtype)[:, None]
    border = 0.0
    if method is ResizeMethod.AREA:
        half = 0.5 * fnp.abs(inverse)
        right = fnp.minimum(centers + half, pixels + 1)
        weights = fnp.maximum(right - fnp.maximum(centers - half, pixels), 0)
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        # Two pixels beyond each edge, whose weights go to the pixel at the edge.
        wide = fnp.arange(-2, n + 2, dtype=dtype)[:, None]
        taps = _PYTORCH(fnp.abs(centers - 0.5 - wide))
        edges = fnp.clip(fnp.arange(-2, n + 2), 0, n - 1)
        weights = fnp.zeros((n, m), dtype).at[edges].add(taps)
        border = 3.5
    else:
        width = fnp.maximum(fnp.abs(inverse), 1) if antialias else 1
        weights = _KERNELS[method](fnp.abs(centers - 0.5 - pixels) / width)
    total = fnp.sum(weights, axis=0, keepdims=True)
    # A new pixel whose center is outside is 0, as is one without any weight.
    least = 1000 * float(dtypes.finfo(dtype).eps)
    inside = (centers >= -border) & (centers <= n + border) & (fnp.abs(total) > least)
    return fnp.where(inside, weights / fnp.where(inside, total, 1), 0)


def _method_of(name: str, method: Any) -> ResizeMethod:
    if isinstance(method, ResizeMethod):
        return method
    if not isinstance(method, str):
        raise ArgumentError(
            f"{name}: method must be a string or a ResizeMethod, got {method!r}"
        )
    return ResizeMethod.from_string(method)


def _shape_like(name: str, shape: Any, x: Array) -> tuple[int, ...]:
    lengths: tuple[int, ...] = canonical_shape(name, shape)
    if len(lengths) != x.aval.ndim:
        raise ShapeError(
            f"{name}: shape must have one length for each axis of {x.aval}, got "
            f"{lengths}"
        )
    return lengths


def _resampled(
    x: Any,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    scale: Any,
    translation: Any,
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Array:
    """Multiplies the axes by their weights."""
    out: Array = x
    dtype = x.aval.dtype
    real = dtypes.to_real(dtype)
    if not x.aval.size:  # no pixel is in sight
        return lax.full(shape, 0, dtype)
    for i, axis in enumerate(axes):
        n, m = x.aval.shape[axis], shape[axis]
        # Pixel coordinates go beyond what 16 bits tell apart.
        weights = _weights(n, m, scale[i], translation[i], method, antialias)
        weights = convert(convert(weights, real), dtype)
        product = lax.dot_general(
            out, weights, (((axis,), (0,)), ((), ())), precision=precision
        )
        out = fnp.moveaxis(product, -1, axis)
    return out


@library("shape", "method", "antialias", "precision")
def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Returns an image of another size.

    Args:
      image: array-like[...]: any number of axes.
      shape: the new one, of the same rank. Those whose length changes are resized.
      method: a `ResizeMethod` or its name, such as `"nearest"`, `"linear"`, `"cubic"`,
        `"lanczos3"`, `"area"`; see `ResizeMethod.from_string`.
      antialias: whether an axis that gets shorter is smoothed, the kernel being as wide
        as the new pixels.
      precision: of the products; see `lax.dot_general`.

    Returns:
      Array[shape]: float, or of the dtype of `image` by the nearest method.

    Raises:
      ArgumentError: unknown method.
      ShapeError: `shape` has the wrong number of axes.

    Special cases:
      Weights beyond the edges are left out, and the others are scaled to a sum of 1. An
      image without pixels gives zeros.

    Example:
      >>> resize(np.array([1.0, 3.0]), (4,), "linear")
      Array([1. , 1.5, 2.5, 3. ], dtype=float32)

    Source: `jax.image.resize`; R. Keys, Cubic Convolution Interpolation for Digital
    Image Processing, 1981; K. Turkowski, Filters for Common Resampling Tasks, 1990.
    """
    x = array_of(image, "resize")
    shape = _shape_like("resize", shape, x)
    method = _method_of("resize", method)
    old = x.aval.shape
    axes = tuple(i for i, n in enumerate(shape) if n != old[i])
    if method is ResizeMethod.NEAREST:
        for axis in axes if x.aval.size else ():
            n, m = old[axis], shape[axis]
            # Exact: floor((i + 1/2) n / m), in integers.
            if is_symbolic((n, m)):
                indices = (2 * lax.iota(dtypes.int32, m) + 1) * n // (2 * m)
            else:
                indices = fnp.asarray(
                    [(2 * i + 1) * n // (2 * m) for i in range(m)], dtypes.int32
                )
            x = fnp.take(x, indices, axis=axis)
        return x if x.aval.shape == shape else lax.full(shape, 0, x.aval.dtype)
    (x,) = promote_inexact("resize", x)
    if 0 in shape:
        return lax.full(shape, 0, x.aval.dtype)
    wide = _wide(x)
    scale = [lax.full((), shape[d] / max(old[d], 1), wide) for d in axes]
    zeros = [lax.full((), 0, wide) for _ in axes]
    return _resampled(x, shape, axes, scale, zeros, method, antialias, precision)


@library("shape", "spatial_dims", "method", "antialias", "precision")
def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Returns an image that is stretched and moved, seen through a window.

    What is at x in the image is at `x * scale + translation` in the result.

    Args:
      image: array-like[...]: any number of axes.
      shape: shape of the result; only `spatial_dims` may differ in length.
      spatial_dims: the axes that are stretched and moved.
      scale: real array-like[len(spatial_dims)]: how many times larger things get.
      translation: real array-like[len(spatial_dims)]: by how many new pixels they are
        moved then.
      method: a `ResizeMethod` or its name, but for the nearest.
      antialias: whether an axis that gets shorter is smoothed.
      precision: of the products; see `lax.dot_general`.

    Returns:
      Float array[shape]; 0 outside of the image. It has derivatives with respect to
      `image`, `scale` and `translation`.

    Raises:
      ArgumentError: unknown method, or it is the nearest.
      AxisError: an axis is out of range or repeated.
      ShapeError: `shape` is incompatible, or `scale` and `translation` are not one
        number for each axis.

    Example:
      >>> x, one = np.array([1.0, 3.0]), np.ones(1)
      >>> scale_and_translate(x, (4,), (0,), one, one, "linear")
      Array([0., 1., 3., 0.], dtype=float32)

    Source: `jax.image.scale_and_translate`, TensorFlow's `ScaleAndTranslate`.
    """
    name = "scale_and_translate"
    (x,) = promote_inexact(name, image)
    shape = _shape_like(name, shape, x)
    axes = canonical_axes(name, spatial_dims, x.aval.ndim, "spatial_dims")
    method = _method_of(name, method)
    if method is ResizeMethod.NEAREST:
        raise ArgumentError(
            f'{name}: the method "nearest" is not differentiable by scale and '
            "translation: use resize, or fnp.take with indices of your own"
        )
    kept = [i for i in range(x.aval.ndim) if i not in axes]
    if any(shape[i] != x.aval.shape[i] for i in kept):
        raise ShapeError(
            f"{name}: shape {shape} differs from that of {x.aval} in axes that are not "
            f"among spatial_dims={axes}"
        )
    parts = []
    for what, given in (("scale", scale), ("translation", translation)):
        (value,) = promote_inexact(name, given)
        if value.aval.shape != (len(axes),):
            raise ShapeError(
                f"{name}: {what} must have one number for each of {len(axes)} axes, "
                f"got {value.aval}"
            )
        parts.append(convert(value, _wide(x)))
    by, moved = parts
    return _resampled(x, shape, axes, by, moved, method, antialias, precision)


def _wide(x: Any) -> Any:
    """Returns the dtype that weights of pixels of `x` are computed in."""
    real = dtypes.to_real(x.aval.dtype)
    return real if dtypes.bits(real) >= 32 else dtypes.float32


_public(globals(), __all__)
