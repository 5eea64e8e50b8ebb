"""XLA's own generators: bits, states, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax import RandomAlgorithm, rng_bit_generator
from fxflow.lax.rng_bit_generator import philox

STATE = np.array([11, 22, 33, 44], np.uint32)


def test_philox_of_the_paper() -> None:
    """The known answers of Random123 for Philox-4x32-10."""
    zero = philox((0, 0), np.zeros((1, 4), np.uint64))
    assert [hex(n) for n in zero[0]] == [
        "0x6627e8d5",
        "0xe169c58d",
        "0xbc57ac4c",
        "0x9b00dbd8",
    ]
    ones = philox((2**32 - 1,) * 2, np.full((1, 4), 2**32 - 1, np.uint64))
    assert hex(ones[0, 0]) == "0x408f276d"


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_bits_are_those_of_jax(dtype: str) -> None:
    state, bits = rng_bit_generator(STATE, (2,), dtype)
    words = np.array([3658403395, 3111134084, 2374753923, 4076615984], np.uint32)
    want = words.view("u8") if dtype == "uint64" else words[:2].astype(dtype)
    np.testing.assert_array_equal(bits, want)
    assert bits.dtype == dtype
    assert state.tolist() == [11, 22, 34, 44]


def test_threefry() -> None:
    state, bits = rng_bit_generator(STATE, (3,), algorithm=1)
    assert bits.tolist() == [2387157256, 81081739, 3563126922]
    assert state.tolist() == [11, 22, 35, 44]


def test_a_state_of_64_bits() -> None:
    state, bits = rng_bit_generator(fxflow.numpy.asarray(STATE.view("u8"), "u8"), ())
    assert int(bits) == 3658403395
    assert state.tolist() == [11 + (22 << 32), 34 + (44 << 32)]


def test_all_bits_of_a_map_come_from_the_first_state() -> None:
    states = np.stack([STATE, STATE + 1, STATE + 2])
    new, bits = fxflow.vmap(lambda s: rng_bit_generator(s, (2,)))(states)
    first, want = rng_bit_generator(STATE, (3, 2))
    np.testing.assert_array_equal(bits, want)
    np.testing.assert_array_equal(new, [first, *states[1:]])


def test_bits_are_divided() -> None:
    mesh = fxflow.make_mesh((2,), ("x",), devices=fxflow.devices("cpu")[:2])
    where = fxflow.NamedSharding(mesh, fxflow.P("x"))
    state = np.arange(4, dtype=np.uint32)
    want = lax.rng_bit_generator(state, (4,), np.uint8)
    draw = lambda state: lax.rng_bit_generator(
        state, (4,), np.uint8, out_sharding=where
    )
    for new, bits in (draw(state), fxflow.jit(draw)(state)):
        assert bits.sharding == where
        np.testing.assert_array_equal(bits, want[1])
        np.testing.assert_array_equal(new, want[0])


def test_invalid_states_dtypes_and_algorithms_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"u32\[4\] or u64\[2\], got u32\[3\]"):
        rng_bit_generator(STATE[:3], (2,))
    with pytest.raises(DtypeError, match="got i32"):
        rng_bit_generator(STATE, (2,), "int32")
    with pytest.raises(ArgumentError, match="RandomAlgorithm, got 7"):
        rng_bit_generator(STATE, (2,), algorithm=7)
    with pytest.raises(TypeError):
        lax.rng_bit_generator(STATE, 3)
    assert [a.value for a in RandomAlgorithm] == [0, 1, 2]
