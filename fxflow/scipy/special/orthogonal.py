"""Orthogonal polynomials: their values, and the nodes of Gaussian quadrature rules.

Polynomials of whole degrees follow their recurrences in one loop, others are
hypergeometric functions (DLMF 18.5). Nodes are eigenvalues of the Jacobi matrix (Golub
and Welsch 1969), improved by Newton's method.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, array_of
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands
from fxflow.scipy.special.compositions import binom
from fxflow.scipy.special.gammas import gamma, poch
from fxflow.scipy.special.hypergeometric import hyp1f1, hyp2f1

_docs = docs_of(
    """
n: array-like: the degree.
alpha: real array-like.
beta: real array-like.
p: real array-like.
q: real array-like.
x: real array-like.
""",
    "; DLMF 18",
)


# -- values ----------------------------------------------------------------------------


class _Family(NamedTuple):
    """A family of polynomials.

    Attributes:
      first: of the parameters and x: the polynomial of degree 1.
      next: of k, parameters and x: factors of the polynomials of degree k and k - 1
        whose sum is the one of degree k + 1.
      general: of a degree that is not an integer, parameters and x; None: there is
        none.
    """

    first: Callable[..., Any]
    next: Callable[..., Any]
    general: Callable[..., Any] | None


def _jacobi_next(k: Any, a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    s = 2 * k + a + b
    scale = 2 * (k + 1) * (k + a + b + 1) * s
    up = (s + 1) * ((s + 2) * s * x + (a - b) * (a + b))
    return up / scale, -2 * (k + a) * (k + b) * (s + 2) / scale


def _jacobi_general(n: Any, a: Any, b: Any, x: Any) -> Any:
    size = poch(n + 1, a) / gamma(a + 1)
    return size * hyp2f1(-n, n + a + b + 1, a + 1, 0.5 * (1 - x))


def _gegenbauer_general(n: Any, a: Any, x: Any) -> Any:
    size = poch(n + 1, 2 * a - 1) / gamma(2 * a)
    return size * hyp2f1(-n, n + 2 * a, a + 0.5, 0.5 * (1 - x))


def _laguerre_general(n: Any, a: Any, x: Any) -> Any:
    return poch(n + 1, a) / gamma(a + 1) * hyp1f1(-n, a + 1, x)


_FAMILIES = {
    "legendre": _Family(
        lambda x: x,
        lambda k, x: ((2 * k + 1) / (k + 1) * x, -k / (k + 1)),
        lambda n, x: hyp2f1(-n, n + 1, 1 + 0 * x, 0.5 * (1 - x)),
    ),
    "chebyt": _Family(
        lambda x: x,
        lambda k, x: (2 * x, -1 + 0 * x),
        lambda n, x: hyp2f1(-n, n, 0.5 + 0 * x, 0.5 * (1 - x)),
    ),
    "chebyu": _Family(
        lambda x: 2 * x,
        lambda k, x: (2 * x, -1 + 0 * x),
        lambda n, x: (n + 1) * hyp2f1(-n, n + 2, 1.5 + 0 * x, 0.5 * (1 - x)),
    ),
    "hermite": _Family(lambda x: 2 * x, lambda k, x: (2 * x, -2 * k + 0 * x), None),
    "hermitenorm": _Family(lambda x: x, lambda k, x: (x, -k + 0 * x), None),
    "laguerre": _Family(
        lambda a, x: 1 + a - x,
        lambda k, a, x: ((2 * k + 1 + a - x) / (k + 1), -(k + a) / (k + 1)),
        _laguerre_general,
    ),
    "gegenbauer": _Family(
        lambda a, x: 2 * a * x,
        lambda k, a, x: (2 * (k + a) / (k + 1) * x, -(k + 2 * a - 1) / (k + 1)),
        _gegenbauer_general,
    ),
    "jacobi": _Family(
        lambda a, b, x: a + 1 + 0.5 * (a + b + 2) * (x - 1),
        _jacobi_next,
        _jacobi_general,
    ),
}


@functools.lru_cache
def _recurrence(name: str) -> Callable[..., Any]:
    """Returns polynomials of whole degrees of at least 0: of n, parameters and x."""
    family = _FAMILIES[name]

    def values(n: Any, *args: Any) -> Any:
        top = fnp.max(n, initial=0)

        def going(state: Any) -> Any:
            return state[0] < top

        def step(state: Any) -> Any:
            k, before, now = state
            up, back = family.next(k, *args)
            new = up * now + back * before
            more = k < n
            return k + 1, fnp.where(more, now, before), fnp.where(more, new, now)

        one = lax.full_like(args[-1], 1)
        start = fnp.ones((), n.aval.dtype), one, family.first(*args)
        now = lax.while_loop(going, step, start)[2]
        return fnp.where(n == 0, 1, now)

    count = len(operands_of(name))
    flat = lambda *args: lax.full_like(args[0], 0)
    return by_forward(values, flat, *(None,) * count)


def operands_of(name: str) -> str:
    """Returns a letter for each operand but the degree."""
    return {"laguerre": "ax", "gegenbauer": "ax", "jacobi": "abx"}.get(name, "x")


def _evaluated(function: str, name: str, n: Any, *args: Any) -> Array:
    """Returns polynomials of a family, of degrees of any kind."""
    degree = array_of(n, function)
    whole = not dtypes.is_inexact(degree.aval.dtype)
    general = _FAMILIES[name].general

    def values(n: Any, *args: Any) -> Any:
        if general is not None and not whole:
            return general(n, *args)
        n = lax.floor(n)
        sign: Any = 1
        if name in ("legendre", "chebyt"):
            n = fnp.where(n < 0, -n - (name == "legendre"), n)
        elif name == "chebyu":
            sign = fnp.where(n < -1, -1, fnp.where(n == -1, 0, 1))
            n = fnp.where(n < 0, fnp.maximum(-n - 2, 0), n)
        out = sign * _recurrence(name)(fnp.maximum(n, 0), *args)
        missing = math.nan if name.startswith("hermite") else 0.0
        return fnp.where(n < 0, missing, out)

    return in_64_bits(values, function, degree, *args)


@library()
@_docs
def eval_legendre(n: ArrayLike, x: ArrayLike) -> Array:
    """Legendre polynomials, or functions of a real degree.

    Example:
      >>> eval_legendre(2, 0.5).round(4)
      Array(-0.125, dtype=float32)
    """
    return _evaluated("eval_legendre", "legendre", n, x)


@library()
@_docs
def eval_chebyt(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the first kind.

    Example:
      >>> eval_chebyt(2, 0.5).round(4)
      Array(-0.5, dtype=float32)
    """
    return _evaluated("eval_chebyt", "chebyt", n, x)


@library()
@_docs
def eval_chebyu(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the second kind.

    Example:
      >>> eval_chebyu(2, 0.5).round(4)
      Array(0., dtype=float32)
    """
    return _evaluated("eval_chebyu", "chebyu", n, x)


@library()
@_docs
def eval_chebyc(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the first kind on [-2, 2].

    Example:
      >>> eval_chebyc(2, 1.0).round(4)
      Array(-1., dtype=float32)
    """
    (x,) = operands("eval_chebyc", x)
    return 2 * _evaluated("eval_chebyc", "chebyt", n, 0.5 * x)


@library()
@_docs
def eval_chebys(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the second kind on [-2, 2].

    Example:
      >>> eval_chebys(2, 1.0).round(4)
      Array(0., dtype=float32)
    """
    (x,) = operands("eval_chebys", x)
    return _evaluated("eval_chebys", "chebyu", n, 0.5 * x)


@library()
@_docs
def eval_sh_legendre(n: ArrayLike, x: ArrayLike) -> Array:
    """Legendre polynomials on [0, 1].

    Example:
      >>> eval_sh_legendre(2, 0.75).round(4)
      Array(-0.125, dtype=float32)
    """
    (x,) = operands("eval_sh_legendre", x)
    return _evaluated("eval_sh_legendre", "legendre", n, 2 * x - 1)


@library()
@_docs
def eval_sh_chebyt(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the first kind on [0, 1].

    Example:
      >>> eval_sh_chebyt(2, 0.75).round(4)
      Array(-0.5, dtype=float32)
    """
    (x,) = operands("eval_sh_chebyt", x)
    return _evaluated("eval_sh_chebyt", "chebyt", n, 2 * x - 1)


@library()
@_docs
def eval_sh_chebyu(n: ArrayLike, x: ArrayLike) -> Array:
    """Chebyshev polynomials of the second kind on [0, 1].

    Example:
      >>> eval_sh_chebyu(2, 0.75).round(4)
      Array(0., dtype=float32)
    """
    (x,) = operands("eval_sh_chebyu", x)
    return _evaluated("eval_sh_chebyu", "chebyu", n, 2 * x - 1)


@library()
@_docs
def eval_hermite(n: ArrayLike, x: ArrayLike) -> Array:
    """Physicists' Hermite polynomials; degrees are rounded down.

    Example:
      >>> eval_hermite(2, 0.5).round(4)
      Array(-1., dtype=float32)
    """
    return _evaluated("eval_hermite", "hermite", n, x)


@library()
@_docs
def eval_hermitenorm(n: ArrayLike, x: ArrayLike) -> Array:
    """Probabilists' Hermite polynomials; degrees are rounded down.

    Example:
      >>> eval_hermitenorm(2, 0.5).round(4)
      Array(-0.75, dtype=float32)
    """
    return _evaluated("eval_hermitenorm", "hermitenorm", n, x)


@library()
@_docs
def eval_laguerre(n: ArrayLike, x: ArrayLike) -> Array:
    """Laguerre polynomials.

    Example:
      >>> eval_laguerre(2, 0.5).round(4)
      Array(0.125, dtype=float32)
    """
    (x,) = operands("eval_laguerre", x)
    return _evaluated("eval_laguerre", "laguerre", n, 0 * x, x)


@library()
@_docs
def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """Generalized Laguerre polynomials.

    Example:
      >>> eval_genlaguerre(2, 1.0, 0.5).round(4)
      Array(1.625, dtype=float32)
    """
    return _evaluated("eval_genlaguerre", "laguerre", n, alpha, x)


@library()
@_docs
def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """Gegenbauer polynomials.

    Example:
      >>> eval_gegenbauer(2, 1.0, 0.5).round(4)
      Array(0., dtype=float32)
    """
    return _evaluated("eval_gegenbauer", "gegenbauer", n, alpha, x)


@library()
@_docs
def eval_jacobi(n: ArrayLike, alpha: ArrayLike, beta: ArrayLike, x: ArrayLike) -> Array:
    """Jacobi polynomials.

    Example:
      >>> eval_jacobi(2, 1.0, 0.0, 0.5).round(4)
      Array(0.625, dtype=float32)
    """
    return _evaluated("eval_jacobi", "jacobi", n, alpha, beta, x)


@library()
@_docs
def eval_sh_jacobi(n: ArrayLike, p: ArrayLike, q: ArrayLike, x: ArrayLike) -> Array:
    """Jacobi polynomials on [0, 1], with the coefficient 1 of the highest power.

    Example:
      >>> eval_sh_jacobi(2, 3.0, 1.0, 0.5).round(4)
      Array(-0.05, dtype=float32)
    """
    name = "eval_sh_jacobi"
    of = lambda n, p: binom(2 * n + p - 1, n)
    size = in_64_bits(of, name, n, p)
    p, q, x = operands(name, p, q, x)
    return _evaluated(name, "jacobi", n, p - q, q - 1, 2 * x - 1) / size


@library()
@_docs
def assoc_laguerre(x: ArrayLike, n: ArrayLike, k: ArrayLike = 0.0) -> Array:
    """Associated Laguerre polynomials: `eval_genlaguerre` with another order.

    Args:
      k: real array-like: the order.

    Example:
      >>> assoc_laguerre(0.5, 2, 1.0).round(4)
      Array(1.625, dtype=float32)
    """
    return _evaluated("assoc_laguerre", "laguerre", n, k, x)
