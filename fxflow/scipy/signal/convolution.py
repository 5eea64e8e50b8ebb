"""Convolutions and correlations over any number of axes."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.lax.axes import canonical_axes, natural
from fxflow.numpy._operands import ArrayLike, array_of, promote_inexact
from fxflow.scipy.signal._slices import overlapped

_MODES = ("full", "same", "valid")
_METHODS = ("auto", "direct", "fft")
# What numpy.pad calls the boundaries.
_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def _operands(name: str, in1: Any, in2: Any, mode: Any) -> list[Array]:
    x, y = promote_inexact(name, in1, in2)
    if x.aval.ndim != y.aval.ndim:
        raise ShapeError(
            f"{name}: operands must have one number of axes, got {x.aval} and {y.aval}"
        )
    if mode not in _MODES:
        known = ", ".join(f'"{m}"' for m in _MODES)
        raise ArgumentError(f"{name}: mode must be one of {known}, got {mode!r}")
    return [x, y]


def _whole(*operands: Any) -> bool:
    """Returns whether all are integers, whose sums are exact."""
    kinds = (array_of(x, "convolve").aval.dtype for x in operands)
    return not any(dtypes.is_inexact(dtype) for dtype in kinds)


def _reversed(y: Array) -> Array:
    """Returns what a convolution with makes a correlation."""
    return lax.rev(fnp.conj(y), range(y.aval.ndim))


def _longer_first(name: str, x: Array, y: Array, axes: Sequence[int]) -> list[Array]:
    """Returns the operand first that the other one fits into."""
    both = list(zip(x.aval.shape, y.aval.shape, strict=True))
    if all(both[i][0] >= both[i][1] for i in axes):
        return [x, y]
    if all(both[i][0] <= both[i][1] for i in axes):
        return [y, x]
    raise ShapeError(
        f'{name}: mode="valid" asks that one operand is at least as long as the other '
        f"one along each axis, got {x.aval} and {y.aval}"
    )


def _pads(y: Array, mode: str, up: int = 0) -> list[tuple[int, int]]:
    """Returns by how much the operand before is widened at both ends of each axis.

    Args:
      y: the second operand.
      mode: of the convolution.
      up: 1 if of two elements in the middle the second one is the middle one.
    """
    if mode == "valid":
        return [(0, 0)] * y.aval.ndim
    if mode == "full":
        return [(m - 1, m - 1) for m in y.aval.shape]
    starts = [(m - 1 + up) // 2 for m in y.aval.shape]
    return [(m - 1 - s, s) for m, s in zip(y.aval.shape, starts, strict=True)]


def _direct(
    x: Array, y: Array, pads: Sequence[tuple[int, int]], precision: Any
) -> Array:
    """Returns the sums of products."""
    if not x.aval.ndim:
        return x * y
    out = lax.conv_general_dilated(
        lax.expand_dims(x, (0, 1)),
        # XLA's convolution is a cross-correlation: it does not reverse the kernel.
        lax.expand_dims(lax.rev(y, range(y.aval.ndim)), (0, 1)),
        (1,) * x.aval.ndim,
        pads,
        precision=precision,
    )
    return lax.squeeze(out, (0, 1))


def _faster_by_spectra(x: Array, y: Array, mode: str) -> bool:
    """Returns whether Fourier transforms are clearly faster than sums of products.

    Measured with XLA on CPUs: a product takes 2 to 8 ns along one axis, 5 to 60 along
    several, n log n of a transform 1 to 5 ns. Sums of products are more exact, so they
    are preferred where the times are alike.
    """
    sizes = list(zip(x.aval.shape, y.aval.shape, strict=True))
    full = math.prod(n + m - 1 for n, m in sizes)
    outputs = {"full": full, "same": x.aval.size}.get(mode)
    if outputs is None:
        outputs = math.prod(n - m + 1 for n, m in sizes)
    products = outputs * y.aval.size
    share, least = (16, 100_000) if len(sizes) == 1 else (2, 20_000)
    return products > share * full * math.log2(full + 1) + least


def _fast_length(n: int) -> int:
    """Returns the least number of factors 2, 3 and 5 that is at least n."""
    best = 1 << (n - 1).bit_length()
    power = 1
    while power < best:
        number = power
        while number < best:
            best = min(best, number << max(0, (-(-n // number) - 1).bit_length()))
            number *= 3
        power *= 5
    return best


def _convolved(
    name: str, x: Array, y: Array, mode: str, method: Any, precision: Any, exact: bool
) -> Array:
    if method not in _METHODS:
        known = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(f"{name}: method must be one of {known}, got {method!r}")
    axes = range(x.aval.ndim)
    if mode == "valid":
        x, y = _longer_first(name, x, y, axes)
    if not x.aval.size or not y.aval.size:
        return _nothing(x, y, mode, axes)
    if mode == "full" and y.aval.size > x.aval.size:
        x, y = y, x
    free = method == "auto" and not exact and precision is None
    if method == "fft" or (free and _faster_by_spectra(x, y, mode)):
        return _by_spectra(x, y, mode, tuple(axes))
    return _direct(x, y, _pads(y, mode), precision)


def _nothing(x: Array, y: Array, mode: str, axes: Sequence[int]) -> Array:
    """Returns the empty result of an empty operand."""
    shape = []
    for i, (n, m) in enumerate(zip(x.aval.shape, y.aval.shape, strict=True)):
        length = {"full": n + m - 1, "same": n, "valid": n - m + 1}[mode]
        if i not in axes:
            length = 0 if 0 in (n, m) else max(n, m)
        shape.append(length if n and m else 0)
    return fnp.zeros(shape, x.aval.dtype)


def _by_spectra(x: Array, y: Array, mode: str, axes: tuple[int, ...]) -> Array:
    """Returns the convolution along axes as a product of Fourier transforms."""
    if not axes:
        return x * y
    dtype = x.aval.dtype
    full = [x.aval.shape[i] + y.aval.shape[i] - 1 for i in axes]
    wide = [_fast_length(length) for length in full]
    if dtypes.is_complex(dtype):
        product = fnp.fft.fftn(x, wide, axes) * fnp.fft.fftn(y, wide, axes)
        out = fnp.fft.ifftn(product, wide, axes)
    else:
        product = fnp.fft.rfftn(x, wide, axes) * fnp.fft.rfftn(y, wide, axes)
        out = fnp.fft.irfftn(product, wide, axes)
    index = [slice(None)] * out.aval.ndim
    for i, length in zip(axes, full, strict=True):
        n, m = x.aval.shape[i], y.aval.shape[i]
        kept = {"full": length, "same": n, "valid": n - m + 1}[mode]
        start = (length - kept) // 2
        index[i] = slice(start, start + kept)
    return out[tuple(index)].astype(dtype)


_docs = shared("""
    Args:
      in1: array-like[...].
      in2: array-like of the same rank.
      mode: "full", n + m - 1 long; "same", the middle of that, as long as `in1`;
        "valid", where both overlap fully: one operand must fit into the other.
      method: "direct", sums of products; "fft", Fourier transforms, faster for two long
        operands, with errors as large as the largest result's, and nan everywhere if an
        operand has one; "auto", the one that the shapes make faster, for integers and
        with a `precision` sums of products.
      boundary: what is around `in1`: "fill", `fillvalue`; "wrap", `in1` again; "symm",
        `in1` mirrored, the edge twice.
      fillvalue: a number.
      precision: see `fxflow.lax.dot_general`.

    Returns:
      Float or complex array; empty if an operand is.

    Raises:
      ArgumentError: unknown mode, method or boundary.
      ShapeError: the numbers of axes differ, or for "valid" neither operand fits into
        the other.

    Source: `scipy.signal.{name}`, of floats: integers become floats as in JAX.
""")


@library("mode", "method", "precision")
@_docs
def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """Returns the convolution of two arrays.

    Example:
      >>> convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0]))
      Array([ 1., 12., 23., 30.], dtype=float32)
    """
    x, y = _operands("convolve", in1, in2, mode)
    exact = _whole(in1, in2)
    return _convolved("convolve", x, y, mode, method, precision, exact)


@library("mode", "method", "precision")
@_docs
def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """Returns the cross-correlation of two arrays.

    Args:
      in2: array-like of the same rank; it is conjugated.

    Example:
      >>> correlate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0]))
      Array([10., 21., 32.,  3.], dtype=float32)
    """
    x, y = _operands("correlate", in1, in2, mode)
    exact = _whole(in1, in2)
    return _convolved("correlate", x, _reversed(y), mode, method, precision, exact)


def _two_dimensional(
    name: str,
    x: Array,
    y: Array,
    mode: str,
    boundary: Any,
    fillvalue: Any,
    precision: Any,
    up: int = 0,
) -> Array:
    if x.aval.ndim != 2:
        raise ShapeError(f"{name}: operands must have two axes, got {x.aval}")
    if boundary not in _BOUNDARIES:
        known = ", ".join(f'"{b}"' for b in _BOUNDARIES)
        raise ArgumentError(
            f"{name}: boundary must be one of {known}, got {boundary!r}"
        )
    if mode == "valid":
        x, y = _longer_first(name, x, y, (0, 1))
    if not x.aval.size or not y.aval.size:
        return _nothing(x, y, mode, (0, 1))
    pads = _pads(y, mode, up)
    zeros = type(fillvalue) in (int, float) and fillvalue == 0
    if mode == "valid" or (boundary == "fill" and zeros):
        return _direct(x, y, pads, precision)
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    padded = fnp.pad(x, pads, _BOUNDARIES[boundary], **options)
    return _direct(padded, y, _pads(y, "valid"), precision)


@library("mode", "boundary", "precision")
@_docs
def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Array:
    """Returns the convolution of two matrices.

    Args:
      in1: array-like[n1, n2].
      in2: array-like[m1, m2].

    Example:
      >>> convolve2d(np.ones((2, 2)), np.ones((2, 2)), "same")
      Array([[1., 2.],
             [2., 4.]], dtype=float32)

    Source: `scipy.signal.convolve2d`, of floats: integers become floats as in JAX,
    which has no other boundary than zeros.
    """
    x, y = _operands("convolve2d", in1, in2, mode)
    return _two_dimensional("convolve2d", x, y, mode, boundary, fillvalue, precision)


@library("mode", "boundary", "precision")
@_docs
def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: ArrayLike = 0,
    precision: Any = None,
) -> Array:
    """Returns the cross-correlation of two matrices.

    Args:
      in1: array-like[n1, n2].
      in2: array-like[m1, m2]; it is conjugated.

    Example:
      >>> correlate2d(np.ones((2, 2)), np.ones((2, 2)), "same")
      Array([[4., 2.],
             [2., 1.]], dtype=float32)

    Source: `scipy.signal.correlate2d`, of floats: integers become floats as in JAX,
    which has no other boundary than zeros.
    """
    x, y = _operands("correlate2d", in1, in2, mode)
    return _two_dimensional(
        "correlate2d", x, _reversed(y), mode, boundary, fillvalue, precision, up=1
    )


@library("mode", "axes")
@_docs
def fftconvolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Returns the convolution of two arrays by Fourier transforms.

    Args:
      axes: the axes; None means all. The others are broadcast together.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0])).round(3)
      Array([ 1., 12., 23., 30.], dtype=float32)

    Source: `scipy.signal.fftconvolve`. (JAX asks for equal lengths of other axes.)
    """
    x, y = _operands("fftconvolve", in1, in2, mode)
    along = canonical_axes("fftconvolve", axes, x.aval.ndim)
    both = list(zip(x.aval.shape, y.aval.shape, strict=True))
    for i, (n, m) in enumerate(both):
        if i not in along and n != m and 1 not in (n, m):
            raise ShapeError(
                f"fftconvolve: lengths {n} and {m} of axis {i}, which is not one of "
                f"axes={axes}, differ and neither is 1"
            )
    if mode == "valid":
        x, y = _longer_first("fftconvolve", x, y, along)
    if not x.aval.size or not y.aval.size:
        return _nothing(x, y, mode, along)
    return _by_spectra(x, y, mode, along)


#: Spectra of blocks of a signal, in lengths of the filter.
_SHORT = 8


@_docs
def oaconvolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    axes: int | Sequence[int] | None = None,
) -> Array:
    """Returns the convolution of two arrays by Fourier transforms of blocks.

    It is faster than `fftconvolve` if one array is much longer than the other.

    Args:
      axes: the axes; None means all. The others are broadcast together.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> oaconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 10.0])).round(3)
      Array([ 1., 12., 23., 30.], dtype=float32)

    Source: `scipy.signal.oaconvolve`.
    """
    x, y = _operands("oaconvolve", in1, in2, mode)
    along = canonical_axes("oaconvolve", axes, x.aval.ndim)
    shapes = list(zip(x.aval.shape, y.aval.shape, strict=True))
    ratios = {i: max(shapes[i]) / max(min(shapes[i]), 1) for i in along}
    axis = max(ratios, key=lambda i: ratios[i], default=None)
    if axis is None or ratios[axis] < 2 * _SHORT or not x.aval.size or not y.aval.size:
        return fftconvolve(in1, in2, mode, axes)
    if mode == "valid":
        x, y = _longer_first("oaconvolve", x, y, along)
    first, second = x.aval.shape, y.aval.shape
    whole = _in_blocks(x, y, along, axis)
    if mode == "full":
        return whole
    for i in along:
        n, m = first[i], second[i]
        low, size = ((m - 1) // 2, n) if mode == "same" else (m - 1, n - m + 1)
        whole = lax.slice_in_dim(whole, low, low + size, axis=i)
    return whole


def _in_blocks(x: Array, y: Array, along: Sequence[int], axis: int) -> Array:
    """Returns the full convolution, the longer array in blocks along an axis."""
    if x.aval.shape[axis] < y.aval.shape[axis]:
        x, y = y, x
    n, m = x.aval.shape[axis], y.aval.shape[axis]
    hop = _fast_length(_SHORT * m) - m + 1
    count = -(-n // hop)
    ndim = x.aval.ndim
    pads = [(0, count * hop - n if i == axis else 0) for i in range(ndim)]
    shape = x.aval.shape
    blocks = fnp.reshape(
        fnp.pad(x, pads), (*shape[:axis], count, hop, *shape[axis + 1 :])
    )
    y = fnp.expand_dims(y, axis)
    inner = tuple(i + (i >= axis) for i in along)
    parts = _by_spectra(blocks, y, "full", inner)
    parts = fnp.moveaxis(parts, (axis, axis + 1), (-2, -1))
    out = overlapped(parts, hop)[..., : n + m - 1]
    return fnp.moveaxis(out, -1, axis)


def choose_conv_method(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", measure: bool = False
) -> Any:
    """Returns the method with which `convolve` is faster.

    Args:
      in1: array-like[...].
      in2: array-like[...] of the same rank.
      mode: "full", "same" or "valid"; see `convolve`.
      measure: whether to measure both, rather than to estimate.

    Returns:
      "fft" or "direct"; if `measure`, also a dictionary of the seconds that each takes.

    Raises:
      ArgumentError: unknown mode.
      ConcretizationError: `measure` is set and an array is traced.
      ShapeError: the arrays have different numbers of axes.

    Example:
      >>> choose_conv_method(np.ones(20_000), np.ones(5_000))
      'fft'

    Source: `scipy.signal.choose_conv_method`.
    """
    name = "choose_conv_method"
    x, y = _operands(name, in1, in2, mode)
    if measure:
        if isinstance(x, Tracer) or isinstance(y, Tracer):
            raise ConcretizationError(
                f"{name}: a convolution of traced arrays takes no time yet: measure "
                "outside of jit and grad"
            )
        times = {method: _seconds(x, y, mode, method) for method in ("fft", "direct")}
        return min(times, key=lambda method: times[method]), times
    # Sums of integers are exact.
    inexact = any(dtypes.is_inexact(array_of(v, name).dtype) for v in (in1, in2))
    if inexact and _faster_by_spectra(x, y, mode):
        return "fft"
    return "direct"


def _seconds(x: Array, y: Array, mode: str, method: str) -> float:
    """Returns how long a convolution takes, the shortest of a few."""
    times = []
    for _ in range(4):
        start = time.perf_counter()
        convolve(x, y, mode, method).block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)


def correlation_lags(in1_len: int, in2_len: int, mode: str = "full") -> Array:
    """Returns the shifts that belong to the elements of a correlation.

    Args:
      in1_len: the length of the first signal.
      in2_len: the length of the second one.
      mode: "full", "same" or "valid"; see `correlate`.

    Returns:
      int32[n].

    Raises:
      ArgumentError: unknown mode, or a length is not positive.

    Example:
      >>> correlation_lags(3, 2)
      Array([-1,  0,  1,  2], dtype=int32)

    Source: `scipy.signal.correlation_lags`.
    """
    name = "correlation_lags"
    n, m = natural(name, "in1_len", in1_len), natural(name, "in2_len", in2_len)
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(
            f'{name}: mode must be "full", "same" or "valid", got {mode!r}'
        )
    lags = np.arange(1 - m, n)
    if mode == "same":
        low = lags.size // 2 - n // 2
        lags = lags[low : low + n]
    elif mode == "valid":
        lags = np.arange(min(n - m, 0), max(n - m, 0) + 1)
    return fnp.asarray(lags, "int32")
