"""Making arrays: dtypes, copies, what is refused."""

import array
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.numpy.oracle import BFLOAT16, same


@pytest.mark.parametrize(
    ("data", "dtype", "weak"),
    [
        (1.0, "float32", True),
        (1, "int32", True),
        (True, "bool", False),
        (1j, "complex64", True),
        ([1.0, 2], "float32", False),
        ([1, 2], "int32", False),
        ([], "float32", False),
        ([[1, 2], [3, 4]], "int32", False),
        ([True, False], "bool", False),
        ((1, 2j), "complex64", False),
        (np.arange(3), "int32", False),
        (np.arange(3.0), "float32", False),
        (np.float64(2), "float32", False),
        (np.ones(2, BFLOAT16), "bfloat16", False),
        (np.ones(2, ">f4"), "float32", False),
        (range(3), "int32", False),
        (b"ab" and bytearray(b"ab"), "uint8", False),
    ],
)
@pytest.mark.parametrize("function", (fnp.asarray, fnp.array))
def test_dtypes_of_data(data: Any, dtype: str, weak: bool, function: Any) -> None:
    out = function(data)
    assert (out.dtype.name, out.weak_type) == (dtype, weak)
    assert same(np.asarray(data), out)


def test_a_dtype_that_is_asked_for_is_kept() -> None:
    assert fnp.asarray([1, 2], "float64").dtype == np.float64
    assert fnp.asarray(np.arange(3), np.int64).dtype == np.int64
    assert fnp.asarray(1.0, fnp.bfloat16).dtype == BFLOAT16
    assert fnp.asarray(fnp.ones(2), "int8").tolist() == [1, 1]
    assert not fnp.asarray(fnp.asarray(1.0), "float32").weak_type
    assert fnp.asarray(1.7, int).tolist() == 1


def test_wide_integers_that_do_not_fit() -> None:
    for data in ([2**40], np.array([1, 2**40]), 2**40, [[2**40, 1]]):
        with pytest.raises(OverflowError, match="1099511627776"):
            fnp.asarray(data)
    assert fnp.asarray([2**40], "int64").tolist() == [2**40]
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        fnp.asarray([1, 300], "int8")


def test_host_memory_is_copied() -> None:
    for dtype in (np.float32, np.float64, np.int64):
        host = np.zeros(3, dtype)
        made = [fnp.asarray(host), fnp.array(host), fnp.asarray(host, dtype)]
        made.append(host + fnp.zeros(3))
        host[:] = 7
        assert all(a.tolist() == [0, 0, 0] for a in made)


def test_lists_of_arrays_are_stacked() -> None:
    x = fnp.asarray([1.0, 2.0])
    assert same([[1, 2], [3, 4]], fnp.asarray([x, x + 2]))
    assert same([[1, 5], [2, 3]], fnp.asarray([[x[0], 5], [x[1], 3]]))
    assert same([1, 2], fxflow.jit(lambda a, b: fnp.array([a, b]))(1.0, 2.0))
    assert fnp.asarray([x[0], 1, np.int8(3)]).dtype == np.float32
    assert float(fxflow.grad(lambda v: fnp.stack(fnp.array([v, v * v]))[1])(3.0)) == 6
    with pytest.raises(ShapeError, match="items of one list have shapes"):
        fnp.array([x, x[:1]])


@pytest.mark.parametrize("data", ([[1], [1, 2]], "text", object(), ["a"], None, {1: 2}))
def test_values_that_are_not_data_are_refused(data: Any) -> None:
    with pytest.raises((ArgumentError, DtypeError)):
        fnp.asarray(data)


def test_copies_are_made_only_when_asked_for() -> None:
    x = fnp.asarray([1.0, 2.0])
    assert fnp.asarray(x) is x
    for y in (fnp.array(x), fnp.copy(x), x.copy(), fnp.asarray(x, copy=True)):
        assert y is not x and y.tolist() == [1, 2]
    with pytest.raises(ValueError, match="copy=False, but host memory"):
        fnp.asarray([1.0], copy=False)
    assert fnp.asarray(x, copy=False) is x


def test_more_axes_and_order() -> None:
    assert fnp.array(3, ndmin=2).shape == (1, 1)
    assert fnp.array(np.ones((2, 3)), order="F").shape == (2, 3)
    with pytest.raises(ArgumentError, match="order must be"):
        fnp.array([1], order="X")


def test_astype() -> None:
    x = fnp.asarray([1.7, -2.2])
    assert fnp.astype(x, int).tolist() == [1, -2]
    assert x.astype(bool).tolist() == [True, True]
    assert fnp.asarray([1 + 2j]).astype("float32").tolist() == [1]
    assert fnp.asarray([2j]).astype(bool).tolist() == [True]
    assert x.astype("float32") is x
    assert fnp.astype(x, "float32", copy=True) is not x
    with pytest.raises(DtypeError, match="keys and numbers do not convert"):
        fxflow.random.key(0).astype(int)


def test_arrays_are_made_on_the_given_device() -> None:
    device = fxflow.devices()[0]
    for x in (fnp.zeros(2, device=device), fnp.asarray([1.0], device=device)):
        assert x.device == device and x.committed


def test_keys_and_numbers_do_not_convert() -> None:
    keys = fxflow.random.split(fxflow.random.key(0), 2)
    assert (fnp.array([keys[0], keys[1]]) == keys).all()
    assert fnp.asarray(keys, keys.dtype) is keys
    for data in (3, [1, 2], np.ones((2, 2), np.uint32), fnp.ones(2)):
        with pytest.raises(DtypeError, match="keys and numbers do not convert"):
            fnp.asarray(data, keys.dtype)


def test_python_numbers_in_lists_are_weak() -> None:
    assert fnp.array([0, np.float16(1)]).dtype == "float16"
    assert fnp.array([[0.5, 1], [np.int8(1), 2]]).dtype == "float32"
    assert fnp.array([0, np.int8(1)]).dtype == "int8"
    assert fnp.array([0, fnp.int8(1)]).dtype == "int8"
    assert fnp.array([np.float16(1), np.int32(2)]).dtype == "float16"
    with pytest.raises(OverflowError, match="300 does not fit int8"):
        fnp.array([300, np.int8(1)])


def test_full_of_64_bits() -> None:
    assert int(fnp.full(2, 1 << 40, "int64")[0]) == 1 << 40
    assert fnp.full_like(fnp.zeros(2, "float64"), 0.1)[0] == fnp.float64(0.1)
    assert fxflow.lax.full((), np.float64(0.1), "float64") == fnp.float64(0.1)
    assert fnp.concatenate([np.full(1, 0.1)], dtype="float64")[0] == fnp.float64(0.1)


@pytest.mark.parametrize("make", [fnp.array, fnp.asarray])
def test_a_list_that_contains_itself(make):
    endless = [1.0]
    endless.append(endless)
    with pytest.raises(ArgumentError, match="nested more than 64 deep; does one"):
        make(endless)


def test_what_shares_its_numbers_by_the_buffer_protocol() -> None:
    given = array.array("f", [1.0, 2.5])
    for data in (given, memoryview(given), bytearray(b"ab")):
        same(fnp.asarray(data), np.asarray(data))
    assert fnp.array(array.array("i", [1, 2])).dtype == "int32"
    with pytest.raises((ArgumentError, DtypeError)):
        fnp.asarray(b"ab")
