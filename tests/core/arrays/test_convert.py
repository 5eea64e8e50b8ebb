"""What counts as an array, and what is said about what does not."""

from __future__ import annotations

import enum

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import (
    as_array,
    is_arraylike,
    like_type,
    typeof,
    unwrapped,
)
from fxflow.errors import ArgumentError


class Wrapper:
    """What the `__fxflow_array__` protocol is for."""

    def __init__(self, value):
        self.value = value

    def __fxflow_array__(self):
        return self.value


class Level(enum.IntEnum):
    LOW = 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "bool[]"),
        (3, "i32[]~"),
        (3.0, "f32[]~"),
        (1j, "c64[]~"),
        (Level.LOW, "i32[]~"),
        (np.float64(3.0), "f32[]"),
        (np.float16(3.0), "f16[]"),
        (np.bool_(True), "bool[]"),
        (np.ones((2, 3)), "f32[2,3]"),
        (np.arange(3), "i32[3]"),
        (np.ones(2, np.uint8), "u8[2]"),
        (Wrapper(np.ones(2, np.float32)), "f32[2]"),
    ],
)
def test_types(value, text):
    assert str(typeof(value)) == text
    assert is_arraylike(value)
    array = as_array(value)
    assert str(array.aval) == text


def test_types_with_64_bits():
    with config.override(x64=True):
        assert str(typeof(3)) == "i64[]~"
        assert str(typeof(3.0)) == "f64[]~"
        assert str(typeof(np.ones(2))) == "f64[2]"
        assert str(as_array(np.ones(2)).aval) == "f64[2]"
        assert str(typeof(np.float32(1))) == "f32[]"


def test_arrays_and_tracers_are_what_they_say():
    x = fnp.ones(3)
    assert typeof(x) is x.aval
    assert as_array(x) is x
    seen = []
    fxflow.jit(lambda t: seen.append((typeof(t), as_array(t) is t)))(x)
    assert seen == [(Aval((3,), np.dtype(np.float32)), True)]


@pytest.mark.parametrize(
    "value", ["a", None, object(), {"a": 1}, [1.0], (1, 2), {1}, b"x", len]
)
def test_what_is_no_array(value):
    assert not is_arraylike(value)
    for function in (typeof, as_array):
        with pytest.raises(TypeError, match="not an array") as info:
            function(value)
        assert ("None" if value is None else type(value).__name__) in str(info.value)
    if isinstance(value, list | tuple):
        assert "fnp.asarray" in str(info.value)


def test_long_values_are_cut_in_messages():
    with pytest.raises(TypeError) as info:
        as_array("a" * 1000)
    assert len(str(info.value)) < 200


@pytest.mark.parametrize(
    "value",
    [np.array(["a"]), np.array([object()]), np.array(["2020"], "datetime64[Y]")],
)
def test_dtypes_that_xla_has_not(value):
    with pytest.raises(TypeError):
        as_array(value)


def test_numbers_that_do_not_fit():
    with pytest.raises(OverflowError, match="2147483648"):
        as_array(2**31)
    assert int(as_array(2**31 - 1)) == 2**31 - 1
    with config.override(x64=True):
        assert int(as_array(2**31)) == 2**31


def test_host_memory_is_copied():
    host = np.zeros(3, np.float32)
    x = as_array(host)
    host[:] = 1
    assert x.tolist() == [0.0] * 3


def test_odd_memory_layouts():
    base = np.arange(12, dtype=np.int32).reshape(3, 4)
    for value in (base.T, base[:, ::2], base[::-1], np.asfortranarray(base)):
        assert as_array(value).tolist() == value.tolist()
    swapped = base.astype(">i4")
    assert as_array(swapped).tolist() == base.tolist()


def test_like_type() -> None:
    class Described:
        shape = (2, np.int64(3))
        dtype = "bfloat16"

    assert like_type(Described()) == Aval((2, 3), fnp.bfloat16.dtype)
    assert like_type(np.ones(2)) == typeof(np.ones(2))
    assert like_type(2.0).weak_type
    assert like_type(fxflow.ShapeDtypeStruct((2,), "int8")) == Aval(
        (2,), fnp.int8.dtype
    )
    with pytest.raises(TypeError, match="not an array"):
        like_type("text")


def test_unwrapped() -> None:
    assert unwrapped(Wrapper(3)) == 3 and unwrapped("text") == "text"


@pytest.mark.parametrize(
    "use",
    [
        fnp.array,
        fnp.asarray,
        fnp.sin,
        fxflow.jit(lambda x: x),
        fxflow.device_put,
        lambda x: fnp.asarray([x, x]),
        lambda x: fnp.ones(3) + x,
        lambda x: fnp.add(1, x),
        lambda x: fnp.ones(3, "float64") * x,
    ],
)
def test_masked_arrays_are_refused(use):
    with pytest.raises(ArgumentError, match=r"mask would be lost: pass x.filled"):
        use(np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False]))


def test_arrays_of_other_libraries_are_told_the_way_in():
    class Foreign:
        __module__ = "elsewhere.arrays"

        def __dlpack__(self):
            """Never called."""

    with pytest.raises(ArgumentError, match=r"elsewhere.arrays.Foreign.*from_dlpack"):
        fnp.sin(Foreign())
