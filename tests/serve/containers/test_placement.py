"""Device names, and processes placed by them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.placement import placement_of
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.service import ModelConfig, ModelService


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
