"""Rows of Parquet, CSV, JSON lines and iterables as batches of columns."""

from __future__ import annotations

import gzip
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from fxflow.errors import ArgumentError, DataError
from fxflow.train import data
from fxflow.train.data import BadRows, readers

RNG = np.random.default_rng(0)


def table(rows: int) -> Any:
    """Rows with missing values in each column."""

    def some(values: list[Any]) -> list[Any]:
        return [v if RNG.random() > 0.1 else None for v in values]

    return pa.table(
        {
            "n": some(RNG.integers(-9, 9, rows).tolist()),
            "s": some([f"é{i}, x" for i in range(rows)]),
            "f": some(RNG.random(rows).tolist()),
        }
    )


TABLE = table(300)


def read(dataset: data.Dataset[Any]) -> Any:
    return pa.concat_tables(
        [pa.table(batch) for batch in dataset], promote_options="permissive"
    )


def json_lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("block", [1 << 20, 90, 700])
def test_formats_have_the_same_rows(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", block)
    monkeypatch.setattr(readers, "_DECODED", 50)
    parts = [TABLE.slice(0, 130), TABLE.slice(130, 1), TABLE.slice(131)]
    types = {"n": "integer", "s": "string", "f": "float"}
    for i, part in enumerate(parts):
        pq.write_table(part, tmp_path / f"{i}.parquet", row_group_size=60)
        pa.csv.write_csv(part, tmp_path / f"{i}.csv")
        json_lines(tmp_path / f"{i}.jsonl", part.to_pylist())
        with gzip.open(tmp_path / f"{i}.csv.gz", "wb") as stream:
            stream.write((tmp_path / f"{i}.csv").read_bytes())
    for dataset in (
        data.parquet(tmp_path / "*.parquet", size=70),
        data.parquet(f"file://{tmp_path}/*.parquet", size=70),
        data.csv(tmp_path / "*.csv", size=70, types=types),
        data.csv(tmp_path / "*.csv.gz", size=70, types=types),
        data.json_lines(f"file://{tmp_path}/*.jsonl", size=70, types=types),
    ):
        batches = list(dataset)
        assert [len(batch["n"]) for batch in batches] == [70] * 4 + [20]
        assert read(dataset).equals(TABLE)
    chosen = data.parquet(tmp_path / "*.parquet", columns=["f", "n"], size=1000)
    assert read(chosen).equals(TABLE.select(["f", "n"]))
    assert len(
        pickle.dumps(next(iter(data.parquet(tmp_path / "*.parquet", size=3))))
    ) < (1000)


def test_lines_without_a_header_and_with_other_delimiters(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbf1\t?\tx,y\r\n2\t2020-01-01\t\r\n")
    dataset = data.csv(
        path,
        names=["a", "b", "c"],
        delimiter="\t",
        missing=["?"],
        columns=["c", "a", "b"],
    )
    want = [
        {"c": "x,y", "a": 1, "b": None},
        {"c": "", "a": 2, "b": "2020-01-01"},  # dates are strings
    ]
    assert read(dataset).to_pylist() == want
    path.write_text("")
    assert list(data.csv(path)) == []
    path.write_text("a,b\n")
    assert list(data.csv(path)) == []


def test_bad_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = ["a,b", "1,x", "2", "", '3,"y', '4,"z"', "q,5", "7,\xff", "8,w"]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    types = {"a": "integer"}
    with pytest.raises(DataError, match=r"a\.csv, row 3: .*Expected 2 columns, got 1"):
        list(data.csv(path, types=types))
    bad: list[BadRows] = []
    dataset = data.csv(path, types=types, errors=bad.append)
    batches = dataset.iterate()
    assert next(batches)["a"].to_pylist() == [1, 4, 8]
    assert [row for _, row, _, _ in bad] == [3, 5, 7, 8]
    assert "does not end" in bad[1].reason and "'q'" in bad[2].reason
    assert "utf-8" in bad[3].reason and {b.number for b in bad} == {1}
    assert batches.state["skipped"] == 4
    with pytest.warns(
        UserWarning, match=r"skipped rows of .*a\.csv.*first of them row 3"
    ):
        list(data.csv(path, types=types, errors="skip"))


def test_bad_objects_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = '{"a": 1, "t": ["x"]}\n\n{"b": "y"}\n'
    path.write_text(good)
    dataset = data.json_lines(path)
    assert read(dataset).to_pylist() == [
        {"a": 1, "t": ["x"], "b": None}, {"a": None, "t": None, "b": "y"}
    ]  # fmt: skip
    for line, reason in (
        ('{"a": "z"}', "changed from number to string|parse"),
        ('{"a": 1.5}', "1.5"),
        ('{"a": 1} {"a": 2}', "1 lines have 2 rows"),
        ("[3]", "from object to array"),
        ('{"a": ', "JSON parse error"),
    ):
        path.write_text(good + line + '\n{"a": 3}\n')
        with pytest.raises(DataError, match=rf"a\.jsonl, row 4: .*({reason})"):
            list(data.json_lines(path, types={"a": "integer"}))
        bad: list[BadRows] = []
        rest = data.json_lines(path, types={"a": "integer"}, errors=bad.append)
        assert read(rest)["a"].to_pylist() == [1, None, 3] and len(bad) == 1


def test_a_field_that_appears_later_is_refused_or_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 20)
    path = json_lines(tmp_path / "a.jsonl", [{"a": None}, {"a": 1}, {"a": 2, "b": 3}])
    with pytest.raises(DataError, match="row 3: 'b' is not a field of the rows before"):
        list(data.json_lines(path))
    for columns in (["a"], ["c", "a"]):
        found = read(data.json_lines(path, columns=columns)).to_pylist()
        assert found == [dict.fromkeys(columns) | {"a": n} for n in (None, 1, 2)]


def test_types_are_those_of_the_first_rows(tmp_path: Path) -> None:
    def written(**columns: Any) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        pq.write_table(pa.table(columns), path)
        return path

    first = written(a=pa.array([1, None], pa.int32()), b=pa.array([None, None]))
    more = written(a=pa.array([3.0]), b=pa.array(["x"]))
    assert read(data.parquet([first, more], size=9)).to_pylist()[2] == {
        "a": 3,
        "b": "x",
    }
    for other, message in (
        (written(a=[1, 2.5], b=["x", "y"]), "3.parquet, row 1: .*truncated"),
        (
            written(a=["1"], b=["x"]),
            "column 'a' of .* has type string, that of the fil",
        ),
        (written(a=[1]), "has no column 'b'; it has"),
        (
            written(a=[1], b=["x"], c=[2]),
            "has a column 'c' that the files before do no",
        ),
    ):
        with pytest.raises(DataError, match=message.replace("3.parquet", other.name)):
            list(data.parquet([first, other]))
    floats = data.parquet([first, tmp_path / "2.parquet"], types={"a": "float"})
    assert read(floats)["a"].to_pylist() == [1, None, 1, 2.5]


def test_corrupt_row_groups_and_files(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, row_group_size=100, compression="zstd")
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(1)
    damaged = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    for i in range(start, start + chunk.total_compressed_size):
        damaged[i] ^= 0xA5
    path.write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.parquet, row 100: row group 1 is corrupt"):
        list(data.parquet(path))
    bad: list[BadRows] = []
    batches = data.parquet(path, errors=bad.append).iterate()
    rest = pa.table(next(batches))
    assert rest.equals(pa.concat_tables([TABLE.slice(0, 100), TABLE.slice(200)]))
    assert batches.state["skipped"] == 100 and bad[0][1:3] == (100, 100)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"cannot read .*a\.parquet: .* 0 bytes"):
        list(data.parquet(path, errors="skip"))


def test_rows_of_iterables(tmp_path: Path) -> None:
    rows = [{"a": n, "b": str(n)} for n in range(5)]
    dataset = data.records(rows, size=2)
    batches = dataset.iterate()
    assert next(batches) == {"a": [0, 1], "b": ["0", "1"]}
    assert list(dataset.iterate(batches.state)) == list(dataset)[1:]
    assert list(data.records(data.indexed(rows), size=9, columns=["c", "a"])) == [
        {"c": [None] * 5, "a": [0, 1, 2, 3, 4]}
    ]
    with pytest.raises(DataError, match="row 1 of a batch has a field 'c' that row 0"):
        list(data.records([{"a": 1}, {"c": 2}], size=2))
    with pytest.raises(DataError, match="row 0 of a batch is a int, not a dictionary"):
        list(data.records([3], size=2))  # type: ignore[list-item]


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b,a\n1,2,3\n")
    for make, message in (
        (lambda: data.csv(path, size=0), "size must be"),
        (lambda: data.csv(path, delimiter="::"), "delimiter must be one character"),
        (lambda: data.csv(path, columns="a"), "columns must be a sequence of strings"),
        (
            lambda: data.csv(path, types={"a": "int"}),
            "types.'a'. must be 'string', 'in",
        ),
        (
            lambda: data.csv(path, columns=["a"], types={"b": "float"}),
            "names .'b'., wh",
        ),
        (lambda: data.csv(path, columns=[]), "columns must name at least one"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()
    for dataset, message in (
        (data.csv(path), "has two columns 'a'"),
        (data.csv(path, columns=["c"]), r"has no column 'c'; it has \['a', 'b', 'a'\]"),
    ):
        with pytest.raises(DataError, match=message):
            list(dataset)


def test_the_extra_is_named_where_pyarrow_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'fxflow\[arrow\]'"):
        data.parquet("clicks.parquet")
