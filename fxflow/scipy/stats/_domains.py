"""What a parameter of a distribution may be: elsewhere there is no distribution."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from fxflow import lax


class Domain(NamedTuple):
    """Where a parameter describes a distribution.

    Attributes:
      words: what it must be, for docstrings.
      holds: returns where a parameter is in the domain.
      inside: a number in it, which is put in place of what is not.
      line: returns a number of the domain from any real one; None if `fit` does not
        vary it, as a number of trials.
      back: the inverse of `line`.
    """

    words: str
    holds: Callable[[Any], Any]
    inside: float
    line: Callable[[Any], Any] | None = None
    back: Callable[[Any], Any] | None = None

    def but(self, inside: float) -> Domain:
        """Returns the same domain with another number to use."""
        return self._replace(inside=inside)


def is_whole(x: Any) -> Any:
    """Returns whether numbers are integers."""
    return lax.floor(x) == x


def _same(x: Any) -> Any:
    return x


def _logit(x: Any) -> Any:
    return lax.log(x) - lax.log1p(-x)


REAL = Domain("real array-like", lambda x: abs(x) < math.inf, 0.0, _same, _same)
ANY = REAL._replace(holds=lambda x: x == x)
NONZERO = Domain(
    "real array-like but 0", lambda x: (x != 0) & (x == x), 1.0, _same, _same
)
POSITIVE = Domain("positive real array-like", lambda x: x > 0, 1.0, lax.exp, lax.log)
NOT_NEGATIVE = POSITIVE._replace(
    words="non-negative real array-like", holds=lambda x: x >= 0
)
PROBABILITY = Domain(
    "real array-like from 0 to 1",
    lambda x: (x >= 0) & (x <= 1),
    0.5,
    lax.logistic,
    _logit,
)
INSIDE_UNIT = PROBABILITY._replace(
    words="real array-like between 0 and 1", holds=lambda x: (x > 0) & (x < 1)
)
ABOVE_ONE = Domain(
    "real array-like above 1",
    lambda x: x > 1,
    2.0,
    lambda x: 1 + lax.exp(x),
    lambda x: lax.log(x - 1),
)
COUNT = Domain(
    "non-negative integers, array-like",
    lambda x: (x >= 0) & is_whole(x) & (x < math.inf),
    1.0,
)
WHOLE = Domain("integers, array-like", lambda x: is_whole(x) & (abs(x) < math.inf), 0.0)
