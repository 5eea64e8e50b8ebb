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
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.linalg import cholesky, eigh
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._disks import PoissonDisk
from fxflow.scipy.stats._evenness import (
    discrepancy,
    geometric_discrepancy,
    points_of,
    update_discrepancy,
)
from fxflow.scipy.stats._points import Engine, require_key

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

_MOST = 1111


# -- sequences -------------------------------------------------------------------------


def _word(bits: int) -> Any:
    """Returns the dtype that holds a number of bits."""
    return np.uint32 if bits <= 32 else np.uint64


@functools.lru_cache(8)
def _directions(d: int, bits: int) -> Any:
    """Returns Joe and Kuo's direction numbers: uint32[d, bits], or uint64."""
    with np.load(Path(__file__).with_name("_sobol_directions.npz")) as held:
        first, polynomials = held["first"][:d], held["polynomials"][:d]
    out = np.ones((d, bits), np.uint64)
    for i in range(1, d):
        p = int(polynomials[i])
        m = p.bit_length() - 1
        row = [int(v) for v in first[i, :m]]
        for j in range(m, bits):
            new = row[j - m]
            for k in range(m):
                if (p >> (m - 1 - k)) & 1:
                    new ^= row[j - k - 1] << (k + 1)
            row.append(new)
        out[i] = row[:bits]
    return (out << np.arange(bits - 1, -1, -1, dtype=np.uint64)).astype(_word(bits))


@library("n", "skip")
def _sobol(table: Any, shift: Any, n: int, skip: int) -> Array:
    """Returns points of a sequence in the order of Gray's code: float[n, d]."""
    dtype, bits = dtypes.default_float(), table.shape[1]
    word = _word(bits)
    index = fnp.arange(n, dtype=word) + word(skip)
    gray = index ^ (index >> word(1))

    def step(k: Any, out: Any) -> Any:
        bit = (gray >> k.astype(word)) & word(1)
        return out ^ (bit[:, None] * table[:, k][None, :])

    start = fnp.broadcast_to(shift[None, :], (n, table.shape[0]))
    points = lax.fori_loop(0, bits, step, start)
    # As many bits as the dtype has: no point is rounded to 1.
    lost = max(0, bits - 1 - int(fnp.finfo(dtype).nmant))
    whole = (points >> word(lost)).astype(dtype)
    out: Array = whole * 2.0 ** (lost - bits)
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


class Sobol(Engine):
    """Sobol's sequence, with the direction numbers of Joe and Kuo.

    Args:
      d: how many numbers a point has: 1 to 1111.
      scramble: whether the digits are scrambled by random triangular matrices and
        shifted (Matoušek).
      bits: 1 to 64: how many a number has; the sequence has 2**bits points. None
        means 30; more than 32 take `config.x64`.
      optimization: how points are moved after they are made: "random-cd", swaps of
        coordinates that lower the centered discrepancy (10 000 at most, tried at
        random: it takes a key), or "lloyd", ten rounds of moving each point to the
        middle of its cell; None leaves them where they are.
      key: a key of `fxflow.random`, for scrambled points.

    Raises:
      ArgumentError: a number is out of range, unknown optimization, or there is no
        key.

    Example:
      >>> Sobol(2, scramble=False).random(4)
      Array([[0.  , 0.  ],
             [0.5 , 0.5 ],
             [0.75, 0.25],
             [0.25, 0.75]], dtype=float32)

    Source: `scipy.stats.qmc.Sobol`; S. Joe and F. Kuo, 2008.
    """

    def __init__(
        self,
        d: int,
        *,
        scramble: bool = True,
        bits: int | None = None,
        optimization: str | None = None,
        key: Any = None,
    ) -> None:
        self.d: int = natural("Sobol", "d", d)
        if self.d > _MOST:
            raise ArgumentError(f"Sobol: d must be at most {_MOST}, got {d}")
        self.bits: int = 30 if bits is None else natural("Sobol", "bits", bits)
        most = 64 if dtypes.default_float() == dtypes.float64 else 32
        if self.bits > most:
            more = "" if most == 64 else ", or 64 with fxflow.config.x64 = True"
            raise ArgumentError(f"Sobol: bits must be at most {most}{more}, got {bits}")
        require_key("Sobol", scramble, key)
        self._optimize_with(optimization, key)
        word = _word(self.bits)
        table = fnp.asarray(_directions(self.d, self.bits), word)
        shift = fnp.zeros((self.d,), word)
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
        n = natural("Sobol.random", "n", n)
        skip = natural("Sobol.random", "skip", skip, 0)
        if n + skip > 1 << self.bits:
            raise ArgumentError(
                f"Sobol.random: the sequence has 2**{self.bits} points, and n={n} with "
                f"skip={skip} are more"
            )
        return self._optimized(_sobol(self._table, self._shift, n, skip))

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
        return self.random(1 << natural("Sobol.random_base2", "m", m, 0))


@library()
def _scrambled(table: Any, key: Any) -> Any:
    """Returns direction numbers whose bits are mixed, and a shift."""
    d, count = table.shape
    word = _word(count)
    first, second = random.split(key)
    shift = random.bits(first, (d,), word) >> word(8 * word().nbytes - count)
    # Row i of a matrix mixes the bits from the highest down to bit i.
    rows = random.bits(second, (d, count), word)
    place = np.arange(count, dtype=np.uint64)
    own = np.uint64(1) << (np.uint64(count - 1) - place)
    # All bits above: of the complement of those up to its own.
    above = np.uint64(2**count - 1) ^ (own | (own - np.uint64(1)))
    own, above = own.astype(word), above.astype(word)
    masks = (rows & above) | own
    parts = table[:, None, :] & masks[:, :, None]
    bits = lax.population_count(parts) & word(1)
    return fnp.sum(bits * own[None, :, None], axis=1, dtype=word), shift


@functools.lru_cache(8)
def _primes(d: int) -> tuple[int, ...]:
    found: list[int] = []
    at = 2
    while len(found) < d:
        if all(at % p for p in found if p * p <= at):
            found.append(at)
        at += 1
    return tuple(found)


def _primes_to(most: int) -> set[int]:
    """Returns the primes up to a number."""
    return {
        p for p in range(2, most + 1) if all(p % q for q in range(2, math.isqrt(p) + 1))
    }


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


class Halton(Engine):
    """Halton's sequence: the digits of numbers backwards, in the first primes.

    Args:
      d: how many numbers a point has.
      scramble: whether the digits are permuted at random (Owen).
      optimization: None, "random-cd" or "lloyd", as `Sobol` has it.
      key: a key of `fxflow.random`, for scrambled points.

    Raises:
      ArgumentError: `d` is not positive, unknown optimization, or there is no key.

    Example:
      >>> Halton(2, scramble=False).random(3).round(3)
      Array([[0.   , 0.   ],
             [0.5  , 0.333],
             [0.25 , 0.667]], dtype=float32)

    Source: `scipy.stats.qmc.Halton`; A. Owen, 2017.
    """

    def __init__(
        self,
        d: int,
        *,
        scramble: bool = True,
        optimization: str | None = None,
        key: Any = None,
    ) -> None:
        self.d: int = natural("Halton", "d", d)
        require_key("Halton", scramble, key)
        self._optimize_with(optimization, key)
        self._key = key if scramble else None

    @_docs_of_points
    def random(self, n: int = 1, *, skip: int = 0) -> Array:
        """Returns points of the sequence.

        Example:
          >>> Halton(1, scramble=False).random(2, skip=2)
          Array([[0.25],
                 [0.75]], dtype=float32)
        """
        n = natural("Halton.random", "n", n)
        skip = natural("Halton.random", "skip", skip, 0)
        return self._optimized(_halton(self._key, self.d, n, skip))


@library("d", "n", "scramble", "strength")
def _latin(key: Any, d: int, n: int, scramble: bool, strength: int) -> Array:
    first, second = random.split(key)
    order = random.uniform(first, (n, d))
    if strength == 2:
        # Points of one level of an orthogonal array have adjacent intervals, in an
        # order at random; so have the levels.
        p = math.isqrt(n)
        levels = random.uniform(random.fold_in(first, 1), (p, d))
        ranks = fnp.argsort(fnp.argsort(levels, axis=0), axis=0)
        level = fnp.take_along_axis(ranks, fnp.asarray(_orthogonal(p, d)), axis=0)
        order = level + order
        place = fnp.argsort(fnp.argsort(order, axis=0), axis=0)
    else:
        place = fnp.argsort(order, axis=0)
    inside: Any = random.uniform(second, (n, d)) if scramble else 0.5
    out: Array = (place + inside) / n
    return out


def _orthogonal(p: int, d: int) -> np.ndarray:
    """Returns Bose's orthogonal array of a prime: each pair of levels of two columns.

    It is int32[p * p, d], of numbers below p.
    """
    i, j = (v.ravel() for v in np.indices((p, p)))
    columns = [i, j, *((i + k * j) % p for k in range(1, p))]
    return np.stack(columns[:d], axis=1).astype(np.int32)


class LatinHypercube(Engine):
    """Points of which each coordinate has one in each of n intervals.

    Args:
      d: how many numbers a point has.
      scramble: whether a point lies anywhere in its cell; else in the middle.
      strength: 1, or 2: then each two coordinates also have one point in each of n
        squares. The number of points must be the square of a prime p, and d at most
        p + 1.
      optimization: None, "random-cd" or "lloyd", as `Sobol` has it; points that
        "lloyd" moves do not form a Latin hypercube.
      key: a key of `fxflow.random`.

    Raises:
      ArgumentError: `d` is not positive, `strength` is neither 1 nor 2, unknown
        optimization, or there is no key.

    Example:
      >>> from fxflow import random
      >>> x = LatinHypercube(2, key=random.key(0)).random(5)
      >>> np.sort(np.floor(5 * x), axis=0)[:, 0]
      array([0., 1., 2., 3., 4.], dtype=float32)

    Source: `scipy.stats.qmc.LatinHypercube`; B. Tang, 1993.
    """

    def __init__(
        self,
        d: int,
        *,
        scramble: bool = True,
        strength: int = 1,
        optimization: str | None = None,
        key: Any = None,
    ) -> None:
        self.d: int = natural("LatinHypercube", "d", d)
        if strength not in (1, 2):
            raise ArgumentError(
                f"LatinHypercube: strength must be 1 or 2, got {strength!r}"
            )
        require_key("LatinHypercube", True, key)
        self._optimize_with(optimization, key)
        self._key, self._scramble, self._strength = key, bool(scramble), int(strength)

    @_docs_of_points
    def random(self, n: int = 1) -> Array:
        """Returns points.

        Raises:
          ArgumentError: `n` is not positive; or with `strength=2` not the square of a
            prime p that is at least `d` - 1.

        Example:
          >>> from fxflow import random
          >>> LatinHypercube(3, key=random.key(0)).random(4).shape
          (4, 3)
        """
        name = "LatinHypercube.random"
        n = natural(name, "n", n)
        if self._strength == 2:
            p = math.isqrt(n)
            if p * p != n or p not in _primes_to(p) or self.d > p + 1:
                raise ArgumentError(
                    f"{name}: with strength=2 n must be the square of a prime that is "
                    f"at least d - 1 = {self.d - 1}, as 4, 9, 25, 49 or 121, got {n}"
                )
        found = _latin(self._key, self.d, n, self._scramble, self._strength)
        return self._optimized(found)


class MultivariateNormalQMC:
    """Normal points, from a Sobol sequence.

    Args:
      mean: real array-like[d].
      cov: positive semidefinite real array-like[d, d]: the covariance; None is the
        identity.
      cov_root: real array-like[d, d] in place of `cov`: a matrix R for which Rᵀ R is
        the covariance.
      inv_transform: whether points are those of the engine under the inverse
        distribution function; else pairs of their numbers are transformed (Box and
        Muller).
      key: a key of `fxflow.random`.
      engine: with `d` numbers, without `inv_transform` one more if `d` is odd; None
        is a scrambled `Sobol`.

    Raises:
      ArgumentError: there is neither a key nor an engine, or both `cov` and
        `cov_root` are given.
      ShapeError: the shapes are incompatible.

    Special cases:
      nan where `cov` has a negative eigenvalue.

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
        cov_root: ArrayLike | None = None,
        inv_transform: bool = True,
        key: Any = None,
        engine: Any = None,
    ) -> None:
        name = "MultivariateNormalQMC"
        (self._mean,) = promote_inexact(name, mean)
        if self._mean.aval.ndim != 1:
            raise ShapeError(f"{name}: mean must be a row, got {self._mean.aval}")
        d = self._mean.aval.shape[0]
        if cov is not None and cov_root is not None:
            raise ArgumentError(f"{name}: takes cov or cov_root, got both")
        self._root = None
        for what, given in (("cov", cov), ("cov_root", cov_root)):
            if given is None:
                continue
            (wide,) = promote_inexact(name, given)
            if wide.aval.shape != (d, d):
                raise ShapeError(
                    f"{name}: {what} must be f32[{d},{d}], got {wide.aval}"
                )
            self._root = _root_of(wide) if what == "cov" else wide
        self._inverse = bool(inv_transform)
        needed = d if inv_transform else d + d % 2
        self._engine = engine if engine is not None else Sobol(needed, key=key)
        if self._engine.d != needed:
            raise ShapeError(
                f"{name}: the engine must have d={needed}, got {self._engine.d}"
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
        points = fnp.clip(points, tiny, 1 - tiny)
        if self._inverse:
            z = ndtri(points)
        else:
            far = lax.sqrt(-2 * lax.log(points[:, ::2]))
            turn = 2 * math.pi * points[:, 1::2]
            z = fnp.stack([far * lax.cos(turn), far * lax.sin(turn)], axis=-1)
            z = fnp.reshape(z, points.shape)[:, : self._mean.aval.shape[0]]
        if self._root is not None:
            z = z @ self._root
        found: Array = z + self._mean
        return found


@library()
def _root_of(cov: Any) -> Array:
    """Returns R with Rᵀ R = cov: that of Cholesky, or of eigenvalues if one is 0."""
    lower = cholesky(cov)
    values, vectors = eigh(cov)
    # Roundings of 0 may be negative.
    least = -10 * cov.aval.shape[0] * float(fnp.finfo(cov.aval.dtype).eps)
    bad = values < least * fnp.max(abs(values))
    roots = lax.sqrt(fnp.where(bad, math.nan, fnp.maximum(values, 0)))
    whole = fnp.all(lower == lower)
    out: Array = fnp.where(whole, lower, vectors * roots).T
    return out


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
        self._trials = natural(name, "n_trials", n_trials, 0)
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
        n = natural("MultinomialQMC.random", "n", n)
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
