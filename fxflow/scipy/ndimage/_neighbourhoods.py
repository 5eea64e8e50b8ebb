"""Neighbourhoods of elements: shifted views of a padded array."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axes, hashable, natural
from fxflow.numpy._operands import array_of
from fxflow.scipy.ndimage.filters import _around, _each, _padded, by_axis

#: What a footprint is to a compiled function: its shape and its bits.
Footprint = tuple[tuple[int, ...], bytes]
#: Elements of a neighbourhood that are sorted by comparisons of whole arrays.
_NETWORK = 49


def real_operand(name: str, input: Any) -> Array:
    """Returns an array of numbers that have an order.

    Raises:
      DtypeError: it is complex.
    """
    x = array_of(input, name)
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"{name}: complex numbers have no order, got {x.aval}")
    return x


def host(name: str, what: str, value: Any) -> np.ndarray[Any, Any]:
    """Returns an argument that shapes a program as a NumPy array.

    Raises:
      ArgumentError: it is traced.
    """
    if isinstance(value, Tracer):
        raise ArgumentError(f"{name}: {what} must be known, got a traced {value.aval}")
    return np.asarray(value)


def footprint_of(name: str, what: str, value: Any, axes: Any, ndim: int) -> Footprint:
    """Returns where a neighbourhood has elements, with an axis for each of the array.

    Args:
      name: of the function, for messages.
      what: the argument's name.
      value: bool array-like with an axis for each one of `axes`.
      axes: axes of the array, canonical.
      ndim: of the array.

    Raises:
      ArgumentError: it is traced.
      ShapeError: it has the wrong number of axes, or no elements.
    """
    bits = host(name, what, value).astype(bool)
    if bits.ndim != len(axes) or not bits.size:
        raise ShapeError(
            f"{name}: {what} must have elements and {len(axes)} axes, got shape "
            f"{bits.shape}"
        )
    order = np.argsort(axes)
    bits = bits.transpose(order)
    bits = np.expand_dims(bits, [k for k in range(ndim) if k not in axes])
    return bits.shape, np.ascontiguousarray(bits).tobytes()


def bits_of(footprint: Footprint) -> np.ndarray[Any, Any]:
    """Returns a footprint as an array."""
    return np.frombuffer(footprint[1], bool).reshape(footprint[0])


def neighbourhood(
    name: str, x: Array, axes: Any, size: Any, footprint: Any, origin: Any, mode: Any
) -> tuple[Footprint, tuple[Any, ...], tuple[Any, ...]]:
    """Returns the footprint, the origins and the modes that arguments describe.

    Raises:
      ArgumentError: there is neither a size nor a footprint, or it has no elements.
    """
    ndim = x.ndim
    along = canonical_axes(name, hashable(axes), ndim, "axes")
    if footprint is None:
        if size is None:
            raise ArgumentError(f"{name}: give size or footprint")
        sizes = _each(name, "size", size, len(along))
        footprint = np.ones([natural(name, "size", n) for n in sizes], bool)
    found = footprint_of(name, "footprint", footprint, along, ndim)
    if not any(found[1]):
        raise ArgumentError(f"{name}: footprint must have an element that is True")
    origins = by_axis(name, "origin", origin, along, ndim, 0)
    modes = by_axis(name, "mode", mode, along, ndim, "reflect")
    return found, origins, modes


def views(
    name: str,
    x: Array,
    footprint: Footprint,
    origins: Sequence[Any],
    modes: Any,
    cval: Any,
) -> list[Array]:
    """Returns for each element of a footprint the array of those neighbours."""
    bits = bits_of(footprint)
    pads = [_around(name, n, o) for n, o in zip(bits.shape, origins, strict=True)]
    wide = _padded(name, x, pads, modes, cval)
    if not x.aval.size:
        return [x]
    out = []
    for at in np.argwhere(bits).tolist():
        stop = [a + n for a, n in zip(at, x.aval.shape, strict=True)]
        out.append(lax.slice(wide, at, stop) if at else wide)
    return out


def running(
    name: str,
    x: Array,
    size: int,
    axis: int,
    origin: Any,
    mode: Any,
    cval: Any,
    choose: Callable[[Array, Array], Array],
) -> Array:
    """Returns the least or the greatest of windows along an axis.

    Windows of 2, 4, 8, … elements are made of two of half the length.
    """
    pads = [(0, 0)] * x.aval.ndim
    pads[axis] = _around(name, size, origin)
    wide = _padded(name, x, pads, mode, cval)
    if not x.aval.size:
        return x
    width = 1
    while width < size:
        step = min(width, size - width)
        n = wide.aval.shape[axis]
        wide = choose(
            lax.slice_in_dim(wide, 0, n - step, axis=axis),
            lax.slice_in_dim(wide, step, n, axis=axis),
        )
        width += step
    return wide


def _comparisons(n: int) -> list[tuple[int, int]]:
    """Returns the pairs of Batcher's odd-even merge sort of `n` elements."""
    pairs = []
    p = 1
    while p < n:
        k = p
        while k:
            for j in range(k % p, n - k, 2 * k):
                pairs += [
                    (i, i + k)
                    for i in range(j, j + min(k, n - j - k))
                    if i // (2 * p) == (i + k) // (2 * p)
                ]
            k //= 2
        p *= 2
    return pairs


def ranked(neighbours: list[Array], rank: int) -> Array:
    """Returns the elements of a rank among those of equally shaped arrays."""
    if rank == 0:
        return functools.reduce(fnp.minimum, neighbours)
    if rank == len(neighbours) - 1:
        return functools.reduce(fnp.maximum, neighbours)
    if len(neighbours) > _NETWORK:
        return fnp.sort(fnp.stack(neighbours), 0)[rank]
    # Backward first: only what the rank depends on is compared.
    needed, kept = {rank}, []
    for low, high in reversed(_comparisons(len(neighbours))):
        if low in needed or high in needed:
            kept.append((low, high))
            needed |= {low, high}
    rows = list(neighbours)
    for low, high in reversed(kept):
        a, b = rows[low], rows[high]
        rows[low], rows[high] = fnp.minimum(a, b), fnp.maximum(a, b)
    return rows[rank]
