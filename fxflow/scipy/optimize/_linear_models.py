"""Minimization with constraints by values alone: Powell's linear models, COBYLA.

The values at n + 1 points determine linear models of the function and of the
constraints. A step minimizes the models in a box around the best point, and shows how
good they are; the box shrinks when no step helps and the points are well placed.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.optimize._interior_point import Program, solve
from fxflow.scipy.optimize._problems import Problem
from fxflow.scipy.optimize._sequential_quadratic import without_noise, worst_violation
from fxflow.scipy.optimize.constraints import Rows
from fxflow.transforms.vmap import vmap

#: Powell's measures of a simplex: how far a point may be from the best one, and how
#: near to the face of the others, in radii.
_FAR, _NEAR = 2.1, 0.25


class _State(NamedTuple):
    points: Any  # float[n + 1, n]; the first one is the best
    values: Any  # float[n + 1]
    equal: Any  # float[n + 1, k]
    above: Any  # float[n + 1, m]
    radius: Any
    weight: Any  # of the violation in the merit
    y: Any
    z: Any
    rests: Any  # bool: whether the last step only placed a point
    calls: Any
    status: Any


class End(NamedTuple):
    """Where `linear_models` ended, in the words of sequential programming."""

    x: Any
    y: Any
    z: Any
    calls: Any
    slopes: Any
    steps: Any
    status: Any


class _Steps:
    """The parts of a step: models, points and trials.

    Args:
      problem, rows, low, high, rhoend, maxiter, catol, f_target: see `linear_models`.
    """

    def __init__(
        self,
        problem: Problem,
        rows: Rows,
        low: Any,
        high: Any,
        *,
        rhoend: float,
        maxiter: int,
        catol: float,
        f_target: float,
    ) -> None:
        self.problem, self.rows, self.low, self.high = problem, rows, low, high
        self.rhoend, self.maxiter = rhoend, maxiter
        self.catol, self.f_target = catol, f_target
        self.n, self.dtype = problem.x.aval.size, problem.x.aval.dtype
        self.tiny = float(fnp.finfo(self.dtype).eps)

    def measured(self, x: Any) -> tuple[Any, Any, Any]:
        """The value and the constraints at a point."""
        return self.problem.value(x), self.rows.equal(x), self.rows.above(x)

    def merits(self, s: _State) -> Any:
        """The values and the weighted violations of all points."""
        violation = vmap(worst_violation)(s.equal, s.above)
        merit = s.values + s.weight * violation
        return fnp.where(fnp.isnan(merit), math.inf, merit)

    def ordered(self, s: _State) -> _State:
        """Puts the best point first."""
        merit = self.merits(s)
        violation = vmap(worst_violation)(s.equal, s.above)
        least = fnp.min(merit)
        # Among equal merits the point with the least violation.
        best = fnp.argmin(fnp.where(merit <= least, violation, math.inf))
        order = fnp.arange(self.n + 1).at[0].set(best).at[best].set(0)
        return s._replace(**{k: getattr(s, k)[order] for k in _State._fields[:4]})

    def models(self, s: _State) -> Any:
        """The gradients of the value and of the constraints."""
        sides = s.points[1:] - s.points[0]
        changes = fnp.concatenate(
            [part[1:] - part[0] for part in (s.values[:, None], s.equal, s.above)], 1
        )
        inverse = fnp.linalg.inv(sides)
        slopes = (inverse @ changes).T
        k = self.rows.counts[0]
        return inverse, slopes[0], slopes[1 : 1 + k], slopes[1 + k :]

    def replaced(self, s: _State, at: Any, x: Any) -> _State:
        """The state with another point in a place."""
        value, equal, above = self.measured(x)
        return s._replace(
            points=s.points.at[at].set(x),
            values=s.values.at[at].set(value),
            equal=s.equal.at[at].set(equal),
            above=s.above.at[at].set(above),
            calls=s.calls + 1,
        )

    def placed(self, s: _State, inverse: Any) -> tuple[Any, Any, Any]:
        """Whether points are well placed; else the worst and a better one."""
        far = fnp.linalg.norm(s.points[1:] - s.points[0], axis=1)
        # Column j of the inverse is normal to the face without point j + 1.
        steep = fnp.linalg.norm(inverse, axis=0)
        height = 1 / steep
        too_far, flat = far > _FAR * s.radius, height < _NEAR * s.radius
        at = fnp.where(fnp.any(too_far), fnp.argmax(far), fnp.argmin(height))
        way = (s.radius / 2) * inverse[:, at] / steep[at]
        _, slope, A, H = self.models(s)
        best = s.points[0]

        def promise(way: Any) -> Any:
            x = fnp.clip(best + way, self.low, self.high)
            d = x - best
            lost = worst_violation(s.equal[0] + A @ d, s.above[0] + H @ d)
            # A point that the bounds cut off says little.
            size = fnp.linalg.norm(d) / fnp.linalg.norm(way)
            value = slope @ d + s.weight * lost
            return x, fnp.where(size < 0.5, math.inf, value), size

        forth, worth, long = promise(way)
        back, other, length = promise(-way)
        use = (worth < other) | ((worth == other) & (long >= length))
        # Where bounds leave no room for a better point, this one will do.
        stuck = fnp.isinf(worth) & fnp.isinf(other)
        fine = ~fnp.any(too_far | flat) | stuck
        return fine, at + 1, fnp.where(use, forth, back)

    def program(self, s: _State, slope: Any, A: Any, H: Any) -> Any:
        """The step that minimizes the models, and its multipliers."""
        # The largest part of the violation that a step can remove goes first; all
        # numbers are of the order of 1.
        r = s.radius
        size = fnp.maximum(fnp.linalg.norm(slope), 1e-20)
        by, beside = (fnp.maximum(fnp.linalg.norm(m, axis=1), 1e-20) for m in (A, H))
        equal = without_noise(s.equal[0] / (r * by))
        above = s.above[0] / (r * beside)
        below = without_noise(fnp.minimum(above, 0))
        one = fnp.ones((1,), self.dtype)
        cost = 1e3 * one
        given = Program(
            fnp.zeros((self.n + 1, self.n + 1), self.dtype),
            fnp.concatenate([slope / size, cost]),
            fnp.concatenate([A / by[:, None], -equal[:, None]], 1),
            -equal,
            fnp.concatenate([-H / beside[:, None], below[:, None]], 1),
            above,
            fnp.concatenate([fnp.maximum((self.low - s.points[0]) / r, -1), 0 * one]),
            fnp.concatenate([fnp.minimum((self.high - s.points[0]) / r, 1), one]),
        )
        found, _, _ = solve(given, 50)
        return r * found.x[: self.n], size * found.y / by, size * found.z / beside

    def moved(self, s: _State, inverse: Any, d: Any, promised: Any) -> Any:
        """The state with the step's point, and whether the step helped."""
        x = fnp.clip(s.points[0] + d, self.low, self.high)
        value, equal, above = self.measured(x)
        merit = value + s.weight * worst_violation(equal, above)
        merit = fnp.where(fnp.isnan(merit), math.inf, merit)
        improvement = self.merits(s)[0] - merit
        better = improvement > 0
        # Which point leaves: the one whose face the new one is farthest from, and a
        # distant one first.
        share = fnp.abs(d @ inverse)
        far = fnp.linalg.norm(s.points[1:] - fnp.where(better, x, s.points[0]), axis=1)
        share = share * fnp.maximum(1, (far / s.radius) ** 2)
        at = fnp.argmax(share)
        use = better | (share[at] > 1)
        keep: Any = lambda new, old: old.at[at + 1].set(
            fnp.where(use, new, old[at + 1])
        )
        s = s._replace(
            points=keep(x, s.points),
            values=keep(value, s.values),
            equal=keep(equal, s.equal),
            above=keep(above, s.above),
            calls=s.calls + 1,
        )
        return self.ordered(s), improvement >= 0.1 * promised

    def step(self, s: _State) -> _State:
        """One point: a step that is tried, or a better place for a point."""
        inverse, slope, A, H = self.models(s)
        fine, at, other = self.placed(s, inverse)
        d, y, z = self.program(s, slope, A, H)
        s = s._replace(y=y, z=z)
        before = worst_violation(s.equal[0], s.above[0])
        after = worst_violation(s.equal[0] + A @ d, s.above[0] + H @ d)
        short = fnp.linalg.norm(d) < 0.5 * s.radius
        level = fnp.abs(s.values[0]) * self.tiny
        nothing = (slope @ d > -level) & (before - after <= self.tiny * (1 + before))
        # Points that are badly placed first get a better one, then a step is tried.
        first = ~fine & ~s.rests
        useless = first | short | nothing | ~fnp.all(fnp.isfinite(d))

        # The weight makes the models promise an improvement; another point may then be
        # the best one, from which the next step goes.
        gained, repaired = -(slope @ d), before - after
        can = repaired > 0
        needed = fnp.where(can, -gained / fnp.where(can, repaired, 1), 0)
        raised = ~useless & (s.weight < 1.5 * needed)
        s = s._replace(
            weight=fnp.where(raised, 2 * needed, s.weight).astype(self.dtype)
        )
        again = self.ordered(s)
        other_best = fnp.any(again.points[0] != s.points[0])
        promised = gained + s.weight * repaired

        def tried(s: _State) -> tuple[_State, Any]:
            out: tuple[_State, Any] = lax.cond(
                other_best,
                lambda s: (again, fnp.asarray(True)),
                lambda s: self.moved(s, inverse, d, promised),
                s,
            )
            return out

        def waited(s: _State) -> tuple[_State, Any]:
            return s, fnp.asarray(False)

        s, good = lax.cond(useless, waited, tried, s)
        # Points are placed anew only after a step that did not help.
        shrinks = ~good & fine
        replaces = ~good & ~fine
        s = lax.cond(
            replaces,
            lambda s: self.ordered(self.replaced(s, at, other)),
            lambda s: s,
            s,
        )
        ends = shrinks & (s.radius <= self.rhoend)
        smaller = fnp.where(s.radius > 3 * self.rhoend, s.radius / 2, self.rhoend)
        radius = fnp.where(shrinks & ~ends, smaller, s.radius).astype(self.dtype)
        violation = worst_violation(s.equal[0], s.above[0])
        met = violation <= self.catol
        status = fnp.where(s.calls >= self.maxiter, 1, -1)
        status = fnp.where(ends, fnp.where(met, 0, 4), status)
        status = fnp.where(met & (s.values[0] <= self.f_target), 0, status)
        lost = ~fnp.any(fnp.isfinite(s.values)) | ~fnp.all(fnp.isfinite(s.points))
        status = fnp.where(lost, 2, status)
        return s._replace(
            radius=radius, rests=replaces, status=status.astype(dtypes.int32)
        )


def linear_models(
    problem: Problem,
    rows: Rows,
    low: Any,
    high: Any,
    *,
    rhobeg: float,
    rhoend: float,
    maxiter: int,
    catol: float,
    f_target: float,
) -> End:
    """Minimizes with bounds and constraints, without derivatives.

    Args:
      problem: what to minimize.
      rows: the constraints.
      low: float[n], lower bounds; they are kept by every point.
      high: float[n], upper bounds.
      rhobeg: the size of the first steps.
      rhoend: the size of the last steps.
      maxiter: the maximum number of calls.
      catol: the violation that is accepted.
      f_target: a feasible point with such a value is good enough.

    Source: M. Powell, A direct search optimization method that models the objective and
    constraint functions by linear interpolation, 1994.
    """
    x = fnp.clip(problem.x, low, high)
    n, dtype = x.aval.size, x.aval.dtype
    limits: Any = {"rhoend": rhoend, "maxiter": maxiter}
    limits |= {"catol": catol, "f_target": f_target}
    steps = _Steps(problem, rows, low, high, **limits)

    # From a bound the first points go inwards.
    room = fnp.where(x + rhobeg <= high, rhobeg, -rhobeg)
    room = fnp.where(
        (x + room < low), fnp.where(high - x > x - low, high, low) - x, room
    )
    # A variable whose bounds are equal has a point beyond them, which is not evaluated.
    stays = room == 0
    corners = x + fnp.diag(room)
    points = fnp.concatenate([x[None], corners])
    values, equal, above = vmap(steps.measured)(points)
    points = points + fnp.concatenate(
        [fnp.zeros((1, n), dtype), fnp.diag(fnp.where(stays, rhobeg, 0))]
    )
    zero = lax.full((), 0, dtypes.int32)
    start = _State(
        points.astype(dtype),
        values,
        equal,
        above,
        fnp.full((), rhobeg, dtype),
        fnp.zeros((), dtype),
        fnp.zeros(rows.counts[0], dtype),
        fnp.zeros(rows.counts[1], dtype),
        fnp.asarray(False),
        zero + n + 1,
        zero - 1,
    )
    begin = steps.ordered(start)
    status = fnp.where(fnp.any(fnp.isfinite(values)), -1, 2).astype(dtypes.int32)
    stepped = problem.watched(steps.step, lambda s: s.points[0])
    end = lax.while_loop(lambda s: s.status < 0, stepped, begin._replace(status=status))
    return End(end.points[0], end.y, end.z, end.calls, zero, end.calls, end.status)
