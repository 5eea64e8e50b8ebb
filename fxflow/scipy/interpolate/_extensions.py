"""More intervals for polynomials between breakpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact


def with_powers(c: Array, count: int) -> Array:
    """Returns coefficients of powers with `count` higher ones, which are 0."""
    return fnp.pad(c, [(count, 0), *[(0, 0)] * (c.aval.ndim - 1)])


def extended(
    name: str,
    own: Any,
    c: ArrayLike,
    x: ArrayLike,
    raised: Callable[[Array, int], Array] = with_powers,
) -> tuple[Array, Array]:
    """Returns coefficients and breakpoints with those of more intervals.

    Args:
      name: of the function, for messages.
      own: polynomials with `c`, array[k, m, ...], and `x`, array[m + 1].
      c: array-like[l, n, ...]: coefficients of the new intervals.
      x: real array-like[n]: breakpoints, all after or all before those of `own`.
      raised: makes coefficients of a higher degree.

    Raises:
      ArgumentError: breakpoints lie between those of `own`, or do not ascend.
      ShapeError: the shapes are incompatible.
    """
    c, x, there, known = promote_inexact(
        name, fnp.asarray(c), fnp.asarray(x), own.c, own.x
    )
    x, known = fnp.real(x), fnp.real(known)
    rest = there.aval.shape[2:]
    if x.aval.ndim != 1 or c.aval.shape[1:] != (x.aval.size, *rest):
        raise ShapeError(
            f"{name}: c must have coefficients for each of x, and the other axes "
            f"{rest}, got {c.aval} and {x.aval}"
        )
    if not x.aval.size:
        return own.c, own.x
    if isinstance(x, Tracer) or isinstance(known, Tracer):
        raise ArgumentError(
            f"{name}: breakpoints are traced: which are first is not known"
        )
    after = bool(np.asarray(x)[0] >= np.asarray(known)[-1])
    size = max(c.aval.shape[0], there.aval.shape[0])
    parts = [raised(v, size - v.aval.shape[0]) for v in (there, c)]
    points = [known, x]
    if not after:
        parts, points = parts[::-1], points[::-1]
    joined = fnp.concatenate(points)
    if not (np.diff(np.asarray(joined)) > 0).all():
        raise ArgumentError(
            f"{name}: breakpoints must ascend, all after or all before those there are"
        )
    return fnp.concatenate(parts, 1), joined
