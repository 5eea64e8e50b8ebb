"""The distribution of a histogram: constant densities between the ends of bins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax, random
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.stats._protocol import log_of, require_letters
from fxflow.scipy.stats.frozen import Law

# Points of Gauss's rule in each bin.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


@register_pytree_node_class
class rv_histogram(Law):
    """A distribution with the density of a histogram.

    It is a pytree of the ends of bins and the probabilities between them, so it passes
    through `jit`, `vmap` and `grad`. It is not moved or scaled by arguments: move the
    ends.

    Args:
      histogram: a pair of real array-like[n], a number for each bin, and real
        array-like[n + 1], the ends of bins, which ascend: as `fnp.histogram` returns.
      density: whether the numbers are densities, else counts. It must be given where
        bins are not known to be equally wide.

    Raises:
      ArgumentError: the histogram is not a pair, the ends do not ascend, or `density`
        must be given.
      ShapeError: there is not one end more than numbers.

    Example:
      >>> law = rv_histogram((np.array([1.0, 3.0]), np.array([0.0, 1.0, 2.0])))
      >>> law.ppf(0.5).round(4), law.mean()
      (Array(1.3333, dtype=float32), Array(1.25, dtype=float32))

    Source: `scipy.stats.rv_histogram`.
    """

    def __init__(self, histogram: Any, *, density: bool | None = None) -> None:
        name = "rv_histogram"
        if not isinstance(histogram, tuple | list) or len(histogram) != 2:
            raise ArgumentError(
                f"{name}: histogram must be a pair of numbers and ends of bins, got "
                f"{histogram!r}"
            )
        heights, edges = promote_inexact(name, *histogram)
        shapes = heights.aval.shape, edges.aval.shape
        if len(shapes[0]) != 1 or not shapes[0][0] or shapes[1] != (shapes[0][0] + 1,):
            raise ShapeError(
                f"{name}: there must be one end of bins more than numbers, got "
                f"{heights.aval} and {edges.aval}"
            )
        wide = fnp.diff(edges)
        known = None if isinstance(wide, Tracer) else np.asarray(wide)
        if known is not None and not (known > 0).all():
            raise ArgumentError(f"{name}: the ends of bins must ascend, got {edges}")
        if density is None and (known is None or not np.allclose(known, known[0])):
            raise ArgumentError(
                f"{name}: density must be given where bins are not known to be equally "
                "wide: True for densities, False for counts"
            )
        mass = heights * wide if density else heights
        self._mass: Array = mass / fnp.sum(mass)
        self._edges: Array = edges

    def tree_flatten(self) -> tuple[tuple[Any, Any], None]:
        """Returns the probabilities and ends of bins."""
        return (self._mass, self._edges), None

    @classmethod
    def tree_unflatten(cls, _: None, leaves: Any) -> rv_histogram:
        """Returns the distribution with probabilities and ends."""
        out = object.__new__(cls)
        out._mass, out._edges = leaves
        return out

    def __repr__(self) -> str:
        return f"rv_histogram(({self._mass}, {self._edges}))"

    def _heights(self) -> Any:
        return self._mass / fnp.diff(self._edges)

    def _below(self) -> Any:
        """Returns the probabilities below the ends of bins."""
        below = fnp.cumsum(self._mass)
        return fnp.append(fnp.zeros((1,), below.dtype), below / below[-1])

    def _above(self) -> Any:
        above = fnp.cumsum(self._mass[::-1])[::-1]
        return fnp.append(above / above[0], fnp.zeros((1,), above.dtype))

    def _at(self, name: str, x: Any) -> Any:
        (x,) = promote_inexact(f"rv_histogram.{name}", x)
        return x.astype(fnp.result_type(x, self._edges))

    def pdf(self, x: ArrayLike) -> Array:
        """Returns the density; it is 0 outside of the bins."""
        x = self._at("pdf", x)
        place = fnp.searchsorted(self._edges, x, side="right")
        heights = fnp.pad(self._heights(), (1, 1))
        return fnp.where(x == x, heights[place], math.nan)

    def logpdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the density."""
        return log_of(self.pdf(x))  # type: ignore[no-any-return]

    def cdf(self, x: ArrayLike) -> Array:
        """Returns the cumulative distribution function, P(X ≤ x)."""
        return fnp.interp(self._at("cdf", x), self._edges, self._below())

    def logcdf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the cumulative distribution function."""
        return log_of(self.cdf(x))  # type: ignore[no-any-return]

    def sf(self, x: ArrayLike) -> Array:
        """Returns the survival function, P(X > x)."""
        return fnp.interp(self._at("sf", x), self._edges, self._above())

    def logsf(self, x: ArrayLike) -> Array:
        """Returns the logarithm of the survival function."""
        return log_of(self.sf(x))  # type: ignore[no-any-return]

    def ppf(self, q: ArrayLike) -> Array:
        """Returns the quantile function; nan outside of 0 … 1."""
        q = self._at("ppf", q)
        return _inside(q, fnp.interp(q, self._below(), self._edges))  # type: ignore[no-any-return]

    def isf(self, q: ArrayLike) -> Array:
        """Returns the inverse of the survival function; nan outside of 0 … 1."""
        q = self._at("isf", q)
        return _inside(q, fnp.interp(q, self._above()[::-1], self._edges[::-1]))  # type: ignore[no-any-return]

    def median(self) -> Array:
        """Returns the median."""
        return self.ppf(0.5)

    def interval(self, confidence: ArrayLike) -> tuple[Array, Array]:
        """Returns the interval around the median that has a given probability."""
        tail = (1 - self._at("interval", confidence)) / 2
        return self.ppf(tail), self.isf(tail)

    def support(self) -> tuple[Array, Array]:
        """Returns the ends of the support."""
        return self._edges[0], self._edges[-1]

    def _mean_of(self, func: Any, low: Any = None, high: Any = None) -> Any:
        """Returns the mean of a function, by Gaussian quadrature in each bin."""
        first, last = self._edges[:-1], self._edges[1:]
        if low is not None:
            first, last = (fnp.clip(e, low, high) for e in (first, last))
        nodes, weights = (fnp.asarray(v, first.dtype) for v in (_NODES, _WEIGHTS))
        half = 0.5 * (last - first)[:, None]
        at = 0.5 * (first + last)[:, None] + half * nodes
        return fnp.sum(self._heights()[:, None] * half * weights * func(at))

    def mean(self) -> Array:
        """Returns the mean."""
        return self.moment(1)

    def var(self) -> Array:
        """Returns the variance."""
        return self._central(2)  # type: ignore[no-any-return]

    def std(self) -> Array:
        """Returns the standard deviation."""
        return lax.sqrt(self.var())

    def _central(self, order: int) -> Any:
        middle = self.mean()
        return self._mean_of(lambda x: (x - middle) ** order)

    def moment(self, order: int) -> Array:
        """Returns the mean of a power, about 0.

        Args:
          order: a positive integer: the power.

        Returns:
          A float.

        Raises:
          ArgumentError: `order` is not positive.
        """
        order = integer("rv_histogram.moment", "order", order)
        if order < 1:
            raise ArgumentError(
                f"rv_histogram.moment: order must be positive, got {order}"
            )
        low, high = self._edges[:-1], self._edges[1:]
        # (high^(n + 1) - low^(n + 1)) / (high - low) without cancellation.
        powers = sum(low**k * high ** (order - k) for k in range(order + 1))
        return fnp.sum(self._mass * powers) / (order + 1)

    def stats(self, moments: str = "mv") -> tuple[Array, ...]:
        """Returns mean, variance, skewness, excess kurtosis: letters of "mvsk"."""
        require_letters("rv_histogram.stats", moments)
        found: dict[str, Callable[[], Any]] = {
            "m": self.mean,
            "v": self.var,
            "s": lambda: self._central(3) / self.var() ** 1.5,
            "k": lambda: self._central(4) / self.var() ** 2 - 3,
        }
        return tuple(found[letter]() for letter in moments)

    def entropy(self) -> Array:
        """Returns the entropy, in nats."""
        heights = self._heights()
        some = heights > 0
        logs = lax.log(fnp.where(some, heights, 1))
        return -fnp.sum(self._mass * logs)

    def _expected(self, func: Any, lb: Any, ub: Any, conditional: bool) -> Any:
        low = self._edges[0] if lb is None else self._at("expect", lb)
        high = self._edges[-1] if ub is None else self._at("expect", ub)
        value = self._mean_of(func, low, high)
        mass = self.cdf(high) - self.cdf(low) if conditional else 1.0
        return fnp.asarray(value / mass)

    def _drawn(self, key: Any, shape: Any, dtype: Any) -> Any:
        chosen = self._edges.dtype if dtype is None else dtype
        u = random.uniform(key, () if shape is None else shape, chosen)
        return self.ppf(u).astype(chosen)


def _inside(q: Any, value: Any) -> Any:
    return fnp.where((q >= 0) & (q <= 1), value, math.nan)
