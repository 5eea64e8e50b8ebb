"""Linear filters of arrays: sums of products over neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import (
    canonical_axes,
    canonical_axis,
    hashable,
    integer,
    natural,
    number,
)
from fxflow.numpy._operands import ArrayLike, convert, promote_inexact

# What numpy.pad calls the boundaries.
_MODES = {
    "reflect": "symmetric",
    "grid-mirror": "symmetric",
    "mirror": "reflect",
    "nearest": "edge",
    "wrap": "wrap",
    "grid-wrap": "wrap",
    "constant": "constant",
    "grid-constant": "constant",
}

_docs = shared("""
    Args:
      input: array-like[...]: integers become floats.
      weights: array-like: the kernel; of one axis for the functions of one axis, and
        else of the same rank as `input`.
      axis: the axis.
      output: dtype of the result; None: that of the sums. Integers are truncated.
      mode: how the array is extended beyond its edges: "reflect" reverses it and
        repeats the edge; "mirror" reverses it without repeating the edge; "nearest"
        repeats the edge; "wrap" repeats the array; "constant" fills with `cval`;
        functions of several axes take a sequence too, one for each axis.
      cval: a number.
      origin: offset of the kernel in elements: 0 is centered, positive numbers move the
        result to the right.
      size: size of the neighbourhood.
      sigma: standard deviation; functions of several axes take one for each.
      order: order of the derivative of the Gaussian, 0 for none.
      truncate: the kernel's radius in standard deviations.
      radius: the kernel's radius in elements, in place of `truncate`; with it `sigma`
        may be traced, and differentiated.
      axes: the axes; None is all.

    Returns:
      Float or complex array of the shape of `input`.

    Raises:
      ArgumentError: unknown mode, `origin` is beyond the kernel, `output` is an array,
        or a size or deviation is not positive.
      AxisError: an axis is out of range.
      ShapeError: the kernel has the wrong number of axes, or no elements.

    Source: `scipy.ndimage.{name}`.
""")


def _padded(
    name: str, x: Array, pads: Sequence[tuple[int, int]], mode: Any, cval: Any
) -> Array:
    """Returns an array with more elements at its edges."""
    kinds = [mode] * x.aval.ndim if isinstance(mode, str) else list(mode)
    for axis, (pad, kind) in enumerate(zip(pads, kinds, strict=True)):
        if kind not in _MODES:
            known = ", ".join(f'"{m}"' for m in _MODES)
            raise ArgumentError(f"{name}: mode must be one of {known}, got {kind!r}")
        if pad == (0, 0) or not x.aval.size:
            continue
        widths = [(0, 0)] * x.aval.ndim
        widths[axis] = pad
        if _MODES[kind] == "constant":
            x = fnp.pad(x, widths, constant_values=fnp.asarray(cval, x.aval.dtype))
        else:
            x = fnp.pad(x, widths, _MODES[kind])
    return x


def _result(name: str, x: Array, output: Any) -> Array:
    if output is None:
        return x
    if isinstance(output, Array | np.ndarray):
        raise ArgumentError(f"{name}: arrays are immutable: output must be a dtype")
    return convert(x, dtypes.dtype(output))


def _around(name: str, size: int, origin: Any) -> tuple[int, int]:
    """Returns how many neighbours there are before and after an element."""
    origin = integer(name, "origin", origin)
    before = size // 2 + origin
    after = size - 1 - before
    if before < 0 or after < 0:
        raise ArgumentError(
            f"{name}: origin must lie in {-(size // 2)} … {(size - 1) // 2} for a "
            f"kernel of {size} elements, got {origin}"
        )
    return before, after


def _correlated(
    name: str, x: Array, weights: Array, origins: Sequence[Any], mode: Any, cval: Any
) -> Array:
    """Returns sums of products over neighbourhoods of all axes."""
    if not weights.aval.size:
        raise ShapeError(f"{name}: weights must have elements, got {weights.aval}")
    pads = [
        _around(name, n, o) for n, o in zip(weights.aval.shape, origins, strict=True)
    ]
    wide = _padded(name, x, pads, mode, cval)
    if not x.aval.size:
        return x
    d = x.aval.ndim
    if not d:
        return wide * weights
    out = lax.conv_general_dilated(
        lax.expand_dims(wide, (0, 1)),
        lax.expand_dims(weights, (0, 1)),
        (1,) * d,
        [(0, 0)] * d,
        precision="highest",
    )
    return lax.squeeze(out, (0, 1))


def _along(
    name: str, x: Array, weights: Array, axis: int, origin: Any, mode: Any, cval: Any
) -> Array:
    """Returns sums of products along one axis."""
    if weights.aval.ndim != 1 or not weights.aval.size:
        raise ShapeError(f"{name}: weights must be a vector, got {weights.aval}")
    n = weights.aval.size
    pads = [(0, 0)] * x.aval.ndim
    pads[axis] = _around(name, n, origin)
    wide = _padded(name, x, pads, mode, cval)
    if not x.aval.size:
        return x
    wide = fnp.moveaxis(wide, axis, -1)
    rows = fnp.reshape(wide, (-1, 1, wide.aval.shape[-1]))
    out = lax.conv_general_dilated(
        rows, weights[None, None], (1,), [(0, 0)], precision="highest"
    )
    out = fnp.reshape(out, (*wide.aval.shape[:-1], x.aval.shape[axis]))
    return fnp.moveaxis(out, -1, axis)


def _turned(size: int, origin: Any, name: str) -> int:
    """Returns the origin of a correlation that is a convolution with one of `size`."""
    return -integer(name, "origin", origin) - (size % 2 == 0)


@library("axis", "output", "mode", "origin")
@_docs
def correlate1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Returns the correlation with a kernel along one axis.

    Example:
      >>> correlate1d(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 2.0]))
      Array([ 5.,  9., 10.], dtype=float32)
    """
    x, w = promote_inexact("correlate1d", input, weights)
    axis = canonical_axis("correlate1d", axis, x.aval.ndim)
    out = _along("correlate1d", x, w, axis, origin, mode, cval)
    return _result("correlate1d", out, output)


@library("axis", "output", "mode", "origin")
@_docs
def convolve1d(
    input: ArrayLike,
    weights: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Returns the convolution with a kernel along one axis.

    Example:
      >>> convolve1d(np.array([1.0, 2.0, 4.0]), np.array([1.0, 0.0, 2.0]))
      Array([4., 6., 8.], dtype=float32)
    """
    x, w = promote_inexact("convolve1d", input, weights)
    axis = canonical_axis("convolve1d", axis, x.aval.ndim)
    origin = _turned(w.aval.size, origin, "convolve1d")
    out = _along("convolve1d", x, fnp.flip(w), axis, origin, mode, cval)
    return _result("convolve1d", out, output)


def _each(name: str, what: str, value: Any, count: int) -> list[Any]:
    """Returns an argument for each axis."""
    if isinstance(value, Array | np.ndarray) and value.ndim:
        value = list(value)
    if not isinstance(value, list | tuple):
        return [value] * count
    if len(value) != count:
        raise ArgumentError(
            f"{name}: {what} must be one or {count}, one for each axis, got {value!r}"
        )
    return list(value)


def by_axis(
    name: str, what: str, value: Any, axes: Sequence[int], ndim: int, other: Any
) -> tuple[Any, ...]:
    """Returns an argument for each axis of an array, `other` where it has none."""
    out = [other] * ndim
    for axis, one in zip(axes, _each(name, what, value, len(axes)), strict=True):
        out[axis] = one
    return tuple(out)


def _kernel_operands(
    name: str, input: Any, weights: Any, axes: Any, mode: Any, origin: Any
) -> tuple[Array, Array, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the array, and the kernel, modes and origins for all of its axes."""
    x, w = promote_inexact(name, input, weights)
    ndim = x.aval.ndim
    along = canonical_axes(name, hashable(axes), ndim, "axes")
    if len(along) != w.aval.ndim:
        what = "as many axes as input" if axes is None else f"{len(along)} axes"
        raise ShapeError(f"{name}: weights must have {what}, got {w.aval} for {x.aval}")
    w = fnp.transpose(w, [int(k) for k in np.argsort(along)])
    w = fnp.expand_dims(w, [k for k in range(ndim) if k not in along])
    modes = by_axis(name, "mode", mode, along, ndim, "reflect")
    return x, w, modes, by_axis(name, "origin", origin, along, ndim, None)


@library("output", "mode", "origin", "axes")
@_docs
def correlate(
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | tuple[int, ...] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the correlation with a kernel.

    Args:
      weights: array-like: the kernel, with an axis for each one of `axes`.

    Example:
      >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
      >>> correlate(x, np.array([[1.0, 1.0]]), mode="constant")
      Array([[1., 3.],
             [3., 7.]], dtype=float32)
    """
    name = "correlate"
    x, w, modes, given = _kernel_operands(name, input, weights, axes, mode, origin)
    origins = [0 if o is None else o for o in given]
    return _result(name, _correlated(name, x, w, origins, modes, cval), output)


@library("output", "mode", "origin", "axes")
@_docs
def convolve(
    input: ArrayLike,
    weights: ArrayLike,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | tuple[int, ...] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the convolution with a kernel.

    Args:
      weights: array-like: the kernel, with an axis for each one of `axes`.

    Example:
      >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
      >>> convolve(x, np.array([[1.0, 1.0]]), mode="constant")
      Array([[3., 2.],
             [7., 4.]], dtype=float32)
    """
    name = "convolve"
    x, w, modes, given = _kernel_operands(name, input, weights, axes, mode, origin)
    origins = [
        0 if o is None else _turned(n, o, name)
        for n, o in zip(w.aval.shape, given, strict=True)
    ]
    out = _correlated(name, x, lax.rev(w, range(w.aval.ndim)), origins, modes, cval)
    return _result(name, out, output)


# -- Gaussians -------------------------------------------------------------------------


def _gaussian(sigma: Any, order: int, radius: int, dtype: Any) -> Array:
    """Returns a Gaussian's weights, or those of its derivative."""
    sigma = fnp.asarray(sigma, dtypes.to_real(dtype))
    x = fnp.asarray(np.arange(-radius, radius + 1), sigma.dtype)
    square = sigma * sigma
    weights = fnp.exp(-(x * x) / (2 * square))
    weights = weights / fnp.sum(weights)
    # The derivative of q(x) w(x) is (q' - x q / sigma²) w: the coefficients of q.
    q = [fnp.ones_like(sigma)]
    for _ in range(order):
        slope = [k * c for k, c in enumerate(q)][1:]
        product = [fnp.zeros_like(sigma), *(-c / square for c in q)]
        slope += [fnp.zeros_like(sigma)] * (len(product) - len(slope))
        q = [s + p for s, p in zip(slope, product, strict=True)]
    factor = sum(c * x**k for k, c in enumerate(q))
    # Correlated rather than convolved: odd derivatives turn around.
    return convert(fnp.flip(factor * weights), dtype)


def _radius(name: str, sigma: Any, truncate: Any, radius: Any) -> int:
    if radius is not None:
        return natural(name, "radius", radius, 0)
    if isinstance(sigma, Tracer):
        raise ArgumentError(
            f"{name}: the kernel of a traced sigma needs its size: give radius"
        )
    width = number(name, "sigma", sigma)
    if not width > 0:
        raise ArgumentError(f"{name}: sigma must be positive, got {width}")
    return int(number(name, "truncate", truncate) * width + 0.5)


@_docs
def gaussian_filter1d(
    input: ArrayLike,
    sigma: ArrayLike,
    axis: int = -1,
    order: int = 0,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | None = None,
) -> Array:
    """Smooths along one axis by a Gaussian, or takes a derivative of that.

    Example:
      >>> x = np.array([0.0, 0.0, 1.0, 0.0, 0.0], np.float32)
      >>> gaussian_filter1d(x, 1.0, radius=1).round(3)
      Array([0.   , 0.274, 0.452, 0.274, 0.   ], dtype=float32)
    """
    name = "gaussian_filter1d"
    size = _radius(name, sigma, truncate, radius)
    order = natural(name, "order", order, 0)
    return _smoothed(input, (sigma,), (axis,), (order,), (size,), output, (mode,), cval)


@_docs
def gaussian_filter(
    input: ArrayLike,
    sigma: Any,
    order: int | Sequence[int] = 0,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | Sequence[int] | None = None,
    axes: Any = None,
) -> Array:
    """Smooths along axes by a Gaussian, or takes derivatives of that.

    Args:
      sigma: standard deviations, one or one for each axis; axes with a concrete 0 are
        left alone.

    Example:
      >>> x = np.zeros((3, 3), np.float32)
      >>> float(gaussian_filter(x + 1, 1.5)[1, 1])
      1.0
    """
    name = "gaussian_filter"
    (x,) = promote_inexact(name, input)
    along = canonical_axes(name, axes, x.ndim, "axes")
    count = len(along)
    rows = []
    for row in zip(
        along,
        _each(name, "sigma", sigma, count),
        _each(name, "order", order, count),
        _each(name, "mode", mode, count),
        _each(name, "radius", radius, count),
        strict=True,
    ):
        axis, width, derivative, kind, reach = row
        if not isinstance(width, Tracer) and float(width) == 0:
            continue
        size = _radius(name, width, truncate, reach)
        rows.append((width, axis, natural(name, "order", derivative, 0), size, kind))
    if not rows:
        return _result(name, x, output)
    widths, at, orders, sizes, kinds = zip(*rows, strict=True)
    return _smoothed(x, widths, at, orders, sizes, output, kinds, cval)


@library("axes", "orders", "sizes", "output", "modes")
def _smoothed(
    x: Any,
    sigmas: Any,
    axes: Any,
    orders: Any,
    sizes: Any,
    output: Any,
    modes: Any,
    cval: Any,
) -> Array:
    name = "gaussian_filter"
    (x,) = promote_inexact(name, x)
    for sigma, axis, order, size, mode in zip(
        sigmas, axes, orders, sizes, modes, strict=True
    ):
        weights = _gaussian(sigma, order, size, x.aval.dtype)
        axis = canonical_axis(name, axis, x.aval.ndim)
        x = _along(name, x, weights, axis, 0, mode, cval)
    return _result(name, x, output)


# -- means and differences -------------------------------------------------------------


@library("size", "axis", "output", "mode", "origin")
@_docs
def uniform_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Returns means of neighbourhoods along one axis.

    Example:
      >>> uniform_filter1d(np.array([0.0, 3.0, 6.0]), 3)
      Array([1., 3., 5.], dtype=float32)
    """
    name = "uniform_filter1d"
    (x,) = promote_inexact(name, input)
    axis = canonical_axis(name, axis, x.aval.ndim)
    size = natural(name, "size", size)
    weights = fnp.full(size, 1 / size, x.aval.dtype)
    return _result(name, _along(name, x, weights, axis, origin, mode, cval), output)


@_docs
def uniform_filter(
    input: ArrayLike,
    size: int | Sequence[int] = 3,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns means of neighbourhoods.

    Args:
      size: size of the neighbourhood, one or one for each axis.
      origin: one or one for each axis.

    Example:
      >>> round(float(uniform_filter(np.eye(3, dtype=np.float32))[1, 1]), 3)
      0.333
    """
    name = "uniform_filter"
    (x,) = promote_inexact(name, input)
    along = canonical_axes(name, hashable(axes), x.ndim, "axes")
    count = len(along)
    for axis, length, kind, moved in zip(
        along,
        _each(name, "size", size, count),
        _each(name, "mode", mode, count),
        _each(name, "origin", origin, count),
        strict=True,
    ):
        length = natural(name, "size", length)
        if length > 1:
            x = uniform_filter1d(x, length, axis, None, kind, cval, moved)
    return _result(name, x, output)


def _differences(
    name: str, x: Any, axis: Any, output: Any, mode: Any, cval: Any, smooth: Any
) -> Array:
    (x,) = promote_inexact(name, x)
    axis = canonical_axis(name, axis, x.aval.ndim)
    kinds = _each(name, "mode", mode, x.aval.ndim)
    steps = fnp.asarray([-1.0, 0.0, 1.0], x.aval.dtype)
    out = _along(name, x, steps, axis, 0, kinds[axis], cval)
    for other in range(x.aval.ndim):
        if other != axis:
            weights = fnp.asarray(smooth, x.aval.dtype)
            out = _along(name, out, weights, other, 0, kinds[other], cval)
    return _result(name, out, output)


@library("axis", "output", "mode")
@_docs
def sobel(
    input: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:
    """Returns differences along one axis, smoothed by 1, 2, 1 along the others.

    Example:
      >>> sobel(np.array([0.0, 1.0, 4.0]))
      Array([1., 4., 3.], dtype=float32)
    """
    return _differences("sobel", input, axis, output, mode, cval, [1.0, 2.0, 1.0])


@library("axis", "output", "mode")
@_docs
def prewitt(
    input: ArrayLike,
    axis: int = -1,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
) -> Array:
    """Returns differences along one axis, summed over 3 elements along the others.

    Example:
      >>> prewitt(np.array([0.0, 1.0, 4.0]))
      Array([1., 4., 3.], dtype=float32)
    """
    return _differences("prewitt", input, axis, output, mode, cval, [1.0, 1.0, 1.0])


@library("output", "mode", "axes")
@_docs
def laplace(
    input: ArrayLike,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the sum of second differences along axes.

    Example:
      >>> laplace(np.array([0.0, 1.0, 4.0]))
      Array([ 1.,  2., -3.], dtype=float32)
    """
    (x,) = promote_inexact("laplace", input)
    along = canonical_axes("laplace", hashable(axes), x.aval.ndim, "axes")
    kinds = _each("laplace", "mode", mode, len(along))
    if not kinds:
        return _result("laplace", x, output)  # a number as it is, as SciPy has it
    steps = fnp.asarray([1.0, -2.0, 1.0], x.aval.dtype)
    out = fnp.zeros_like(x)
    for axis, kind in zip(along, kinds, strict=True):
        out = out + _along("laplace", x, steps, axis, 0, kind, cval)
    return _result("laplace", out, output)


@_docs
def gaussian_laplace(
    input: ArrayLike,
    sigma: Any,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: Any = None,
    **options: Any,
) -> Array:
    """Returns the sum of second derivatives of a Gaussian's smoothing.

    Args:
      **options: `truncate` or `radius` of `gaussian_filter`.

    Example:
      >>> x = np.zeros(5, np.float32)
      >>> x[2] = 1
      >>> gaussian_laplace(x, 1.0, radius=1).round(3)
      Array([ 0.   ,  0.   , -0.452,  0.   ,  0.   ], dtype=float32)
    """
    (x,) = promote_inexact("gaussian_laplace", input)
    out = fnp.zeros_like(x)
    along = canonical_axes("gaussian_laplace", hashable(axes), x.ndim, "axes")
    options["axes"] = along
    for axis in along:
        order = [2 if k == axis else 0 for k in along]
        out = out + gaussian_filter(x, sigma, order, None, mode, cval, **options)
    return _result("gaussian_laplace", out, output)


@_docs
def gaussian_gradient_magnitude(
    input: ArrayLike,
    sigma: Any,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    *,
    axes: Any = None,
    **options: Any,
) -> Array:
    """Returns the length of the gradient of a Gaussian's smoothing.

    Args:
      axes: the parts of the gradient that count; None is all. `input` is smoothed along
        every axis.
      **options: `truncate` or `radius` of `gaussian_filter`.

    Special cases:
      The derivative of a length of 0 is 0.

    Example:
      >>> x = np.arange(9, dtype=np.float32) * 2
      >>> round(float(gaussian_gradient_magnitude(x, 1.0)[4]), 2)
      2.0
    """
    name = "gaussian_gradient_magnitude"
    (x,) = promote_inexact(name, input)
    square = fnp.zeros_like(x)
    along = canonical_axes(name, hashable(axes), x.ndim, "axes")
    for axis in along:
        order = [1 if k == axis else 0 for k in range(x.ndim)]
        slope = gaussian_filter(x, sigma, order, None, mode, cval, **options)
        square = square + slope * slope
    away = square != 0
    root = fnp.where(away, fnp.sqrt(fnp.where(away, square, 1)), square)
    return _result(name, root, output)
