"""The logistic function and entropies."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.array import Array
from fxflow.core.eager import library
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._operands import filled, operands, whole


@library()
def expit(x: Any) -> Array:
    """Logistic function: 1 / (1 + exp(-x)).

    Args:
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.expit`.
    """
    (x,) = operands("expit", x)
    return lax.logistic(x)  # type: ignore[no-any-return]


@library()
def logit(x: Any) -> Array:
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
    return lax.log(x) - lax.log1p(-x)  # type: ignore[no-any-return]


@library()
def log_expit(x: Any) -> Array:
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
    return lax.min(x, filled(x, 0)) - lax.log1p(lax.exp(-lax.abs(x)))  # type: ignore[no-any-return]


@library()
def xlogy(x: Any, y: Any) -> Array:
    """Product x log(y), 0 where `x` is 0.

    Args:
      x: real array-like.
      y: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.xlogy`.
    """
    x, y = operands("xlogy", x, y)
    zero = x == 0
    value = x * lax.log(choose_between(zero, filled(y, 1), y))
    return choose_between(zero, filled(value, 0), value)  # type: ignore[no-any-return]


@library()
def xlog1py(x: Any, y: Any) -> Array:
    """Product x log(1 + y), 0 where `x` is 0.

    Args:
      x: real array-like.
      y: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.xlog1py`.
    """
    x, y = operands("xlog1py", x, y)
    zero = x == 0
    value = x * lax.log1p(choose_between(zero, filled(y, 0), y))
    return choose_between(zero, filled(value, 0), value)  # type: ignore[no-any-return]


@library()
def entr(x: Any) -> Array:
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
    return choose_between(x < 0, filled(x, -math.inf), out)  # type: ignore[no-any-return]


@library()
def rel_entr(p: Any, q: Any) -> Array:
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
    return choose_between((p == 0) & (q >= 0), filled(p, 0), out)  # type: ignore[no-any-return]


@library()
def kl_div(p: Any, q: Any) -> Array:
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
    return rel_entr(p, q) - p + q  # type: ignore[no-any-return]
