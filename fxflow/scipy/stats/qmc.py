"""Quasi-Monte Carlo: points that fill a cube evenly, and how evenly they do.

An engine is immutable: `random(n)` returns the same points each time, `skip` is how
many of the sequence come before, and a key takes the place of SciPy's generator.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.numpy.linalg import cholesky
from fxflow.scipy.special.normal import ndtri

__all__ = [
    "Halton",
    "LatinHypercube",
    "MultivariateNormalQMC",
    "Sobol",
    "discrepancy",
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
      n: how many.
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
      key: of `fxflow.random`, for scrambled points.

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
      key: of `fxflow.random`, for scrambled points.

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
      key: of `fxflow.random`.

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
      key: of `fxflow.random`.
      engine: with `d` numbers; None is a scrambled `Sobol`.

    Raises:
      ArgumentError: there is neither a key nor an engine.
      ShapeError: the shapes do not fit together.

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
          n: how many.

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


# -- how even --------------------------------------------------------------------------

_METHODS = ("CD", "WD", "MD", "L2-star")


def _points(name: str, sample: Any) -> Any:
    (x,) = promote_inexact(name, sample)
    if x.aval.ndim != 2:
        raise ShapeError(f"{name}: the sample must be points, f32[n, d], got {x.aval}")
    return x


@library("iterative")
def discrepancy(
    sample: ArrayLike, *, iterative: bool = False, method: str = "CD"
) -> Array:
    """Returns how unevenly points fill the unit cube.

    All pairs are compared. The result has derivatives with respect to the points.

    Args:
      sample: real array-like[n, d], from 0 to 1.
      iterative: whether n + 1 points are counted, for `update_discrepancy`.
      method: "CD" centered, "WD" wrapped around, "MD" mixture, or "L2-star".

    Returns:
      A float.

    Raises:
      ArgumentError: there is no such method.
      ShapeError: the sample is not an array of points.

    Example:
      >>> discrepancy(np.array([[0.25, 0.75], [0.75, 0.25]])).round(4)
      Array(0.0623, dtype=float32)

    Source: `scipy.stats.qmc.discrepancy`.
    """
    if method not in _METHODS:
        listed = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(
            f"discrepancy: method must be one of {listed}, got {method!r}"
        )
    x = _points("discrepancy", sample)
    value: Array
    d = x.aval.shape[1]
    n = x.aval.shape[0] + bool(iterative)
    one, other = x[:, None, :], x[None, :, :]
    apart = abs(one - other)
    far, beyond = abs(one - 0.5), abs(other - 0.5)
    near = abs(x - 0.5)
    every: Any = lambda t: fnp.sum(fnp.prod(t, axis=-1))
    if method == "CD":
        first = every(1 + 0.5 * near - 0.5 * near * near)
        both = every(1 + 0.5 * far + 0.5 * beyond - 0.5 * apart)
        value = (13 / 12) ** d - 2 / n * first + both / n**2
        return value
    if method == "WD":
        value = -((4 / 3) ** d) + every(1.5 - apart * (1 - apart)) / n**2
        return value
    if method == "MD":
        first = every(5 / 3 - 0.25 * near - 0.25 * near * near)
        both = every(
            1.875 - 0.25 * far - 0.25 * beyond - 0.75 * apart + 0.5 * apart * apart
        )
        value = (19 / 12) ** d - 2 / n * first + both / n**2
        return value
    first = every(1 - x * x)
    both = every(1 - fnp.maximum(one, other))
    return lax.sqrt(3.0**-d - 2.0 ** (1 - d) / n * first + both / n**2)


@library()
def update_discrepancy(
    x_new: ArrayLike, sample: ArrayLike, initial_disc: ArrayLike
) -> Array:
    """Returns the centered discrepancy with another point.

    Args:
      x_new: real array-like[d]: the point.
      sample: real array-like[n, d]: the points that were there.
      initial_disc: their discrepancy, with `iterative=True`.

    Returns:
      A float.

    Raises:
      ShapeError: the sample is not an array of points, or the point is not one.

    Example:
      >>> x = np.array([[0.25, 0.75], [0.75, 0.25]])
      >>> update_discrepancy(x[1], x[:1], discrepancy(x[:1], iterative=True)).round(4)
      Array(0.0623, dtype=float32)

    Source: `scipy.stats.qmc.update_discrepancy`.
    """
    name = "update_discrepancy"
    x = _points(name, sample)
    new, x, first = promote_inexact(name, x_new, x, initial_disc)
    if new.aval.shape != x.aval.shape[1:]:
        raise ShapeError(
            f"{name}: x_new must be f32[{x.aval.shape[1]}], got {new.aval}"
        )
    n = x.aval.shape[0] + 1
    far = abs(new - 0.5)
    alone = -2 / n * fnp.prod(1 + 0.5 * far - 0.5 * far * far)
    pairs = fnp.prod(1 + 0.5 * far + 0.5 * abs(x - 0.5) - 0.5 * abs(new - x), axis=1)
    return first + alone + 2 / n**2 * fnp.sum(pairs) + fnp.prod(1 + far) / n**2


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
    x = _points("scale", sample)
    x, low, high = promote_inexact("scale", x, l_bounds, u_bounds)
    return (x - low) / (high - low) if reverse else x * (high - low) + low


_public(globals(), __all__)
