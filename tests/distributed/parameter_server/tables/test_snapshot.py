"""A cut has each row of one moment once, while the rows change."""

import numpy as np
import pytest

from fxflow.distributed.parameter_server.tables import snapshot
from fxflow.distributed.parameter_server.tables.memory import Memory
from fxflow.distributed.parameter_server.tables.row_programs import Field
from fxflow.distributed.parameter_server.tables.snapshot import BLOCK, TableCut

FIELDS = (Field((1,), np.dtype(np.float32)), Field((), np.dtype(np.int32)))


def test_rows_that_change_are_copied_first() -> None:
    memory = Memory(FIELDS, 4 * BLOCK)
    ids = np.arange(3 * BLOCK)
    slots = memory.add(ids)
    memory.write(slots, [ids[:, None], ids])
    cut = TableCut(memory, None)

    def change(some):
        cut.changing(some)
        memory.write(some, [np.full((len(some), 1), -1.0), np.full(len(some), -1)])

    blocks = [cut.next()]
    change(slots[::2])
    change(slots[:100])
    cut.changing(slots[-1:])
    memory.remove(slots[-1:])
    change(memory.add(np.array([10**6])))
    while (block := cut.next()) is not None:
        blocks.append(block)
        change(slots[1::5])
    found = np.concatenate([b.ids for b in blocks])
    assert np.array_equal(np.sort(found), ids)
    assert np.array_equal(np.concatenate([b.rows for b in blocks])[:, 0], found)
    assert np.array_equal(np.concatenate([b.state[0] for b in blocks]), found)
    cut.close()


def test_blocks_of_long_rows_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "BLOCK_BYTES", 80)  # ten rows
    memory = Memory(FIELDS, 100)
    ids = np.arange(95)
    slots = memory.add(ids)
    memory.write(slots, [ids[:, None], ids])
    cut = TableCut(memory, None)
    cut.changing(slots[50:])
    blocks = list(iter(cut.next, None))
    assert max(len(block.ids) for block in blocks) == 10
    assert sorted(np.concatenate([b.ids for b in blocks])) == ids.tolist()
