"""Explicit methods of Runge and Kutta."""

from __future__ import annotations

from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.scipy.integrate._ode.methods import (
    LARGEST,
    SAFETY,
    SMALLEST,
    Counts,
    Method,
    Problem,
    Step,
    chosen,
    limited,
    scale_of,
    shortest,
    size_of,
    weighted,
)
from fxflow.scipy.integrate._ode.tableaus import (
    BOGACKI_SHAMPINE,
    DORMAND_PRINCE,
    HAIRER_853,
    Tableau,
)


class _State(NamedTuple):
    t: Array
    y: Array
    f: Array
    size: Array
    rejected: Any
    failed: Any
    counts: Counts


class Explicit(Method):
    """An explicit method.

    Attributes:
      tableau: its coefficients.
    """

    tableau: Tableau

    def start(self, p: Problem, t: Array, y: Array, f: Array, size: Array) -> Any:
        """Returns the first state."""
        return _State(t, y, f, size, False, False, Counts())

    def attempt(self, p: Problem, state: Any, dense: bool) -> tuple[Any, Step]:
        """Tries a step."""
        s: _State = state
        least = shortest(p, s.t)
        size = fnp.minimum(fnp.maximum(s.size, least), p.longest)
        failed = (s.rejected & (s.size < least)) | ~fnp.isfinite(s.size)
        size = fnp.where(s.rejected, s.size, size)
        h, end = limited(p, s.t, size)
        slopes, y = self._slopes(p, s.t, h, s.y, s.f)
        error = self._error(h, slopes, scale_of(p, s.y, y))
        accepted = (error < 1) & ~failed
        exponent = -1 / (self.order + 1)
        factor = SAFETY * fnp.where(error > 0, error, 1) ** exponent
        grown = fnp.where(error == 0, LARGEST, fnp.minimum(LARGEST, factor))
        grown = fnp.where(s.rejected, fnp.minimum(1, grown), grown)
        shrunk = fnp.where(factor > SMALLEST, factor, SMALLEST)
        made = len(self.tableau.nodes) + 1
        row = self._row(p, s.t, h, s.y, y, slopes) if dense else None
        if dense:
            made += len(self.tableau.later)
        new = _State(
            chosen(accepted, end, s.t),
            chosen(accepted, y, s.y),
            chosen(accepted, slopes[-1], s.f),
            fnp.abs(h) * fnp.where(accepted, grown, shrunk),
            ~accepted,
            failed,
            s.counts.plus(made),
        )
        return new, Step(accepted, end, y, row, ())

    def memory(self, p: Problem, t: Array, y: Array, size: Array) -> Any:
        """Returns the state and the slope."""
        return y, p.fun(t, y)

    def again(
        self, p: Problem, memory: Any, t: Array, size: Array, note: Any, dense: bool
    ) -> tuple[Any, Array, Array | None]:
        """Repeats a step."""
        y, f = memory
        slopes, new = self._slopes(p, t, size, y, f)
        row = self._row(p, t, size, y, new, slopes) if dense else None
        return (new, slopes[-1]), new, row

    def _slopes(
        self, p: Problem, t: Array, h: Array, y: Array, f: Array
    ) -> tuple[list[Array], Array]:
        """Returns the slopes of the stages and at the result, and the result."""
        slopes = [f]
        tableau = self.tableau
        for node, weights in zip(tableau.nodes, tableau.stages, strict=True):
            slopes.append(p.fun(t + node * h, y + h * weighted(weights, slopes)))
        new = y + h * weighted(tableau.result, slopes)
        return [*slopes, p.fun(t + h, new)], new

    def _error(self, h: Array, slopes: list[Array], scale: Array) -> Array:
        return size_of(h * weighted(self.tableau.errors[0], slopes) / scale)

    def _row(
        self, p: Problem, t: Array, h: Array, y: Array, new: Array, slopes: list[Array]
    ) -> Array:
        rest = [h * weighted(w, slopes) for w in self.tableau.dense]
        return fnp.stack([y, *rest])


class _Hairer(Explicit):
    """The method DOP853, with two estimates of the error and an interpolant."""

    def basis(self, part: Array) -> list[Array]:
        """Products of the part and what is left of the step, in turns."""
        out = [fnp.ones_like(part)]
        for i in range(1, self.terms):
            out.append(out[-1] * (part if i % 2 else 1 - part))
        return out

    def _error(self, h: Array, slopes: list[Array], scale: Array) -> Array:
        fine, rough = (
            size_of(weighted(w, slopes) / scale) for w in self.tableau.errors
        )
        both = fine**2 + 0.01 * rough**2
        return fnp.abs(h) * fine**2 / fnp.sqrt(fnp.where(both == 0, 1, both))

    def _row(
        self, p: Problem, t: Array, h: Array, y: Array, new: Array, slopes: list[Array]
    ) -> Array:
        every = list(slopes)
        for node, weights in self.tableau.later:
            every.append(p.fun(t + node * h, y + h * weighted(weights, every)))
        moved = new - y
        bend = h * slopes[0] - moved
        rest = 2 * moved - h * (slopes[-1] + slopes[0])
        dense = [h * weighted(w, every) for w in self.tableau.dense]
        return fnp.stack([y, moved, bend, rest, *dense])


RK23 = Explicit("RK23", 2, 4, BOGACKI_SHAMPINE)
RK45 = Explicit("RK45", 4, 5, DORMAND_PRINCE)
DOP853 = _Hairer("DOP853", 7, 8, HAIRER_853)
