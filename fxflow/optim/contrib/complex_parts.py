"""Applies optimizers for real parameters to complex ones."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array
from fxflow.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    Params,
    State,
    Updates,
    with_extra_args_support,
)


class SplitRealAndImaginaryArrays(NamedTuple):
    """The real and imaginary parts, in place of a complex array."""

    real: Array
    imaginary: Array


class SplitRealAndImaginaryState(NamedTuple):
    """State of `split_real_and_imaginary`: the state of the inner transformation."""

    inner_state: State


def _split(params: Params) -> Params:
    def one(x: Any) -> Any:
        if not fnp.iscomplexobj(x):
            return x
        return SplitRealAndImaginaryArrays(fnp.real(x), fnp.imag(x))

    return tree.map(one, params)


def _merged(params: Params) -> Params:
    def is_pair(x: Any) -> bool:
        return isinstance(x, SplitRealAndImaginaryArrays)

    def one(x: Any) -> Any:
        return lax.complex(x.real, x.imaginary) if is_pair(x) else x

    return tree.map(one, params, is_leaf=is_pair)


def split_real_and_imaginary(
    inner: GradientTransformation,
) -> GradientTransformationExtraArgs:
    """Makes a transformation that treats a complex array as two real ones.

    Args:
      inner: a transformation.

    Returns:
      A transformation for which real and imaginary parts are independent.

    Example:
      >>> tx = optim.contrib.split_real_and_imaginary(optim.sign_sgd(0.5))
      >>> complex(tx.update(fnp.array(3 - 4j), tx.init(fnp.array(0j)))[0])
      (-0.5+0.5j)
    """
    within = with_extra_args_support(inner)

    def init(params: Params) -> SplitRealAndImaginaryState:
        return SplitRealAndImaginaryState(within.init(_split(params)))

    def update(
        updates: Updates,
        state: SplitRealAndImaginaryState,
        params: Params | None = None,
        **extra: Any,
    ) -> tuple[Updates, SplitRealAndImaginaryState]:
        split = None if params is None else _split(params)
        new, own = within.update(_split(updates), state.inner_state, split, **extra)
        return _merged(new), SplitRealAndImaginaryState(own)

    return GradientTransformationExtraArgs(init, update)
