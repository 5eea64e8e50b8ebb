"""Calls of LAPACK and cuSOLVER in a program's text, and small matrix helpers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core import arith, dtypes
from fxflow.core.aval import Aval
from fxflow.core.convert import typeof
from fxflow.core.errors import ShapeError
from fxflow.devices import lapack
from fxflow.lax.comparison import eq, ge, gt
from fxflow.lax.complex import conj
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota, full
from fxflow.lax.dot import DotGeneral, Precision
from fxflow.lax.elementwise import add, mul, sub
from fxflow.lax.families import INEXACT, require_kind
from fxflow.lax.reduction import ReduceSum
from fxflow.lax.select import select
from fxflow.lax.shape import broadcast_in_dim, transpose

EXACT = (Precision.HIGHEST, Precision.HIGHEST)


# -- types -------------------------------------------------------------------------


def require_matrices(name: str, aval: Aval, *, square: bool = False) -> None:
    """Checks that an operand holds matrices that the libraries take.

    Raises:
      ShapeError: it has fewer than two axes, or is not square.
      DtypeError: it is not float or complex of at least 32 bits.
    """
    require_kind(name, aval, INEXACT)
    if dtypes.bits(aval.dtype) < 32:
        raise_small(name, aval)
    if aval.ndim < 2:
        raise ShapeError(f"{name}: takes matrices [..., m, n], got {aval}")
    if square and aval.shape[-1] != aval.shape[-2]:
        raise ShapeError(f"{name}: takes square matrices [..., n, n], got {aval}")


def raise_small(name: str, aval: Aval) -> None:
    """Refuses 16-bit floats."""
    from fxflow.core.errors import DtypeError

    raise DtypeError(
        f"{name}: takes float32, float64, complex64 or complex128 matrices, got {aval}: "
        "convert it with .astype('float32') first"
    )
