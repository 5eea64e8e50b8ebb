"""Files that grow, change and vanish, and positions in them."""

from __future__ import annotations

import gzip
import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fxflow.errors import ArgumentError, DataError
from fxflow.train import data
from fxflow.train.data import Follow, readers


def numbers(dataset: data.Dataset[Any], state: Any = None) -> tuple[list[int], Any]:
    """Returns the numbers of the column `a`, and the last position."""
    batches = dataset.iterate(state)
    found = [n for batch in batches for n in batch["a"].to_pylist()]
    return found, batches.state


def soon(**more: Any) -> Follow:
    return Follow(**{"idle": 0.05, "linger": 0.0, "poll": 0.002, **more})


def write(path: Path, rows: range, end: str = "") -> None:
    with path.open("a") as stream:
        stream.write("".join(f'{{"a": {n}}}\n' for n in rows) + end)


def test_every_position_resumes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 40)
    write(tmp_path / "1.jsonl", range(23))
    write(tmp_path / "2.jsonl", range(0))
    write(tmp_path / "3.jsonl", range(23, 30))
    dataset = data.json_lines(tmp_path / "*.jsonl", size=4)
    batches = dataset.iterate()
    read = 0
    for batch in batches:
        read += len(batch["a"])
        state = json.loads(json.dumps(batches.state))
        assert numbers(dataset, state)[0] == list(range(read, 30))
    assert read == 30
    twice = [n for batch in dataset.repeat(2) for n in batch["a"].to_pylist()]
    assert twice == [*range(30)] * 2
    ahead = dataset.map(lambda batch: batch["a"].to_pylist(), workers=2).prefetch()
    assert [*itertools.chain(*ahead)] == list(range(30))


def test_processes_share_the_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 40)
    write(tmp_path / "1.jsonl", range(50))
    write(tmp_path / "2.jsonl", range(50, 60))
    dataset = data.json_lines(tmp_path / "*.jsonl", size=4)
    shares = [dataset.shard(i, 3, drop_remainder=False) for i in range(3)]
    found = [numbers(share)[0] for share in shares]
    assert (
        sorted([*itertools.chain(*found)]) == list(range(60))
        and min(map(len, found)) > 10
    )
    nested = [numbers(shares[1].shard(i, 2, drop_remainder=False))[0] for i in (0, 1)]
    assert sorted([*itertools.chain(*nested)]) == found[1] and nested[0] and nested[1]
    equal = [len(numbers(dataset.shard(i, 4))[0]) for i in range(4)]
    assert equal == [12] * 4


def test_what_is_appended_is_read_and_half_a_line_kept_back(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"

    def append() -> None:
        for n in range(30):
            write(path, range(0), f'{{"a": {n}')
            time.sleep(0.001)
            write(path, range(0), "}\n")
        write(path, range(0), '{"a": 30')

    thread = threading.Thread(target=append)
    dataset = data.json_lines(path, size=7, follow=soon(idle=0.3))
    thread.start()  # the file may not be there yet
    found, state = numbers(dataset)
    thread.join()
    assert found == list(range(30))
    write(path, range(0), "}\n")
    assert numbers(dataset, state)[0] == [30]


def test_new_files_follow_and_end_the_last_line(tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl", range(3), '{"a": 3}')
    dataset = data.json_lines(tmp_path / "*.jsonl", size=2, follow=soon())
    batches = dataset.iterate()
    assert [next(batches)["a"].to_pylist() for _ in range(2)] == [[0, 1], [2]]
    write(tmp_path / "2.jsonl", range(4, 6))
    assert next(batches)["a"].to_pylist() == [3, 4]
    assert next(batches)["a"].to_pylist() == [5]
    write(tmp_path / "0.jsonl", range(1))
    with pytest.raises(DataError, match=r"0\.jsonl has appeared, but files up to"):
        next(batches)


def test_files_at_urls_and_compressed_ones_appear_whole(tmp_path: Path) -> None:
    dataset = data.json_lines(f"file://{tmp_path}/*.json*", size=9, follow=soon())
    assert numbers(dataset)[0] == []
    write(tmp_path / "1.jsonl", range(2), '{"a": 2}')
    with gzip.open(tmp_path / "2.jsonl.gz", "wb") as stream:
        stream.write(b'{"a": 3}')
    assert numbers(dataset)[0] == [0, 1, 2, 3]
    assert numbers(data.json_lines(tmp_path / "2*", follow=soon()))[0] == [3]


def test_stop_and_linger(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, range(3))
    asked = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 4

    follow = Follow(stop=stop, poll=0.0, linger=60.0)
    batches = data.json_lines(path, size=2, follow=follow).iterate()
    assert [batch["a"].to_pylist() for batch in batches] == [[0, 1], [2]]
    assert len(asked) == 5  # the last row had waited for more


def test_files_that_change_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, range(9))
    dataset = data.json_lines(path, size=2)
    batches = dataset.iterate()
    next(batches)
    state = batches.state
    write(path, range(9, 10))
    with pytest.raises(DataError, match=r"log\.jsonl is not the file that it was: it"):
        list(batches)
    with pytest.raises(DataError, match="it had 81 bytes"):
        dataset.iterate(state).__next__()
    follow = data.json_lines(path, size=2, follow=soon())
    assert numbers(follow, state)[0] == list(range(2, 10))
    path.write_text('{"a": 0}\n')
    with pytest.raises(DataError, match="must not be rewritten"):
        numbers(follow, state)
    path.unlink()
    with pytest.raises(DataError, match="no file matches"):
        numbers(dataset)
    with pytest.raises(DataError, match=r"log\.jsonl, where the saved position is"):
        numbers(follow, state)
    with pytest.raises(DataError, match=r"cannot read .*log\.jsonl: .*No such file"):
        numbers(data.json_lines([path]))


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="idle must be at least 0 seconds, got -1"):
        Follow(idle=-1)
    with pytest.raises(ArgumentError, match="stop must be a function, got 3"):
        Follow(stop=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="errors must be 'raise', 'skip' or a func"):
        data.csv(tmp_path, errors="ignore")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="follow must be a Follow or None, got 5"):
        data.csv(tmp_path, follow=5)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="parts of files that grow"):
        data.csv(tmp_path, follow=Follow()).shard(0, 2)
