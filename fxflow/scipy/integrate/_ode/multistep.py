"""Backward differentiation formulas of orders 1 to 5, with variable steps."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from fxflow import lax
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
)
from fxflow.scipy.integrate._ode.newton import newton, refined, renewed, tolerance
from fxflow.scipy.linalg import lu_factor, lu_solve

# L. F. Shampine and M. W. Reichelt, The MATLAB ODE Suite, 1997.
_ORDER = 5
_KAPPA = np.array([0, -0.1850, -1 / 9, -0.0823, -0.0415, 0])
_GAMMA = np.append(0, np.cumsum(1 / np.arange(1, _ORDER + 1)))
_ALPHA = (1 - _KAPPA) * _GAMMA
_ERROR = _KAPPA * _GAMMA + 1 / np.arange(1, _ORDER + 2)
_MOST = 4
_ROWS = np.arange(_ORDER + 1)


class _State(NamedTuple):
    t: Array
    y: Array
    size: Array
    begins: Any
    differences: Array  # array[order + 3, n], for the size
    order: Any
    equal: Any  # how many steps of this size there were
    jacobian: Array
    factors: Any
    fresh: Any
    wants_jacobian: Any
    wants_factors: Any
    failed: Any
    counts: Counts


def _resized(differences: Array, order: Any, factor: Array) -> Array:
    """Returns backward differences for steps of another size."""
    i, j = _ROWS[1:, None], _ROWS[1:]

    def products(factor: Any) -> Any:
        rows = fnp.cumprod((i - 1 - factor * j) / i, 0)
        return fnp.pad(rows, ((1, 0), (1, 0))) + _first()

    def _first() -> Any:
        return (_ROWS[:, None] == 0).astype(factor.dtype)

    change = products(factor) @ products(fnp.ones_like(factor))
    used = order >= _ROWS
    change = fnp.where(used[:, None], change, 0)
    new = fnp.einsum("ij,i...->j...", change, differences[: _ORDER + 1])
    new = fnp.where(used[:, None], new, differences[: _ORDER + 1])
    return fnp.concatenate([new, differences[_ORDER + 1 :]])


def _updated(differences: Array, order: Any, d: Array) -> Array:
    """Returns the differences at the end of a step with a correction."""
    at = np.arange(_ORDER + 3)[:, None]
    following = fnp.sum(fnp.where(at == order + 1, differences, 0), 0)
    out = fnp.where(at == order + 2, d - following, differences)
    out = fnp.where(at == order + 1, d, out)
    # Each difference grows by all the following ones up to order + 1.
    sums = fnp.flip(fnp.cumsum(fnp.flip(fnp.where(at <= order + 1, out, 0), 0), 0), 0)
    return fnp.where(at <= order, sums, out)


class _Bdf(Method):
    """The formulas of numerical differentiation, which are modified BDFs."""

    implicit: ClassVar[bool] = True

    def start(self, p: Problem, t: Array, y: Array, f: Array, size: Array) -> Any:
        """Returns the first state."""
        n = y.size
        zeros = fnp.zeros((n, n), y.dtype)
        factors = lu_factor(fnp.eye(n, dtype=y.dtype))
        rest = fnp.zeros((_ORDER + 1, n), y.dtype)
        first = fnp.stack([y, f * size * p.direction])
        differences = fnp.concatenate([first, rest])
        one = np.int32(1)
        return _State(
            *(t, y, size, True, differences, one, np.int32(0), zeros, factors),
            *(False, True, True, False, Counts()),
        )

    def attempt(self, p: Problem, state: Any, dense: bool) -> tuple[Any, Step]:
        """Tries to solve the equation of a step once."""
        s: _State = state
        least = shortest(p, s.t)
        size = fnp.minimum(fnp.maximum(s.size, least), p.longest)
        size = fnp.where(s.begins, size, s.size)
        failed = (~s.begins & (s.size < least)) | ~fnp.isfinite(s.size)
        clipped = p.direction * (s.t + p.direction * size - p.end) > 0
        h, end = limited(p, s.t, size)
        same = (size == s.size) & ~clipped
        size = fnp.abs(h)
        ratio = fnp.where(same, 1, size / s.size)
        differences = fnp.where(
            same, s.differences, _resized(s.differences, s.order, ratio)
        )
        equal = fnp.where(same, s.equal, 0)
        order = s.order
        alpha, error_constant = self._constants(h, order)
        predicted, psi = self._predicted(differences, order, alpha)
        c = h / alpha
        # The first Jacobian is that at the first state.
        at_first = s.counts.njev == 0
        at_t = fnp.where(at_first, s.t, end)
        at_y = fnp.where(at_first, s.y, predicted)
        jacobian = renewed(s.wants_jacobian, lambda: p.jacobian(at_t, at_y), s.jacobian)
        fresh = s.fresh | (s.wants_jacobian & ~at_first)
        wants = s.wants_factors | s.wants_jacobian | clipped
        eye = fnp.eye(s.y.size, dtype=s.y.dtype)
        factors = renewed(wants, lambda: lu_factor(eye - c * jacobian), s.factors)

        def correction(d: Array) -> Array:
            return lu_solve(factors, c * p.fun(end, predicted + d) - psi - d)

        scale = scale_of(p, predicted)
        found = newton(correction, fnp.zeros_like(s.y), scale, tolerance(p), _MOST)
        d = found.x
        y = predicted + d
        scale = scale_of(p, y)
        norm = size_of(error_constant * d / scale)
        accepted = found.converged & (norm <= 1) & ~failed
        safety = SAFETY * (2 * _MOST + 1) / (2 * _MOST + found.number)
        power = norm ** (-1 / (order + 1).astype(norm.dtype))
        shrunk = safety * fnp.where(norm > 0, power, 1)
        shrunk = fnp.where(shrunk > SMALLEST, shrunk, SMALLEST)
        stale = ~found.converged & ~fresh
        factor = fnp.where(found.converged, shrunk, fnp.where(stale, 1, 0.5))

        # After a step: a higher or a lower order, if the size may change.
        updated = _updated(differences, order, d)
        may = accepted & (equal >= order)
        next_order, grown = self._next(updated, order, norm, scale, safety)
        next_order = fnp.where(may, next_order, order)
        factor = fnp.where(accepted, fnp.where(may, grown, 1), factor)
        keeps = fnp.where(accepted, ~may, found.converged)
        moved = fnp.where(accepted, updated, differences)
        changed = factor != 1
        resized = fnp.where(changed, _resized(moved, next_order, factor), moved)
        row = _row(updated, next_order)
        made = s.counts.plus(
            found.number,
            fnp.asarray(s.wants_jacobian).astype(np.int32),
            fnp.asarray(wants).astype(np.int32),
        )
        new = _State(
            t=chosen(accepted, end, s.t),
            y=chosen(accepted, y, s.y),
            size=size * factor,
            begins=accepted,
            differences=resized,
            order=next_order.astype(np.int32),
            equal=fnp.where(
                accepted, fnp.where(may, 0, equal + 1), fnp.where(stale, equal, 0)
            ).astype(np.int32),
            jacobian=jacobian,
            factors=factors,
            fresh=~accepted & fresh,
            wants_jacobian=~accepted & stale,
            wants_factors=~keeps,
            failed=failed,
            counts=made,
        )
        note = order, new.order, d
        return new, Step(accepted, end, y, row if dense else None, note)

    def memory(self, p: Problem, t: Array, y: Array, size: Array) -> Any:
        """Returns the differences, and the size they are for."""
        rest = fnp.zeros((_ORDER + 1, y.size), y.dtype)
        return fnp.concatenate([fnp.stack([y, size * p.fun(t, y)]), rest]), size

    def again(
        self, p: Problem, memory: Any, t: Array, size: Array, note: Any, dense: bool
    ) -> tuple[Any, Array, Array | None]:
        """Repeats a step: the known solution of its equation, with derivatives."""
        differences, before = memory
        order, next_order, d = note
        same = size == before
        ratio = lax.stop_gradient(size / fnp.where(same, size, before))
        differences = fnp.where(same, differences, _resized(differences, order, ratio))
        alpha, _ = self._constants(size, order)
        predicted, psi = self._predicted(differences, order, alpha)
        c = size / alpha
        end = t + size
        jacobian = p.jacobian(end, predicted + d)
        matrix = fnp.eye(d.size, dtype=d.dtype) - c * jacobian

        def residual(d: Array) -> Array:
            return d + psi - c * p.fun(end, predicted + d)

        d = refined(residual, d, matrix)
        updated = _updated(differences, order, d)
        row = _row(updated, next_order) if dense else None
        return (updated, size), predicted + d, row

    def basis(self, part: Array) -> list[Array]:
        """Newton's polynomials on the ends of this step and of those before."""
        out = [fnp.ones_like(part)]
        for j in range(_ORDER):
            out.append(out[-1] * (part - 1 + j) / (1 + j))
        return out

    def _constants(self, h: Array, order: Any) -> tuple[Array, Array]:
        alpha, error = (fnp.asarray(v, h.dtype) for v in (_ALPHA, _ERROR))
        return alpha[order], error[order]

    def _predicted(
        self, differences: Array, order: Any, alpha: Array
    ) -> tuple[Array, Array]:
        used = (order >= _ROWS)[:, None]
        rows = fnp.where(used, differences[: _ORDER + 1], 0)
        gamma = fnp.asarray(_GAMMA, alpha.dtype)
        return fnp.sum(rows, 0), fnp.sum(gamma[:, None] * rows, 0) / alpha

    def _next(
        self, updated: Array, order: Any, norm: Array, scale: Array, safety: Array
    ) -> tuple[Array, Array]:
        """Returns the best order, and the factor of the size that it allows."""
        constants = fnp.asarray(_ERROR, norm.dtype)

        def estimate(k: Any, at: Any) -> Array:
            return size_of(constants[k] * updated[at] / scale)

        lower = estimate(fnp.maximum(order - 1, 0), order)
        upper = estimate(fnp.minimum(order + 1, _ORDER), order + 2)
        lower = fnp.where(order > 1, lower, fnp.inf)
        upper = fnp.where(order < _ORDER, upper, fnp.inf)
        norms = fnp.stack([lower, norm, upper])
        powers = -1 / (order + np.arange(3)).astype(norm.dtype)
        factors = norms**powers
        best = fnp.argmax(factors)
        factor = fnp.minimum(LARGEST, safety * factors[best])
        return order + best - 1, factor


def _row(updated: Array, order: Any) -> Array:
    return fnp.where((order >= _ROWS)[:, None], updated[: _ORDER + 1], 0)


BDF = _Bdf("BDF", 1, 6)
