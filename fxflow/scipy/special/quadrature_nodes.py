"""Nodes and weights of Gaussian quadrature rules: zeros of orthogonal polynomials.

Nodes are eigenvalues of the Jacobi matrix (Golub and Welsch 1969), improved by Newton's
method, by which they have derivatives with respect to the parameters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.linalg import eigvalsh
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.gammas import betaln, gammaln

_NEWTON = 3

_ARGS = """
    Args:
      n: the number of nodes, a positive Python integer.
      alpha: real number.
      beta: real number.
      p1: real number, p1 - q1 above -1.
      q1: positive real number.
      mu: whether to return the sum of the weights too.

    Returns:
      Float arrays [n] of ascending nodes and of weights, and with `mu` a float array.

    Raises:
      ArgumentError: `n` is not positive.
"""
_plain_docs = shared(f"""{_ARGS}
    Source: `scipy.special.{{name}}`; Golub and Welsch 1969.
""")
_docs = shared(f"""{_ARGS}
    Special cases:
      nan where a parameter is not above -1 (for Gegenbauer: not above -1/2).

    Source: `scipy.special.{{name}}`, with derivatives with respect to the parameters;
    Golub and Welsch 1969.
""")


def _rule(name: str, n: Any, jacobi: Any, *args: Any, mu: bool, even: bool) -> Any:
    """Returns nodes, weights, and with `mu` their sum.

    Args:
      name: of the public function.
      n: the number of nodes.
      jacobi: of k = 1, …, n - 1 and parameters of 64 bits: the diagonal of the Jacobi
        matrix, the squares below it, and the logarithm of the sum of the weights.
      *args: the parameters.
      mu: whether to return the sum.
      even: whether nodes are symmetric.
    """
    n = integer(name, "n", n)
    if n < 1:
        raise ArgumentError(f"{name}: n must be positive, got {n}")
    given = operands(name, *args) if args else [fnp.zeros(())]
    dtype = given[0].aval.dtype
    wide = [convert(a, dtypes.float64) for a in given] if args else []
    k = fnp.asarray(np.arange(1, n), dtypes.float64)
    diagonal, squares, total = jacobi(k, *wide)
    below = lax.sqrt(squares)
    full = diagonal[:, None] * np.eye(n)
    if n > 1:
        side = fnp.pad(below[:, None] * np.eye(n - 1), ((1, 0), (0, 1)))
        full = full + side + side.T
    x = eigvalsh(lax.stop_gradient(full))
    # Vectors of length 1 times the root of the sum; the last one is not scaled.
    steps = fnp.concatenate([below, fnp.ones((1,), x.dtype)])
    before = fnp.concatenate([fnp.zeros((1,), x.dtype), below])

    def values(x: Any) -> tuple[Any, Any, Any, Any]:
        def step(state: Any, given: Any) -> Any:
            old, now, d_old, d_now, size = state
            middle, up, back = given
            new = ((x - middle) * now - back * old) / up
            d_new = (now + (x - middle) * d_now - back * d_old) / up
            size = size + now * now
            # Far outside values overflow.
            shrink = fnp.where(lax.abs(new) > 1e100, 1e-100, 1.0)
            shrink = lax.stop_gradient(shrink)
            parts = (now, new, d_now, d_new)
            return (
                *(p * shrink for p in parts),
                size * shrink * shrink,
            ), shrink

        zero, one = 0 * x, 0 * x + 1
        start = (zero, one, zero, zero, zero)
        out, shrinks = lax.scan(step, start, (diagonal, steps, before))
        return out[1], out[3], out[4], fnp.sum(lax.log(shrinks), axis=0)

    for _ in range(_NEWTON):
        value, slope, _, _ = values(x)
        x = x - value / slope
    if even:
        x = 0.5 * (x - x[::-1])
    _, _, size, shrunk = values(x)
    weights = lax.exp(total + 2 * shrunk) / size
    if even:
        weights = 0.5 * (weights + weights[::-1])
    x, weights = convert(x, dtype), convert(weights, dtype)
    return (x, weights, convert(lax.exp(total), dtype)) if mu else (x, weights)


def _same(value: Any, k: Any) -> Any:
    return fnp.zeros((k.aval.shape[0] + 1,), k.aval.dtype) + value


def _legendre(k: Any) -> Any:
    return _same(0, k), k * k / (4 * k * k - 1), math.log(2)


def _hermite(k: Any) -> Any:
    return _same(0, k), 0.5 * k, 0.5 * math.log(math.pi)


def _hermitenorm(k: Any) -> Any:
    return _same(0, k), k, 0.5 * math.log(2 * math.pi)


def _laguerre(k: Any, a: Any) -> Any:
    a = _valid(a)
    rest = fnp.concatenate([0 * k[:1], k]) if k.aval.size else _same(0, k)
    return 2 * rest + a + 1, k * (k + a), gammaln(a + 1)


def _valid(a: Any, least: float = -1.0) -> Any:
    return fnp.where(a > least, a, math.nan)


def _jacobi(k: Any, a: Any, b: Any) -> Any:
    a, b = _valid(a), _valid(b)
    s = 2 * k + a + b
    first = fnp.reshape((b - a) / (a + b + 2), (1,))
    rest = (b - a) * (b + a) / (s * (s + 2))
    # The first square is without a factor that may be 0 / 0.
    one = 4 * (1 + a) * (1 + b) / ((a + b + 2) ** 2 * (a + b + 3))
    more = 4 * k * (k + a) * (k + b) * (k + a + b)
    more = more / fnp.where(k == 1, 1, s * s * (s + 1) * (s - 1))
    squares = fnp.where(k == 1, one, more)
    total = (a + b + 1) * math.log(2) + betaln(a + 1, b + 1)
    return fnp.concatenate([first, rest]), squares, total


def _gegenbauer(k: Any, a: Any) -> Any:
    a = _valid(a, -0.5)
    # At 0 the polynomials are Chebyshev's.
    near = k * (k + 2 * a - 1)
    squares = near / (4 * (k + a) * fnp.where(k == 1, 1, k + a - 1))
    squares = fnp.where(k == 1, 0.5 / (1 + a), squares)
    total = 0.5 * math.log(math.pi) + gammaln(a + 0.5) - gammaln(a + 1)
    return _same(0, k), squares, total


def _chebyt(k: Any) -> Any:
    return _same(0, k), fnp.where(k == 1, 0.5, 0.25), math.log(math.pi)


def _chebyu(k: Any) -> Any:
    return _same(0, k), 0.25 + 0 * k, math.log(math.pi / 2)


def _moved(rule: Any, scale: float, shift: float, size: float) -> Any:
    """Returns a rule on another interval."""
    x, weights, *rest = rule
    return (scale * x + shift, size * weights, *(size * r for r in rest))


@library("n", "mu")
@_plain_docs
def roots_legendre(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight 1 on [-1, 1].

    Example:
      >>> roots_legendre(2)[0].round(4)
      Array([-0.5774,  0.5774], dtype=float32)
    """
    return _rule("roots_legendre", n, _legendre, mu=mu, even=True)


@library("n", "mu")
@_plain_docs
def roots_sh_legendre(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight 1 on [0, 1].

    Example:
      >>> roots_sh_legendre(2)[0].round(4)
      Array([0.2113, 0.7887], dtype=float32)
    """
    rule = _rule("roots_sh_legendre", n, _legendre, mu=mu, even=True)
    return _moved(rule, 0.5, 0.5, 0.5)


@library("n", "mu")
@_plain_docs
def roots_chebyt(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight 1 / √(1 - x²) on [-1, 1].

    Example:
      >>> roots_chebyt(2)[0].round(4)
      Array([-0.7071,  0.7071], dtype=float32)
    """
    return _rule("roots_chebyt", n, _chebyt, mu=mu, even=True)


@library("n", "mu")
@_plain_docs
def roots_chebyu(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight √(1 - x²) on [-1, 1].

    Example:
      >>> roots_chebyu(2)[0].round(4)
      Array([-0.5,  0.5], dtype=float32)
    """
    return _rule("roots_chebyu", n, _chebyu, mu=mu, even=True)


@library("n", "mu")
@_plain_docs
def roots_chebyc(n: int, mu: bool = False) -> Any:
    """Returns the Gauss rule of the weight 1 / √(1 - (x / 2)²) on [-2, 2].

    Example:
      >>> roots_chebyc(2)[0].round(4)
      Array([-1.4142,  1.4142], dtype=float32)
    """
    rule = _rule("roots_chebyc", n, _chebyt, mu=mu, even=True)
    return _moved(rule, 2.0, 0.0, 2.0)


@library("n", "mu")
@_plain_docs
def roots_chebys(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight √(1 - (x / 2)²) on [-2, 2].

    Example:
      >>> roots_chebys(2)[0].round(4)
      Array([-1.,  1.], dtype=float32)
    """
    rule = _rule("roots_chebys", n, _chebyu, mu=mu, even=True)
    return _moved(rule, 2.0, 0.0, 2.0)


@library("n", "mu")
@_plain_docs
def roots_sh_chebyt(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight 1 / √(x - x²) on [0, 1].

    Example:
      >>> roots_sh_chebyt(2)[0].round(4)
      Array([0.1464, 0.8536], dtype=float32)
    """
    rule = _rule("roots_sh_chebyt", n, _chebyt, mu=mu, even=True)
    return _moved(rule, 0.5, 0.5, 1.0)


@library("n", "mu")
@_plain_docs
def roots_sh_chebyu(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight √(x - x²) on [0, 1].

    Example:
      >>> roots_sh_chebyu(2)[0].round(4)
      Array([0.25, 0.75], dtype=float32)
    """
    rule = _rule("roots_sh_chebyu", n, _chebyu, mu=mu, even=True)
    return _moved(rule, 0.5, 0.5, 0.25)


@library("n", "mu")
@_plain_docs
def roots_hermite(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight exp(-x²).

    Example:
      >>> roots_hermite(2)[0].round(4)
      Array([-0.7071,  0.7071], dtype=float32)
    """
    return _rule("roots_hermite", n, _hermite, mu=mu, even=True)


@library("n", "mu")
@_plain_docs
def roots_hermitenorm(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight exp(-x² / 2).

    Example:
      >>> roots_hermitenorm(2)[0].round(4)
      Array([-1.,  1.], dtype=float32)
    """
    return _rule("roots_hermitenorm", n, _hermitenorm, mu=mu, even=True)


@library("n", "mu")
@_plain_docs
def roots_laguerre(n: int, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight exp(-x) on [0, inf).

    Example:
      >>> roots_laguerre(2)[0].round(4)
      Array([0.5858, 3.4142], dtype=float32)
    """
    return _rule("roots_laguerre", n, _laguerre, 0.0, mu=mu, even=False)


@library("n", "mu")
@_docs
def roots_genlaguerre(n: int, alpha: ArrayLike, mu: bool = False) -> Any:
    """Returns the Gaussian quadrature rule of the weight x^alpha exp(-x) on [0, inf).

    Example:
      >>> roots_genlaguerre(2, 1.0)[0].round(4)
      Array([1.2679, 4.7321], dtype=float32)
    """
    return _rule("roots_genlaguerre", n, _laguerre, alpha, mu=mu, even=False)


@library("n", "mu")
@_docs
def roots_gegenbauer(n: int, alpha: ArrayLike, mu: bool = False) -> Any:
    """Returns the Gauss rule of the weight (1 - x²)^(alpha - 1/2) on [-1, 1].

    Example:
      >>> roots_gegenbauer(2, 1.0)[0].round(4)
      Array([-0.5,  0.5], dtype=float32)
    """
    return _rule("roots_gegenbauer", n, _gegenbauer, alpha, mu=mu, even=True)


@library("n", "mu")
@_docs
def roots_jacobi(n: int, alpha: ArrayLike, beta: ArrayLike, mu: bool = False) -> Any:
    """Returns the Gauss rule of the weight (1 - x)^alpha (1 + x)^beta on [-1, 1].

    Example:
      >>> roots_jacobi(2, 1.0, 0.0)[0].round(4)
      Array([-0.6899,  0.2899], dtype=float32)
    """
    return _rule("roots_jacobi", n, _jacobi, alpha, beta, mu=mu, even=False)


@library("n", "mu")
@_docs
def roots_sh_jacobi(n: int, p1: ArrayLike, q1: ArrayLike, mu: bool = False) -> Any:
    """Returns the Gauss rule of the weight (1 - x)^(p1 - q1) x^(q1 - 1) on [0, 1].

    Example:
      >>> roots_sh_jacobi(2, 1.0, 1.0)[0].round(4)
      Array([0.2113, 0.7887], dtype=float32)
    """
    p1, q1 = operands("roots_sh_jacobi", p1, q1)
    rule = _rule("roots_sh_jacobi", n, _jacobi, p1 - q1, q1 - 1, mu=mu, even=False)
    x, weights, *rest = rule
    size = lax.exp2(-p1)
    return (0.5 * x + 0.5, size * weights, *(size * r for r in rest))
