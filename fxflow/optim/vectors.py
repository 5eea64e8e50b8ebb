"""Concatenates the arrays of a pytree to one vector, for transformations of vectors."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ShapeError
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    State,
    Updates,
    with_extra_args_support,
)


def joined(updates: Updates) -> Array:
    """Returns the elements of all arrays, one array after the other.

    Args:
      updates: pytree of arrays.

    Returns:
      A vector, in the dtype that the arrays promote to.
    """
    leaves = tree.leaves(updates)
    if not leaves:
        return fnp.zeros(0)
    dtype = fnp.result_type(*leaves)
    return lax.concatenate([fnp.ravel(fnp.asarray(x, dtype)) for x in leaves], 0)


def like_parts(name: str, vector: Any, params: Params) -> Params:
    """Returns a vector as a pytree of arrays: the inverse of `joined`.

    Args:
      name: name of the function, for messages.
      vector: a vector that `joined` made.
      params: pytree of arrays.

    Returns:
      A pytree of the same structure, shapes and dtypes as `params`.

    Raises:
      ShapeError: the vector has the wrong length.
    """
    leaves, treedef = tree.flatten(params)
    avals = [typeof(leaf) for leaf in leaves]
    sizes = [aval.size for aval in avals]
    given = typeof(vector)
    if given.shape != (sum(sizes),):
        raise ShapeError(
            f"{name}: expected a vector of the {sum(sizes)} elements of the "
            f"parameters, got {given}"
        )
    parts, start = [], 0
    for aval, size in zip(avals, sizes, strict=True):
        part = lax.slice_in_dim(vector, start, start + size)
        if dtypes.is_complex(given.dtype) and not dtypes.is_complex(aval.dtype):
            part = fnp.real(part)
        parts.append(fnp.astype(fnp.reshape(part, aval.shape), aval.dtype))
        start += size
    return treedef.unflatten(parts)


def flatten(inner: GradientTransformation) -> GradientTransformationExtraArgs:
    """Makes a transformation that applies another one to all gradients as one vector.

    For many small arrays, this makes operations fewer and larger; arrays lose their
    shardings.

    Args:
      inner: a transformation.

    Returns:
      A transformation whose state is that of `inner` for the vector.

    Example:
      >>> tx = optim.flatten(optim.adam(0.1))
      >>> tx.init({"b": fnp.zeros(2), "w": fnp.zeros((2, 2))})[0].mu.shape
      (6,)
    """
    within = with_extra_args_support(inner)

    def init(params: Params) -> State:
        return within.init(joined(params))

    def update(
        updates: Updates, state: State, params: Params | None = None, **extra: Any
    ) -> tuple[Updates, State]:
        flat = None if params is None else joined(params)
        new, state = within.update(joined(updates), state, flat, **extra)
        return like_parts("flatten", new, updates), state

    return GradientTransformationExtraArgs(init, update)
