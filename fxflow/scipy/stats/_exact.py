"""Exact null distributions of rank statistics: how many arrangements have which value.

Sizes of samples are known when a program is made, so the distributions are computed on
the host, and a program has a table of them.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.stats._samples import one_of


def _tails(chances: Any) -> tuple[Any, Any]:
    """Returns P(K ≤ k) and P(K ≥ k) of a distribution."""
    return np.cumsum(chances), np.cumsum(chances[::-1])[::-1]


def table_pvalue(chances: Any, k: Any, alternative: str, dtype: Any) -> Any:
    """Returns the p-value of an integer statistic.

    Args:
      chances: the probability of 0, 1, …, NumPy data.
      k: the statistic: of any dtype.
      alternative: "less" is a small statistic, "greater" a great one.
      dtype: dtype of the result.
    """
    below, above = _tails(chances)
    at = fnp.clip(k, 0, len(chances) - 1).astype(dtypes.int32)
    less, greater = (fnp.asarray(t, dtype)[at] for t in (below, above))
    return one_of(alternative, less, greater)


@functools.lru_cache(32)
def subset_sums(count: int, size: int) -> Any:
    """Returns the distribution of Mann and Whitney's U of samples of two sizes.

    Args:
      count: of one.
      size: size of the other.
    """
    # Gaussian binomials: products of (1 - qⁿ⁺ⁱ)/(1 - qⁱ), each a sum of probabilities.
    chances = np.zeros(count * size + 1)
    chances[0] = 1
    small, great = sorted((count, size))
    for i in range(1, small + 1):
        top = great + i
        chances[top:] = chances[top:] - chances[: len(chances) - top].copy()
        for start in range(i):
            chances[start::i] = np.cumsum(chances[start::i])
        chances *= i / top
    return np.maximum(chances, 0)


@functools.lru_cache(32)
def inversions(n: int) -> Any:
    """Returns the distribution of the number of inversions of n elements."""
    chances = np.ones(1)
    for k in range(2, n + 1):
        chances = (
            np.convolve(chances, np.full(k, 1 / k)) if k < 64 else _spread(chances, k)
        )
    return chances


def _spread(chances: Any, k: int) -> Any:
    total = np.concatenate([np.cumsum(chances), np.full(k - 1, chances.sum())])
    total[k:] -= np.cumsum(chances)[: len(total) - k]
    return np.maximum(total / k, 0)


@functools.lru_cache(32)
def signed_ranks(n: int) -> Any:
    """Returns the distribution of the sum of the ranks of positive signs."""
    chances = np.ones(1)
    for k in range(1, n + 1):
        new = np.zeros(len(chances) + k)
        new[: len(chances)] += chances / 2
        new[k:] += chances / 2
        chances = new
    return chances


@functools.lru_cache(32)
def subset_scores(scores: tuple[int, ...], count: int) -> Any:
    """Returns the distribution of the sum of some of several scores.

    Args:
      scores: non-negative integers.
      count: how many of them are drawn.
    """
    most = sum(sorted(scores)[-count:]) if count else 0
    ways = np.zeros((count + 1, most + 1))
    ways[0, 0] = 1
    for score in scores:
        for k in range(count, 0, -1):
            ways[k, score:] += ways[k - 1, : most + 1 - score]
    return ways[count] / math.comb(len(scores), count)
