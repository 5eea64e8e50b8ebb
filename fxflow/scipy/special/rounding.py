"""Rounding, in a module of its own: it has the name of Python's function."""

from __future__ import annotations

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, special_docs


@library()
@special_docs
def round(x: ArrayLike) -> Array:
    """Nearest whole number; of two, the even one.

    Special cases:
      ±inf → ±inf.

    Example:
      >>> [float(round(x)) for x in (0.5, 1.5, -2.6)]
      [0.0, 2.0, -3.0]
    """
    return fnp.round(operands("round", x)[0])
