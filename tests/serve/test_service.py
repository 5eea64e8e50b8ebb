"""Batches, deadlines and faults, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import Source
from fxflow.serve.service import Meter, ModelConfig, Service

ACT = Source("tests.serve.zoo:act", inputs={"x": "f32[b,2]"}, max_batch=8)


class Counting(Meter):
    def __init__(self) -> None:
        self.batches: list[int] = []

    def batch(self, model: str, rows: int, seconds: float) -> None:
        self.batches.append(rows)


def using(body: Callable[[Service, Counting], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        meter = Counting()
        options.setdefault("slo", 1.0)
        service = Service(ModelConfig("m", ACT, **options), meter)
        await service.start()
        try:
            await body(service, meter)
        finally:
            await service.close()

    asyncio.run(main())


def ask(service: Service, value: float = 0.0, rows: int = 1, **options: Any) -> Any:
    array = np.full((rows, 2), value, np.float32)
    return service.submit({"x": array}, rows, **options)


def test_batches_and_faults() -> None:
    async def body(service: Service, meter: Counting) -> None:
        values = list(range(10, 26))
        answers = await asyncio.gather(*(ask(service, v) for v in values))
        for value, answer in zip(values, answers, strict=True):
            assert answer.outputs["output"].tolist() == [[value, value]]
        # The first goes alone; the others were there when it came back.
        assert meter.batches[0] == 1 and max(meter.batches) == 8
        assert sum(meter.batches) == len(values)

        # One that the model does not like costs the others of its batch nothing.
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

        # The model dies: who was in hand hears of it, who comes meanwhile does too.
        with pytest.raises(ServeError, match="signal 9"):
            await ask(service, 2)
        with pytest.raises(ServeError, match="no replica of the model is ready") as c:
            await ask(service, 10)
        assert c.value.status == 503 and c.value.retry_after > 0
        while not service.ready:
            await asyncio.sleep(0.01)
        assert (await ask(service, 10)).rows == 1

    using(body, batching="fixed")


def test_deadlines() -> None:
    async def body(service: Service, meter: Counting) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        hanging = asyncio.create_task(ask(service, 3, timeout=0.3))
        await asyncio.sleep(0.05)
        waiting = asyncio.create_task(ask(service, 10, timeout=0.2))
        for task, status in ((waiting, 503), (hanging, 504)):
            with pytest.raises(ServeError, match="by the deadline") as caught:
                await task
            assert caught.value.status == status
        assert loop.time() - begun < 0.8
        # The process is killed for it, and the next one serves.
        while service.figures()["starts"] < 2 or not service.ready:
            await asyncio.sleep(0.01)
        await ask(service, 10)

    using(body, hang=0.6)


def test_overload_is_refused_before_it_is_late() -> None:
    async def body(service: Service, meter: Counting) -> None:
        for _ in range(3):
            await ask(service, 5)  # 50 ms each: now it is known
        found = await asyncio.gather(
            *(ask(service, 5) for _ in range(30)), return_exceptions=True
        )
        good = [f for f in found if not isinstance(f, BaseException)]
        bad = [f for f in found if isinstance(f, ServeError)]
        assert len(good) >= 3 and len(good) + len(bad) == 30
        assert all(f.status in (503, 504) and f.retry_after > 0 for f in bad)
        # The last that was let in may have been slower than those before.
        assert sum(f.status == 504 for f in bad) <= 1

    using(body, batching="none", slo=0.1, deadline=0.3)


def test_a_model_slower_than_its_objective_is_batched_all_the_same() -> None:
    """Single rows would not keep it either, and would take a time of 50 ms each."""

    async def body(service: Service, meter: Counting) -> None:
        for _ in range(6):
            await asyncio.gather(
                *(ask(service, 5) for _ in range(8)), return_exceptions=True
            )
        assert service.figures()["batch_limit"] >= 4
        assert max(meter.batches) >= 3

    using(body, slo=0.04, deadline=0.6)


def test_draining_answers_what_there_is() -> None:
    async def body(service: Service, meter: Counting) -> None:
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


def test_a_replica_dies_the_other_serves() -> None:
    async def body(service: Service, meter: Counting) -> None:
        while service.figures()["replicas_ready"] < 2:
            await asyncio.sleep(0.01)
        os.kill(service.pids()[0], signal.SIGKILL)
        answers = await asyncio.gather(
            *(ask(service, 10 + k) for k in range(40)), return_exceptions=True
        )
        lost = [a for a in answers if isinstance(a, BaseException)]
        assert len(lost) <= 8  # at most the batch that it had in hand
        assert service.ready

    using(body, replicas=2)


def test_known_answers() -> None:
    async def body(service: Service, meter: Counting) -> None:
        first = await ask(service, 10)
        again = await ask(service, 10)
        assert again.rows == 0 and len(meter.batches) == 1
        assert (again.outputs["output"] == first.outputs["output"]).all()
        assert (await ask(service, 11)).outputs["output"][0, 0] == 11
        with pytest.raises(ServeError):
            await ask(service, 1)
        with pytest.raises(ServeError):  # an error is no answer
            await ask(service, 1)
        figures = service.figures()
        assert (figures["cache_hits"], figures["cache_misses"]) == (1, 4)

    using(body, cache=100_000)


def test_what_cannot_be_loaded(capfd: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        service = Service(ModelConfig("m", Source("tests.serve.zoo:none")))
        with pytest.raises(ServeError, match="model 'm': it cannot be loaded"):
            await service.start()

    asyncio.run(main())
