"""The runner: fragments overlap, errors stop the step, nothing is left running."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.dataflow import on, runner
from fxflow.dataflow.runner import Thread

DEVICES = fxflow.local_devices()
#: Elements of arrays whose fragments go to the devices' threads.
LARGE = 60_000


def sleeping(seconds: float, log: list[Any]) -> Any:
    def sleep(x: Any) -> Any:
        log.append(("start", threading.current_thread().name))
        time.sleep(seconds)
        log.append(("end", threading.current_thread().name))
        return x

    return lambda x: fxflow.pure_callback(sleep, x, x)


def test_two_devices_overlap() -> None:
    both = threading.Barrier(2)

    def wait(x: Any) -> Any:
        return fxflow.pure_callback(lambda v: both.wait(60) * 0 + v, x, x)

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = wait(x)
        with on("/device:cpu:2"):
            b = wait(x + 1)
        with on("/device:cpu:1"):
            return a + b

    assert dataflow.jit(f)(1.0) == 3


def test_one_device_runs_one_fragment_at_a_time() -> None:
    log: list[Any] = []
    wait = sleeping(0.05, log)

    def f(x: Any) -> Any:
        for i in (1, 2, 1):
            with on(f"/device:cpu:{i}"):
                x = wait(x)
        return x

    g = dataflow.jit(f)
    g(1.0)
    log.clear()
    threads = [threading.Thread(target=g, args=(1.0,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    running: dict[str, int] = {}
    for kind, thread in log:
        running[thread] = running.get(thread, 0) + (1 if kind == "start" else -1)
        assert running[thread] <= 1
    assert len(log) == 12


def test_an_error_names_the_fragment_and_stops_the_step() -> None:
    ran: list[str] = []

    def fails(x: Any) -> Any:
        raise ValueError("broken")

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            x = fxflow.pure_callback(fails, x, x)
        with on("/device:cpu:2"):
            return fxflow.pure_callback(lambda v: ran.append("late") or v, x, x)

    g = dataflow.jit(f)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken") as caught:
            g(1.0)
        (note,) = (n for n in caught.value.__notes__ if "fragment" in n)
        assert "fragment 0 of f on cpu:1" in note and "test_runner.py" in note
    assert not ran


def test_a_deleted_argument_is_an_error() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
        with on("/device:cpu:2"):
            return y + x

    for size in (3, LARGE):  # by the caller's thread, and by the devices'
        g, x = dataflow.jit(f), fnp.ones(size)
        g(x)
        x.delete()
        with pytest.raises(fxflow.errors.DeletedArrayError):
            g(x)
        assert np.allclose(g(fnp.ones(size)), np.sin(1) + 1)


def test_threads_end_when_they_are_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "IDLE", 0.05)
    monkeypatch.setattr(runner, "_threads", {})

    def f(x: Any) -> Any:
        with on("/device:cpu:4"):
            x = fnp.sin(x)
        with on("/device:cpu:5"):
            return fnp.cos(x)

    g, x = dataflow.jit(f), fnp.ones(LARGE)
    first = g(x)
    assert set(runner._threads) == {(DEVICES[4],), (DEVICES[5],)}

    def left() -> list[str]:
        names = [t.name for t in threading.enumerate()]
        return [n for n in names if n in ("fxflow cpu:4", "fxflow cpu:5")]

    deadline = time.monotonic() + 30
    while left() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not left()
    assert (g(x) == first).all()  # and start again


def test_values_are_dropped_after_their_last_use() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)
        with on("/device:cpu:2"):
            b = fnp.cos(a)
        with on("/device:cpu:1"):
            return (a + fxflow.device_put(b)).sum()

    for shape in ((7, 11), (7, LARGE)):
        g, x = dataflow.jit(f), fnp.ones(shape)
        g(x).block_until_ready()
        gc.collect()
        alive = [a for a in fxflow.live_arrays() if a.shape == shape]
        assert len(alive) == 1


def test_many_callers_at_once() -> None:
    def f(x: Any) -> Any:
        for i in range(4):
            with on(f"/device:cpu:{i}"):
                x = x * 2 + i
        return x

    g = dataflow.jit(f)
    args = [fnp.full(LARGE, float(i)) for i in range(4)]
    want = [float(fxflow.jit(f)(x)[0]) for x in args]
    wrong: list[Any] = []

    def call(i: int) -> None:
        for _ in range(50):
            got = float(g(args[i])[0])
            if got != want[i]:
                wrong.append((i, got))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_an_interrupt_leaves_nothing_running() -> None:
    started, late = threading.Event(), []

    def slow(x: Any) -> Any:
        started.set()
        time.sleep(0.3)
        return x

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            x = fxflow.pure_callback(slow, x, x)
        with on("/device:cpu:2"):
            return fxflow.pure_callback(lambda v: late.append(1) or v, x, x)

    def interrupt() -> None:
        started.wait(60)
        os.kill(os.getpid(), signal.SIGINT)

    g = dataflow.jit(f)
    g(1.0)
    started.clear()
    late.clear()
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        g(1.0)
    thread.join(60)
    assert not late
    assert g(2.0) == 2 and late == [1]


@pytest.mark.parametrize("submitted", [0, 1])
def test_an_interrupt_may_come_before_all_threads_have_work(
    submitted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            x = x + 1
        with on("/device:cpu:2"):
            return x * 2

    g, x = dataflow.jit(f), fnp.ones(LARGE)
    assert g(x)[0] == 4
    submit, calls, caught = Thread.submit, [], []

    def interrupted(self: Thread, step: Any, row: Any) -> None:
        calls.append(row)
        if len(calls) == submitted + 1:
            raise KeyboardInterrupt
        submit(self, step, row)

    def call() -> None:
        try:
            g(x)
        except KeyboardInterrupt as error:
            caught.append(error)

    monkeypatch.setattr(Thread, "submit", interrupted)
    caller = threading.Thread(target=call, daemon=True)
    caller.start()
    caller.join(60)
    assert caught and not caller.is_alive()
    assert g(x)[0] == 4


@pytest.mark.parametrize("size", [3, LARGE])
def test_a_callback_may_call_a_dataflow_function(size: int) -> None:
    @dataflow.jit
    def inner(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
        with on("/device:cpu:2"):
            return fnp.cos(y)

    def call(x: Any) -> Any:
        return fxflow.pure_callback(lambda v: np.asarray(inner(v)), x, x)

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = call(x)
        with on("/device:cpu:2"):
            return a + call(x + 1)

    x = np.linspace(0, 1, size, dtype=np.float32)
    done: list[Any] = []
    # The threads of the devices wait for the callbacks, which are on them.
    thread = threading.Thread(target=lambda: done.append(dataflow.jit(f)(x)))
    thread.daemon = True
    thread.start()
    thread.join(60)
    assert done, "the callbacks wait for their own device"
    want = np.cos(np.sin(x)) + np.cos(np.sin(x + 1))
    np.testing.assert_allclose(done[0], want, rtol=1e-5)


def test_a_callback_that_fails_in_a_value_of_another_place_is_the_error() -> None:
    def fails(v: Any) -> Any:
        raise ValueError("boom")

    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
        with on("/device:cpu:2"):
            return fxflow.pure_callback(fails, y, y) + 1

    for size in (3, LARGE):  # the second is donated to its last fragment
        with pytest.raises(ValueError, match="boom") as caught:
            dataflow.jit(f)(fnp.ones(size))
        assert any("fragment 1 of f on cpu:2" in n for n in caught.value.__notes__)
