"""The prediction cache."""

import random

import numpy as np
import pytest

from fxflow.serve.cache import PredictionCache, key_of


def outputs(value: float) -> dict[str, np.ndarray]:
    return {"y": np.full(100, value)}


SIZE = 500 + 800


def test_keys_distinguish_inputs() -> None:
    arrays = [
        [np.zeros(4, np.float32)],
        [np.zeros(4, np.int32)],
        [np.zeros((2, 2), np.float32)],
        [np.zeros(2, np.float32), np.zeros(2, np.float32)],
        [np.array([b"a", b"bc"], object)],
        [np.array([b"ab", b"c"], object)],
    ]
    assert len({key_of(a) for a in arrays}) == len(arrays)


def test_an_entry_that_was_hit_is_spared() -> None:
    cache = PredictionCache(3 * SIZE)
    for name in (b"a", b"b", b"c"):
        cache.put(name, outputs(ord(name)))
    assert cache.get(b"a") is not None
    cache.put(b"d", outputs(0))
    assert cache.get(b"b") is None and cache.get(b"a") is not None
    assert (cache.hits, cache.misses) == (2, 1)


@pytest.mark.parametrize("seed", range(3))
def test_bounded_and_never_wrong(seed: int) -> None:
    rng = random.Random(seed)
    cache = PredictionCache(10 * SIZE)
    for _ in range(3000):
        k = min(rng.randrange(50), rng.randrange(50))
        key = str(k).encode()
        found = cache.get(key)
        if found is None:
            cache.put(key, outputs(k))
        else:
            assert found["y"][0] == k
        assert cache.nbytes == len(cache) * SIZE <= 10 * SIZE
    assert cache.hits > 600


def test_views_of_a_batch_are_copied() -> None:
    cache = PredictionCache(10 * SIZE)
    batch = np.zeros((1000, 2))
    cache.put(b"k", {"y": batch[3:4]})
    batch[:] = 7
    found = cache.get(b"k")
    assert found is not None and found["y"].tolist() == [[0, 0]]
    cache.put(b"large", {"y": np.zeros(10_000)})
    assert cache.get(b"large") is None
