"""Models in the server's process answer as those in processes of their own do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.config import model_config
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.inline import InlineService, model_service
from fxflow.serve.repository import Repository
from fxflow.serve.service import (
    ModelConfig,
    ModelService,
    PredictionRequest,
    RequestOrigin,
)

ZOO = "tests.serve.zoo"


def config(name: str, **options: Any) -> ModelConfig:
    source = {k: options.pop(k) for k in ("inputs", "factory") if k in options}
    source = ModelSource(f"{ZOO}:{name}", max_batch=4, **source)
    return ModelConfig("m", source, inline=True, **options)


def x(*values: float) -> PredictionRequest:
    rows = np.repeat(np.array(values, np.float32)[:, None], 3, 1)
    return PredictionRequest({"x": rows}, len(values), origin=RequestOrigin(id="r"))


def test_requests_are_answered_at_once_and_labelled(tmp_path: Path) -> None:
    labels = tmp_path / "labels.jsonl"

    async def main() -> None:
        repository = Repository([config("doubling", feedback=str(labels))])
        await repository.load("m")
        service = repository.get("m")
        assert isinstance(service, InlineService)
        assert service.pids() == [] and service.stats()["replicas_ready"] == 1
        answer = await service.submit(x(1, 2, 3))
        assert answer.outputs["y"][:, 0].tolist() == [2, 4, 6]
        assert answer.provenance is not None and answer.provenance.id == "r"
        joined = await service.feedback(id="r", label=[1, 0, 1])
        assert joined.rows == 3
        with pytest.raises(ServeError, match="may have 4 rows, got 5") as caught:
            await service.submit(x(1, 2, 3, 4, 5))
        assert caught.value.status == 413
        await repository.drain()
        with pytest.raises(ServeError, match="not ready"):
            await service.submit(x(1))

    asyncio.run(main())
    assert len(labels.read_text().splitlines()) == 3


def test_a_model_that_raises_fails_one_request() -> None:
    async def main() -> None:
        service = model_service(config("act", inputs={"x": "f32[batch,n]"}))
        await service.start()
        with pytest.raises(ServeError, match="the model failed: ValueError: one"):
            await service.submit(x(1))
        assert (await service.submit(x(0))).rows == 1
        await service.close()

    asyncio.run(main())


def test_what_cannot_be_inline_is_refused() -> None:
    for options, match in [
        ({"replicas": 2}, "replicas is for a model in a process of its own"),
        ({"devices": ("cpu",)}, "devices is for"),
        ({"cache": 100}, "cache is for"),
    ]:
        with pytest.raises(ServeError, match=match):
            model_service(config("doubling", **options))

    async def start(name: str, **options: Any) -> None:
        await model_service(config(name, **options)).start()

    with pytest.raises(ServeError, match="needs its own process"):
        asyncio.run(start("counter", factory=True))
    with pytest.raises(ServeError, match=r"it cannot be loaded.*no 'missing'"):
        asyncio.run(start("missing"))


def test_the_configuration_says_which() -> None:
    made = model_config("m", {"source": f"{ZOO}:doubling", "inline": True})
    assert made.inline and isinstance(model_service(made), InlineService)
    other = model_service(model_config("m", {"source": f"{ZOO}:doubling"}))
    assert type(other) is ModelService
