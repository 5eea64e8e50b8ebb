"""Regions of shared memory."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.regions import Region, Stream, Streams, aligned


def test_both_sides_can_grow_a_region() -> None:
    ours = Region(limit=1 << 22)
    theirs = Region(os.dup(ours.fd), limit=1 << 22)
    ours.view(10)[:] = b"0123456789"
    old = theirs.view(10)
    theirs.view(1 << 20)[-1:] = b"z"
    assert bytes(ours.view(1 << 20)[-1:]) == b"z"
    ours.view(1)[:] = b"x"
    assert bytes(old[:2]) == b"x1"  # an old view is the same memory
    ours.close()
    theirs.close()


def test_views_outlive_their_region() -> None:
    region = Region(limit=1 << 16)
    array = np.frombuffer(region.view(8), np.float64)
    region.close()
    array[...] = 3.0
    assert array[0] == 3.0


def test_a_region_does_not_exceed_its_limit() -> None:
    region = Region(limit=100)
    with pytest.raises(ServeError, match="need 101 bytes, and the limit is 100"):
        region.view(101)
    assert len(region.view(100)) == 100
    assert os.fstat(region.fd).st_size == 100
    region.close()


def test_offsets_are_rounded_up_to_64() -> None:
    assert [aligned(n) for n in (0, 1, 63, 64, 65)] == [0, 64, 64, 64, 128]


# -- streams of results ----------------------------------------------------------------

SIZES = {"inputs": {"x": "i64[1]"}, "batched": False, "jit": False}


class Ends:
    """A model with two slots, and the server's end of its streams."""

    def __init__(self, function: Any, limit: int = 1 << 16) -> None:
        model = Model(function, **SIZES)
        self.signature = model.prepare(1, lambda work: _run(work))
        self._regions = [Region(limit=limit) for _ in range(2)]
        theirs = [Region(os.dup(r.fd), limit=limit) for r in self._regions]
        self._loop = asyncio.get_running_loop()
        self._process = Streams(model, theirs, self._from_process)
        self._open: list[Stream] = []

    def _from_process(self, message: dict[str, Any]) -> None:
        stream = self._open[message["stream"]]
        self._loop.call_soon(stream.on_message, message)

    def _to_process(self, message: dict[str, Any]) -> None:
        self._loop.call_soon(self._process.on_message, message)

    def open(self, value: int, slot: int = 0) -> Stream:
        number, region = len(self._open), self._regions[slot]
        region.view(8)[:] = np.int64(value).tobytes()
        self._open.append(
            Stream(number, slot, region, self.signature, self._to_process)
        )
        tensors = [["INT64", [1], 0, 8]]
        self._to_process(
            {"stream": number, "slot": slot, "rows": 1, "tensors": tensors}
        )
        return self._open[-1]


def _run(work: Any) -> Any:
    """Runs a coroutine that never waits, inside a running event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


async def rest(stream: Stream) -> list[int]:
    found = []
    while (outputs := await stream.next(5)) is not None:
        found.append(int(outputs[0][0]))
    return found


def test_memory_is_bounded_and_a_stopped_stream_closes() -> None:
    yielded: list[int] = []
    closed: list[int] = []

    def endless(x: Any) -> Iterator[Any]:
        try:
            while True:
                yielded.append(int(x[0]))
                yield x * 10
        finally:
            closed.append(int(x[0]))

    async def main() -> None:
        ends = Ends(endless)
        yielded.clear(), closed.clear()
        one, other = ends.open(1), ends.open(2, slot=1)
        for _ in range(20):
            await asyncio.sleep(0)
        # Each stream has one result in its region and one more ready.
        assert sorted(yielded) == [1, 1, 2, 2]
        for _ in range(3):
            outputs = await one.next(5)
            assert outputs is not None and outputs[0].tolist() == [10]
        for _ in range(20):
            await asyncio.sleep(0)
        assert yielded.count(1) == 5 and yielded.count(2) == 2
        one.stop()
        await asyncio.wait_for(one.over.wait(), 5)
        assert closed == [1] and not other.over.is_set()
        other.stop()
        await asyncio.wait_for(other.over.wait(), 5)
        # A stream that is stopped before it starts ends too, and never runs.
        third = ends.open(3)
        third.stop()
        await asyncio.wait_for(third.over.wait(), 5)
        assert 3 not in yielded and closed == [1, 2]

    asyncio.run(main())


def test_generators_of_both_kinds_and_their_errors() -> None:
    async def asynchronous(x: Any) -> AsyncIterator[Any]:
        for value in plain(x):
            yield value

    def plain(x: Any) -> Iterator[Any]:
        yield x
        yield x + 1
        if x[0] == 5:
            raise KeyError("five")

    async def main(function: Any) -> None:
        ends = Ends(function)
        assert ends.signature.streamed
        assert await rest(ends.open(3)) == [3, 4]
        stream = ends.open(5)
        assert [await stream.next(5) for _ in range(2)] == [[5], [6]]
        with pytest.raises(ServeError, match="the model failed: KeyError: 'five'"):
            await stream.next(5)
        assert stream.over.is_set()

    for function in (plain, asynchronous):
        asyncio.run(main(function))


def test_results_that_are_late_lost_or_too_large() -> None:
    def results(x: Any) -> Iterator[Any]:
        yield np.zeros(1 if x[0] < 9 else 10_000)

    async def main() -> None:
        ends = Ends(results, limit=1 << 10)
        stream = ends.open(1)
        with pytest.raises(TimeoutError):
            await stream.next(0)
        # Unread results of a process that exited are discarded.
        while stream._messages.empty():
            await asyncio.sleep(0)
        stream.fail("its process ended")
        with pytest.raises(ServeError, match="its process ended"):
            await stream.next(5)
        with pytest.raises(ServeError, match="the limit is 1024"):
            await ends.open(9, slot=1).next(5)

    asyncio.run(main())
