"""Sizes of batches."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.serve.batching.sizes import padded, sizes_up_to


@given(st.integers(1, 5000))
def test_padding_costs_at_most_a_half(largest: int) -> None:
    sizes = sizes_up_to(largest)
    assert list(sizes) == sorted(set(sizes))
    assert sizes[0] == 1 and sizes[-1] == largest
    assert all(
        after <= 2 if before == 1 else after <= before * 1.5
        for before, after in itertools.pairwise(sizes)
    )
    rows = max(1, largest // 3)
    assert rows <= padded(rows, sizes) <= max(2, rows * 1.5)


def test_few_programs() -> None:
    assert len(sizes_up_to(512)) <= 19
    with pytest.raises(ValueError, match="at least 1, got 0"):
        sizes_up_to(0)


def test_without_sizes() -> None:
    assert padded(7, ()) == 7
    assert padded(9, (1, 8)) == 9
