"""Element types: what XLA can hold, and how a user's request becomes one of them.

A dtype is a `numpy.dtype` (small floats and integers come from `ml_dtypes`) or a
`KeyDtype`, the type of random keys. Each has one canonical object here, so tables are
plain dictionaries and a look-up costs one hash that NumPy has already cached.

The rule for 64 bits. *Defaults are 32-bit; what is asked for by name is honoured.*

- Python's `int`, `float` and `complex`, as types or values, mean the default: `int32`,
  `float32`, `complex64`. With `config.x64` they mean the 64-bit ones.
- `"float64"`, `np.int64`, `np.dtype("c16")` are requests and are kept, with no flag.
- A NumPy *array* or *scalar* of 64 bits is not a request: NumPy makes those by itself.
  It becomes 32-bit unless a dtype is given (`of_host`); an integer that would not
  survive is an error, not a wrong number.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from fxflow._config import config
from fxflow.core.arrays.key_dtype import KeyDtype as KeyDtype
from fxflow.core.arrays.key_dtype import extended as extended
from fxflow.core.arrays.key_dtype import prng_key as prng_key
from fxflow.core.source import at_fault
from fxflow.errors import ArgumentError, DtypeError

DType = np.dtype[Any] | KeyDtype

# -- the table of dtypes: name, short name, StableHLO's name, bits ---------------------

# StableHLO's names: specification, section "Types".
_TABLE = (
    ("bool", "bool", "i1", 1),
    ("int2", "i2", "i2", 2),
    ("int4", "i4", "i4", 4),
    ("int8", "i8", "i8", 8),
    ("int16", "i16", "i16", 16),
    ("int32", "i32", "i32", 32),
    ("int64", "i64", "i64", 64),
    ("uint2", "u2", "ui2", 2),
    ("uint4", "u4", "ui4", 4),
    ("uint8", "u8", "ui8", 8),
    ("uint16", "u16", "ui16", 16),
    ("uint32", "u32", "ui32", 32),
    ("uint64", "u64", "ui64", 64),
    ("float4_e2m1fn", "f4_e2m1fn", "f4E2M1FN", 4),
    ("float8_e3m4", "f8_e3m4", "f8E3M4", 8),
    ("float8_e4m3", "f8_e4m3", "f8E4M3", 8),
    ("float8_e4m3b11fnuz", "f8_e4m3b11fnuz", "f8E4M3B11FNUZ", 8),
    ("float8_e4m3fn", "f8_e4m3fn", "f8E4M3FN", 8),
    ("float8_e4m3fnuz", "f8_e4m3fnuz", "f8E4M3FNUZ", 8),
    ("float8_e5m2", "f8_e5m2", "f8E5M2", 8),
    ("float8_e5m2fnuz", "f8_e5m2fnuz", "f8E5M2FNUZ", 8),
    ("float8_e8m0fnu", "f8_e8m0fnu", "f8E8M0FNU", 8),
    ("float16", "f16", "f16", 16),
    ("bfloat16", "bf16", "bf16", 16),
    ("float32", "f32", "f32", 32),
    ("float64", "f64", "f64", 64),
    ("complex64", "c64", "complex<f32>", 64),
    ("complex128", "c128", "complex<f64>", 128),
)


def _named(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


bool_: np.dtype[Any] = _named("bool")
# Declared one by one, since type checkers ask that of what they show to users.
int2: np.dtype[Any] = _named("int2")
int4: np.dtype[Any] = _named("int4")
int8: np.dtype[Any] = _named("int8")
int16: np.dtype[Any] = _named("int16")
int32: np.dtype[Any] = _named("int32")
int64: np.dtype[Any] = _named("int64")
uint2: np.dtype[Any] = _named("uint2")
uint4: np.dtype[Any] = _named("uint4")
uint8: np.dtype[Any] = _named("uint8")
uint16: np.dtype[Any] = _named("uint16")
uint32: np.dtype[Any] = _named("uint32")
uint64: np.dtype[Any] = _named("uint64")
float4_e2m1fn: np.dtype[Any] = _named("float4_e2m1fn")
float8_e3m4: np.dtype[Any] = _named("float8_e3m4")
float8_e4m3: np.dtype[Any] = _named("float8_e4m3")
float8_e4m3b11fnuz: np.dtype[Any] = _named("float8_e4m3b11fnuz")
float8_e4m3fn: np.dtype[Any] = _named("float8_e4m3fn")
float8_e4m3fnuz: np.dtype[Any] = _named("float8_e4m3fnuz")
float8_e5m2: np.dtype[Any] = _named("float8_e5m2")
float8_e5m2fnuz: np.dtype[Any] = _named("float8_e5m2fnuz")
float8_e8m0fnu: np.dtype[Any] = _named("float8_e8m0fnu")
float16: np.dtype[Any] = _named("float16")
bfloat16: np.dtype[Any] = _named("bfloat16")
float32: np.dtype[Any] = _named("float32")
float64: np.dtype[Any] = _named("float64")
complex64: np.dtype[Any] = _named("complex64")
complex128: np.dtype[Any] = _named("complex128")
key_fry: KeyDtype = KeyDtype("threefry2x32")
key_rbg: KeyDtype = KeyDtype("rbg")
key_urbg: KeyDtype = KeyDtype("unsafe_rbg")
KEYS: tuple[KeyDtype, ...] = (key_fry, key_rbg, key_urbg)

# The dtype of the tangents of integers, which carry no information: zero bytes.
float0: np.dtype[Any] = np.dtype([("float0", np.void, 0)])

ALL: tuple[np.dtype[Any], ...] = tuple(_named(row[0]) for row in _TABLE)
"""Every NumPy dtype that an array may have, in order of kind and size."""

_short: dict[Any, str] = {_named(n): short for n, short, _, _ in _TABLE}
_mlir: dict[Any, str] = {_named(n): mlir for n, _, mlir, _ in _TABLE}
_bits: dict[Any, int] = {_named(n): bits for n, _, _, bits in _TABLE}
_short |= {float0: "float0"} | {key: key.name for key in KEYS}
# StableHLO has no type of zero bits; a value of `float0` is carried as a boolean.
_mlir |= {float0: "i1"} | dict.fromkeys(KEYS, "ui32")
_bits |= {float0: 0} | {key: 8 * key.itemsize for key in KEYS}

_INTEGERS = frozenset(d for d in ALL if d.name.startswith(("int", "uint")))
_FLOATS = frozenset(d for d in ALL if d.name.startswith(("float", "bfloat")))
_COMPLEX = frozenset((complex64, complex128))
INEXACT = _FLOATS | _COMPLEX
_NARROWER: dict[Any, np.dtype[Any]] = {
    int64: int32,
    uint64: uint32,
    float64: float32,
    complex128: complex64,
}
_WIDE = frozenset(_NARROWER)


# -- from what a user gives ------------------------------------------------------------

# What Python's own types mean, without and with `config.x64`.
_PYTHON = (bool, int, float, complex)
_PYTHON_32: dict[Any, np.dtype[Any]]
_PYTHON_64: dict[Any, np.dtype[Any]]
_PYTHON_32 = dict(zip(_PYTHON, (bool_, int32, float32, complex64)))
_PYTHON_64 = dict(zip(_PYTHON, (bool_, int64, float64, complex128)))
_PYTHON_NAMES: dict[str, type] = {kind.__name__: kind for kind in _PYTHON}
_by_name: dict[str, DType] = {d.name: d for d in ALL} | {k.name: k for k in KEYS}
_canonical: dict[Any, np.dtype[Any]] = {d: d for d in (*ALL, float0)}
_known_32: dict[Any, DType] = {**_PYTHON_32, **_canonical}
_known_64: dict[Any, DType] = {**_PYTHON_64, **_canonical}
_truncated: dict[Any, DType] = {**_known_32, **_NARROWER}


def dtype(x: Any, /) -> Any:
    """Returns the canonical dtype of what a user may give for one.

    Args:
      x: a `numpy.dtype`, a NumPy or `ml_dtypes` scalar type, a name (`"bfloat16"`,
        `"key<fry>"`), a Python type (the default of its kind), a `KeyDtype`, or an
        object that stands for a dtype by having one as `.dtype`.

    Returns:
      A `numpy.dtype` in native byte order, or a `KeyDtype`; see
      `config.explicit_x64_dtypes` about those of 64 bits.

    Raises:
      DtypeError: (a TypeError) XLA has no such element type, or `x` is not a dtype.

    Example:
      >>> dtype(float), dtype("float64"), dtype("bfloat16")
      (dtype('float32'), dtype('float64'), dtype(bfloat16))
    """
    if config.x64:
        table = _known_64
    else:
        table = _known_32 if config.explicit_x64_dtypes == "allow" else _truncated
    try:
        found = table.get(x)
    except TypeError:  # unhashable, so certainly not seen before
        found = None
    if found is not None:
        return found
    found = _resolve(x)
    if table is _truncated:
        found = _NARROWER.get(found, found)
    # Other objects may say another dtype the next time, and would be kept alive.
    if isinstance(x, (str, type, np.dtype)):
        table[x] = found
    return found


def stored(x: Any, /) -> Any:
    """Returns the dtype of bytes in memory: `dtype(x)`, in the byte order of `x`.

    Args:
      x: see `dtype`.

    Returns:
      A `numpy.dtype` in any byte order, or a `KeyDtype`.

    Raises:
      DtypeError: see `dtype`.

    Example:
      >>> stored(">f4"), stored("float32")
      (dtype('>f4'), dtype('float32'))
    """
    chosen = dtype(x)
    if isinstance(x, str | np.dtype) and isinstance(chosen, np.dtype):
        swapped: np.dtype[Any] = chosen.newbyteorder("S")
        return swapped if swapped == x else chosen
    return chosen


def of_bits(x: Any, /) -> Any:
    """Returns the dtype that the bits of an array are to be read as.

    Args:
      x: see `dtype`.

    Returns:
      `dtype(x)`.

    Raises:
      DtypeError: see `dtype`; or `x` is of another byte order than this machine's.
    """
    chosen = dtype(x)
    if stored(x) != chosen:
        raise DtypeError(
            f"{at_fault(x)}bits cannot be read as {x}: arrays have this machine's byte "
            f"order, {_short[chosen]}"
        )
    return chosen


def _resolve(x: Any) -> DType:
    """Finds the dtype of something that is not in the table of known requests."""
    if isinstance(x, KeyDtype):
        return x
    if isinstance(x, str):
        if x in _PYTHON_NAMES:
            return default(_PYTHON_NAMES[x])
        if x in _by_name:
            return _by_name[x]
    elif isinstance(x, (*_PYTHON, np.generic, np.ndarray)):
        fix = "pass its .dtype"
        if type(x) is int:  # fnp.zeros(3, 4)
            fix = "the lengths of a shape are one tuple, such as (3, 4)"
        raise DtypeError(f"{at_fault(x)}expected a dtype, got the value {x!r}: {fix}")
    elif x is None:
        raise DtypeError(
            f"{at_fault()}expected a dtype, got None; leave the argument out instead"
        )
    elif not isinstance(x, (type, np.dtype)):
        inner = getattr(x, "dtype", None)
        if isinstance(inner, (np.dtype, KeyDtype)):
            if hasattr(x, "shape"):
                raise DtypeError(
                    f"{at_fault(x)}expected a dtype, got an array of "
                    f"{short_name(inner)}; "
                    "pass its .dtype"
                )
            return inner if isinstance(inner, KeyDtype) else _native(inner)
        raise DtypeError(
            f"{at_fault(x)}expected a dtype, got {x!r} of type {type(x).__name__}"
        )
    elif isinstance(x, type) and x in _ABSTRACT:
        raise DtypeError(
            f"{at_fault(x)}expected a concrete dtype, got the abstract kind "
            f"{x.__name__}; "
            "say which one, such as float32"
        )
    try:
        made = np.dtype(x)
    except (TypeError, ValueError) as error:
        raise DtypeError(f"{at_fault(x)}expected a dtype, got {x!r}: {error}") from None
    if isinstance(x, type) and made.kind == "O" and x is not object:
        raise DtypeError(f"{at_fault(x)}expected a dtype, got the class {x.__name__}")
    return _native(made)


def _native(x: np.dtype[Any]) -> np.dtype[Any]:
    found = _canonical.get(x)
    if found is None:
        found = _canonical.get(x.newbyteorder("="))
    if found is None:
        raise DtypeError(f"{at_fault(x)}dtype {x} is not supported: {_why_not(x)}")
    return found


def _why_not(x: np.dtype[Any]) -> str:
    if x.names is not None or x.subdtype is not None:
        return "keep the fields of a structured dtype as separate arrays in a pytree"
    reasons = {
        "O": "arrays hold numbers, not Python objects (a ragged list makes objects)",
        "S": "arrays hold numbers, not text",
        "U": "arrays hold numbers, not text",
        "T": "arrays hold numbers, not text",
        "M": "convert dates to numbers first, such as x.astype('int64')",
        "m": "convert durations to numbers first, such as x.astype('int64')",
        "f": "the widest float is float64",
        "c": "the widest complex is complex128",
    }
    return reasons.get(x.kind, "XLA has no such element type")


# -- defaults --------------------------------------------------------------------------


def default(kind: Any, /, *, wide: bool | None = None) -> np.dtype[Any]:
    """Returns what a Python type means: 32-bit, or 64-bit with `config.x64`.

    Args:
      kind: `bool`, `int`, `float` or `complex`.
      wide: say 64-bit or not, whatever the configuration says.

    Returns:
      The default dtype of that kind.
    """
    if wide is None:
        wide = config.x64
    return (_PYTHON_64 if wide else _PYTHON_32)[kind]


def default_int() -> np.dtype[Any]:
    """Returns the default integer dtype: int32, or int64 with `config.x64`."""
    return int64 if config.x64 else int32


def default_uint() -> np.dtype[Any]:
    """Returns the default unsigned dtype: uint32, or uint64 with `config.x64`."""
    return uint64 if config.x64 else uint32


def default_float() -> np.dtype[Any]:
    """Returns the default float dtype: float32, or float64 with `config.x64`."""
    return float64 if config.x64 else float32


def default_complex() -> np.dtype[Any]:
    """Returns the default complex dtype: complex64, or complex128 with `config.x64`."""
    return complex128 if config.x64 else complex64


def is_wide(dtype: Any, /) -> bool:
    """Whether the dtype is one of the 64-bit ones (complex128 included)."""
    return dtype in _WIDE


def narrow(dtype: Any, /) -> Any:
    """Returns the 32-bit counterpart of a 64-bit dtype; others unchanged."""
    return _NARROWER.get(dtype, dtype)


# -- from values -----------------------------------------------------------------------


def of_python(value: Any, dtype: Any = None, /) -> np.dtype[Any]:
    """Returns the dtype of a Python scalar, after checking that an integer fits.

    All but booleans are *weakly* typed: `weak_type = of_python(x) is not bool_`.

    Args:
      value: a Python `bool`, `int`, `float` or `complex`.
      dtype: the canonical dtype that was asked for; None means the default.

    Returns:
      `dtype`, or the default of the value's kind.

    Raises:
      OverflowError: an int does not fit the dtype.
      DtypeError: the value is not a Python scalar.

    Example:
      >>> of_python(3), of_python(2.5)
      (dtype('int32'), dtype('float32'))
    """
    table = _PYTHON_64 if config.x64 else _PYTHON_32
    found = table.get(type(value))
    if found is None:
        if isinstance(value, np.generic):  # np.float64 is a Python float, too
            return of_host(value, dtype)
        for kind in _PYTHON:  # an IntEnum, for instance
            if isinstance(value, kind):
                found = table[kind]
                break
        else:
            raise DtypeError(
                f"{at_fault(value)}expected a Python scalar, got {value!r} of type "
                f"{type(value).__name__}"
            )
    chosen = found if dtype is None else dtype
    if found.kind == "i" and chosen in _INTEGERS:
        low, high = _ranges[chosen]
        if not low <= value <= high:
            hint = _overflow_hint(value, dtype is None)
            raise OverflowError(
                f"{at_fault(value)}Python int {value} does not fit {chosen.name} "
                f"({low} to {high}){hint}"
            )
    return chosen


def _overflow_hint(value: int, by_default: bool) -> str:
    if not by_default:
        return "; pass a dtype that holds it"
    for wider, flag in (
        (int64, " or set fxflow.config.x64 = True"),
        (uint64, ""),
    ):
        low, high = _ranges[wider]
        if low <= value <= high:
            return f"; pass dtype={wider.name}{flag}"
    return "; no integer dtype holds it, a float may do"


def of_host(x: Any, dtype: Any = None, /) -> np.dtype[Any]:
    """Returns the dtype that NumPy data gets here, after checking that it fits.

    64-bit data becomes 32-bit unless `dtype` or `config.x64` says otherwise, because
    NumPy makes 64 bits by default, not by request.

    Args:
      x: a NumPy array or scalar.
      dtype: the canonical dtype that was asked for; None means the data's own.

    Returns:
      `dtype`, or the data's dtype made canonical.

    Raises:
      OverflowError: 64-bit integers do not fit 32 bits and no dtype was given.
      DtypeError: XLA has no such element type.
      ArgumentError: `x` is a masked array.

    Example:
      >>> of_host(np.arange(3)), of_host(np.ones(2, "f8"), float64)
      (dtype('int32'), dtype('float64'))
    """
    require_unmasked(x)
    own = _canonical.get(x.dtype)
    if own is None:
        own = _native(x.dtype)
    if dtype is not None:
        return dtype  # type: ignore[no-any-return]
    if own not in _WIDE or config.x64:
        return own
    chosen = _NARROWER[own]
    if own.kind in "iu" and x.size:
        low, high = _ranges[chosen]
        least, most = int(x.min()), int(x.max())
        if least < low or most > high:
            bad = most if most > high else least
            dims = ",".join(map(str, x.shape))
            raise OverflowError(
                f"{at_fault(x)}the value {bad} in {_short[own]}[{dims}] from NumPy "
                "does not fit "
                f"{chosen.name}, the default here; pass dtype={own.name} to keep 64 "
                "bits, or set fxflow.config.x64 = True"
            )
    return chosen


def require_unmasked(x: Any, /) -> None:
    """Refuses a masked array, whose mask would be lost.

    Raises:
      ArgumentError: it is one.
    """
    if type(x) is not np.ndarray and hasattr(x, "mask") and hasattr(x, "filled"):
        raise ArgumentError(
            f"{at_fault(x)}got a masked array of NumPy, whose mask would be lost: pass "
            "x.filled(value), or x.data and where=~x.mask where a function takes it"
        )


def host_dtype(x: Any, /) -> np.dtype[Any]:
    """Returns the dtype that NumPy data of dtype `x` gets here, without its values.

    Args:
      x: a `numpy.dtype`.

    Returns:
      The canonical dtype; 32-bit for 64-bit ones unless `config.x64`.

    Raises:
      DtypeError: XLA has no such element type.
    """
    own = _canonical.get(x)
    if own is None:
        own = _native(x)
    return own if config.x64 else _NARROWER.get(own, own)


def host_array(x: Any, dtype: Any = None, /) -> np.ndarray[Any, Any]:
    """Returns NumPy data as an array of the dtype it gets here (see `of_host`).

    Args:
      x: a NumPy array or scalar.
      dtype: the canonical dtype that was asked for; None means the data's own.

    Returns:
      An array in native byte order: `x` itself if nothing changes.

    Raises:
      OverflowError: 64-bit integers do not fit 32 bits and no dtype was given.
      DtypeError: XLA has no such element type.
    """
    chosen = of_host(x, dtype)
    if x.dtype == chosen:
        return np.asarray(x)
    # float64 → float32 overflows to infinity, as a conversion on the device does.
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(x).astype(chosen, copy=False)


# ml_dtypes has no annotations.
_limits: Any = ml_dtypes.iinfo
_float_limits: Any = ml_dtypes.finfo
_ranges: dict[Any, tuple[int, int]] = {
    d: (int(_limits(d).min), int(_limits(d).max)) for d in _INTEGERS
}


# -- questions; each takes a canonical dtype -------------------------------------------

_ABSTRACT = frozenset(
    (
        np.generic,
        np.number,
        np.integer,
        np.signedinteger,
        np.unsignedinteger,
        np.inexact,
        np.floating,
        np.complexfloating,
        np.character,
        np.flexible,
        extended,
        prng_key,
    )
)
# The kind of each scalar type whose Python class does not derive from its kind.
_KIND: dict[Any, type[np.generic]] = {
    d.type: (
        np.signedinteger
        if d.name.startswith("int")
        else np.unsignedinteger
        if d.name.startswith("uint")
        else np.floating
    )
    for d in ALL
    if hasattr(ml_dtypes, d.name)
}


def issubdtype(a: Any, b: Any, /) -> bool:
    """Whether dtype or kind `a` is `b` or below it in NumPy's hierarchy.

    As `numpy.issubdtype`, and small floats are `floating`, small integers `integer`,
    key dtypes `prng_key`. As there, Python's `float` means float64 here.

    Args:
      a: a dtype, a scalar type or an abstract kind (`np.floating`, `prng_key`).
      b: the same.

    Returns:
      True or False.

    Raises:
      DtypeError: an argument is neither a dtype nor a kind.

    Example:
      >>> issubdtype("bfloat16", np.floating), issubdtype(key_fry, prng_key)
      (True, True)
    """
    if isinstance(b, KeyDtype):
        return a is b
    sub, top = _scalar_type(a), _scalar_type(b)
    if issubclass(sub, top):
        return True
    kind = _KIND.get(sub)
    return kind is not None and issubclass(kind, top)


def _scalar_type(x: Any) -> Any:
    if isinstance(x, type):
        if issubclass(x, np.generic):
            return x
        if x in _PYTHON_64:
            return _PYTHON_64[x].type
    elif isinstance(x, (np.dtype, KeyDtype)):
        return x.type
    return dtype(x).type


def is_bool(dtype: Any, /) -> bool:
    """Whether the dtype is bool."""
    return dtype is bool_ or dtype == bool_


def is_integer(dtype: Any, /) -> bool:
    """Whether the dtype is a signed or unsigned integer (bool is not)."""
    return dtype in _INTEGERS


def is_signed(dtype: Any, /) -> bool:
    """Whether the dtype is a signed integer."""
    return dtype in _INTEGERS and _ranges[dtype][0] < 0


def is_unsigned(dtype: Any, /) -> bool:
    """Whether the dtype is an unsigned integer."""
    return dtype in _INTEGERS and _ranges[dtype][0] == 0


def is_floating(dtype: Any, /) -> bool:
    """Whether the dtype is a real float, the 4- and 8-bit ones included."""
    return dtype in _FLOATS


def is_complex(dtype: Any, /) -> bool:
    """Whether the dtype is complex."""
    return dtype in _COMPLEX


def is_inexact(dtype: Any, /) -> bool:
    """Whether the dtype is a float or complex."""
    return dtype in INEXACT


def is_key(dtype: Any, /) -> bool:
    """Whether the dtype is that of random keys."""
    return type(dtype) is KeyDtype


kinds: dict[Any, str] = {bool_: "b"} | dict.fromkeys(KEYS, "k")
"""The kind of each dtype as one letter: b, i, u, f, c or k (keys)."""
kinds |= dict.fromkeys(_COMPLEX, "c") | dict.fromkeys(_FLOATS, "f")
kinds |= {d: "i" if _ranges[d][0] < 0 else "u" for d in _INTEGERS}

host_kinds: dict[Any, str] = {float0: "b", bool_: "b"} | dict.fromkeys(KEYS, "u")
"""The kind of each dtype as NumPy computes with it, as one letter.

`b`, `i`, `u`, `f`, `c` as `numpy.dtype.kind` (keys are their words: `u`); and `n`,
narrow: integers below 8 bits, which do not wrap around there, and floats below 16 bits,
of which not all have a zero, an infinity or a sign.
"""
host_kinds |= dict.fromkeys(_COMPLEX, "c")
host_kinds |= {d: "n" if _bits[d] < 16 else "f" for d in _FLOATS}
host_kinds |= {
    d: "n" if _bits[d] < 8 else "i" if _ranges[d][0] < 0 else "u" for d in _INTEGERS
}


def _of_either(x: Any) -> DType:
    """Returns the dtype of an array, or what `x` means as one."""
    if isinstance(x, (np.ndarray, np.generic)):
        return host_dtype(x.dtype)
    return dtype(x.dtype if hasattr(x, "aval") else x)  # type: ignore[no-any-return]


def finfo(x: Any, /) -> Any:
    """Returns limits of a float dtype (of the parts, for a complex one).

    Args:
      x: a dtype of floats or complex numbers, or an array of it.

    Returns:
      An object with `bits`, `eps`, `max`, `min`, `tiny` and the others of
      `numpy.finfo`.

    Raises:
      DtypeError: `x` is not a float or complex dtype.

    Example:
      >>> float(finfo("bfloat16").eps)
      0.0078125
    """
    chosen = _of_either(x)
    if chosen not in INEXACT:
        raise DtypeError(f"finfo: expected a float dtype, got {short_name(chosen)}")
    return _float_limits(chosen)


def iinfo(x: Any, /) -> Any:
    """Returns limits of an integer dtype.

    Args:
      x: an integer dtype, or an array of it.

    Returns:
      An object with `bits`, `max`, `min`, `dtype`.

    Raises:
      DtypeError: `x` is not an integer dtype.

    Example:
      >>> iinfo("int4").max
      7
    """
    chosen = _of_either(x)
    if chosen not in _INTEGERS:
        raise DtypeError(f"iinfo: expected an integer dtype, got {short_name(chosen)}")
    return _limits(chosen)


# -- names -----------------------------------------------------------------------------


def short_name(dtype: Any, /) -> str:
    """Returns how types print the dtype: `f32`, `bf16`, `u8`, `f8_e4m3fn`, `key<fry>`.

    Any NumPy dtype has one, so that errors can show data that is not supported.
    """
    found = _short.get(dtype)
    return str(dtype) if found is None else found


def mlir_name(dtype: Any, /) -> str:
    """Returns StableHLO's name: `f32`, `ui8`, `i1`, `complex<f32>`; `ui32` for keys."""
    return _mlir[dtype]


def bits(dtype: Any, /) -> int:
    """Returns the bits of one value (1 for bool, 4 for int4; memory is in bytes)."""
    return _bits[dtype]


# -- related dtypes --------------------------------------------------------------------

_inexact: dict[Any, np.dtype[Any]] = dict.fromkeys((bool_, *_INTEGERS), float32)
_inexact |= {int64: float64, uint64: float64} | {d: d for d in INEXACT}
_complex: dict[Any, np.dtype[Any]] = {
    d: complex128 if d in _WIDE else complex64 for d in ALL
}
_real: dict[Any, np.dtype[Any]] = {d: d for d in ALL}
_real |= {complex64: float32, complex128: float64}
_tangent: dict[Any, np.dtype[Any]] = dict.fromkeys((bool_, *_INTEGERS), float0)
_tangent |= {d: d for d in (*INEXACT, float0)} | dict.fromkeys(KEYS, float0)


def to_inexact(dtype: Any, /) -> np.dtype[Any]:
    """Returns the dtype of a function such as `sin` at an argument of this dtype.

    Floats and complex numbers stay; 64-bit integers become float64, others float32.

    Raises:
      DtypeError: the dtype is not numeric.
    """
    return _related(_inexact, dtype, "floating")


def to_complex(dtype: Any, /) -> np.dtype[Any]:
    """Returns complex128 for 64-bit dtypes, complex64 for the others.

    Raises:
      DtypeError: the dtype is not numeric.
    """
    return _related(_complex, dtype, "complex")


def to_real(dtype: Any, /) -> np.dtype[Any]:
    """Returns the dtype of the parts of a complex dtype; others unchanged.

    Raises:
      DtypeError: the dtype is not numeric.
    """
    return _related(_real, dtype, "real")


def tangent_dtype(dtype: Any, /) -> np.dtype[Any]:
    """Returns the dtype of a derivative: itself if inexact, else `float0`."""
    return _tangent[dtype]


def _related(table: dict[Any, np.dtype[Any]], dtype: Any, what: str) -> np.dtype[Any]:
    found = table.get(dtype)
    if found is None:
        raise DtypeError(f"{at_fault()}{short_name(dtype)} has no {what} counterpart")
    return found
