"""Derivatives of solutions by the conditions that define them, not by a solver's steps.

If `F(x, p) = 0` defines x, then `x' = -(∂F/∂x)⁻¹ (∂F/∂p) p'`, whatever found x. The
solvers of `fxflow.scipy.optimize` are made in this way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.source import name_of
from fxflow.errors import ArgumentError
from fxflow.optim.vectors import joined, like_parts
from fxflow.transforms.inspection import eval_shape
from fxflow.transforms.vmap import vmap


def implicit(
    solver: Callable[..., Any],
    conditions: Callable[..., Any],
    *,
    solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    r"""Makes a solver differentiable by the conditions that its solution satisfies.

    The result calls `solver`. Its derivative follows from
    :math:`F(x(p), p) = 0` by the implicit function theorem,

    .. math:: \frac{\partial F}{\partial x} x' = -\frac{\partial F}{\partial p} p'

    so the solver may use any loop, or a callback, and is not differentiated itself.
    Forward and reverse mode, of any order, `jit` and `vmap` work.

    Args:
      solver: called with the arguments; returns the solution x, a pytree of float
        arrays.
      conditions: F, called as `conditions(x, *args)`; returns a pytree like x that is 0
        at the solution. For a minimum this is the gradient, for a fixed point
        `x - f(x)`, for inequalities an expression such as `x - maximum(x - g, 0)`. The
        derivative is by the arguments and by what this function closes over.
      solve: solves the linear system, called as `solve(linear, y)` with the linear map
        `linear` of pytrees like x; returns z with `linear(z) = y`. None means that the
        matrix is computed and factorized; for many unknowns, pass for example
        `lambda linear, y: gmres(linear, y)[0]`.
      has_aux: whether the solver returns a pair of the solution and a pytree that is
        not differentiated.

    Returns:
      A function of the arguments that returns what the solver returns.

    Raises:
      ArgumentError: an argument is not a function; or (from the result) `has_aux` is
        given and the solver does not return a pair.
      ShapeError, TreeError: (from the result) `conditions` returns something that is
        not like the solution.

    Special cases:
      Where :math:`\partial F / \partial x` is singular, as at a double root or for a
      minimum that is not isolated, derivatives are inf or nan.

    Example:
      >>> def solver(a):  # Newton's method for x² = a
      ...     return lax.fori_loop(0, 20, lambda i, x: (x + a / x) / 2, a)
      >>> root = optim.implicit(solver, lambda x, a: x**2 - a)
      >>> float(root(4.0)), float(fxflow.grad(root)(4.0))
      (2.0, 0.25)

    Reference: Krantz and Parks 2002, "The implicit function theorem"; Blondel et al.
    2022, "Efficient and modular implicit differentiation".
    """
    for what, given in (("solver", solver), ("conditions", conditions)):
        if not callable(given):
            raise ArgumentError(f"implicit: {what} must be a function, got {given!r}")
    if solve is not None and not callable(solve):
        raise ArgumentError(f"implicit: solve must be a function, got {solve!r}")

    def call(*args: Any) -> Any:
        like = eval_shape(solver, *args)
        if has_aux:
            if not isinstance(like, tuple) or len(like) != 2:
                raise ArgumentError(
                    f"implicit: has_aux=True needs {name_of(solver)} to return a pair "
                    f"(x, aux), got {tree.written(tree.structure(like))}"
                )
            like = like[0]
        zeros = tree.map(lambda a: fnp.zeros(a.shape, a.dtype), like)
        return solved(
            lambda: solver(*args),
            lambda x: conditions(x, *args),
            zeros,
            solve=solve,
            has_aux=has_aux,
        )

    return call


def solved(
    solver: Callable[[], Any],
    conditions: Callable[[Any], Any],
    like: Any,
    *,
    solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    has_aux: bool = False,
) -> Any:
    """Runs a solver whose solution has the derivative of the conditions.

    Args:
      solver: returns the solution.
      conditions: function of the solution; 0 there.
      like: pytree of the shapes and dtypes of the solution.
      solve: see `implicit`.
      has_aux: see `implicit`.

    Returns:
      What the solver returns.
    """
    return lax.custom_root(
        conditions,
        like,
        lambda _, guess: solver(),
        dense_solve if solve is None else solve,
        has_aux,
    )


def dense_solve(linear: Callable[[Any], Any], y: Any) -> Any:
    """Returns z with `linear(z) = y`, by the matrix of the linear map.

    Args:
      linear: linear function of pytrees like y.
      y: pytree of float arrays.
    """
    vector = joined(y)
    if not vector.size:
        return y
    wide = fnp.promote_types(vector.dtype, "float32")

    def unravel(v: Any) -> Any:
        return like_parts("implicit", v, y)

    def column(unit: Any) -> Any:
        return fnp.astype(joined(linear(unravel(unit))), wide)

    columns = vmap(column)(fnp.eye(vector.size, dtype=vector.dtype))
    z = fnp.linalg.solve(fnp.transpose(columns), fnp.astype(vector, wide))
    return unravel(fnp.astype(z, vector.dtype))
