"""Models without processes, for tests of groups of models."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.service import MetricsSink, ModelConfig, Prediction, PredictionRequest
from fxflow.serve.signatures import ModelSignature, TensorSpec


def signature(output: str = "i64[batch]", streamed: bool = False) -> ModelSignature:
    x, y = TensorSpec.parse("x", "f32[batch]"), TensorSpec.parse("y", output)
    return ModelSignature((x,), (y,), True, streamed=streamed)


@dataclass
class Fake:
    """A service that answers `says(x)` after a delay; as a stream, plus 0, 1, …"""

    says: Callable[[Any], Any]
    delay: float = 0.0
    error: ServeError | None = None
    ready: bool = True
    signature: ModelSignature = field(default_factory=signature)
    version: str = "1"
    deadline: float = 1.0
    asked: int = 0
    #: Results of a stream, which of them fails, and how many streams were closed.
    results: int = 3
    fails: int = -1
    closed: int = 0

    @property
    def config(self) -> ModelConfig:
        return ModelConfig("fake", ModelSource("none:none"), version=self.version)

    @property
    def versions(self) -> tuple[str, ...]:
        return (self.version,)

    async def submit(self, request: PredictionRequest) -> Prediction:
        self.asked += 1
        limit = request.timeout if request.timeout > 0 else self.deadline
        await asyncio.sleep(min(self.delay, limit))
        if self.error is not None:
            raise self.error
        if self.delay > limit:
            raise ServeError("no answer by the deadline", 504)
        outputs = {"y": np.asarray(self.says(request.inputs["x"]))}
        return Prediction(outputs, 0.0, self.delay, request.rows)

    async def stream(
        self, request: PredictionRequest
    ) -> AsyncGenerator[Prediction, None]:
        try:
            for k in range(self.results):
                if k == self.fails:
                    raise ServeError("it ended", 500)
                left = request.timeout if not k else 0.0
                answer = await self.submit(request._replace(timeout=left))
                yield answer._replace(outputs={"y": answer.outputs["y"] + k})
        finally:
            self.closed += 1


class Heard(MetricsSink):
    """Counts events."""

    def __init__(self) -> None:
        self.events: Counter[tuple[str, str]] = Counter()

    def event(self, kind: str, group: str, what: str, amount: float = 1.0) -> None:
        self.events[kind, what] += amount  # type: ignore[assignment]


def lookup(members: Mapping[str, Fake]) -> Callable[..., Any]:
    def member(name: str, version: str = "") -> Any:
        if name not in members:
            raise ServeError(f"model {name!r} is not loaded", 503)
        if version and version != members[name].version:
            raise ServeError(f"unknown version {version!r}", 404)
        return members[name]

    return member


def always(value: float, dtype: Any = np.int64) -> Callable[[Any], Any]:
    return lambda x: np.full(len(x), value, dtype)
