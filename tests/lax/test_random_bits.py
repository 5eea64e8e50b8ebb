"""Draws from keys, and keys as arrays of words."""

import math

import numpy as np
import pytest

from fxflow import config, lax
from fxflow.core.ir.staging import trace_flat
from fxflow.core.runtime.lowering import lower_graph
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.random_bits import RandomBits, random_bits


def test_an_element_depends_on_its_position_alone() -> None:
    key = lax.random_seed(1)
    flat = np.asarray(random_bits(key, 32, (24,)))
    for shape in [(24, 1), (2, 12), (2, 3, 4)]:
        drawn = random_bits(key, 32, shape)
        np.testing.assert_array_equal(drawn, flat.reshape(shape))
    np.testing.assert_array_equal(random_bits(key, 32, (5,)), flat[:5])
    low = np.asarray(random_bits(key, 8, (24,)))
    np.testing.assert_array_equal(low, flat.astype(np.uint8))


def test_arrays_of_keys() -> None:
    keys = lax.random_split(lax.random_seed(1), (2, 3))
    drawn = random_bits(keys, 16, (4,))
    assert drawn.shape == (2, 3, 4)
    data = np.asarray(lax.random_unwrap(keys))
    one = random_bits(lax.random_wrap(data[1, 2]), 16, (4,))
    np.testing.assert_array_equal(np.asarray(drawn)[1, 2], one)
    assert lax.random_split(keys, (5,)).shape == (2, 3, 5)


def test_counters_beyond_32_bits() -> None:
    # Too large to run: the program must count in 64 bits.
    aval = lax.random_unwrap(lax.random_seed(0)).aval
    shape = (1 << 17, 1 << 16)
    draw = lambda w: [RandomBits.bind(w, shape=shape, bit_width=32)]
    graph, _ = trace_flat(draw, [aval])
    text, _ = lower_graph(graph, name="large", platform="cpu")
    assert math.prod(shape) > 1 << 32
    assert "iota dim = 0 : tensor<131072x65536xui64>" in text
    assert "shift_right_logical" in text


def test_seeds() -> None:
    assert np.asarray(lax.random_unwrap(lax.random_seed(2**33 + 1))).tolist() == [0, 1]
    with config.override(x64=True):
        wide = lax.random_seed(2**33 + 1)
        assert np.asarray(lax.random_unwrap(wide)).tolist() == [2, 1]
        traced = lax.random_seed(np.int64(2**33 + 1))
        assert np.asarray(lax.random_unwrap(traced)).tolist() == [2, 1]


def test_invalid_bit_widths_and_key_data_are_refused() -> None:
    key = lax.random_seed(0)
    with pytest.raises(ArgumentError, match="bit_width must be 8, 16, 32 or 64, got 7"):
        random_bits(key, 7, ())
    with pytest.raises(
        DtypeError, match=r"random_unwrap: takes typed keys, got f32\[2"
    ):
        lax.random_unwrap(np.zeros(2, np.float32))
    with pytest.raises(ShapeError, match=r"is u32\[...,2\], got u32\[3\]"):
        lax.random_wrap(np.zeros(3, np.uint32))
    with pytest.raises(ShapeError, match=r"takes key data, u32\[..., 2\]"):
        RandomBits.bind(np.zeros(3, np.uint32), shape=(), bit_width=32)
