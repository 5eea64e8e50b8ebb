"""Counts of ids are never too low, and rarely too high."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.tables.admission import (
    MOST,
    FrequencySketch,
)

BATCHES = st.lists(
    st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 9), unique=True, max_size=30),
    max_size=20,
)


@given(batches=BATCHES)
@settings(max_examples=30, deadline=None)
def test_counts_are_never_too_low(batches: list[list[int]]) -> None:
    sketch = FrequencySketch(1024)  # more than the additions: nothing is halved
    exact: dict[int, int] = {}
    for batch in batches:
        found = sketch.add(np.array(batch, np.int64))
        for i, count in zip(batch, found.tolist(), strict=True):
            exact[i] = exact.get(i, 0) + 1
            assert count >= exact[i]


def test_few_counts_are_too_high() -> None:
    sketch = FrequencySketch(1 << 14)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2**62, 8000)
    for part in np.array_split(np.unique(ids), 40):
        sketch.add(part)
    fresh = sketch.add(rng.integers(0, 2**62, 2000))
    # Each hash shares a counter with probability 0.4, so 2.5 % share all four.
    assert (fresh > 1).mean() < 0.03


def test_counts_are_halved_and_end_at_the_largest() -> None:
    sketch = FrequencySketch(64)
    for _ in range(7):
        sketch.add(np.array([5]))
    sketch.add(np.arange(100, 157))
    assert sketch.added == 0
    assert sketch.add(np.array([5])).tolist()[0] in (4, 5)
    large = FrequencySketch(1024)
    for _ in range(300):
        count = large.add(np.array([3]))
    assert count.tolist() == [MOST]


def test_the_state_is_that_of_the_copy() -> None:
    one, two = FrequencySketch(64), FrequencySketch(64)
    one.add(np.arange(20))
    two.load(one.state())
    assert one.add(np.arange(10)).tolist() == two.add(np.arange(10)).tolist()
    assert two.added == one.added == 30
    with pytest.raises(ValueError, match=r"must be uint8\[4, 128\]"):
        FrequencySketch(128).load(one.state())
