"""Calls that are put off run without the lock."""

from __future__ import annotations

import threading

from fxflow.dataflow.tasks.locks import DeferringLock


def test_calls_wait_for_the_outermost_release() -> None:
    lock, seen = DeferringLock(), []
    with lock:
        with lock:
            lock.afterwards(lambda: seen.append(1))
        assert seen == []
        lock.afterwards(lambda: seen.append(2))
    assert seen == [1, 2]
    lock.afterwards(lambda: seen.append(3))
    assert seen == [1, 2, 3]


def test_two_locks_are_taken_in_both_orders() -> None:
    inner, outer = DeferringLock(), threading.RLock()
    holds, done = threading.Event(), []

    def report() -> None:
        with outer:
            done.append(1)

    def first() -> None:
        with inner:
            holds.set()
            inner.afterwards(report)

    def second() -> None:
        with outer:
            holds.wait(10)
            with inner:
                done.append(2)

    threads = [threading.Thread(target=f, daemon=True) for f in (second, first)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(done) == [1, 2]
