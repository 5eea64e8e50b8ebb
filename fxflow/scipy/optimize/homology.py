"""`shgo`: global minimization by a local one in each basin of a triangulated box."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.scipy._callbacks import showing
from fxflow.scipy.optimize._problems import (
    arguments,
    is_traced,
    options_of,
    problem_of,
    report,
)
from fxflow.scipy.optimize._sequential_quadratic import worst_violation
from fxflow.scipy.optimize.constraints import box_of, rows_of
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.transforms.inspection import ensure_compile_time_eval
from fxflow.transforms.vmap import vmap

#: How many basins are searched where their number is not known: under jit and vmap.
_BASINS = 16
#: A point of the triangulation that violates constraints by less is feasible.
_FEASIBLE = 1e-6


def shgo(
    func: Callable[..., Any],
    bounds: Any,
    args: tuple[Any, ...] = (),
    constraints: Any = None,
    n: int = 100,
    iters: int = 1,
    callback: Callable[..., None] | None = None,
    minimizer_kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    sampling_method: Any = "simplicial",
    *,
    workers: int = 1,
) -> OptimizeResults:
    """Minimizes a function globally, by the homology of its values on a triangulation.

    The function is evaluated at points that fill the box, all at once. Each point that
    is lower than its neighbours begins a local minimization; those run at once, too.
    The solution has an implicit derivative by `args`, by what `func` closes over and by
    the bounds: see `minimize`.

    Args:
      func: called as `func(x, *args)`; returns a real number. It is vectorized by
        `vmap`.
      bounds: `Bounds` with arrays, or a pair (min, max) for each variable; finite.
      args: extra arguments.
      constraints: as those of `minimize`; None or () for none.
      n: the least number of points.
      iters: how often the number of points is increased by as many: the points of the
        last time are used.
      callback: called on the host with the point that is found, at the end.
      minimizer_kwargs: arguments of `minimize` for local searches: `method`, `tol`,
        `options`, `jac`, …; None means "SLSQP" with constraints, else "L-BFGS-B".
      options: `local_iter`, how many basins are searched at most, the lowest first
        (None: all; under `jit` and `vmap`, where their number is not known, 16);
        `infty_constraints`: whether only feasible points begin a search (True).
      sampling_method: "simplicial", a grid that is divided into simplices; "sobol" or
        "halton", points of these sequences, which Qhull (SciPy) triangulates; or a
        function of their number and the number of variables that returns points,
        float[m, d], of the unit cube.
      workers: has no effect: all points are evaluated at once.

    Returns:
      An `OptimizeResults` whose `xl` and `funl` are the local minima, the lowest first:
      as many as there are basins, or under `jit` and `vmap` `local_iter`, with nan for
      those that there are not. The status is 2 if no value is finite, 4 if no point was
      found that satisfies the constraints.

    Raises:
      ArgumentError: there is no such sampling method or option, a bound is missing, or
        a number is out of range.
      ShapeError: the function of `sampling_method` returns no points.

    Example:
      >>> waves = lambda x: (x**2 - 2 * fnp.cos(9 * x)).sum()
      >>> found = shgo(waves, [(-2.0, 3.0)])
      >>> bool(fnp.abs(found.x[0]) < 1e-3), found.xl.shape
      (True, (8, 1))

    Source: `scipy.optimize.shgo`; S. Endres, C. Sandrock and W. Focke, A simplicial
    homology algorithm for Lipschitz optimisation, 2018.
    """
    name = "shgo"
    shown = showing(name, callback)
    args = arguments(name, args)
    n, iters = natural(name, "n", n), natural(name, "iters", iters)
    settings = options_of(
        name, name, options, {"local_iter": None, "infty_constraints": True}
    )
    low, high = box_of(name, bounds)
    d = low.size
    points, edges = _triangulated(n * iters, d, sampling_method)
    problem = problem_of(name, func, (low + high) / 2, args)
    given = () if constraints is None else constraints
    rows = rows_of(name, given, problem.x, problem.unravel, args)
    # Where searches begin has no derivative.
    cube = fnp.asarray(points, low.dtype)
    starts = lax.stop_gradient(low + (high - low) * cube)
    values = lax.stop_gradient(vmap(problem.value)(starts))
    values = fnp.where(fnp.isnan(values), math.inf, values)
    if rows is not None and settings["infty_constraints"]:
        violation = vmap(lambda x: worst_violation(rows.equal(x), rows.above(x)))
        lost = lax.stop_gradient(violation(starts))
        feasible = lost <= _FEASIBLE
        # Without a feasible point the searches begin where the least is missing.
        values = fnp.where(
            fnp.any(feasible), fnp.where(feasible, values, math.inf), lost
        )
    chosen, there = _basins(name, values, edges, settings["local_iter"])
    keywords = dict(minimizer_kwargs or {})
    if rows is not None:
        keywords.setdefault("constraints", given)
    keywords.setdefault("bounds", bounds)

    def local(x: Any) -> OptimizeResults:
        return minimize(func, x, args, **keywords)

    found = vmap(local)(starts[chosen])
    out = _results(name, found, there, len(points), iters)
    if shown is not None:
        shown(out.x)
    return out


def _basins(name: str, values: Any, edges: Any, most: Any) -> tuple[Any, Any]:
    """Returns the points of the lowest basins, and which of them there are."""
    is_low = _minimizers(values, edges)
    order = fnp.argsort(fnp.where(is_low, values, math.inf))
    number = fnp.sum(is_low & fnp.isfinite(values))
    most = None if most is None else natural(name, "local_iter", most)
    if is_traced(number):
        count = min(_BASINS if most is None else most, values.size)
    else:
        count = max(1, int(number) if most is None else min(most, int(number)))
    there = fnp.arange(count) < number
    return fnp.where(there, order[:count], order[0]), there


def _results(
    name: str, found: OptimizeResults, there: Any, calls: int, iters: int
) -> OptimizeResults:
    """Returns the best of several local minima, and all of them."""
    met = there & fnp.isfinite(found.fun) & (found.status != 4)
    worth = lax.stop_gradient(fnp.where(met, found.fun, math.inf))
    ranks = fnp.argsort(worth)
    best = ranks[0]

    def picked(v: Any) -> Any:
        return None if v is None else v[best]

    status = fnp.where(
        fnp.any(met), 0, fnp.where(fnp.any(fnp.isfinite(found.fun)), 4, 2)
    ).astype(dtypes.int32)
    report(name, status == 0, status)

    def ranked(v: Any) -> Any:
        mask = fnp.reshape(there, (-1,) + (1,) * (v.ndim - 1))
        return fnp.where(mask, v, fnp.nan)[ranks]

    x = found.x[best]
    return OptimizeResults(
        x=x,
        success=status == 0,
        status=status,
        fun=found.fun[best],
        jac=picked(found.jac),
        hess_inv=picked(found.hess_inv),
        nfev=calls + fnp.sum(fnp.where(there, found.nfev, 0)),
        njev=fnp.sum(fnp.where(there, found.njev, 0)),
        nit=fnp.full((), iters, dtypes.int32),
        multipliers=None
        if found.multipliers is None
        else tuple(v[best] for v in found.multipliers),
        maxcv=picked(found.maxcv),
        xl=ranked(found.x),
        funl=ranked(found.fun),
    )


def _minimizers(values: Any, edges: np.ndarray[Any, Any]) -> Any:
    """Returns which points are lower than all neighbours; of equal ones, the first."""
    here, there = edges[:, 0], edges[:, 1]
    tied = values[there] == values[here]
    beaten = (values[there] < values[here]) | (tied & (there < here))
    return ~fnp.zeros(values.size, bool).at[here].max(beaten)


def _triangulated(n: int, d: int, method: Any) -> tuple[Any, Any]:
    """Returns points of the unit cube, and pairs of neighbours, both ways."""
    if method == "simplicial":
        return _grid(max(3, math.ceil(n ** (1 / d) - 1e-9)), d)
    if callable(method):
        points = np.asarray(method(n, d), np.float64)
        if points.ndim != 2 or points.shape[1] != d:
            raise ShapeError(
                f"shgo: sampling_method must return float[m, {d}], got "
                f"float{list(points.shape)}"
            )
    elif method in ("sobol", "halton"):
        # Statistics are imported only for these methods.
        qmc = importlib.import_module("fxflow.scipy.stats.qmc")
        with ensure_compile_time_eval():
            if method == "sobol":
                sampler = qmc.Sobol(d, scramble=False)
                points = sampler.random_base2(max(2, math.ceil(math.log2(n))))
            else:
                points = qmc.Halton(d, scramble=False).random(max(4, n))
            points = np.asarray(points, np.float64)
    else:
        raise ArgumentError(
            'shgo: sampling_method must be "simplicial", "sobol", "halton" or a '
            f"function, got {method!r}"
        )
    # The corners, so that nothing of the box is outside of the triangulation.
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=d)))
    points = np.unique(np.concatenate([corners, points]), axis=0)
    if d == 1:
        i = np.arange(len(points) - 1)
        pairs = np.stack([i, i + 1], 1)
    else:
        from_qhull = _qhull(points)
        pairs = np.concatenate(
            [
                from_qhull[:, list(two)]
                for two in itertools.combinations(range(d + 1), 2)
            ]
        )
    pairs = np.unique(np.sort(pairs, 1), axis=0)
    return points, np.concatenate([pairs, pairs[:, ::-1]])


def _qhull(points: Any) -> Any:
    try:
        theirs = importlib.import_module("scipy.spatial")
    except ImportError as error:
        raise ImportError(
            'shgo: sampling_method="sobol" and so on need SciPy, which is not '
            'installed: pip install scipy, or use "simplicial"'
        ) from error
    return theirs.Delaunay(points, qhull_options="Qbb Qc Qz QJ").simplices


def _grid(m: int, d: int) -> tuple[Any, Any]:
    """Returns the m**d points of a grid, and the edges of Kuhn's simplices."""
    axes = [np.arange(m)] * d
    index = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, d)
    weight = m ** np.arange(d)[::-1]
    edges = []
    for way in itertools.product((0, 1), repeat=d):
        step = np.array(way)
        if step.any():
            inside = np.all(index + step < m, 1)
            here = index[inside] @ weight
            edges.append(np.stack([here, here + step @ weight], 1))
    pairs = np.concatenate(edges)
    return index / (m - 1), np.concatenate([pairs, pairs[:, ::-1]])
