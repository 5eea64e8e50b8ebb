"""Arrays filled with one value."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.numpy.oracle import BFLOAT16, same


@pytest.mark.parametrize("shape", ((), 3, (2, 0), [2, 3], np.int64(2)))
@pytest.mark.parametrize("name", ("zeros", "ones", "empty"))
def test_filled_arrays(name: str, shape: Any) -> None:
    for function in (getattr(fnp, name), fxflow.jit(lambda: getattr(fnp, name)(shape))):
        out = function(shape) if function is getattr(fnp, name) else function()
        assert out.dtype == np.float32 and not out.weak_type
        if name != "empty":
            assert same(getattr(np, name)(shape), out)
    assert getattr(fnp, name)(shape, "int8").dtype == np.int8


def test_full() -> None:
    assert fnp.full(2, 3).weak_type and fnp.full(2, 3).tolist() == [3, 3]
    assert same(np.full((2, 3), [1, 2, 3]), fnp.full((2, 3), [1, 2, 3]))
    assert fnp.full(2, np.nan, "bfloat16").dtype == BFLOAT16
    with pytest.raises(ShapeError, match=r"full: f32\[3\] does not broadcast"):
        fnp.full(2, np.ones(3))


def test_like_functions_take_shape_and_dtype() -> None:
    x = fnp.ones((2, 3), "int16")
    assert fnp.zeros_like(x).dtype == np.int16
    assert fnp.ones_like(x, "float32", shape=4).shape == (4,)
    assert fnp.full_like(x, 2.9).tolist() == [[2] * 3] * 2
    assert fnp.full_like(x, 5).tolist() == [[5] * 3] * 2
    assert fnp.full_like(x, -1, "float32").tolist() == [[-1.0] * 3] * 2
    assert fnp.empty_like(x).shape == (2, 3)
    assert fnp.zeros_like(1.0).weak_type
    assert fnp.zeros_like(fxflow.ShapeDtypeStruct((2,), "int8")).dtype == np.int8
    assert fxflow.vmap(fnp.ones_like)(x).shape == (2, 3)
    with pytest.raises(ArgumentError, match="zeros_like: got"):
        fnp.zeros_like([1])


@pytest.mark.parametrize("jitted", [False, True])
def test_keys_are_filled(jitted: bool) -> None:
    run = fxflow.jit if jitted else (lambda f: f)
    keys = fxflow.random.split(fxflow.random.key(0), 3)
    data = fxflow.random.key_data
    for name, word in (("zeros", 0), ("ones", 1), ("empty", 0)):
        made = run(lambda k, n=name: getattr(fnp, n)((2,), k.dtype))(keys)
        assert made.dtype == keys.dtype and data(made).tolist() == [[word] * 2] * 2
        like = run(getattr(fnp, f"{name}_like"))(keys)
        assert like.dtype == keys.dtype and data(like).tolist() == [[word] * 2] * 3
    for value, want in ((keys[1], data(keys[1]).tolist()), (7, [7, 7])):
        full = run(lambda v: fnp.full((2,), v, keys.dtype))(value)
        assert data(full).tolist() == [want] * 2
        assert data(run(lambda v: fnp.full_like(keys, v))(value)).tolist() == [want] * 3
    with pytest.raises(DtypeError, match=r"f32\[\]~ cannot become key<fry>"):
        run(lambda: fnp.full((2,), 1.5, keys.dtype))()


class Described:
    """Says its type, and must not be converted."""

    shape = (2, 3)
    dtype = np.dtype("int8")

    def __fxflow_array__(self) -> Any:
        raise AssertionError("was converted")


@pytest.mark.parametrize("name", ("zeros_like", "ones_like", "empty_like"))
def test_like_looks_at_shape_and_dtype_only(name: str) -> None:
    out = getattr(fnp, name)(Described())
    assert out.shape == (2, 3) and out.dtype == np.int8
    assert fnp.full_like(Described(), 2).tolist() == [[2] * 3] * 2
    assert fxflow.lax.full_like(Described(), 2).dtype == np.int8
