"""What the functions share: operands as matrices of a dtype that LAPACK knows."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.errors import ShapeError
from fxflow.numpy._operands import convert, promote_inexact
from fxflow.numpy.axis_order import matrix_transpose
from fxflow.numpy.diagonals import eye


def computed(x: Any) -> Any:
    """Returns an array in a dtype that LAPACK knows."""
    if dtypes.bits(x.aval.dtype) < 32:
        return convert(x, dtypes.float32)
    return x


def matrices(name: str, *args: Any, square: bool = False) -> list[Array]:
    """Returns float arrays of one dtype whose last two axes are matrices."""
    out = [computed(x) for x in promote_inexact(name, *args)]
    for x in out:
        shape = x.aval.shape
        if len(shape) < 2:
            raise ShapeError(f"{name}: takes matrices [..., m, n], got {x.aval}")
        if square and shape[-1] != shape[-2]:
            raise ShapeError(f"{name}: takes square matrices [..., n, n], got {x.aval}")
    return out


def adjoint(x: Any) -> Any:
    swapped = matrix_transpose(x)
    return lax.conj(swapped) if dtypes.is_complex(x.aval.dtype) else swapped


def identity_like(a: Any, n: int) -> Array:
    return repeated(eye(n, dtype=a.aval.dtype), (*a.aval.shape[:-2], n, n))


def precision_of(x: Any) -> float:
    return float(dtypes.finfo(x.aval.dtype).eps)
