"""Floats as integers of the same order, and the extrema over devices that need them."""

import ml_dtypes
import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax
from fxflow.lax.ordered_bits import from_ordered_bits, sort_keys, to_ordered_bits

INF, NAN = float("inf"), float("nan")
VALUES = [-INF, -1e4, -1.5, -0.0, 0.0, 1e-3, 2.0, 1e4, INF]
DTYPES = ["float16", "float32", "float64", ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_order_and_values_are_kept(dtype):
    x = np.array(VALUES, dtype)
    bits = np.asarray(to_ordered_bits(fnp.asarray(x, x.dtype), NAN))
    assert bits.dtype.itemsize == x.dtype.itemsize
    assert (np.diff(bits.astype(object)) > 0).all()
    back = np.asarray(from_ordered_bits(fnp.asarray(bits, bits.dtype), x.dtype))
    assert back.tobytes() == x.tobytes()


@pytest.mark.parametrize("sign", [1, -1])
def test_nan_stands_at_the_end(sign):
    x = fnp.array([*VALUES, NAN, -NAN], "float32")
    bits = np.asarray(to_ordered_bits(x, np.copysign(NAN, sign)))
    assert bits[-1] == bits[-2]
    assert (sign * (bits[-1].astype(object) - bits[:-2].astype(object)) > 0).all()


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.float8_e4m3fn], ids=str)
def test_keys_of_a_sort(dtype):
    least = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    values = np.array([-2.0, -least, -0.0, 0.0, least, 2 * least, 1.0, NAN, -NAN])
    x = values.astype(dtype)
    keys = np.asarray(fxflow.jit(sort_keys)(fnp.asarray(x, x.dtype)))
    steps = np.sign(np.diff(keys.astype(object)))
    assert steps.tolist() == [1, 1, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("place", range(0, 8, 3))
def test_extrema_over_devices_keep_nan(dtype, place):
    mesh = fxflow.make_mesh((8,), ("a",))
    values = np.arange(8.0).astype(dtype)
    values[place] = NAN
    x = fxflow.device_put(values, NamedSharding(mesh, P("a")))
    for reduce in (fnp.max, fnp.min, fxflow.jit(fnp.max), fxflow.jit(fnp.min)):
        assert np.isnan(np.asarray(reduce(x)).astype(float))
    for collective in (lax.pmax, lax.pmin):
        mapped = fxflow.pmap(lambda v, f=collective: f(v, "i"), axis_name="i")
        assert np.isnan(np.asarray(mapped(values)).astype(float)).all()


def test_extrema_over_devices_of_numbers():
    mesh = fxflow.make_mesh((2, 4), ("a", "b"))
    values = np.random.default_rng(0).normal(size=(4, 8)).astype("f")
    x = fxflow.device_put(values, NamedSharding(mesh, P("a", "b")))
    for axis in (0, 1, None):
        np.testing.assert_array_equal(fnp.max(x, axis=axis), values.max(axis))
        np.testing.assert_array_equal(fnp.min(x, axis=axis), values.min(axis))
    slope = fxflow.jit(fxflow.grad(lambda v: fnp.max(v, axis=1).sum()))(x)
    np.testing.assert_array_equal(slope, values == values.max(1, keepdims=True))
