"""The rows of a moment, while rows change and leave."""

import numpy as np

from fxflow.distributed.parameter_server.tables.cuts import TableCut
from fxflow.distributed.parameter_server.tables.memory import Memory
from fxflow.distributed.parameter_server.tables.spec import Field


def test_a_cut_has_the_rows_of_its_moment() -> None:
    memory = Memory([Field((2,), np.dtype(np.float32))], 10)
    slots = memory.add(np.arange(3))
    memory.write(slots, [np.arange(6, dtype=np.float32).reshape(3, 2)])
    cut = TableCut(memory, None)
    cut.changing(slots[:1])
    memory.write(slots[:1], [np.full((1, 2), 9, np.float32)])
    cut.changing(slots[1:2])
    memory.remove(slots[1:2])
    rows: dict[int, list[float]] = {}
    while (block := cut.next()) is not None:
        rows |= dict(zip(block.ids.tolist(), block.rows.tolist(), strict=True))
    assert rows == {0: [0, 1], 1: [2, 3], 2: [4, 5]}
