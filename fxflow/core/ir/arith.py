"""The primitives that autodiff itself applies: zeros, sums, casts.

The machine names no operation of its own; these look theirs up in the table when first
used, by the names under which `lax` registers them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, as_array, dtypes, put_host, typeof
from fxflow.core.caches import Cache
from fxflow.core.ir.primitive import Zero, table
from fxflow.core.sizes import Size
from fxflow.core.source import at_fault
from fxflow.devices import buffers
from fxflow.errors import DtypeError

# Python numbers turn into constants all the time (`2 * x`): each is made once.
_constants: Cache[Any, Array] = Cache("constants", by_options=True)
_COMPLEX = (complex, np.complex64)


def constant(value: Any, dtype: Any, weak_type: bool = False) -> Array:
    """Returns a 0-d constant of exactly this dtype.

    Args:
      value: a number.
      dtype: canonical dtype.
      weak_type: whether the dtype yields in promotion.

    Raises:
      OverflowError: the integer does not fit the dtype.
      DtypeError: the dtype is one of keys.
    """
    # 0.0 and -0.0 are equal, as keys too; so the text of what may be zero is the key.
    known_by = value if value and not isinstance(value, _COMPLEX) else str(value)
    key = (type(value), known_by, dtype, weak_type)
    try:
        known = _constants.get(key)
    except TypeError:  # an array cannot be a key
        return _made(value, dtype, weak_type)
    if known is None or known._type.placement is not buffers.default_placement():
        made = _made(value, dtype, weak_type)
        # A size is an array of the program that is being traced, and of no other.
        known = made if type(value) is Size else _constants.keep(key, made)
    return known


def is_number(array: Array) -> bool:
    """Returns whether an array stands for a Python number, see `constant`."""
    return any(array is known for known in list(_constants.values()))


def _made(value: Any, dtype: Any, weak_type: bool) -> Array:
    if dtypes.is_key(dtype):
        name = dtypes.short_name(dtype)
        raise DtypeError(f"{at_fault()}numbers do not become {name}")
    if type(value) is Size:
        array: Array = table["convert_element_type"].bind(
            as_array(value), new_dtype=dtype, weak_type=weak_type
        )
        return array
    if isinstance(value, int):
        dtypes.of_python(value, dtype)
    scalar = np.asarray(value).astype(dtype)
    return put_host(scalar, Aval((), dtype, weak_type))


def zeros(aval: Aval) -> Any:
    """Returns an array of zeros of a type, keys included."""
    if dtypes.is_key(aval.dtype):
        return table["random_wrap"].bind(zeros(aval.physical), dtype=aval.dtype)
    if aval.dtype == dtypes.float0:
        # XLA has no such dtype, so there is no array of it.
        return np.zeros(aval.shape, dtypes.float0)
    return repeated(constant(0, aval.dtype), aval.shape)


def instantiate(value: Any) -> Any:
    """Makes an array of a tangent that is known to be zero.

    Args:
      value: a value or a `Zero`.

    Returns:
      An array of zeros for a `Zero`, else the value.
    """
    return zeros(value.aval) if type(value) is Zero else value


def handed_out(tangent: Any, aval: Aval) -> Any:
    """Returns a tangent or cotangent as an array, of the weak type of its primal.

    A derivative with respect to a Python number yields in promotion as the number
    does, or a bfloat16 model that it scales would become float32.

    Args:
      tangent: a tangent or cotangent, perhaps `Zero`.
      aval: the type of the value.
    """
    value = instantiate(tangent)
    if aval.tangent().dtype == dtypes.float0:
        return value
    value = as_array(value)
    if value.aval.weak_type == aval.weak_type:
        return value
    return table["convert_element_type"].bind(
        value, new_dtype=value.aval.dtype, weak_type=aval.weak_type
    )


def add(x: Any, y: Any) -> Any:
    """Returns the sum of two tangents or cotangents; either may be `Zero` or None."""
    if x is None or type(x) is Zero:
        return y
    if y is None or type(y) is Zero:
        return x
    return table["add"].bind(x, y)


def broadcast_front(value: Any, aval: Aval, size: int) -> Any:
    """Returns an unmapped value repeated along a new first axis.

    Args:
      value: of type `aval`.
      aval: its type.
      size: length of the new axis.
    """
    return repeated(value, (size, *aval.shape))


def repeated(value: Any, shape: Shape) -> Array:
    """Returns an array broadcast to a shape that it is known to broadcast to."""
    made: Array = value
    aval = typeof(value)
    lead = len(shape) - aval.ndim
    if aval.shape == shape:
        return made
    if dtypes.is_key(aval.dtype):
        # Structural operations know nothing of keys: their words have axes of their
        # own.
        words = table["random_unwrap"].bind(value)
        suffix = aval.dtype.suffix
        wide = table["broadcast_in_dim"].bind(
            words,
            shape=shape + suffix,
            broadcast_dimensions=tuple(range(lead, len(shape) + len(suffix))),
        )
        made = table["random_wrap"].bind(wide, dtype=aval.dtype)
    else:
        made = table["broadcast_in_dim"].bind(
            value, shape=shape, broadcast_dimensions=tuple(range(lead, len(shape)))
        )
    return made


def mul(x: Any, y: Any) -> Any:
    """Returns the product of a tangent and a factor of the same shape (or 0-d)."""
    return table["mul"].bind(x, y)


def div(x: Any, y: Any) -> Any:
    """Returns the quotient of a tangent and a divisor of the same shape (or 0-d)."""
    return table["div"].bind(x, y)


def neg(x: Any) -> Any:
    """Returns the negative of a tangent or cotangent; of `Zero`, itself."""
    return x if type(x) is Zero else table["neg"].bind(x)


def cast(x: Any, dtype: Any) -> Any:
    """Returns `x` with another dtype."""
    return table["convert_element_type"].bind(x, new_dtype=dtype, weak_type=False)


def reduce_sum(x: Any, axes: tuple[int, ...]) -> Any:
    """Returns the sum of a cotangent over some axes, which disappear."""
    return table["reduce_sum"].bind(x, axes=axes) if axes else x
