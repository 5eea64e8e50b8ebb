"""The area under the ROC curve of a model's scores, over its last labels.

The scores of positive and negative examples are counted in bins, as in
`train.metrics.Scores`, whose areas these are; a window forgets the oldest example.

Source: Hanley and McNeil, The Meaning and Use of the Area under a ROC Curve, 1982 (the
standard error).
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

#: Bins of scores from 0 to 1; within one, scores count as equal.
_BINS = 1000


class Auc(NamedTuple):
    """An area under the ROC curve.

    Attributes:
      value: the area; nan without examples of both classes.
      positives, negatives: number of examples.

    Example:
      >>> round(Auc(0.75, 100, 100).error, 4)
      0.0344
    """

    value: float = math.nan
    positives: int = 0
    negatives: int = 0

    @property
    def error(self) -> float:
        """The standard error; infinity without examples of both classes."""
        a, m, n = self.value, self.positives, self.negatives
        if not m or not n:
            return math.inf
        one, other = a / (2 - a), 2 * a * a / (1 + a)
        variance = a * (1 - a) + (m - 1) * (one - a * a) + (n - 1) * (other - a * a)
        # An area of 1 has no variance here: half a pair might be ordered wrongly.
        return math.sqrt(max(variance, 0.5) / (m * n))


class AucWindow:
    """The scores and labels of the last examples.

    Args:
      size: number of examples.

    Example:
      >>> window = AucWindow(100)
      >>> for score, label in [(0.1, 0), (0.4, 0), (0.35, 1), (0.8, 1)]:
      ...     window.add(score, label)
      >>> window.auc()
      Auc(value=0.75, positives=2, negatives=2)
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._last: deque[tuple[int, bool]] = deque()
        self._counts: npt.NDArray[np.int64] = np.zeros((2, _BINS), np.int64)

    def __len__(self) -> int:
        return len(self._last)

    def add(self, score: float, label: Any) -> None:
        """Adds an example; the oldest one is forgotten.

        Args:
          score: its score; not counted unless from 0 to 1.
          label: positive unless 0.
        """
        if not 0 <= score <= 1:
            return
        place = min(int(score * _BINS), _BINS - 1), bool(label)
        self._last.append(place)
        self._counts[int(place[1]), place[0]] += 1
        if len(self._last) > self._size:
            bin_, positive = self._last.popleft()
            self._counts[int(positive), bin_] -= 1

    def auc(self) -> Auc:
        """Returns the area."""
        negative, positive = self._counts
        m, n = int(positive.sum()), int(negative.sum())
        if not m or not n:
            return Auc(math.nan, m, n)
        below = np.cumsum(negative) - negative / 2  # half of a tie
        return Auc(float(positive @ below) / (m * n), m, n)
