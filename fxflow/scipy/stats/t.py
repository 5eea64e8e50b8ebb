"""Student's distribution."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.stats._functions import (
    LOG_2PI,
    Distribution,
    positive,
    standard,
    with_nan,
)

__all__ = ["logpdf", "pdf"]

_of = Distribution("df: positive real array-like: degrees of freedom.", df=positive)


@_of
def logpdf(
    x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale, df = standard("t.logpdf", x, loc, scale, df)
    finite = df < math.inf
    n = safe(finite, df, 1)
    # With z as a factor of the square's logarithm it does not overflow.
    root = lax.sqrt(n)
    far = lax.abs(z) > 1e4 * root
    near = lax.log1p(lax.square(safe(~far, z, 0) / root))
    tail = 2 * lax.log(lax.abs(safe(far, z, 1)) / root)
    bend = 0.5 * (n + 1) * fnp.where(far, tail, near)
    value = -betaln(0.5 + 0 * n, n / 2) - 0.5 * lax.log(n) - bend
    # With infinite degrees of freedom it is the normal distribution.
    value = fnp.where(finite, value, -0.5 * (z * z + LOG_2PI))
    return with_nan(df, value - lax.log(scale))


pdf: Final = _of.exp(logpdf)
