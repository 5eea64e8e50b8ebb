"""`x[index]`: everything that NumPy's indexing does.

An index is read into a *static* part (slices, integers, new axes, where arrays stand)
and the arrays in it, so that an eager call is one plan for each static part. Slices and
integers alone become `lax.slice`, or `dynamic_slice` where an integer is traced; arrays
become one `gather`.

Python integers out of range are errors. Integer arrays, whose values a compiled program
does not know beforehand, are clamped, or as `mode` says. Boolean masks must be
concrete.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, buffer_of, from_host, type_on
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL, HOST_BYTES, host_types
from fxflow.core.runtime.library import library
from fxflow.core.source import leave
from fxflow.devices import buffers
from fxflow.numpy.index_plans import read
from fxflow.numpy.index_reading import get

_new = object.__new__


def getitem(x: Any, index: Any) -> Array:
    """Returns `x[index]`; the method of arrays.

    Args:
      x: array or tracer.
      index: see the module.

    Returns:
      Array.

    Raises:
      OutOfRangeError: (an IndexError) an integer is out of range, or too many indices.
      ArgumentError: an item is not an index.
      BooleanIndexError: a mask is traced.
    """
    try:
        if state.trace is EVAL and type(x) is Array:
            kind = type(index)
            if (
                kind is int
                or kind is slice
                or (kind is tuple and _BASIC.issuperset(map(type, index)))
            ):
                try:
                    host = x._host
                except AttributeError:
                    host = None
                if host is not None:
                    view = _host_view(x, host, index)
                    if view is not None:
                        return view
                if kind is int and not x._type.placement.is_single:
                    part = _device_slice(x, index)
                    if part is not None:
                        return part
            if kind is Array:
                picked = _host_rows(x, index)
                if picked is not None:
                    return picked
            static, arrays = read(index)
            return _get_eager(x, arrays, static)
        static, arrays = read(index)
        return get(x, arrays, static)
    except Exception as error:
        leave(error)
        raise


_BASIC = frozenset((int, slice, type(None), type(Ellipsis)))


def _host_view(x: Array, host: np.ndarray[Any, Any], index: Any) -> Array | None:
    """Returns `x[index]` as a view of host memory, or None to go the general way."""
    try:
        view = host[index]
    except (IndexError, TypeError, ValueError):
        return None
    if type(view) is not np.ndarray:
        view = np.asarray(view, host.dtype)
    elif host.nbytes > 4096 and host.nbytes > 4 * view.nbytes:
        view = (
            view.copy()
        )  # as `eager.compact`, whose call would be a tenth of the time
    array_type = host_types[x._type, view.shape]
    if array_type is None:
        return None
    made: Array = _new(Array)
    made._host = view
    made._type = array_type
    return made


def _device_slice(x: Array, index: int) -> Array | None:
    """Returns `x[index]` if one device of this process holds just that, or None.

    So looking at the result of a `pmap` costs one part of it, and no program.
    """
    array_type = x._type
    aval, placement = array_type.aval, array_type.placement
    key = ("slices", aval.physical.shape)
    where = placement.table.get(key)
    if where is None:
        where = placement.table[key] = _slices(aval.physical.shape, placement)
    if not -aval.shape[0] <= index < aval.shape[0]:
        return None  # the general way says it in words
    at = where.get(index % aval.shape[0])
    if at is None:
        return None
    part = buffers.parts(buffer_of(x))[at]
    rest = aval.shape[1:]
    if placement.platform == "cpu" and buffers.default_placement().is_host:
        return from_host(buffers.to_host(part)[0], type_on(aval.update(shape=rest)))
    there = buffers.part_placement(placement, placement.local[at])
    return Array(part, type_on(aval.update(shape=(1, *rest)), there))[0]


def _slices(shape: tuple[int, ...], placement: Any) -> dict[int, int]:
    """Returns for each index on axis 0 the local device that holds just that slice."""
    if not shape or placement.sharding.shard_shape(shape) != (1, *shape[1:]):
        return {}
    return {
        (index[0].start or 0): at for at, index in enumerate(placement.indices(shape))
    }


def _host_rows(x: Array, index: Array) -> Array | None:
    """Returns `x[index]` for integers along the first axis, or None.

    The general way, with NumPy: negative integers are counted back, and all are
    clipped.
    """
    try:
        host, at = x._host, index._host
    except AttributeError:
        return None
    if at.dtype != np.int32 or not host.ndim or not host.shape[0]:
        return None
    if index._type.committed:
        return None
    if at.nbytes + host[0].nbytes * at.size > HOST_BYTES:
        return None
    length = host.shape[0]
    rows = host.take(at + length * (at < 0), 0, mode="clip")
    array_type = host_types[x._type, rows.shape]
    return (
        None
        if array_type is None
        else from_host(np.asarray(rows, host.dtype), array_type)
    )


@library("static", "mode", "fill_value", "unique", "sorted_", "wrap")
def _get_eager(
    x: Any,
    arrays: Sequence[Any],
    static: tuple[Any, ...],
    mode: Any = None,
    fill_value: Any = None,
    unique: bool = False,
    sorted_: bool = False,
    wrap: bool = True,
) -> Array:
    return get(x, arrays, static, mode, fill_value, unique, sorted_, wrap)
