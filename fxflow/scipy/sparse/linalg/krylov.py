"""MINRES, LSQR and LSMR: symmetric indefinite systems, and least squares."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.errors import ShapeError
from fxflow.numpy._operands import promote_inexact
from fxflow.scipy._callbacks import showing
from fxflow.scipy.sparse.linalg.interface import (
    Map,
    aslinearoperator,
    function_of,
    without_derivative,
)
from fxflow.scipy.sparse.linalg.iterative import cg


def minres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-05,
    shift: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Any = None,
) -> tuple[Array, Array]:
    """Solves (A - shift I) x = b by minimal residuals: for symmetric maps.

    The map may be indefinite or singular. The derivative, with respect to `b` and what
    `A` depends on, solves the same system again.

    Args:
      A: symmetric or Hermitian matrix, dense or sparse, operator or function.
      b: vector.
      x0: the initial guess; None is 0.
      rtol: tolerance of the residual, relative to ‖A‖ ‖x‖ + ‖b‖.
      shift: is subtracted from the diagonal.
      maxiter: how many iterations are made at most; None is 5 n.
      M: preconditioner: a positive definite approximate inverse of `A`, in any form
        that `A` takes.
      callback: called on the host with x after each iteration, for its side effects
        (see `debug.callback`). Systems that derivatives solve do not call it.

    Returns:
      x, like `b`, and an integer: 0, or the number of iterations if the residual is not
      small enough.

    Raises:
      ArgumentError: `A` or `M` is neither a matrix nor a function, or `callback` is not
        a function.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, info = minres(fnp.array([[2.0, 1.0], [1.0, -1.0]]), fnp.array([3.0, 0.0]))
      >>> x.round(4), int(info)
      (Array([1., 1.], dtype=float32), 0)

    Source: `scipy.sparse.linalg.minres`; Paige and Saunders 1975.
    """
    matvec = function_of("minres", "A", A)
    precondition = (lambda v: v) if M is None else function_of("minres", "M", M)
    (b,) = promote_inexact("minres", b)
    if typeof(b).ndim != 1:
        raise ShapeError(f"minres: b must be a vector, got {typeof(b)}")
    image = matvec(fnp.zeros_like(b))
    if typeof(image).shape != typeof(b).shape:
        raise ShapeError(f"minres: A does not fit b, {typeof(b)}")
    b = b.astype(fnp.result_type(b, image))
    steps = 5 * typeof(b).size if maxiter is None else maxiter

    def shifted(x: Any) -> Any:
        return matvec(x) - shift * x if shift is not None else matvec(x)

    def solve(A: Map, b: Any) -> tuple[Any, Any]:
        return _minres(A, b, precondition, rtol, steps)

    right = b if x0 is None else b - shifted(fnp.asarray(x0, b.dtype))
    tell = showing("minres", callback)
    if tell is not None:
        # Solved once, as if nothing had a derivative; those of the root solve again.
        fixed = lax.stop_gradient(right)
        parts = [without_derivative(f, fixed) for f in (shifted, precondition)]
        begin = 0 if x0 is None else lax.stop_gradient(fnp.asarray(x0, b.dtype))
        seen = lambda x: tell(begin + x)
        x, info = _minres(parts[0], fixed, parts[1], rtol, steps, seen)
        options = {"rtol": rtol, "maxiter": steps, "M": M}
        x = lax.custom_root(
            lambda x: shifted(x) - right,
            x,
            lambda f, x: x,
            lambda g, y: minres(g, y, **options)[0],
        )
        return (x if x0 is None else x0 + x), info
    hermitian = dtypes.is_complex(b.dtype)

    def transposed(A: Map, b: Any) -> tuple[Any, Any]:
        # The transposed map of a Hermitian one is its conjugate.
        x, info = _minres(
            lambda v: fnp.conj(shifted(fnp.conj(v))), b, precondition, rtol, steps
        )
        return x, info

    x, info = lax.custom_linear_solve(
        shifted,
        right,
        solve,
        transposed if hermitian else solve,
        symmetric=not hermitian,
        has_aux=True,
    )
    return (x if x0 is None else x0 + x), info


def _norm(x: Any) -> Any:
    return fnp.sqrt(fnp.sum(fnp.real(x * fnp.conj(x))))


def _over(x: Any, y: Any) -> Any:
    """Returns x / y, 0 where y is."""
    return fnp.where(y == 0, 0 * x, x / fnp.where(y == 0, 1, y))


class _Minres(NamedTuple):
    x: Any
    r1: Any
    r2: Any
    y: Any
    w: Any
    w2: Any
    beta: Any
    old_beta: Any
    dbar: Any
    epsilon: Any
    phibar: Any
    cs: Any
    sn: Any
    anorm: Any
    itn: Any


def _minres(
    A: Map, b: Any, M: Map, rtol: float, steps: int, tell: Any = None
) -> tuple[Any, Any]:
    real = dtypes.to_real(b.dtype)
    zero = fnp.zeros((), real)
    y = M(b)
    beta1 = fnp.sqrt(fnp.maximum(fnp.real(fnp.vdot(b, y)), 0))
    eps = float(fnp.finfo(real).eps)
    none = fnp.zeros_like(b)
    start = _Minres(
        *(none, b, b, y, none, none),
        *(beta1, zero, zero, zero, beta1, zero - 1, zero, zero),
        fnp.zeros((), dtypes.int32),
    )

    def bound(s: _Minres) -> Any:
        scale = fnp.sqrt(s.anorm) * _norm(s.x) + beta1
        return fnp.maximum(rtol, eps) * scale

    def more(s: _Minres) -> Any:
        return (s.phibar > bound(s)) & (s.itn < steps) & (s.beta > 0)

    def step(s: _Minres) -> _Minres:
        v = _over(s.y, s.beta.astype(b.dtype))
        y = A(v)
        y = fnp.where(s.itn > 0, y - _over(s.beta, s.old_beta) * s.r1, y)
        alpha = fnp.real(fnp.vdot(v, y))
        y = y - _over(alpha, s.beta) * s.r2
        r1, r2 = s.r2, y
        y = M(r2)
        beta = fnp.sqrt(fnp.maximum(fnp.real(fnp.vdot(r2, y)), 0))
        anorm = s.anorm + alpha**2 + s.beta**2 * (s.itn > 0) + beta**2
        old_epsilon = s.epsilon
        delta = s.cs * s.dbar + s.sn * alpha
        gbar = s.sn * s.dbar - s.cs * alpha
        epsilon = s.sn * beta
        dbar = -s.cs * beta
        gamma = fnp.maximum(fnp.hypot(gbar, beta), eps)
        cs, sn = gbar / gamma, beta / gamma
        phi = cs * s.phibar
        phibar = sn * s.phibar
        w = (v - old_epsilon * s.w2 - delta * s.w) / gamma
        x = s.x + phi * w
        if tell is not None:
            tell(x)
        # Rounding: beyond an invariant subspace nothing is left.
        beta = fnp.where(beta <= 10 * eps * fnp.sqrt(anorm), 0, beta)
        return _Minres(
            *(x, r1, r2, y, w, s.w),
            *(beta, s.beta, dbar, epsilon, phibar, cs, sn, anorm, s.itn + 1),
        )

    end = lax.while_loop(more, step, start)
    fine = (end.phibar <= bound(end)) & fnp.isfinite(end.phibar)
    x = fnp.where(fnp.isfinite(beta1), end.x, fnp.nan)
    return x, fnp.where(fine, 0, fnp.maximum(end.itn, 1))


class LeastSquares(NamedTuple):
    """What `lsqr` and `lsmr` return.

    Attributes:
      x: the solution.
      istop: why it stopped: 0: `b` is 0; 1: the residual is small; 2: so is that of the
        normal equations; 3: the condition number reached `conlim`; 7: at the bound of
        iterations.
      itn: how many iterations were made.
      r1norm: ‖b - A x‖.
      r2norm: the same with `damp`: √(‖b - A x‖² + damp² ‖x - x0‖²).
      anorm: estimate of the Frobenius norm of `A`, damping included.
      acond: estimate of the condition number of `A`, damping included.
      arnorm: ‖Aᴴ (b - A x) - damp² (x - x0)‖.
      xnorm: ‖x‖.
      var: with `calc_var`, estimates of the diagonal of (Aᴴ A + damp² I)⁻¹, (n,).
    """

    x: Any
    istop: Any
    itn: Any
    r1norm: Any
    r2norm: Any
    anorm: Any
    acond: Any
    arnorm: Any
    xnorm: Any
    var: Any = None


_docs_of_least_squares = shared("""
    Args:
      A: matrix, dense or sparse, or `LinearOperator`, of any shape.
      b: vector.
      damp: of the solution.
      atol: relative tolerance of the residual of the normal equations.
      btol: relative tolerance of the residual: it is at most this times the norm of
        `b`.
      conlim: it ends when the estimate of the condition number is not less than this;
        0 for no limit.
      x0: the initial guess; None is 0.

    Returns:
      A `LeastSquares`: x first, and what is known of it.

    Raises:
      ArgumentError: `A` is not a matrix or an operator.
      ShapeError: the shapes are incompatible.
""")


@_docs_of_least_squares
def lsqr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-06,
    btol: float = 1e-06,
    conlim: float = 1e8,
    iter_lim: int | None = None,
    calc_var: bool = False,
    x0: Any = None,
) -> LeastSquares:
    """Solves a least-squares problem: min ‖A x - b‖² + damp² ‖x - x0‖².

    The derivative is implicit: that of the solution of the normal equations, solved by
    conjugate gradients. `A` needs full column rank for it, or a `damp`.

    Args:
      iter_lim: how many iterations are made at most; None is 2 n.
      calc_var: whether the variances of the solution are estimated.

    Example:
      >>> A = fnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
      >>> lsqr(A, fnp.array([1.0, 2.0, 3.0])).x.round(4)
      Array([1., 1.], dtype=float32)

    Source: `scipy.sparse.linalg.lsqr`; Paige and Saunders 1982.
    """
    limit = 2 * aslinearoperator(A).shape[1] if iter_lim is None else iter_lim
    method = functools.partial(_lsqr, calc_var=calc_var)
    return _least_squares("lsqr", method, A, b, damp, atol, btol, conlim, limit, x0)


@_docs_of_least_squares
def lsmr(
    A: Any,
    b: Any,
    damp: float = 0.0,
    atol: float = 1e-06,
    btol: float = 1e-06,
    conlim: float = 1e8,
    maxiter: int | None = None,
    x0: Any = None,
) -> LeastSquares:
    """Solves a least-squares problem: min ‖A x - b‖² + damp² ‖x - x0‖².

    The residual of the normal equations decreases in each iteration, so it may end
    before `lsqr`. The derivative is implicit, as that of `lsqr`.

    Args:
      maxiter: how many iterations are made at most; None is min(m, n).

    Example:
      >>> A = fnp.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
      >>> lsmr(A, fnp.array([1.0, 2.0, 3.0])).x.round(4)
      Array([1., 1.], dtype=float32)

    Source: `scipy.sparse.linalg.lsmr`; Fong and Saunders 2011.
    """
    limit = min(aslinearoperator(A).shape) if maxiter is None else maxiter
    return _least_squares("lsmr", _lsmr, A, b, damp, atol, btol, conlim, limit, x0)


def _least_squares(
    name: str,
    method: Any,
    A: Any,
    b: Any,
    damp: float,
    atol: float,
    btol: float,
    conlim: float,
    limit: int,
    x0: Any,
) -> LeastSquares:
    operator = aslinearoperator(A)
    (b,) = promote_inexact(name, b)
    m, n = operator.shape
    if typeof(b).shape != (m,):
        raise ShapeError(f"{name}: A of shape {[m, n]} does not fit b, {typeof(b)}")
    b = b.astype(fnp.result_type(b, operator.dtype))
    right = b
    if x0 is not None:
        x0 = fnp.asarray(x0, b.dtype)
        right = b - operator.matvec(x0)
    like = fnp.zeros(n, b.dtype)
    found = method(
        without_derivative(operator.matvec, like),
        without_derivative(operator.rmatvec, right),
        lax.stop_gradient(right),
        n,
        damp,
        atol,
        btol,
        1 / conlim if conlim > 0 else 0,
        limit,
    )

    def gradient(x: Any) -> Any:
        return operator.rmatvec(operator.matvec(x) - right) + damp**2 * x

    tolerance = 10 * float(fnp.finfo(b.dtype).eps)
    x = lax.custom_root(
        gradient,
        found.x,
        lambda f, x: x,
        lambda g, y: cg(g, y, tol=tolerance, maxiter=4 * n)[0],
    )
    residual = right - operator.matvec(x)
    r1norm, xnorm = _norm(residual), _norm(x)
    result: LeastSquares = found._replace(
        x=x if x0 is None else x0 + x,
        r1norm=r1norm,
        r2norm=fnp.sqrt(r1norm**2 + damp**2 * xnorm**2),
        arnorm=_norm(gradient(x)),
        xnorm=xnorm if x0 is None else _norm(x0 + x),
    )
    return result


def _lsqr(
    image: Map,
    back: Map,
    b: Any,
    n: int,
    damp: float,
    atol: float,
    btol: float,
    ctol: float,
    limit: int,
    *,
    calc_var: bool,
) -> LeastSquares:
    real = dtypes.to_real(b.dtype)
    bnorm = _norm(b)
    u = _over(b, bnorm)
    v = back(u)
    alpha = _norm(v)
    v = _over(v, alpha)
    zero = fnp.zeros((), real)
    eps = float(fnp.finfo(real).eps)

    def more(state: Any) -> Any:
        return (state["istop"] == 0) & (state["itn"] < limit)

    def step(s: Any) -> Any:
        u = image(s["v"]) - s["alpha"] * s["u"]
        beta = _norm(u)
        u = _over(u, beta)
        anorm2 = s["anorm2"] + s["alpha"] ** 2 + beta**2 + damp**2
        v = back(u) - beta * s["v"]
        alpha = _norm(v)
        v = _over(v, alpha)
        rhobar1 = fnp.hypot(s["rhobar"], fnp.asarray(damp, real))
        c1, s1 = _over(s["rhobar"], rhobar1), _over(fnp.asarray(damp, real), rhobar1)
        psi, phibar = s1 * s["phibar"], c1 * s["phibar"]
        rho = fnp.hypot(rhobar1, beta)
        c, sn = _over(rhobar1, rho), _over(beta, rho)
        theta, rhobar = sn * alpha, -c * alpha
        phi = c * phibar
        phibar = sn * phibar
        x = s["x"] + _over(phi, rho) * s["w"]
        change = fnp.abs(_over(s["w"], rho.astype(b.dtype))) ** 2
        ddnorm = s["ddnorm"] + fnp.sum(change)
        w = v - _over(theta, rho) * s["w"]
        res = s["res"] + psi**2
        rnorm = fnp.sqrt(phibar**2 + res)
        arnorm = abs(alpha * sn * phi)
        anorm = fnp.sqrt(anorm2)
        small = rnorm <= btol * bnorm + atol * anorm * _norm(x)
        flat = arnorm <= fnp.maximum(atol, eps) * anorm * rnorm
        ill = 1 / (anorm * fnp.sqrt(ddnorm) + eps) <= ctol
        istop = fnp.where(flat | (alpha == 0), 2, fnp.where(ill, 3, 0))
        istop = fnp.where(small, 1, istop)
        return {
            "x": x,
            "u": u,
            "v": v,
            "w": w,
            "ddnorm": ddnorm,
            "var": s["var"] + change if calc_var else None,
            "alpha": alpha,
            "rhobar": rhobar,
            "phibar": phibar,
            "res": res,
            "anorm2": anorm2,
            "istop": istop,
            "itn": s["itn"] + 1,
        }

    begin = (alpha * bnorm) == 0
    state = {
        "x": fnp.zeros(n, b.dtype),
        "u": u,
        "v": v,
        "w": v,
        "ddnorm": zero,
        "var": fnp.zeros(n, real) if calc_var else None,
        "alpha": alpha,
        "rhobar": alpha,
        "phibar": bnorm,
        "res": zero,
        "anorm2": zero,
        "istop": fnp.where(begin, 2, 0),
        "itn": fnp.zeros((), dtypes.int32),
    }
    end = lax.while_loop(more, step, state)
    acond = fnp.sqrt(end["anorm2"] * end["ddnorm"])
    return _ended(end, bnorm, zero, acond)._replace(var=end["var"])


def _ended(end: dict[str, Any], bnorm: Any, zero: Any, acond: Any) -> LeastSquares:
    """Returns the last state of a method, the norms of residuals still unknown."""
    istop = fnp.where(bnorm == 0, 0, fnp.where(end["istop"] == 0, 7, end["istop"]))
    x = fnp.where(fnp.isfinite(bnorm), end["x"], fnp.nan)
    anorm = fnp.sqrt(end["anorm2"])
    return LeastSquares(x, istop, end["itn"], zero, zero, anorm, acond, zero, zero)


def _rotation(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Returns the cosine and the sine that turn (a, b) to (r, 0), and r."""
    r = fnp.hypot(a, b)
    return fnp.where(r == 0, 1, _over(a, r)), _over(b, r), r


def _lsmr_start(u: Any, v: Any, alpha: Any, bnorm: Any) -> dict[str, Any]:
    begin = (alpha * bnorm) == 0
    none, zero, one = fnp.zeros_like(v), fnp.zeros_like(alpha), fnp.ones_like(alpha)
    return {
        "x": none,
        "u": u,
        "v": v,
        "h": v,
        "largest": zero,
        "least": fnp.full_like(alpha, fnp.inf),
        "acond": one,
        "hbar": none,
        "alpha": alpha,
        "alphabar": alpha,
        "rho": one,
        "rhobar": one,
        "cbar": one,
        "sbar": zero,
        "zeta": zero,
        "zetabar": alpha * bnorm,
        "betadd": bnorm,
        "betad": zero,
        "rhodold": one,
        "tau": zero,
        "square": zero,
        "thetatilde": zero,
        "anorm2": zero,
        "istop": fnp.where(begin, 2, 0),
        "itn": fnp.zeros((), dtypes.int32),
    }


def _lsmr(
    image: Map,
    back: Map,
    b: Any,
    n: int,
    damp: float,
    atol: float,
    btol: float,
    ctol: float,
    limit: int,
) -> LeastSquares:
    real = dtypes.to_real(b.dtype)
    eps = float(fnp.finfo(real).eps)
    bnorm = _norm(b)
    u = _over(b, bnorm)
    v = back(u)
    alpha = _norm(v)
    v = _over(v, alpha)
    zero = fnp.zeros((), real)
    shift = fnp.asarray(damp, real)

    def more(state: Any) -> Any:
        return (state["istop"] == 0) & (state["itn"] < limit)

    def step(s: Any) -> Any:
        u = image(s["v"]) - s["alpha"] * s["u"]
        beta = _norm(u)
        u = _over(u, beta)
        v = back(u) - beta * s["v"]
        alpha = _norm(v)
        v = _over(v, alpha)
        chat, shat, alphahat = _rotation(s["alphabar"], shift)
        # B to R, by plane rotations.
        c, sn, rho = _rotation(alphahat, beta)
        theta, alphabar = sn * alpha, c * alpha
        # Rᵀ to R̄.
        thetabar = s["sbar"] * rho
        old = s["rhobar"]
        cbar, sbar, rhobar = _rotation(s["cbar"] * rho, theta)
        zeta, zetabar = cbar * s["zetabar"], -sbar * s["zetabar"]
        hbar = s["h"] - _over(thetabar * rho, s["rho"] * old) * s["hbar"]
        x = s["x"] + _over(zeta, rho * rhobar) * hbar
        h = v - _over(theta, rho) * s["h"]
        # The norm of the residual.
        acute, check = chat * s["betadd"], -shat * s["betadd"]
        hat, betadd = c * acute, -sn * acute
        old_theta = s["thetatilde"]
        ctilde, stilde, rhotilde = _rotation(s["rhodold"], thetabar)
        thetatilde, rhodold = stilde * rhobar, ctilde * rhobar
        betad = -stilde * s["betad"] + ctilde * hat
        tau = _over(s["zeta"] - old_theta * s["tau"], rhotilde)
        last = _over(zeta - thetatilde * tau, rhodold)
        square = s["square"] + check**2
        rnorm = fnp.sqrt(square + (betad - last) ** 2 + betadd**2)
        anorm2 = s["anorm2"] + s["alpha"] ** 2 + beta**2 + shift**2
        arnorm = abs(zetabar)
        anorm = fnp.sqrt(anorm2)
        # Singular values of R̄ are between those of its diagonal so far.
        largest = fnp.maximum(s["largest"], old)
        least = fnp.where(s["itn"] > 0, fnp.minimum(s["least"], old), s["least"])
        edge = s["cbar"] * rho
        acond = _over(fnp.maximum(largest, edge), fnp.minimum(least, edge))
        small = rnorm <= btol * bnorm + atol * anorm * _norm(x)
        flat = arnorm <= fnp.maximum(atol, eps) * anorm * rnorm
        ill = 1 / (acond + eps) <= ctol
        istop = fnp.where(flat | (alpha == 0), 2, fnp.where(ill, 3, 0))
        istop = fnp.where(small, 1, istop)
        return {
            "x": x,
            "u": u,
            "v": v,
            "h": h,
            "largest": largest,
            "least": least,
            "acond": acond,
            "hbar": hbar,
            "alpha": alpha,
            "alphabar": alphabar,
            "rho": rho,
            "rhobar": rhobar,
            "cbar": cbar,
            "sbar": sbar,
            "zeta": zeta,
            "zetabar": zetabar,
            "betadd": betadd,
            "betad": betad,
            "rhodold": rhodold,
            "tau": tau,
            "square": square,
            "thetatilde": thetatilde,
            "anorm2": anorm2,
            "istop": istop,
            "itn": s["itn"] + 1,
        }

    state = _lsmr_start(u, v, alpha, bnorm)
    end = lax.while_loop(more, step, state)
    return _ended(end, bnorm, zero, end["acond"])
