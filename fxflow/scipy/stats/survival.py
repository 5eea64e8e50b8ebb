"""Times of events, of which some are only known to be before or after others.

The empirical distribution function, by Kaplan and Meier's estimate where elements are
censored, and the log-rank test of two samples.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.core.tree import register_pytree_node_class
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._samples import (
    normal_pvalue,
    operands,
    require_alternative,
    require_choice,
    statistic,
)
from fxflow.scipy.stats.results import (
    ConfidenceInterval,
    SignificanceResult,
    require_level,
)

_KINDS = ("uncensored", "left", "right", "interval")


def _row(name: str, x: Any, what: str = "a sample") -> Any:
    (a,), _ = operands(name, x)
    if a.aval.ndim != 1:
        raise ShapeError(f"{name}: {what} must be a row, got {a.aval}")
    return a


@register_pytree_node_class
class CensoredData:
    """A sample of which some elements are known by bounds only.

    It is a pytree of the lower and upper bounds of its elements, which are equal where
    an element is known.

    Args:
      uncensored: real array-like[n]: elements that are known.
      left: real array-like[n]: upper bounds of elements.
      right: real array-like[n]: lower bounds of elements.
      interval: real array-like[n, 2]: both.

    Raises:
      ArgumentError: an argument is not an array.
      ShapeError: they are not rows.

    Example:
      >>> data = CensoredData(np.array([3.0, 5.0]), right=np.array([4.0]))
      >>> len(data), int(data.num_censored())
      (3, 1)

    Source: `scipy.stats.CensoredData`.
    """

    def __init__(
        self,
        uncensored: ArrayLike | None = None,
        *,
        left: ArrayLike | None = None,
        right: ArrayLike | None = None,
        interval: ArrayLike | None = None,
    ) -> None:
        name = "CensoredData"
        pairs = []
        kinds = []
        for kind, given in zip(
            _KINDS, (uncensored, left, right, interval), strict=True
        ):
            if given is None:
                continue
            if kind == "interval":
                (a,), _ = operands(name, given)
                if a.aval.ndim != 2 or a.aval.shape[1] != 2:
                    raise ShapeError(f"{name}: interval must be [n, 2], got {a.aval}")
                low, high = a[:, 0], a[:, 1]
            else:
                a = _row(name, given, kind)
                far = fnp.full_like(a, math.inf)
                low = -far if kind == "left" else a
                high = far if kind == "right" else a
            if low.aval.shape[0]:
                kinds.append(kind)
            pairs.append((low, high))
        if not pairs:
            raise ArgumentError(f"{name}: there must be elements of some kind")
        self.low: Array = fnp.concatenate([p[0] for p in pairs])
        self.high: Array = fnp.concatenate([p[1] for p in pairs])
        self._kinds = tuple(kinds)

    @classmethod
    def _of(cls, low: Any, high: Any, *kinds: str) -> CensoredData:
        made = object.__new__(cls)
        made.low, made.high, made._kinds = low, high, kinds
        return made

    @classmethod
    def right_censored(cls, x: ArrayLike, censored: ArrayLike) -> CensoredData:
        """Returns a sample some of whose elements are lower bounds.

        Args:
          x: real array-like[n].
          censored: bool array-like[n]: which of them.
        """
        a, held = cls._marked(x, censored)
        return cls._of(a, fnp.where(held, math.inf, a), "uncensored", "right")

    @classmethod
    def left_censored(cls, x: ArrayLike, censored: ArrayLike) -> CensoredData:
        """Returns a sample some of whose elements are upper bounds.

        Args:
          x: real array-like[n].
          censored: bool array-like[n]: which of them.
        """
        a, held = cls._marked(x, censored)
        return cls._of(fnp.where(held, -math.inf, a), a, "uncensored", "left")

    @classmethod
    def interval_censored(cls, low: ArrayLike, high: ArrayLike) -> CensoredData:
        """Returns a sample of lower and upper bounds.

        Args:
          low: real array-like[n].
          high: real array-like[n].
        """
        (a, b), _ = operands("CensoredData", low, high)
        if a.aval.ndim != 1 or a.aval.shape != b.aval.shape:
            raise ShapeError(
                f"CensoredData: low and high must be rows, got {a.aval} and {b.aval}"
            )
        return cls._of(a, b, *_KINDS)

    @staticmethod
    def _marked(x: Any, censored: Any) -> tuple[Any, Any]:
        a = _row("CensoredData", x)
        held = fnp.asarray(censored)
        if held.aval.shape != a.aval.shape:
            raise ShapeError(
                f"CensoredData: censored must be like x, {a.aval}, got {held.aval}"
            )
        return a, held != 0

    def __len__(self) -> int:
        return int(self.low.aval.shape[0])

    def __repr__(self) -> str:
        return f"CensoredData(low={self.low}, high={self.high})"

    def num_censored(self) -> Array:
        """Returns how many elements are not known: an int array."""
        return fnp.sum(self.low != self.high)

    def tree_flatten(self) -> tuple[tuple[Any, Any], tuple[str, ...]]:
        """Returns the bounds, and which kinds of elements there may be."""
        return (self.low, self.high), self._kinds

    @classmethod
    def tree_unflatten(cls, kinds: Any, bounds: Any) -> CensoredData:
        """Returns the sample of bounds."""
        return cls._of(*bounds, *kinds)


def _events(name: str, sample: Any) -> tuple[Any, Any]:
    """Returns the times of a sample, and which of them are events."""
    if not isinstance(sample, CensoredData):
        x = _row(name, sample)
        return x, fnp.ones(x.aval.shape, bool)
    others = [kind for kind in sample._kinds if kind in ("left", "interval")]
    if others:
        raise ArgumentError(
            f"{name}: takes elements that are known or censored on the right, got some "
            f"of the kind {others[0]!r}"
        )
    return sample.low, sample.high == sample.low


# -- the distribution function ---------------------------------------------------------


@register_pytree_node_class
class EmpiricalDistributionFunction:
    """A step function: a part of what `ecdf` returns.

    Attributes:
      quantiles: where it has steps, ascending: float array[n].
      probabilities: its values there: float array[n].
    """

    def __init__(self, q: Any, p: Any, at_risk: Any, events: Any, kind: str) -> None:
        self.quantiles: Array = q
        self.probabilities: Array = p
        self._at_risk, self._events, self._kind = at_risk, events, kind

    def __repr__(self) -> str:
        return (
            f"EmpiricalDistributionFunction(quantiles={self.quantiles}, "
            f"probabilities={self.probabilities})"
        )

    def tree_flatten(self) -> tuple[tuple[Any, ...], str]:
        """Returns its arrays, and which function it is."""
        parts = (self.quantiles, self.probabilities, self._at_risk, self._events)
        return parts, self._kind

    @classmethod
    def tree_unflatten(cls, kind: str, parts: Any) -> EmpiricalDistributionFunction:
        """Returns the function of arrays."""
        made = object.__new__(cls)
        made.quantiles, made.probabilities, made._at_risk, made._events = parts
        made._kind = kind
        return made

    def evaluate(self, x: ArrayLike) -> Array:
        """Returns the function's values.

        Args:
          x: real array-like.

        Returns:
          Float array of the shape of `x`.
        """
        at = fnp.asarray(x, self.quantiles.aval.dtype)
        first = fnp.full((1,), 1.0 if self._kind == "sf" else 0.0, self.quantiles.dtype)
        steps = fnp.concatenate([first, self.probabilities])
        place = fnp.searchsorted(self.quantiles, at, side="right")
        # Beyond every quantile only infinity is sure.
        last = 0.0 if self._kind == "sf" else 1.0
        value = fnp.where(at == math.inf, last, steps[place])
        return fnp.where(at == at, value, math.nan)

    def plot(self, ax: Any, **matplotlib_kwargs: Any) -> Any:
        """Draws the function.

        Args:
          ax: axes of Matplotlib.
          **matplotlib_kwargs: arguments of `Axes.step`.

        Returns:
          A list of lines.
        """
        q = np.asarray(self.quantiles)
        room = 0.05 * (q.max() - q.min())
        q = np.concatenate([q[:1] - room, q, q[-1:] + room])
        options = {"where": "post"} | matplotlib_kwargs
        return ax.step(q, np.asarray(self.evaluate(q)), **options)

    def confidence_interval(
        self, confidence_level: float = 0.95, *, method: str = "linear"
    ) -> ConfidenceInterval:
        """Returns bounds of the function, by Greenwood's formula.

        Args:
          confidence_level: a probability.
          method: "linear", or "log-log": of the logarithm of the logarithm.

        Returns:
          A named tuple of `low` and `high`, two functions.

        Raises:
          ArgumentError: unknown method, or the function is a bound itself.

        Special cases:
          nan where the formula divides 0 by 0.
        """
        name = "confidence_interval"
        if self._at_risk is None:
            raise ArgumentError(f"{name}: a bound has no bounds of its own")
        require_choice(name, "method", method, ("linear", "log-log"))
        require_level(name, confidence_level)
        n, d, p = self._at_risk, self._events, self.probabilities
        sf = p if self._kind == "sf" else 1 - p
        spread = fnp.cumsum(d / (n * (n - d)))
        z = ndtri(fnp.asarray(0.5 + confidence_level / 2, p.dtype))
        if method == "linear":
            wide = z * sf * lax.sqrt(spread)
            low, high = p - wide, p + wide
        else:
            log = lax.log(sf)
            wide = z * lax.sqrt(spread / (log * log))
            middle = lax.log(-log)
            low, high = (lax.exp(-lax.exp(middle + s * wide)) for s in (1, -1))
            if self._kind == "cdf":
                low, high = 1 - high, 1 - low
        bounds: Any = (
            EmpiricalDistributionFunction(
                self.quantiles, fnp.clip(v, 0, 1), None, None, self._kind
            )
            for v in (low, high)
        )
        return ConfidenceInterval(*bounds)


class ECDFResult(NamedTuple):
    """What `ecdf` returns.

    Attributes:
      cdf: the distribution function.
      sf: the survival function.
    """

    cdf: EmpiricalDistributionFunction
    sf: EmpiricalDistributionFunction


@statistic(compiled=False)
def ecdf(sample: ArrayLike | CensoredData, *, size: int | None = None) -> ECDFResult:
    """Returns the empirical distribution function of a sample.

    That of a sample censored on the right is Kaplan and Meier's estimate.

    Args:
      sample: real array-like[n], or `CensoredData` without upper bounds.
      size: for how many steps there is room; None counts the different values, which
        must be known then. The last step is repeated.

    Returns:
      A named tuple of `cdf` and `sf`, functions with `quantiles`, `probabilities`,
      `evaluate(x)`, `confidence_interval()` and `plot()`.

    Raises:
      ArgumentError: elements are censored on the left.
      ConcretizationError: the sample is traced, as under `jit`, and there is no `size`.
      ShapeError: the sample is empty or not a row.

    Example:
      >>> data = CensoredData(np.array([37.0, 47, 56, 77, 80]), right=np.array([60.0]))
      >>> ecdf(data).sf.probabilities.round(3)
      Array([0.833, 0.667, 0.5  , 0.5  , 0.25 , 0.   ], dtype=float32)

    Source: `scipy.stats.ecdf`; E. L. Kaplan and P. Meier 1958; S. Sawyer, "The
    Greenwood and Exponential Greenwood Confidence Intervals".
    """
    name = "ecdf"
    x, died = _events(name, sample)
    count = x.aval.shape[0]
    if not count:
        raise ShapeError(f"{name}: the sample must have elements, got {x.aval}")
    if size is None:
        if isinstance(x, Tracer):
            raise ConcretizationError(
                f"{name}: the number of different values of {x} is not known while "
                f"traced: give size={count}, for which there is always room"
            )
        size = int(np.unique(np.asarray(x)).size)
    if not isinstance(size, int | np.integer) or size < 1:
        raise ArgumentError(f"{name}: size must be a positive int, got {size!r}")
    order = fnp.argsort(x)
    times, events = x[order], died[order].astype(x.aval.dtype)
    new = fnp.concatenate([fnp.ones(1, bool), times[1:] > times[:-1]])
    # The first place of each value; those of no value are the last one's.
    firsts = fnp.nonzero(new, size=int(size), fill_value=count)[0]
    last = fnp.max(fnp.where(firsts < count, firsts, 0))
    real = firsts < count
    firsts = fnp.where(real, firsts, last)
    q = times[firsts]
    until = fnp.searchsorted(times, q, side="right")
    sums = fnp.concatenate([fnp.zeros(1, x.aval.dtype), fnp.cumsum(events)])
    d = fnp.where(real, sums[until] - sums[firsts], 0)
    n = (count - firsts).astype(x.aval.dtype)
    if isinstance(sample, CensoredData) and "right" in sample._kinds:
        sf = fnp.cumprod((n - d) / n)
        cdf = 1 - sf
    else:
        cdf = until.astype(x.aval.dtype) / count
        sf = 1 - cdf
    return ECDFResult(
        *(
            EmpiricalDistributionFunction(q, p, n, d, kind)
            for p, kind in ((cdf, "cdf"), (sf, "sf"))
        )
    )


@statistic()
def logrank(
    x: ArrayLike | CensoredData,
    y: ArrayLike | CensoredData,
    alternative: str = "two-sided",
) -> SignificanceResult:
    """Tests whether two samples of times have one survival function.

    Args:
      x: real array-like[n], or `CensoredData` without upper bounds.
      y: another one.
      alternative: "two-sided"; "less": the first sample survives longer; "greater".

    Returns:
      A named tuple of `statistic`, which is normal, and `pvalue`.

    Raises:
      ArgumentError: elements are censored on the left.
      ShapeError: a sample is not a row.

    Example:
      >>> x = CensoredData(np.array([6.0, 13, 21, 30]), right=np.array([31.0, 47]))
      >>> logrank(x, np.array([3.0, 5, 8, 9, 12])).pvalue.round(4)
      Array(0.0033, dtype=float32)

    Source: `scipy.stats.logrank`; N. Mantel 1966.
    """
    name = "logrank"
    require_alternative(name, alternative)
    parts = [_events(name, s) for s in (x, y)]
    dtype = fnp.result_type(*(p[0] for p in parts))
    times = [p[0].astype(dtype) for p in parts]
    died = fnp.concatenate([p[1] for p in parts])
    every = fnp.concatenate(times)
    at_risk = [
        t.aval.shape[0] - fnp.searchsorted(fnp.sort(t), every, side="left")
        for t in times
    ]
    first, second = (n.astype(dtype) for n in at_risk)
    n = first + second
    deaths = fnp.sort(fnp.where(died, every, math.inf))
    until, before = (
        fnp.searchsorted(deaths, every, side=side) for side in ("right", "left")
    )
    d = (until - before).astype(dtype)
    # Each death is a term of the sums over the times of deaths.
    expected = fnp.sum(fnp.where(died, first / n, 0))
    share = first * second * (n - d) / (n * n * fnp.maximum(n - 1, 1))
    spread = fnp.sum(fnp.where(died, share, 0))
    observed = fnp.sum(parts[0][1], dtype=dtype)
    z = (observed - expected) / lax.sqrt(spread)
    return SignificanceResult(z, normal_pvalue(z, alternative))
