"""Rules for integrals over the unit sphere."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural


@functools.cache
def _table() -> dict[int, tuple[Any, Any]]:
    """Returns how many orbits of each kind a rule has, and their numbers, by order.

    The kinds are the points on axes, on diagonals of the cube and of its sides, and
    those with the coordinates (a, a, b), (0, a, b) and (a, b, c). An orbit has its
    weight, then a, or a and b.
    """
    with np.load(Path(__file__).with_name("_lebedev_orbits.npz")) as held:
        orders, counts, values = held["orders"], held["counts"], held["values"]
    ends = np.cumsum(counts @ [1, 1, 1, 2, 2, 3])[:-1]
    parts = zip(orders.tolist(), counts, np.split(values, ends), strict=True)
    return {order: (count, numbers) for order, count, numbers in parts}


def _orbit(kind: int, numbers: Any) -> tuple[float, ...]:
    """Returns a point of an orbit, from its numbers without the weight."""
    if kind < 3:
        return ((0.0, 0.0, 1.0), (3**-0.5,) * 3, (0.0, 0.5**0.5, 0.5**0.5))[kind]
    if kind == 3:
        (a,) = numbers
        return a, a, (1 - 2 * a * a) ** 0.5
    a, b = (0.0, numbers[0]) if kind == 4 else numbers
    return a, b, (1 - a * a - b * b) ** 0.5


@functools.lru_cache(4)
def _lebedev(n: int) -> tuple[Any, Any]:
    """Returns the points, float64[m, 3], and the weights."""
    counts, numbers = _table()[n]
    rows = iter(numbers.tolist())
    points: list[tuple[float, ...]] = []
    weights: list[float] = []
    for kind, (count, more) in enumerate(zip(counts, (0, 0, 0, 1, 1, 2), strict=True)):
        for _ in range(count):
            weight = next(rows)
            at = _orbit(kind, [next(rows) for _ in range(more)])
            orbit = {
                tuple(s * c + 0.0 for s, c in zip(signs, moved, strict=True))
                for moved in itertools.permutations(at)
                for signs in itertools.product((1, -1), repeat=3)
            }
            points += sorted(orbit)
            weights += [weight] * len(orbit)
    return np.array(points), np.array(weights)


def lebedev_rule(n: int) -> tuple[Array, Array]:
    """Returns the points and weights of Lebedev's rule on the unit sphere.

    The integral over the sphere is the sum of weights times values; it is exact for
    polynomials in x, y and z up to degree n. The points are symmetric like a cube.

    Args:
      n: the degree: odd, 3 to 31, or 35, 41, … 131.

    Returns:
      float[3, m] and float[m], whose sum is 4π. Some weights of the degrees 13, 25 and
      27 are negative.

    Raises:
      ArgumentError: there is no rule of this degree.

    Example:
      >>> (x, y, z), w = lebedev_rule(9)
      >>> w.size, (w * x**2 * y**4).sum().round(4)  # 4π / 35
      (38, Array(0.359, dtype=float32))

    Source: `scipy.integrate.lebedev_rule`; V. Lebedev and D. Laikov, A quadrature
    formula for the sphere of the 131st algebraic order of accuracy, 1999.
    """
    n = natural("lebedev_rule", "n", n)
    if n not in _table():
        known = ", ".join(map(str, _table()))
        raise ArgumentError(f"lebedev_rule: n must be one of {known}, got {n}")
    points, weights = _lebedev(n)
    dtype = dtypes.default_float()
    return fnp.asarray(points.T, dtype), fnp.asarray(weights, dtype)
