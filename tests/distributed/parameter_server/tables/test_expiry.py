"""Tables forget rows that no push names, as a dictionary of rows would."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.parameter_server.tables import RowTable, TableSpec, expiry
from tests.distributed.parameter_server.tables.harness import (
    PROGRAMS,
    WIDTH,
    Rows,
    plain,
)

PUSHES = st.lists(
    st.lists(st.integers(0, 12), unique=True, min_size=1, max_size=5), max_size=25
)


class Forgetful:
    """The model of a table whose rows expire, and need several pushes."""

    def __init__(self, expire: int, admit: int = 1) -> None:
        self.rows, self.pushed, self.counts = Rows(), {}, {}
        self.expire, self.admit, self.pushes = expire, admit, 0

    def forget(self) -> None:
        for i, last in list(self.pushed.items()):
            if self.pushes - last > self.expire:
                del self.pushed[i], self.rows[i]

    def push(self, ids: list[int], gradients: Any) -> None:
        self.forget()
        chosen = []
        for at, i in enumerate(ids):
            if i not in self.pushed and self.admit > 1:
                self.counts[i] = self.counts.get(i, 0) + 1
                if self.counts[i] < self.admit:
                    continue
            chosen.append(at)
        if not chosen:
            return
        self.pushes += 1
        self.rows.push([ids[at] for at in chosen], gradients[chosen], 1.0)
        self.pushed |= {ids[at]: self.pushes for at in chosen}

    def row(self, i: int) -> np.ndarray:
        self.forget()
        return (self.rows if i in self.pushed else Rows())[i][0]


def check(tables: list[RowTable], model: Forgetful, pushes: list[list[int]]) -> None:
    rng = np.random.default_rng(0)
    for ids in pushes:
        gradients = rng.normal(size=(len(ids), WIDTH)).astype(np.float32)
        model.push(ids, gradients)
        for table in tables:
            table.push(ids, gradients)
        expected = np.stack([model.row(i) for i in range(14)])
        for table in tables[1:]:  # The first is only pushed to, like a replica.
            assert np.array_equal(table.pull(np.arange(14)), expected)
            assert np.array_equal(table.read(np.arange(14)), expected)
    for table in tables:
        expected = np.stack([model.row(i) for i in range(14)])
        assert np.array_equal(table.read(np.arange(14)), expected)


@given(pushes=PUSHES, expire=st.integers(1, 6), admit=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_rows_expire_and_ids_are_admitted(
    pushes: list[list[int]], expire: int, admit: int
) -> None:
    options = {"expire_after": expire, "admit_after": admit}
    check([plain(**options), plain(**options)], Forgetful(expire, admit), pushes)


def test_rows_on_disk_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lmdb")
    monkeypatch.setattr(expiry, "_IN_MEMORY", 2)
    monkeypatch.setattr(expiry, "_ON_DISK", 2)
    rng = np.random.default_rng(1)
    pushes = [rng.choice(13, 3, replace=False).tolist() for _ in range(60)]
    tables = [
        plain(
            expire_after=4,
            admit_after=2,
            rows_in_memory=4,
            folder=str(tmp_path / str(number)),
        )
        for number in range(2)
    ]
    check(tables, Forgetful(4, 2), pushes)
    for table in tables:
        table.close()


@pytest.mark.slow
def test_memory_is_freed(tmp_path: Path) -> None:
    pytest.importorskip("lmdb")
    for options in {}, {"rows_in_memory": 50, "folder": str(tmp_path)}:
        table = plain(expire_after=20, **options)
        for start in range(0, 20_000, 100):
            table.push(np.arange(start, start + 100), np.ones((100, WIDTH), np.float32))
        # 21 pushes may be recent; the walk lags behind by a part of the rows.
        assert len(table) < 5000
        assert table.counts.expired + len(table) == 20_000
        table.close()


def test_the_last_pushes_are_part_of_the_state() -> None:
    one = plain(expire_after=3)
    for i in range(6):
        one.push([i], np.ones((1, WIDTH), np.float32))
    two = plain(expire_after=3)
    two.load(list(one.state()))
    for table in one, two:
        table.push([9], np.ones((1, WIDTH), np.float32))
    assert np.array_equal(one.read(np.arange(10)), two.read(np.arange(10)))
    assert np.array_equal(one.read([2]), plain().read([2]))
    assert not np.array_equal(one.read([3]), plain().read([3]))


def test_unadmitted_gradients_are_counted() -> None:
    table = RowTable(TableSpec("t", WIDTH, admit_after=3), PROGRAMS)
    ones = np.ones((2, WIDTH), np.float32)
    for _ in range(3):
        table.push([4, 5], ones)
    table.push([4, 7], ones)
    counts = table.counts
    assert (counts.unadmitted, counts.updated, counts.rows) == (5, 3, 2)
    assert np.array_equal(table.pull([4]), plain().pull([4]) - 1)
    assert table.counts.rows == 2
