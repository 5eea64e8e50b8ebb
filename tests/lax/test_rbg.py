"""Keys of XLA's own generators: the keys and numbers of JAX 0.10.2."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import random
from fxflow.errors import DtypeError

IMPLS = ("rbg", "unsafe_rbg")
SPLIT = {
    "rbg": [
        [1832780943, 270669613, 1832780943, 270669613],
        [64467757, 2916123636, 64467757, 2916123636],
    ],
    "unsafe_rbg": [
        [2620864722, 2991908441, 282133475, 2589630650],
        [4105776319, 298289174, 864345282, 274752888],
    ],
}
FOLDED = {
    "rbg": [2765691542, 824333390, 2765691542, 824333390],
    "unsafe_rbg": [3810769997, 2355008983, 1837142617, 748193156],
}
MAPPED = {
    "rbg": [[1826589366, 4083436224], [2060148117, 898661685]],
    "unsafe_rbg": [[2621076060, 1110882205], [1431065575, 3391764957]],
}


@pytest.mark.parametrize("impl", IMPLS)
def test_seeds_splits_and_folds_are_the_known_ones(impl: str) -> None:
    key = random.key(42, impl=impl)
    assert random.key_impl(key) == impl
    assert key.dtype.name == f"key<{'u' * (impl != 'rbg')}rbg>"
    assert random.key_data(key).tolist() == [0, 42, 0, 42]
    assert random.key_data(random.split(key, 2)).tolist() == SPLIT[impl]
    in_two = random.key_data(random.split(key, (1, 2)))
    assert in_two.tolist() == [SPLIT[impl]]
    assert random.key_data(random.fold_in(key, 5)).tolist() == FOLDED[impl]
    wrapped = random.wrap_key_data(random.key_data(key), impl=impl)
    assert bool((wrapped == key).all()) and wrapped.dtype == key.dtype


@pytest.mark.parametrize("impl", IMPLS)
def test_draws(impl: str) -> None:
    key = random.key(42, impl=impl)
    drawn = fxflow.jit(lambda k: random.uniform(k, (3,)))(key)
    want = [0.6102175712585449, 0.6966079473495483, 0.06568920612335205]
    np.testing.assert_array_equal(drawn, np.float32(want))
    assert random.bits(key, (2,), "uint64").tolist() == [
        12850148909342210258,
        11122378950751355875,
    ]
    keys = random.split(key, 2)
    mapped = fxflow.vmap(lambda k: random.bits(k, (2,)))(keys)
    assert mapped.tolist() == MAPPED[impl]


PERMUTED = {"rbg": [4, 2, 1, 0, 3], "unsafe_rbg": [3, 1, 4, 0, 2]}
INTEGERS = {"rbg": [73, 6, 47], "unsafe_rbg": [9, 41, 27]}


@pytest.mark.parametrize("impl", IMPLS)
def test_samplers_that_split_the_key(impl: str) -> None:
    key = random.key(3, impl=impl)
    assert random.permutation(key, 5).tolist() == PERMUTED[impl]
    assert random.randint(key, (3,), 0, 100).tolist() == INTEGERS[impl]
    normal = [0.6210078597068787, 0.8047896027565002, -0.15007442235946655]
    np.testing.assert_allclose(random.normal(key, (3,)), normal, 1e-6)


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize(
    "draw",
    [
        lambda k: random.gamma(k, 2.0, (2000,)),
        lambda k: random.poisson(k, 2.0, (2000,)),
    ],
    ids=["gamma", "poisson"],
)
def test_means(impl: str, draw) -> None:
    drawn = fxflow.vmap(draw)(random.split(random.key(7, impl=impl), 1))
    assert abs(float(drawn.mean()) - 2.0) < 0.15


def test_another_generator() -> None:
    with pytest.raises(DtypeError, match="'threefry2x32', 'rbg', 'unsafe_rbg'"):
        random.key(0, impl="mersenne")
    with pytest.raises(TypeError):
        fxflow.numpy.stack([random.key(0), random.key(0, impl="rbg")])
