"""Caches: bounded, counted, emptied by what makes their entries wrong."""

from __future__ import annotations

import gc
import threading

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.core import caches
from fxflow.core.caches import Cache, Room, clear_caches


def test_the_older_half_goes_when_it_is_full():
    cache: Cache[int, int] = Cache("test", 10)
    for i in range(35):
        assert cache.keep(i, -i) == -i
        assert len(cache) <= 10
    assert cache[34] == -34 and 0 not in cache


def test_caches_share_a_room():
    room = Room(100)
    one, other = Cache("test", room=room), Cache("test", room=room)
    for i in range(20):
        (one, other)[i % 2].keep(i, i, nbytes=10)
        assert len(one) + len(other) <= 10
        assert room.taken == 10 * (len(one) + len(other))
    assert 19 in other and 0 not in one
    other.keep(19, 19, nbytes=10)
    assert room.taken == 10 * (len(one) + len(other)), "the same entry counts once"


def test_cleared_and_collected_caches_take_no_room():
    room = Room(100)
    kept = Cache("test", room=room)
    kept.keep("first", 1, nbytes=10)
    for i in range(50):
        Cache("test", room=room).keep(i, i, nbytes=10)
        gone = Cache("test", room=room)
        gone.keep(i, i, nbytes=10)
        gone.clear()
    assert kept == {"first": 1}


def test_some_entries_stay_however_large():
    room = Room(100, least=3)
    cache = Cache("test", room=room)
    for i in range(10):
        cache.keep(i, i, nbytes=1000)
    assert list(cache) == [7, 8, 9]


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


# -- work that several threads ask for at once -----------------------------------------


def race(count, function):
    """Calls a function from several threads at once; returns what they got."""
    together = threading.Barrier(count)
    found = []

    def run():
        together.wait()
        found.append(function())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    return found


class Table(Cache):
    """What is made, and how often."""

    __slots__ = ("made",)

    def __init__(self):
        super().__init__("test")
        self.made = 0

    def get_once(self, make=lambda: None, **options):
        def run():
            self.made += 1
            make()
            return self.keep("x", "made")

        return self.once("x", run, **options)


@pytest.mark.parametrize("patient", [False, True])
def test_one_thread_makes_the_entry_for_all(patient, monkeypatch):
    monkeypatch.setattr(caches, "PATIENCE", 60.0)
    table = Table()
    assert race(16, lambda: table.get_once(patient=patient)) == ["made"] * 16
    assert table.made == 1 and not table._turns


def test_errors_are_of_each_thread(monkeypatch):
    monkeypatch.setattr(caches, "PATIENCE", 60.0)
    table = Table()

    def fail():
        raise KeyError("no")

    def attempt():
        try:
            table.get_once(fail)
        except KeyError:
            return "failed"

    assert race(4, attempt) == ["failed"] * 4
    assert table.made == 4 and not table._turns


def test_a_thread_does_not_wait_for_itself():
    table = Table()

    def again():
        if table.made == 1:
            table.get_once(again)

    assert table.get_once(again) == "made"
    assert table.made == 2


def test_a_thread_that_waits_for_those_that_wait_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(caches, "PATIENCE", 0.01)
    table = Table()

    def with_children():
        if table.made == 1:
            assert race(3, lambda: table.get_once(with_children)) == ["made"] * 3

    assert table.get_once(with_children) == "made"
    assert 1 < table.made <= 4 and not table._turns


def test_two_threads_that_hold_what_the_other_wants(monkeypatch):
    monkeypatch.setattr(caches, "PATIENCE", 0.01)
    tables = Table(), Table()
    both = threading.Barrier(2)

    def run(first, second):
        def make():
            if first.made == 1:
                both.wait()
                second.get_once(lambda: None)

        return first.get_once(make)

    turn = iter([tables, tables[::-1]])
    assert race(2, lambda: run(*next(turn))) == ["made", "made"]


def test_caches_are_counted_while_others_are_made():
    stop = threading.Event()

    def make():
        while not stop.is_set():
            [Cache("test") for _ in range(20)]

    thread = threading.Thread(target=make)
    thread.start()
    try:
        assert all(isinstance(caches.sizes(), dict) for _ in range(200))
    finally:
        stop.set()
        thread.join()
