"""Filters whose function, or whose derivatives, the caller gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axes, canonical_axis, hashable, natural
from fxflow.numpy._operands import ArrayLike, array_of, promote_inexact
from fxflow.scipy.ndimage._neighbourhoods import (
    Footprint,
    bits_of,
    neighbourhood,
    views,
)
from fxflow.scipy.ndimage.filters import _around, _each, _padded, _result
from fxflow.transforms.vmap import vmap

_docs = shared("""
    Args:
      input: array-like[...]: integers become floats.
      output: dtype of the result; None is that of what the function returns.
      mode: how the array is extended beyond its edges: "reflect" reverses it and
        repeats the edge; "mirror" reverses it without repeating the edge; "nearest"
        repeats the edge; "wrap" repeats the array; "constant" fills with `cval`;
        functions of several axes take a sequence too, one for each axis.
      cval: a number.
      origin: offset of the neighbourhood in elements: 0 is centered, positive numbers
        move the result to the right.
      extra_arguments: extra arguments of the function.
      extra_keywords: keyword arguments of the function.
      axes: the axes; None is all.

    Returns:
      Array of the shape of `input`.

    Raises:
      ArgumentError: unknown mode, `origin` is beyond the neighbourhood, `output` is an
        array, or a size is not positive.
      AxisError: an axis is out of range.
      ShapeError: the function returns the wrong shape.

    Source: `scipy.ndimage.{name}`; the function is traced once, so that it must be one
    of fxflow's arrays, and the result can be differentiated.
""")


def _call(
    name: str, function: Any, arguments: Sequence[Any], keywords: Any
) -> Callable[..., Any]:
    """Returns a function with its further arguments.

    Raises:
      ArgumentError: it is not a function.
    """
    if not callable(function):
        raise ArgumentError(f"{name}: takes a function, got {function!r}")
    known = {} if keywords is None else dict(keywords)
    return lambda *given: function(*given, *arguments, **known)


def _shaped(name: str, found: Any, shape: tuple[int, ...], what: str) -> Array:
    out = fnp.asarray(found)
    if out.shape != shape:
        raise ShapeError(
            f"{name}: the function must return {what} of shape {shape}, got {out.aval}"
        )
    return out


def _neighbours(
    name: str,
    x: Array,
    footprint: Footprint,
    origins: Sequence[Any],
    modes: Sequence[Any],
    cval: Any,
) -> Array:
    """Returns the elements of each neighbourhood, [..., elements of the footprint]."""
    return fnp.stack(views(name, x, footprint, origins, modes, cval), -1)


@_docs
def generic_filter(
    input: ArrayLike,
    function: Callable[..., Any],
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | tuple[int, ...] = 0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """Returns a function of the neighbourhood of each element.

    Args:
      function: of a vector of the elements of a neighbourhood, in the order of rows; it
        returns a number.
      size: size of the neighbourhood, one number or one for each axis.
      footprint: bool array-like: which elements belong to the neighbourhood, in place
        of `size`.

    Raises:
      ArgumentError: there is neither a size nor a footprint.

    Example:
      >>> x = np.array([1.0, 5.0, 2.0, 4.0])
      >>> generic_filter(x, lambda v: v.max() - v.min(), 3)
      Array([4., 4., 3., 2.], dtype=float32)
    """
    name = "generic_filter"
    x = array_of(input, name)
    (x,) = promote_inexact(name, x)
    one = _call(name, function, extra_arguments, extra_keywords)
    found, origins, modes = neighbourhood(name, x, axes, size, footprint, origin, mode)
    if not x.size:
        return _result(name, x, output)
    near = _neighbours(name, x, found, origins, modes, cval)
    rows = fnp.reshape(near, (x.size, near.shape[-1]))
    out = vmap(lambda v: _shaped(name, one(v), (), "a number,"))(rows)
    return _result(name, fnp.reshape(out, x.shape), output)


@_docs
def vectorized_filter(
    input: ArrayLike,
    function: Callable[..., Any],
    *,
    size: Any = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike | None = None,
    origin: int | tuple[int, ...] = 0,
    axes: Any = None,
    batch_memory: int | None = None,
) -> Array:
    """Returns a reduction of the neighbourhood of each element.

    Args:
      function: of an array and `axis`, that reduces these axes, as `fnp.mean`; it is
        called once, with all neighbourhoods.
      size: size of the neighbourhood, one number or one for each axis.
      footprint: bool array-like: which elements belong to the neighbourhood, in place
        of `size`; the function then reduces one axis.
      batch_memory: has no effect.
      cval: a number; None is 0.

    Raises:
      ArgumentError: there is neither a size nor a footprint.

    Example:
      >>> vectorized_filter(np.array([1.0, 5.0, 2.0, 4.0]), fnp.max, size=3)
      Array([5., 5., 5., 4.], dtype=float32)
    """
    name = "vectorized_filter"
    if not callable(function):
        raise ArgumentError(f"{name}: takes a function, got {function!r}")
    x = array_of(input, name)
    (x,) = promote_inexact(name, x)
    ndim = x.ndim
    found, origins, modes = neighbourhood(name, x, axes, size, footprint, origin, mode)
    if not x.size:
        return _result(name, x, output)
    near = _neighbours(name, x, found, origins, modes, 0.0 if cval is None else cval)
    last: tuple[int, ...] = (-1,)
    if footprint is None:
        along = canonical_axes(name, hashable(axes), ndim, "axes")
        sizes = [bits_of(found).shape[k] for k in along]
        near = fnp.reshape(near, (*x.shape, *sizes))
        last = tuple(range(-len(sizes), 0))
    out = function(near, axis=last if len(last) > 1 else last[0])
    return _result(name, _shaped(name, out, x.shape, "an array"), output)


@_docs
def generic_filter1d(
    input: ArrayLike,
    function: Callable[..., Any],
    filter_size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: dict[str, Any] | None = None,
) -> Array:
    """Returns a function of each line of an array.

    Args:
      function: of a line of n + filter_size - 1 elements, the edges with it; it returns
        the line of the result, of n elements (SciPy's writes into an argument).
      filter_size: how many elements of a line one of the result depends on.
      axis: along which the lines are.

    Example:
      >>> x = np.array([1.0, 5.0, 2.0, 4.0])
      >>> generic_filter1d(x, lambda line: line[2:] - line[:-2], 3)
      Array([ 4.,  1., -1.,  2.], dtype=float32)
    """
    name = "generic_filter1d"
    x = array_of(input, name)
    (x,) = promote_inexact(name, x)
    one = _call(name, function, extra_arguments, extra_keywords)
    axis = canonical_axis(name, axis, x.ndim)
    size = natural(name, "filter_size", filter_size)
    pads = [(0, 0)] * x.ndim
    pads[axis] = _around(name, size, origin)
    if not x.size:
        return _result(name, x, output)
    wide = fnp.moveaxis(_padded(name, x, pads, mode, cval), axis, -1)
    rows = fnp.reshape(wide, (-1, wide.shape[-1]))
    n = x.shape[axis]
    out = vmap(lambda line: _shaped(name, one(line), (n,), "a line"))(rows)
    out = fnp.reshape(out, (*wide.shape[:-1], n))
    return _result(name, fnp.moveaxis(out, -1, axis), output)


def _derivatives(
    name: str,
    input: ArrayLike,
    function: Any,
    mode: Any,
    cval: Any,
    arguments: Sequence[Any],
    keywords: Any,
    axes: Any,
) -> list[Array]:
    """Returns what a function says of an array and each one of its axes."""
    x = array_of(input, name)
    (x,) = promote_inexact(name, x)
    one = _call(name, function, arguments, keywords)
    along = canonical_axes(name, hashable(axes), x.ndim, "axes")
    modes = _each(name, "mode", mode, len(along))
    found = [
        _shaped(name, one(x, axis, None, kind, cval), x.shape, "an array")
        for axis, kind in zip(along, modes, strict=True)
    ]
    # SciPy's answer where there is no axis.
    return found or [x]


@_docs
def generic_gradient_magnitude(
    input: ArrayLike,
    derivative: Callable[..., Any],
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """Returns the length of the gradient, of given derivatives along the axes.

    Args:
      derivative: function of an array, an axis, None (SciPy's output), a mode and
        `cval` that returns an array, as `sobel`.

    Special cases:
      The derivative of a length of 0 is nan.

    Example:
      >>> from fxflow.scipy import ndimage
      >>> x = np.array([0.0, 1.0, 3.0])
      >>> generic_gradient_magnitude(x, ndimage.sobel)
      Array([1., 3., 2.], dtype=float32)
    """
    name = "generic_gradient_magnitude"
    slopes = _derivatives(
        name, input, derivative, mode, cval, extra_arguments, extra_keywords, axes
    )
    total = fnp.square(slopes[0])
    for slope in slopes[1:]:
        total = total + fnp.square(slope)
    return _result(name, fnp.sqrt(total), output)


@_docs
def generic_laplace(
    input: ArrayLike,
    derivative2: Callable[..., Any],
    output: Any = None,
    mode: str | tuple[str, ...] = "reflect",
    cval: ArrayLike = 0.0,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: dict[str, Any] | None = None,
    *,
    axes: Any = None,
) -> Array:
    """Returns the sum of given second derivatives along the axes.

    Args:
      derivative2: function of an array, an axis, None (SciPy's output), a mode and
        `cval` that returns an array.

    Example:
      >>> from fxflow.scipy import ndimage
      >>> weights = np.array([1.0, -2.0, 1.0])
      >>> def second(x, axis, output, mode, cval):
      ...     return ndimage.correlate1d(x, weights, axis, output, mode, cval)
      >>> generic_laplace(np.array([0.0, 1.0, 3.0]), second)
      Array([ 1.,  1., -2.], dtype=float32)
    """
    name = "generic_laplace"
    parts = _derivatives(
        name, input, derivative2, mode, cval, extra_arguments, extra_keywords, axes
    )
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return _result(name, total, output)
