"""Solvers that build two biorthogonal sequences: BiCG, CGS, QMR and TFQMR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.scipy.sparse.linalg.interface import function_of, without_derivative
from fxflow.scipy.sparse.linalg.iterative import docs_of_solvers, solved
from fxflow.scipy.sparse.linalg.vectors import (
    add,
    adjoint,
    dot,
    minus,
    plus,
    quotient,
    square,
    times,
    zeros,
)

F = TypeVar("F", bound=Callable[..., Any])

_docs = shared("""
    Args:
      rtol: relative tolerance of the residual: it is at most this times the norm of
        `b`.

    Returns:
      x, like `b`, of its float dtype, and an integer: 0, or the number of iterations if
      the residual is not small enough. The derivative of x is implicit: it solves the
      same system again, the transposed one in reverse mode.

    Special cases:
      nan if `b` or the residual is not finite. The method may break down: then the
      integer is not 0.
""")


def docs(solver: F) -> F:
    """Completes the docstring of a solver that also returns whether it converged."""
    return docs_of_solvers(_docs(solver))


@docs
def bicg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Any, Array]:
    """Solves A x = b by biconjugate gradients: for any maps; their adjoint is derived.

    Example:
      >>> x, info = bicg(fnp.array([[4.0, 1.0], [0.0, 2.0]]), fnp.array([6.0, 2.0]))
      >>> x.round(3), int(info)
      (Array([1.25, 1.  ], dtype=float32), 0)

    Source: `scipy.sparse.linalg.bicg`; Fletcher 1976.
    """
    return solved("bicg", _bicg, A, b, x0, rtol, atol, maxiter, M, callback)


@docs
def cgs(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Any, Array]:
    """Solves A x = b by squared conjugate gradients: for any maps, without adjoints.

    Example:
      >>> x, info = cgs(fnp.array([[4.0, 1.0], [0.0, 2.0]]), fnp.array([6.0, 2.0]))
      >>> x.round(3), int(info)
      (Array([1.25, 1.  ], dtype=float32), 0)

    Source: `scipy.sparse.linalg.cgs`; Sonneveld 1989.
    """
    return solved("cgs", _cgs, A, b, x0, rtol, atol, maxiter, M, callback)


@docs
def tfqmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Any, Array]:
    """Solves A x = b by quasi-minimal residuals without adjoints: for any maps.

    Example:
      >>> x, info = tfqmr(fnp.array([[4.0, 1.0], [0.0, 2.0]]), fnp.array([6.0, 2.0]))
      >>> x.round(3), int(info)
      (Array([1.25, 1.  ], dtype=float32), 0)

    Source: `scipy.sparse.linalg.tfqmr`; Freund 1993.
    """
    return solved("tfqmr", _tfqmr, A, b, x0, rtol, atol, maxiter, M, callback)


@docs
def qmr(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    atol: float = 0.0,
    maxiter: int | None = None,
    M1: Any = None,
    M2: Any = None,
    callback: Any = None,
) -> tuple[Any, Array]:
    """Solves A x = b by quasi-minimal residuals: for any maps; adjoints are derived.

    Args:
      M1: the inverse of the left factor of a preconditioner, an approximation of `A`;
        None is the identity.
      M2: the inverse of its right factor; None is the identity.

    Raises:
      ArgumentError: `A`, `M1` or `M2` is neither a matrix nor a function.

    Example:
      >>> x, info = qmr(fnp.array([[4.0, 1.0], [0.0, 2.0]]), fnp.array([6.0, 2.0]))
      >>> x.round(3), int(info)
      (Array([1.25, 1.  ], dtype=float32), 0)

    Source: `scipy.sparse.linalg.qmr`; Freund and Nachtigal 1991.
    """
    left = (lambda v: v) if M1 is None else function_of("qmr", "M1", M1)
    right = (lambda v: v) if M2 is None else function_of("qmr", "M2", M2)

    def method(
        A: Any, b: Any, r: Any, bound: Any, maxiter: int, _: Any, tell: Any
    ) -> Any:
        M1, M2 = left, right
        if callback is not None:
            M1, M2 = (without_derivative(side, r) for side in (left, right))
        return _qmr(A, r, bound, maxiter, M1, M2, tell)

    return solved("qmr", method, A, b, x0, rtol, atol, maxiter, None, callback)


# Each returns the solution of A x = r, the square of the residual's norm, and how many
# iterations there were.


def _bicg(A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any, tell: Any) -> Any:
    back, turned = adjoint(A, r), adjoint(M, r)

    def more(state: Any) -> Any:
        _, r, _, _, _, rho, k = state
        return (square(r) > bound) & (rho != 0) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, shadow, p, pt, rho, k = state
        q, qt = A(p), back(pt)
        alpha = quotient(rho, dot(pt, q))
        x, r = plus(x, alpha, p), plus(r, -alpha, q)
        tell(x)
        shadow = plus(shadow, -fnp.conj(alpha), qt)
        z, zt = M(r), turned(shadow)
        now = dot(shadow, z)
        beta = quotient(now, rho)
        return x, r, shadow, plus(z, beta, p), plus(zt, fnp.conj(beta), pt), now, k + 1

    z, zt = M(r), turned(r)
    start = (zeros(r), r, r, z, zt, dot(r, z), 0)
    x, r, *_, k = lax.while_loop(more, step, start)
    return x, square(r), k


def _cgs(A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any, tell: Any) -> Any:
    shadow = r

    def more(state: Any) -> Any:
        _, r, _, _, rho, k = state
        return (square(r) > bound) & (rho != 0) & (k < maxiter)

    def step(state: Any) -> Any:
        x, r, u, p, rho, k = state
        v = A(M(p))
        alpha = quotient(rho, dot(shadow, v))
        q = plus(u, -alpha, v)
        toward = M(add(u, q))
        x, r = plus(x, alpha, toward), plus(r, -alpha, A(toward))
        tell(x)
        now = dot(shadow, r)
        beta = quotient(now, rho)
        u = plus(r, beta, q)
        return x, r, u, plus(u, beta, plus(q, beta, p)), now, k + 1

    start = (zeros(r), r, r, r, dot(r, r), 0)
    x, r, *_, k = lax.while_loop(more, step, start)
    return x, square(r), k


def _tfqmr(A: Any, b: Any, r: Any, bound: Any, maxiter: int, M: Any, tell: Any) -> Any:
    shadow = r

    def product(x: Any) -> Any:
        return A(M(x))

    def half(parts: Any, alpha: Any, u: Any, image: Any) -> Any:
        y, w, d, tau, theta, eta = parts
        w = plus(w, -alpha, image)
        d = plus(u, quotient(theta**2 * eta, alpha), d)
        theta = quotient(fnp.sqrt(square(w)), tau)
        c2 = 1 / (1 + theta**2)
        tau = tau * theta * fnp.sqrt(c2)
        eta = alpha * c2
        return plus(y, eta, d), w, d, tau, theta, eta

    # The residual's norm is below √(2 k + 1) τ.
    def left(parts: Any, k: Any) -> Any:
        return parts[3] ** 2 * (2 * k + 1)

    def more(state: Any) -> Any:
        parts, _, _, _, rho, k = state
        return (left(parts, k) > bound) & (rho != 0) & (k < maxiter)

    def step(state: Any) -> Any:
        parts, u, image, v, rho, k = state
        alpha = quotient(rho, dot(shadow, v))
        parts = half(parts, alpha, u, image)
        u = plus(u, -alpha, v)
        image = product(u)
        parts = half(parts, alpha, u, image)
        tell(M(parts[0]))
        now = dot(shadow, parts[1])
        beta = quotient(now, rho)
        u = plus(parts[1], beta, u)
        after = product(u)
        v = plus(after, beta, plus(image, beta, v))
        return parts, u, after, v, now, k + 1

    image, rho = product(r), dot(r, r)
    size = fnp.sqrt(square(r))
    none = zeros(r)
    parts = (none, r, none, size, fnp.zeros_like(size), fnp.zeros_like(rho))
    start = (parts, r, image, image, rho, 0)
    parts, *_, k = lax.while_loop(more, step, start)
    rest = fnp.where(fnp.isfinite(size), left(parts, k), fnp.nan)
    return M(parts[0]), rest, k


def _qmr(A: Any, r: Any, bound: Any, maxiter: int, M1: Any, M2: Any, tell: Any) -> Any:
    back = adjoint(A, r)
    turned1, turned2 = adjoint(M1, r), adjoint(M2, r)

    def norm(x: Any) -> Any:
        return fnp.sqrt(square(x))

    def over(x: Any, size: Any) -> Any:
        return times(quotient(fnp.ones_like(size), size), x)

    def more(state: Any) -> Any:
        return (square(state["r"]) > bound) & state["fine"] & (state["k"] < maxiter)

    def step(s: Any) -> Any:
        rho, xi = s["rho"], s["xi"]
        v, y = over(s["v"], rho), over(s["y"], rho)
        w, z = over(s["w"], xi), over(s["z"], xi)
        delta = dot(z, y)
        p = plus(M2(y), -quotient(xi * delta, s["epsilon"]), s["p"])
        ratio = quotient(rho * fnp.conj(delta), fnp.conj(s["epsilon"]))
        q = plus(turned1(z), -ratio, s["q"])
        image = A(p)
        epsilon = dot(q, image)
        beta = quotient(epsilon, delta)
        v = plus(image, -beta, v)
        y = M1(v)
        w = plus(back(q), -fnp.conj(beta), w)
        z = turned2(w)
        now = norm(y)
        theta = quotient(now, s["gamma"] * abs(beta))
        gamma = 1 / fnp.sqrt(1 + theta**2)
        square_ratio = quotient(gamma**2, s["gamma"] ** 2)
        eta = -s["eta"] * quotient(rho * square_ratio, beta)
        carried = (s["theta"] * gamma) ** 2
        d = plus(times(eta, p), carried, s["d"])
        change = plus(times(eta, image), carried, s["s"])
        fine = (delta != 0) & (epsilon != 0)
        x = add(s["x"], d)
        tell(x)
        return {
            "x": x,
            "r": minus(s["r"], change),
            "v": v,
            "y": y,
            "w": w,
            "z": z,
            "p": p,
            "q": q,
            "d": d,
            "s": change,
            "rho": now,
            "xi": norm(z),
            "epsilon": epsilon,
            "theta": theta,
            "gamma": gamma,
            "eta": eta,
            "fine": fine,
            "k": s["k"] + 1,
        }

    y, z, none = M1(r), turned2(r), zeros(r)
    one = fnp.ones_like(norm(r))
    kind = fnp.zeros_like(dot(r, r))
    state = {
        "x": none,
        "r": r,
        "v": r,
        "y": y,
        "w": r,
        "z": z,
        "p": none,
        "q": none,
        "d": none,
        "s": none,
        "rho": norm(y),
        "xi": norm(z),
        "epsilon": kind,
        "theta": 0 * one,
        "gamma": one,
        "eta": kind - 1,
        "fine": fnp.asarray(True),
        "k": 0,
    }
    end = lax.while_loop(more, step, state)
    return end["x"], square(end["r"]), end["k"]
