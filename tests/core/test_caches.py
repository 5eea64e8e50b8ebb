"""Caches: bounded, counted, emptied by what makes their entries wrong."""

from __future__ import annotations

import gc

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.core import caches
from fxflow.core.caches import Cache, clear_caches


def test_the_older_half_goes_when_it_is_full():
    cache: Cache[int, int] = Cache("test", 10)
    for i in range(35):
        assert cache.keep(i, -i) == -i
        assert len(cache) <= 10
    assert cache[34] == -34 and 0 not in cache


def test_entries_of_all_caches_of_a_name_are_counted():
    one, other = Cache("test"), Cache("test")
    one.keep(1, 1), other.keep(1, 1), other.keep(2, 2)
    assert caches.sizes()["test"] == 3
    del one, other
    gc.collect()
    assert "test" not in caches.sizes()


@pytest.fixture
def told():
    """How often callbacks were called."""
    kept = [*caches._on_clear]
    calls: list[str] = []
    caches.on_clear(lambda: calls.append("told"))
    yield calls
    caches._on_clear[:] = kept


def test_options_leave_what_has_them_in_its_keys(told):
    stale, valid = Cache("test"), Cache("test", by_options=True)
    stale.keep(1, 1), valid.keep(1, 1)
    config.default_matmul_precision = "highest"
    try:
        assert (len(stale), len(valid)) == (0, 1)
        assert told == ["told"]
    finally:
        config.default_matmul_precision = None
    clear_caches()
    assert not valid
    assert told == ["told"] * 3


def test_clear_caches_clears_all_there_is():
    traces = []

    @fxflow.jit
    def f(x):
        traces.append(1)
        return lax.scan(lambda c, _: (c * 2.0, None), x, None, length=2)[0]

    def use():
        x = fnp.arange(6.0)
        mapped = fxflow.pmap(lambda x: x + 1)(x[:1])
        return [f(x), fnp.sum(x[1:3]), lax.sin(x), x.reshape(2, 3), x[x > 2], mapped]

    before = [str(v) for v in use()]
    assert len(traces) == 1
    assert caches.sizes()["eager operations"] > 0
    clear_caches()
    assert not any(caches.sizes().values())
    assert [str(v) for v in use()] == before
    assert len(traces) == 2
