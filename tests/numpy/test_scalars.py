"""Dtype objects, limits, kinds."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.errors import DtypeError
from tests.numpy.oracle import BFLOAT16


@pytest.mark.parametrize(
    "name",
    [
        *("bool_", "int8", "int16", "int32", "int64", "uint8", "uint64", "float16"),
        *("float32", "float64", "complex64", "complex128", "bfloat16"),
        *("float8_e4m3fn", "float8_e5m2", "int4", "uint4"),
    ],
)
def test_dtype_objects(name: str) -> None:
    kind = getattr(fnp, name)
    plain = name.rstrip("_")
    assert kind.dtype.name == plain
    assert fnp.zeros(2, kind).dtype == kind
    assert kind(1).dtype == kind and kind([1, 0]).shape == (2,)
    assert not kind(1).weak_type
    assert kind == fnp.dtype(plain) and kind == kind.dtype.type
    assert kind != fnp.float8_e4m3
    assert hash(kind) == hash(kind.dtype.type)
    assert fnp.dtype(kind) is fnp.dtype(plain)
    assert repr(kind) == f"fxflow.numpy.{plain}"


def test_they_stand_for_dtypes_in_numpy() -> None:
    assert np.zeros(2, fnp.float32).dtype == np.float32
    assert np.dtype(fnp.bfloat16) == BFLOAT16
    assert {fnp.float32: 1}[fnp.float32] == 1
    assert isinstance(np.float32(1), fnp.float32)


def test_limits() -> None:
    assert fnp.finfo(fnp.float32).eps == np.finfo(np.float32).eps
    assert fnp.iinfo("int8").max == 127
    assert float(fnp.finfo("bfloat16").max) > 3e38
    with pytest.raises(DtypeError, match="finfo: expected a float dtype"):
        fnp.finfo(int)


def test_promotion() -> None:
    assert fnp.promote_types("int8", "float16") == np.float16
    assert fnp.result_type(fnp.ones(2, "int16"), 2) == np.int16
    assert fnp.can_cast("int8", "float32") and not fnp.can_cast("float32", "int8")
    assert fnp.can_cast(fnp.ones(1, "int8"), "int16")


def test_isdtype_and_issubdtype_know_every_kind() -> None:
    assert fnp.issubdtype(fnp.bfloat16, fnp.floating)
    assert fnp.isdtype("bfloat16", "real floating")
    assert fnp.isdtype(fnp.int8, ("bool", "integral"))
    assert fnp.isdtype(fnp.int8, fnp.int8) and not fnp.isdtype("int8", fnp.int16)
    assert fnp.isdtype("uint8", "unsigned integer")
    assert not fnp.isdtype("uint8", "signed integer")
    assert fnp.isdtype("float32", np.floating)
    with pytest.raises(DtypeError, match="isdtype: unknown kind"):
        fnp.isdtype("int8", "whole number")


def test_questions_about_arrays() -> None:
    assert fnp.shape([[1, 2], [3, 4]]) == (2, 2) and fnp.ndim(3.0) == 0
    assert fnp.size(np.ones((2, 3))) == 6 and fnp.size(np.ones((2, 3)), 1) == 3
    assert fnp.size(np.ones((2, 3)), (0, 1)) == 6
    assert fnp.isscalar(1) and fnp.isscalar(fnp.asarray(1)) and not fnp.isscalar([1])
    assert fnp.iscomplexobj(1j) and fnp.isrealobj(fnp.ones(1))
    assert not fnp.iscomplexobj(None)
    assert fnp.iterable([1]) and not fnp.iterable(1)


def test_constants() -> None:
    assert fnp.pi == np.pi and fnp.newaxis is None and fnp.inf > 0
    assert fnp.nan != fnp.nan and fnp.e == np.e and fnp.euler_gamma == np.euler_gamma


def test_values_that_are_not_dtypes_are_refused() -> None:
    with pytest.raises(DtypeError):
        fnp.dtype("float17")
    with pytest.raises(DtypeError):
        fnp.zeros(2, object)


def test_size_of_axes_named_twice() -> None:
    with pytest.raises(ValueError, match="repeated axis"):
        fnp.size(np.zeros((2, 3)), (0, -2))
    with pytest.raises(ValueError, match=r"out of range.*a is float64\[2,3\]"):
        fnp.size(np.zeros((2, 3)), 5)


def test_can_cast_takes_all_that_stands_for_a_dtype() -> None:
    assert fnp.can_cast(np.dtype("int32"), np.float64)
    assert fnp.can_cast(fnp.bool_, fnp.int32)
    assert not fnp.can_cast(fnp.zeros(2, "int32"), "int8")
    assert not fnp.can_cast(np.float32, np.dtype("int32"))
