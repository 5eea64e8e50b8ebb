"""Dtypes as users write them, their limits and promotion, and constants.

`float32` and its like are classes as in NumPy: `fnp.float32` is a dtype wherever one is
taken, `fnp.float32(x)` makes an array, and `isinstance(x, fnp.float32)` is meant to be
False: there are no scalars here beside 0-d arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, dtypes, promotion, typeof
from fxflow.errors import DtypeError
from fxflow.lax.axes import canonical_axes
from fxflow.numpy._operands import ArrayLike, Axes, DTypeLike
from fxflow.numpy.creation import asarray


class _Scalar(type):
    """The class of the dtype objects: calling one makes an array."""

    dtype: Any

    def __call__(cls, x: Any = 0) -> Array:
        """Returns `x` as an array of this dtype."""
        return asarray(x, dtype=cls.dtype)

    # Equal to NumPy's scalar type, so it must hash like it.
    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __eq__(cls, other: object) -> bool:
        if cls is other:
            return True
        if isinstance(other, _Scalar):
            return cls.dtype is other.dtype
        try:
            return bool(cls.dtype == other)
        except TypeError:
            return False

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"fxflow.numpy.{cls.__name__}"


def _scalar(d: np.dtype[Any]) -> _Scalar:
    doc = (
        f"The dtype {d.name} (`{dtypes.short_name(d)}`); called, makes an array of "
        "it.\n"
        "\nArgs:\n  x: anything `asarray` takes.\n\nReturns:\n"
        f"  Array of dtype {d.name}.\n"
        f"\nExample:\n  >>> fnp.{d.name}([1]).dtype\n  {d!r}\n"
    )
    return _Scalar(d.name, (), {"dtype": d, "__doc__": doc, "__module__": __name__})


bool_: _Scalar = _scalar(dtypes.bool_)
int2: _Scalar = _scalar(dtypes.int2)
int4: _Scalar = _scalar(dtypes.int4)
int8: _Scalar = _scalar(dtypes.int8)
int16: _Scalar = _scalar(dtypes.int16)
int32: _Scalar = _scalar(dtypes.int32)
int64: _Scalar = _scalar(dtypes.int64)
uint2: _Scalar = _scalar(dtypes.uint2)
uint4: _Scalar = _scalar(dtypes.uint4)
uint8: _Scalar = _scalar(dtypes.uint8)
uint16: _Scalar = _scalar(dtypes.uint16)
uint32: _Scalar = _scalar(dtypes.uint32)
uint64: _Scalar = _scalar(dtypes.uint64)
float4_e2m1fn: _Scalar = _scalar(dtypes.float4_e2m1fn)
float8_e3m4: _Scalar = _scalar(dtypes.float8_e3m4)
float8_e4m3: _Scalar = _scalar(dtypes.float8_e4m3)
float8_e4m3b11fnuz: _Scalar = _scalar(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn: _Scalar = _scalar(dtypes.float8_e4m3fn)
float8_e4m3fnuz: _Scalar = _scalar(dtypes.float8_e4m3fnuz)
float8_e5m2: _Scalar = _scalar(dtypes.float8_e5m2)
float8_e5m2fnuz: _Scalar = _scalar(dtypes.float8_e5m2fnuz)
float8_e8m0fnu: _Scalar = _scalar(dtypes.float8_e8m0fnu)
float16: _Scalar = _scalar(dtypes.float16)
bfloat16: _Scalar = _scalar(dtypes.bfloat16)
float32: _Scalar = _scalar(dtypes.float32)
float64: _Scalar = _scalar(dtypes.float64)
complex64: _Scalar = _scalar(dtypes.complex64)
complex128: _Scalar = _scalar(dtypes.complex128)

# NumPy's abstract kinds, for `issubdtype`.
generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
character = np.character
flexible = np.flexible
object_ = np.object_

pi: float = math.pi
e: float = math.e
euler_gamma: float = float(np.euler_gamma)
inf: float = math.inf
nan: float = math.nan
newaxis = None


def dtype(x: Any, /) -> Any:
    """Returns the canonical dtype for what a user may give for one.

    Args:
      x: a dtype, its name, a Python type (`float` is the default float), or a dtype
        object such as `float32`.

    Returns:
      A `numpy.dtype`, or a key dtype.

    Raises:
      DtypeError: there is no such element type here.

    Example:
      >>> dtype("bfloat16"), dtype(float)
      (dtype(bfloat16), dtype('float32'))

    Source: `numpy.dtype`.
    """
    return dtypes.dtype(x)


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Returns whether a conversion between dtypes is allowed under a rule.

    Args:
      from_: dtype or array; a NumPy array of 64 bits counts as 32-bit unless
        `config.x64`, as it does everywhere.
      to: dtype.
      casting: "no", "equiv", "safe", "same_kind" or "unsafe", as in NumPy.

    Returns:
      True or False.

    Raises:
      DtypeError: an argument has no dtype.

    Example:
      >>> can_cast("int32", "float64"), can_cast("float32", "int32")
      (True, False)

    Source: `numpy.can_cast`.
    """
    source, _ = promotion.dtype_and_weak(from_)
    return bool(np.can_cast(source, dtypes.dtype(to), casting=casting))  # type: ignore[arg-type]


_KINDS: dict[str, Any] = {
    "bool": dtypes.is_bool,
    "signed integer": dtypes.is_signed,
    "unsigned integer": dtypes.is_unsigned,
    "integral": dtypes.is_integer,
    "real floating": dtypes.is_floating,
    "complex floating": dtypes.is_complex,
    "numeric": lambda d: dtypes.is_integer(d) or dtypes.is_inexact(d),
}


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Returns whether a dtype is of a kind of the array API standard.

    Args:
      dtype: anything `fxflow.numpy.dtype` takes.
      kind: a dtype; or "bool", "signed integer", "unsigned integer", "integral",
        "real floating", "complex floating", "numeric"; or a tuple of these.

    Returns:
      True or False.

    Raises:
      DtypeError: unknown kind.

    Example:
      >>> isdtype("bfloat16", "real floating"), isdtype("int8", ("bool", "numeric"))
      (True, True)

    Source: `numpy.isdtype`; the array API standard, 2022.12.
    """
    given = dtypes.dtype(dtype)
    for one in kind if isinstance(kind, tuple) else (kind,):
        if isinstance(one, str) and one in _KINDS:
            if _KINDS[one](given):
                return True
        elif isinstance(one, str) and " " in one:
            raise DtypeError(
                f"isdtype: unknown kind {one!r}; expected one of "
                f"{', '.join(map(repr, _KINDS))}, or a dtype"
            )
        elif isinstance(one, type) and issubclass(one, np.generic):
            if dtypes.issubdtype(given, one):
                return True
        elif given == dtypes.dtype(one):
            return True
    return False


def ndim(a: Any) -> int:
    """Returns the number of axes.

    Args:
      a: array-like, or nested lists of them.

    Returns:
      A Python int.

    Example:
      >>> ndim(np.zeros((2, 3)))
      2

    Source: `numpy.ndim`.
    """
    return len(shape(a))


def shape(a: Any) -> tuple[int, ...]:
    """Returns the lengths of the axes.

    Args:
      a: array-like, or nested lists of them.

    Returns:
      A tuple of Python ints.

    Example:
      >>> shape(np.zeros((2, 3)))
      (2, 3)

    Source: `numpy.shape`.
    """
    if isinstance(a, list | tuple):
        return asarray(a).shape
    return typeof(a).shape


def size(a: Any, axis: Axes = None) -> int:
    """Returns the number of elements, or of those along some axes.

    Args:
      a: array-like, or nested lists of them.
      axis: int, tuple of ints, or None for all.

    Returns:
      A Python int.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> size(np.zeros((2, 3)), axis=1)
      3

    Source: `numpy.size`.
    """
    lengths = shape(a)
    axes = canonical_axes("size", axis, len(lengths))
    return math.prod(lengths[i] for i in axes)


def isscalar(element: Any) -> bool:
    """Returns whether `element` is a number or a 0-d array.

    Args:
      element: anything.

    Returns:
      True or False.

    Example:
      >>> isscalar(3.0), isscalar(np.array([3.0]))
      (True, False)

    Source: `numpy.isscalar`, with 0-d arrays counted as scalars.
    """
    if np.isscalar(element):
        return True
    return isinstance(element, Array) and not element.ndim


def iscomplexobj(x: ArrayLike | None) -> bool:
    """Returns whether the dtype is complex.

    Args:
      x: array-like or None.

    Returns:
      True or False.

    Example:
      >>> iscomplexobj(np.array([1 + 0j]))
      True

    Source: `numpy.iscomplexobj`.
    """
    if x is None:
        return False
    return dtypes.is_complex(promotion.dtype_and_weak(x)[0])


def isrealobj(x: ArrayLike | None) -> bool:
    """Returns whether the dtype is not complex.

    Args:
      x: array-like or None.

    Returns:
      True or False.

    Example:
      >>> isrealobj(np.array([1 + 0j]))
      False

    Source: `numpy.isrealobj`.
    """
    return not iscomplexobj(x)


def iterable(y: Any) -> bool:
    """Returns whether `y` can be iterated over.

    Args:
      y: anything.

    Returns:
      True or False.

    Example:
      >>> iterable([1]), iterable(1)
      (True, False)

    Source: `numpy.iterable`.
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True
