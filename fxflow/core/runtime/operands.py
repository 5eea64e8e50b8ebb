"""Arguments of library functions as operands of a plan: their types, their bits.

Python numbers, NumPy data and arrays become the arrays that a plan takes; what tells
two plans apart becomes its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from math import copysign
from types import FunctionType
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, ArrayType, Aval, as_array, dtypes
from fxflow.core.arrays.array import put_host
from fxflow.core.arrays.protocol import array_method
from fxflow.core.caches import Cache
from fxflow.core.ir.trace import Tracer, leaked
from fxflow.devices.buffers import default_placement

SCALARS: tuple[type, ...] = (bool, int, float, complex)
_new = object.__new__


def classify(
    value: Any, key: list[Any], arrays: list[Any], beside: Sequence[Any]
) -> None:
    """Adds an argument to the key of a plan, and its arrays to the plan's arguments.

    Args:
      value: the argument.
      key: of the plan.
      arrays: the plan's arguments.
      beside: all arguments. Beside an array of 64 bits, numbers and NumPy data keep
        all of theirs.
    """
    kind = type(value)
    if kind is Array:
        key.append(value._type)
        arrays.append(value)
    elif kind in SCALARS:
        array = number(value, kind, bool(wide_kinds(beside)))
        key.append(array._type)
        if kind is int:
            # Whether it fits a narrow dtype is found out when the plan is made.
            key.append(_size_class(value))
        arrays.append(array)
    elif kind is list or kind is tuple:
        key.append((kind, len(value)))
        for item in value:
            classify(item, key, arrays, beside)
    elif value is None or kind is str or isinstance(value, type | np.dtype):
        key.append(kind)
        key.append(value)
    elif isinstance(value, Tracer):
        raise leaked(value)
    elif isinstance(value, np.ndarray | np.generic) or array_method(value):
        array = _host_data(value, wide_kinds(beside))
        key.append(array._type)
        arrays.append(array)
    else:
        key.append(exact(value))
        key.append(value)


def exact(value: Any) -> Any:
    """Returns what tells a static value from others that are equal to it.

    1, 1.0 and True are equal and hash alike, and so are 0.0 and -0.0, but a function
    may do something else with each; also within tuples, frozen sets and dataclasses.
    For any other type its own equality decides: this is the type.
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind
    if kind is float:
        return kind if value else (kind, copysign(1.0, value))
    if kind is complex:
        return kind, exact(value.real), exact(value.imag)
    if isinstance(value, np.inexact):
        return kind, value.tobytes()
    if isinstance(value, tuple):
        return kind, *map(exact, value)
    if kind is frozenset:
        return kind, frozenset((item, exact(item)) for item in value)
    if is_dataclass(value) and _compares_fields(kind):
        parts = (getattr(value, f.name) for f in fields(value) if f.compare)
        return kind, *map(exact, parts)
    return kind


_PLAIN = frozenset({int, bool, str, bytes, type(None), FunctionType})


def _compares_fields(kind: type) -> bool:
    """Returns whether a class has the equality that `dataclass` writes for it."""
    code = getattr(kind.__eq__, "__code__", None)
    return code is not None and code.co_filename == "<string>"


def _size_class(value: int) -> int:
    """Returns a number that is equal for integers that the same dtypes hold."""
    if value < 0:
        return ~_SIZES[min((~value).bit_length(), 64)]
    return _SIZES[min(value.bit_length(), 64)]


# For each number of bits, the least number of value bits of a dtype that has them.
_SIZES = tuple(
    next(n for n in (1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64) if bits <= n)
    for bits in range(65)
)

_numbers: Cache[Any, ArrayType] = Cache("types of Python numbers")


def wide_kinds(values: Sequence[Any]) -> str:
    """Returns the kinds, f (inexact) and i (integer), of 64-bit arrays and dtypes."""
    found = ""
    for value in values:
        if isinstance(value, Array):
            dtype = value.aval.dtype
            if dtypes.is_wide(dtype):
                found += "f" if dtypes.is_inexact(dtype) else "i"
        elif type(value) is list or type(value) is tuple:
            found += wide_kinds(value)
        elif isinstance(value, str | type | np.dtype) and value in _WIDE_NAMES:
            found += "f" if np.dtype(value).kind in "fc" else "i"
    return found


_WIDE = tuple(d for d in dtypes.ALL if dtypes.is_wide(d))
# What a user may write for a dtype of 64 bits.
_WIDE_NAMES = {*_WIDE, *(d.type for d in _WIDE), *(d.name for d in _WIDE)}


def with_all_bits(value: Any, kinds: str) -> Any:
    """Returns an argument beside 64-bit arrays of some kinds, under a trace."""
    if type(value) is float or type(value) is complex:
        return number(value, type(value), True)
    if isinstance(value, np.ndarray | np.generic):
        return _host_data(value, kinds)
    return value


def _host_data(value: Any, kinds: str) -> Array:
    """Returns NumPy data as an array, of 64 bits beside 64-bit arrays of its kind."""
    if not (isinstance(value, np.ndarray | np.generic) and dtypes.is_wide(value.dtype)):
        return as_array(value)
    if ("f" if value.dtype.kind in "fc" else "i") not in kinds:
        return as_array(value)
    host = np.array(value)
    return put_host(host, Aval(host.shape, dtypes.dtype(host.dtype)))


def number(value: Any, kind: type, wide: bool) -> Array:
    """Returns a Python number as a weak 0-d array; `as_array` without its questions."""
    where = default_placement()
    array_type = _numbers.get((kind, where, wide))
    try:
        if array_type is None or not where.is_host:
            dtype = dtypes.default(kind, wide=wide or None)
            dtypes.of_python(value, dtype)
            aval = Aval((), dtype, kind is not bool)
            array = put_host(np.array(value, dtype), aval)
            _numbers[kind, where, wide] = array._type
            return array
        host = np.array(value, array_type.aval.dtype)
    except OverflowError:
        dtypes.of_python(value)  # says it in words
        raise
    made: Array = _new(Array)
    made._host = host
    made._type = array_type
    return made
