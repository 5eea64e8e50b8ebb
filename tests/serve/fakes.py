"""Models without processes, for tests of groups of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.containers.replica import Source
from fxflow.serve.service import Answer, Meter, ModelConfig
from fxflow.serve.signatures import Signature, TensorSpec


def signature(output: str = "i64[batch]") -> Signature:
    return Signature(
        (TensorSpec.parse("x", "f32[batch]"),), (TensorSpec.parse("y", output),), True
    )


@dataclass
class Fake:
    """A service that says what it is told, after a while."""

    says: Callable[[Any], Any]
    delay: float = 0.0
    error: ServeError | None = None
    ready: bool = True
    signature: Signature = field(default_factory=signature)
    version: str = "1"
    deadline: float = 1.0
    asked: int = 0
    cached: bool = False

    @property
    def config(self) -> ModelConfig:
        return ModelConfig("fake", Source("none:none"), version=self.version)

    @property
    def versions(self) -> tuple[str, ...]:
        return (self.version,)

    async def submit(
        self,
        inputs: Mapping[str, Any],
        rows: int,
        *,
        priority: int = 0,
        timeout: float = 0.0,
        origin: Any = None,
    ) -> Answer:
        self.asked += 1
        limit = timeout if timeout > 0 else self.deadline
        await asyncio.sleep(min(self.delay, limit))
        if self.error is not None:
            raise self.error
        if self.delay > limit:
            raise ServeError("no answer by the deadline", 504)
        outputs = {"y": np.asarray(self.says(inputs["x"]))}
        return Answer(outputs, 0.0, self.delay, rows)


class Heard(Meter):
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
            raise ServeError(f"there is no version {version!r}", 404)
        return members[name]

    return member


def always(value: float, dtype: Any = np.int64) -> Callable[[Any], Any]:
    return lambda x: np.full(len(x), value, dtype)
