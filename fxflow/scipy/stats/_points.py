"""What the engines of `qmc` share: checks, integers, and points moved apart."""

from __future__ import annotations

import abc
import math
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, array_of
from fxflow.scipy.stats._functions import require_integers

#: Ways to move points, as SciPy names them.
OPTIMIZATIONS = (None, "random-cd", "lloyd")
# SciPy's numbers of trials, and of those in a row that change nothing.
_TRIALS, _IDLE = 10_000, 100
_ROUNDS = 10


def require_key(name: str, scramble: bool, key: Any) -> None:
    if scramble and key is None:
        raise ArgumentError(
            f"{name}: key must be given, because the points are scrambled: a key of "
            "fxflow.random, or scramble=False"
        )


class Engine(abc.ABC):
    """What has `d` and `random(n)`: here are its integers and its optimization."""

    d: int
    _optimization: str | None = None
    _mover: Any = None

    @abc.abstractmethod
    def random(self, n: int = 1) -> Array:
        """Returns n points: float[n, d]."""

    def _optimize_with(self, optimization: Any, key: Any) -> None:
        """Keeps how points are moved after they are made, and the key of it."""
        name = type(self).__name__
        if optimization is not None and not isinstance(optimization, str):
            optimization = repr(optimization)
        if optimization not in OPTIMIZATIONS:
            raise ArgumentError(
                f'{name}: optimization must be None, "random-cd" or "lloyd", got '
                f"{optimization!r}"
            )
        if optimization == "random-cd":
            if key is None:
                raise ArgumentError(
                    f'{name}: key must be given for optimization="random-cd", which '
                    "tries swaps at random"
                )
            self._mover = random.fold_in(key, 1)
        self._optimization = optimization

    def _optimized(self, points: Array) -> Array:
        if self._optimization is None:
            return points
        if self._optimization == "lloyd":
            return _centered(points)
        return points if points.shape[0] < 2 else _swapped(points, self._mover)

    def integers(
        self,
        l_bounds: ArrayLike,
        *,
        u_bounds: ArrayLike | None = None,
        n: int = 1,
        endpoint: bool = False,
    ) -> Array:
        """Returns points of integers, from those of `random(n)`.

        Args:
          l_bounds: int array-like[d], or an int: the lower ends; without `u_bounds` the
            upper ones, and the lower ones are 0.
          u_bounds: int array-like[d], or an int: the upper ends, which are left out.
          n: the number of points.
          endpoint: whether the upper ends are taken, too.

        Returns:
          int32[n, d].

        Raises:
          ArgumentError: `n` is not positive, or a lower end is known not to be below
            the upper one.
          DtypeError: an end is not an integer.
          ShapeError: the ends do not broadcast to `d` numbers.

        Example:
          >>> from fxflow.scipy.stats import qmc
          >>> qmc.Halton(2, scramble=False).integers(10, n=3)
          Array([[0, 0],
                 [5, 3],
                 [2, 6]], dtype=int32)

        Source: `scipy.stats.qmc.QMCEngine.integers`.
        """
        name = f"{type(self).__name__}.integers"
        ends = (0, l_bounds) if u_bounds is None else (l_bounds, u_bounds)
        low, high = (array_of(end, name) for end in ends)
        require_integers(name, l_bounds=low, u_bounds=high)
        wide = high - low + bool(endpoint)
        if not isinstance(wide, Tracer) and not (np.asarray(wide) > 0).all():
            raise ArgumentError(
                f"{name}: l_bounds must be below u_bounds, got {ends[0]!r} and "
                f"{ends[1]!r}"
            )
        points = self.random(n)
        wide = fnp.broadcast_to(wide, (self.d,)).astype(points.dtype)
        # A product may be rounded up to the end.
        steps = fnp.minimum(fnp.floor(points * wide), wide - 1)
        return steps.astype(dtypes.int32) + low.astype(dtypes.int32)


@library()
def _swapped(x: Array, key: Any) -> Array:
    """Returns points of which coordinates were swapped: less centered discrepancy.

    A swap of one coordinate of two points is tried again and again and kept if the
    discrepancy falls, as SciPy does it; all other pairs of points stay as they are.
    """
    n, d = x.shape
    rows = fnp.arange(n)

    def lone(z: Any) -> Any:
        size = abs(z)
        alone = fnp.prod(1 + 0.5 * size - 0.5 * size * size)
        return fnp.prod(1 + size) / n**2 - 2 / n * alone

    def beside(z: Any, others: Any) -> Any:
        factors = 1 + 0.5 * abs(z) + 0.5 * abs(others) - 0.5 * abs(z - others)
        return fnp.prod(factors, axis=-1)

    def going(state: Any) -> Any:
        _, _, turn, idle = state
        return (turn < _TRIALS) & (idle < _IDLE)

    def step(state: Any) -> Any:
        key, z, turn, idle = state
        key, one, two, three = random.split(key, 4)
        i = random.randint(one, (), 0, n)
        j = (i + 1 + random.randint(two, (), 0, n - 1)) % n
        at = random.randint(three, (), 0, d)
        first, second = z[i], z[j]
        new_first, new_second = (
            first.at[at].set(second[at]),
            second.at[at].set(first[at]),
        )
        # The product of the two themselves does not change.
        apart = beside(new_first, z) + beside(new_second, z)
        apart = apart - beside(first, z) - beside(second, z)
        rest = fnp.sum(fnp.where((rows != i) & (rows != j), apart, 0))
        change = 2 / n**2 * rest
        change = change + lone(new_first) + lone(new_second)
        change = change - lone(first) - lone(second)
        better = change < 0
        moved = z.at[i].set(new_first).at[j].set(new_second)
        return (
            key,
            fnp.where(better, moved, z),
            turn + 1,
            fnp.where(better, 0, idle + 1),
        )

    zero = fnp.int32(0)
    _, z, _, _ = lax.while_loop(going, step, (key, x - 0.5, zero, zero))
    out: Array = z + 0.5
    return out


@library()
def _centered(x: Array) -> Array:
    """Returns points after rounds of Lloyd's algorithm in the unit cube.

    In a round each point goes to the middle of its cell. Cells are measured by a fixed
    lattice of points, so that they end with the cube.
    """
    n, d = x.shape
    count = 1 << max(12, min(16, math.ceil(math.log2(64 * n))))
    part = max(1, min(count, (1 << 22) // (1 << math.ceil(math.log2(n)))))
    at = (np.arange(count)[:, None] + 0.5) * _steps(d) % 1
    probes = fnp.asarray(np.reshape(at, (count // part, part, d)), x.dtype)

    def measured(x: Any) -> Any:
        size = 0.5 * fnp.sum(x * x, axis=-1)

        def add(held: Any, probes: Any) -> Any:
            total, number = held
            place = fnp.argmin(size - probes @ x.T, axis=-1)
            return (total.at[place].add(probes), number.at[place].add(1)), None

        none = fnp.zeros_like(x), fnp.zeros_like(size)
        (total, number), _ = lax.scan(add, none, probes)
        number = number[:, None]
        return fnp.where(number > 0, total / fnp.maximum(number, 1), x)

    out: Array = lax.fori_loop(0, _ROUNDS, lambda _, x: measured(x), x)
    return out


def _steps(d: int) -> np.ndarray:
    """Returns the steps of a lattice that fills a cube: powers of a root near 1."""
    # The root of x^(d + 1) = x + 1, which is the golden ratio if d is 1.
    root = 2.0
    for _ in range(64):
        root = (1 + root) ** (1 / (d + 1))
    return root ** -np.arange(1.0, d + 1)
