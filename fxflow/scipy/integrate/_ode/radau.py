"""The implicit method of Runge and Kutta of order 5 on Radau's points."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

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

# E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, 1996, IV.5, IV.8.
_S = 6**0.5
_NODES = np.array([(4 - _S) / 10, (4 + _S) / 10, 1])
_MATRIX = np.array(
    [
        [(88 - 7 * _S) / 360, (296 - 169 * _S) / 1800, (-2 + 3 * _S) / 225],
        [(296 + 169 * _S) / 1800, (88 + 7 * _S) / 360, (-2 - 3 * _S) / 225],
        [(16 - _S) / 36, (16 + _S) / 36, 1 / 9],
    ]
)
_ERROR = np.array([-13 - 7 * _S, -13 + 7 * _S, -1]) / 3
# The real eigenvalue of the inverse of the matrix, and one of the complex ones.
_REAL = 3 + 3 ** (2 / 3) - 3 ** (1 / 3)
_COMPLEX = complex(
    3 + (3 ** (1 / 3) - 3 ** (2 / 3)) / 2, -(3 ** (5 / 6) + 3 ** (7 / 6)) / 2
)


def _transforms() -> tuple[Any, Any]:
    """Returns T and its inverse: T⁻¹ A⁻¹ T has blocks of the eigenvalues.

    The eigenvectors are those whose last elements are 1, and 1 + 0i.
    """
    values, vectors = np.linalg.eig(np.linalg.inv(_MATRIX))
    real = vectors[:, np.argmin(np.abs(values - _REAL))].real
    other = vectors[:, np.argmin(np.abs(values - _COMPLEX))]
    other = other / other[2]
    t = np.stack([real / real[2], other.real, -other.imag], 1)
    return t, np.linalg.inv(t)


_T, _INVERSE = _transforms()
# Coefficients of powers 1 to 3 of the polynomial through the stages.
_DENSE = np.linalg.inv(np.stack([_NODES, _NODES**2, _NODES**3], 1)).T
_MOST = 6


class _State(NamedTuple):
    t: Array
    y: Array
    f: Array
    size: Array
    proposed: Array  # the size at the first attempt of a step
    begins: Any  # whether the attempt is the first of a step
    rejected: Any
    size_before: Array  # of the last accepted step, nan if it does not count
    error_before: Array
    jacobian: Array
    real: Any  # factors
    complex: Any
    fresh: Any  # whether the Jacobian is that at the current state
    wants_jacobian: Any
    wants_factors: Any
    row: Array  # the interpolant of the last step
    row_start: Array
    row_size: Array  # 0: there is none
    failed: Any
    counts: Counts


class _Radau(Method):
    """Radau IIA of order 5."""

    implicit: ClassVar[bool] = True

    def start(self, p: Problem, t: Array, y: Array, f: Array, size: Array) -> Any:
        """Returns the first state."""
        n = y.size
        nan = fnp.full_like(size, fnp.nan)
        zeros = fnp.zeros((n, n), y.dtype)
        # The form of factors, not of use until they are made.
        real = lu_factor(zeros + fnp.eye(n, dtype=y.dtype))
        complex_ = lu_factor(fnp.eye(n, dtype=_complex(y)))
        row = fnp.zeros((4, n), y.dtype)
        zero = fnp.zeros_like(t)
        return _State(
            *(t, y, f, size, size, True, False, nan, nan, zeros, real, complex_),
            *(True, True, True, row, zero, zero, False, Counts()),
        )

    def attempt(self, p: Problem, state: Any, dense: bool) -> tuple[Any, Step]:
        """Tries to solve the equations of a step once."""
        s: _State = state
        least = shortest(p, s.t)
        size = fnp.minimum(fnp.maximum(s.size, least), p.longest)
        size = fnp.where(s.begins, size, s.size)
        known = ~s.begins | (size == s.size)
        size_before = fnp.where(known, s.size_before, fnp.nan)
        proposed = fnp.where(s.begins, s.size, s.proposed)
        failed = (~s.begins & (s.size < least)) | ~fnp.isfinite(s.size)
        h, end = limited(p, s.t, size)
        size = fnp.abs(h)
        n, dtype = s.y.size, s.y.dtype

        jacobian = renewed(s.wants_jacobian, lambda: p.jacobian(s.t, s.y), s.jacobian)
        eye = fnp.eye(n, dtype=dtype)

        def factors() -> Any:
            complex_ = _COMPLEX / h * eye - jacobian
            return lu_factor(_REAL / h * eye - jacobian), lu_factor(
                complex_.astype(_complex(s.y))
            )

        wants = s.wants_factors | s.wants_jacobian
        real, complex_ = renewed(wants, factors, (s.real, s.complex))

        # Where the interpolant of the last step goes on.
        nodes = _NODES.astype(h.dtype)
        part = (s.t + nodes * h - s.row_start) / fnp.where(
            s.row_size == 0, 1, s.row_size
        )
        guess = sum(
            b[:, None] * c for b, c in zip(self.basis(part), s.row, strict=True)
        )
        guess = fnp.where(s.row_size == 0, 0, guess - s.y)
        inverse = _INVERSE.astype(h.dtype)

        def correction(w: Array) -> Array:
            z = _T.astype(h.dtype) @ w
            slopes = inverse @ self._slopes(p, s.t, h, s.y, z)
            first = lu_solve(real, slopes[0] - _REAL / h * w[0])
            both = slopes[1] + 1j * slopes[2] - _COMPLEX / h * (w[1] + 1j * w[2])
            second = lu_solve(complex_, both)
            return fnp.stack([first, fnp.real(second), fnp.imag(second)])

        found = newton(
            correction, inverse @ guess, scale_of(p, s.y), tolerance(p), _MOST
        )
        z = _T.astype(h.dtype) @ found.x
        y = s.y + z[2]
        moved = _ERROR.astype(h.dtype) @ z / h
        scale = scale_of(p, s.y, y)
        error = lu_solve(real, s.f + moved)
        norm = size_of(error / scale)
        again = s.rejected & (norm > 1)
        other = lu_solve(real, p.fun(s.t, s.y + error) + moved)
        norm = fnp.where(again, size_of(other / scale), norm)

        accepted = found.converged & (norm <= 1) & ~failed
        safety = SAFETY * (2 * _MOST + 1) / (2 * _MOST + found.number)
        grows = size / size_before * (s.error_before / norm) ** 0.25
        grows = fnp.where(fnp.isnan(grows), 1, fnp.minimum(1, grows))
        factor = safety * grows * fnp.where(norm > 0, norm, 1) ** -0.25
        shrunk = fnp.where(factor > SMALLEST, factor, SMALLEST)
        factor = fnp.where(norm == 0, LARGEST, fnp.minimum(LARGEST, factor))
        slow = (found.number > 2) & (found.rate > 1e-3)
        keeps = ~slow & (factor < 1.2)
        factor = fnp.where(keeps, 1, factor)

        stale = ~found.converged & ~s.fresh & ~s.wants_jacobian
        halved = fnp.where(stale, 1, 0.5)
        factor = fnp.where(accepted, factor, fnp.where(found.converged, shrunk, halved))
        row = self._row(s.y, z)
        f = p.fun(end, y)
        made = s.counts.plus(
            3 * found.number + again + accepted,
            fnp.asarray(s.wants_jacobian).astype(np.int32),
            2 * fnp.asarray(wants).astype(np.int32),
        )
        new = _State(
            t=chosen(accepted, end, s.t),
            y=chosen(accepted, y, s.y),
            f=chosen(accepted, f, s.f),
            size=size * factor,
            proposed=proposed,
            begins=accepted,
            rejected=~accepted & (s.rejected | found.converged),
            size_before=fnp.where(accepted, proposed, size_before),
            error_before=fnp.where(accepted, norm, s.error_before),
            jacobian=jacobian,
            real=real,
            complex=complex_,
            fresh=fnp.where(accepted, False, s.fresh | s.wants_jacobian),
            wants_jacobian=fnp.where(accepted, slow, stale),
            wants_factors=~(accepted & keeps),
            row=chosen(accepted, row, s.row),
            row_start=chosen(accepted, s.t, s.row_start),
            row_size=chosen(accepted, h, s.row_size),
            failed=failed,
            counts=made,
        )
        return new, Step(accepted, end, y, row if dense else None, z)

    def memory(self, p: Problem, t: Array, y: Array, size: Array) -> Any:
        """Returns the state."""
        return y

    def again(
        self, p: Problem, memory: Any, t: Array, size: Array, note: Any, dense: bool
    ) -> tuple[Any, Array, Array | None]:
        """Repeats a step: the known solution of its equations, with derivatives."""
        y = memory
        n = y.size
        matrix = _MATRIX.astype(size.dtype)

        def residual(z: Array) -> Array:
            z = fnp.reshape(z, (3, n))
            slopes = self._slopes(p, t, size, y, z)
            return fnp.ravel(z - size * (matrix @ slopes))

        jacobians = [
            p.jacobian(t + c * size, y + z)
            for c, z in zip(_NODES.tolist(), note, strict=True)
        ]
        blocks = fnp.stack(
            [
                fnp.stack([-size * matrix[i, j] * jacobians[j] for j in range(3)])
                for i in range(3)
            ]
        )
        whole = fnp.reshape(fnp.transpose(blocks, (0, 2, 1, 3)), (3 * n, 3 * n))
        whole = whole + fnp.eye(3 * n, dtype=y.dtype)
        z = fnp.reshape(refined(residual, fnp.ravel(note), whole), (3, n))
        new = y + z[2]
        return new, new, self._row(y, z) if dense else None

    def _slopes(self, p: Problem, t: Array, h: Array, y: Array, z: Array) -> Array:
        return fnp.stack(
            [p.fun(t + c * h, y + z[i]) for i, c in enumerate(_NODES.tolist())]
        )

    def _row(self, y: Array, z: Array) -> Array:
        dense = _DENSE.T.astype(z.dtype)
        return fnp.concatenate([y[None], dense @ z])


def _complex(y: Array) -> Any:
    return np.result_type(y.dtype, np.complex64)


RADAU = _Radau("Radau", 3, 4)
