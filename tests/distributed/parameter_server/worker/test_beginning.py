"""Rows of a snapshot in parts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.worker import beginning
from fxflow.distributed.parameter_server.worker.beginning import Block, RowParts


def block(first: int, count: int) -> Block:
    ids = np.arange(first, first + count)
    return [ids, np.stack([ids, -ids], axis=1).astype(np.float32)]  # 16 bytes a row


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 200), st.integers(0, 3))
def test_each_row_is_in_one_part(counts: list[int], most: int, shards: int) -> None:
    firsts = np.cumsum([0, *counts])
    blocks = [block(int(f), n) for f, n in zip(firsts, counts, strict=False)]
    tables, found = {"u": [], "t": blocks}, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beginning, "PART_BYTES", most)
        shares = [(i, shards) for i in range(shards)] or [None]
        for share in shares:
            for name, (ids, rows) in RowParts(tables, share):
                assert name == "t"
                assert ids.nbytes + rows.nbytes <= max(most, 16)
                assert np.array_equal(rows, np.stack([ids, -ids], axis=1))
                assert share is None or all(ids % share[1] == share[0])
                found += ids.tolist()
    assert sorted(found) == list(range(sum(counts)))
    assert shards or found == sorted(found)


def test_parts_are_made_when_they_are_asked_for() -> None:
    ids, rows = block(0, 2_000_000)
    parts = RowParts({"t": [[ids, rows]]})
    assert len(parts) == 8
    _, (some, own) = parts[3]
    assert np.shares_memory(some, ids)
    assert np.shares_memory(own, rows)
