"""`masked`: a function at the elements where it is defined, another value elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core import tree
from fxflow.core.arrays import dtypes, typeof
from fxflow.core.arrays.array import is_arraylike, not_an_array
from fxflow.core.boundary import boundary, require_callable
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import table
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax._operands import common_shape, constant_like
from fxflow.lax.arg_extremum import argmax
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim
from fxflow.lax.gradient_control import stop_gradient
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select_n


@boundary
def masked(
    condition: Any,
    f: Callable[..., Any],
    *operands: Any,
    otherwise: Any = 0,
) -> Any:
    """Returns `f(*operands)` where a condition holds, and another value elsewhere.

    `where(x > 0, log(x), 0)` computes the logarithm of every x. Its derivative
    multiplies the slope of the logarithm at 0 by zero, which is nan. Here `f` sees
    elements for which the condition holds, and no others: where it does not, their
    place is taken by the first element for which it does, or by 1 if there is none. So
    neither values nor derivatives, of any order and in both modes, are nan or infinite
    because of elements that are not selected.

    Args:
      condition: bool array.
      f: an elementwise function of arrays, which may use traced values from outside.
        Returns an array of the operands' shape, or a pytree of them.
      *operands: arrays; with the condition they are of one shape, or 0-d, or have axes
        of length one.
      otherwise: the value where the condition does not hold: a number, or an array or a
        pytree of them like the result of `f`.

    Returns:
      What `f` returns, with the other value put in.

    Raises:
      ArgumentError: `f` is not a function, or an operand is not an array.
      DtypeError: the condition is not boolean.
      ShapeError: the shapes are incompatible, or `f` returns another shape.

    Special cases:
      Where the condition holds for no element, `f` sees 1, as under `vmap` any slice
      of one element does. If it is not defined there, values and derivatives with
      respect to the operands are right all the same, but derivatives with respect to
      what `f` uses from outside may be nan.

    Example:
      >>> x = np.array([0.0, 1.0], "f4")
      >>> masked(x > 0, lax.log, x, otherwise=-1.0)
      Array([-1.,  0.], dtype=float32)
      >>> fxflow.grad(lambda x: masked(x > 0, lax.sqrt, x).sum())(x)
      Array([0. , 0.5], dtype=float32)

    Source: the "double where" of TensorFlow Probability's notes, 2019.
    """
    name = "masked"
    require_callable(f, f"{name}: f")
    for value in (condition, *operands):
        if not is_arraylike(value):
            what = "condition" if value is condition else "an operand"
            raise not_an_array(value, f"{name}: {what} is")
    if not dtypes.is_bool(typeof(condition).dtype):
        raise DtypeError(f"{name}: condition must be boolean, got {typeof(condition)}")
    avals = [typeof(v) for v in (condition, *operands)]
    shape = avals[0].shape
    if any(a.shape != shape for a in avals):
        shape = common_shape(name, avals) if any(a.ndim for a in avals) else ()
    mask, size = arith.repeated(condition, shape), math.prod(shape)
    flags = reshape(mask, (size,))
    first = argmax(flags, 0, np.int32) if size else None
    some = table["reduce_or"].bind(flags, axes=(0,))

    def safe(x: Any) -> Any:
        x = arith.repeated(x, shape)
        if first is None:
            return x
        # A constant: what comes of it is selected nowhere else.
        flat = stop_gradient(reshape(x, (size,)))
        stand_in = dynamic_index_in_dim(flat, first, 0, keepdims=False)
        one = arith.constant(1, typeof(x).dtype)
        stand_in = select_n(some, one, stand_in)
        return select_n(mask, arith.repeated(stand_in, shape), x)

    out = f(*map(safe, operands))
    leaves, structure = tree.flatten(out)
    others = tree.leaves(otherwise)
    if tree.structure(otherwise) != structure or len(others) == 1:
        others = others * len(leaves)

    def selected(x: Any, other: Any) -> Any:
        aval = typeof(x)
        if aval.shape != shape:
            raise ShapeError(
                f"{name}: f must return the shape of its operands, {shape}, got {aval}"
            )
        if type(other) in (bool, int, float, complex):
            other = constant_like(other, aval, name)
        return select_n(mask, arith.repeated(other, shape), x)

    return structure.unflatten(
        [selected(x, other) for x, other in zip(leaves, others, strict=True)]
    )
