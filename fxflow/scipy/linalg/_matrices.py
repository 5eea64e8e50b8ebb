"""Arguments of linear algebra, made matrices of a dtype that the libraries take."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import convert, promote_inexact

_TRANS = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def matrix_of(name: str, a: Any, *, square: bool = False) -> Array:
    """Returns matrices in a dtype that the libraries take.

    Raises:
      ShapeError: they are not matrices, or not square.
    """
    (x,) = promote_inexact(name, a)
    if dtypes.bits(x.aval.dtype) < 32:
        x = convert(x, dtypes.float32)
    shape = x.aval.shape
    if len(shape) < 2 or (square and shape[-1] != shape[-2]):
        raise ShapeError(
            f"{name}: takes {'square ' if square else ''}matrices, got {x.aval}"
        )
    return x


def sides_of(name: str, a: Any, b: Any) -> tuple[Any, Any, bool]:
    """Returns a matrix, right sides as matrices, and whether they were a vector."""
    x, y = promote_inexact(name, a, b)
    x = matrix_of(name, x, square=True)
    y = convert(y, x.aval.dtype)
    given, vector = y.aval, y.aval.ndim == 1
    if vector:
        y = lax.expand_dims(y, (1,))
    if y.aval.ndim < 2 or y.aval.shape[-2] != x.aval.shape[-1]:
        raise ShapeError(f"{name}: {x.aval} and b, {given}, do not fit")
    lead = lax.broadcast_shapes(x.aval.shape[:-2], y.aval.shape[:-2])
    x = repeated(x, (*lead, *x.aval.shape[-2:]))
    return x, repeated(y, (*lead, *y.aval.shape[-2:])), vector


def way_of(name: str, trans: Any) -> int:
    """Returns 0 for a matrix itself, 1 for the transpose, 2 for the adjoint.

    Raises:
      ArgumentError: it is not one of them.
    """
    if trans not in _TRANS:
        raise ArgumentError(f"{name}: trans must be 0, 1 or 2, got {trans!r}")
    return _TRANS[trans]
