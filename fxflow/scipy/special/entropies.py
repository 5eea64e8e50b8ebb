"""The logistic function and entropies."""

from __future__ import annotations

import math

from fxflow import lax
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._operands import filled, operands, whole


@library()
def expit(x: ArrayLike) -> Array:
    """Logistic function: 1 / (1 + exp(-x)).

    Args:
      x: float or complex array-like.

    Returns:
      Float or complex array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.

    Source: `scipy.special.expit`.
    """
    (x,) = operands("expit", x, real=False)
    return lax.logistic(x)


@library()
def logit(x: ArrayLike) -> Array:
    """Inverse of the logistic function: log(p / (1 - p)).

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      0 → -inf, 1 → inf; outside → nan.

    Source: `scipy.special.logit`.
    """
    (x,) = operands("logit", x)
    return lax.log(x) - lax.log1p(-x)


@library()
def log_expit(x: ArrayLike) -> Array:
    """Logarithm of the logistic function.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.log_expit`.
    """
    (x,) = operands("log_expit", x)
    return lax.min(x, filled(x, 0)) - lax.log1p(lax.exp(-lax.abs(x)))


@library()
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Product x log(y), 0 where `x` is 0.

    Args:
      x: float or complex array-like.
      y: float or complex array-like.

    Returns:
      Float or complex array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.

    Source: `scipy.special.xlogy`.
    """
    x, y = operands("xlogy", x, y, real=False)
    zero = x == 0
    value = x * lax.log(choose_between(zero, filled(y, 1), y))
    return choose_between(zero, filled(value, 0), value)


@library()
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Product x log(1 + y), 0 where `x` is 0.

    Args:
      x: float or complex array-like.
      y: float or complex array-like.

    Returns:
      Float or complex array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.

    Source: `scipy.special.xlog1py`.
    """
    x, y = operands("xlog1py", x, y, real=False)
    zero = x == 0
    value = x * lax.log1p(choose_between(zero, filled(y, 0), y))
    return choose_between(zero, filled(value, 0), value)


@library()
def entr(x: ArrayLike) -> Array:
    """Entropy -x log(x), 0 where `x` is 0.

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      Negative numbers → -inf.

    Source: `scipy.special.entr`.
    """
    (x,) = operands("entr", x)
    out = -xlogy(x, choose_between(x > 0, x, filled(x, 1)))
    return choose_between(x < 0, filled(x, -math.inf), out)


@library()
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Relative entropy p log(p / q).

    Args:
      p: real array-like.
      q: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      p = 0 and q ≥ 0 → 0; inf where `p` is negative or `q` is not positive.

    Source: `scipy.special.rel_entr`.
    """
    p, q = whole(operands("rel_entr", p, q))
    both = (p > 0) & (q > 0)
    one = choose_between(both, p, filled(p, 1))
    two = choose_between(both, q, filled(q, 1))
    out = choose_between(both, one * (lax.log(one) - lax.log(two)), filled(p, math.inf))
    return choose_between((p == 0) & (q >= 0), filled(p, 0), out)


@library()
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Kullback and Leibler's divergence p log(p / q) - p + q.

    Args:
      p: real array-like.
      q: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.kl_div`.
    """
    p, q = whole(operands("kl_div", p, q))
    out: Array = rel_entr(p, q) - p + q
    return out
