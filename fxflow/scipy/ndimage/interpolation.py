"""Arrays between their elements: splines, and the images that are read from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis, distinct_axes, natural, number
from fxflow.lax.axes import shape_or_length as _shape
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
)
from fxflow.scipy.ndimage._splines import COEFFICIENTS, prefiltered, taps
from fxflow.scipy.ndimage.filters import _each, _result
from fxflow.transforms.vmap import vmap

#: Elements that are added before a spline's coefficients where the samples go on as
#: constants, for which there is no exact recursion: SciPy's number.
_BESIDE = 12

#: What JAX means by two of SciPy's modes.
_GRID = {"constant": "grid-constant", "wrap": "grid-wrap"}

_docs = shared("""
    Args:
      input: array-like[...]: samples; real or complex.
      order: order of the spline: 0, the nearest sample, 1, linear interpolation, to 5.
      output: dtype of the result; None: that of `input`.
      output_shape: of the result; None: that of `input`.
      mode: how the array is extended beyond its edges: "constant", `cval`;
        "grid-constant", `cval`, which is interpolated to between an edge and one
        element beyond; "nearest", the element at the edge; "mirror", the array
        backwards, the edge once; "reflect" or "grid-mirror", backwards, the edge twice;
        "grid-wrap", the array again; "wrap", the array again with the last element in
        place of the first one.
      cval: a number.
      prefilter: whether `input` has samples, from which the spline's coefficients are
        computed; without it, they are what is given.

    Raises:
      ArgumentError: unknown order or mode, or `output` is an array.
      ShapeError: the shapes are incompatible.

    Source: `scipy.ndimage.{name}`; integers are rounded, halves away from 0.
""")


def _order(name: str, order: Any, least: int = 0) -> int:
    order = natural(name, "order", order, 0)
    if not least <= order <= 5:
        raise ArgumentError(f"{name}: order must be in {least} … 5, got {order}")
    return int(order)


def _require_mode(name: str, mode: Any) -> None:
    if mode not in COEFFICIENTS:
        known = ", ".join(f'"{m}"' for m in COEFFICIENTS)
        raise ArgumentError(f"{name}: mode must be one of {known}, got {mode!r}")


# -- coefficients ----------------------------------------------------------------------


@library("order", "axis", "output", "mode")
@_docs
def spline_filter1d(
    input: ArrayLike,
    order: int = 3,
    axis: int = -1,
    output: Any = None,
    mode: str = "mirror",
) -> Array:
    """Returns the coefficients of splines along one axis.

    Args:
      output: dtype of the result; None is the samples', or a float one for integers.
      axis: the axis.
      mode: how the samples go on: "mirror", "reflect" or "grid-wrap"; other modes of
        `map_coordinates` stand for "mirror", and "nearest" for "reflect".

    Returns:
      Float or complex array of the shape of `input`.

    Example:
      >>> spline_filter1d(np.array([0.0, 1.0, 0.0])).round(3)
      Array([-0.5,  1. , -0.5], dtype=float32)
    """
    name = "spline_filter1d"
    (x,) = promote_inexact(name, input)
    order = _order(name, order)
    _require_mode(name, mode)
    if not x.aval.ndim:
        return _result(name, x, output)  # a number as it is, as SciPy has it
    axis = canonical_axis(name, axis, x.aval.ndim)
    return _result(name, prefiltered(x, order, axis, COEFFICIENTS[mode]), output)


@library("order", "output", "mode")
@_docs
def spline_filter(
    input: ArrayLike, order: int = 3, output: Any = None, mode: str = "mirror"
) -> Array:
    """Returns the coefficients of splines along all axes.

    Args:
      order: order of the splines, 2 to 5.
      output: dtype of the result; None is the samples', or a float one for integers.
      mode: how the samples go on; see `spline_filter1d`.

    Returns:
      Float or complex array of the shape of `input`.

    Example:
      >>> spline_filter(np.eye(2)).round(3)
      Array([[ 2.5, -1.5],
             [-1.5,  2.5]], dtype=float32)
    """
    name = "spline_filter"
    (x,) = promote_inexact(name, input)
    order = _order(name, order, 2)
    _require_mode(name, mode)
    for axis in range(x.aval.ndim):
        x = prefiltered(x, order, axis, COEFFICIENTS[mode])
    return _result(name, x, output)


# -- reading ---------------------------------------------------------------------------


def _inside(c: Any, n: int, mode: str) -> tuple[Any, Any]:
    """Returns places brought back to an axis, and whether they are lost (or None)."""
    xp: Any = np if isinstance(c, np.ndarray) else fnp
    if mode == "constant":
        # A rounding error at an edge, which a compiled program may have or not, does
        # not decide.
        near = 8 * n * float(np.finfo(c.dtype).eps)
        lost = ~((c >= -near) & (c <= n - 1 + near))
        return xp.clip(c, 0, n - 1), lost
    if mode == "nearest":
        return xp.clip(c, -_BESIDE, n - 1 + _BESIDE), None
    if mode == "grid-constant":
        return xp.clip(c, -_BESIDE, n - 1 + _BESIDE), None
    if mode == "mirror":
        period = max(2 * (n - 1), 1)
        c = xp.mod(c, period)
        return xp.minimum(c, period - c) if n > 1 else c * 0, None
    if mode in ("reflect", "grid-mirror"):
        c = xp.mod(c + 0.5, 2 * n)
        return xp.minimum(c, 2 * n - c) - 0.5, None
    period = n if mode == "grid-wrap" else n - 1
    if not period:
        return c * 0, None
    turned = xp.mod(c, period)
    # Places on the axis stay where they are, its end too.
    return xp.where((c >= 0) & (c <= n - 1), c, turned), None


#: What `numpy.pad` calls the boundaries between which coefficients are read.
_READ = {**COEFFICIENTS, "nearest": "edge", "grid-constant": "constant"}


def _coefficients(
    x: Array, axes: Sequence[int], order: int, mode: str, cval: Any, prefilter: bool
) -> tuple[Array, int]:
    """Returns coefficients, more of them at both ends, and how many more."""
    more = order // 2 + 1
    beside = 0
    if mode in ("nearest", "grid-constant"):
        beside = _BESIDE + more
    widths = [(0, 0)] * x.aval.ndim

    def padded(x: Array, by: int) -> Array:
        each = list(widths)
        for axis in axes:
            each[axis] = (by, by)
        if _READ[mode] == "constant":
            return fnp.pad(x, each, constant_values=cval)
        return fnp.pad(x, each, _READ[mode])

    if beside:
        x = padded(x, beside)
    if prefilter and order > 1:
        for axis in axes:
            x = prefiltered(x, order, axis, COEFFICIENTS[mode])
    if not beside:
        beside = more
        x = padded(x, more)
    return x, beside


def _operand(name: str, input: Any, order: int, *places: Any) -> list[Array]:
    """Returns samples in a dtype that interpolation has, and places."""
    x = array_of(input, name)
    given = [promote_inexact(name, p)[0] for p in places]
    if not order:
        return [x, *given]
    x, *given = promote_inexact(name, *promote_dtypes(name, x, *given))
    return [x, *(fnp.real(p) for p in given)]


def _finished(
    name: str, out: Array, lost: Any, cval: Any, dtype: Any, output: Any
) -> Array:
    """Puts `cval` where places are lost, and rounds to integers."""
    if lost is not None:
        out = fnp.where(lost, cval, out)
    if output is not None:
        _result(name, fnp.zeros(0), output)  # refuses arrays
        dtype = dtypes.dtype(output)
    if dtypes.is_integer(dtype) and dtypes.is_floating(out.aval.dtype):
        out = lax.round(out)  # halves go away from 0
    return convert(out, dtype)


def _outside(name: str, cval: Any, x: Array) -> Array:
    """Returns what is beyond the edges, in the dtype of the samples."""
    value = array_of(cval, name)
    integer = dtypes.is_integer(x.aval.dtype)
    if integer and dtypes.is_floating(value.aval.dtype):
        value = lax.round(value)
    return convert(value, x.aval.dtype)


def _gathered(
    x: Array, places: Sequence[Array], order: int, mode: str, cval: Any, prefilter: bool
) -> tuple[Array, Any]:
    """Reads the last axes of an array at places, [..., *places]."""
    d = len(places)
    axes = range(x.aval.ndim - d, x.aval.ndim)
    sizes = x.aval.shape[x.aval.ndim - d :]
    wide, beside = _coefficients(x, axes, order, mode, cval, prefilter)
    shape = wide.aval.shape[wide.aval.ndim - d :]
    flat = fnp.reshape(wide, (*wide.aval.shape[: wide.aval.ndim - d], -1))
    start: Any = 0
    lost: Any = None
    rows = []
    for c, n, length in zip(places, sizes, shape, strict=True):
        c, beyond = _inside(c, n, mode)
        first, weights = taps(c, order)
        first = convert(first, dtypes.int32) + beside
        # A nan has no place: its weights are nan, too.
        first = fnp.clip(first, 0, length - order - 1)
        start = start * length + first
        rows.append(weights)
        if beyond is not None:
            lost = beyond if lost is None else lost | beyond
    strides = [math.prod(shape[k + 1 :]) for k in range(d)]
    out: Any = 0
    for corner in itertools.product(range(order + 1), repeat=d):
        at = start + sum(k * s for k, s in zip(corner, strides, strict=True))
        value = flat.at[..., at].get(
            mode="promise_in_bounds", wrap_negative_indices=False
        )
        if not order:
            return value, lost
        weight = rows[0][corner[0]]
        for row, k in zip(rows[1:], corner[1:], strict=True):
            weight = weight * row[k]
        out = out + value * weight
    return out, lost


def _separate(
    x: Array, places: Sequence[Any], order: int, mode: str, cval: Any, prefilter: bool
) -> tuple[Array, Any]:
    """Reads each axis at its own places: the result is a grid of them."""
    d = x.aval.ndim
    sizes = x.aval.shape
    x, beside = _coefficients(x, range(d), order, mode, cval, prefilter)
    lost: Any = None
    for axis, (c, n) in enumerate(zip(places, sizes, strict=True)):
        c, beyond = _inside(c, n, mode)
        first, weights = taps(c, order)
        start = convert(fnp.asarray(first), dtypes.int32) + beside
        start = fnp.clip(start, 0, x.aval.shape[axis] - order - 1)
        line = [1] * d
        line[axis] = -1
        out: Any = 0
        for k, weight in enumerate(weights):
            value = fnp.take(x, start + k, axis, mode="promise_in_bounds")
            if order:
                real = dtypes.to_real(x.aval.dtype)
                value = value * fnp.reshape(fnp.asarray(weight, real), line)
                out = out + value
            else:
                out = value
        x = out
        if beyond is not None:
            row = fnp.reshape(fnp.asarray(beyond), line)
            lost = row if lost is None else lost | row
    return x, lost


@library("order", "mode", "output", "prefilter")
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[Any],
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    *,
    output: Any = None,
    prefilter: bool = True,
) -> Array:
    """Reads an array at places between its elements.

    Args:
      input: array-like[...].
      coordinates: for each axis of `input` a real array-like[*s]: where to read. Or one
        array of them.
      order: order of the spline: 0, the nearest element, the next one at halves, 1,
        linear interpolation, to 5.
      mode: how the array is extended beyond its edges: "constant", `cval`;
        "grid-constant", `cval`, which is interpolated to between an edge and one
        element beyond; "nearest", the element at the edge; "mirror", the array
        backwards, the edge once; "reflect" or "grid-mirror", backwards, the edge twice;
        "grid-wrap", the array again; "wrap", the array again with the last element in
        place of the first one. For orders 0 and 1 "constant" is "grid-constant", and
        "wrap" is "grid-wrap", as in JAX.
      cval: a number.
      output: dtype of the result; None: that of `input`.
      prefilter: whether `input` has samples, from which the spline's coefficients are
        computed; without it, they are what is given.

    Returns:
      Array[*s] of the dtype of `input`; integers are rounded, halves away from 0.

    Raises:
      ArgumentError: unknown order or mode.
      ShapeError: there are not as many coordinates as axes.

    Example:
      >>> x = np.array([0.0, 10.0, 20.0])
      >>> map_coordinates(x, [np.array([0.5, 1.75, 3.0])], 1)
      Array([ 5. , 17.5,  0. ], dtype=float32)

    Source: `scipy.ndimage.map_coordinates`, but for what `mode` says of JAX.
    """
    name = "map_coordinates"
    order = _order(name, order)
    _require_mode(name, mode)
    if order < 2:
        mode = _GRID.get(mode, mode)
    dtype = array_of(input, name).aval.dtype
    x, *places = _operand(name, input, order, *coordinates)
    if len(places) != x.aval.ndim:
        raise ShapeError(
            f"{name}: there must be coordinates for each axis of {x.aval}, got "
            f"{len(places)}"
        )
    outside = _outside(name, cval, x)
    if not places:
        return _finished(name, x, None, outside, dtype, output)
    places = list(fnp.broadcast_arrays(*places))
    if not x.aval.size:
        out = fnp.full(places[0].aval.shape, outside)
        return _finished(name, out, None, outside, dtype, output)
    out, lost = _gathered(x, places, order, mode, outside, prefilter)
    return _finished(name, out, lost, outside, dtype, output)


# -- images of images ------------------------------------------------------------------


@library("output", "order", "mode", "prefilter")
@_docs
def shift(
    input: ArrayLike,
    shift: Any,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Moves an array by parts of elements.

    Args:
      shift: by how many elements to the right: one real number or one for each axis; it
        may be traced, and differentiated.

    Returns:
      Array of the shape of `input`.

    Example:
      >>> shift(np.array([0.0, 2.0, 4.0, 6.0]), 0.5, order=1)
      Array([0., 1., 3., 5.], dtype=float32)
    """
    name = "shift"
    order = _order(name, order)
    _require_mode(name, mode)
    dtype = array_of(input, name).aval.dtype
    ndim = array_of(input, name).aval.ndim
    moved = _each(name, "shift", shift, ndim)
    x, *by = _operand(name, input, order, *moved)
    outside = _outside(name, cval, x)
    if not x.aval.size:
        return _finished(name, x, None, outside, dtype, output)
    places = []
    for n, s in zip(x.aval.shape, by, strict=True):
        places.append(fnp.arange(n, dtype=s.aval.dtype) - s)
    out, lost = _separate(x, places, order, mode, outside, prefilter)
    return _finished(name, out, lost, outside, dtype, output)


@library("zoom", "output", "order", "mode", "prefilter", "grid_mode")
def _zoomed(
    input: Any,
    zoom: tuple[float, ...],
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
    grid_mode: bool,
) -> Array:
    name = "zoom"
    dtype = array_of(input, name).aval.dtype
    (x,) = _operand(name, input, order)
    outside = _outside(name, cval, x)
    shape = tuple(round(n * z) for n, z in zip(x.aval.shape, zoom, strict=True))
    if not x.aval.size or 0 in shape:
        return _finished(name, fnp.zeros(shape, x.aval.dtype), None, 0, dtype, output)
    places = []
    for n, m in zip(x.aval.shape, shape, strict=True):
        if grid_mode:
            places.append((np.arange(m) + 0.5) * (n / m) - 0.5)
        else:
            step = (n - 1) / (m - 1) if m > 1 else 1.0
            places.append(np.minimum(np.arange(m) * step, n - 1))
    out, lost = _separate(x, places, order, mode, outside, prefilter)
    return _finished(name, out, lost, outside, dtype, output)


@_docs
def zoom(
    input: ArrayLike,
    zoom: float | Sequence[float],
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
    *,
    grid_mode: bool = False,
) -> Array:
    """Makes an array larger or smaller.

    Args:
      zoom: by which factor: one positive number or one for each axis.
      grid_mode: whether elements are cells, whose edges are kept, instead of points, of
        which the first and the last one are.

    Returns:
      Array whose axes have round(n zoom) elements.

    Example:
      >>> zoom(np.array([0.0, 2.0, 4.0]), 5 / 3, order=1)
      Array([0., 1., 2., 3., 4.], dtype=float32)
    """
    name = "zoom"
    _require_mode(name, mode)
    order = _order(name, order)
    ndim = array_of(input, name).ndim
    factors = _each(name, "zoom", zoom, ndim)
    factors = [number(name, "zoom", z) for z in factors]
    if not all(z > 0 for z in factors):
        raise ArgumentError(f"{name}: zoom must be positive, got {zoom!r}")
    return _zoomed(
        *(input, tuple(factors), output, order, mode, cval, prefilter, bool(grid_mode))
    )


def _affine(name: str, matrix: Any, offset: Any, d: int) -> tuple[Array, Array]:
    """Returns a matrix [d, d], or [d] for a diagonal one, and an offset [d]."""
    (m,) = promote_inexact(name, fnp.asarray(matrix))
    offset = fnp.asarray(offset)
    shape = m.aval.shape
    if shape in ((d, d + 1), (d + 1, d + 1)) and shape != (d, d):
        if shape[0] == d + 1 and not isinstance(m, Tracer):
            last = np.asarray(m)[-1]
            if not np.array_equal(last, [0] * d + [1]):
                raise ArgumentError(
                    f"{name}: the last row of a homogeneous matrix must be "
                    f"{[0] * d + [1]}, got {last.tolist()}"
                )
        m, offset = m[:d, :d], m[:d, d]
    elif shape not in ((d,), (d, d)):
        raise ShapeError(
            f"{name}: matrix must have shape ({d},), ({d}, {d}), ({d}, {d + 1}) or "
            f"({d + 1}, {d + 1}) for an input of {d} axes, got {m.aval}"
        )
    if offset.aval.shape not in ((), (d,)):
        raise ShapeError(
            f"{name}: offset must be one or {d} numbers, got {offset.aval}"
        )
    return m, fnp.broadcast_to(offset, (d,))


@library("output_shape", "output", "order", "mode", "prefilter")
def _transformed(
    name: str,
    x: Any,
    matrix: Any,
    offset: Any,
    output_shape: Any,
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
) -> Array:
    """Reads the last axes at matrix · place + offset."""
    dtype = array_of(x, name).aval.dtype
    x, m, start = _operand(name, x, order, matrix, offset)
    real = m.aval.dtype
    d = len(output_shape)
    outside = _outside(name, cval, x)
    outer = x.aval.shape[: x.aval.ndim - d]
    if 0 in (*x.aval.shape, *output_shape):
        out = fnp.full((*outer, *output_shape), outside)
        return _finished(name, out, None, outside, dtype, output)
    if m.aval.ndim == 1:
        places = [
            m[k] * fnp.arange(n, dtype=real) + start[k]
            for k, n in enumerate(output_shape)
        ]
        out, lost = _separate(x, places, order, mode, outside, prefilter)
        return _finished(name, out, lost, outside, dtype, output)
    grid = np.indices(output_shape).reshape(d, -1)
    at = fnp.matmul(m, fnp.asarray(grid, real), precision="highest") + start[:, None]
    places = list(fnp.reshape(at, (d, *output_shape)))
    out, lost = _gathered(x, places, order, mode, outside, prefilter)
    return _finished(name, out, lost, outside, dtype, output)


@_docs
def affine_transform(
    input: ArrayLike,
    matrix: Any,
    offset: Any = 0.0,
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Reads an array at matrix · place + offset, for each place of the result.

    Args:
      matrix: real array-like[d, d], [d] for a diagonal one, or [d, d + 1] or
        [d + 1, d + 1] with the offset in its last column; it may be traced, and
        differentiated.
      offset: real array-like[] or [d], likewise.

    Returns:
      Array of `output_shape`.

    Example:
      >>> x = np.array([[1.0, 2.0], [3.0, 4.0]])
      >>> affine_transform(x, np.array([[0.0, 1.0], [1.0, 0.0]]), order=1)
      Array([[1., 3.],
             [2., 4.]], dtype=float32)
    """
    name = "affine_transform"
    _require_mode(name, mode)
    order = _order(name, order)
    shape = array_of(input, name).shape
    m, start = _affine(name, matrix, offset, len(shape))
    shape = shape if output_shape is None else _shape(name, output_shape)
    if len(shape) != array_of(input, name).ndim:
        raise ShapeError(
            f"{name}: output_shape must have as many axes as input, "
            f"{array_of(input, name).ndim}, got {shape}"
        )
    if not shape:
        return _finished(
            name, array_of(input, name), None, 0, array_of(input, name).dtype, output
        )
    return _transformed(
        *(name, input, m, start, shape, output, order, mode, cval, bool(prefilter))
    )


@_docs
def rotate(
    input: ArrayLike,
    angle: Any,
    axes: Sequence[int] = (1, 0),
    reshape: bool = True,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
) -> Array:
    """Turns an array in the plane of two axes.

    Args:
      angle: in degrees; with reshape=False it may be traced, and differentiated.
      axes: axes of the plane.
      reshape: whether the result is large enough for all of the turned array.

    Returns:
      Array with other lengths of the two axes if `reshape` is set.

    Raises:
      ArgumentError: there are not two different axes, or `reshape` is set and the angle
        is traced.

    Example:
      >>> rotate(np.array([[1.0, 2.0], [3.0, 4.0]]), 90, order=1)
      Array([[2., 4.],
             [1., 3.]], dtype=float32)
    """
    name = "rotate"
    _require_mode(name, mode)
    order = _order(name, order)
    x = array_of(input, name)
    if x.ndim < 2:
        raise ShapeError(f"{name}: input must have at least two axes, got {x.aval}")
    plane = sorted(distinct_axes(name, axes, x.ndim, "axes"))
    if len(plane) != 2:
        raise ArgumentError(f"{name}: axes must be two different axes, got {axes!r}")
    size = np.array([x.shape[k] for k in plane])
    xp: Any = np
    if isinstance(angle, Tracer):
        if reshape:
            raise ArgumentError(
                f"{name}: the shape of the result depends on angle, which is traced: "
                "set reshape=False"
            )
        xp = fnp
        turn = angle * (math.pi / 180)
        c: Any = fnp.cos(turn)
        s: Any = fnp.sin(turn)
    else:
        # Right angles are exact: quarters of a turn are taken out first.
        degrees = number(name, "angle", angle)
        quarters = round(degrees / 90)
        rest = math.radians(degrees - 90 * quarters)
        c, s = math.cos(rest), math.sin(rest)
        for _ in range(quarters % 4):
            c, s = -s, c
        c, s = c + 0.0, s + 0.0
    matrix = xp.stack([xp.stack([c, s]), xp.stack([-s, c])])
    out_size = size
    if reshape:
        corners = matrix @ np.array(
            [[0, 0, size[0], size[0]], [0, size[1], 0, size[1]]]
        )
        out_size = (np.ptp(corners, axis=1) + 0.5).astype(int)
    offset = (size - 1) / 2 - matrix @ ((out_size - 1) / 2)
    moved = fnp.moveaxis(x, plane, (-2, -1))
    shape = tuple(int(n) for n in out_size)
    out = _transformed(
        *(name, moved, fnp.asarray(matrix), fnp.asarray(offset), shape, output),
        *(order, mode, cval, bool(prefilter)),
    )
    return fnp.moveaxis(out, (-2, -1), plane)


@_docs
def geometric_transform(
    input: ArrayLike,
    mapping: Callable[..., Sequence[Any]],
    output_shape: Any = None,
    output: Any = None,
    order: int = 3,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
    prefilter: bool = True,
    extra_arguments: Sequence[Any] = (),
    extra_keywords: dict[str, Any] | None = None,
) -> Array:
    """Reads an array where a function says, for each place of the result.

    Args:
      mapping: function of a tuple of numbers, a place in the result, that returns a
        place in `input`; it is traced once, under `vmap`.
      extra_arguments: extra arguments of it.
      extra_keywords: keyword arguments of it.

    Returns:
      Array of `output_shape`.

    Example:
      >>> x = np.array([0.0, 1.0, 4.0, 9.0])
      >>> geometric_transform(x, lambda at: (at[0] - 0.5,), order=1)
      Array([0. , 0.5, 2.5, 6.5], dtype=float32)
    """
    name = "geometric_transform"
    _require_mode(name, mode)
    order = _order(name, order)
    x = array_of(input, name)
    shape = x.shape if output_shape is None else _shape(name, output_shape)
    keywords = {} if extra_keywords is None else extra_keywords
    real = dtypes.to_real(promote_inexact(name, x)[0].dtype)
    grid = np.indices(shape).reshape(len(shape), -1)

    def place(*at: Any) -> Array:
        found = mapping(at, *extra_arguments, **keywords)
        if len(found) != x.ndim:
            raise ShapeError(
                f"{name}: mapping must return a coordinate for each of {x.ndim} axes, "
                f"got {len(found)}"
            )
        return fnp.stack([fnp.asarray(f, real) for f in found])

    places = vmap(place)(*(fnp.asarray(g, real) for g in grid))
    return _mapped(
        x,
        fnp.reshape(fnp.moveaxis(places, -1, 0), (x.ndim, *shape)),
        *(output, order, mode, cval, bool(prefilter)),
    )


@library("output", "order", "mode", "prefilter")
def _mapped(
    input: Any,
    places: Any,
    output: Any,
    order: int,
    mode: str,
    cval: Any,
    prefilter: bool,
) -> Array:
    name = "geometric_transform"
    dtype = array_of(input, name).aval.dtype
    x, *at = _operand(name, input, order, *places)
    outside = _outside(name, cval, x)
    if not x.aval.size or not at[0].aval.size:
        out = fnp.full(at[0].aval.shape, outside)
        return _finished(name, out, None, outside, dtype, output)
    out, lost = _gathered(x, at, order, mode, outside, prefilter)
    return _finished(name, out, lost, outside, dtype, output)
