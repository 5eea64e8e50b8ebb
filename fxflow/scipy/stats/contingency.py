"""Tables of how often combinations occur: `fxflow.scipy.stats.contingency`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike, array_of
from fxflow.scipy.special._operands import in_64_bits
from fxflow.scipy.special._roots import inverse_by
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._biased_urns import nchypergeom_fisher
from fxflow.scipy.stats._samples import (
    operands,
    require_alternative,
    require_choice,
    statistic,
)
from fxflow.scipy.stats.frequencies import chi2_contingency, expected_frequencies
from fxflow.scipy.stats.results import ConfidenceInterval, Result, require_level
from fxflow.sparse import coo_array
from fxflow.transforms.jit import jit

__all__ = [
    "association",
    "chi2_contingency",
    "crosstab",
    "expected_freq",
    "margins",
    "odds_ratio",
    "relative_risk",
]

_docs = shared("""
    Raises:
      ArgumentError: an argument is not an array, or the option is unknown.

    Source: `scipy.stats.contingency.{name}`.
""")


@statistic()
@_docs
def margins(a: ArrayLike) -> list[Array]:
    """Returns the sums of a table along all axes but one, for each axis.

    Args:
      a: array-like[...].

    Returns:
      A list of arrays with as many axes, of length 1 but for one.

    Example:
      >>> margins(np.array([[1, 2], [3, 4]]))
      [Array([[3],
             [7]], dtype=int32), Array([[4, 6]], dtype=int32)]
    """
    table = array_of(a, "margins")
    axes = range(table.aval.ndim)
    return [
        fnp.sum(table, axis=tuple(j for j in axes if j != i), keepdims=True)
        for i in axes
    ]


@statistic()
@_docs
def expected_freq(observed: ArrayLike) -> Array:
    """Returns the frequencies that are expected if rows and columns are independent.

    Args:
      observed: array-like[...]: the table of frequencies.

    Returns:
      Float array of that shape.

    Example:
      >>> expected_freq(np.array([[10, 10, 20], [20, 20, 20]])).round(2)
      Array([[12., 12., 16.],
             [18., 18., 24.]], dtype=float32)
    """
    (table,), dtype = operands("expected_freq", observed)
    found: Array = expected_frequencies(table).astype(dtype)
    return found


@statistic("correction", "lambda_")
@_docs
def association(
    observed: ArrayLike,
    method: str = "cramer",
    correction: bool = False,
    lambda_: float | str | None = None,
) -> Array:
    """Returns how strongly the rows and columns of a table go together, from 0 to 1.

    Args:
      observed: int array-like[m, n]: the table of frequencies.
      method: "cramer", "tschuprow" or "pearson".
      correction, lambda_: as `chi2_contingency` has them.

    Returns:
      A float.

    Raises:
      DtypeError: the frequencies are not integers.
      ShapeError: the table has not two axes.

    Example:
      >>> table = np.array([[100, 150], [203, 322], [420, 700], [320, 210]])
      >>> association(table).round(4)
      Array(0.1862, dtype=float32)
    """
    name = "association"
    require_choice(name, "method", method, ("cramer", "tschuprow", "pearson"))
    table = array_of(observed, name)
    if not dtypes.is_integer(table.aval.dtype):
        raise DtypeError(f"{name}: observed must be integers, got {table.aval}")
    if table.aval.ndim != 2:
        raise ShapeError(f"{name}: observed must have two axes, got {table.aval}")
    found = chi2_contingency(table, correction, lambda_).statistic
    phi2 = found / fnp.sum(table).astype(found.aval.dtype)
    rows, columns = (n - 1 for n in table.aval.shape)
    if method == "pearson":
        return lax.sqrt(phi2 / (1 + phi2))
    size = min(rows, columns) if method == "cramer" else math.sqrt(rows * columns)
    return lax.sqrt(phi2 / fnp.asarray(size, phi2.aval.dtype))


class CrosstabResult(NamedTuple):
    """What `crosstab` returns.

    Attributes:
      elements: the levels of each factor: a tuple of arrays.
      count: how often each combination occurs: int array.
    """

    elements: tuple[Array, ...]
    count: Array  # type: ignore[assignment]


@statistic(compiled=False)
@_docs
def crosstab(
    *args: ArrayLike, levels: Sequence[Any] | None = None, sparse: bool = False
) -> CrosstabResult:
    """Counts how often each combination of levels of factors occurs.

    Args:
      *args: array-likes[n]: the level of each factor, for each observation.
      levels: for each factor its levels, which are counted in this order, or None;
        without them all that occur, which must be known then.
      sparse: whether the count is a sparse array; for two factors.

    Returns:
      A named tuple of `elements` and `count`.

    Raises:
      ConcretizationError: a factor is traced, as under `jit`, and has no levels.
      ShapeError: the factors are not rows of one length.

    Example:
      >>> a, b = np.array([1, 2, 1, 1, 2]), np.array([5, 5, 6, 6, 6])
      >>> crosstab(a, b).count
      Array([[1, 2],
             [1, 1]], dtype=int32)
    """
    name = "crosstab"
    if not args:
        raise ArgumentError(f"{name}: takes at least one factor")
    rows = [array_of(a, name) for a in args]
    if any(r.aval.ndim != 1 for r in rows) or len({r.aval.shape for r in rows}) > 1:
        listed = ", ".join(str(r.aval) for r in rows)
        raise ShapeError(f"{name}: factors must be rows of one length, got {listed}")
    if sparse and len(rows) != 2:
        raise ArgumentError(f"{name}: sparse takes two factors, got {len(rows)}")
    given = [None] * len(rows) if levels is None else list(levels)
    if len(given) != len(rows):
        raise ArgumentError(
            f"{name}: there must be levels for each of {len(rows)} factors, got "
            f"{len(given)}"
        )
    elements, places, seen = [], [], fnp.ones(rows[0].aval.shape, bool)
    for row, own in zip(rows, given, strict=True):
        if own is None:
            if isinstance(row, Tracer):
                raise ConcretizationError(
                    f"{name}: the levels of {row} are not known while traced: give "
                    "`levels`"
                )
            own = np.unique(np.asarray(row))
        level = fnp.asarray(own).astype(row.aval.dtype)
        equal = row[:, None] == level
        elements.append(level)
        places.append(fnp.argmax(equal, axis=1))
        seen = seen & fnp.any(equal, axis=1)
    shape = tuple(e.aval.shape[0] for e in elements)
    count: Any = fnp.zeros(shape, int).at[tuple(places)].add(seen.astype(int))
    if sparse:
        count = coo_array(count)
    return CrosstabResult(tuple(elements), count)


# -- two by two ------------------------------------------------------------------------


class RelativeRiskResult(Result):
    """What `relative_risk` returns.

    Attributes:
      relative_risk: the quotient of the two shares.
      exposed_cases: how many of the exposed are cases.
      exposed_total: how many are exposed.
      control_cases: how many of the others are cases.
      control_total: the number of others.
    """

    relative_risk: Array
    exposed_cases: Array
    exposed_total: Array
    control_cases: Array
    control_total: Array
    _unpacked: ClassVar[int] = 5

    def confidence_interval(self, confidence_level: float = 0.95) -> ConfidenceInterval:
        """Returns an interval by the method of Katz and others (1978).

        Args:
          confidence_level: a probability.

        Returns:
          A named tuple of `low` and `high`.

        Special cases:
          nan and nan without cases; 0 or nan and inf without cases on one side.
        """
        require_level("relative_risk", confidence_level)
        risk, a, m, c, n = (fnp.asarray(v, self.relative_risk.dtype) for v in self)
        z = ndtri(fnp.asarray(0.5 + confidence_level / 2, risk.dtype))
        some = (a > 0) & (c > 0)
        one = fnp.where(some, 1, 0)
        wide = z * lax.sqrt(
            1 / fnp.maximum(a, one) - 1 / m + 1 / fnp.maximum(c, one) - 1 / n
        )
        low, high = (risk * lax.exp(s * wide) for s in (-1, 1))
        none = (a == 0) & (c == 0)
        low = fnp.where(a == 0, 0, fnp.where(c == 0, math.nan, low))
        high = fnp.where(a == 0, math.nan, fnp.where(c == 0, math.inf, high))
        low, high = (fnp.where(none, math.nan, v) for v in (low, high))
        return ConfidenceInterval(low, high)


@statistic(compiled=False)
@_docs
def relative_risk(
    exposed_cases: ArrayLike,
    exposed_total: ArrayLike,
    control_cases: ArrayLike,
    control_total: ArrayLike,
) -> RelativeRiskResult:
    """Returns how much likelier an event is in one group than in another.

    Args:
      exposed_cases: non-negative int array-like: events in the first group.
      exposed_total: int array-like: how many there are in it.
      control_cases: events in the other group.
      control_total: how many there are in that.

    Returns:
      A `RelativeRiskResult` with `relative_risk` and `confidence_interval()`.

    Special cases:
      nan without events; inf without events in the second group only; nan where there
      are more events than the group has members.

    Example:
      >>> relative_risk(27, 122, 44, 487).relative_risk.round(4)
      Array(2.4495, dtype=float32)
    """
    name = "relative_risk"
    given = (exposed_cases, exposed_total, control_cases, control_total)
    arrays = [array_of(v, name) for v in given]
    for a in arrays:
        if not dtypes.is_integer(a.aval.dtype):
            raise DtypeError(f"{name}: takes integers, got {a.aval}")
    (a, m, c, n), _ = operands(name, *arrays)
    good = (a >= 0) & (c >= 0) & (a <= m) & (c <= n) & (m > 0) & (n > 0)
    ratio = (a / m) * (n / fnp.where(c == 0, 1, c))
    ratio = fnp.where(c == 0, fnp.where(a == 0, math.nan, math.inf), ratio)
    ratio = fnp.where(good, ratio, math.nan)
    return RelativeRiskResult(ratio, *arrays)


_FISHER: Any = nchypergeom_fisher


def _urn(table: Any) -> tuple[Any, Any, Any, Any]:
    """Returns a table's first count, the total, its first row and its first column."""
    return table[0, 0], fnp.sum(table), fnp.sum(table[0]), fnp.sum(table[:, 0])


def _share(odds: Any, total: Any, row: Any, column: Any) -> Any:
    """Returns where the mean is between the ends of the support, from 0 to 1."""
    low = fnp.maximum(0, column - (total - row))
    high = fnp.minimum(row, column)
    mean = _FISHER.mean(total, row, column, odds)
    return (mean - low) / fnp.where(high > low, high - low, 1)


_odds_of_mean = inverse_by(_share, "positive", rising=True)
_odds_of_cdf = inverse_by(
    lambda odds, x, *urn: _FISHER.cdf(x, *urn, odds),
    "positive",
    rising=False,
)
_odds_of_sf = inverse_by(
    lambda odds, x, *urn: _FISHER.sf(x - 1, *urn, odds),
    "positive",
    rising=True,
)


@jit
def _exact_ends(table: Any, q: Any) -> tuple[Any, Any]:
    """Returns the odds for which a tail from the first count on has a probability."""
    urn = _urn(table)
    low = in_64_bits(_odds_of_sf, "odds_ratio", q, *urn)
    return low, in_64_bits(_odds_of_cdf, "odds_ratio", q, *urn)


class OddsRatioResult(Result):
    """What `odds_ratio` returns.

    Attributes:
      statistic: the odds ratio.
    """

    statistic: Array
    _table: Array
    _kind: str
    _unpacked: ClassVar[int] = 1
    _fixed: ClassVar[tuple[str, ...]] = ("_kind",)

    def confidence_interval(
        self, confidence_level: float = 0.95, alternative: str = "two-sided"
    ) -> ConfidenceInterval:
        """Returns an interval of the odds ratio.

        Args:
          confidence_level: a probability.
          alternative: "two-sided"; "less" and "greater" have one end, the other is 0 or
            infinite.

        Returns:
          A named tuple of `low` and `high`: those of Fisher's exact test for
          "conditional", of the normal logarithm for "sample".
        """
        name = "odds_ratio"
        require_level(name, confidence_level)
        require_alternative(name, alternative)
        level = 1 - confidence_level
        alpha = level / 2 if alternative == "two-sided" else level
        table, value = self._table, self.statistic
        if self._kind == "sample":
            z = ndtri(fnp.asarray(1 - alpha, table.dtype))
            wide = z * lax.sqrt(fnp.sum(1 / table))
            low, high = (value * lax.exp(s * wide) for s in (-1, 1))
            none = fnp.any(fnp.sum(table, axis=0) == 0) | fnp.any(
                fnp.sum(table, axis=1) == 0
            )
            low, high = fnp.where(none, 0, low), fnp.where(none, math.inf, high)
        else:
            low, high = _exact_ends(table, fnp.asarray(alpha, table.dtype))
            low = fnp.where((value == 0) | (value != value), 0, low)
            high = fnp.where((value == math.inf) | (value != value), math.inf, high)
        if alternative == "less":
            low = fnp.zeros_like(low)
        if alternative == "greater":
            high = fnp.full_like(high, math.inf)
        return ConfidenceInterval(low, high)


@statistic("kind")
@_docs
def odds_ratio(table: ArrayLike, *, kind: str = "conditional") -> OddsRatioResult:
    """Returns the odds ratio of a 2 × 2 table.

    Args:
      table: non-negative int array-like[2, 2]: frequencies.
      kind: "conditional": the likeliest one, given the sums of rows and columns;
        "sample": the ratio of the products of the diagonals.

    Returns:
      An `OddsRatioResult` with `statistic` and `confidence_interval()`.

    Raises:
      DtypeError: the frequencies are not integers.
      ShapeError: the table is not 2 × 2.

    Special cases:
      nan, if a row or a column is 0.

    Example:
      >>> odds_ratio(np.array([[7, 15], [58, 472]])).statistic.round(4)
      Array(3.7837, dtype=float32)
    """
    name = "odds_ratio"
    require_choice(name, "kind", kind, ("conditional", "sample"))
    counts = array_of(table, name)
    if not dtypes.is_integer(counts.aval.dtype):
        raise DtypeError(f"{name}: frequencies must be integers, got {counts.aval}")
    if counts.aval.shape != (2, 2):
        raise ShapeError(f"{name}: takes a 2 × 2 table, got {counts.aval}")
    (c,), _ = operands(name, counts)
    none = fnp.any(fnp.sum(c, axis=0) == 0) | fnp.any(fnp.sum(c, axis=1) == 0)
    cross = c[0, 1] * c[1, 0]
    value = c[0, 0] * c[1, 1] / fnp.where(cross == 0, 1, cross)
    value = fnp.where(cross == 0, math.inf, value)
    if kind == "conditional":
        x, total, row, column = _urn(c)
        low = fnp.maximum(0, column - (total - row))
        high = fnp.minimum(row, column)
        inner = (x > low) & (x < high)
        share = fnp.where(inner, (x - low) / fnp.where(high > low, high - low, 1), 0.5)
        found = in_64_bits(_odds_of_mean, name, share, total, row, column)
        value = fnp.where(inner, found, fnp.where(x == low, 0, math.inf))
    return OddsRatioResult(fnp.where(none, math.nan, value), c, kind)


_public(globals(), __all__)
