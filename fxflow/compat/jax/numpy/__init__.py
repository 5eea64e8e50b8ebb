"""`jax.numpy`."""

import string
from typing import Any

import ml_dtypes
import numpy as _np

from fxflow import numpy as _numpy
from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax.dtypes import issubdtype as issubdtype
from fxflow.compat.jax.numpy import fft as fft
from fxflow.lax import dot_general as _dot_general

# Classes, as in NumPy: programs ask `isinstance(d, jnp.dtype)`.
dtype = _np.dtype
finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


# Dtypes that arrays can have and XLA does not compute with.
for _name in ("int1", "uint1", "float6_e2m3fn", "float6_e3m2fn"):
    if hasattr(ml_dtypes, _name):
        globals()[_name] = getattr(ml_dtypes, _name)


class _Ufuncs(type):
    """Knows as ufuncs what NumPy has as such; fxflow has some more."""

    def __instancecheck__(cls, value: Any) -> bool:
        name = getattr(value, "__name__", "")
        return isinstance(value, _numpy.ufunc) and (
            isinstance(getattr(_np, name, None), _np.ufunc) or not hasattr(_np, name)
        )

    def __call__(cls, *args: Any, **options: Any) -> Any:
        return _numpy.ufunc(*args, **options)


class ufunc(metaclass=_Ufuncs):
    """The type of universal functions; see `fxflow.numpy.ufunc`."""


class _Slices:
    """Grids of slices without a stop: their start is the stop, as in JAX."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def __getitem__(self, key: Any) -> Any:
        several = isinstance(key, tuple)
        keys = [_stopped(k) for k in (key if several else (key,))]
        return self._grid[tuple(keys) if several else keys[0]]


def _stopped(key: Any) -> Any:
    if isinstance(key, slice) and key.stop is None and key.start is not None:
        return slice(0, key.start, key.step)
    return key


mgrid: _Slices = _Slices(_numpy.mgrid)
ogrid: _Slices = _Slices(_numpy.ogrid)
r_: _Slices = _Slices(_numpy.r_)
c_: _Slices = _Slices(_numpy.c_)


def einsum_path(*args: Any, **options: Any) -> tuple[list[tuple[int, ...]], str]:
    """Returns the order of the products of an `einsum`; see `fxflow.numpy.einsum_path`.

    Args:
      *args: the subscripts and the operands.
      **options: of `fxflow.numpy.einsum_path`.

    Returns:
      The pairs of operands, without NumPy's first item, and a description.
    """
    path, description = _numpy.einsum_path(*args, **options)
    return [step for step in path if step != "einsum_path"], description


def promote_types(a: Any, b: Any) -> Any:
    """Returns the dtype to which two dtypes are promoted.

    Args:
      a: a dtype.
      b: a dtype.

    Returns:
      A `numpy.dtype`.
    """
    return _numpy.promote_types(a, b)


def einsum(subscripts: Any, /, *operands: Any, **options: Any) -> Any:
    """Sums products over subscripts; see `fxflow.numpy.einsum`.

    Args:
      subscripts: `"ij,jk->ik"`, or the first operand.
      *operands: arrays.
      **options: of `fxflow.numpy.einsum`; and `_dot_general`, which must be
        `lax.dot_general` if it is given.

    Returns:
      The sum.

    Raises:
      NotImplementedError: `_dot_general` is another function.
    """
    product = options.pop("_dot_general", None)
    if product not in (None, _dot_general):
        raise NotImplementedError(
            f"fxflow.compat.jax: einsum with another product ({product})"
        )
    if isinstance(subscripts, str):
        subscripts = _lettered(subscripts)
    return _numpy.einsum(subscripts, *operands, **options)


def _lettered(subscripts: str) -> str:
    """Returns subscripts with letters for digits, which are labels in JAX, too."""
    digits = sorted(set(subscripts) & set(string.digits))
    free = (c for c in string.ascii_letters if c not in subscripts)
    return subscripts.translate({ord(d): c for d, c in zip(digits, free, strict=False)})


__all__ = mirror(globals(), "fxflow.numpy")
