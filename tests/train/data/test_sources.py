"""Arrays, sequences, files and foreign iterables as datasets."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, DataError
from fxflow.train import data


def test_trees_of_arrays() -> None:
    dataset = data.arrays({"x": fnp.arange(6).reshape(3, 2), "y": np.arange(1, 4)})
    batch = next(iter(dataset.batch(2)))
    assert (batch["x"].tolist(), batch["y"].tolist()) == ([[0, 1], [2, 3]], [1, 2])


def test_arrays_of_different_lengths_are_refused() -> None:
    with pytest.raises(DataError, match=r"\['x'\] has 3, \['y'\] has 2"):
        data.arrays({"x": np.ones(3), "y": np.ones(2)})
    with pytest.raises(DataError, match="no axis"):
        data.arrays(np.float32(1))
    with pytest.raises(DataError, match="no array"):
        data.arrays({})


def test_memory_mapped_files_are_read(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(8.0))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert next(iter(data.arrays(rows).batch(3))).tolist() == [0, 1, 2]
    (tmp_path / "b.txt").write_text("2")
    (tmp_path / "a.txt").write_text("1")
    texts = data.files(str(tmp_path / "*.txt")).map(lambda p: Path(p).read_text())
    assert list(texts) == ["1", "2"]
    assert list(data.files([tmp_path / "b.txt"])) == [str(tmp_path / "b.txt")]
    with pytest.raises(DataError, match="no file matches"):
        data.files(tmp_path / "*.csv")


def test_lines_of_plain_and_compressed_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_bytes("eins\r\nzwei\nüb".encode())
    with gzip.open(tmp_path / "2.txt.gz", "wt") as stream:
        stream.write("drei\n\n")
    dataset = data.lines(tmp_path / "*.txt*")
    assert list(dataset) == ["eins", "zwei", "üb", "drei", ""]
    assert list(dataset.repeat(2)) == list(dataset) * 2
    (tmp_path / "1.txt").write_bytes(b"fine\n\xff\n")
    with pytest.raises(DataError, match=r"1\.txt, line 2: .*0xff"):
        list(dataset)
    replaced = data.lines(tmp_path / "1.txt", errors="replace")
    assert list(replaced) == ["fine", "\N{REPLACEMENT CHARACTER}"]


def test_iterators_are_not_indexed() -> None:
    with pytest.raises(ArgumentError, match=r"use iterable\(\)"):
        data.indexed(iter([1]))
    with pytest.raises(ArgumentError, match="expected an iterable"):
        data.iterable(3)


def test_a_generator_is_read_once() -> None:
    dataset = data.iterable(n for n in range(3))
    assert list(dataset) == [0, 1, 2]
    with pytest.raises(DataError, match="can be read only once"):
        list(dataset)


def test_a_source_that_became_shorter_is_an_error() -> None:
    dataset = data.iterable(range(5))
    batches = dataset.iterate()
    list(batches)
    with pytest.raises(DataError, match="ended after 3 elements, before the saved"):
        list(data.iterable(range(3)).iterate(batches.state))


class Tensor:
    """An object that NumPy can convert, like another library's tensor."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return np.array(self.value)


class Loader:
    """A loader that saves its position by methods of the given names."""

    def __init__(self, get: str, put: str) -> None:
        self.at = self.loads = 0
        setattr(self, get, lambda: {"at": self.at})
        setattr(self, put, self.load)

    def load(self, state: dict[str, int]) -> None:
        self.loads += 1
        self.at = state["at"]

    def __iter__(self) -> Iterator[Tensor]:
        while self.at < 5:
            self.at += 1
            yield Tensor(self.at)
        self.at = 0


@pytest.mark.parametrize(
    "names", [("get_state", "set_state"), ("state_dict", "load_state_dict")]
)
def test_positions_of_other_libraries_are_used(names: tuple[str, str]) -> None:
    batches = data.iterable(Loader(*names)).iterate()
    assert [int(next(batches)), int(next(batches))] == [1, 2]
    fresh = Loader(*names)
    rest = list(data.iterable(fresh).iterate(batches.state))
    assert [int(n) for n in rest] == [3, 4, 5] and fresh.loads == 1
    assert isinstance(rest[0], np.ndarray)


def test_arguments_must_be_datasets() -> None:
    with pytest.raises(ArgumentError, match="expected datasets, got a list"):
        data.zip([[1, 2]])
    with pytest.raises(ArgumentError, match="expected a list of datasets"):
        data.concatenate([])
    with pytest.raises(ArgumentError, match="expected 1 positive weights"):
        data.mix([data.indexed("a")], [0])
    with pytest.raises(ArgumentError, match="'first' or 'all'"):
        data.mix([data.indexed("a")], stop="last")
