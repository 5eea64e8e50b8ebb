"""The multinomial distribution: how often n trials have each of several results."""

from __future__ import annotations

import math
from typing import Final

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_inexact
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammaln
from fxflow.scipy.stats._functions import Distribution, inside

__all__ = ["logpmf", "pmf"]

_of = Distribution("""
x: int array-like[..., r]: how often each result occurs.
n: int array-like[...]: how many trials.
p: real array-like[..., r]: the probability of each result.
""")


@_of
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Returns the logarithm of the probability of a number.

    Returns:
      Float array[...].

    Raises:
      DtypeError: `x` or `n` are not integers.
      ShapeError: the shapes do not broadcast together.

    Special cases:
      -inf where the sum of `x` is not `n`, or a number is negative.
    """
    name = "multinomial.logpmf"
    x, n = array_of(x, name), array_of(n, name)
    (p,) = promote_inexact(name, p)
    for what, given in (("x", x), ("n", n)):
        if not dtypes.is_integer(given.aval.dtype):
            raise DtypeError(f"{name}: {what} must be integers, got {given.aval}")
    if not x.aval.ndim or not p.aval.ndim or x.aval.shape[-1] != p.aval.shape[-1]:
        raise ShapeError(
            f"{name}: x and p must have one number for each result, got {x.aval} and "
            f"{p.aval}"
        )
    dtype = p.aval.dtype
    known = fnp.all(x >= 0, axis=-1) & (fnp.sum(x, axis=-1) == n)
    y = convert(fnp.maximum(x, 0), dtype)
    total = convert(fnp.maximum(n, 0), dtype)
    value = gammaln(total + 1) + fnp.sum(xlogy(y, p) - gammaln(y + 1), axis=-1)
    return inside(known, value, -math.inf)


pmf: Final = _of.exp(logpmf)
