"""Features of raw columns: the same arrays when training and when serving."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fxflow.errors import ArgumentError, DataError, DtypeError, ShapeError
from fxflow.train.data import (
    Bucket,
    Cross,
    Features,
    FittedFeatures,
    Hash,
    Normalize,
    Vocabulary,
)

RNG = np.random.default_rng(0)
DESCRIBED = Features(
    {
        "site": Hash("site", 1000),
        "ad": Vocabulary("ad", minimum=2, most=3),
        "tags": Hash("tags", 50, width=3),
        "words": Vocabulary("words", width=2),
        "age": Bucket("age", [18, 30.5, 65]),
        "price": Normalize("price"),
        "both": Cross(["site", "ad"], 10_000),
    }
)


def raw(count: int) -> dict[str, Any]:
    """Rows with missing values in each column."""

    def some(values: list[Any]) -> list[Any]:
        return [v if RNG.random() > 0.1 else None for v in values]

    return {
        "site": some([f"s{i}.com" for i in RNG.integers(0, 30, count)]),
        "ad": some(RNG.integers(-5, 5, count).tolist()),
        "tags": some([["a", "é", "漢"][: RNG.integers(0, 4)] for _ in range(count)]),
        "words": some(
            [["x", None, "y", "z"][: RNG.integers(0, 5)] for _ in range(count)]
        ),
        "age": some((RNG.random(count) * 90).tolist()),
        "price": some((RNG.normal(size=count) * 3 + 1e6).tolist()),
        "unused": list(range(count)),
    }


BATCHES = [raw(40), raw(1), raw(60)]
FITTED = DESCRIBED.fit(BATCHES)


def test_a_program_that_serves_makes_the_same_arrays() -> None:
    # Another process has another seed of Python's own hashes.
    script = (
        "import json, sys; from fxflow.train.data import FittedFeatures; "
        "text, batch = json.load(sys.stdin); "
        "made = FittedFeatures.from_json(text)(batch); "
        "print(json.dumps({k: v.tolist() for k, v in made.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps([FITTED.to_json(), BATCHES[0]]),
        capture_output=True,
        text=True,
        check=True,
    )
    here = FITTED(BATCHES[0])
    assert json.loads(done.stdout) == {k: v.tolist() for k, v in here.items()}


def test_rows_alone_are_those_of_a_batch() -> None:
    whole = FITTED(BATCHES[2])
    for i in (0, 7, 59):
        alone = FITTED({name: column[i : i + 1] for name, column in BATCHES[2].items()})
        for name, array in alone.items():
            np.testing.assert_array_equal(array[0], whole[name][i])
    empty = FITTED({name: [] for name in BATCHES[0]})
    assert {name: array.shape for name, array in empty.items()} == {
        "site": (0,), "ad": (0,), "tags": (0, 3), "words": (0, 2), "age": (0,),
        "price": (0,), "both": (0,),
    }  # fmt: skip


def test_ids_are_below_sizes_and_0_is_missing() -> None:
    found = FITTED(BATCHES[0])
    for name, size in FITTED.sizes.items():
        ids = found[name]
        assert ids.dtype == np.int32 and ids.min() >= 0 and ids.max() < size
    missing = [v is None for v in BATCHES[0]["site"]]
    np.testing.assert_array_equal(found["site"] == 0, missing)
    either = [
        a is None or b is None
        for a, b in zip(BATCHES[0]["site"], BATCHES[0]["ad"], strict=True)
    ]
    np.testing.assert_array_equal(found["both"] == 0, either)
    assert set(FITTED.sizes) == {"site", "ad", "tags", "words", "age", "both"}


def test_vocabularies_count_and_cut() -> None:
    columns = [{"w": list("bbbaaac")}, {"w": list("cdda")}]
    for options, want in (
        ({}, "abcd"),  # a 4, b 3, c and d 2
        ({"minimum": 3}, "ab"),
        ({"most": 3}, "abc"),
        ({"minimum": 5}, ""),
    ):
        fitted = Features({"w": Vocabulary("w", **options)}).fit(columns)
        ids = fitted({"w": list("abcde")})["w"].tolist()
        assert ids == [want.find(letter) + 1 for letter in "abcde"]
        assert fitted.sizes == {"w": len(want) + 1}
    numbers = Features({"w": Vocabulary("w")}).fit([{"w": np.array([7, 7, -1])}])
    again = FittedFeatures.from_json(numbers.to_json())
    assert again({"w": np.array([-1, 7, 8])})["w"].tolist() == [2, 1, 0]


def test_hashes_spread_and_do_not_change() -> None:
    fitted = Features({"h": Hash("h", 101)}).fit([])
    ids = fitted({"h": np.arange(50_000)})["h"]
    counts = np.bincount(ids, minlength=101)
    assert counts[0] == 0 and counts[1:].min() > 400 and counts[1:].max() < 600
    assert ids[:4].tolist() == [1, 71, 23, 5]
    strings = fitted({"h": ["", "a", "漢"]})["h"].tolist()
    assert strings == [1, 11, 28]
    cross = Features({"c": Cross(["a", "b"], 2**31 - 1)}).fit([])
    one = cross({"a": [1, 2], "b": [2, 1]})["c"]
    assert one[0] != one[1]  # the order of columns counts


def test_statistics_of_one_pass_are_exact() -> None:
    # A large mean: sums of squares would lose all digits of the deviation.
    values = RNG.normal(size=1001) * 1e-3 + 1e6
    parts = np.split(values, [1, 1, 500, 998])
    fitted = Features({"x": Normalize("x")}).fit({"x": part} for part in parts)
    mean, deviation = fitted.learned["x"]
    np.testing.assert_allclose([mean, deviation], [values.mean(), values.std()], 1e-7)
    scaled = fitted({"x": values})["x"]
    assert scaled.dtype == np.float32
    np.testing.assert_allclose([scaled.mean(), scaled.std()], [0, 1], atol=1e-3)
    constant = Features({"x": Normalize("x")}).fit([{"x": [2.0, 2.0, None]}])
    assert constant({"x": [2, 3, None]})["x"].tolist() == [0, 1, 0]


def test_buckets_have_their_lower_edges() -> None:
    fitted = Features({"x": Bucket("x", [0, 1])}).fit([])
    values = [-np.inf, -1e-9, 0, 0.5, 1, np.inf, np.nan]
    assert fitted({"x": np.array(values)})["x"].tolist() == [1, 1, 2, 2, 3, 3, 0]


def test_lists_are_cut_and_padded() -> None:
    fitted = Features({"t": Hash("t", 9, width=2)}).fit([])
    rows = fitted({"t": [["a", "b", "c"], [], None, np.array(["b"]), ("a", None)]})["t"]
    a, b = rows[0]
    assert rows.tolist() == [[a, b], [0, 0], [0, 0], [b, 0], [a, 0]]


def test_lists_become_ragged_arrays() -> None:
    described = {
        "r": Hash("t", 9, capacity=5),
        "v": Vocabulary("t", width=2, capacity=8),
        "p": Hash("t", 9, width=3),
    }
    rows = [["a", "b", "c"], [], None, ["a", None]]
    fitted = Features(described).fit([{"t": rows}])
    again = FittedFeatures.from_json(fitted.to_json())
    for given in (rows, pa.array(rows)):
        found = again({"t": given})
        assert found["r"].values.shape == (5,) and found["r"].lengths.dtype == np.int32
        padded = [[i for i in row if i] for row in found["p"].tolist()]
        assert found["r"].tolist() == [*padded[:3], [*padded[3], 0]]
        assert found["v"].tolist() == [[1, 2], [], [], [1, 0]]
    one = fitted({"t": [["b"]]})["r"]
    assert one.values.tolist() == [padded[0][1], 0, 0, 0, 0]
    with pytest.raises(
        DataError, match="'r': 2 rows have 6 values, more than capacity"
    ):
        fitted({"t": [list("abc")] * 2})


def test_pyarrow_makes_the_same_arrays() -> None:
    for batch in BATCHES:
        table = {name: pa.array(values) for name, values in batch.items()}
        for (name, found), (_, want) in zip(
            FITTED(table).items(), FITTED(batch).items(), strict=True
        ):
            assert found.dtype == want.dtype
            np.testing.assert_array_equal(found, want, name)
    tables = [{k: pa.array(v) for k, v in batch.items()} for batch in BATCHES]
    other = pickle.loads(pickle.dumps(FITTED))  # for processes of `map`
    np.testing.assert_array_equal(other(BATCHES[0])["ad"], FITTED(BATCHES[0])["ad"])
    again = DESCRIBED.fit(tables)
    assert again.to_json() == FITTED.to_json()


def test_columns_keep_their_kind() -> None:
    fitted = Features({"x": Hash("x", 9)}).fit([{"x": [None]}, {"x": ["1"]}])
    assert fitted.kinds == {"x": "string"}
    with pytest.raises(DtypeError, match="'x': row 1 is of kind integer, those before"):
        fitted({"x": [None, 1]})
    with pytest.raises(DtypeError, match=r"row 5 is 3, of type int; expected a string"):
        Features({"x": Hash("x", 9)}).fit([{"x": ["a"] * 4}, {"x": ["a", 3]}])
    with pytest.raises(DtypeError, match="'x' is a Hash of strings or integers, but"):
        Features({"x": Hash("x", 9)}).fit([{"x": [0.5]}])
    with pytest.raises(DtypeError, match="is a Normalize of numbers, but column 'y'"):
        Features({"x": Normalize("y")}).fit([{"y": ["a"]}])
    with pytest.raises(DtypeError, match="row 0 is True, of type bool"):
        Features({"x": Hash("x", 9)}).fit([{"x": [True]}])
    with pytest.raises(DtypeError, match="row 1 is 'b', of type str; expected a list"):
        Features({"x": Hash("x", 9, width=2)}).fit([{"x": [["a"], "b"]}])
    with pytest.raises(DtypeError, match="does not fit 64 bits"):
        fitted = Features({"x": Hash("x", 9)}).fit([{"x": [2**70]}])
    numbers = Features({"x": Normalize("x")}).fit([{"x": [1, 2]}, {"x": [0.5]}])
    assert numbers.kinds == {"x": "float"}
    numbers({"x": [3]})


def test_invalid_arguments_are_rejected() -> None:
    for make, message in (
        (lambda: Hash("x", 1), "size must be an int from 2"),
        (lambda: Hash("x", 9, width=0), "width must be an int from 1"),
        (lambda: Hash("x", 9, capacity=0), "capacity must be an int from 1"),
        (lambda: Vocabulary("x", most=9, memory=8), "memory must be an int from 9"),
        (lambda: Vocabulary("x", minimum=0), "minimum must be"),
        (lambda: Vocabulary("x", most=0.5), "most must be"),  # type: ignore[arg-type]
        (lambda: Bucket("x", [1, 1]), "edges must be ascending"),
        (lambda: Cross(["x"], 9), "at least two columns"),
        (lambda: Cross("xy", 9), "at least two columns"),
        (lambda: Features({"x": 3}), "'x' must be one of Hash"),  # type: ignore[dict-item]
        (lambda: DESCRIBED.fit([{"site": ["a"]}]), "column 'ad' is missing"),
        (lambda: FITTED({**BATCHES[0], "site": "abc"}), "must be an array or a seq"),
        (lambda: FittedFeatures.from_json("{}"), "not a description of features"),
        (lambda: FittedFeatures.from_json("[1"), "not a description of features"),
    ):
        with pytest.raises(ArgumentError, match=message):
            make()
    later = json.dumps({**json.loads(FITTED.to_json()), "version": 1})
    with pytest.raises(ArgumentError, match="version 1 is not 2"):
        FittedFeatures.from_json(later)
    with pytest.raises(ShapeError, match="column 'ad' has 1 rows, others 2"):
        Features({"both": Cross(["site", "ad"], 9)}).fit(
            [{"site": ["ab"] * 2, "ad": [1]}]
        )
    with pytest.raises(ShapeError, match="must have one axis"):
        Features({"x": Normalize("x")}).fit([{"x": np.ones((2, 2))}])
