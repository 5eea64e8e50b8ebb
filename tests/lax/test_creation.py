"""Arrays from nothing but a shape and a number."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import AxisError, DtypeError, ShapeError
from tests.lax.key_arrays import keys, words


def test_iota() -> None:
    np.testing.assert_array_equal(lax.iota("int32", 3), [0, 1, 2])
    assert lax.iota("float64", 2).dtype == np.float64
    # Integers wrap, as a conversion does.
    assert np.asarray(lax.iota("uint8", 300))[299] == 43
    expected = np.broadcast_to(np.arange(3), (2, 3))
    np.testing.assert_array_equal(lax.broadcasted_iota("int32", (2, 3), -1), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int8", "bool"])
def test_full_has_the_dtype_asked_for(dtype: str) -> None:
    out = lax.full((2, 3), 1, dtype)
    assert (out.dtype.name, out.weak_type) == (dtype, False)
    assert np.asarray(out).astype("f4").tolist() == [[1.0] * 3] * 2


def test_only_python_scalars_fill_weak_types() -> None:
    assert lax.full((2,), 1.0).weak_type
    assert lax.full_like(lax.full((2,), 1.0), 2).weak_type
    assert not lax.full_like(np.ones(2, "f4"), 2).weak_type
    assert not lax.full((2,), np.float32(1)).weak_type


def test_full_like() -> None:
    like = np.ones((2, 3), "f2")
    out = lax.full_like(like, 7)
    assert (out.shape, out.dtype) == ((2, 3), np.float16)
    out = lax.full_like(like, 7, dtype="int32", shape=(1,))
    assert (out.shape, out.dtype) == ((1,), np.int32)
    out = lax.full_like(like, np.int32(3))
    assert out.dtype == np.float16


def test_empty() -> None:
    assert lax.empty((2, 0)).dtype == np.float32
    assert lax.empty((2,), "int8").shape == (2,)


def test_keys_fill_and_are_filled() -> None:
    key = keys()
    np.testing.assert_array_equal(words(lax.full((2,), key)), [words(key)] * 2)
    with pytest.raises(DtypeError, match="cannot become"):
        lax.full((2,), key, "uint32")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.iota("bool", 3), DtypeError, r"iota: takes .* got bool\[3\]"),
        (lambda: lax.iota("int32", -1), ShapeError, "must not be negative"),
        (
            lambda: lax.broadcasted_iota("int32", (2,), 1),
            AxisError,
            "dimension 1 is out of range",
        ),
        (lambda: lax.full((2,), np.ones(2)), ShapeError, "fill_value must be 0-d"),
        (lambda: lax.full((2,), 300, "int8"), OverflowError, "does not fit int8"),
        (lambda: lax.full((-2,), 0), ShapeError, "must not be negative"),
    ],
)
def test_invalid_shapes_dtypes_and_fill_values_are_refused(
    call, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_keys_of_one_integer() -> None:
    for made in (
        lax.full((2,), 3, keys(1).dtype),
        lax.full_like(keys(2), 3),
        lax.full_like(keys(5), np.int8(3), shape=(2,)),
    ):
        assert words(made).tolist() == [[3, 3]] * 2
    assert words(lax.empty((1,), keys(1).dtype)).shape == (1, 2)
    with pytest.raises(OverflowError):
        lax.full((2,), -1, keys(1).dtype)
    with pytest.raises(DtypeError, match="cannot become key<fry>"):
        lax.full((2,), 1.5, keys(1).dtype)


@pytest.mark.parametrize("module", [lax, fnp])
def test_where_what_is_like_another_lies(module) -> None:
    first, device = (fxflow.SingleDeviceSharding(fxflow.devices()[i]) for i in (0, 1))
    mesh = fxflow.make_mesh((2, 4), ("x", "y"))
    split = fxflow.NamedSharding(mesh, fxflow.P("x", None))
    functions = [lambda x, **k: module.full_like(x, 3, **k)]
    if module is fnp:
        functions += [fnp.zeros_like, fnp.ones_like, fnp.empty_like]
    for where in (device, split):
        put = fxflow.device_put(np.ones((4, 6), np.float32), where)
        struct = fxflow.ShapeDtypeStruct((4, 6), np.float32, sharding=where)
        for like in (put, struct):
            for function in functions:
                assert function(like).sharding == where
                assert function(like, dtype="int32").sharding == where
                assert function(like, shape=(4, 6)).sharding == where
                # A mesh is for arrays of one shape.
                other = function(like, shape=(2, 6)).sharding
                assert other == (device if where is device else first)
            assert module.full_like(like, put[0, 0]).sharding == where
    assert not module.full_like(fnp.ones(3), 2).committed


def test_integers_wider_than_the_default():
    big = 2**62
    assert lax.full((), big, "int64").item() == big
    assert lax.full_like(lax.full((2,), 1, "int64"), big).tolist() == [big, big]
    with pytest.raises(OverflowError, match="int8"):
        lax.full((2,), 300, "int8")
