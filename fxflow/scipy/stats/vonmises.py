"""Von Mises' distribution of angles."""

from __future__ import annotations

from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.bessel import i0e
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, not_negative

__all__ = ["logpdf", "pdf"]

_of = Distribution(
    "kappa: non-negative real array-like: how narrow it is.", kappa=not_negative
)


@_of
def logpdf(x: ArrayLike, kappa: ArrayLike) -> Array:
    """Returns the logarithm of the probability density."""
    x, kappa = operands("vonmises.logpdf", x, kappa)
    # cos x - 1, without cancellation near 0.
    drop = -2 * lax.square(lax.sin(x / 2))
    return kappa * drop - LOG_2PI - lax.log(i0e(kappa))


pdf: Final = _of.exp(logpdf)
