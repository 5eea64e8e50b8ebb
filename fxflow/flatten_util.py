"""Pytrees as vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, Aval, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.arrays.promotion import result_type
from fxflow.core.boundary import public as _public
from fxflow.errors import DtypeError, ShapeError

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Array, Callable[[Any], Any]]:
    """Makes one vector of a pytree of arrays.

    Args:
      pytree: of arrays and numbers.

    Returns:
      The vector, of the dtype that all promote to, and a function from vectors of this
      type back to pytrees of these shapes and dtypes. Both may be differentiated.

    Raises:
      ArgumentError: a leaf is not an array.
      DtypeError: the dtypes cannot be promoted to a common one; or (of the function)
        the vector has another dtype than the one made.
      ShapeError: (of the function) the vector has another length.

    Example:
      >>> from fxflow.flatten_util import ravel_pytree
      >>> vector, unravel = ravel_pytree({"b": fnp.ones(2), "w": fnp.zeros((2, 1))})
      >>> vector.tolist()
      [1.0, 1.0, 0.0, 0.0]
      >>> unravel(vector)["w"].shape
      (2, 1)
    """
    leaves, treedef = tree.flatten(pytree)
    for leaf in leaves:
        if not is_arraylike(leaf):
            raise not_an_array(leaf, "ravel_pytree: a leaf is")
    avals = [typeof(leaf) for leaf in leaves]
    dtype = result_type(*leaves) if leaves else dtypes.default_float()
    return _joined(leaves, dtype), _Unravel(treedef, tuple(avals), dtype)


class _Unravel:
    """The function from a vector to a pytree: equal for pytrees of one type.

    So `jit` takes it as a static argument without tracing again for each pytree.
    """

    __slots__ = ("_avals", "_dtype", "_treedef")

    def __init__(self, treedef: Any, avals: tuple[Aval, ...], dtype: Any) -> None:
        self._treedef, self._avals, self._dtype = treedef, avals, dtype

    def _key(self) -> tuple[Any, ...]:
        return self._treedef, self._avals, self._dtype

    def __eq__(self, other: object) -> bool:
        return type(other) is _Unravel and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return _Unravel, self._key()

    def __call__(self, vector: Any) -> Any:
        given = typeof(vector)
        sizes = [math.prod(aval.shape) for aval in self._avals]
        if given.shape != (sum(sizes),):
            raise ShapeError(
                f"unravel: expected a vector of length {sum(sizes)}, got {given}"
            )
        if given.dtype != self._dtype:
            raise DtypeError(
                f"unravel: expected {dtypes.short_name(self._dtype)}, as ravel_pytree "
                f"gave, got {given}"
            )
        parts = []
        start = 0
        for aval, size in zip(self._avals, sizes, strict=True):
            part = lax.slice_in_dim(vector, start, start + size)
            part = lax.reshape(part, aval.shape)
            parts.append(_as_dtype(part, aval.dtype))
            start += size
        return self._treedef.unflatten(parts)


def _joined(leaves: list[Any], dtype: Any) -> Array:
    flat = [fnp.ravel(fnp.asarray(leaf, dtype)) for leaf in leaves]
    if not flat:
        return fnp.zeros(0, dtype)
    return flat[0] if len(flat) == 1 else lax.concatenate(flat, 0)


def _as_dtype(x: Any, dtype: Any) -> Any:
    """Returns `x` in its leaf's dtype; of complex numbers maybe the real part."""
    own = typeof(x).dtype
    if own == dtype:
        return x
    if dtypes.is_complex(own) and not dtypes.is_complex(dtype):
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)


_public(globals(), __all__)
