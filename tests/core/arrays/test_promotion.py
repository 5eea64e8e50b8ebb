"""Promotion: the whole lattice against golden results, and the two public questions.

`data/promotion.json` holds the result of every pair of dtypes, weak ones with a `*`, as
computed with JAX 0.10.2 with and without its x64 flag: one letter a pair, the row of a
dtype beginning at itself; `!` is an error. The letters are explained in the file.
"""

import itertools
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow.numpy as fnp
from fxflow._config import config
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.promotion import (
    dtype_and_weak,
    joint_dtype,
    lub,
    promote_types,
    result_type,
)
from fxflow.errors import DtypeError

GOLDEN = json.loads(
    (Path(__file__).parent / "data" / "promotion.json").read_text(encoding="utf-8")
)
LETTERS = dict(entry.split("=") for entry in GOLDEN["results"].split())
NODES = [(d, weak) for d in dtypes.ALL for weak in (False, True)]
nodes = st.sampled_from(NODES)


def parse(name: str) -> tuple[np.dtype, bool]:
    return dtypes.dtype(name.removesuffix("*")), name.endswith("*")


def outcome(*operands: tuple[np.dtype, bool]) -> str:
    try:
        dtype, weak = lub(*zip(*operands, strict=True))
    except DtypeError:
        return "!"
    return dtype.name + "*" * weak


@pytest.mark.parametrize("x64", [False, True])
def test_every_pair(x64: bool) -> None:
    table = GOLDEN[f"x64={x64}"]
    names = list(table)
    assert len(names) == (55 if x64 else 47)
    with config.override(x64=x64):
        for index, (left, row) in enumerate(table.items()):
            for right, letter in zip(names[index:], row, strict=True):
                a, b = parse(left), parse(right)
                assert outcome(a, b) == LETTERS[letter], (left, right)
                assert outcome(b, a) == LETTERS[letter], (right, left)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("float32", "float64", "float64"),
        ("float64", float, "float64"),
        ("int64", "int32", "int64"),
        ("int64", "float32", "float32"),
        ("int64", float, "float64"),
        ("int64", "uint64", "float64"),
        ("float64", "complex64", "complex128"),
        ("float64", complex, "complex128"),
        ("uint32", "int32", "int32"),
        ("float32", complex, "complex64"),
        ("bool", int, "int32"),
        (int, float, "float32"),
    ],
)
def test_64_bits_come_out_only_if_they_went_in(a, b, result) -> None:
    assert promote_types(a, b).name == promote_types(b, a).name == result


@given(nodes)
def test_with_itself(x: tuple[np.dtype, bool]) -> None:
    assert lub((x[0],), (x[1],)) == lub((x[0], x[0]), (x[1], x[1]))
    assert lub((x[0],), (x[1],))[0] is x[0]


@given(st.lists(nodes, min_size=1, max_size=4))
def test_order_does_not_matter(operands: list[tuple[np.dtype, bool]]) -> None:
    results = {outcome(*order) for order in itertools.permutations(operands)}
    assert len(results) == 1


def test_bool_is_never_weak() -> None:
    bools = (dtypes.bool_, dtypes.bool_)
    assert lub(bools, (True, True)) == (dtypes.bool_, False)
    assert lub((dtypes.bool_,), (True,)) == (dtypes.bool_, False)
    assert result_type(True, 1, return_weak=True) == (dtypes.int32, True)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ("float8_e5m2", "float32", "f8_e5m2 and f32: f8_e5m2 does not promote"),
        ("float8_e5m2", "float8_e4m3fn", "f8_e5m2 and f8_e4m3fn do not promote"),
        ("int4", "int32", "i4 and i32: i4 does not promote"),
        ("int4", float, "i4 and f32~: i4 does not promote"),
        (dtypes.key_fry, "uint32", "random keys do not combine with numbers"),
        ("uint32", dtypes.key_fry, "got key<fry> and u32"),
        (dtypes.float0, "float32", "float0.*does not combine with f32"),
    ],
)
def test_no_common_dtype(a, b, words: str) -> None:
    with pytest.raises(DtypeError, match=words):
        promote_types(a, b)


def test_the_error_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="cast explicitly"):
        promote_types("float8_e5m2", "float16")


def test_a_key_alone_is_a_key() -> None:
    key = dtypes.key_fry
    assert result_type(key) is key
    assert promote_types(key, key) is key
    assert promote_types(dtypes.float0, dtypes.float0) is dtypes.float0


def test_a_dtype_outside_the_lattice() -> None:
    with pytest.raises(DtypeError, match="not in the promotion lattice"):
        lub((np.dtype("V4"), dtypes.float32), (False, False))


# -- result_type: what operands may be -------------------------------------------------


class Kind(int):
    """An int by another name."""


def operand(dtype: str, weak: bool) -> SimpleNamespace:
    aval = SimpleNamespace(dtype=dtypes.dtype(dtype), weak_type=weak, shape=())
    return SimpleNamespace(aval=aval)


@pytest.mark.parametrize(
    ("x", "dtype", "weak"),
    [
        (operand("float16", False), "float16", False),
        (operand("float32", True), "float32", True),
        (operand("int64", False).aval, "int64", False),
        (operand("int32", True).aval, "int32", True),
        (3, "int32", True),
        (True, "bool", False),
        (1.5, "float32", True),
        (1j, "complex64", True),
        (Kind(3), "int32", True),
        (np.ones(2), "float32", False),
        (np.arange(2, dtype="i8"), "int32", False),
        (np.float64(1), "float32", False),
        (np.int8(1), "int8", False),
        (np.dtype("f8"), "float64", False),
        ("float64", "float64", False),
        (np.float64, "float64", False),
        (float, "float32", True),
        (bool, "bool", False),
        ("float", "float32", False),
        (dtypes.key_fry, "key<fry>", False),
    ],
    ids=repr,
)
def test_an_operand(x: object, dtype: str, weak: bool) -> None:
    assert dtype_and_weak(x) == (dtypes.dtype(dtype), weak)
    assert result_type(x, return_weak=True) == (dtypes.dtype(dtype), weak)


def test_result_type_of_several() -> None:
    half = operand("float16", False)
    assert result_type(half, 2, 3.0) is dtypes.float16
    assert result_type(half, np.float64(1)) is dtypes.float32
    assert result_type(half, "float64") is dtypes.float64
    assert result_type(half, 1j, return_weak=True) == (dtypes.complex64, False)
    assert result_type(2, 1j, return_weak=True) == (dtypes.complex64, True)
    with config.override(x64=True):
        assert result_type(1.0) is dtypes.float64
        assert result_type(half, np.float64(1)) is dtypes.float64
        assert result_type(half, 1.0) is dtypes.float16


def test_result_type_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        result_type()
    with pytest.raises(DtypeError, match="got None"):
        result_type(None)
    with pytest.raises(DtypeError, match="of type list"):
        result_type([1, 2])
    with pytest.raises(DtypeError, match="not supported"):
        result_type(np.array(["a"]))


def test_objects_that_stand_for_arrays() -> None:
    class Wrapper:
        def __fxflow_array__(self) -> object:
            return np.ones(2, np.int8)

    class Described(Wrapper):
        shape, dtype = (2,), np.dtype(np.int16)

    assert result_type(Wrapper()) == np.int8
    assert result_type(Described()) == np.int16


def test_the_classes_of_dtypes_are_not_python_types():
    assert promote_types(fnp.bool_, fnp.int32) == np.int32
    assert promote_types(fnp.float64, fnp.float32) == np.float64
    assert result_type(fnp.bool_) == np.bool_
    assert result_type(fnp.complex128, 1.0) == np.complex128


def test_an_array_stands_for_its_dtype():
    assert promote_types(fnp.zeros(2, "int8"), "int16") == np.int16
    assert promote_types(np.zeros(2, "int8"), fnp.asarray(2.0)) == np.float32
    assert joint_dtype([1, np.float16(1), fnp.int8(2)]) == np.float16
