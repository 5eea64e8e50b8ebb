"""Which cases of a sweep run: some, drawn by a seed, or all with `--whole-sweeps`.

pytest tests/sweeps                         # what CI runs
pytest tests/sweeps --sweep-seed=7          # other cases
pytest tests/sweeps --whole-sweeps          # each and every one
"""

from __future__ import annotations

import math
import random
import zlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

#: How much of what the sweeps ask for there is time for in CI.
SHARE = 0.1

seed = 0
whole = False


def sample(cases: Sequence[T], count: int, of: str = "") -> list[T]:
    """Returns `count` of the cases, in their order, or all of them.

    Args:
      cases: what there is to draw from.
      count: how many to draw; CI runs `SHARE` of them.
      of: the sweep's name, so that sweeps do not draw alike.
    """
    if whole or len(cases) <= count:
        return list(cases)
    rng = random.Random(seed * 7919 + zlib.crc32(of.encode()))
    drawn = rng.sample(range(len(cases)), count)[: math.ceil(count * SHARE)]
    return [cases[i] for i in sorted(drawn)]
