"""The operations that derivatives need by themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core import caches
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Zero
from fxflow.errors import DtypeError

F32 = np.dtype(np.float32)


def test_constants_are_made_once():
    one = arith.constant(1.0, F32)
    assert arith.constant(1.0, F32) is one
    assert one.aval is Aval((), F32)
    assert arith.constant(1.0, F32, True).weak_type
    assert arith.constant(1, F32) is not arith.constant(True, np.dtype(bool))
    assert arith.constant(np.ones(()), F32).aval is one.aval


def test_zeros_of_either_sign_are_distinguished():
    assert math.copysign(1, float(arith.constant(0.0, F32))) == 1
    assert math.copysign(1, float(arith.constant(-0.0, F32))) == -1
    assert math.copysign(1, float(arith.constant(0.0, F32))) == 1
    c64 = np.dtype(np.complex64)
    for imag in (0.0, -0.0):
        made = np.asarray(arith.constant(complex(1.0, imag), c64))
        assert math.copysign(1, made.imag) == math.copysign(1, imag)


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(OverflowError, match="does not fit int8"):
        arith.constant(1000, np.dtype(np.int8))
    with pytest.raises(DtypeError, match="numbers do not become"):
        arith.constant(1, fxflow.random.key(0).dtype)


def test_nan_is_a_constant():
    assert math.isnan(float(arith.constant(float("nan"), F32)))


def test_the_store_of_constants_is_bounded():
    for i in range(caches.LIMIT + 10):
        arith.constant(float(i), F32)
    assert caches.sizes()["constants"] <= caches.LIMIT


def test_zeros_of_a_type():
    assert arith.zeros(Aval((2, 3), F32)).tolist() == [[0.0] * 3] * 2
    assert arith.zeros(Aval((), F32, True)).shape == ()
    nothing = arith.zeros(Aval((2,), dtypes.float0))
    assert nothing.dtype == dtypes.float0 and nothing.shape == (2,)


def test_sums_with_symbolic_zeros():
    zero = Zero(Aval((2,), F32))
    x = fnp.ones(2)
    assert arith.add(x, zero) is x
    assert arith.add(zero, x) is x
    assert arith.add(None, x) is x
    assert arith.add(None, zero) is zero
    assert arith.add(x, x).tolist() == [2.0, 2.0]
    assert arith.neg(zero) is zero
    assert arith.neg(x).tolist() == [-1.0, -1.0]
    assert arith.instantiate(zero).tolist() == [0.0, 0.0]
    assert arith.instantiate(x) is x


def test_products_casts_sums_and_copies_along_a_new_axis():
    x = fnp.array([[1.0, 2.0], [3.0, 4.0]])
    assert arith.mul(x, arith.constant(2.0, F32)).tolist() == (x * 2).tolist()
    assert arith.cast(x, np.dtype(np.int32)).dtype == np.int32
    assert arith.reduce_sum(x, (0,)).tolist() == [4.0, 6.0]
    assert arith.reduce_sum(x, ()) is x
    wide = arith.broadcast_front(x, x.aval, 3)
    assert wide.shape == (3, 2, 2) and wide[2].tolist() == x.tolist()


def test_keys_are_repeated():
    key = fxflow.random.key(1)
    keys = arith.broadcast_front(key, key.aval, 3)
    assert keys.shape == (3,) and keys.dtype == key.dtype
    data = fxflow.random.key_data
    assert data(keys).tolist() == [data(key).tolist()] * 3


@pytest.mark.parametrize("value", [1e400, float("inf")])
def test_infinite_constants(value):
    assert float(arith.constant(value, F32)) == float("inf")
