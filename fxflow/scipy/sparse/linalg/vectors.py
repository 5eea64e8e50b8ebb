"""Pytrees of arrays as vectors, for solvers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.numpy._operands import convert
from fxflow.transforms.vjp import linear_transpose


def total(values: Any) -> Any:
    """Returns the sum of the leaves."""
    return functools.reduce(operator.add, tree.leaves(values))


def dot(x: Any, y: Any) -> Any:
    """Returns the inner product, complex if its operands are."""
    return total(tree.map(fnp.vdot, x, y))


def square(x: Any) -> Any:
    """Returns the square of the norm, which is real."""
    return fnp.real(dot(x, x))


def times(scale: Any, x: Any) -> Any:
    """Returns scale x, of the dtypes of x."""
    return tree.map(lambda v: convert(scale, v.dtype) * v, x)


def plus(x: Any, scale: Any, y: Any) -> Any:
    """Returns x + scale y."""
    return tree.map(lambda v, w: v + convert(scale, v.dtype) * w, x, y)


def zeros(x: Any) -> Any:
    """Returns 0, like x."""
    return tree.map(fnp.zeros_like, x)


def add(x: Any, y: Any) -> Any:
    """Returns x + y."""
    return tree.map(operator.add, x, y)


def minus(x: Any, y: Any) -> Any:
    """Returns x - y."""
    return tree.map(operator.sub, x, y)


def quotient(x: Any, y: Any) -> Any:
    """Returns x / y, 0 where y is: the solution is found then."""
    return fnp.where(y == 0, 0 * x, x / fnp.where(y == 0, 1, y))


def one_vector(b: Any) -> tuple[Any, Any, int, Any]:
    """Returns functions from pytrees to vectors and back, their length and dtype.

    Args:
      b: a pytree of arrays.
    """
    leaves, treedef = tree.flatten(b)
    shapes = [v.shape for v in leaves]
    sizes = [v.size for v in leaves]
    kinds = [v.dtype for v in leaves]
    dtype = fnp.result_type(*kinds) if kinds else dtypes.default_float()

    def ravel(t: Any) -> Any:
        parts = [convert(fnp.ravel(v), dtype) for v in tree.leaves(t)]
        return fnp.concatenate(parts)

    def unravel(v: Any) -> Any:
        parts, at = [], 0
        for shape, size, kind in zip(shapes, sizes, kinds, strict=True):
            part = fnp.reshape(lax.slice_in_dim(v, at, at + size), shape)
            if dtypes.is_complex(dtype) and not dtypes.is_complex(kind):
                part = fnp.real(part)
            parts.append(convert(part, kind))
            at += size
        return treedef.unflatten(parts)

    return ravel, unravel, sum(sizes), dtype


def orthonormal(V: Any, w: Any) -> tuple[Any, Any, Any]:
    """Returns what of a vector is orthogonal to rows, normed, and its coefficients.

    Args:
      V: orthonormal rows; others are 0.
      w: the vector.

    Returns:
      The vector, 0 if nothing is left; the coefficients of the rows; the length.
    """
    # Twice is enough (Giraud, Langou and Rozložník 2005).
    h = fnp.conj(V) @ w
    w = w - h @ V
    again = fnp.conj(V) @ w
    w, h = w - again @ V, h + again
    size = fnp.sqrt(fnp.real(fnp.vdot(w, w)))
    tiny = float(fnp.finfo(w.dtype).eps)
    lost = size <= tiny * fnp.sqrt(fnp.real(fnp.vdot(h, h)))
    size = fnp.where(lost, 0, size)
    return quotient(w, convert(size, w.dtype)), h, size


def adjoint(function: Callable[[Any], Any], like: Any) -> Callable[[Any], Any]:
    """Returns the adjoint of a linear map from vectors to vectors like them.

    Args:
      function: the map; its transpose as a program is what is used.
      like: a vector, for its type.
    """
    back = linear_transpose(function, like)
    return lambda x: tree.map(fnp.conj, back(tree.map(fnp.conj, x))[0])
