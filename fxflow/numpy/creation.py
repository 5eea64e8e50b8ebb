"""Making arrays of data: numbers, nested lists, NumPy data, arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, Aval, dtypes, promotion, type_on
from fxflow.core.arrays.array import (
    as_array,
    from_host,
    host_of,
    is_arraylike,
    not_an_array,
    put_host,
    unwrapped,
)
from fxflow.core.arrays.protocol import array_method
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL, quiet
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.pytree_transfer import device_put
from fxflow.lax.transfer import as_sharding
from fxflow.numpy._operands import SCALARS, DTypeLike, convert

# -- of data ---------------------------------------------------------------------------

_PLAIN = frozenset((bool, int, float, complex))


def wrap_host(host: np.ndarray[Any, Any]) -> Array:
    """Makes an array of a NumPy array that nothing writes to; the CPU shares it."""
    placed = type_on(Aval(host.shape, host.dtype))
    if placed.placement.is_host:
        return from_host(host, placed)
    return put_host(host, placed.aval)


def _from_list(data: Any, dtype: Any) -> Any:
    """Returns nested lists of numbers, NumPy arrays and arrays as one array."""
    kinds = set(map(type, data))
    if not kinds <= _PLAIN:
        leaves = list(_leaves(data))
        if any(isinstance(i, Array) or array_method(i) for i in leaves):
            return _stacked(data, dtype)
        if dtype is None and any(
            isinstance(i, np.ndarray | np.generic) for i in leaves
        ):
            # Python's numbers are weak beside NumPy's, which NumPy does not know here.
            dtype = promotion.joint_dtype(leaves)
    try:
        host = np.array(data)
    except ValueError as error:
        raise ArgumentError(
            "array: nested lists must have one length at each level: "
            f"{_ragged(data) or error}"
        ) from None
    if host.dtype.kind == "O":
        if kinds <= _PLAIN | {list, tuple}:
            host = np.array(
                data, dtypes.default_int()
            )  # says which integer is too large
        else:
            raise not_an_array(data, "array: got")
    if dtype is None and not host.size:
        dtype = dtypes.default_float()
    return wrap_host(_host_as(host, dtype))


def _ragged(data: Any) -> str | None:
    """Returns in words where nested lists differ: `[0] has 2 items, [1] has 1 item`."""
    level = [("", data)]
    while level:
        items = [(f"{at}[{i}]", x) for at, node in level for i, x in enumerate(node)]
        texts = [_length_text(x) for _, x in items]
        for (at, _), text in zip(items, texts, strict=True):
            if text != texts[0]:
                return f"{items[0][0]} {texts[0]}, {at} {text}"
        level = [(at, x) for at, x in items if isinstance(x, list | tuple)]
    return None


def _length_text(item: Any) -> str:
    if not isinstance(item, list | tuple) and not np.ndim(item):
        return "is a number"
    count = len(item)
    return f"has {count} item{'s' * (count != 1)}"


def _host_as(host: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Returns new NumPy data as data of the dtype it has here."""
    if dtype is None:
        return own_dtype(host)
    if host.dtype.kind in "iu" and dtypes.is_integer(dtype) and host.size:
        low, high = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
        least, most = int(host.min()), int(host.max())
        if least < int(low) or most > int(high):
            dtypes.of_python(most if most > int(high) else least, dtype)
    return quiet.run(host.astype, dtype, copy=False)


def own_dtype(host: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Returns NumPy data of the dtype that it has here; see `dtypes.host_array`."""
    if host.dtype in _UNCHANGED:
        return host
    if not _is_x64():
        if host.dtype == np.float64:
            return quiet.run(host.astype, np.float32)
        if host.dtype == np.int64:
            narrow = host.astype(np.int32)
            if (narrow == host).all():
                return narrow
    return dtypes.host_array(host)


def _is_x64() -> bool:
    """Returns whether 64 bits are the default."""
    return dtypes.default_float() is dtypes.float64


_MAX_NDIM = 64  # NumPy's


def _leaves(data: Any, depth: int = 1) -> Iterator[Any]:
    """Yields the items of nested lists.

    Raises:
      ArgumentError: one of them is neither an array nor a number, or the lists are
        nested deeper than an array can be, as one is that contains itself.
    """
    if depth > _MAX_NDIM:
        raise ArgumentError(
            f"array: lists are nested more than {_MAX_NDIM} deep; does one contain "
            "itself?"
        )
    for item in data:
        if isinstance(item, list | tuple):
            yield from _leaves(item, depth + 1)
        elif is_arraylike(item):
            if isinstance(item, np.ndarray):
                dtypes.require_unmasked(item)
            yield item
        else:
            raise not_an_array(item, "array: a list holds")


def _stacked(data: Any, dtype: Any) -> Any:
    """Returns nested lists, some of whose items are arrays, as one array."""
    chosen = promotion.joint_dtype(_leaves(data)) if dtype is None else dtype

    def join(node: Any) -> Any:
        if not isinstance(node, list | tuple):
            return convert(array(node), chosen)
        parts = [join(item) for item in node]
        if not parts:
            return wrap_host(np.zeros(0, chosen))
        first = parts[0].aval.shape
        for part in parts:
            if part.aval.shape != first:
                raise ShapeError(
                    f"array: items of one list have shapes {first} and "
                    f"{part.aval.shape}; they must be equal to be stacked"
                )
        rows = [lax.reshape(p, (1, *first)) for p in parts]
        return rows[0] if len(rows) == 1 else lax.concatenate(rows, 0)

    return join(data)


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    copy: bool | None = True,
    order: str | None = "K",
    ndmin: int = 0,
    *,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of numbers, NumPy data, arrays or nested lists of them.

    Args:
      object: data; host memory is always copied.
      dtype: dtype of the result. None: the data's, 64-bit data becoming 32-bit unless
        `config.x64`; a Python number gives a weakly typed array.
      copy: whether an array is copied, which is never needed: arrays do not change.
        False is refused where host memory has to be copied.
      order: "K", "A", "C", "F" or None; memory layout is the compiler's, so
        it makes no difference.
      ndmin: the least number of axes; axes of length 1 come in front.
      device: where to put it.
      out_sharding: how to lay it over devices, in place of `device`: a `Sharding`, or
        a `PartitionSpec` over the current mesh.

    Returns:
      Array.

    Raises:
      ArgumentError: the data holds something that is not a number, or a ragged list;
        or both `device` and `out_sharding` are given.
      OverflowError: an integer does not fit the dtype.
      ShapeError: arrays in a list differ in shape.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> array([[1, 2], [3, 4]]).dtype
      dtype('int32')

    Source: `numpy.array`.
    """
    if order not in ("K", "A", "C", "F", None):
        raise ArgumentError(f"array: order must be 'K', 'A', 'C' or 'F', got {order!r}")
    if out_sharding is not None:
        device = sharding_of("array", device, out_sharding)
    return _array(object, dtype, copy, ndmin, device)


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Makes an array of numbers, NumPy data, arrays or nested lists of them.

    Args:
      a: data; an array of the dtype asked for is returned itself.
      dtype: dtype of the result, see `array`.
      order: "K", "A", "C", "F" or None; it makes no difference.
      copy: True makes a copy, False refuses where host memory has to be copied.
      device: where to put it.
      out_sharding: how to lay it over devices, in place of `device`: a `Sharding`, or
        a `PartitionSpec` over the current mesh.

    Returns:
      Array.

    Raises:
      ArgumentError: the data holds something that is not a number, or a ragged list;
        or both `device` and `out_sharding` are given.
      OverflowError: an integer does not fit the dtype.
      ValueError: `copy=False`, and the memory has to be copied.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> asarray(2.5)
      Array(2.5, dtype=float32, weak_type=True)

    Source: `numpy.asarray`.
    """
    kind = type(a)
    # The calls that are made most, past all the checks below.
    if dtype is None and copy is device is out_sharding is None and state.trace is EVAL:
        if kind is Array:
            same: Array = a
            return same
        if kind is np.ndarray and a.dtype in _UNCHANGED:
            return wrap_host(np.array(a))
        if kind is list:
            kinds = set(map(type, a))
            if kinds == _FLOATS:
                return wrap_host(np.array(a, dtypes.default_float()))
            if kinds == _INTS:
                try:
                    return wrap_host(np.array(a, dtypes.default_int()))
                except OverflowError:
                    pass  # is said in words below
        return _array(a, None, None, 0, None)
    if order not in ("K", "A", "C", "F", None):
        raise ArgumentError(
            f"asarray: order must be 'K', 'A', 'C' or 'F', got {order!r}"
        )
    if out_sharding is not None:
        device = sharding_of("asarray", device, out_sharding)
    return _array(a, dtype, copy, 0, device)


_FLOATS = {float}
_INTS = {int}
_UNCHANGED = frozenset(d for d in dtypes.ALL if not dtypes.is_wide(d))


def _array(a: Any, dtype: Any, copy: bool | None, ndmin: int, device: Any) -> Array:
    chosen = None if dtype is None else dtypes.dtype(dtype)
    a = unwrapped(a)
    out: Any
    if dtypes.is_key(chosen) and not _holds_keys(a):
        raise _no_conversion(chosen)
    if isinstance(a, Array):
        out = a
        if chosen is not None and (a.aval.dtype != chosen or a.aval.weak_type):
            out = astype_array(a, chosen)
        elif copy:
            out = lax.copy(a) if state.trace is not EVAL else _copied(a)
    elif type(a) in SCALARS or (
        isinstance(a, bool | int | float | complex) and not isinstance(a, np.generic)
    ):
        _refuse_no_copy(copy, a)
        if chosen is None:
            out = as_array(a)
        else:
            if isinstance(a, int):
                dtypes.of_python(a, chosen)
            with np.errstate(all="ignore"):
                out = wrap_host(np.asarray(a).astype(chosen))
    elif isinstance(a, np.ndarray | np.generic):
        _refuse_no_copy(copy, a)
        dtypes.require_unmasked(a)
        if chosen is None:
            found = own_dtype(np.asarray(a))
            # A copy, because the caller may go on writing to `a`; a conversion has made
            # one.
            out = wrap_host(np.array(a) if found is a else found)
        else:
            with np.errstate(all="ignore"):
                out = wrap_host(np.array(a).astype(chosen, copy=False))
    elif isinstance(a, list | tuple):
        _refuse_no_copy(copy, a)
        out = _from_list(a, chosen)
    elif hasattr(a, "__array__") or hasattr(a, "__array_interface__"):
        return _array(np.asarray(a), dtype, copy, ndmin, device)
    elif isinstance(a, range) or _has_buffer(a):
        return _array(np.array(a), dtype, copy, ndmin, device)
    else:
        raise not_an_array(a, "array: got")
    missing = ndmin - out.aval.ndim
    if missing > 0:
        out = lax.reshape(out, (1,) * missing + out.aval.shape)
    return out if device is None else to_device(out, device)


def _has_buffer(a: Any) -> bool:
    """Returns whether an object shares numbers by the buffer protocol."""
    if isinstance(a, bytes):  # text, to NumPy
        return False
    try:
        memoryview(a).release()
    except TypeError:
        return False
    return True


def _refuse_no_copy(copy: bool | None, a: Any) -> None:
    if copy is False:
        raise ValueError(
            f"array: copy=False, but host memory ({type(a).__name__}) has to be "
            "copied: "
            "leave `copy` out, or use from_dlpack, which shares memory"
        )


def _copied(a: Array) -> Array:
    """Returns an array with memory of its own."""
    if hasattr(a, "_host") and not hasattr(a, "_buffer"):
        return from_host(np.array(host_of(a)), a._type)
    return lax.copy(a)


def sharding_of(name: str, device: Any, out_sharding: Any) -> Any:
    """Returns where a result is to be, from the two arguments that can say it.

    Args:
      name: of the function, for messages.
      device: a device, a sharding or None.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh.

    Raises:
      ArgumentError: both are given, or `out_sharding` is not a sharding.
      PlacementError: there is no current mesh.
    """
    if device is not None:
        raise ArgumentError(f"{name}: give device or out_sharding, not both")
    return as_sharding(out_sharding, f"{name}: out_sharding")


def to_device(a: Array, device: Any) -> Array:
    """Returns an array on a device."""
    moved: Array = device_put(a, device)
    return moved


def astype_array(x: Array, dtype: Any) -> Array:
    """Returns an array or tracer with another, strong dtype."""
    aval = x.aval
    if dtypes.is_key(dtype) or dtypes.is_key(aval.dtype):
        if dtype == aval.dtype:
            return x
        raise _no_conversion(dtype, f"{aval} to ")
    if dtypes.is_complex(aval.dtype) and not dtypes.is_complex(dtype):
        x = lax.real(x) if not dtypes.is_bool(dtype) else lax.ne(x, 0)
    return convert(x, dtype)


def _no_conversion(dtype: Any, given: str = "to ") -> DtypeError:
    return DtypeError(
        f"array: keys and numbers do not convert ({given}{dtypes.short_name(dtype)}): "
        "see fxflow.random.key_data and wrap_key_data"
    )


def _holds_keys(a: Any) -> bool:
    if isinstance(a, list | tuple):
        return all(map(_holds_keys, a))
    return isinstance(a, Array) and dtypes.is_key(a.aval.dtype)


# -- copies ----------------------------------------------------------------------------


def copy(a: Any, order: str | None = None) -> Array:
    """Returns an array with memory of its own.

    Args:
      a: data, see `array`.
      order: see `array`.

    Returns:
      Array.

    Example:
      >>> copy(np.array([1, 2]))
      Array([1, 2], dtype=int32)

    Source: `numpy.copy`.
    """
    return array(a, copy=True, order=order)


def astype(
    x: Any, dtype: DTypeLike, /, *, copy: bool = False, device: Any = None
) -> Array:
    """Returns an array with another dtype.

    Args:
      x: array-like.
      dtype: dtype of the result; complex numbers lose their imaginary part.
      copy: whether to copy even where nothing changes.
      device: where to put it.

    Returns:
      Array of the shape of `x`.

    Raises:
      DtypeError: there is no such dtype, or keys are involved.

    Example:
      >>> astype(np.array([1.7, -1.7]), fnp.int32)
      Array([ 1, -1], dtype=int32)

    Source: `numpy.astype`.
    """
    if not is_arraylike(x):
        raise not_an_array(x, "astype: got")
    chosen = dtypes.dtype(dtype)
    if not hasattr(x, "aval"):
        x = asarray(x, chosen if isinstance(x, np.ndarray) else None)
    out = astype_array(x, chosen)
    if copy and out is x:
        out = lax.copy(x)
    return out if device is None else to_device(out, device)
