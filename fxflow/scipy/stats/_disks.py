"""Points at random that keep their distance: the engine `qmc.PoissonDisk`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.stats._points import Engine, require_key


class PoissonDisk(Engine):
    """Points at random of which no two are closer than a radius.

    New points are tried around earlier ones (Bridson), all candidates of a point at
    once. How many there are in the end depends on the key.

    Args:
      d: how many numbers a point has.
      radius: a positive number: the least distance of two points.
      hypersphere: where candidates lie around a point: "volume", evenly between one
        and two radii, or "surface", just beyond the radius.
      ncandidates: how many candidates a point has until it is given up.
      l_bounds: real array-like[d], or a number: the lower ends; None is 0.
      u_bounds: real array-like[d], or a number: the upper ends; None is 1.
      optimization: None, "random-cd" or "lloyd", as `Sobol` has it, in the unit cube
        only: points that are moved do not keep their distance.
      key: a key of `fxflow.random`.

    Raises:
      ArgumentError: a number is out of range, unknown optimization, or there is no
        key.
      ShapeError: the bounds are not of d numbers.

    Example:
      >>> from fxflow import random
      >>> x = PoissonDisk(2, radius=0.2, key=random.key(0)).random(9)
      >>> from fxflow.scipy.spatial.distance import pdist
      >>> bool(pdist(x).min() >= 0.2)
      True

    Source: `scipy.stats.qmc.PoissonDisk`; R. Bridson, 2007.
    """

    def __init__(
        self,
        d: int,
        *,
        radius: float = 0.05,
        hypersphere: str = "volume",
        ncandidates: int = 30,
        l_bounds: ArrayLike | None = None,
        u_bounds: ArrayLike | None = None,
        optimization: str | None = None,
        key: Any = None,
    ) -> None:
        name = "PoissonDisk"
        self.d: int = natural(name, "d", d)
        require_key(name, True, key)
        if not isinstance(radius, int | float | np.floating) or not radius > 0:
            raise ArgumentError(
                f"{name}: radius must be a positive number, got {radius!r}"
            )
        if hypersphere not in ("volume", "surface"):
            raise ArgumentError(
                f'{name}: hypersphere must be "volume" or "surface", got '
                f"{hypersphere!r}"
            )
        self._radius, self._shell = float(radius), hypersphere
        self._tries = natural(name, "ncandidates", ncandidates)
        ends = [0.0 if l_bounds is None else l_bounds]
        ends.append(1.0 if u_bounds is None else u_bounds)
        low, high = (np.asarray(e, float) for e in ends)
        if any(e.shape not in ((), (self.d,)) for e in (low, high)):
            raise ShapeError(
                f"{name}: bounds must be numbers or f32[{self.d}], got shapes "
                f"{low.shape} and {high.shape}"
            )
        self._low, self._high = (np.broadcast_to(e, (self.d,)) for e in (low, high))
        if not (self._low < self._high).all():
            raise ArgumentError(
                f"{name}: l_bounds must be below u_bounds, got {l_bounds!r} and "
                f"{u_bounds!r}"
            )
        unit = not self._low.any() and (self._high == 1).all()
        if optimization is not None and not unit:
            raise ArgumentError(
                f"{name}: optimization moves points in the unit cube, got l_bounds="
                f"{l_bounds!r} and u_bounds={u_bounds!r}"
            )
        self._optimize_with(optimization, key)
        self._key = key

    def random(self, n: int = 1) -> Array:
        """Returns at most n points: fewer if there is no room.

        Args:
          n: the number of points.

        Returns:
          float[m, d] with m ≤ n, m depending on the key.

        Raises:
          ArgumentError: `n` is not positive.
          ConcretizationError: the key is traced, and so is m.

        Example:
          >>> from fxflow import random
          >>> PoissonDisk(1, radius=0.9, key=random.key(0)).random(9).shape[0] <= 2
          True
        """
        n = natural("PoissonDisk.random", "n", n)
        low, high = (fnp.asarray(e, dtypes.default_float()) for e in self._ends())
        points, count = _disks(
            self._key, low, high, self._radius, n, self._shell, self._tries
        )
        return self._optimized(points[: int(count)])

    def fill_space(self) -> Array:
        """Returns points until there is room for no other.

        Returns:
          float[m, d], m depending on the key.

        Raises:
          ConcretizationError: the key is traced, and so is m.

        Example:
          >>> from fxflow import random
          >>> x = PoissonDisk(2, radius=0.3, key=random.key(0)).fill_space()
          >>> 5 < len(x) < 30
          True
        """
        # Cells of a diagonal of one radius have at most one point each.
        cells = np.ceil((self._high - self._low) * self.d**0.5 / self._radius)
        most = int(np.prod(np.maximum(cells, 1)))
        if most > 1 << 20:
            raise ArgumentError(
                f"PoissonDisk.fill_space: up to {most} points have room, which are too "
                "many: take a larger radius, or random(n)"
            )
        return self.random(most)

    def _ends(self) -> tuple[Any, Any]:
        return self._low, self._high


@library("n", "shell", "tries")
def _disks(
    key: Any, low: Any, high: Any, radius: Any, n: int, shell: str, tries: int
) -> tuple[Array, Array]:
    """Returns n points of which the first are apart by a radius, and how many."""
    d, dtype = low.shape[0], low.dtype
    radius = fnp.asarray(radius, dtype)
    first, key = random.split(key)
    start = low + (high - low) * random.uniform(first, (d,), dtype)
    points = lax.full((n, d), math.inf, dtype).at[0].set(start)
    open_ = fnp.arange(n) == 0

    def going(state: Any) -> Any:
        _, _, count, open_, _ = state
        return (count < n) & fnp.any(open_)

    def step(state: Any) -> Any:
        key, points, count, open_, turn = state
        key, one, two, three = random.split(key, 4)
        # A point at random of those around which there may be room.
        weight = fnp.where(open_, random.uniform(one, (n,), dtype), -1)
        place = fnp.argmax(weight)
        center = points[place]
        way = random.normal(two, (tries, d), dtype)
        way = way / fnp.linalg.norm(way, axis=-1, keepdims=True)
        if shell == "volume":
            u = random.uniform(three, (tries, 1), dtype)
            far = radius * (1 + (2.0**d - 1) * u) ** (1 / d)
        else:
            far = radius * (1 + 8 * float(fnp.finfo(dtype).eps))
        new = center + far * way
        apart = fnp.sum((new[:, None, :] - points[None, :, :]) ** 2, axis=-1)
        inside = fnp.all((new >= low) & (new <= high), axis=-1)
        # Candidates are compared one after the other with those that were taken.
        own = fnp.sum((new[:, None, :] - new[None, :, :]) ** 2, axis=-1)
        free = inside & fnp.all(apart >= radius**2, axis=-1)

        def take(i: Any, taken: Any) -> Any:
            clear = fnp.all(~taken | (own[i] >= radius**2))
            return taken.at[i].set(free[i] & clear)

        taken = lax.fori_loop(0, tries, take, lax.full((tries,), False, dtypes.bool_))
        number = count + fnp.cumsum(taken.astype(dtypes.int32)) - 1
        number = fnp.where(taken, number, n)  # what is beyond is dropped
        points = points.at[number].set(new, mode="drop")
        open_ = open_.at[place].set(fnp.any(taken))
        open_ = open_.at[number].set(True, mode="drop")
        count = fnp.minimum(count + fnp.sum(taken, dtype=dtypes.int32), n)
        return key, points, count, open_, turn + 1

    state = (key, points, fnp.int32(1), open_, fnp.int32(0))
    _, points, count, _, _ = lax.while_loop(going, step, state)
    return points, count
