"""Keys: their data, splitting, folding, and their use under transformations."""

import pickle

import numpy as np
import pytest

import fxflow
from fxflow import config, lax, random
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from tests.random import golden


def words(keys: object) -> list[object]:
    return np.asarray(random.key_data(keys)).tolist()


@pytest.mark.parametrize("eager", ["auto", "xla"])
@pytest.mark.parametrize("name", golden.names("seeds", "split", "fold_in"))
def test_as_jax(name: str, eager: str) -> None:
    with config.override(eager=eager):
        golden.check(name)


def test_key_of_64_bits() -> None:
    with config.override(x64=True):
        assert words(random.key(2**40 + 7)) == [256, 7]
        assert words(random.key(-1)) == [2**32 - 1] * 2
        assert words(random.key(2**64 - 1)) == [2**32 - 1] * 2
    assert words(random.key(2**64 - 1)) == [0, 2**32 - 1]
    with pytest.raises(OverflowError, match="the seed must fit 64 bits"):
        random.key(2**64)


@pytest.mark.parametrize(
    "seed", [3, np.int32(3), np.uint8(3), np.int64(3), np.array(3)], ids=repr
)
def test_seeds_of_any_integer_type(seed: object) -> None:
    assert words(random.key(seed)) == [0, 3]


def test_seed_is_traced() -> None:
    made = fxflow.jit(lambda s: random.key_data(random.key(s)))(-5)
    assert made.tolist() == words(random.key(-5))


def test_invalid_seeds_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"key: the seed must be an integer, got f32"):
        random.key(1.5)
    with pytest.raises(ShapeError, match=r"seed must be 0-d, got i32\[2\]"):
        random.key(np.arange(2))
    with pytest.raises(ArgumentError, match=r"key: the seed is \[1\] of type list"):
        random.key([1])
    with pytest.raises(DtypeError, match="unknown generator 'mersenne'"):
        random.key(0, impl="mersenne")


def test_invalid_keys_are_refused() -> None:
    with pytest.raises(
        ArgumentError,
        match=r"split: expected a random key as the first argument, got i32",
    ):
        random.split(0)
    with pytest.raises(ArgumentError, match=r"make one of a seed with fxflow.random"):
        random.fold_in(np.zeros(2), 1)
    with pytest.raises(ArgumentError, match="got a str"):
        random.key_data("a")
    with pytest.raises(
        ShapeError, match=r"split: expected one random key, got key<fry"
    ):
        random.split(random.split(random.key(0)))
    with pytest.raises(ShapeError, match=r"the data of key<fry> keys is u32\[...,2\]"):
        random.wrap_key_data(np.zeros(3, np.uint32))


def test_fold_in_wants_one_integer() -> None:
    key = random.key(0)
    with pytest.raises(DtypeError, match="fold_in: data must be an integer, got f32"):
        random.fold_in(key, 1.0)
    with pytest.raises(ShapeError, match="fold_in: data must be 0-d"):
        random.fold_in(key, np.arange(3))
    assert words(random.fold_in(key, 2**32 + 3)) == words(random.fold_in(key, 3))


def test_words_as_key() -> None:
    raw = np.array([0, 42], np.uint32)
    typed = random.key(42)
    new = random.split(raw)
    assert new.dtype == "uint32"
    assert new.tolist() == words(random.split(typed))
    assert random.fold_in(raw, 1).tolist() == words(random.fold_in(typed, 1))
    np.testing.assert_array_equal(
        random.uniform(raw, (3,)), random.uniform(typed, (3,))
    )


def test_round_trip() -> None:
    keys = random.split(random.key(0), (2, 3))
    assert keys.shape == (2, 3)
    assert keys.dtype == random.key_dtype()
    assert random.key_impl(keys) == "threefry2x32"
    again = random.wrap_key_data(random.key_data(keys))
    assert words(again) == words(keys)
    assert words(random.clone(keys)) == words(keys)
    assert words(pickle.loads(pickle.dumps(keys))) == words(keys)


def test_structure_of_key_arrays() -> None:
    keys = random.split(random.key(0), 6)
    data = np.asarray(random.key_data(keys))
    grid = lax.reshape(keys, (2, 3))
    np.testing.assert_array_equal(words(grid), data.reshape(2, 3, 2))
    turned = lax.transpose(grid, (1, 0))
    np.testing.assert_array_equal(words(turned), data.reshape(2, 3, 2).swapaxes(0, 1))
    np.testing.assert_array_equal(words(lax.slice_in_dim(keys, 1, 4)), data[1:4])
    both = lax.concatenate([keys, keys], 0)
    np.testing.assert_array_equal(words(both), np.concatenate([data, data]))


def test_jit_vmap_scan() -> None:
    key = random.key(1)
    first, second = (random.key_data(k) for k in fxflow.jit(random.split)(key))
    assert [first.tolist(), second.tolist()] == words(random.split(key))
    keys = random.split(key, 3)
    each = fxflow.vmap(lambda k: random.uniform(k, (2,)))(keys)
    for i in range(3):
        np.testing.assert_array_equal(each[i], random.uniform(keys[i], (2,)))
    nested = fxflow.vmap(fxflow.vmap(random.split))(random.split(key, (2, 2)))
    assert nested.shape == (2, 2, 2)
    folded = fxflow.vmap(random.fold_in, in_axes=(None, 0))(key, np.arange(3))
    assert words(folded[2]) == words(random.fold_in(key, 2))

    def step(carry: object, _: object) -> object:
        carry, used = random.split(carry)
        return carry, random.uniform(used)

    last, numbers = lax.scan(step, key, length=3)
    want = []
    for _ in range(3):
        key, used = random.split(key)
        want.append(float(random.uniform(used)))
    assert words(last) == words(key)
    np.testing.assert_array_equal(numbers, np.array(want, np.float32))


def test_keys_have_no_derivative_but_do_not_stop_one() -> None:
    def loss(x: object, key: object) -> object:
        return (x * random.uniform(random.split(key)[0], (3,))).sum()

    key = random.key(0)
    slope = fxflow.grad(loss)(np.ones(3, np.float32), key)
    np.testing.assert_array_equal(slope, random.uniform(random.split(key)[0], (3,)))


def test_a_dtype_in_place_of_a_name() -> None:
    dtype = random.key_dtype()
    assert words(random.key(3, dtype=dtype)) == words(random.key(3))
    assert random.wrap_key_data(np.zeros((2, 2), np.uint32), dtype=dtype).shape == (2,)
    with pytest.raises(ArgumentError, match="not both"):
        random.key(3, impl="threefry2x32", dtype=dtype)
    with pytest.raises(DtypeError, match="dtype of keys"):
        random.wrap_key_data(np.zeros(2, np.uint32), dtype=np.uint32)
