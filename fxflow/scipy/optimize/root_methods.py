"""SciPy's functions of one method for roots: `broyden1`, `anderson`, ….

They are other names of `root`, whose results and derivatives they have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.scipy.optimize.roots import root

_root_docs = shared("""
    Args:
      F: called as `F(x)`; returns values like x.
      xin: the initial guess: float[n], a list of numbers, or a pytree of arrays.
      iter: the number of iterations; None means as many as `f_tol` needs.
      alpha: the first estimate of the inverse Jacobian is -alpha; None means that it
        follows from the values.
      verbose: has no effect: nothing is printed.
      maxiter: the maximum number of iterations.
      f_tol: the largest value at a root; None means 6e-6, in float32 1e-4.
      f_rtol: the largest value at a root relative to that at `xin`; None for any. Each
        tolerance that is given has to be met, this one and those below.
      x_tol: the length of the last step; None for any.
      x_rtol: the same relative to x.
      tol_norm: function of a vector that returns its length; None means its largest
        absolute element.
      line_search: "armijo": a shorter step is tried while values do not shrink; None
        takes full steps.
      callback: called on the host with the point and the values after each iteration.

    Returns:
      The root, like `xin`.

    Raises:
      ArgumentError: an argument is out of range or of the wrong type.
      ShapeError: the number of values is not that of unknowns.

    Special cases:
      Under `checkify`, raises if the iteration does not converge; `root` with the same
      method says in its result whether it does.

    Source: `scipy.optimize.{name}`.
""")


def _root(
    name: str,
    F: Callable[..., Any],
    xin: Any,
    iter: int | None,
    maxiter: int | None,
    f_tol: float | None,
    limits: tuple[Any, Any, Any, Any],
    line_search: str | None,
    callback: Callable[..., None] | None,
    **options: Any,
) -> Any:
    if line_search not in ("armijo", None):
        raise ArgumentError(
            f'{name}: line_search must be "armijo" or None, got {line_search!r}'
        )
    most = maxiter if iter is None else iter
    f_rtol, x_tol, x_rtol, tol_norm = limits
    given = {"fatol": f_tol if iter is None else 0.0, "maxiter": most, **options}
    given |= {"ftol": f_rtol, "xatol": x_tol, "xtol": x_rtol, "tol_norm": tol_norm}
    if line_search is None:
        given["maxls"] = 0
    method = {"newton_krylov": "krylov"}.get(name, name)
    found = root(F, xin, method=method, options=given, callback=callback)
    return found.x


@_root_docs
def broyden1(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    reduction_method: str = "restart",
    max_rank: int | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Broyden's first formula for the Jacobian.

    Args:
      reduction_method: has no effect: the inverse is a matrix, whose rank needs no
        bound.
      max_rank: likewise.

    Example:
      >>> broyden1(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "broyden1",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        alpha=alpha,
    )


@_root_docs
def broyden2(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    reduction_method: str = "restart",
    max_rank: int | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Broyden's second formula, for the inverse Jacobian.

    Args:
      reduction_method: has no effect: the inverse is a matrix, whose rank needs no
        bound.
      max_rank: likewise.

    Example:
      >>> broyden2(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "broyden2",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        alpha=alpha,
    )


@_root_docs
def anderson(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    w0: float = 0.01,
    M: int = 5,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by mixing the last steps: Anderson's method.

    Args:
      w0: the regularization.
      M: the number of remembered steps.

    Example:
      >>> anderson(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "anderson",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        alpha=alpha,
        w0=w0,
        M=M,
    )


@_root_docs
def diagbroyden(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Broyden's formula for a diagonal Jacobian.

    Example:
      >>> diagbroyden(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "diagbroyden",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        alpha=alpha,
    )


@_root_docs
def linearmixing(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by adding a multiple of the values.

    Example:
      >>> linearmixing(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "linearmixing",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        alpha=alpha,
    )


@_root_docs
def excitingmixing(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    alpha: float | None = None,
    alphamax: float = 1.0,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by a factor of each value that grows while its sign stays.

    Args:
      alphamax: the largest factor.

    Example:
      >>> excitingmixing(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    return _root(
        "excitingmixing",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        alpha=alpha,
        alphamax=alphamax,
    )


@_root_docs
def newton_krylov(
    F: Callable[..., Any],
    xin: Any,
    iter: int | None = None,
    rdiff: float | None = None,
    method: str = "lgmres",
    inner_maxiter: int = 20,
    inner_M: Any = None,
    outer_k: int = 10,
    verbose: bool = False,
    maxiter: int | None = None,
    f_tol: float | None = None,
    f_rtol: float | None = None,
    x_tol: float | None = None,
    x_rtol: float | None = None,
    tol_norm: Callable[[Any], Any] | None = None,
    line_search: str | None = "armijo",
    callback: Callable[..., None] | None = None,
) -> Any:
    """Finds a root by Newton's method, whose equations GMRES solves.

    Args:
      rdiff: has no effect: products of the Jacobian are computed exactly.
      method: "lgmres" or "gmres": both mean restarted GMRES.
      inner_M: function of a vector, or a matrix, that preconditions the equations: an
        estimate of the inverse Jacobian.
      outer_k: has no effect: no vectors are kept from one step to the next.
      inner_maxiter: the dimension of the Krylov space.

    Example:
      >>> newton_krylov(lambda x: fnp.cos(x) - x, [0.5, 1.0]).round(3)
      Array([0.739, 0.739], dtype=float32)
    """
    if method not in ("lgmres", "gmres"):
        raise ArgumentError(
            f'newton_krylov: method must be "lgmres" or "gmres", got {method!r}'
        )
    return _root(
        "newton_krylov",
        F,
        xin,
        iter,
        maxiter,
        f_tol,
        (f_rtol, x_tol, x_rtol, tol_norm),
        line_search,
        callback,
        inner_maxiter=inner_maxiter,
        inner_M=inner_M,
    )
