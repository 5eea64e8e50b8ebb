"""The logistic function and entropies."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.lax.gamma_ratios import excess
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.elementary import logaddexp
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._operands import operands, special_docs
from fxflow.transforms.custom_jvp import custom_jvp

_complex_docs = shared("""
    Args:
      x: float or complex array-like.
      y: float or complex array-like.

    Returns:
      Float or complex array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.

    Source: `scipy.special.{name}`.
""")


@library()
@_complex_docs
def expit(x: ArrayLike) -> Array:
    """Logistic function: 1 / (1 + exp(-x)).

    Example:
      >>> expit(np.array([0.0, 2.0])).round(4)
      Array([0.5   , 0.8808], dtype=float32)
    """
    (x,) = operands("expit", x, real=False)
    return lax.logistic(x)


@library()
@special_docs
def logit(x: ArrayLike) -> Array:
    """Inverse of the logistic function: log(p / (1 - p)).

    Special cases:
      0 → -inf, 1 → inf; outside → nan.

    Example:
      >>> logit(np.array([0.5, 0.9])).round(4)
      Array([0.    , 2.1972], dtype=float32)
    """
    (x,) = operands("logit", x)
    return lax.log(x) - lax.log1p(-x)


@library()
@special_docs
def log_expit(x: ArrayLike) -> Array:
    """Logarithm of the logistic function.

    Example:
      >>> log_expit(np.array([0.0, -1000.0])).round(4)
      Array([-6.931e-01, -1.000e+03], dtype=float32)
    """
    (x,) = operands("log_expit", x)
    return -logaddexp(-x, lax.full_like(x, 0))


@library()
@_complex_docs
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """Product x log(y), 0 where `x` is 0 and `y` a number.

    Special cases:
      The derivatives are log(y) and x / y, at x = 0 too; the second is 0 at (0, 0).

    Example:
      >>> xlogy(np.array([0.0, 2.0]), np.array([0.0, 3.0])).round(4)
      Array([0.    , 2.1972], dtype=float32)
    """
    out: Array = _xlogy(*operands("xlogy", x, y, real=False))
    return out


@custom_jvp
def _xlogy(x: Any, y: Any) -> Any:
    zero = (x == 0) & (y == y)
    value = x * lax.log(choose_between(zero, lax.full_like(y, 1), y))
    return choose_between(zero, lax.full_like(value, 0), value)


def _ratio(x: Any, y: Any) -> Any:
    """Returns x / y, 0 where both are 0."""
    return x / choose_between((x == 0) & (y == 0), lax.full_like(y, 1), y)


_xlogy.defjvps(
    lambda t, out, x, y: t * lax.log(y), lambda t, out, x, y: t * _ratio(x, y)
)


@library()
@_complex_docs
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """Product x log(1 + y), 0 where `x` is 0 and `y` a number.

    Special cases:
      The derivatives are log(1 + y) and x / (1 + y), at x = 0 too; the second is 0 at
      (0, -1).

    Example:
      >>> xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 1.0])).round(4)
      Array([0.    , 1.3863], dtype=float32)
    """
    out: Array = _xlog1py(*operands("xlog1py", x, y, real=False))
    return out


@custom_jvp
def _xlog1py(x: Any, y: Any) -> Any:
    zero = (x == 0) & (y == y)
    value = x * lax.log1p(choose_between(zero, lax.full_like(y, 0), y))
    return choose_between(zero, lax.full_like(value, 0), value)


_xlog1py.defjvps(
    lambda t, out, x, y: t * lax.log1p(y), lambda t, out, x, y: t * _ratio(x, 1 + y)
)


@library()
@special_docs
def entr(x: ArrayLike) -> Array:
    """Entropy -x log(x), 0 where `x` is 0.

    Special cases:
      Negative numbers → -inf. The derivative at 0 is inf, that of negative numbers nan.

    Example:
      >>> entr(np.array([0.0, 0.5, 1.0])).round(4)
      Array([0.    , 0.3466, 0.    ], dtype=float32)
    """
    out: Array = _entr(*operands("entr", x))
    return out


@custom_jvp
def _entr(x: Any) -> Any:
    # The difference from 0 is 0 at 0 and 1, not -0.
    out = 0 - xlogy(x, choose_between(x < 0, lax.full_like(x, 1), x))
    return choose_between(x < 0, lax.full_like(x, -math.inf), out)


_entr.defjvps(lambda t, out, x: -t * (lax.log(x) + 1))


@library()
@special_docs
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """Relative entropy p log(p / q).

    Special cases:
      p = 0 and q ≥ 0 → 0; inf where `p` is negative or `q` is not positive. There the
      derivatives are taken for 0, also that by `p` at 0, which is -inf: probabilities
      that are too small for their dtype would make every gradient nan.

    Example:
      >>> rel_entr(np.array([0.5, 1.0]), 0.25).round(4)
      Array([0.3466, 1.3863], dtype=float32)
    """
    p, q = operands("rel_entr", p, q)
    both = (p > 0) & (q > 0)
    one = choose_between(both, p, lax.full_like(p, 1))
    two = choose_between(both, q, lax.full_like(q, 1))
    out = choose_between(
        both, one * (lax.log(one) - lax.log(two)), lax.full_like(p, math.inf)
    )
    return choose_between((p == 0) & (q >= 0), lax.full_like(p, 0), out)


@custom_jvp
def _close_kl_div(p: Any, q: Any) -> Any:
    """Returns what is left of p log(p / q) - p + q where both are nearly equal."""
    part = (p - q) / q
    return (p - q) * part - p * excess(part)


_close_kl_div.defjvps(
    lambda t, out, p, q: t * lax.log1p((p - q) / q),
    lambda t, out, p, q: t * ((q - p) / q),
)


@library()
@special_docs
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """Kullback and Leibler's divergence p log(p / q) - p + q.

    Example:
      >>> kl_div(np.array([1.0, 2.0]), 1.0).round(4)
      Array([0.    , 0.3863], dtype=float32)
    """
    p, q = operands("kl_div", p, q)
    gap = (p - q) / choose_between(q == 0, lax.full_like(q, 1), q)
    near = (lax.abs(gap) < 0.3) & (p > 0) & (q > 0)
    one = choose_between(near, p, lax.full_like(p, 1))
    two = choose_between(near, q, lax.full_like(q, 1))
    close = _close_kl_div(one, two)
    one = choose_between(near, lax.full_like(p, 1), p)
    two = choose_between(near, lax.full_like(q, 1), q)
    return choose_between(near, close, rel_entr(one, two) - one + two)
