"""Polynomials between breakpoints in Bernstein's basis."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.interpolate._extensions import extended
from fxflow.scipy.interpolate._intervals import (
    Extrapolate,
    Piecewise,
    beyond,
    extrapolation,
    require_ascending,
    spread,
)
from fxflow.scipy.interpolate.piecewise import PPoly


@library("extrapolate")
def _evaluated(c: Array, x: Array, at: Array, extrapolate: bool | str) -> Array:
    """Returns the polynomials at points (de Casteljau's recursion)."""
    if extrapolate == "periodic":
        at = x[0] + fnp.mod(at - x[0], x[-1] - x[0])
    i = fnp.clip(fnp.searchsorted(x, at, side="right") - 1, 0, x.aval.size - 2)
    rows = c[:, i]
    s = spread((at - x[i]) / (x[i + 1] - x[i]), rows, 1)
    while rows.aval.shape[0] > 1:
        rows = rows[:-1] + (rows[1:] - rows[:-1]) * s
    return beyond(rows[0], x[0], x[-1], at, extrapolate)


def _derived(c: Array, x: Array) -> Array:
    k = c.aval.shape[0] - 1
    if not k:
        return fnp.zeros_like(c)
    return k * fnp.diff(c, axis=0) / spread(fnp.diff(x), c, 1)


@library()
def _integrated(c: Array, x: Array) -> Array:
    """Returns coefficients of the integral from the first breakpoint."""
    k = c.aval.shape[0]
    sums = fnp.cumsum(c, 0) / k * spread(fnp.diff(x), c, 1)
    before = fnp.cumsum(sums[-1], 0) - sums[-1]
    return fnp.concatenate([fnp.zeros_like(c[:1]), sums], 0) + before


def _raised(c: Array, count: int) -> Array:
    """Returns coefficients of the same polynomials with a higher degree."""
    k = c.aval.shape[0] - 1
    if not count:
        return c
    matrix = np.zeros((k + count + 1, k + 1))
    for a in range(k + 1):
        for j in range(count + 1):
            share = math.comb(k, a) * math.comb(count, j)
            matrix[a + j, a] = share / math.comb(k + count, a + j)
    flat = fnp.reshape(c, (k + 1, -1))
    rows = fnp.asarray(matrix, dtypes.to_real(c.dtype)).astype(c.dtype)
    out = fnp.matmul(rows, flat, precision="highest")
    return fnp.reshape(out, (k + count + 1, *c.aval.shape[1:]))


def _hermite(width: Array, left: list[Array], right: list[Array]) -> Array:
    """Returns coefficients of polynomials with derivatives at both ends.

    Args:
      width: float[m]: of the intervals.
      left: the derivatives of order 0, 1, … at the first end, arrays[m, ...].
      right: those at the last end.

    Returns:
      Array[len(left) + len(right), m, ...].
    """
    n = len(left) + len(right)
    c: list[Any] = [None] * n

    def scaled(values: Array, q: int) -> Array:
        # Falling powers of the degree: those that q derivatives make.
        falling = math.prod(range(n - q, n))
        return values * spread(width**q, values, 0) / falling

    for q, values in enumerate(left):
        c[q] = scaled(values, q)
        for j in range(q):
            c[q] = c[q] - (-1) ** (j + q) * math.comb(q, j) * c[j]
    for q, values in enumerate(right):
        c[n - q - 1] = (-1) ** q * scaled(values, q)
        for j in range(q):
            c[n - q - 1] = c[n - q - 1] - (-1) ** (j + 1) * (
                math.comb(q, j + 1) * c[n - q + j]
            )
    return fnp.stack(c)


@register_pytree_node_class
class BPoly(Piecewise["BPoly"]):
    """Polynomials between breakpoints, in Bernstein's basis.

    Between x[i] and x[i + 1] the value is the sum of c[a, i] binom(k, a) s^a
    (1 - s)^(k - a), where k is the degree and s goes from 0 to 1. It is an immutable
    pytree: it works under `jit`, `vmap` and `grad`.

    Args:
      c: float or complex array-like[k + 1, m, ...]: coefficients.
      x: real array-like[m + 1]: breakpoints, strictly ascending.
      extrapolate: whether the outermost polynomials go on beyond the breakpoints;
        if not, the result is nan there; "periodic" for a periodic function;
        None is True.
      axis: the axis of `k`, that of `m` being the next; the points of a result stand
        there.

    Attributes:
      c: the coefficients, array[k + 1, m, ...].
      x: the breakpoints.
      extrapolate: as given.
      axis: axis of the result, where the points are.

    Raises:
      ArgumentError: `x` does not ascend, or `extrapolate` is invalid.
      ShapeError: the shapes are incompatible.

    Example:
      >>> f = BPoly(np.array([[1.0], [2.0], [3.0]]), np.array([0.0, 1.0]))
      >>> f(np.array([0.0, 0.5, 1.0]))
      Array([1., 2., 3.], dtype=float32)

    Source: `scipy.interpolate.BPoly`; G. Farin, Curves and Surfaces for CAGD, 2002.
    """

    @staticmethod
    def _at(c: Array, x: Array, at: Array, extrapolate: bool | str) -> Array:
        return _evaluated(c, x, at, extrapolate)

    @staticmethod
    def _derived(c: Array, x: Array) -> Array:
        return _derived(c, x)

    @staticmethod
    def _summed(c: Array, x: Array) -> Array:
        return _integrated(c, x)

    def _like(self, c: Array, extrapolate: bool | str) -> BPoly:
        return BPoly.construct_fast(c, self.x, extrapolate, self.axis)

    def extend(self, c: ArrayLike, x: ArrayLike) -> BPoly:
        """Returns polynomials with more intervals, at the end or before the first one.

        Args:
          c: array-like[l + 1, n, ...]: coefficients, of any degree.
          x: real array-like[n]: breakpoints, all after or all before those there are.

        Returns:
          BPoly. (SciPy changes the object.)

        Raises:
          ArgumentError: breakpoints lie between those there are, or do not ascend.
          ShapeError: the shapes are incompatible.
        """
        grown = extended("BPoly.extend", self, c, x, _raised)
        return self.construct_fast(*grown, self.extrapolate, self.axis)

    @classmethod
    def from_power_basis(cls, pp: PPoly, extrapolate: Extrapolate = None) -> BPoly:
        """Returns the same polynomials in Bernstein's basis.

        Args:
          pp: polynomials in powers.
          extrapolate: in place of that of `pp`.

        Returns:
          BPoly.

        Raises:
          ArgumentError: `pp` is not a PPoly.
        """
        if not isinstance(pp, PPoly):
            raise ArgumentError(
                f"BPoly.from_power_basis: pp must be a PPoly, got {pp!r}"
            )
        k = pp.c.shape[0] - 1
        width = spread(fnp.diff(pp.x), pp.c, 1)
        rows: list[Any] = [0.0] * (k + 1)
        for a in range(k + 1):
            power = k - a
            part = pp.c[a] * width**power / math.comb(k, power)
            for j in range(power, k + 1):
                rows[j] = rows[j] + part * math.comb(j, power)
        how = pp.extrapolate if extrapolate is None else extrapolate
        return cls.construct_fast(fnp.stack(rows), pp.x, how, pp.axis)

    def to_power_basis(self) -> PPoly:
        """Returns the same polynomials in powers, as `PPoly`."""
        k = self.c.shape[0] - 1
        width = spread(fnp.diff(self.x), self.c, 1)
        rows: list[Any] = [0.0] * (k + 1)
        for a in range(k + 1):
            for s in range(a, k + 1):
                share = (-1) ** (s - a) * math.comb(k, a) * math.comb(k - a, s - a)
                rows[k - s] = rows[k - s] + self.c[a] * share / width**s
        made = fnp.stack(rows)
        return PPoly.construct_fast(made, self.x, self.extrapolate, self.axis)

    @classmethod
    def from_derivatives(
        cls, xi: ArrayLike, yi: Any, orders: Any = None, extrapolate: Extrapolate = None
    ) -> BPoly:
        """Returns polynomials with given values and derivatives at breakpoints.

        Args:
          xi: real array-like[m + 1]: breakpoints, strictly ascending.
          yi: for each breakpoint the value, the derivative, the second one, …: an
            array-like[m + 1, n, ...], or a list of array-likes[n, ...] of several
            lengths.
          orders: the degree of each polynomial, or of all; None is what the derivatives
            at both ends give.
          extrapolate: as for `BPoly`.

        Returns:
          BPoly.

        Raises:
          ArgumentError: there are too few derivatives for an order, or `xi` does not
            ascend.
          ShapeError: the lengths differ.

        Example:
          >>> BPoly.from_derivatives(np.array([0.0, 1.0]), [[1, 2], [3, 4]])(0.5)
          Array(1.75, dtype=float32)
        """
        name = "BPoly.from_derivatives"
        (x,) = promote_inexact(name, fnp.asarray(xi))
        values = [fnp.asarray(y) for y in yi]
        if len(values) != x.aval.size or x.aval.ndim != 1 or len(values) < 2:
            raise ShapeError(
                f"{name}: expected two breakpoints or more and derivatives for each, "
                f"got {x.aval} and {len(values)}"
            )
        if not all(v.ndim for v in values):
            raise ShapeError(f"{name}: yi has no axis of derivatives: give yi[:, None]")
        require_ascending(name, x)
        values = promote_inexact(name, *values, x)[:-1]
        m = len(values) - 1
        given = [orders] * m if orders is None or np.ndim(orders) == 0 else list(orders)
        groups: dict[tuple[int, int], list[int]] = {}
        for i in range(m):
            have = (values[i].shape[0], values[i + 1].shape[0])
            groups.setdefault(_taken(name, given[i], *have), []).append(i)
        lengths = [v.shape[0] for v in values]
        size = max(a + b for a, b in itertools.pairwise(lengths))
        size = max(size, *map(sum, groups))
        parts, order = [], []
        for (n1, n2), mine in groups.items():
            at = np.array(mine)
            left = [fnp.stack([values[i][q] for i in mine]) for q in range(n1)]
            right = [fnp.stack([values[i + 1][q] for i in mine]) for q in range(n2)]
            made = _hermite(x[at + 1] - x[at], left, right)
            parts.append(_raised(made, size - n1 - n2))
            order += mine
        c = fnp.concatenate(parts, 1)[:, np.argsort(order)]
        how = extrapolation(name, True if extrapolate is None else extrapolate)
        return cls.construct_fast(c, x, how, 0)


def _taken(name: str, order: Any, first: int, last: int) -> tuple[int, int]:
    """Returns how many derivatives at both ends a polynomial of an order takes.

    Raises:
      ArgumentError: there are too few.
    """
    if order is None:
        return first, last
    n = natural(name, "orders", order) + 1
    low = min(n // 2, first)
    high = min(n - low, last)
    low = min(n - high, first)
    if low + high != n:
        raise ArgumentError(
            f"{name}: a polynomial of order {order} takes {n} derivatives, got {first} "
            f"and {last} at both ends"
        )
    return low, high
