"""What users pass to the samplers: keys, shapes, dtypes, parameters.

Inside, a key is its data u32[2] (or u32[n,2], one key for each element).
"""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Aval, Shape, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.ir import arith
from fxflow.core.source import at_fault
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import shape_or_length

MAKE_ONE = "make one of a seed with fxflow.random.key(0)"


# -- keys ------------------------------------------------------------------------------


def typed_keys(name: str, key: Any) -> tuple[Any, bool]:
    """Returns typed keys, and whether they came as plain data.

    u32[..., 2] is data of threefry2x32, u32[..., 4] of rbg.

    Args:
      name: of the function, for messages.
      key: what the user gave.

    Raises:
      ArgumentError: it is not a key.
    """
    if not is_arraylike(key):
        raise ArgumentError(
            f"{at_fault() or f'{name}: '}expected a random key as the first argument, "
            f"got a {type(key).__name__}: {MAKE_ONE}"
        )
    aval = typeof(key)
    if dtypes.is_key(aval.dtype):
        return key, False
    if aval.dtype == dtypes.uint32:
        for dtype in (dtypes.key_fry, dtypes.key_rbg):
            if aval.shape[-1:] == dtype.suffix:
                return lax.random_wrap(key, dtype=dtype), True
    raise ArgumentError(
        f"{at_fault() or f'{name}: '}expected a random key as the first argument, got "
        f"{aval}: {MAKE_ONE}"
    )


def one_key(name: str, key: Any) -> tuple[Any, bool]:
    """Returns one typed key, and whether it came as plain data.

    Raises:
      ArgumentError: it is not a key.
      ShapeError: it is several keys.
    """
    typed, raw = typed_keys(name, key)
    aval = typeof(typed)
    if aval.ndim:
        raise ShapeError(
            f"{name}: expected one random key, got {aval}: index it, or use "
            "fxflow.vmap to draw with each"
        )
    return typed, raw


def key_data_of(name: str, key: Any) -> Any:
    """Returns the data u32[2] of one key; the key itself, if it is not Threefry's.

    Raises:
      ArgumentError: it is not a key.
      ShapeError: it is several keys.
    """
    typed, _ = one_key(name, key)
    return lax.random_unwrap(typed) if typeof(typed).dtype == dtypes.key_fry else typed


# -- shapes ----------------------------------------------------------------------------


def result_shape(name: str, shape: Any, *parameters: Any) -> Shape:
    """Returns the shape of a result from the one asked for and the parameters'.

    Args:
      name: of the function, for messages.
      shape: what the user gave; None means the parameters' common shape.
      *parameters: arrays.

    Raises:
      ShapeError: the parameters do not broadcast to the shape.
    """
    shapes = [typeof(p).shape for p in parameters]
    if shape is None:
        return lax.broadcast_shapes(*shapes)
    wanted = shape_or_length(name, shape)
    for given in shapes:
        tail = wanted[len(wanted) - len(given) :]
        if len(given) > len(wanted) or any(
            n not in (1, m) for n, m in zip(given, tail, strict=True)
        ):
            listed = ", ".join(map(str, shapes))
            raise ShapeError(
                f"{name}: parameters of shapes {listed} do not broadcast to the shape "
                f"{wanted} asked for: it must end in their common shape"
            )
    return wanted


def fit(value: Any, shape: Shape) -> Any:
    """Returns a parameter as an operand beside arrays of a shape: 0-d ones stay."""
    own = typeof(value).shape
    return value if not own or own == shape else arith.repeated(value, shape)


# -- dtypes and parameters -------------------------------------------------------------


def float_dtype(name: str, dtype: Any) -> Any:
    """Returns the float dtype asked for (None: the default).

    Raises:
      DtypeError: it is not a float dtype.
    """
    if dtype is None:
        return dtypes.default_float()
    chosen = dtypes.dtype(dtype)
    if not dtypes.is_floating(chosen):
        raise DtypeError(
            f"{name}: dtype must be a float dtype, got {dtypes.short_name(chosen)}"
        )
    return chosen


def int_dtype(name: str, dtype: Any) -> Any:
    """Returns the integer dtype asked for (None: the default).

    Raises:
      DtypeError: it is not an integer dtype.
    """
    if dtype is None:
        return dtypes.default_int()
    chosen = dtypes.dtype(dtype)
    if not dtypes.is_integer(chosen):
        raise DtypeError(
            f"{name}: dtype must be an integer dtype, got {dtypes.short_name(chosen)}"
        )
    return chosen


def parameter(name: str, value: Any, dtype: Any) -> Any:
    """Returns a real parameter in a float dtype; a Python number as a constant.

    Raises:
      ArgumentError: it is not an array (a list, for instance).
      DtypeError: it is complex, or a key.
    """
    if type(value) in (bool, int, float):
        return arith.constant(value, dtype)
    aval = real_aval(name, value)
    if aval.dtype == dtype and not aval.weak_type:
        return value
    return lax.convert_element_type(value, dtype)


def arguments(name: str, key: Any, shape: Any, dtype: Any, *parameters: Any) -> Any:
    """Returns what a sampler of floats draws from.

    Args:
      name: of the function, for messages.
      key: one key.
      shape: shape of the result; None means the parameters' common shape.
      dtype: a float dtype; None means the default.
      *parameters: array-likes, which broadcast to the shape.

    Returns:
      The key data, the shape, the dtype, and the parameters in that dtype.

    Raises:
      ArgumentError: `key` is not a key, or a parameter is not an array.
      DtypeError: `dtype` is not a float dtype, or a parameter not real.
      ShapeError: the parameters do not broadcast to the shape.
    """
    chosen = float_dtype(name, dtype)
    given = [parameter(name, p, chosen) for p in parameters]
    full = result_shape(name, shape, *given) if given else shape_or_length(name, shape)
    return key_data_of(name, key), full, chosen, *given


def real_aval(name: str, value: Any) -> Aval:
    """Returns the type of a real parameter.

    Raises:
      ArgumentError: it is not an array (a list, for instance).
      DtypeError: it is complex, or a key.
    """
    if not is_arraylike(value):
        raise not_an_array(value, f"{name}: a parameter is")
    aval = typeof(value)
    if dtypes.is_key(aval.dtype) or dtypes.is_complex(aval.dtype):
        raise DtypeError(f"{name}: parameters must be real numbers, got {aval}")
    return aval
