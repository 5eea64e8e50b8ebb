"""Quasi-Monte Carlo: points that fill a cube evenly, and how evenly they do.

An engine is immutable: `random(n)` returns the same points each time, `skip` is how
many of the sequence come before, and a key takes the place of SciPy's generator.
"""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._evenness import (
    discrepancy,
    geometric_discrepancy,
    points_of,
    update_discrepancy,
)

__all__ = [
    "Halton",
    "LatinHypercube",
    "MultinomialQMC",
    "MultivariateNormalQMC",
    "PoissonDisk",
    "Sobol",
    "discrepancy",
    "geometric_discrepancy",
    "scale",
    "update_discrepancy",
]

_BITS = 30
_MOST = 1111


def _require_count(name: str, what: str, value: Any, least: int = 1) -> int:
    if not isinstance(value, int | np.integer) or value < least:
        raise ArgumentError(
            f"{name}: {what} must be an int of at least {least}, got {value!r}"
        )
    return int(value)


def _require_key(name: str, scramble: bool, key: Any) -> None:
    if scramble and key is None:
        raise ArgumentError(
            f"{name}: key must be given, because the points are scrambled: a key of "
            "fxflow.random, or scramble=False"
        )


# -- sequences -------------------------------------------------------------------------


@functools.lru_cache(8)
def _directions(d: int) -> Any:
    """Returns Joe and Kuo's direction numbers: uint32[d, bits]."""
    with np.load(Path(__file__).with_name("_sobol_directions.npz")) as held:
        first, polynomials = held["first"][:d], held["polynomials"][:d]
    out = np.ones((d, _BITS), np.uint64)
    for i in range(1, d):
        p = int(polynomials[i])
        m = p.bit_length() - 1
        row = [int(v) for v in first[i, :m]]
        for j in range(m, _BITS):
            new = row[j - m]
            for k in range(m):
                if (p >> (m - 1 - k)) & 1:
                    new ^= row[j - k - 1] << (k + 1)
            row.append(new)
        out[i] = row
    return (out << np.arange(_BITS - 1, -1, -1, dtype=np.uint64)).astype(np.uint32)


def _sobol_points(table: Any, shift: Any, n: int, skip: int) -> Any:
    """Returns points of a sequence in the order of Gray's code: uint32[n, d]."""
    index = fnp.arange(n, dtype=dtypes.uint32) + np.uint32(skip)
    gray = index ^ (index >> np.uint32(1))

    def step(k: Any, out: Any) -> Any:
        bit = (gray >> k.astype(dtypes.uint32)) & np.uint32(1)
        return out ^ (bit[:, None] * table[:, k][None, :])

    start = fnp.broadcast_to(shift[None, :], (n, table.shape[0]))
    return lax.fori_loop(0, _BITS, step, start)


@library("n", "skip")
def _sobol(table: Any, shift: Any, n: int, skip: int) -> Array:
    dtype = dtypes.default_float()
    points = _sobol_points(table, shift, n, skip)
    # As many bits as the dtype has: no point is rounded to 1.
    lost = max(0, _BITS - 1 - int(fnp.finfo(dtype).nmant))
    whole = (points >> np.uint32(lost)).astype(dtype)
    out: Array = whole * 2.0 ** (lost - _BITS)
    return out


_docs_of_points = shared("""
    Args:
      n: the number of points.
      skip: how many of the sequence come before.

    Returns:
      float[n, d], from 0 to less than 1.

    Raises:
      ArgumentError: a number is out of range.
""")


class Sobol:
    """Sobol's sequence, with the direction numbers of Joe and Kuo.

    Args:
      d: how many numbers a point has: 1 to 1111.
      scramble: whether the digits are scrambled by random triangular matrices and
        shifted (Matoušek).
      key: a key of `fxflow.random`, for scrambled points.

    Raises:
      ArgumentError: a number is out of range, or there is no key.

    Example:
      >>> Sobol(2, scramble=False).random(4)
      Array([[0.  , 0.  ],
             [0.5 , 0.5 ],
             [0.75, 0.25],
             [0.25, 0.75]], dtype=float32)

    Source: `scipy.stats.qmc.Sobol`; S. Joe and F. Kuo, 2008.
    """

    def __init__(self, d: int, *, scramble: bool = True, key: Any = None) -> None:
        self.d: int = _require_count("Sobol", "d", d)
        if self.d > _MOST:
            raise ArgumentError(f"Sobol: d must be at most {_MOST}, got {d}")
        _require_key("Sobol", scramble, key)
        table = fnp.asarray(_directions(self.d), dtypes.uint32)
        shift = fnp.zeros((self.d,), dtypes.uint32)
        if scramble:
            table, shift = _scrambled(table, key)
        self._table, self._shift = table, shift

    @_docs_of_points
    def random(self, n: int = 1, *, skip: int = 0) -> Array:
        """Returns points of the sequence.

        Args:
          n: how many; a power of 2 fills the cube best.

        Example:
          >>> Sobol(1, scramble=False).random(2, skip=1)
          Array([[0.5 ],
                 [0.75]], dtype=float32)
        """
        n = _require_count("Sobol.random", "n", n)
        skip = _require_count("Sobol.random", "skip", skip, 0)
        if n + skip > 1 << _BITS:
            raise ArgumentError(
                f"Sobol.random: the sequence has 2**{_BITS} points, and n={n} with "
                f"skip={skip} are more"
            )
        return _sobol(self._table, self._shift, n, skip)

    def random_base2(self, m: int) -> Array:
        """Returns the first 2**m points.

        Args:
          m: a non-negative int.

        Returns:
          float[2**m, d].

        Raises:
          ArgumentError: `m` is negative, or too great.

        Example:
          >>> Sobol(1, scramble=False).random_base2(1)
          Array([[0. ],
                 [0.5]], dtype=float32)
        """
        return self.random(1 << _require_count("Sobol.random_base2", "m", m, 0))


@library()
def _scrambled(table: Any, key: Any) -> Any:
    """Returns direction numbers whose bits are mixed, and a shift."""
    d = table.shape[0]
    first, second = random.split(key)
    shift = random.bits(first, (d,), "uint32") >> np.uint32(32 - _BITS)
    # Row i of a matrix mixes the bits from the highest down to bit i.
    rows = random.bits(second, (d, _BITS), "uint32")
    place = np.arange(_BITS)
    own = (1 << (_BITS - 1 - place)).astype(np.uint32)
    above = ((1 << _BITS) - (1 << (_BITS - place))).astype(np.uint32)
    masks = (rows & above) | own
    parts = table[:, None, :] & masks[:, :, None]
    bits = lax.population_count(parts) & np.uint32(1)
    return fnp.sum(bits * own[None, :, None], axis=1, dtype=dtypes.uint32), shift


@functools.lru_cache(8)
def _primes(d: int) -> tuple[int, ...]:
    found: list[int] = []
    at = 2
    while len(found) < d:
        if all(at % p for p in found if p * p <= at):
            found.append(at)
        at += 1
    return tuple(found)


@library("d", "n", "skip")
def _halton(key: Any, d: int, n: int, skip: int) -> Array:
    dtype = dtypes.default_float()
    bases = np.array(_primes(d))
    digits = 2 + int(fnp.finfo(dtype).nmant)
    tables = None
    if key is not None:
        # A permutation of the digits for each of them.
        drawn = random.uniform(key, (digits, d, int(bases[-1])))
        inside = np.arange(int(bases[-1])) < bases[:, None]
        tables = fnp.argsort(fnp.where(inside, drawn, 2.0), axis=-1)
    start = fnp.broadcast_to(fnp.arange(n, dtype=dtypes.int32)[:, None] + skip, (n, d))
    whole = fnp.asarray(bases, dtypes.int32)

    def step(k: Any, state: Any) -> Any:
        rest, unit, out = state
        unit = unit / whole.astype(dtype)
        digit = rest % whole
        if tables is not None:
            digit = tables[k, fnp.arange(d), digit]
        return rest // whole, unit, out + digit.astype(dtype) * unit

    ones = fnp.ones((d,), dtype)
    _, _, out = lax.fori_loop(0, digits, step, (start, ones, fnp.zeros((n, d), dtype)))
    return fnp.minimum(out, 1 - float(fnp.finfo(dtype).epsneg))


class Halton:
    """Halton's sequence: the digits of numbers backwards, in the first primes.

    Args:
      d: how many numbers a point has.
      scramble: whether the digits are permuted at random (Owen).
      key: a key of `fxflow.random`, for scrambled points.

    Raises:
      ArgumentError: `d` is not positive, or there is no key.

    Example:
      >>> Halton(2, scramble=False).random(3).round(3)
      Array([[0.   , 0.   ],
             [0.5  , 0.333],
             [0.25 , 0.667]], dtype=float32)

    Source: `scipy.stats.qmc.Halton`; A. Owen, 2017.
    """

    def __init__(self, d: int, *, scramble: bool = True, key: Any = None) -> None:
        self.d: int = _require_count("Halton", "d", d)
        _require_key("Halton", scramble, key)
        self._key = key if scramble else None

    @_docs_of_points
    def random(self, n: int = 1, *, skip: int = 0) -> Array:
        """Returns points of the sequence.

        Example:
          >>> Halton(1, scramble=False).random(2, skip=2)
          Array([[0.25],
                 [0.75]], dtype=float32)
        """
        n = _require_count("Halton.random", "n", n)
        skip = _require_count("Halton.random", "skip", skip, 0)
        return _halton(self._key, self.d, n, skip)


@library("d", "n", "scramble")
def _latin(key: Any, d: int, n: int, scramble: bool) -> Array:
    first, second = random.split(key)
    place = fnp.argsort(random.uniform(first, (n, d)), axis=0)
    inside: Any = random.uniform(second, (n, d)) if scramble else 0.5
    out: Array = (place + inside) / n
    return out


class LatinHypercube:
    """Points of which each coordinate has one in each of n intervals.

    Args:
      d: how many numbers a point has.
      scramble: whether a point lies anywhere in its cell; else in the middle.
      key: a key of `fxflow.random`.

    Raises:
      ArgumentError: `d` is not positive, or there is no key.

    Example:
      >>> from fxflow import random
      >>> x = LatinHypercube(2, key=random.key(0)).random(5)
      >>> np.sort(np.floor(5 * x), axis=0)[:, 0]
      array([0., 1., 2., 3., 4.], dtype=float32)

    Source: `scipy.stats.qmc.LatinHypercube`.
    """

    def __init__(self, d: int, *, scramble: bool = True, key: Any = None) -> None:
        self.d: int = _require_count("LatinHypercube", "d", d)
        _require_key("LatinHypercube", True, key)
        self._key, self._scramble = key, bool(scramble)

    @_docs_of_points
    def random(self, n: int = 1) -> Array:
        """Returns points.

        Raises:
          ArgumentError: `n` is not positive.

        Example:
          >>> from fxflow import random
          >>> LatinHypercube(3, key=random.key(0)).random(4).shape
          (4, 3)
        """
        n = _require_count("LatinHypercube.random", "n", n)
        return _latin(self._key, self.d, n, self._scramble)


class MultivariateNormalQMC:
    """Normal points, from a Sobol sequence by the inverse distribution function.

    Args:
      mean: real array-like[d].
      cov: real array-like[d, d]: the covariance; None is the identity.
      key: a key of `fxflow.random`.
      engine: with `d` numbers; None is a scrambled `Sobol`.

    Raises:
      ArgumentError: there is neither a key nor an engine.
      ShapeError: the shapes are incompatible.

    Example:
      >>> from fxflow import random
      >>> MultivariateNormalQMC(np.zeros(2), key=random.key(0)).random(8).shape
      (8, 2)

    Source: `scipy.stats.qmc.MultivariateNormalQMC`.
    """

    def __init__(
        self,
        mean: ArrayLike,
        cov: ArrayLike | None = None,
        *,
        key: Any = None,
        engine: Any = None,
    ) -> None:
        name = "MultivariateNormalQMC"
        (self._mean,) = promote_inexact(name, mean)
        if self._mean.aval.ndim != 1:
            raise ShapeError(f"{name}: mean must be a row, got {self._mean.aval}")
        d = self._mean.aval.shape[0]
        self._root = None
        if cov is not None:
            (wide,) = promote_inexact(name, cov)
            if wide.aval.shape != (d, d):
                raise ShapeError(f"{name}: cov must be f32[{d},{d}], got {wide.aval}")
            self._root = cholesky(wide)
        self._engine = engine if engine is not None else Sobol(d, key=key)
        if self._engine.d != d:
            raise ShapeError(
                f"{name}: the engine must have d={d}, got {self._engine.d}"
            )

    def random(self, n: int = 1) -> Array:
        """Returns normal points.

        Args:
          n: the number of points.

        Returns:
          float[n, d].

        Raises:
          ArgumentError: `n` is not positive.

        Example:
          >>> from fxflow import random
          >>> MultivariateNormalQMC(np.zeros(3), key=random.key(0)).random(2).shape
          (2, 3)
        """
        points = self._engine.random(n)
        tiny = float(fnp.finfo(points.dtype).eps) / 2
        z = ndtri(fnp.clip(points, tiny, 1 - tiny))
        if self._root is not None:
            z = z @ self._root.T
        found: Array = z + self._mean
        return found


class MultinomialQMC:
    """Numbers of trials with each outcome, of trials that are evenly placed.

    Args:
      pvals: real array-like[k]: the probability of each outcome; they add to 1.
      n_trials: the number of trials.
      key: a key of `fxflow.random`.
      engine: with `d` 1; None is a scrambled `Sobol`.

    Raises:
      ArgumentError: `n_trials` is negative, probabilities are known to be negative or
        not to add to 1, or there is neither a key nor an engine.
      ShapeError: `pvals` is not a row, or points of the engine are not numbers.

    Example:
      >>> from fxflow import random
      >>> p = np.array([0.25, 0.25, 0.5])
      >>> MultinomialQMC(p, n_trials=16, key=random.key(0)).random(1)
      Array([[4, 4, 8]], dtype=int32)

    Source: `scipy.stats.qmc.MultinomialQMC`.
    """

    def __init__(
        self, pvals: ArrayLike, n_trials: int, *, key: Any = None, engine: Any = None
    ) -> None:
        name = "MultinomialQMC"
        (self._p,) = promote_inexact(name, pvals)
        if self._p.aval.ndim != 1 or not self._p.aval.size:
            raise ShapeError(f"{name}: pvals must be a row, got {self._p.aval}")
        if not isinstance(self._p, Tracer):
            p = np.asarray(self._p)
            if (p < 0).any() or not np.isclose(p.sum(), 1):
                raise ArgumentError(
                    f"{name}: pvals must not be negative and add to 1, got {pvals!r}"
                )
        self._trials = _require_count(name, "n_trials", n_trials, 0)
        self._engine = engine if engine is not None else Sobol(1, key=key)
        if self._engine.d != 1:
            raise ShapeError(f"{name}: the engine must have d=1, got {self._engine.d}")

    def random(self, n: int = 1) -> Array:
        """Returns numbers of trials.

        Args:
          n: how many times all the trials are made.

        Returns:
          int32[n, k], whose rows add to `n_trials`.

        Raises:
          ArgumentError: `n` is not positive.

        Example:
          >>> from fxflow import random
          >>> p = np.array([0.25, 0.75])
          >>> MultinomialQMC(p, 8, key=random.key(0)).random(3).sum(1)
          Array([8, 8, 8], dtype=int32)
        """
        n = _require_count("MultinomialQMC.random", "n", n)
        k = self._p.aval.shape[0]
        if not self._trials:
            return fnp.zeros((n, k), dtypes.int32)
        points = fnp.reshape(self._engine.random(n * self._trials), (n, self._trials))
        ends = fnp.cumsum(self._p).astype(points.dtype)
        # Roundings of the sum leave nothing beyond the last outcome.
        place = fnp.minimum(fnp.searchsorted(ends, points, side="right"), k - 1)
        chosen = place[..., None] == fnp.arange(k, dtype=place.dtype)
        found: Array = fnp.sum(chosen, axis=1, dtype=dtypes.int32)
        return found


class PoissonDisk:
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
      key: a key of `fxflow.random`.

    Raises:
      ArgumentError: a number is out of range, or there is no key.
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
        key: Any = None,
    ) -> None:
        name = "PoissonDisk"
        self.d: int = _require_count(name, "d", d)
        _require_key(name, True, key)
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
        self._tries = _require_count(name, "ncandidates", ncandidates)
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
        n = _require_count("PoissonDisk.random", "n", n)
        low, high = (fnp.asarray(e, dtypes.default_float()) for e in self._ends())
        points, count = _disks(
            self._key, low, high, self._radius, n, self._shell, self._tries
        )
        found: Array = points[: int(count)]
        return found

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


@library("reverse")
def scale(
    sample: ArrayLike,
    l_bounds: ArrayLike,
    u_bounds: ArrayLike,
    *,
    reverse: bool = False,
) -> Array:
    """Moves points of the unit cube into a box, or back.

    Args:
      sample: real array-like[n, d].
      l_bounds: real array-like[d], or a number: the lower ends.
      u_bounds: real array-like[d], or a number: the upper ends.
      reverse: whether the points are moved back.

    Returns:
      float[n, d].

    Raises:
      ShapeError: the sample is not an array of points, or the shapes do not broadcast.

    Example:
      >>> scale(np.array([[0.5, 0.75]]), np.array([-2.0, 0.0]), np.array([6.0, 5.0]))
      Array([[2.  , 3.75]], dtype=float32)

    Source: `scipy.stats.qmc.scale`.
    """
    x = points_of("scale", sample)
    x, low, high = promote_inexact("scale", x, l_bounds, u_bounds)
    return (x - low) / (high - low) if reverse else x * (high - low) + low


_public(globals(), __all__)
