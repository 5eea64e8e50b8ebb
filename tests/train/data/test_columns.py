"""Columns of NumPy, lists and pyarrow: the same kinds, missing values and hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fxflow.errors import DtypeError
from fxflow.train.data.columns import (
    Index,
    _hash,
    column,
    hashes_of,
    lists,
    mixed,
)

RNG = np.random.default_rng(0)


def strings(count: int) -> list[str]:
    """Strings of all lengths around those of words, with letters of all widths."""
    letters = np.array(list("ab\0éß漢😀"))
    lengths = RNG.choice([0, 1, 7, 8, 9, 15, 16, 17, 40, 64, 255, 256, 257, 400], count)
    return ["".join(RNG.choice(letters, n)) for n in lengths.tolist()]


def test_many_strings_have_the_hashes_of_each() -> None:
    texts = strings(300)
    each = mixed(np.array([_hash(text.encode()) for text in texts], np.uint64))
    np.testing.assert_array_equal(hashes_of(texts), each)
    for few in (texts[:3], texts[:0]):
        np.testing.assert_array_equal(hashes_of(few), each[: len(few)])
    for made in (
        pa.array(texts),
        pa.array(texts, pa.large_string()),
        pa.array(texts, pa.string_view()),
        pa.array(["x", *texts, "y"]).slice(1, 300),
        pa.chunked_array([texts[:7], texts[7:]]),
        pa.array(texts).dictionary_encode(),
        np.array(texts, object),
    ):
        np.testing.assert_array_equal(column("x", made, 0).hashes, each)
    assert len(np.unique(each)) == len(set(texts))


def test_hashes_of_similar_strings_are_uniform() -> None:
    # Numbers in text differ in few bits: each bit of the hash must still be even, and
    # changes with probability 1/2 when one character does.
    a = hashes_of([f"user-{n:06d}" for n in range(20_000)])
    b = hashes_of([f"user-{n:06d}"[:-1] + "x" for n in range(20_000)])
    for found in (a, a ^ b):
        bits = np.unpackbits(found.view(np.uint8)).reshape(-1, 64).mean(0)
        assert np.abs(bits - 0.5).max() < 0.02
    assert len(np.unique(a)) == 20_000
    # Zero bytes at the end count.
    assert len(set(hashes_of(["", "\0", "\0\0", "\0" * 8, "\0" * 16]).tolist())) == 5


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "é", ""], "string"),
        ([1, None, -(2**63)], "integer"),
        ([1.5, None, float("nan"), 2.0], "float"),
        ([1, 2.5, None], "float"),
        ([None, None], ""),
        ([], ""),
    ],
)
def test_lists_and_pyarrow_are_the_same(values: list[Any], kind: str) -> None:
    of_list = column("x", values, 0)
    of_arrow = column("x", pa.array(values, from_pandas=False), 0)
    for found in (of_list, of_arrow, column("x", np.array(values, object), 0)):
        assert found.kind == kind and len(found) == len(values)
        want = [v is None or v != v for v in values]
        assert found.missing.tolist() == want
        assert dict(found.counts()) == {
            v: 1 for v, missing in zip(values, want, strict=True) if not missing
        }
        if kind != "float":
            present = ~found.missing
            same = of_list.hashes[present] == found.hashes[present]
            assert same.all()


def test_lists_of_lists() -> None:
    rows = [["a", "b"], None, [], ["c", None]]
    wanted = ["a", "b", "c", None]
    for given in (rows, pa.array(rows), pa.array([["z"], *rows]).slice(1)):
        lengths, values = lists("x", given, 0)
        found = values if isinstance(values, list) else values.to_pylist()
        assert lengths.tolist() == [2, 0, 0, 2] and found == wanted
    lengths, values = lists("x", pa.nulls(3), 0)
    assert lengths.tolist() == [0, 0, 0] and values == []


def test_values_of_other_types_are_refused() -> None:
    for given, message in (
        (pa.array([None, True]), "row 11 is True, of type bool"),
        (pa.array([[1]]), r"row 10 is \[1\], of type list"),
        (pa.array([2**63], pa.uint64()), "does not fit 64 bits"),
        (np.array([2**63], np.uint64), "does not fit 64 bits"),
        ([1, "a"], "row 10 is 1, of type int; expected a string"),
        ([1, b"a"], "row 11 is b'a', of type bytes; expected a string or a number"),
        ([None, True], "row 11 is True, of type bool"),
    ):
        with pytest.raises(DtypeError, match=message):
            column("x", given, 10)
    with pytest.raises(DtypeError, match="row 11 is of type string; expected a list"):
        lists("x", pa.array([None, "a"]), 10)


def test_an_index_finds_what_it_knows() -> None:
    for count in (0, 1, 2, 3, 1000, 5000):
        known = RNG.integers(0, 2**64, count, np.uint64)
        known[: count // 4] >>= np.uint64(40)  # many in one bucket
        index = Index(known)
        np.testing.assert_array_equal(index.find(known), np.arange(1, count + 1))
        assert not index.find(RNG.integers(0, 2**64, 100, np.uint64)).any()
        assert len(index.find(known[:0])) == 0
