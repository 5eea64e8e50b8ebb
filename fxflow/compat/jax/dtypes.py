"""`jax.dtypes`."""

from typing import Any

import ml_dtypes

from fxflow import dtypes as _dtypes
from fxflow import numpy as fnp
from fxflow._config import config as options
from fxflow.compat.jax._mirror import mirror
from fxflow.core.arrays.dtypes import narrow
from fxflow.errors import DtypeError as TypePromotionError

finfo: type[ml_dtypes.finfo] = ml_dtypes.finfo
iinfo: type[ml_dtypes.iinfo] = ml_dtypes.iinfo


#: Dtypes that XLA does not have: those of their kind that it has.
_SIBLINGS = {
    "int1": "int2",
    "uint1": "uint2",
    "float6_e2m3fn": "float8_e4m3fn",
    "float6_e3m2fn": "float8_e5m2",
}


def issubdtype(a: Any, b: Any) -> bool:
    """Returns whether a dtype is of a kind; see `fxflow.dtypes.issubdtype`.

    Args:
      a: a dtype; None is float64, as in NumPy.
      b: a dtype, or a kind such as `jnp.floating`.

    Returns:
      A Python bool.
    """
    a = float if a is None else _SIBLINGS.get(getattr(a, "__name__", str(a)), a)
    return _dtypes.issubdtype(a, b)


def canonicalize_dtype(
    dtype: Any, allow_extended_dtype: bool = False, *, allow_opaque_dtype: bool = False
) -> Any:
    """Returns the dtype that arrays get: without x64, 32 bits where 64 are asked for.

    Args:
      dtype: anything that names a dtype; None is float64, as in NumPy.
      allow_extended_dtype: whether dtypes of keys are taken.
      allow_opaque_dtype: older name of the argument above.
    """
    found = _dtypes.canonicalize_dtype(
        float if dtype is None else dtype, allow_extended_dtype or allow_opaque_dtype
    )
    return found if options.x64 else narrow(found)


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Returns the dtype to which arguments are promoted.

    Args:
      *args: arrays, scalars, dtypes.
      return_weak_type_flag: whether to return `(dtype, weak_type)`.
    """
    dtype = fnp.result_type(*args)
    if not return_weak_type_flag:
        return dtype
    weak = all(
        isinstance(a, bool | int | float | complex) or getattr(a, "weak_type", False)
        for a in args
    )
    return dtype, weak


__all__ = mirror(globals(), "fxflow.dtypes")
__all__ += ["TypePromotionError"]
