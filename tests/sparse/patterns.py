"""Patterns that are found, and those that values show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow
import fxflow.numpy as fnp


def mask(fun: Callable[..., Any], x: Any) -> np.ndarray:
    """Returns the pattern as a dense mask [result, argument]."""
    pattern = fxflow.sparse.jacobian_pattern(fun)(
        fxflow.ShapeDtypeStruct(x.shape, float)
    )
    out = np.zeros(pattern.shape, bool)
    out[pattern.coords.row, pattern.coords.col] = True
    return out


def nonzero(fun: Callable[..., Any], x: Any) -> np.ndarray:
    """Returns where the dense Jacobian is not zero."""
    dense = np.asarray(fxflow.jacfwd(fun)(fnp.asarray(x)))
    return (dense != 0).reshape(-1, x.size)
