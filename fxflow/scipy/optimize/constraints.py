"""Bounds and constraints of a minimization: immutable pytrees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, is_arraylike
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.optim.vectors import joined


class Bounds(NamedTuple):
    """Bounds of variables: `lb ≤ x ≤ ub`.

    Attributes:
      lb: float[n], or a number for all; a pytree like `x0` for variables in a pytree.
      ub: likewise.
      keep_feasible: accepted as in SciPy; bounds are always kept.

    Example:
      >>> from fxflow.scipy.optimize import Bounds, minimize
      >>> minimize(lambda x: (x**2).sum(), fnp.ones(2), bounds=Bounds(0.5, 2.0)).x
      Array([0.5, 0.5], dtype=float32)

    Source: `scipy.optimize.Bounds`.
    """

    lb: Any = -math.inf
    ub: Any = math.inf
    keep_feasible: Any = False

    def residual(self, x: ArrayLike) -> tuple[Array, Array]:
        """Returns how far a point is inside of the bounds; negative where it is not.

        Args:
          x: float[n].

        Returns:
          `x - lb` and `ub - x`, float[n] each.
        """
        return _inside(x, self.lb, self.ub)


def _inside(values: ArrayLike, low: Any, high: Any) -> tuple[Array, Array]:
    values, low, high = promote_inexact("residual", values, low, high)
    return values - low, high - values


class LinearConstraint(NamedTuple):
    """A linear constraint: `lb ≤ A x ≤ ub`.

    Attributes:
      A: float[m, n], or float[n] for one row.
      lb: float[m], or a number for all; -inf for no bound.
      ub: likewise; inf for no bound. Where it equals `lb`, the row is an equation, if
        the values are known when the function is traced.
      keep_feasible: accepted as in SciPy, and has no effect.

    Example:
      >>> line = LinearConstraint(fnp.array([[1.0, 1.0]]), 1.0, 1.0)  # x₀ + x₁ = 1
      >>> line.lb == line.ub
      True

    Source: `scipy.optimize.LinearConstraint`.
    """

    A: Any
    lb: Any = -math.inf
    ub: Any = math.inf
    keep_feasible: Any = False

    def residual(self, x: ArrayLike) -> tuple[Array, Array]:
        """Returns how far `A x` is inside of its bounds; negative where it is not.

        Args:
          x: float[n].

        Returns:
          `A x - lb` and `ub - A x`, float[m] each.
        """
        A, point = promote_inexact("residual", self.A, x)
        return _inside(fnp.atleast_2d(A) @ point, self.lb, self.ub)


@register_pytree_node_class
class NonlinearConstraint:
    """A constraint on values of a function: `lb ≤ fun(x) ≤ ub`.

    Args:
      fun: function of x that returns float[m] or a number.
      lb: float[m], or a number for all; -inf for no bound.
      ub: likewise; inf for no bound. Where it equals `lb`, the row is an equation, if
        the values are known when the function is traced.
      jac: accepted as in SciPy, and has no effect: derivatives are always computed.
      hess: likewise.
      keep_feasible: accepted as in SciPy, and has no effect.
      finite_diff_rel_step: likewise.
      finite_diff_jac_sparsity: likewise.

    Example:
      >>> from fxflow.scipy.optimize import NonlinearConstraint, minimize
      >>> circle = NonlinearConstraint(lambda x: x @ x, -fnp.inf, 1.0)
      >>> found = minimize(lambda x: x[0] + x[1], fnp.zeros(2), constraints=circle)
      >>> found.x.round(3)
      Array([-0.707, -0.707], dtype=float32)

    Source: `scipy.optimize.NonlinearConstraint`.
    """

    fun: Callable[[Any], Any]
    lb: Any
    ub: Any

    def __init__(
        self,
        fun: Callable[[Any], Any],
        lb: ArrayLike,
        ub: ArrayLike,
        jac: Any = "2-point",
        hess: Any = None,
        keep_feasible: Any = False,
        finite_diff_rel_step: Any = None,
        finite_diff_jac_sparsity: Any = None,
    ) -> None:
        if not callable(fun):
            raise ArgumentError(
                f"NonlinearConstraint: fun must be a function, got {fun!r}"
            )
        self.fun, self.lb, self.ub = fun, lb, ub

    def tree_flatten(self) -> tuple[tuple[Any, ...], Any]:
        """Returns the bounds, and the functions."""
        return (self.lb, self.ub), self.fun

    @classmethod
    def tree_unflatten(cls, aux: Any, children: Any) -> NonlinearConstraint:
        """Rebuilds a constraint from its parts."""
        out = object.__new__(cls)
        out.fun, (out.lb, out.ub) = aux, children
        return out


def bounds_of(name: str, bounds: Any, x: Array, like: Any) -> tuple[Array, Array]:
    """Returns lower and upper bounds as vectors.

    Args:
      name: of the function, for messages.
      bounds: `Bounds`, a pair per variable with None for no bound, or None.
      x: float[n], the variables.
      like: the variables as the user gave them.

    Raises:
      ArgumentError: there are more or fewer pairs than variables, or a lower bound is
        above the upper one.
    """
    n, dtype = x.aval.size, x.aval.dtype
    if bounds is None:
        return fnp.full(n, -math.inf, dtype), fnp.full(n, math.inf, dtype)
    if isinstance(bounds, Bounds):
        pair: Any = (bounds.lb, bounds.ub)
    elif is_arraylike(bounds) and np.ndim(bounds) == 2:
        pair = (bounds[:, 0], bounds[:, 1])
    elif isinstance(bounds, Sequence):
        rows = list(bounds)
        if len(rows) != n or any(
            not is_arraylike(row) and len(row) != 2 for row in rows
        ):
            raise ArgumentError(
                f"{name}: bounds must be Bounds, or {n} pairs (min, max), one for each "
                f"variable, got {bounds!r}"
            )
        pair = (
            [-math.inf if row[0] is None else row[0] for row in rows],
            [math.inf if row[1] is None else row[1] for row in rows],
        )
    else:
        raise ArgumentError(
            f"{name}: bounds must be Bounds, or pairs (min, max), got {bounds!r}"
        )
    low, high = (
        _spread(name, side, n, dtype, like)
        for side in zip(pair, ("lower", "upper"), strict=True)
    )
    if not (isinstance(low, Tracer) or isinstance(high, Tracer)) and np.any(
        np.asarray(low) > np.asarray(high)
    ):
        raise ArgumentError(f"{name}: bounds: a lower bound is above its upper bound")
    return low, high


def box_of(name: str, bounds: Any) -> tuple[Array, Array]:
    """Returns finite lower and upper bounds as vectors, for a search between them.

    Args:
      name: of the function, for messages.
      bounds: `Bounds` with arrays, or a pair for each variable.

    Raises:
      ArgumentError: a bound is missing, or a lower one is above the upper one.
    """
    if bounds is None:
        raise ArgumentError(f"{name}: bounds must be Bounds, or pairs (min, max)")
    sides = bounds.lb if isinstance(bounds, Bounds) else bounds
    n = np.size(sides) if isinstance(bounds, Bounds) else len(sides)
    first = sides if isinstance(bounds, Bounds) else sides[0][0]
    first = 0.0 if first is None else first
    first = fnp.asarray(first) if isinstance(first, list | tuple) else first
    dtype = fnp.promote_types(fnp.result_type(first, float), "float32")
    low, high = bounds_of(name, bounds, fnp.zeros(n, dtype), None)
    known = [v for v in (low, high) if not isinstance(v, Tracer)]
    if not all(np.all(np.isfinite(np.asarray(v))) for v in known):
        raise ArgumentError(f"{name}: bounds must be finite, got {bounds}")
    return low, high


def _spread(name: str, side: tuple[Any, str], n: int, dtype: Any, like: Any) -> Array:
    value, which = side
    if not is_arraylike(value) and tree.structure(value) == tree.structure(like):
        return joined(value).astype(dtype)
    out = fnp.asarray(value, dtype)
    if out.ndim > 1 or out.size not in (1, n):
        raise ShapeError(
            f"{name}: {which} bounds must be float[{n}] or a number, got {out.aval}"
        )
    return fnp.broadcast_to(out, (n,))


class Rows(NamedTuple):
    """Constraints as vectors of functions.

    Attributes:
      equal: function of x, 0 where the equations hold.
      above: function of x, at least 0 where the inequalities hold.
      multipliers: function of the multipliers of both that returns those of each
        constraint.
      counts: the number of equations and of inequalities.
    """

    equal: Callable[[Any], Any]
    above: Callable[[Any], Any]
    multipliers: Callable[[Any, Any], tuple[Array, ...]]
    counts: tuple[int, int]


def rows_of(
    name: str, constraints: Any, x: Array, unravel: Any, args: tuple[Any, ...]
) -> Rows | None:
    """Returns constraints as equations and inequalities, or None without constraints.

    Args:
      name: of the function, for messages.
      constraints: one of SciPy's forms, or a sequence of them.
      x: float[n], a point.
      unravel: function from a vector to what the user's functions take.
      args: extra arguments of the objective; a constraint that is a dict has its own.

    Raises:
      ArgumentError: something is not a constraint.
    """
    single = isinstance(constraints, dict | LinearConstraint | NonlinearConstraint)
    several = isinstance(constraints, list | tuple) and not single
    given = list(constraints) if several else [constraints]
    if not given:
        return None
    parts = [_row(name, constraint, x, unravel) for constraint in given]
    dtype = x.aval.dtype

    def collected(which: int) -> Callable[[Any], Any]:
        def call(x: Any) -> Any:
            values = [part(x) for parts_ in parts for part in parts_[which]]
            return fnp.concatenate(values) if values else fnp.zeros(0, dtype)

        return call

    sizes = [
        [[part(x).shape[0] for part in group] for group in (equal, above)]
        for equal, above, _ in parts
    ]

    def multipliers(equal: Any, above: Any) -> tuple[Array, ...]:
        out, at = [], [0, 0]
        for (_, _, join), size in zip(parts, sizes, strict=True):
            pieces: list[list[Any]] = [[], []]
            for which, vector in enumerate((equal, above)):
                for length in size[which]:
                    pieces[which].append(vector[at[which] : at[which] + length])
                    at[which] += length
            out.append(join(*pieces))
        return tuple(out)

    counts = tuple(sum(sum(size[which]) for size in sizes) for which in (0, 1))
    equal, above = collected(0), collected(1)
    return Rows(equal, above, multipliers, (counts[0], counts[1]))


def _row(name: str, constraint: Any, x: Array, unravel: Any) -> Any:
    """Returns functions that are 0, functions that are at least 0, and their joiner."""
    dtype = x.aval.dtype
    if isinstance(constraint, dict):
        kind, fun = constraint.get("type"), constraint.get("fun")
        if kind not in ("eq", "ineq") or not callable(fun):
            raise ArgumentError(
                f'{name}: a constraint needs "type": "eq" or "ineq", and "fun", a '
                f"function, got {constraint!r}"
            )
        more = tuple(constraint.get("args", ()))

        def values(x: Any) -> Any:
            return fnp.ravel(fnp.asarray(fun(unravel(x), *more), dtype))

        if kind == "eq":
            return [values], [], lambda equal, above: equal[0]
        return [], [values], lambda equal, above: above[0]
    if isinstance(constraint, LinearConstraint):
        matrix = fnp.asarray(constraint.A, dtype)
        matrix = fnp.atleast_2d(matrix)
        if matrix.ndim != 2 or matrix.shape[1] != x.size:
            raise ShapeError(
                f"{name}: A of a LinearConstraint must be float[m, {x.size}], got "
                f"{matrix.aval}"
            )

        def function(x: Any) -> Any:
            return matrix @ x

    elif isinstance(constraint, NonlinearConstraint):

        def function(x: Any) -> Any:
            return fnp.ravel(fnp.asarray(constraint.fun(unravel(x)), dtype))

    else:
        raise ArgumentError(
            f"{name}: constraints must be LinearConstraint, NonlinearConstraint or a "
            f"dict, got {constraint!r}"
        )
    m = function(x).shape[0]
    low, high = (
        fnp.broadcast_to(fnp.asarray(side, dtype), (m,))
        for side in (constraint.lb, constraint.ub)
    )
    same = constraint.lb is constraint.ub
    known = not (isinstance(low, Tracer) or isinstance(high, Tracer))
    equal: Any = np.full(m, same)
    lower, upper = ~equal, ~equal
    if known:
        a, b = np.asarray(low), np.asarray(high)
        equal = a == b
        lower, upper = ~equal & np.isfinite(a), ~equal & np.isfinite(b)
    groups = [np.flatnonzero(mask) for mask in (equal, lower, upper)]

    def join(zero: Any, above: Any) -> Any:
        out = fnp.zeros(m, dtype)
        signs = [1, 1, -1]
        for at, part, sign in zip(groups, [*zero, *above], signs, strict=True):
            out = out.at[at].add(sign * part)
        return out

    return (
        [lambda x: (function(x) - low)[groups[0]]],
        [
            # An infinite bound that is traced is always satisfied.
            lambda x: _finite((function(x) - low)[groups[1]]),
            lambda x: _finite((high - function(x))[groups[2]]),
        ],
        join,
    )


def _finite(values: Any) -> Any:
    return fnp.where(values == math.inf, 1, values)
