"""Processes of models: started, called, killed, restarted."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource, Replica, placement_of
from fxflow.serve.service import ModelConfig, ModelService

ROOT = Path(__file__).parents[3]
ACT = ModelSource("tests.serve.zoo:act", inputs={"x": "f32[b,2]"}, load_timeout=60)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def x(value: float = 0.0, rows: int = 1) -> list[list[Any]]:
    return [[np.full((rows, 2), value, np.float32)]]


def using(source: ModelSource, body: Callable[[Replica], Awaitable[None]]) -> None:
    async def main() -> None:
        replica = Replica(source)
        replica.start()
        try:
            await until(lambda: replica.ready or "cannot" in replica.reason)
            await body(replica)
        finally:
            await replica.close()
            assert replica.pid is not None
            assert not os.path.exists(f"/proc/{replica.pid}/fd/0")

    asyncio.run(main())


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def test_each_fault_costs_only_its_own_call(caplog: pytest.LogCaptureFixture) -> None:
    """Faults of successive processes of one replica."""

    async def body(replica: Replica) -> None:
        parts = [[np.ones((1, 2), np.float32) * 7, np.ones((2, 2), np.float32) * 8]]
        (y,), seconds, _ = await replica.call(parts, 3, 10)
        assert y.tolist() == [[7, 7], [8, 8], [8, 8]] and seconds > 0
        with pytest.raises(ServeError, match="failed: ValueError: one is not liked"):
            await replica.call(x(1), 1, 10)
        await replica.call(x(0), 1, 10)
        assert replica.starts == 1  # an exception does not end the process

        with pytest.raises(ServeError, match="ended by signal 9") as caught:
            await replica.call(x(2), 1, 10)
        assert caught.value.status == 500
        with pytest.raises(ServeError, match="is not ready"):
            await replica.call(x(0), 1, 10)
        assert 0 < replica.ready_in(time.monotonic()) < 60
        assert re.fullmatch(
            r"tests.serve.zoo:act: its process ended by signal 9; restarting in \d.+ s",
            caplog.messages[0],
        )
        await until(lambda: replica.ready)
        await replica.call(x(0), 1, 10)

        start = time.monotonic()
        with pytest.raises(ServeError, match=r"did not answer within 0\.3 s"):
            await replica.call(x(3), 1, 0.3)
        assert time.monotonic() - start < 10
        await until(lambda: not replica.ready)
        await until(lambda: replica.ready)
        assert replica.starts == 3

        pid = replica.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)  # while no call runs
        await until(lambda: "ended by signal 9" in replica.reason)
        await until(lambda: replica.ready and replica.pid != pid)
        await replica.call(x(0), 1, 10)

    using(ACT, body)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells")
def test_memory_is_bounded() -> None:
    source = ModelSource(ACT.source, inputs=ACT.inputs, memory=500 << 20)

    async def body(replica: Replica) -> None:
        with pytest.raises(ServeError, match="MiB of memory, and the limit is 500 MiB"):
            await replica.call(x(4), 1, 30)

    using(source, body)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            ModelSource("tests.serve.zoo:none"),
            "cannot be loaded: ServeError: there is no",
        ),
        (
            ModelSource("math:sqrt", factory=True),
            "cannot be loaded: TypeError: math.sqrt",
        ),
        (
            ModelSource("tests.serve.zoo:wrong_rows", inputs={"x": "f32[b]"}),
            "first axis must be the batch axis",
        ),
    ],
)
def test_a_model_that_cannot_be_loaded_gives_the_reason(
    source: ModelSource, words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    async def body(replica: Replica) -> None:
        assert words in replica.reason and not replica.ready
        with pytest.raises(ServeError, match="cannot be loaded"):
            await replica.call(x(), 1, 1)

    using(source, body)
    # Our errors explain themselves; others need a traceback.
    assert ("Traceback" in capfd.readouterr().err) == ("TypeError" in words)


# -- placement -------------------------------------------------------------------------


def test_names_of_devices_become_environments() -> None:
    assert placement_of("") == ({}, frozenset())
    assert placement_of("cuda:0,1").environment == {"CUDA_VISIBLE_DEVICES": "0,1"}
    assert placement_of("rocm:2").environment == {"HIP_VISIBLE_DEVICES": "2"}
    # A CPU process sees no accelerator, and so takes none of its memory.
    assert placement_of("cpu").environment["CUDA_VISIBLE_DEVICES"] == ""
    assert placement_of("cpu:3").cores == {3}


@pytest.mark.parametrize(
    "name", ["gpu", "cuda", "cuda:", "cuda:a", "cpu:", "cpu:3-1", "cpu:1-", "cpu:1--2"]
)
def test_invalid_device_names_are_refused(name: str) -> None:
    with pytest.raises(ServeError, match="a device must be like 'cuda:0'"):
        placement_of(name)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux tells")
def test_replicas_run_on_their_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    cores = sorted(os.sched_getaffinity(0))
    first, last = cores[0], cores[-1]
    source = ModelSource("tests.serve.zoo:negative", inputs={"x": "f32[b]"})
    config = ModelConfig(
        "m", source, replicas=3, devices=(f"cpu:{first}", f"cpu:{last}")
    )

    async def main() -> None:
        service = ModelService(config)
        await service.start()
        try:
            while service.stats()["replicas_ready"] < 3:
                await asyncio.sleep(0.01)
            found = [os.sched_getaffinity(pid) for pid in service.pids()]
            # The third replica shares the first device.
            assert found == [{first}, {last}, {first}]
            for pid in service.pids():
                text = Path(f"/proc/{pid}/environ").read_bytes()
                assert b"\0CUDA_VISIBLE_DEVICES=\0" in text
        finally:
            await service.close()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="Linux tells")
def test_unknown_cores_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    source = ModelSource("tests.serve.zoo:negative", inputs={"x": "f32[b]"})

    async def main() -> None:
        service = ModelService(ModelConfig("m", source, devices=("cpu:1000",)))
        with pytest.raises(ServeError, match=r"cannot run on cores \[1000\]"):
            await service.start()

    asyncio.run(main())
