"""Eigenvalues and eigenvectors of tridiagonal matrices, one for each element.

An eigenvalue is found by bisection on the number of smaller ones (Sturm) and improved
by Rayleigh's quotient. Its eigenvector comes from recurrences that start at both ends
and meet where it is large: nothing is stored, so that one loop serves all sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.numpy._operands import convert
from fxflow.scipy.special._cylinder import repeat

_QUOTIENTS = 4


class Matrix(Protocol):
    """A symmetric tridiagonal matrix of each element, linear in a parameter q.

    Attributes:
      q: the parameter.
      index: which of its eigenvalues is meant, from 0.
      top: the last row, a number.
    """

    @property
    def q(self) -> Any: ...
    @property
    def index(self) -> Any: ...
    @property
    def top(self) -> Any: ...

    def base(self, k: Any) -> Any:
        """Returns an entry of the diagonal where q is 0."""

    def bend(self, k: Any) -> Any:
        """Returns the derivative of an entry of the diagonal with respect to q."""

    def beside(self, k: Any) -> Any:
        """Returns the entry beside the diagonal of the row k, over q."""

    def largest(self, a: Any) -> Any:
        """Returns where the eigenvector of an eigenvalue is large."""


def _diagonal(matrix: Matrix, k: Any) -> Any:
    return matrix.base(k) + matrix.q * matrix.bend(k)


def steps(top: Any, step: Any, *state: Any) -> Any:
    """Returns a state after steps of k = 0, …, top - 1."""
    moved = lambda state: (state[0] + 1, *step(*state))
    zero = fnp.zeros((), dtypes.float64)
    return lax.while_loop(lambda state: state[0] < top, moved, (zero, *state))[1:]


def nonzero(x: Any) -> Any:
    return fnp.where(x == 0, 1e-280, x)


def _smaller(matrix: Matrix, value: Any) -> Any:
    """Returns how many eigenvalues are smaller than a value."""

    def step(k: Any, pivot: Any, count: Any) -> Any:
        count = count + fnp.where(pivot < 0, 1.0, 0.0)
        side = lax.square(matrix.q * matrix.beside(k))
        return _diagonal(matrix, k + 1) - value - side / nonzero(pivot), count

    start = _diagonal(matrix, fnp.zeros((), dtypes.float64)) - value
    return steps(matrix.top, step, start, 0 * value)[1]


def eigenvalue(matrix: Matrix, low: Any, high: Any, near: float) -> Any:
    """Returns an eigenvalue of each matrix.

    Args:
      matrix: the matrices.
      low: a bound below it.
      high: a bound above it.
      near: how close to it no other is.
    """

    def going(ends: Any) -> Any:
        return fnp.any(ends[1] - ends[0] > near)

    def halve(ends: Any) -> Any:
        low, high = ends
        at = 0.5 * (low + high)
        below = _smaller(matrix, at) <= matrix.index
        return fnp.where(below, at, low), fnp.where(below, high, at)

    low, high = lax.while_loop(going, halve, (low, high))

    def improve(_: Any, a: Any) -> Any:
        rest, length, _ = eigenvector_sums(matrix, a)
        moved = a + rest / length
        return fnp.where((moved >= low) & (moved <= high), moved, a)

    return repeat(_QUOTIENTS, improve, 0.5 * (low + high))


def largest_row(matrix: Matrix, a: Any) -> Any:
    """Returns the row where the recurrences from both ends meet."""
    return lax.stop_gradient(fnp.clip(matrix.largest(a), 0, matrix.top - 1))


def eigenvector_sums(
    matrix: Matrix,
    a: Any,
    terms: Callable[[Any, Any], tuple[Any, ...]] | None = None,
    wave_of: Callable[[Any], Any] = lambda k: (),
    moved: Callable[[Any, float], Any] = lambda wave, sign: wave,
) -> Any:
    """Returns what of the eigenvector is needed, where one coefficient is 1.

    Args:
      matrix: the matrix.
      a: the eigenvalue.
      terms: of k and the wave of k: what the coefficients are multiplied with in each
        sum. None: there are no sums.
      wave_of: of k: what the terms are made of, in the first and the last row.
      moved: of the wave of a row, and of 1 or -1: that of the next row, or of the one
        before.

    Returns:
      How far `a` is from making the matrix singular, the square of the vector's
      length, its quadratic form of the derivative with respect to q, and the sums.
    """
    place = largest_row(matrix, a)
    zero, one = 0 * a, 0 * a + 1

    def terms_of(k: Any, wave: Any) -> Any:
        return terms(k, wave) if terms else ()

    def up(k: Any, wave: Any, pivot: Any, length: Any, form: Any, *sums: Any) -> Any:
        live, factor, wave = k < place, matrix.beside(k), moved(wave, 1)
        side = matrix.q * factor
        ratio = -side / nonzero(pivot)
        new = (
            _diagonal(matrix, k + 1) - a + side * ratio,
            length * ratio * ratio + 1,
            form * ratio * ratio + 2 * factor * ratio + matrix.bend(k + 1),
            *(s * ratio + t for s, t in zip(sums, terms_of(k + 1, wave), strict=True)),
        )
        old = (pivot, length, form, *sums)
        return wave, *(fnp.where(live, n, o) for n, o in zip(new, old, strict=True))

    def down(j: Any, wave: Any, *state: Any) -> Any:
        pivot, _, length, form, *sums = state
        k, wave = matrix.top - j, moved(wave, -1)
        live, inner, factor = k > place, k - 1 > place, matrix.beside(k - 1)
        side = matrix.q * factor
        ratio = -side / nonzero(pivot)
        new = (
            _diagonal(matrix, k - 1) - a + side * ratio,
            side * ratio,
            length * ratio * ratio + fnp.where(inner, 1, 0),
            form * ratio * ratio
            + 2 * factor * ratio
            + fnp.where(inner, matrix.bend(k - 1), 0),
            *(
                s * ratio + fnp.where(inner, t, 0)
                for s, t in zip(sums, terms_of(k - 1, wave), strict=True)
            ),
        )
        return wave, *(fnp.where(live, n, o) for n, o in zip(new, state, strict=True))

    origin = fnp.zeros((), dtypes.float64)
    wave, start = wave_of(origin), _diagonal(matrix, origin) - a
    first = [zero + t for t in terms_of(origin, wave)]
    below = steps(matrix.top, up, wave, start, one, zero + matrix.bend(origin), *first)
    wave, start = wave_of(matrix.top), _diagonal(matrix, matrix.top) - a
    last = [zero + t for t in terms_of(matrix.top, wave)]
    bend = zero + matrix.bend(matrix.top)
    above = steps(matrix.top, down, wave, start, zero, one, bend, *last)
    parts = [b + c for b, c in zip(below[2:], above[3:], strict=True)]
    return below[1] + above[2], *parts


def ratios_from_last(matrix: Matrix, a: Any, rows: int) -> Any:
    """Returns a table of the eigenvector's vₖ / vₖ₋₁, from the last row.

    They are right where the eigenvector falls: behind `Matrix.largest`.

    Args:
      matrix: the matrix, `top` below the number of rows.
      a: the eigenvalue.
      rows: the length of the table's first axis.
    """

    def step(j: Any, pivot: Any, table: Any) -> Any:
        k = matrix.top - j
        side = matrix.q * matrix.beside(k - 1)
        ratio = -side / nonzero(pivot)
        table = lax.dynamic_update_index_in_dim(
            table, ratio, convert(k, dtypes.int32), 0
        )
        return _diagonal(matrix, k - 1) - a + side * ratio, table

    table = fnp.zeros((rows, *a.aval.shape), dtypes.float64)
    return steps(matrix.top, step, _diagonal(matrix, matrix.top) - a, table)[1]


def rising_rows(
    matrix: Matrix,
    a: Any,
    ratios: Any,
    terms: Callable[..., tuple[Any, ...]],
    wave: Any = None,
    moved: Callable[[Any, Any], Any] = lambda k, wave: wave,
) -> list[Any]:
    """Returns sums over the eigenvector, whose coefficient at `largest_row` is 1.

    As `eigenvector_sums`, of functions that are known from the first row on.

    Args:
      matrix: the matrix.
      a: the eigenvalue.
      ratios: what `ratios_from_last` returns.
      terms: of k, the coefficient and the wave: what each sum adds.
      wave: what the terms of the first row are made of.
      moved: of k and its wave: the wave of k + 1.
    """
    place = largest_row(matrix, a)

    def step(k: Any, wave: Any, pivot: Any, here: Any, *sums: Any) -> Any:
        rising = k < place
        side = matrix.q * matrix.beside(k)
        # As long as coefficients rise, that of the last row is 1.
        ratio = fnp.where(rising, -side / nonzero(pivot), 1)
        index = convert(k + 1, dtypes.int32)
        behind = lax.dynamic_index_in_dim(ratios, index, 0, keepdims=False)
        here = fnp.where(rising, 1, here * behind)
        pivot = fnp.where(rising, _diagonal(matrix, k + 1) - a + side * ratio, pivot)
        wave = moved(k, wave)
        added = terms(k + 1, here, wave)
        return (
            wave,
            pivot,
            here,
            *(s * ratio + t for s, t in zip(sums, added, strict=True)),
        )

    origin, one = fnp.zeros((), dtypes.float64), 0 * a + 1
    first = [0 * a + t for t in terms(origin, one, wave)]
    start = _diagonal(matrix, origin) - a
    return list(steps(matrix.top, step, wave, start, one, *first)[3:])
