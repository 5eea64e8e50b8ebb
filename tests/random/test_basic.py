"""Bits, uniform numbers and integers."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import fxflow
from fxflow import config, random
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.random import golden

KEY = random.key(0)


@pytest.mark.parametrize("eager", ["auto", "xla"])
@pytest.mark.parametrize("name", golden.names("bits", "uniform", "randint"))
def test_as_jax(name: str, eager: str) -> None:
    with config.override(eager=eager):
        # Host arithmetic rounds a product before it adds to it, XLA's does not.
        golden.check(name, ulps=2 if name in ("uniform_range", "uniform_array") else 0)


@pytest.mark.parametrize("sample", [random.bits, random.uniform, random.normal])
def test_invalid_shapes_are_refused(sample: object) -> None:
    with pytest.raises(ShapeError, match=r"must not be negative, got \(2, -1\)"):
        sample(KEY, (2, -1))
    with pytest.raises(ArgumentError, match="shape must be a sequence of integers"):
        sample(KEY, (2.5,))
    with pytest.raises(ArgumentError, match="shape must be an integer or a seq"):
        sample(KEY, "ab")
    assert sample(KEY, 3).shape == (3,)
    assert sample(KEY, [2, np.int64(3)]).shape == (2, 3)


def test_invalid_dtypes_are_refused() -> None:
    with pytest.raises(
        DtypeError, match="uniform: dtype must be a float dtype, got i32"
    ):
        random.uniform(KEY, (), "int32")
    with pytest.raises(DtypeError, match="bits: dtype must be uint8, uint16"):
        random.bits(KEY, (), "int32")
    with pytest.raises(DtypeError, match="randint: dtype must be an integer dtype"):
        random.randint(KEY, (), 0, 2, "float32")


def test_invalid_keys_are_refused() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"uniform: expected a random key as the first argument, got i32",
    ):
        random.uniform(0, (3,))
    with pytest.raises(ShapeError, match=r"use fxflow\.vmap to draw"):
        random.uniform(random.split(KEY), (3,))


def test_invalid_bounds_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"uniform: parameters of shapes \(3,\), \(\)"):
        random.uniform(KEY, (2,), minval=np.zeros(3))
    with pytest.raises(ArgumentError, match=r"randint: a parameter is .* list"):
        random.randint(KEY, (2,), [0], np.int32(3))
    with pytest.raises(DtypeError, match="parameters must be real numbers, got c64"):
        random.uniform(KEY, (2,), minval=1j)


def test_defaults_follow_x64() -> None:
    assert random.bits(KEY).dtype == "uint32"
    assert random.uniform(KEY).dtype == "float32"
    assert random.randint(KEY, (), 0, 2).dtype == "int32"
    with config.override(x64=True):
        assert random.bits(KEY).dtype == "uint64"
        assert random.uniform(KEY).dtype == "float64"
        assert random.randint(KEY, (), 0, 2).dtype == "int64"


@settings(max_examples=30, deadline=None)
@given(
    low=st.integers(-(2**31), 2**31 - 1),
    high=st.integers(-(2**31), 2**31),
    seed=st.integers(0, 100),
)
def test_integers_lie_between_their_bounds(low: int, high: int, seed: int) -> None:
    drawn = np.asarray(random.randint(random.key(seed), (20,), low, high)).astype(int)
    if high <= low:
        assert (drawn == low).all()
    else:
        assert drawn.min() >= low
        assert drawn.max() < high


@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"]
)
def test_whole_range_of_a_dtype(dtype: str) -> None:
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max) + 1
    drawn = np.asarray(random.randint(KEY, (4000,), low, high, dtype))
    assert drawn.dtype == dtype
    shares = (drawn.astype(np.float64) - low) / (float(high) - low)
    assert scipy.stats.kstest(shares, "uniform").pvalue > 1e-3


def test_integers_with_bounds_as_arrays() -> None:
    low = np.array([0, 5], np.int32)
    for bounds in ((low, 9), (low, np.int32(9)), (np.uint8(0), low + 1)):
        drawn = np.asarray(random.randint(KEY, (500, 2), *bounds))
        assert (drawn >= bounds[0]).all()
        assert (drawn < bounds[1]).all()
        traced = fxflow.jit(lambda a, b: random.randint(KEY, (500, 2), a, b))(*bounds)
        np.testing.assert_array_equal(drawn, traced)
    beyond = random.randint(KEY, (500,), np.uint32(0), np.uint32(2**32 - 1), "int32")
    assert int(beyond.min()) >= 0
    alike = random.randint(KEY, (9,), 0, 10), random.randint(KEY, (9,), np.int32(0), 10)
    np.testing.assert_array_equal(*alike)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_uniform_is_uniform(dtype: str) -> None:
    drawn = np.asarray(random.uniform(KEY, (3000,), dtype)).astype(np.float64)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    step = 2.0 ** -{"float16": 10, "bfloat16": 7}.get(dtype, 23)
    assert scipy.stats.kstest(drawn + step / 2, "uniform").statistic < 0.035


def test_uniform_slope_in_bounds() -> None:
    def total(low: object, high: object) -> object:
        return random.uniform(KEY, (4,), minval=low, maxval=high).sum()

    unit = np.asarray(random.uniform(KEY, (4,)))
    slopes = fxflow.grad(total, argnums=(0, 1))(2.0, 5.0)
    np.testing.assert_allclose(slopes, [(1 - unit).sum(), unit.sum()], rtol=1e-5)


def test_large_draws_agree_with_small_ones() -> None:
    # A large draw runs as a compiled program, a small one on the host.
    large = np.asarray(random.bits(KEY, (300, 50)))
    with config.override(eager="xla"):
        compiled = np.asarray(random.bits(KEY, (300, 50)))
    np.testing.assert_array_equal(large, compiled)
    small = np.asarray(random.bits(KEY, (3, 50)))
    np.testing.assert_array_equal(large[:3], small)
