"""What users may pass to a function of `fxflow.numpy`, made what `lax` takes.

Promotion to one dtype, broadcasting to one shape. Python numbers become 0-d constants
of the dtype that the arrays have, and stay 0-d: elementwise primitives take them so.
The common case, operands of one type, costs one comparison.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, SupportsIndex

import numpy as np

from fxflow._config import config
from fxflow.core.arrays import Array, Aval, Shape, dtypes, put_host, typeof
from fxflow.core.arrays.array import as_array, not_an_array
from fxflow.core.arrays.promotion import lub
from fxflow.core.ir.arith import constant
from fxflow.core.ir.primitive import table
from fxflow.core.source import at_fault, combined_by_user, warn
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax._operands import stretched


class HasArray(Protocol):
    """An object that stands for an array."""

    def __fxflow_array__(self) -> Array:
        """Returns the array."""
        ...


class HasDtype(Protocol):
    """An object that stands for a dtype."""

    @property
    def dtype(self) -> Any:
        """The dtype."""
        ...


# What functions take for an array: not lists, except `array` and `asarray`.
ArrayLike = (
    Array | np.ndarray[Any, Any] | np.generic | bool | int | float | complex | HasArray
)
# What `dtypes.dtype` takes.
DTypeLike = str | type[Any] | np.dtype[Any] | dtypes.KeyDtype | HasDtype
# None is all axes.
Axes = SupportsIndex | Sequence[SupportsIndex] | None
ShapeLike = SupportsIndex | Sequence[SupportsIndex]

SCALARS: dict[type, Any] = {
    bool: (False,),
    int: (True,),
    float: (True,),
    complex: (True,),
}

# -- arguments that have no meaning here -----------------------------------------------


def no_out(name: str, out: Any) -> None:
    """Refuses an array to write the result to.

    Raises:
      ArgumentError: there is one.
    """
    if out is not None:
        raise ArgumentError(
            f"{name}: arrays are immutable, so out= has no meaning: use the result"
        )


# -- promotion -------------------------------------------------------------------------


def convert(value: Array, dtype: Any, weak: bool = False) -> Array:
    """Returns an array with another dtype; itself if that changes nothing.

    Args:
      value: array or tracer.
      dtype: canonical.
      weak: whether the result's dtype yields in promotion.
    """
    aval = value.aval
    if aval.dtype == dtype and aval.weak_type == weak:
        return value
    # Only the weakness differs: the number is wrapped again, and nothing runs.
    if aval.dtype == dtype and not aval.ndim and type(value) is Array:
        return put_host(np.asarray(value), Aval((), dtype, weak))
    return table["convert_element_type"].bind(value, new_dtype=dtype, weak_type=weak)


def array_of(value: Any, name: str, dtype: Any = None) -> Array:
    """Returns an array or tracer for anything array-like.

    Args:
      value: what the user passed.
      name: of the function, for the message.
      dtype: what the user asked for: where it has 64 bits, numbers and NumPy data keep
        all of theirs.

    Raises:
      ArgumentError: it is not array-like; lists and tuples are not.
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, list | tuple):
        # The items may be traced by now: they are not what the user wrote.
        items = f"{len(value)} item{'s' * (len(value) != 1)}"
        raise ArgumentError(
            f"{name}: got a {type(value).__name__} of {items}, "
            "which is not an array: convert it with fnp.asarray"
        )
    if dtype is not None and dtypes.is_wide(dtypes.dtype(dtype)):
        return _wide_array(value, name)
    try:
        return as_array(value)
    except TypeError:
        if isinstance(value, np.ndarray | np.generic):
            raise
        where = f"{at_fault(value) or f'{name}: '}got"
        raise not_an_array(value, where) from None


def _wide_array(value: Any, name: str) -> Array:
    kind = type(value)
    if kind in SCALARS:
        return constant(value, dtypes.default(kind, wide=True), kind is not bool)
    if isinstance(value, np.ndarray | np.generic):
        dtypes.require_unmasked(value)
        host = np.array(value)
        return put_host(host, Aval(host.shape, dtypes.dtype(host.dtype)))
    return array_of(value, name)


def host_operand(value: Any, dtype: Any) -> Array:
    """Returns NumPy data as an array of the dtype that promotion gave.

    64-bit data that meets a 64-bit array is converted from the original values.
    """
    dtypes.require_unmasked(value)
    if dtypes.is_wide(dtype) or not dtypes.is_wide(dtypes.dtype(value.dtype)):
        host = np.array(value).astype(dtype)
    else:
        host = np.array(dtypes.host_array(value)).astype(dtype)
    return put_host(host, Aval(host.shape, dtype))


def host_beside(value: Any, array: Array) -> Array:
    """Returns NumPy data as an array, with all its bits if `array` has 64.

    Args:
      value: NumPy array or scalar.
      array: what it is combined with.
    """
    own = dtypes.host_dtype(value.dtype)
    aval = typeof(array)
    if dtypes.is_wide(aval.dtype) and dtypes.dtype(value.dtype) != own:
        own, _ = lub((aval.dtype, own), (aval.weak_type, False))
        return host_operand(value, own)
    return as_array(value)


def beside(name: str, value: Any, array: Any) -> Array:
    """Returns an operand as an array, with all its bits if `array` has 64.

    Args:
      name: of the function, for messages.
      value: array-like.
      array: what it is combined with.

    Raises:
      ArgumentError: it is not array-like.
    """
    if isinstance(value, np.ndarray | np.generic):
        return host_beside(value, array)
    return array_of(value, name, typeof(array).dtype)


def promote_dtypes(name: str, *args: Any) -> list[Array]:
    """Returns operands of one dtype.

    Args:
      name: of the function, for messages.
      *args: array-likes.

    Returns:
      Arrays and tracers; Python numbers are 0-d constants.

    Raises:
      ArgumentError: an operand is not an array.
      DtypeError: the dtypes cannot be promoted to a common one.
      OverflowError: an integer does not fit the common dtype.
    """
    return _promoted(name, args, None)


def promote_inexact(name: str, *args: Any) -> list[Array]:
    """Returns operands of one dtype, integers and bools being made floats.

    Each operand is converted to the float dtype by itself: of int32 and uint32 the
    common dtype is int32, which large values would not survive.

    Args:
      name: of the function, for messages.
      *args: array-likes.

    Raises:
      ArgumentError: an operand is not an array.
      DtypeError: the dtypes cannot be promoted to a common one, or are not numeric.
    """
    return _promoted(name, args, dtypes.to_inexact)


def _promoted(
    name: str, args: Sequence[Any], related: Callable[[Any], Any] | None
) -> list[Array]:
    """Returns operands of their common dtype, or of one that is related to it."""
    first = getattr(args[0], "aval", None)
    if first is not None and (related is None or dtypes.is_inexact(first.dtype)):
        for a in args:
            if getattr(a, "aval", None) is not first:
                break
        else:
            return list(args)
    out = list(args)
    given = []
    weaks = []
    for i, a in enumerate(out):
        aval = getattr(a, "aval", None)
        if aval is not None:
            given.append(aval.dtype)
            weaks.append(aval.weak_type)
        elif type(a) in SCALARS:
            given.append(dtypes.default(type(a)))
            weaks.append(type(a) is not bool)
        elif isinstance(a, np.ndarray | np.generic):
            given.append(dtypes.host_dtype(a.dtype))
            weaks.append(False)
        else:
            out[i] = a = array_of(a, name)
            given.append(a.aval.dtype)
            weaks.append(a.aval.weak_type)
    dtype, weak = lub(tuple(given), tuple(weaks))
    if related is not None:
        dtype = related(dtype)
    for i, a in enumerate(out):
        if isinstance(a, Array):
            if a.aval.dtype != dtype:
                out[i] = convert(a, dtype, weak)
        elif isinstance(a, np.ndarray | np.generic):
            out[i] = host_operand(a, dtype)
        else:
            out[i] = constant(a, dtype, weak)
    return out


# -- broadcasting ----------------------------------------------------------------------


def joint_shape(name: str, avals: Sequence[Aval]) -> Shape:
    """Returns the shape that arrays of these types broadcast to.

    Raises:
      ShapeError: two lengths differ and neither is 1.
    """
    ndim = max(a.ndim for a in avals)
    out = [1] * ndim
    for aval in avals:
        for i, length in enumerate(aval.shape, ndim - aval.ndim):
            if length != 1 and length != out[i]:
                if out[i] != 1:
                    raise ShapeError(
                        f"{name}: operands {', '.join(map(str, avals))} do not "
                        f"broadcast together: lengths {out[i]} and {length} of axis "
                        f"{i - ndim} differ and neither is 1; reshape one of them"
                    )
                out[i] = length
    return tuple(out)


def broadcast(name: str, args: Sequence[Array]) -> list[Array]:
    """Returns arrays of one shape; 0-d constants stay as they are.

    Args:
      name: of the function, for messages.
      args: arrays and tracers.

    Raises:
      ShapeError: the shapes do not broadcast, or not under
        `config.numpy_rank_promotion`.
    """
    shape = args[0].aval.shape
    for a in args:
        if a.aval.shape != shape:
            avals = [a.aval for a in args]
            if config.numpy_rank_promotion != "allow":
                check_ranks(name, avals)
            return stretched(args, joint_shape(name, avals))
    return list(args)


def check_ranks(name: str, avals: Sequence[Aval]) -> None:
    """Checks operands that broadcast, where `config.numpy_rank_promotion` asks for it.

    Args:
      name: of the function, for messages.
      avals: types of the operands.

    Raises:
      ShapeError: the user combines different ranks, which the option forbids.
    """
    shapes = {a.shape for a in avals if a.ndim}
    if len(set(map(len, shapes))) < 2:
        return
    if not combined_by_user(shapes, _shape_of, _LIKE_NUMPY):
        return
    shown = ", ".join(map(str, avals))
    if config.numpy_rank_promotion == "raise":
        raise ShapeError(
            f"{name}: operands {shown} have different ranks while "
            'config.numpy_rank_promotion is "raise"; add the axes: x[None, :]'
        )
    warn(
        f"{name}: operands {shown} of different ranks broadcast; add the axes, x[None, "
        ':], or set config.numpy_rank_promotion to "allow"',
    )


#: Packages whose functions broadcast their arguments.
_LIKE_NUMPY = ("fxflow.numpy", "fxflow.scipy.special", "fxflow.compat.jax.numpy")


def _shape_of(value: Any) -> Any:
    return getattr(value, "shape", None)


def promote(name: str, *args: Any) -> list[Array]:
    """Returns operands of one dtype and one shape (0-d constants excepted).

    Args:
      name: of the function, for messages.
      *args: array-likes.

    Raises:
      ArgumentError: an operand is not an array.
      DtypeError: the dtypes cannot be promoted to a common one.
      ShapeError: the shapes do not broadcast.
    """
    return broadcast(name, promote_dtypes(name, *args))


def promote_floats(name: str, *args: Any) -> list[Array]:
    """Returns operands of one inexact dtype and one shape (0-d constants excepted).

    Args:
      name: of the function, for messages.
      *args: array-likes.

    Raises:
      ArgumentError: an operand is not an array.
      DtypeError: the dtypes cannot be promoted to a common one, or are not numeric.
      ShapeError: the shapes do not broadcast.
    """
    return broadcast(name, promote_inexact(name, *args))


def shape_of(value: Any) -> Shape:
    """Returns the shape of anything array-like."""
    return typeof(value).shape


def size_of(shape: Shape) -> int:
    """Returns the number of elements."""
    return math.prod(shape)
