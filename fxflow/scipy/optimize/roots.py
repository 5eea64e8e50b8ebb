"""Roots of systems of equations, and fixed points."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes, is_arraylike
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import convert
from fxflow.optim.vectors import joined
from fxflow.scipy.optimize._levenberg_marquardt import levenberg_marquardt
from fxflow.scipy.optimize._problems import (
    arguments,
    at_solution,
    options_of,
    report,
    vector_of,
    watching,
)
from fxflow.scipy.optimize.results import RootResults
from fxflow.scipy.sparse.linalg import gmres
from fxflow.transforms.grad import jacfwd
from fxflow.transforms.jvp import jvp

_NONLIN = {
    "fatol": None,
    "ftol": math.inf,
    "xatol": math.inf,
    "xtol": math.inf,
    "tol_norm": None,
    "maxiter": None,
    "maxls": 7,  # SciPy: to 1/100
}
_OPTIONS: dict[str, dict[str, Any]] = {
    "hybr": {"xtol": 1.49012e-08, "maxfev": None, "diag": None},
    "lm": {
        "xtol": 1.49012e-08,
        "ftol": 1.49012e-08,
        "gtol": 0.0,
        "maxiter": None,
        "diag": None,
    },
    "broyden1": {**_NONLIN, "alpha": None},
    "broyden2": {**_NONLIN, "alpha": None},
    "anderson": {**_NONLIN, "M": 5, "alpha": None, "w0": 0.01},
    "krylov": {**_NONLIN, "inner_maxiter": 20, "inner_M": None},
    "linearmixing": {**_NONLIN, "alpha": None},
    "diagbroyden": {**_NONLIN, "alpha": None},
    "excitingmixing": {**_NONLIN, "alpha": None, "alphamax": 1.0},
    "df-sane": {**_NONLIN, "maxiter": 1000},
}


def root(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Callable[..., None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> RootResults:
    """Finds a root of a system of equations.

    The root has an implicit derivative with respect to `args` and what `fun` closes
    over: see `optim.implicit`. It does not depend on `x0`.

    Args:
      fun: called as `fun(x, *args)`; returns values like x. For "lm" it may return
        more of them.
      x0: the initial guess: float[n], a list of numbers, or a pytree of arrays.
      args: extra arguments.
      method: "hybr" and "lm" take Newton's steps in a region where they are trusted, by
        Levenberg's and Marquardt's method. "broyden1", "broyden2" and "anderson" use
        values only; "krylov" solves Newton's equations by GMRES, without a matrix.
        "diagbroyden", "linearmixing" and "excitingmixing" estimate a diagonal Jacobian,
        "df-sane" a number: for many unknowns.
      jac: the Jacobian, float[m, n], called as `fun` is, for "hybr" and "lm"; or True
        if `fun` returns a pair of values and Jacobian. None means to compute it.
      tol: `xtol` or `fatol`, if the options have none.
      callback: called on the host with the point and the values after each iteration,
        for its side effects (see `debug.callback`); not for "hybr" and "lm".
      options: "hybr": `xtol`, the relative length of a step at which to stop, and
        `maxfev`. "lm": `xtol`, `ftol`, `gtol`, `maxiter`, the number of calls. Both:
        `diag`, float[n], the reciprocal units of unknowns. Others: `fatol`, the largest
        value at a root (6e-6, in float32 1e-4), `ftol`, the same relative to that at
        `x0`, `xatol` and `xtol`, the length of the last step, absolute and relative
        (inf; all have to be met), `tol_norm`, function of a vector that returns its
        length (the largest absolute element), `maxiter`, `maxls`, the maximum number of
        steps of a line search; "anderson": `M`, the number of remembered steps, and
        `w0`, the regularization; "krylov": `inner_maxiter`, and `inner_M`, a
        preconditioner; "broyden1", "broyden2", "anderson" and the diagonal ones:
        `alpha`, the first estimate of the inverse Jacobian is -alpha; and
        "excitingmixing" `alphamax`, the largest factor.

    Returns:
      A `RootResults`.

    Raises:
      ArgumentError: unknown method or option, or `args` is not a tuple.
      ShapeError: the number of values is not that of unknowns.

    Special cases:
      A point where the sum of squares is least but not 0 has the status 3. Under
      `checkify`, raises if the solver does not converge.

    Example:
      >>> def equations(x):
      ...     return fnp.stack([x[0] + x[1] ** 2 - 3, x[0] * x[1] - 2])
      >>> root(equations, fnp.array([1.5, 1.5])).x.round(3)
      Array([2., 1.], dtype=float32)

    Source: `scipy.optimize.root`; Moré, Garbow and Hillstrom 1980; Broyden 1965;
    Anderson 1965; Knoll and Keyes 2004; W. La Cruz, J. Martínez and M. Raydan 2006.
    """
    args = arguments("root", args)
    kind = str(method).lower()
    if kind not in _OPTIONS:
        raise ArgumentError(
            f"root: method must be one of {', '.join(_OPTIONS)}, got {method!r}"
        )
    defaults = dict(_OPTIONS[kind])
    if tol is not None:
        defaults["fatol" if "fatol" in defaults else "xtol"] = tol
    settings = options_of("root", kind, options, defaults)
    x, unravel = vector_of("root", x0)
    n = x.aval.size
    equations, jacobian, count = _equations(fun, x, unravel, args, kind, jac)
    watched = watching("root", callback, unravel, True)
    if callback is not None and kind in ("hybr", "lm"):
        raise ArgumentError(f"root: {method} takes no callback, got {callback!r}")

    def solver() -> Any:
        if kind in ("hybr", "lm"):
            end = _by_squares(equations, jacobian, x, settings)
        else:
            end = _by_directions(kind, equations, x, settings, watched)
        return end[0], end[1:]

    def conditions(x: Any) -> Any:
        if count == n:
            return equations(x)
        return jacobian(x).T @ equations(x)

    found, (status, calls, steps) = at_solution(solver, conditions, x)
    report("root", status == 0, status)
    values = equations(found)
    return RootResults(
        x=unravel(found),
        success=status == 0,
        status=status,
        fun=unravel(values) if count == n else values,
        nfev=calls,
        nit=steps,
    )


def _equations(
    fun: Any, x: Any, unravel: Any, args: tuple[Any, ...], kind: str, jac: Any
) -> tuple[Callable[[Any], Any], Callable[[Any], Any], int]:
    """Returns the user's equations and Jacobian of a vector, and how many there are."""
    dtype, n = x.aval.dtype, x.aval.size

    def equations(x: Any) -> Any:
        out = fun(unravel(x), *args)
        return convert(joined(out[0] if jac is True else out), dtype)

    count = equations(x).size
    if count != n and not (kind == "lm" and count > n):
        raise ShapeError(
            f"root: fun must return as many values as there are unknowns, {n}, but "
            f"returns {count}"
        )
    jacobian: Callable[[Any], Any] = jacfwd(equations)
    if callable(jac) or jac is True:

        def jacobian(x: Any) -> Any:
            point = unravel(x)
            matrix = fun(point, *args)[1] if jac is True else jac(point, *args)
            return fnp.reshape(fnp.asarray(matrix, dtype), (count, n))

    elif jac not in (None, False, "2-point", "3-point", "cs"):
        raise ArgumentError(f"root: jac must be a function or True, got {jac!r}")
    return equations, jacobian, count


def _by_squares(equations: Any, jacobian: Any, x: Any, settings: Any) -> Any:
    """Returns a root that minimizes the sum of squares, its status and the calls."""
    n, dtype = x.aval.size, x.aval.dtype
    eps = float(fnp.finfo(dtype).eps)

    def value(x: Any) -> Any:
        values = equations(x)
        return values @ values / 2, values

    def both(x: Any) -> Any:
        return *value(x), jacobian(x)

    most = settings.get("maxfev", settings.get("maxiter"))
    infinite = fnp.full(n, fnp.inf, dtype)
    scale = _units("root", settings["diag"], x)
    end = levenberg_marquardt(
        both,
        value,
        x,
        -infinite,
        infinite,
        ftol=max(settings.get("ftol", 0.0), 4 * eps**2),
        xtol=max(settings["xtol"], 4 * eps),
        gtol=settings.get("gtol", 0.0),
        x_scale=scale,
        maxcalls=100 * (n + 1) if most is None else most,
        tau=1e-6,
    )
    # A root is exact up to rounding errors of what its values are the difference of.
    first = fnp.abs(equations(x))
    scale = fnp.abs(end.jacobian) @ fnp.abs(end.x) + first
    exact = fnp.all(fnp.abs(end.residuals) <= eps**0.5 * scale)
    if end.residuals.size > n:
        exact = fnp.asarray(True)
    status = fnp.where(end.status == 0, 1, 3)
    status = fnp.where((end.status > 0) & exact, 0, status)
    status = fnp.where(end.status == -1, 2, status)
    return end.x, status.astype(dtypes.int32), end.calls, end.slopes


def _units(name: str, diag: Any, x: Any) -> Any:
    """Returns the units of unknowns, or None."""
    if diag is None:
        return None
    given = fnp.asarray(diag, x.aval.dtype)
    if given.shape != x.aval.shape:
        raise ShapeError(f"{name}: diag must be like x0, {x.aval}, got {given.aval}")
    return 1 / given


def fsolve(
    func: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    fprime: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: tuple[int, int] | None = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Finds a root of a system of equations, as `root` does with the method "hybr".

    The root has an implicit derivative: see `root`.

    Args:
      func: called as `func(x, *args)`; returns values like x.
      x0: the initial guess: float[n], a list of numbers, or a pytree of arrays.
      args: extra arguments of the function: a tuple, or a single one.
      fprime: the Jacobian, float[n, n], called as `func` is; None means to compute it.
      full_output: whether to return a `RootResults`, too.
      col_deriv: whether the columns of what `fprime` returns belong to equations.
      xtol: the relative length of a step at which to stop.
      maxfev: the maximum number of calls; 0 means 100 (n + 1).
      band: has no effect: the Jacobian is computed exactly, and is dense.
      epsfcn: likewise.
      factor: has no effect: the first step is Newton's.
      diag: float[n], positive: the reciprocal units of unknowns; None means norms of
        the Jacobian.

    Returns:
      The root, like `x0`; with `full_output` also a `RootResults`.

    Raises:
      ShapeError: the number of values is not that of unknowns.

    Example:
      >>> fsolve(lambda x: fnp.stack([x[0] + x[1] - 3, x[0] * x[1] - 2]), [3.0, 0.5])
      Array([2., 1.], dtype=float32)

    Source: `scipy.optimize.fsolve`.
    """
    more = args if isinstance(args, tuple) else (args,)
    jac = fprime
    if fprime is not None and col_deriv:

        def jac(x: Any, *args: Any) -> Any:
            return fnp.transpose(fnp.asarray(fprime(x, *args)))

    options = {"xtol": xtol, "maxfev": maxfev or None, "diag": diag}
    found = root(func, x0, more, "hybr", jac, options=options)
    return (found.x, found) if full_output else found.x


class _State(NamedTuple):
    x: Any
    values: Any
    memory: Any
    calls: Any
    steps: Any
    status: Any


def _by_directions(
    kind: str, equations: Any, x: Any, settings: Any, watched: Any
) -> Any:
    """Returns a root found by estimates of the inverse Jacobian."""
    n, dtype = x.aval.size, x.aval.dtype
    eps = float(fnp.finfo(dtype).eps)
    wide = eps < 1e-10
    fatol = settings["fatol"]
    if fatol is None:
        fatol = eps ** (1 / 3) if wide else 1e-4
    most = 100 * (n + 1) if settings["maxiter"] is None else settings["maxiter"]
    rules: dict[str, Any] = {
        "broyden1": functools.partial(_Broyden, first=True),
        "broyden2": functools.partial(_Broyden, first=False),
        "anderson": _Anderson,
        "krylov": _Krylov,
        "linearmixing": _Mixing,
        "diagbroyden": _Diagonal,
        "excitingmixing": _Exciting,
        "df-sane": _Spectral,
    }
    rule = rules[kind](equations, settings)

    norm = settings["tol_norm"] or (lambda v: fnp.max(fnp.abs(v), initial=0))
    begun = norm(equations(x)) if settings["ftol"] < math.inf else 1.0
    ftol, xatol, xtol = (settings[k] for k in ("ftol", "xatol", "xtol"))

    def is_small(values: Any, moved: Any = None, x: Any = None) -> Any:
        size = norm(values)
        out = size <= fatol
        if ftol < math.inf:
            out &= size <= ftol * begun
        for tol, unit in ((xatol, 1.0), (xtol, 0.0 if x is None else norm(x))):
            if tol < math.inf:
                # Before the first step there is none to judge.
                out &= False if moved is None else norm(moved) <= tol * unit
        return out | (size == 0)

    def step(s: _State) -> _State:
        way = rule.direction(s.memory, s.x, s.values)
        size = fnp.linalg.norm(s.values)

        def tried(t: Any) -> Any:
            values = equations(s.x + t * way)
            norm = fnp.linalg.norm(values)
            good = norm <= fnp.sqrt(1 - 1e-4 * t) * size
            return t, values, good

        def shorter(c: Any) -> Any:
            return *tried(c[0] / 2), c[3] + 1

        zero = lax.full((), 0, dtypes.int32)
        t, values, good, count = lax.while_loop(
            lambda c: ~c[2] & (c[3] < settings["maxls"]),
            shorter,
            (*tried(fnp.ones((), dtype)), zero),
        )
        # Methods without a Jacobian may have to pass through larger values.
        full = equations(s.x + way)
        use = ~good & (fnp.linalg.norm(full) <= 10 * size)
        t = fnp.where(use, 1, t)
        values = fnp.where(use, full, values)
        x = s.x + t * way
        memory = rule.updated(s.memory, t * way, values - s.values)
        status = fnp.where(s.steps + 1 >= most, 1, -1)
        status = fnp.where(fnp.all(fnp.isfinite(values)), status, 2)
        status = fnp.where(is_small(values, t * way, x), 0, status)
        return _State(
            x,
            values,
            memory,
            s.calls + count + 2,
            s.steps + 1,
            status.astype(dtypes.int32),
        )

    values = equations(x)
    one, zero = (lax.full((), k, dtypes.int32) for k in (1, 0))
    status = fnp.where(is_small(values), 0, -1 if most > 0 else 1)
    status = fnp.where(fnp.all(fnp.isfinite(values)), status, 2).astype(dtypes.int32)
    start = _State(x, values, rule.start(x, values), one, zero, status)
    end = lax.while_loop(lambda s: s.status < 0, watched(step), start)
    return end.x, end.status, end.calls, end.steps


def _first_factor(x: Any, values: Any) -> Any:
    """Returns SciPy's first estimate of the inverse Jacobian, a number."""
    size = fnp.linalg.norm(values)
    scale = 0.5 * fnp.maximum(fnp.linalg.norm(x), 1)
    return scale / fnp.where(size > 0, size, 1)


class _Broyden:
    """The inverse of the Jacobian, updated by Broyden's first or second formula."""

    def __init__(self, equations: Any, settings: Any, first: bool) -> None:
        self.first, self.alpha = first, settings["alpha"]

    def start(self, x: Any, values: Any) -> Any:
        """Returns a multiple of the identity."""
        alpha = _first_factor(x, values) if self.alpha is None else self.alpha
        return fnp.asarray(alpha, x.dtype) * -fnp.eye(x.size, dtype=x.dtype)

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns Newton's direction."""
        return -(memory @ values)

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the inverse that maps the change to the step."""
        rest = step - memory @ change
        row = step @ memory if self.first else change
        product = row @ change
        new = memory + fnp.outer(rest, row) / fnp.where(product == 0, 1, product)
        return fnp.where((product != 0) & fnp.all(fnp.isfinite(new)), new, memory)


class _Anderson:
    """The last steps and changes: the residual is mixed from them."""

    def __init__(self, equations: Any, settings: Any) -> None:
        self.count, self.alpha = int(settings["M"]), settings["alpha"]
        self.weight = settings["w0"]

    def start(self, x: Any, values: Any) -> Any:
        """Returns room for the steps and the changes, and the first factor."""
        room = fnp.zeros((self.count, x.size), x.dtype)
        factor = _first_factor(x, values) if self.alpha is None else self.alpha
        return room, room, fnp.asarray(factor, x.dtype)

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns the direction of the mixed residual."""
        steps, changes, factor = memory
        # Rows of length 1: lengths differ by orders of magnitude.
        length = fnp.linalg.norm(changes, axis=1)
        scale = fnp.where(length > 0, 1 / fnp.where(length > 0, length, 1), 0)
        rows = changes * scale[:, None]
        square = rows @ rows.T
        square = square + fnp.diag(fnp.where(length > 0, self.weight**2, 1))
        gamma = scale * fnp.linalg.solve(square, rows @ values)
        return factor * values - gamma @ (steps + factor * changes)

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the memory with one more step."""
        steps, changes, factor = memory
        return (
            fnp.concatenate([step[None], steps[:-1]]),
            fnp.concatenate([change[None], changes[:-1]]),
            factor,
        )


class _Krylov:
    """Newton's equations by GMRES, with products of the Jacobian."""

    def __init__(self, equations: Any, settings: Any) -> None:
        self.equations, self.count = equations, int(settings["inner_maxiter"])
        self.inner = settings["inner_M"]

    def start(self, x: Any, values: Any) -> Any:
        """Returns nothing: there is no memory."""
        return ()

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns an inexact solution of Newton's equations."""
        size = min(self.count, max(x.size, 1))

        def product(v: Any) -> Any:
            return jvp(self.equations, (x,), (v,))[1]

        inner = self.inner
        return -gmres(product, values, tol=1e-3, restart=size, maxiter=3, M=inner)[0]

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the memory as it is."""
        return memory


class _Mixing:
    """A multiple of the values."""

    def __init__(self, equations: Any, settings: Any) -> None:
        self.equations, self.settings = equations, settings

    def start(self, x: Any, values: Any) -> Any:
        """Returns the factor."""
        alpha = self.settings["alpha"]
        factor = _first_factor(x, values) if alpha is None else alpha
        return fnp.asarray(factor, x.dtype)

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns the factor times the values."""
        return memory * values

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the memory as it is."""
        return memory


class _Diagonal(_Mixing):
    """The inverse of a diagonal Jacobian, updated by Broyden's formula."""

    def start(self, x: Any, values: Any) -> Any:
        """Returns the diagonal of the negative Jacobian."""
        return fnp.ones_like(x) / super().start(x, values)

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns Newton's direction."""
        return values / memory

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the diagonal that is nearest to the secant equation."""
        square = step @ step
        new = memory - (change + memory * step) * step / fnp.where(
            square > 0, square, 1
        )
        return fnp.where(fnp.isfinite(new) & (new != 0), new, memory)


class _Exciting(_Mixing):
    """A factor of each value, which grows while its sign stays."""

    def start(self, x: Any, values: Any) -> Any:
        """Returns the factors, the first one, and the values."""
        alpha = super().start(x, values)
        return fnp.full_like(x, alpha), alpha, values

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns the factors times the values."""
        return memory[0] * values

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns factors that are larger, or the first one again."""
        factors, alpha, last = memory
        now = last + change
        factors = fnp.where(now * last > 0, factors + alpha, alpha)
        return fnp.clip(factors, 0, self.settings["alphamax"]), alpha, now


class _Spectral(_Krylov):
    """The values times a number: that of Barzilai and Borwein, with either sign."""

    def __init__(self, equations: Any, settings: Any) -> None:
        self.equations = equations

    def start(self, x: Any, values: Any) -> Any:
        """Returns the number."""
        return fnp.ones((), x.dtype)

    def direction(self, memory: Any, x: Any, values: Any) -> Any:
        """Returns the one of both directions with the smaller values."""
        way = -memory * values
        sizes = [fnp.linalg.norm(self.equations(x + d)) for d in (way, -way)]
        first = ~(sizes[1] < sizes[0])
        return fnp.where(first, way, -way)

    def updated(self, memory: Any, step: Any, change: Any) -> Any:
        """Returns the number of the last step."""
        product = step @ change
        number = step @ step / fnp.where(product == 0, 1, product)
        size = fnp.clip(fnp.abs(number), 1e-10, 1e10)
        new = fnp.where(number < 0, -size, size)
        return fnp.where((product != 0) & fnp.isfinite(new), new, memory)


def fixed_point(
    func: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    method: str = "del2",
) -> Any:
    """Finds a point that a function maps to itself.

    The point has an implicit derivative with respect to `args` and what `func` closes
    over, for maps of vectors as well: see `optim.implicit`.

    Args:
      func: called as `func(x, *args)`; returns values like x.
      x0: the initial guess: an array, or a pytree of arrays.
      args: extra arguments.
      xtol: the relative change of all elements at which to stop, at least a few
        rounding errors.
      maxiter: the maximum number of iterations.
      method: "del2", with Aitken's and Steffensen's acceleration of each element, or
        "iteration".

    Returns:
      The point, like `x0`; nan if the iteration does not converge.

    Raises:
      ArgumentError: unknown method.
      ShapeError: the function returns something that is not like x.

    Example:
      >>> round(float(fixed_point(fnp.cos, 1.0)), 5)
      0.73909

    Source: `scipy.optimize.fixed_point`.
    """
    name = "fixed_point"
    if method not in ("del2", "iteration"):
        raise ArgumentError(
            f'{name}: method must be "del2" or "iteration", got {method!r}'
        )
    given = fnp.asarray(x0) if is_arraylike(x0) else None
    x, parts = vector_of(name, x0 if given is None else fnp.ravel(given))

    def unravel(v: Any) -> Any:
        return parts(v) if given is None else fnp.reshape(v, given.shape)

    dtype = x.aval.dtype
    tol = max(xtol, 4 * float(fnp.finfo(dtype).eps))

    def image(x: Any) -> Any:
        out = convert(joined(func(unravel(x), *args)), dtype)
        if out.shape != x.shape:
            raise ShapeError(
                f"{name}: func must return {x.size} values as it gets, got {out.aval}"
            )
        return out

    def step(c: Any) -> Any:
        x, count, _ = c
        first = image(x)
        if method == "iteration":
            new = first
        else:
            second = image(first)
            bend = second - 2 * first + x
            safe = fnp.where(bend == 0, 1, bend)
            new = fnp.where(bend == 0, second, x - (first - x) ** 2 / safe)
        change = fnp.where(x == 0, new, (new - x) / fnp.where(x == 0, 1, x))
        return new, count + 1, fnp.all(fnp.abs(change) < tol)

    def solver() -> Any:
        start = (x, lax.full((), 0, dtypes.int32), lax.full((), False))
        end, _, done = lax.while_loop(lambda c: ~c[2] & (c[1] < maxiter), step, start)
        return fnp.where(done, end, fnp.nan), done

    found, done = at_solution(solver, lambda x: x - image(x), x)
    report(name, done, fnp.where(done, 0, 1))
    return unravel(found)
