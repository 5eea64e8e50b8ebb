"""Random orders and selections."""

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.random import golden

KEY = random.key(17)


@pytest.mark.parametrize("name", golden.names("permutation", "choice"))
def test_as_jax(name: str) -> None:
    golden.check(name)


def test_orders_of_integers() -> None:
    for n in (0, 1, 2, 9, 1700):
        order = np.asarray(random.permutation(KEY, n))
        assert order.dtype == np.int32
        np.testing.assert_array_equal(np.sort(order), np.arange(n))
    np.testing.assert_array_equal(
        random.permutation(KEY, np.int32(5)), random.permutation(KEY, 5)
    )
    firsts = [int(random.permutation(k, 4)[0]) for k in random.split(KEY, 400)]
    assert np.bincount(firsts, minlength=4).min() > 65


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "int8", "bfloat16"])
def test_orders_of_slices(axis: int, dtype: str) -> None:
    x = np.arange(20).reshape(4, 5) % 7
    x = np.asarray(fxflow.numpy.asarray(x).astype(dtype))
    moved = np.moveaxis(np.asarray(random.permutation(KEY, x, axis)), axis, 0)
    slices = {row.tobytes() for row in np.moveaxis(x, axis, 0)}
    assert {row.tobytes() for row in moved} == slices
    assert moved.dtype == x.dtype


def test_independent_orders() -> None:
    x = np.tile(np.arange(30, dtype=np.int32), (5, 1))
    moved = np.asarray(random.permutation(KEY, x, 1, independent=True))
    np.testing.assert_array_equal(np.sort(moved, 1), x)
    assert len({row.tobytes() for row in moved}) == 5


def test_keys_are_shuffled_too() -> None:
    keys = random.split(KEY, 6)
    moved = random.permutation(KEY, keys)
    assert moved.dtype == keys.dtype
    have, want = (sorted(random.key_data(k).tolist()) for k in (moved, keys))
    assert have == want
    with pytest.raises(DtypeError, match="independent=True takes numbers"):
        random.permutation(KEY, keys, independent=True)
    assert random.choice(KEY, keys, (2,)).dtype == keys.dtype


def test_choice_shapes() -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert random.choice(KEY, x).shape == (4,)
    assert random.choice(KEY, x, (2, 5)).shape == (2, 5, 4)
    assert random.choice(KEY, x, (2, 5), axis=1).shape == (3, 2, 5)
    assert random.choice(KEY, x, (2,), replace=False, axis=-1).shape == (3, 2)
    assert random.choice(KEY, 5, (0,)).shape == (0,)
    assert random.choice(KEY, x[:0], (0,)).shape == (0, 4)
    without = np.asarray(random.choice(KEY, 6, (6,), replace=False))
    np.testing.assert_array_equal(np.sort(without), np.arange(6))


@pytest.mark.parametrize("replace", [True, False])
def test_choice_by_probability(replace: bool) -> None:
    p = np.array([0.2, 0.0, 0.7, 0.1], np.float32)
    if replace:
        drawn = np.asarray(random.choice(KEY, 4, (4000,), p=p))
        np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, p, atol=0.03)
        return
    draw = fxflow.jit(lambda k: random.choice(k, 4, (2,), replace=False, p=p))
    drawn = np.stack([np.asarray(draw(k)) for k in random.split(KEY, 500)])
    assert (drawn[:, 0] != drawn[:, 1]).all()
    share = np.bincount(drawn[:, 0], minlength=4) / 500
    np.testing.assert_allclose(share, p, atol=0.08)


def test_integer_probabilities_are_weights() -> None:
    drawn = np.asarray(random.choice(KEY, 3, (300,), p=np.array([0, 3, 1])))
    assert set(drawn.tolist()) == {1, 2}


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"permutation: x is .* of type list"):
        random.permutation(KEY, [1, 2])
    with pytest.raises(
        ArgumentError, match="x must be an integer or have at least one"
    ):
        random.permutation(KEY, 3.0)
    with pytest.raises(ShapeError, match="x must not be negative, got -1"):
        random.permutation(KEY, -1)
    with pytest.raises(AxisError, match=r"there is no axis 2 in f32\[2,2\]"):
        random.permutation(KEY, np.ones((2, 2), np.float32), axis=2)
    with pytest.raises(ShapeError, match="4 distinct slices of 3 cannot be drawn"):
        random.choice(KEY, 3, (4,), replace=False)
    with pytest.raises(ShapeError, match="nothing to draw from"):
        random.choice(KEY, 0, (1,))
    with pytest.raises(ShapeError, match=r"one probability for each of 3 slices"):
        random.choice(KEY, 3, (1,), p=np.ones(4))
    with pytest.raises(ArgumentError, match=r"choice: p is .* of type list"):
        random.choice(KEY, 2, (1,), p=[0.5, 0.5])
    with pytest.raises(AxisError, match=r"there is no axis 1 in i32\[3\]"):
        random.choice(KEY, np.arange(3), axis=1)


def test_under_jit_and_vmap() -> None:
    keys = random.split(KEY, 3)
    x = np.arange(10, dtype=np.float32).reshape(5, 2)

    def draw(key: Any, x: Any) -> Any:
        first, second = random.split(key)
        return random.permutation(first, x), random.choice(second, x, (3,))

    orders, picks = fxflow.jit(fxflow.vmap(draw, in_axes=(0, None)))(keys, x)
    for i in range(3):
        order, pick = draw(keys[i], x)
        np.testing.assert_array_equal(orders[i], order)
        np.testing.assert_array_equal(picks[i], pick)


def test_slope_through_a_shuffle() -> None:
    weights = np.arange(5, dtype=np.float32)
    slope = fxflow.grad(lambda x: (random.permutation(KEY, x) * weights).sum())(weights)
    order = np.asarray(random.permutation(KEY, 5))
    np.testing.assert_array_equal(np.asarray(slope)[order], weights)


@pytest.mark.parametrize("shape, axis", [((0, 2), 0), ((2, 0), 1), ((0,), 0)])
def test_permutation_along_an_empty_axis(shape, axis):
    x = np.zeros(shape, np.int8)
    out = random.permutation(KEY, x, axis)
    assert out.shape == shape and out.dtype == np.int8
    assert fxflow.jit(random.permutation, static_argnums=2)(KEY, x, axis).shape == shape
