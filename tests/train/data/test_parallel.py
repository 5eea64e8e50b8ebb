"""Threads and processes: order, errors, deadlines and their end."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fxflow.errors import DataError, DataTimeoutError, DistributedError
from fxflow.train import data
from fxflow.train.data import Dataset


def working() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("fxflow ")]


@pytest.fixture(autouse=True)
def threads_end() -> Iterator[None]:
    """Fails a test that leaves threads of a pipeline running."""
    before = set(working())  # such as those of a cluster that other tests share
    yield
    gc.collect()
    end = time.monotonic() + 10
    while left := set(working()) - before:
        assert time.monotonic() < end, left
        time.sleep(0.01)


def slow_first(n: int) -> int:
    time.sleep(0.05 if n == 0 else 0)
    return n * n


def odd_fails(n: int) -> int:
    if n % 2:
        raise KeyError(f"no {n}")
    return n


def dies(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def process_of(n: int) -> int:
    return os.getpid()


def stops_late(n: int) -> object:
    """Is quick for 700 elements, so that many of them are transferred together."""
    if n == 700:
        raise KeyError("no 700")
    if n == 800:
        time.sleep(4)
    if n == 900:
        return lambda: "cannot be pickled"
    if n == 1000:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


SQUARES = [n * n for n in range(20)]


@pytest.mark.parametrize("processes", [False, True])
def test_workers_keep_the_order(processes: bool) -> None:
    dataset = data.indexed(range(20)).map(slow_first, workers=2, processes=processes)
    assert list(dataset) == SQUARES


def test_elements_are_computed_in_other_processes() -> None:
    dataset = data.indexed(range(8)).map(process_of, workers=2, processes=True)
    found = set(dataset)
    assert os.getpid() not in found and 1 <= len(found) <= 2


def test_random_numbers_do_not_depend_on_workers() -> None:
    def noise(n: int, rng: np.random.Generator) -> float:
        return rng.random()

    plain = list(data.indexed(range(9)).map(noise, seed=4).repeat(2))
    assert plain == list(data.indexed(range(9)).map(noise, seed=4, workers=3).repeat(2))
    assert len(set(plain)) == 18
    in_order = data.iterable(range(9))
    assert list(in_order.map(noise, seed=4)) == list(
        in_order.map(noise, seed=4, workers=2)
    )


@pytest.mark.parametrize(
    "options", [{}, {"workers": 2}, {"workers": 1, "processes": True}]
)
def test_errors_name_the_element(options: dict[str, Any]) -> None:
    source = data.indexed(range(4)).skip(2)
    for dataset in (source, source.filter(lambda n: True)):
        batches = dataset.map(odd_fails, **options).iterate()
        assert next(batches) == 2
        with pytest.raises(KeyError, match="no 3") as caught:
            next(batches)
        notes = "\n".join(caught.value.__notes__)
        assert "while computing element 1 of map(odd_fails)" in notes
        assert ("in a process of map" in notes) == ("processes" in options)


def test_the_death_of_a_process_is_reported() -> None:
    dataset = data.indexed(range(8)).map(dies, workers=1, processes=True)
    with pytest.raises(DataError, match="ended with exit code -9") as caught:
        list(dataset)
    assert "element 3 of map(dies)" in "\n".join(caught.value.__notes__)


THREADS: dict[str, Any] = {"workers": 2, "timeout": 0.5}
PROCESS: dict[str, Any] = {"workers": 1, "processes": True}


@pytest.mark.parametrize(
    ("options", "last", "words"),
    [
        (THREADS, 700, "no 700"),
        (THREADS, 800, r"took more than 0\.5 s"),
        (PROCESS, 900, "cannot be pickled"),
        (PROCESS, 1000, "exit code -9"),
    ],
)
def test_errors_in_long_runs_name_the_element(
    options: dict[str, Any], last: int, words: str
) -> None:
    numbers = [n for n in range(last + 50) if n == last or n % 100]
    place = numbers.index(last)
    given: list[Any] = []
    with pytest.raises(Exception, match=words) as caught:
        given.extend(data.indexed(numbers).map(stops_late, **options))
    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert f"element {place} of map(stops_late)" in told
    assert given == numbers[: len(given)]
    # Results that a hanging or dead worker has not sent are lost.
    assert len(given) == place or (last in (800, 1000) and len(given) < place)


class Needing(Exception):
    """An error whose `__init__` takes arguments that `args` lacks."""

    def __init__(self, where: str, *, code: int) -> None:
        super().__init__(f"{where} has {code}")
        self.where, self.code, self.lock = where, code, threading.Lock()


class Quoting(ValueError):
    """An error that pickle would rebuild with another message."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no {name}")


class Unloadable:
    def __reduce__(self) -> Any:
        return int, ("no number",)


def raises(n: int) -> Any:
    if n == 0:
        raise Needing("row", code=7)
    if n == 1:
        raise Quoting("name")
    if n == 2:

        class Local(Exception):
            pass

        raise Local("of a function")
    if n == 3:
        raise DistributedError("lost", [1], 2.0)
    return Unloadable()


@pytest.mark.parametrize(
    ("n", "kind", "words"),
    [
        (0, Needing, "row has 7"),
        (1, Quoting, "^no name\n"),
        (2, DataError, r"the function raised raises\.<locals>\.Local: of a function"),
        (3, DistributedError, "lost"),
        (4, DataError, "a result of the function cannot be unpickled here: ValueError"),
    ],
)
def test_errors_of_the_function_are_sent_from_processes(
    n: int, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        list(data.indexed([n]).map(raises, **PROCESS))
    notes = "\n".join(caught.value.__notes__)
    assert "element 0 of map(raises)" in notes
    assert ("in a process of map" in notes) == (n != 4)
    if isinstance(caught.value, Needing):
        assert (caught.value.where, caught.value.code) == ("row", 7)
    if isinstance(caught.value, DistributedError):
        assert (caught.value.processes, caught.value.seconds) == ((1,), 2.0)


class Hidden:
    """A function that only this process can load."""

    def __reduce__(self) -> Any:
        return here, (os.getpid(),)

    def __call__(self, n: int) -> int:
        return n


def here(process: int) -> Hidden:
    if os.getpid() != process:
        raise ImportError("no module named 'notebook'")
    return Hidden()


def test_a_function_that_a_process_cannot_load_is_reported() -> None:
    words = "cannot load the function: ImportError: no module named 'notebook'"
    with pytest.raises(DataError, match=words):
        list(data.indexed(range(3)).map(Hidden(), **PROCESS))


def waits_at_64(n: int) -> int:
    time.sleep(0.3 if n > 63 else 0)
    return n


def test_slow_elements_are_returned_early() -> None:
    batches = data.indexed(range(500)).map(waits_at_64, workers=1).iterate()
    for _ in range(65):
        next(batches)
    start = time.monotonic()
    next(batches)
    assert time.monotonic() - start < 10  # a run of 64 such elements takes 20 s
    batches.close()


def test_errors_of_the_source_reach_the_consumer() -> None:
    def source() -> Iterator[int]:
        yield 1
        raise OSError("disk gone")

    for dataset in (
        data.iterable(source).prefetch(),
        data.iterable(source).map(slow_first, workers=1),
    ):
        batches = iter(dataset)
        assert next(batches) == 1
        with pytest.raises(OSError, match="disk gone"):
            next(batches)


def stuck(release: threading.Event) -> Iterator[int]:
    yield 1
    release.wait(20)  # the line that the message shows


def test_a_stuck_source() -> None:
    release = threading.Event()
    batches = data.iterable(lambda: stuck(release)).prefetch(timeout=0.2).iterate()
    assert next(batches) == 1
    with pytest.raises(DataTimeoutError, match=r"in 0\.2 s(.|\n)*the line that the"):
        next(batches)
    release.set()


def test_a_stuck_function_times_out() -> None:
    release = threading.Event()
    dataset = data.indexed(range(3)).map(
        lambda n: release.wait(20), workers=1, timeout=0.2
    )
    with pytest.raises(DataTimeoutError, match=r"element 0 of map\(<lambda>.* 0\.2 s"):
        list(dataset)
    release.set()


def test_the_functions_own_timeout_error_is_raised() -> None:
    def late(n: int) -> None:
        raise TimeoutError("my own")

    with pytest.raises(TimeoutError, match="my own") as caught:
        list(data.indexed(range(1)).map(late, workers=1))
    assert not isinstance(caught.value, DataTimeoutError)


def endless() -> Dataset[int]:
    return data.indexed(range(9)).repeat().map(slow_first, workers=2).prefetch(3)


def test_leaving_the_loop_ends_threads() -> None:
    for n in endless():
        if n == 64:
            break
    with endless().iterate() as batches:
        next(batches)
    assert next(batches, None) is None
    dropped = endless().iterate()
    next(dropped)
    assert working()
    del dropped


def test_the_source_waits_for_its_consumer() -> None:
    drawn = []

    def source() -> Iterator[int]:
        for n in range(100):
            drawn.append(n)
            yield n

    batches = data.iterable(source).prefetch(4).iterate()
    next(batches)
    time.sleep(0.1)
    # One was yielded, four wait, and the thread holds one.
    assert len(drawn) <= 6
    batches.close()
