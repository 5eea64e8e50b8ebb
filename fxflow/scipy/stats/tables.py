"""Exact tests of tables of two rows and columns, without conditions on the rows.

The number of tables depends on the counts, which must be known, so the tests are
computed on the host. The p-value is the greatest one over the probability of a success.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import is_arraylike, not_an_array
from fxflow.core.boundary import boundary
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.stats._samples import require_alternative
from fxflow.scipy.stats.results import SignificanceResult


def _known(name: str, table: Any, n: Any) -> np.ndarray:
    """Returns counts as integers on the host.

    Raises:
      ArgumentError: they are traced, negative or not integers, or `n` is not positive.
      ShapeError: they are not a table of two rows and columns.
    """
    if isinstance(table, Tracer):
        raise ArgumentError(
            f"{name}: takes counts that are known, because they decide how many tables "
            "there are; call it outside of jit, vmap and grad"
        )
    if integer(name, "n", n) < 1:
        raise ArgumentError(f"{name}: n must be positive, got {n}")
    if not is_arraylike(table) and not isinstance(table, list | tuple):
        raise not_an_array(table, f"{name}: table is")
    counts = np.asarray(table)
    if counts.shape != (2, 2):
        raise ShapeError(
            f"{name}: table must have 2 rows and 2 columns, got the shape "
            f"{counts.shape}"
        )
    if counts.dtype.kind not in "biuf" or (counts != np.floor(counts)).any():
        raise ArgumentError(f"{name}: table must have integers, got {table}")
    if (counts < 0).any():
        raise ArgumentError(f"{name}: table must not have negative counts, got {table}")
    return counts.astype(np.int64)


def _log_chosen(n: int) -> np.ndarray:
    """Returns log C(n, k) for k from 0 to n."""
    log = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    found: np.ndarray = log[n] - log - log[::-1]
    return found


def _greatest(extreme: np.ndarray, n: int) -> float:
    """Returns the greatest probability of tables, over that of a success.

    On a grid, then on finer ones around the best point.

    Args:
      extreme: which tables count, bool[n1 + 1, n2 + 1].
      n: how many points the grid has at least.
    """
    n1, n2 = (size - 1 for size in extreme.shape)
    logs = [(size, np.arange(size + 1), _log_chosen(size)) for size in (n1, n2)]
    mask = extreme.astype(float)

    def chances(p: np.ndarray) -> np.ndarray:
        first, second = (
            np.exp(c + k * np.log(p)[:, None] + (size - k) * np.log1p(-p)[:, None])
            for size, k, c in logs
        )
        found: np.ndarray = ((first @ mask) * second).sum(-1)
        return found

    p = np.linspace(0, 1, max(n, 4 * (n1 + n2), 256) + 2)[1:-1]
    value, width = chances(p), p[1] - p[0]
    best, at = value.max(), p[value.argmax()]
    while width > 1e-9:
        p = np.clip(np.linspace(at - width, at + width, 33), 1e-300, 1 - 1e-16)
        value, width = chances(p), width / 8
        best, at = max(best, value.max()), p[value.argmax()]
    return float(min(best, 1))


def _result(statistic: float, pvalue: float) -> SignificanceResult:
    return SignificanceResult(fnp.asarray(statistic), fnp.asarray(pvalue))


@boundary
def barnard_exact(
    table: ArrayLike, alternative: str = "two-sided", pooled: bool = True, n: int = 32
) -> SignificanceResult:
    """Tests whether the probabilities of two columns are equal, by Barnard's test.

    Args:
      table: non-negative integers[2, 2], known ones.
      alternative: "two-sided", "less" or "greater": of the first column's probability.
      pooled: whether the statistic has the pooled variance.
      n: how many points the search for the greatest p-value has at least.

    Returns:
      A named tuple of `statistic`, Wald's, and `pvalue`.

    Raises:
      ArgumentError: the counts are traced, negative or not integers; there is no such
        alternative.
      ShapeError: there are not two rows and columns.

    Special cases:
      A column of zeros → nan with p-value 1.

    Example:
      >>> barnard_exact([[7, 12], [8, 3]]).pvalue.round(4)
      Array(0.0682, dtype=float32)

    Source: `scipy.stats.barnard_exact`; G. Barnard 1947.
    """
    name = "barnard_exact"
    require_alternative(name, alternative)
    counts = _known(name, table, n)
    n1, n2 = (int(v) for v in counts.sum(0))
    if not n1 or not n2:
        return _result(math.nan, 1.0)
    x1, x2 = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None, :]
    p1, p2 = x1 / n1, x2 / n2
    if pooled:
        p = (x1 + x2) / (n1 + n2)
        square = p * (1 - p) * (1 / n1 + 1 / n2)
    else:
        square = p1 * (1 - p1) / n1 + p2 * (1 - p2) / n2
    gap = x1 * n2 - x2 * n1
    with np.errstate(divide="ignore", invalid="ignore"):
        wald = np.where(gap == 0, 0, (p1 - p2) / np.sqrt(square))
    found = wald[counts[0, 0], counts[0, 1]]
    near = 1e-12 * abs(found) if math.isfinite(found) else 0.0
    extreme = {
        "two-sided": lambda: abs(wald) >= abs(found) - near,
        "less": lambda: wald <= found + near,
        "greater": lambda: wald >= found - near,
    }[alternative]()
    return _result(float(found), _greatest(extreme, n))


def _fisher_tails(n1: int, n2: int) -> Callable[[bool], np.ndarray]:
    """Returns a function that gives Fisher's p-values of all tables with two sums.

    Its argument is whether many successes of the first column count.
    """
    first, second = _log_chosen(n1), _log_chosen(n2)
    both = _log_chosen(n1 + n2)
    x = np.arange(n1 + 1)[:, None]

    def tails(greater: bool) -> np.ndarray:
        total = np.arange(n1 + n2 + 1)[None, :]
        rest = total - x
        known = (rest >= 0) & (rest <= n2)
        log = first[:, None] + second[np.clip(rest, 0, n2)] - both[total]
        chance = np.where(known, np.exp(log), 0)
        if greater:
            sums = np.cumsum(chance[::-1], axis=0)[::-1]
        else:
            sums = np.cumsum(chance, axis=0)
        found: np.ndarray = np.take_along_axis(
            sums, x + np.arange(n2 + 1)[None, :], axis=1
        )
        return found

    return tails


@boundary
def boschloo_exact(
    table: ArrayLike, alternative: str = "two-sided", n: int = 32
) -> SignificanceResult:
    """Tests whether the probabilities of two columns are equal, by Boschloo's test.

    Its statistic is the p-value of Fisher's exact test, which it is more powerful than.

    Args:
      table: non-negative integers[2, 2], known ones.
      alternative: "two-sided", "less" or "greater": of the first column's probability.
      n: how many points the search for the greatest p-value has at least.

    Returns:
      A named tuple of `statistic`, Fisher's p-value, and `pvalue`.

    Raises:
      ArgumentError: the counts are traced, negative or not integers; there is no such
        alternative.
      ShapeError: there are not two rows and columns.

    Special cases:
      A column of zeros → nan, both.

    Example:
      >>> boschloo_exact([[74, 31], [43, 32]], alternative="greater").pvalue.round(4)
      Array(0.0356, dtype=float32)

    Source: `scipy.stats.boschloo_exact`; R. Boschloo 1970.
    """
    name = "boschloo_exact"
    require_alternative(name, alternative)
    counts = _known(name, table, n)
    n1, n2 = (int(v) for v in counts.sum(0))
    if not n1 or not n2:
        return _result(math.nan, math.nan)
    tails = _fisher_tails(n1, n2)

    def one(greater: bool) -> tuple[float, float]:
        values = tails(greater)
        found = float(values[counts[0, 0], counts[0, 1]])
        return found, _greatest(values <= found * (1 + 1e-12), n)

    if alternative != "two-sided":
        return _result(*one(alternative == "greater"))
    found, p = min((one(side) for side in (False, True)), key=lambda pair: pair[1])
    return _result(found, min(2 * p, 1.0))
