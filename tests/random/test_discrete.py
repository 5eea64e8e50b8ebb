"""Bernoulli, signs, categories, waiting times."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from tests.random import golden

KEY = random.key(7)


@pytest.mark.parametrize(
    "name", golden.names("bernoulli", "categorical", "rademacher", "geometric")
)
def test_as_jax(name: str) -> None:
    golden.check(name)


@pytest.mark.parametrize("mode", ["low", "high"])
def test_bernoulli_shares(mode: str) -> None:
    p = np.array([0.0, 0.2, 0.9, 1.0], np.float32)
    share = np.asarray(random.bernoulli(KEY, p, (4000, 4), mode)).mean(0)
    np.testing.assert_allclose(share, p, atol=0.03)
    assert share[0] == 0
    assert share[3] == 1


def test_invalid_parameters_of_bernoulli_are_refused() -> None:
    with pytest.raises(DtypeError, match=r"probability p must be a float, got i32"):
        random.bernoulli(KEY, 1)
    with pytest.raises(ArgumentError, match='bernoulli: mode must be "low" or "high"'):
        random.bernoulli(KEY, 0.5, mode="fast")
    assert random.bernoulli(KEY).shape == ()


@pytest.mark.parametrize("dtype", ["int8", "int32", "float16", "float32", "complex64"])
def test_rademacher_draws_both_signs(dtype: str) -> None:
    drawn = np.asarray(random.rademacher(KEY, (1000,), dtype))
    assert drawn.dtype == dtype
    assert set(drawn.real.astype(int).tolist()) == {-1, 1}
    assert abs(drawn.astype(complex).mean()) < 0.1
    with pytest.raises(DtypeError, match="rademacher: dtype must be a signed"):
        random.rademacher(KEY, (), "uint8")


def test_waiting_times() -> None:
    drawn = np.asarray(random.geometric(KEY, 0.3, (4000,)))
    assert drawn.dtype == np.int32
    counts = np.bincount(drawn, minlength=9)[1:9]
    want = 4000 * scipy.stats.geom(0.3).pmf(np.arange(1, 9))
    assert (np.abs(counts - want) < 5 * np.sqrt(want)).all()
    certain = random.geometric(KEY, 1.0, (5,))
    np.testing.assert_array_equal(certain, np.ones(5, np.int32))


@pytest.mark.parametrize("mode", [None, "high"])
def test_category_shares(mode: str | None) -> None:
    p = np.array([0.1, 0.0, 0.6, 0.3], np.float32)
    with np.errstate(divide="ignore"):
        logits = np.log(p)
    drawn = np.asarray(random.categorical(KEY, logits, shape=(4000,), mode=mode))
    assert drawn.dtype == np.int32
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, p, atol=0.03)


def test_shapes_of_categories() -> None:
    logits = np.zeros((4, 3), np.float32)
    assert random.categorical(KEY, logits).shape == (4,)
    assert random.categorical(KEY, logits, axis=0).shape == (3,)
    assert random.categorical(KEY, logits, shape=(5, 4)).shape == (5, 4)
    assert random.categorical(KEY, logits[:1], shape=(5, 4)).shape == (5, 4)
    without = random.categorical(KEY, logits, shape=(2, 4), replace=False)
    assert without.shape == (2, 4)
    assert (np.asarray(without)[0] != np.asarray(without)[1]).all()
    every = random.categorical(KEY, logits[0], shape=(3,), replace=False)
    assert sorted(np.asarray(every).tolist()) == [0, 1, 2]


def test_invalid_categories_are_refused() -> None:
    logits = np.zeros((4, 3), np.float32)
    with pytest.raises(ShapeError, match=r"shape \(5,\) must end in \(4,\)"):
        random.categorical(KEY, logits, shape=(5,))
    with pytest.raises(ShapeError, match="4 distinct categories of 3 cannot be drawn"):
        random.categorical(KEY, logits, shape=(4, 4), replace=False)
    with pytest.raises(AxisError, match=r"there is no axis 2 in logits f32\[4,3\]"):
        random.categorical(KEY, logits, axis=2)
    with pytest.raises(DtypeError, match=r"the logits must be floats, got i32\[3\]"):
        random.categorical(KEY, np.arange(3))
    with pytest.raises(ArgumentError, match=r"the logits are .* of type list"):
        random.categorical(KEY, [0.0, 1.0])
    with pytest.raises(ShapeError, match="there are no categories along axis 1"):
        random.categorical(KEY, logits[:, :0])
    with pytest.raises(
        ArgumentError, match='categorical: mode must be "low" or "high"'
    ):
        random.categorical(KEY, logits, mode="x")


def test_under_jit_and_vmap() -> None:
    keys = random.split(KEY, 4)
    logits = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)

    def draw(key: Any, row: Any) -> Any:
        return random.categorical(key, row, shape=(6,))

    drawn = fxflow.jit(fxflow.vmap(draw))(keys, logits)
    for i in range(4):
        np.testing.assert_array_equal(drawn[i], draw(keys[i], logits[i]))
