"""Batches, deadlines and faults, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.service import (
    MetricsSink,
    ModelConfig,
    ModelService,
    Prediction,
    PredictionRequest,
    RequestOrigin,
    answers,
    checked_origin,
)
from fxflow.serve.signatures import ModelSignature

ACT = ModelSource("tests.serve.zoo:act", inputs={"x": "f32[b,2]"}, max_batch=8)


class Counting(MetricsSink):
    def __init__(self) -> None:
        self.batches: list[int] = []

        self.results: list[int] = []

    def batch(
        self, model: str, rows: int, seconds: float, requests: int, queued: float
    ) -> None:
        assert requests <= rows and queued >= 0
        self.batches.append(rows)

    def result(self, model: str, number: int, seconds: float) -> None:
        assert seconds >= 0
        self.results.append(number)


def using(
    body: Callable[[ModelService, Counting], Awaitable[None]],
    source: ModelSource = ACT,
    **options: Any,
) -> None:
    async def main() -> None:
        meter = Counting()
        options.setdefault("slo", 1.0)
        service = ModelService(ModelConfig("m", source, **options), meter)
        await service.start()
        try:
            await body(service, meter)
        finally:
            await service.close()

    asyncio.run(main())


def ask(
    service: ModelService, value: float = 0.0, rows: int = 1, **options: Any
) -> Any:
    array = np.full((rows, 2), value, np.float32)
    return service.submit(PredictionRequest({"x": array}, rows, **options))


def test_batches_and_faults() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        values = list(range(10, 26))
        answers = await asyncio.gather(*(ask(service, v) for v in values))
        for value, answer in zip(values, answers, strict=True):
            assert answer.outputs["output"].tolist() == [[value, value]]
        # The first runs alone; the others were queued when it finished.
        assert meter.batches[0] == 1 and max(meter.batches) == 8
        assert sum(meter.batches) == len(values)

        # A request that makes the model fail does not affect others in its batch.
        found = await asyncio.gather(
            *(ask(service, v) for v in (10, 11, 1, 12)), return_exceptions=True
        )
        assert isinstance(found[2], ServeError) and "one is not liked" in str(found[2])
        assert [f.outputs["output"][0, 0] for f in found if f is not found[2]] == [
            10,
            11,
            12,
        ]

        with pytest.raises(ServeError, match="may have 8 rows, got 9") as caught:
            await ask(service, rows=9)
        assert caught.value.status == 413

    using(body, batching="fixed")


def test_requests_wait_for_a_process_that_restarts() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        for deaths in range(1, 4):
            with pytest.raises(ServeError, match="signal 9"):
                await ask(service, 2)
            assert not service.ready
            # A request without time for the start is refused at once; others wait.
            with pytest.raises(ServeError, match="until one has restarted") as c:
                await ask(service, 10, timeout=0.001)
            assert c.value.status == 503 and c.value.retry_after > 0.01
            assert service.refusal() is None
            answers = await asyncio.gather(*(ask(service, 10) for _ in range(3)))
            assert [answer.rows for answer in answers] == [3] * 3
            assert service.stats()["starts"] == 1 + deaths
        # The start does not count as slowness of the model.
        with pytest.raises(ServeError, match="signal 9"):
            await ask(service, 2)
        assert service._overdue.margin < 0.5

    using(body, batching="fixed", deadline=60.0)


def test_a_late_request_fails_and_the_hung_process_restarts() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        hanging = asyncio.create_task(ask(service, 3, timeout=0.3))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(ask(service, 10, timeout=0.2))
        for task, status in ((waiting, 503), (hanging, 504)):
            with pytest.raises(ServeError, match="by the deadline") as caught:
                await task
            assert caught.value.status == status
        assert loop.time() - begun < 10
        # The hung process is killed, and the next one serves.
        while service.stats()["starts"] < 2 or not service.ready:
            await asyncio.sleep(0.01)
        await ask(service, 10)

    using(body, hang=0.6)


def test_overload_is_refused_before_it_is_late() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        for _ in range(3):
            await ask(service, 5)  # 50 ms each: the pace is known
        assert service.refusal() is None
        asked = [asyncio.create_task(ask(service, 5)) for _ in range(60)]
        await asyncio.sleep(0)
        # `refusal` predicts the refusal before a request is read.
        why = service.refusal()
        assert why is not None and why.status == 503
        assert "rows are ahead of it" in str(why)
        found = await asyncio.gather(*asked, return_exceptions=True)
        good = [f for f in found if not isinstance(f, BaseException)]
        bad = [f for f in found if isinstance(f, ServeError)]
        assert service.refusal() is None
        assert len(good) >= 3 and len(good) + len(bad) == 60
        assert all(f.status in (503, 504) and f.retry_after > 0 for f in bad)
        # Accepted requests are late only if the machine stood still meanwhile.
        assert sum(f.status == 504 for f in bad) < len(good)

    using(body, batching="none", slo=0.1, deadline=1.0)


def test_a_model_slower_than_its_objective_is_still_batched() -> None:
    """Single rows would miss it too, and take 50 ms each."""

    async def body(service: ModelService, meter: Counting) -> None:
        for _ in range(6):
            await asyncio.gather(
                *(ask(service, 5) for _ in range(8)), return_exceptions=True
            )
        assert service.stats()["batch_limit"] >= 4
        assert max(meter.batches) >= 3

    using(body, slo=0.04, deadline=0.6)


def test_draining_answers_accepted_requests() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        tasks = [asyncio.create_task(ask(service, 5)) for _ in range(4)]
        await asyncio.sleep(0.01)
        pids = service.pids()
        await service.drain()
        assert all(task.done() and task.result().rows for task in tasks)
        with pytest.raises(ServeError, match="no replica"):
            await ask(service)
        for pid in pids:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    using(body, batching="none")


def test_one_replica_serves_after_the_other_dies() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        while service.stats()["replicas_ready"] < 2:
            await asyncio.sleep(0.01)
        os.kill(service.pids()[0], signal.SIGKILL)
        answers = await asyncio.gather(
            *(ask(service, 10 + k) for k in range(40)), return_exceptions=True
        )
        lost = [a for a in answers if isinstance(a, BaseException)]
        assert len(lost) <= 8  # at most the batch in flight
        assert service.ready

    using(body, replicas=2)


def test_cached_answers() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        first = await ask(service, 10)
        again = await ask(service, 10)
        assert again.rows == 0 and len(meter.batches) == 1
        assert (again.outputs["output"] == first.outputs["output"]).all()
        assert (await ask(service, 11)).outputs["output"][0, 0] == 11
        with pytest.raises(ServeError):
            await ask(service, 1)
        with pytest.raises(ServeError):  # errors are not cached
            await ask(service, 1)
        stats = service.stats()
        assert (stats["cache_hits"], stats["cache_misses"]) == (1, 4)

    using(body, cache=100_000)


def test_a_model_that_cannot_be_loaded_is_an_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def main() -> None:
        service = ModelService(ModelConfig("m", ModelSource("tests.serve.zoo:none")))
        with pytest.raises(ServeError, match="model 'm': it cannot be loaded"):
            await service.start()

    asyncio.run(main())


# -- streams of results ----------------------------------------------------------------


def counter(streams: int, asynchronous: bool) -> ModelSource:
    arguments = {"asynchronous": asynchronous}
    return ModelSource(
        "tests.serve.zoo:counter", factory=True, arguments=arguments, streams=streams
    )


def counting(
    service: ModelService, most: int, fault: int = 0, pause: float = 0.0, **options: Any
) -> AsyncGenerator[Prediction, None]:
    x = np.array([[most, fault, pause, 10]], np.float32)
    return answers(service, PredictionRequest({"x": x}, 1, **options))


async def numbers(results: AsyncGenerator[Prediction, None]) -> list[float]:
    return [float(answer.outputs["y"][0, 0]) async for answer in results]


async def first_of(results: AsyncGenerator[Prediction, None]) -> Prediction:
    async with aclosing(results):
        return await anext(results)


def test_streams() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        both = [numbers(counting(service, n)) for n in (3, 2)]
        assert await asyncio.gather(*both) == [[10, 11, 12], [10, 11]]
        assert sorted(meter.results) == [0, 0, 1, 1, 2]
        with pytest.raises(ServeError, match="with a stream of results") as caught:
            x = np.zeros((1, 4), np.float32)
            await service.submit(PredictionRequest({"x": x}, 1))
        assert caught.value.status == 400

        # Two of three streams are open; the third waits until one closes.
        endless = [counting(service, 1000) for _ in range(2)]
        before = (await anext(endless[0])).outputs["closed"][0]
        await anext(endless[1])
        waits = asyncio.create_task(first_of(counting(service, 1)))
        await asyncio.sleep(0)  # let it send the request
        await asyncio.sleep(0.05)
        assert not waits.done() and service.stats()["streams"] == 2
        await endless[0].aclose()
        answer = await waits
        assert answer.queued > 0.04
        assert answer.outputs["closed"][0] == before + 1  # the generator was closed
        # It is also closed if the task that waits for a result is cancelled.
        task = asyncio.create_task(anext(counting(service, 1, 0, 30.0)))  # type: ignore[arg-type]
        while service.stats()["streams"] < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while service.stats()["streams"] > 1:
            await asyncio.sleep(0.01)
        await endless[1].aclose()

        # A late result, or a long stream, is an error that ends it.
        with pytest.raises(ServeError, match=r"no result within 0\.2 s") as caught:
            await numbers(counting(service, 1, 0, 30.0, timeout=0.2))
        assert caught.value.status == 504
        service.config = replace(service.config, duration=0.2)
        with pytest.raises(ServeError, match=r"took more than 0\.2 s"):
            await numbers(counting(service, 1_000_000))
        service.config = replace(service.config, duration=60.0)
        assert service.stats()["starts"] == 1

        # A crash fails the open streams, with the reason.
        found: list[float] = []
        with pytest.raises(ServeError, match="ended by signal 9") as caught:
            async for answer in counting(service, 5, 2):
                found += answer.outputs["y"][0].tolist()
        assert found == [10, 11] and caught.value.status == 500
        while not service.ready:
            await asyncio.sleep(0.01)
        # Draining waits for open streams, and refuses new requests.
        last = counting(service, 4, 0, 0.02)
        await anext(last)
        draining = asyncio.create_task(service.drain())
        await asyncio.sleep(0)
        with pytest.raises(ServeError, match="no replica"):
            await numbers(counting(service, 1))
        assert await numbers(last) == [11, 12, 13] and not draining.done()
        await draining

    using(body, counter(2, asynchronous=True), slo=4.0)


def test_a_generator_that_does_not_stop_is_killed() -> None:
    async def body(service: ModelService, meter: Counting) -> None:
        other = counting(service, 1000)
        await anext(other)
        with pytest.raises(ServeError, match="no result within"):
            # A step that blocks the process.
            await numbers(counting(service, 1, 0, 30.0, timeout=0.2))
        with pytest.raises(ServeError, match="did not end a stream within 1 s"):
            await numbers(other)
        while service.stats()["starts"] < 2 or not service.ready:
            await asyncio.sleep(0.01)
        assert await numbers(counting(service, 2)) == [10, 11]

    using(body, counter(2, asynchronous=False), slo=4.0, hang=1.0)


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (
            ModelSource(ACT.source, inputs=ACT.inputs, streams=2),
            {},
            "are for generators",
        ),
        (counter(1, asynchronous=False), {"cache": 1}, "of a generator are not cached"),
    ],
    ids=["streams", "cache"],
)
def test_options_that_do_not_fit_the_model_are_refused(
    source: ModelSource, options: dict[str, Any], words: str
) -> None:
    service = ModelService(ModelConfig("m", source, **options))
    (replica,) = service._replicas
    streamed = "cache" in options
    replica.signature = ModelSignature((), (), batched=True, streamed=streamed)
    with pytest.raises(ServeError, match=words) as caught:
        service._check()
    assert caught.value.status == 400


def test_requests_of_groups_have_an_id() -> None:
    made = [checked_origin(RequestOrigin(client="alice")) for _ in range(2)]
    assert made[0].id != made[1].id and not made[0].chosen
    assert checked_origin(RequestOrigin("mine")) == RequestOrigin("mine", chosen=True)
    with pytest.raises(ServeError, match="'id' may have 256 characters, got 257"):
        checked_origin(RequestOrigin("x" * 257))
