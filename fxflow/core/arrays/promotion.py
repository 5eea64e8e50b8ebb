"""Type promotion: the dtype that operands of several dtypes are converted to.

The lattice. Each dtype points at the next ones that can stand for it; the result of
several is their least common upper bound. Python scalars are *weak*: they stand in the
lattice by kind alone (`i*`, `f*`, `c*`), below every array of that kind, so `x + 1` and
`x * 2.0` keep a float's dtype.

    bool → i* → u8 → u16 → u32 → u64 ──┐
            │     ↘     ↘     ↘        ├→ f* → f16, bf16 → f32 → f64
            └──→ i8 → i16 → i32 → i64 ─┘    │                ↘     ↘
                                            └→ c* ──────────→ c64 → c128

Integers of 2 and 4 bits stand above `i*`, floats of 4 and 8 bits above `f*`, and lead
nowhere: they are for storage, and combining them with another dtype needs a cast.

64 bits come out only if a 64-bit array went in or `config.x64` is set: `u32 + i32`,
whose bound is i64, is i32 by default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.dtypes import bool_, short_name
from fxflow.core.arrays.protocol import array_method
from fxflow.core.source import at_fault, combined_by_user
from fxflow.errors import DtypeError

# -- the lattice -----------------------------------------------------------------------

_SMALL_INTEGERS = ("int2", "int4", "uint2", "uint4")
_SMALL_FLOATS = tuple(
    d.name for d in dtypes.ALL if d.name.startswith(("float4", "float8"))
)
_NEXT: dict[str, tuple[str, ...]] = {
    "bool": ("i*",),
    "i*": ("uint8", "int8", *_SMALL_INTEGERS),
    "uint8": ("uint16", "int16"),
    "uint16": ("uint32", "int32"),
    "uint32": ("uint64", "int64"),
    "uint64": ("f*",),
    "int8": ("int16",),
    "int16": ("int32",),
    "int32": ("int64",),
    "int64": ("f*",),
    "f*": ("float16", "bfloat16", "c*", *_SMALL_FLOATS),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float64", "complex64"),
    "float64": ("complex128",),
    "c*": ("complex64",),
    "complex64": ("complex128",),
    "complex128": (),
    **dict.fromkeys((*_SMALL_INTEGERS, *_SMALL_FLOATS), ()),
}
_WEAK_KIND: dict[str, type] = {"i*": int, "f*": float, "c*": complex}


def _closure(follow: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """Returns each node with everything above it, itself included."""
    above: dict[str, frozenset[str]] = {}

    def visit(node: str) -> frozenset[str]:
        if node not in above:
            above[node] = frozenset((node,)).union(*map(visit, follow[node]))
        return above[node]

    for node in follow:
        visit(node)
    return above


_ABOVE = _closure(_NEXT)
_WEAK_NODE: dict[Any, str] = {
    d: "f*" if dtypes.is_floating(d) else "c*" if dtypes.is_complex(d) else "i*"
    for d in dtypes.ALL
    if d is not bool_
}
_WEAK_NODE[bool_] = "bool"  # a Python bool is simply a bool


# -- the least upper bound -------------------------------------------------------------

_Key = tuple[tuple[Any, ...], tuple[bool, ...]]
_found_32: dict[_Key, tuple[Any, bool]] = {}
_found_64: dict[_Key, tuple[Any, bool]] = {}


def lub(given: tuple[Any, ...], weaks: tuple[bool, ...], /) -> tuple[Any, bool]:
    """Returns the dtype that operands of these dtypes are converted to.

    Args:
      given: canonical dtypes, at least one.
      weaks: for each, whether it is weak.

    Returns:
      The common dtype, and whether it is weak.

    Raises:
      DtypeError: the dtypes have no common dtype without an explicit cast, or not under
        `config.numpy_dtype_promotion`.
      ValueError: nothing is given.

    Example:
      >>> lub((dtypes.float16, dtypes.float32), (False, True))
      (dtype('float16'), False)
    """
    if config.numpy_dtype_promotion == "strict":
        _check_strict(given, weaks)
    table = _found_64 if config.x64 else _found_32
    key = (given, weaks)
    found = table.get(key)
    if found is None:
        found = table[key] = _lub(given, weaks)
    return found


def _lub(given: tuple[Any, ...], weaks: tuple[bool, ...]) -> tuple[Any, bool]:
    if not given:
        raise ValueError("promotion: expected at least one dtype or array, got none")
    first = given[0]
    # A Python bool is simply a bool: there is nothing below it to yield to.
    pairs = [(d, weak and d != bool_) for d, weak in zip(given, weaks, strict=True)]
    all_weak = all(weak for _, weak in pairs)
    if all(d == first for d in given):
        return first, all_weak
    _check_numeric(given)
    # Weak operands yield to strong ones; among themselves each counts in full.
    strong = [d for d, weak in pairs if all_weak or not weak]
    nodes = {d.name for d in strong}
    if not all_weak:
        nodes |= {_WEAK_NODE[d] for d, weak in pairs if weak}
    bound = frozenset.intersection(*(_ABOVE[node] for node in nodes))
    least = [node for node in bound if _ABOVE[node] == bound]
    if not least:
        raise _does_not_combine(pairs)
    (node,) = least
    wide = config.x64 or any(map(dtypes.is_wide, strong))
    kind = _WEAK_KIND.get(node)
    if kind is not None:
        return dtypes.default(kind, wide=wide), True
    result = dtypes.dtype(node)
    return (result if wide else dtypes.narrow(result)), all_weak


#: Packages whose functions give their arguments one dtype.
_PROMOTING = (
    *("fxflow.numpy", "fxflow.scipy.special", "fxflow.nn", "fxflow.lax"),
    *("fxflow.compat.jax.numpy", "fxflow.compat.jax.nn", "fxflow.compat.jax.lax"),
)


def _check_strict(given: tuple[Any, ...], weaks: tuple[bool, ...]) -> None:
    """Refuses what only implicit promotion combines."""
    pairs = [(d, weak and d != bool_) for d, weak in zip(given, weaks, strict=True)]
    strong = {d for d, weak in pairs if not weak}
    if not strong:
        return
    ranks = [_rank(d) for d, weak in pairs if weak]
    (rank, *others) = map(_rank, strong)
    if others or (ranks and (not rank or max(ranks) > rank)):
        if not combined_by_user(set(pairs), _operand_of, _PROMOTING):
            return
        names = [f"{short_name(d)}{'~' if weak else ''}" for d, weak in pairs]
        raise DtypeError(
            f"{at_fault()}no implicit promotion of {' and '.join(dict.fromkeys(names))}"
            ' while config.numpy_dtype_promotion is "strict"; cast explicitly, such as '
            "x.astype('float32')"
        )


def _operand_of(value: Any) -> tuple[Any, bool]:
    """Returns the dtype of an array-like and whether it is weak."""
    aval: Any = getattr(value, "aval", None)
    if hasattr(aval, "weak_type"):
        return aval.dtype, aval.weak_type and aval.dtype != bool_
    if isinstance(value, np.ndarray | np.generic):
        return dtypes.host_dtype(value.dtype), False
    if type(value) in (bool, int, float, complex):
        return dtypes.default(type(value)), type(value) is not bool
    return None, False


def _rank(dtype: Any) -> int:
    """Returns 0 for bools, 1 for integers, 2 for floats, 3 for complex numbers."""
    tests = (dtypes.is_integer, dtypes.is_floating, dtypes.is_complex)
    return next((i for i, test in enumerate(tests, 1) if test(dtype)), 0)


def _check_numeric(given: tuple[Any, ...]) -> None:
    """Refuses mixtures with dtypes that are not in the lattice."""
    for d in given:
        others = ", ".join(sorted({short_name(o) for o in given if o != d}))
        if dtypes.is_key(d):
            raise DtypeError(
                f"{at_fault()}random keys do not combine with numbers: got "
                f"{short_name(d)} and {others}; use the functions of fxflow.random, or "
                "random.key_data(key) for its uint32 words"
            )
        if d == dtypes.float0:
            raise DtypeError(
                f"{at_fault()}float0, the derivative with respect to an integer, does "
                f"not combine with {others}; treat it as zero"
            )
        if d not in _WEAK_NODE:
            raise DtypeError(
                f"{at_fault()}dtype {d} is not in the promotion lattice; cast it first"
            )


def _does_not_combine(pairs: list[tuple[Any, bool]]) -> DtypeError:
    """Returns the error that names two operands without a common dtype."""
    small = {*_SMALL_INTEGERS, *_SMALL_FLOATS}
    names = list(
        dict.fromkeys(f"{short_name(d)}{'~' if weak else ''}" for d, weak in pairs)
    )
    culprits = list(dict.fromkeys(short_name(d) for d, _ in pairs if d.name in small))
    why = f"{' and '.join(culprits)} do{'es' if len(culprits) == 1 else ''} not promote"
    return DtypeError(
        f"no implicit promotion of {' and '.join(names)}: {why}; cast explicitly, "
        "such as x.astype('float32')"
    )


# -- the public questions --------------------------------------------------------------


def promote_types(a: Any, b: Any, /) -> Any:
    """Returns the dtype that arrays of two dtypes are converted to when combined.

    Args:
      a: a dtype; Python's `int`, `float`, `complex` stand for weak scalars. An array
        stands for its dtype.
      b: the same.

    Returns:
      The common dtype; 64-bit only if one of the two is, or with `config.x64`.

    Raises:
      DtypeError: an argument is not a dtype, or they have no common dtype without an
        explicit cast.

    Example:
      >>> promote_types("int32", "float16"), promote_types("uint8", int)
      (dtype('float16'), dtype('uint8'))

    Source:
      `numpy.promote_types`, with the lattice of this module.
    """
    (x, x_weak), (y, y_weak) = dtype_and_weak(a), dtype_and_weak(b)
    return lub((x, y), (x_weak, y_weak))[0]


def result_type(*args: Any, return_weak: bool = False) -> Any:
    """Returns the dtype that a function of these operands computes in.

    Args:
      *args: arrays, types of arrays, NumPy data, Python scalars, dtypes. NumPy data
        of 64 bits counts as 32-bit unless `config.x64`.
      return_weak: return `(dtype, weak_type)`.

    Returns:
      The common dtype, or the pair.

    Raises:
      DtypeError: an operand has no dtype, or they have no common dtype without an
        explicit cast.
      ValueError: there are no operands.

    Example:
      >>> result_type("bfloat16", 2.0), result_type(1, 2.0, return_weak=True)
      (dtype(bfloat16), (dtype('float32'), True))

    Source:
      `numpy.result_type`, with the lattice of this module.
    """
    pairs = [dtype_and_weak(x) for x in args]
    result = lub(tuple(d for d, _ in pairs), tuple(weak for _, weak in pairs))
    return result if return_weak else result[0]


def joint_dtype(operands: Iterable[Any], /) -> Any:
    """Returns the dtype of many operands, as `result_type` does.

    Args:
      operands: what `result_type` takes, at least one.

    Returns:
      The common dtype.

    Raises:
      DtypeError: an operand has no dtype, or they have no common dtype without an
        explicit cast.
    """
    # Each pair once: a thousand arrays of one dtype make no key of a thousand entries.
    pairs = dict.fromkeys(map(dtype_and_weak, operands))
    return lub(tuple(d for d, _ in pairs), tuple(weak for _, weak in pairs))[0]


def dtype_and_weak(x: Any, /) -> tuple[Any, bool]:
    """Returns the dtype of one operand and whether it is weak.

    Args:
      x: what `result_type` takes.

    Returns:
      `(dtype, weak_type)`.

    Raises:
      DtypeError: `x` has no dtype.
    """
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval.dtype, aval.weak_type
    if type(x) in _PYTHON_SCALARS:
        return dtypes.default(type(x)), type(x) is not bool
    if isinstance(x, (np.ndarray, np.generic)):
        return dtypes.host_dtype(x.dtype), False
    weak = getattr(x, "weak_type", None)
    if isinstance(weak, bool):  # the type of an array, rather than an array
        return x.dtype, weak
    convert = array_method(x)
    if convert is not None:
        if hasattr(x, "dtype"):
            return dtypes.dtype(x.dtype), False
        return dtype_and_weak(convert())
    if isinstance(x, (bool, int, float, complex)):  # an IntEnum, for instance
        kind = next(k for k in _PYTHON_SCALARS if isinstance(x, k))
        return dtypes.default(kind), kind is not bool
    return _of_dtype(x)


_PYTHON_SCALARS = (bool, int, float, complex)


def _of_dtype(x: Any) -> tuple[Any, bool]:
    # `fnp.bool_` and its like, classes too, are equal to Python's types.
    if type(x) is type and x in _PYTHON_SCALARS:
        return dtypes.default(x), x is not bool
    return dtypes.dtype(x), False
