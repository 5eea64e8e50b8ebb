"""The few sizes of batches for which a model is compiled.

Steps of at most a half: padding then costs at most a third of the work, and up to 512
rows there are 17 programs to compile.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence


def sizes_up_to(largest: int) -> tuple[int, ...]:
    """Returns the sizes 1, 2, 3, 4, 6, 8, 12, … up to the largest.

    Args:
      largest: the largest batch, at least 1; it is among them.

    Returns:
      The sizes, ascending.

    Raises:
      ValueError: the largest is below 1.

    Example:
      >>> sizes_up_to(20)
      (1, 2, 3, 4, 6, 8, 12, 16, 20)
    """
    if largest < 1:
        raise ValueError(f"sizes_up_to: largest must be at least 1, got {largest}")
    found = {largest}
    power = 1
    while power < largest:
        found |= {power, min(power * 3 // 2, largest)}
        power *= 2
    return tuple(sorted(found))


def padded(rows: int, sizes: Sequence[int]) -> int:
    """Returns the smallest size that holds the rows.

    Args:
      rows: how many there are.
      sizes: ascending; empty: any size is as good as another.

    Returns:
      The size, or `rows` if there is none so large.

    Example:
      >>> padded(5, (1, 2, 4, 8)), padded(5, ())
      (8, 5)
    """
    place = bisect.bisect_left(sizes, rows)
    return sizes[place] if place < len(sizes) else rows
