"""Compares a table with a dictionary of rows; eviction, copies and errors."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow import optim
from fxflow.distributed.parameter_server.tables import (
    Field,
    RowTable,
    TableSpec,
    cuts,
    store,
)
from fxflow.distributed.parameter_server.tables.cuts import BLOCK, TableCut
from fxflow.distributed.parameter_server.tables.memory import Memory
from fxflow.errors import (
    ArgumentError,
    DtypeError,
    NonFiniteError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
)
from tests.distributed.parameter_server.tables.harness import (
    PROGRAMS,
    WIDTH,
    Rows,
    first_values,
    on_disk,
    plain,
)

IDS = st.lists(st.integers(0, 40).map(lambda i: i * (2**63 // 41)), max_size=12)


def content(blocks) -> dict:
    found = {}
    for block in blocks:
        for i, row, count in zip(block.ids.tolist(), block.rows, block.state[0]):
            assert i not in found
            found[i] = row.tolist(), int(count)
    return found


def as_content(rows: Rows) -> dict:
    return {i: (row.tolist(), count) for i, (row, count) in rows.items()}


STEPS = st.lists(
    st.tuples(st.sampled_from(["pull", "push", "cut", "block", "reload"]), IDS),
    max_size=25,
)


@pytest.mark.parametrize("kind", ["memory", "lru", "lfu"])
@settings(deadline=None, max_examples=25)
@given(steps=STEPS, seed=st.integers(0, 2**31))
def test_a_table_equals_a_dictionary_of_rows(
    kind, steps, seed, tmp_path_factory
) -> None:
    generator = np.random.default_rng(seed)
    expected = Rows()
    if kind == "memory":
        table = plain()
    else:
        table = on_disk(tmp_path_factory.mktemp("rows"), 5, kind)
    cut = was = seen = None
    with table:
        for step, ids in steps:
            if step == "pull":
                got = table.pull(ids)
                assert got.shape == (len(ids), WIDTH)
                for i, row in zip(ids, got):
                    assert np.array_equal(row, expected[i][0])
            elif step == "push":
                gradients = generator.normal(size=(len(ids), WIDTH)).astype(np.float32)
                scale = float(generator.choice([1.0, 0.25]))
                table.push(ids, gradients, scale)
                expected.push(ids, gradients, scale)
            elif step == "cut" and cut is None:
                cut, was, seen = table.state(), as_content(expected), []
            elif step == "block" and cut is not None:
                block = next(cut, None)
                if block is None:
                    assert content(seen) == was
                    cut = None
                else:
                    seen.append(block)
            elif step == "reload" and cut is None:
                table.load(list(table.state()))
        if cut is not None:
            assert content([*seen, *cut]) == was
        assert content(table.state()) == as_content(expected)
        assert len(table) == len(expected)
        if kind != "memory":
            assert table.counts.in_memory <= 5


def test_errors_name_the_table() -> None:
    table = plain()
    gradients = np.zeros((1, WIDTH), np.float32)
    with pytest.raises(OutOfRangeError, match=r"table 't': ids .* got -1"):
        table.pull([3, -1])
    with pytest.raises(OutOfRangeError, match=r"table 't'.*9223372036854775808"):
        table.pull(np.array([2**63], np.uint64))
    for ids in ([1.5], [[1]], 3, [True]):
        with pytest.raises(ArgumentError, match="table 't': ids must be integers"):
            table.pull(ids)
    for wrong in (np.zeros((1, 2), np.float32), np.zeros((2, WIDTH), np.float32)):
        with pytest.raises(ShapeError, match=r"table 't'.*\[1, 3\]"):
            table.push([1], wrong)
    with pytest.raises(DtypeError, match=r"table 't'.*float32, got float64"):
        table.push([1], np.zeros((1, WIDTH)))
    with pytest.raises(ArgumentError, match="table 't': give it an optimizer"):
        RowTable(TableSpec("t", WIDTH))
    reading = table.state()
    with pytest.raises(ArgumentError, match="table 't': a state is being read"):
        table.load([])
    reading.close()
    del reading
    forgotten = table.state()
    del forgotten
    assert list(table.state()) == []
    table.push([1], gradients)
    other = RowTable(TableSpec("u", WIDTH, optim.sgd(0.1)))
    with pytest.raises(ShapeError, match=r"table 'u'.*another optimizer"):
        other.load(table.state())
    (block,) = table.state()
    with pytest.raises(DtypeError, match=r"table 't'.*another optimizer"):
        table.put(block._replace(rows=block.rows.astype(np.float64)))


def test_calls_without_ids_do_nothing() -> None:
    table = plain()
    assert table.pull([]).shape == (0, WIDTH)
    table.push([], np.zeros((0, WIDTH), np.float32))
    assert len(table) == 0 and list(table.state()) == []


@pytest.mark.parametrize("policy", ["reject", "skip", "apply"])
def test_non_finite_gradients_follow_the_policy(policy) -> None:
    table = plain(non_finite=policy)
    first = table.pull([1, 2])
    gradients = np.ones((3, WIDTH), np.float32)
    gradients[1, 2] = np.nan
    ids = [1, 2, 1]
    if policy == "reject":
        with pytest.raises(NonFiniteError, match=r"table 't'.*1 rows.*id 2"):
            table.push(ids, gradients)
        assert np.array_equal(table.pull([1, 2]), first)
        assert table.counts.rejected == 1 and table.counts.updated == 0
        return
    table.push(ids, gradients)
    rows = table.pull([1, 2])
    assert np.array_equal(rows[0], first[0] - 1)
    assert np.isnan(rows[1, 2]) == (policy == "apply")
    assert np.array_equal(rows[1], first[1]) == (policy == "skip")
    assert table.counts.non_finite == 1


def test_short_floats_are_added_in_32_bits() -> None:
    spec = TableSpec("t", 2, optim.sgd(1.0), dtype="bfloat16")
    table = RowTable(spec)
    before = table.pull([1]).astype(np.float32)
    small = np.full((256, 2), 2.0**-9, table.spec.dtype)
    table.push([1] * 256, small)
    after = table.pull([1])
    assert after.dtype == table.spec.dtype
    assert np.allclose(before - after.astype(np.float32), 0.5, atol=0.01)
    table.push([1], np.zeros((1, 2), np.float32))


def test_the_error_of_a_full_table_says_what_to_do() -> None:
    table = plain()
    table._memory.capacity = 4
    table.pull([1, 2, 3, 4])
    with pytest.raises(OutOfMemoryError, match=r"table 't'.*4 rows.*rows_in_memory="):
        table.pull([5])
    assert len(table.pull([4, 1])) == 2


def test_used_rows_stay_in_memory(tmp_path) -> None:
    for evict, kept in (("lru", [7, 8, 9]), ("lfu", [0, 1, 2])):
        with on_disk(tmp_path, 8, evict) as table:
            for _ in range(3):
                table.pull([0, 1, 2])
            for i in range(3, 10):
                table.pull([i])
            loaded = table.counts.loaded
            table.pull(kept)
            assert table.counts.loaded == loaded, evict
            assert len(table) == 10 and table.counts.in_memory <= 8


def test_unchanged_rows_are_written_once(tmp_path) -> None:
    with on_disk(tmp_path, 2) as table:
        table.pull([1, 2])
        table.pull([3, 4])
        written = []
        put = table._disk.put

        def counted(ids, fields):
            written.append(len(ids))
            put(ids, fields)

        table._disk.put = counted
        table.pull([1, 2])
        table.pull([3, 4])
        assert written == [2, 0]


@pytest.mark.parametrize("limited", [False, True])
def test_state_returns_the_rows_changed_since_the_last_call(tmp_path, limited) -> None:
    table = on_disk(tmp_path, 3) if limited else plain()
    ones = np.ones((1, WIDTH), np.float32)
    with table:
        table.push([1, 2, 3], np.repeat(ones, 3, axis=0))
        table.note_changes("log")
        table.push([2, 7, 2, 9], np.repeat(ones, 4, axis=0))
        table.pull([4, 5, 6, 1])
        was = content(table.state())
        changed, all_rows = table.state(changed="log"), table.state()
        table.push([9], ones)  # changes the table during both readings
        table.pull([10, 11, 12])
        found = content(changed)
        assert sorted(found) == [2, 7, 9]
        assert content(all_rows) == was and found.items() <= was.items()
        assert sorted(content(table.state(changed="log"))) == [9]
        assert content(table.state(changed="log")) == {}


def test_closing_the_table_ends_a_reading(tmp_path) -> None:
    table = on_disk(tmp_path, 2)
    table.pull([1, 2, 3])
    reading = table.state()
    table.close()
    assert list(reading) == [] and list(tmp_path.iterdir()) == []


def test_a_call_may_have_more_ids_than_fit_into_memory(tmp_path) -> None:
    with on_disk(tmp_path, 4) as table:
        ids = list(range(50)) * 2
        rows = table.pull(ids)
        expected = Rows()
        assert np.array_equal(rows, [expected[i][0] for i in ids])
        table.push(ids, np.ones((100, WIDTH), np.float32))
        assert np.array_equal(table.pull(ids), rows - 1)


LIMITED = """
import resource, sys
import numpy as np
from fxflow.distributed.parameter_server.tables import (
    Field, RowPrograms, RowTable, TableSpec,
)
from fxflow.errors import OutOfMemoryError

WIDTH, ROWS, LIMIT = 256, 60_000, 40 << 20  # 61 MB of rows
field = Field((WIDTH,), np.dtype(np.float32))
programs = RowPrograms(
    (field,),
    lambda halves: [np.repeat(halves[:, 1:], WIDTH, 1)],
    lambda fields, gradients, scale: [fields[0] - gradients],
)
with open("/proc/self/status") as status:
    (used,) = [int(line.split()[1]) for line in status if line.startswith("VmData")]
limit = used * 1024 + LIMIT
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
options = {} if sys.argv[1] == "" else {"folder": sys.argv[1], "rows_in_memory": 8000}
blocks = np.random.default_rng(0).permutation(ROWS).reshape(-1, 2000)
try:
    with RowTable(TableSpec("t", WIDTH, **options), programs) as table:
        for _ in range(2):
            for ids in blocks:
                table.push(ids, np.ones((len(ids), WIDTH), np.float32))
        for ids in blocks[::3]:
            assert np.array_equal(table.pull(ids)[:, 5], ids - 2)
        print(len(table), table.counts.in_memory <= 8000)
except OutOfMemoryError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits as Linux counts them")
def test_a_table_may_be_larger_than_the_memory_limit(tmp_path) -> None:
    pytest.importorskip("lmdb")

    def run(folder: str) -> str:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.run(
            [sys.executable, "-c", LIMITED, folder],
            env=environment,
            check=True,
            capture_output=True,
            text=True,
            timeout=300,
        ).stdout

    assert run(str(tmp_path)) == "60000 True\n"
    assert "rows_in_memory=" in run("")


def test_check_finds_sums_that_are_not_finite() -> None:
    table = plain(non_finite="reject")
    table.check([1, 2], np.full((2, WIDTH), 3e38, np.float32))
    with pytest.raises(NonFiniteError, match=r"1 rows have inf or nan.* id 1"):
        table.check([1, 1], np.full((2, WIDTH), 3e38, np.float32))


# -- the rows at one moment ------------------------------------------------------------

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
    monkeypatch.setattr(cuts, "BLOCK_BYTES", 80)  # ten rows
    memory = Memory(FIELDS, 100)
    ids = np.arange(95)
    slots = memory.add(ids)
    memory.write(slots, [ids[:, None], ids])
    cut = TableCut(memory, None)
    cut.changing(slots[50:])
    blocks = list(iter(cut.next, None))
    assert max(len(block.ids) for block in blocks) == 10
    assert sorted(np.concatenate([b.ids for b in blocks])) == ids.tolist()


def test_reading_changes_nothing(tmp_path: Path) -> None:
    for table in plain(), on_disk(tmp_path, 4):
        ids = np.arange(10)
        table.push(ids, np.ones((10, WIDTH), np.float32))
        counts, asked = table.counts, [12, 0, 9, 12, 5]
        found = table.read(asked)
        assert table.counts == counts and len(table) == 10
        assert table.read([]).shape == (0, WIDTH)
        assert np.array_equal(found, table.pull(asked))
        assert len(table) == 11
        table.close()


def test_initial_values_are_kept_for_the_next_reads(monkeypatch) -> None:
    made: list[int] = []

    def counted(halves: np.ndarray) -> tuple[np.ndarray, ...]:
        made.append(len(halves))
        return first_values(halves)

    monkeypatch.setattr(store, "_INITIAL", 6 * 76)  # six rows
    programs = PROGRAMS._replace(init=counted)
    table = RowTable(TableSpec("t", WIDTH), programs)
    expected = Rows()
    for asked in [[3, 1], [1, 3, 1], range(4), range(20), [19, 7, 30], range(5)]:
        found = table.read(asked)
        assert np.array_equal(found, [expected[i][0] for i in asked])
        if list(asked) == [1, 3, 1]:
            assert made == [2]
    table.push([3], np.ones((1, WIDTH), np.float32))
    assert np.array_equal(table.read([3])[0], expected[3][0] - 0.5)
    assert len(table) == 1
