"""Models by name, replaced under load."""

import asyncio
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.repository import Repository
from fxflow.serve.selector import SelectorConfig
from fxflow.serve.service import ModelConfig, PredictionRequest
from fxflow.serve.versions import VersionsConfig


def scaled(scale: float, name: str = "m") -> ModelConfig:
    source = ModelSource(
        "tests.serve.zoo:linear", factory=True, arguments={"scale": scale}, max_batch=2
    )
    return ModelConfig(name, source, version=str(scale), slo=1.0)


BAD = ModelConfig("m", ModelSource("tests.serve.zoo:none"))


async def ask(repository: Repository) -> float:
    x = np.ones((1, 3), np.float32)
    answer: Any = await repository.get("m").submit(PredictionRequest({"x": x}, 1))
    return float(answer.outputs["y"][0, 0])


def test_models_are_replaced_without_losing_requests() -> None:
    async def main() -> None:
        repository = Repository([scaled(2.0)])
        with pytest.raises(ServeError, match="'m' is not loaded: it has not finished"):
            repository.get("m")
        await repository.load("m")
        assert repository.ready and await ask(repository) == 2.0
        with pytest.raises(ServeError, match="'n'; models: 'm'") as caught:
            repository.get("n")
        assert caught.value.status == 404
        with pytest.raises(ServeError, match=r"model 'm' has no version '9'"):
            repository.get("m", "9")

        change = asyncio.create_task(repository.configure([scaled(3.0)]))
        found = []
        while not change.done():
            found.append(await ask(repository))
            await asyncio.sleep(0.005)
        found.append(await ask(repository))
        assert change.result() == [] and set(found) == {2.0, 3.0}
        assert found == sorted(found)

        (fault,) = await repository.configure([BAD])
        assert "there is no 'none'" in fault
        assert await ask(repository) == 3.0  # the old one keeps serving
        assert repository.index()[0]["state"] == "READY"

        await repository.unload("m")
        (entry,) = repository.index()
        assert (entry["state"], entry["reason"]) == ("UNAVAILABLE", "it was unloaded")
        await repository.drain()

    asyncio.run(main())


def test_groups_are_reconfigured() -> None:
    """An unchanged selector keeps its state; a rollout restarts."""

    async def main() -> None:
        repository = Repository([])
        pair = ("m", "n")
        selector = SelectorConfig("best", pair)
        versions = VersionsConfig("next", *pair)
        assert await repository.configure([], [selector, versions]) == []
        kept = dict(repository.groups)
        assert "best" in repository and "other" not in repository
        with pytest.raises(ServeError, match="'m'; models: 'best', 'next'"):
            repository.get("m")
        (fault,) = await repository.configure(
            [], [selector, versions, SelectorConfig("other", pair, store="http://x")]
        )
        assert "store: " in fault
        assert repository.get("best") is kept["best"]
        assert repository.groups["next"] is not kept["next"]
        # An invalid group leaves the old one.
        (fault,) = await repository.configure(
            [], [SelectorConfig("best", pair, store="http://x")]
        )
        assert repository.groups == {"best": kept["best"]}
        index = repository.index()
        assert [(e["name"], e["state"]) for e in index] == [("best", "UNAVAILABLE")]
        await repository.drain()

    asyncio.run(main())
