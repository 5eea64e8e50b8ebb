"""A model in the server's own process, for models that cost less than a request.

Each request runs at once, where it was read: no queue, no batch, no other process. A
model that takes microseconds is answered in about half of the CPU time. The price is
what the other processes are for: while the model runs, the server does nothing else,
and a model that crashes ends the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from typing import Any

import numpy as np

from fxflow.errors import ExportError, ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.models import Model
from fxflow.serve.containers.regions import error_text
from fxflow.serve.containers.replica import Replica
from fxflow.serve.service import (
    MetricsSink,
    ModelConfig,
    ModelService,
    Prediction,
    PredictionRequest,
    check_single,
)
from fxflow.serve.signatures import ModelSignature


class InlineReplica(Replica):
    """A model in this process, in place of one in its own. Made by `InlineService`."""

    model: Model

    def start(self) -> None:
        """Loads the model in a thread."""
        self.starts += 1
        self._task = asyncio.get_running_loop().create_task(self._load())

    async def close(self) -> None:
        """Stops loading; a thread that loads goes on to its end."""
        self.ready = False
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _load(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self.signature = await loop.run_in_executor(None, self._loaded)
        except Exception as error:
            if not isinstance(error, ServeError | ExportError):
                traceback.print_exc()
            self.reason = f"it cannot be loaded: {error_text(error)}"
            self.failed = True
            return
        self.ready, self.reason = True, ""

    def _loaded(self) -> ModelSignature:
        message = self._source.load_message()
        max_batch = message.pop("max_batch")
        self.model = load_model(**message)
        signature = self.model.prepare(max_batch)
        if signature.streamed:
            raise ServeError("a generator needs its own process: inline = false")
        return signature


class InlineService(ModelService):
    """Serves one model from this process.

    Args:
      config: the model's configuration.
      meter: counts batches.

    Raises:
      ServeError: an option is for models in processes of their own.
    """

    def __init__(self, config: ModelConfig, meter: MetricsSink | None = None) -> None:
        for option, unset in (("replicas", 1), ("devices", ()), ("cache", 0)):
            if getattr(config, option) != unset:
                raise ServeError(
                    f"models.{config.name}.{option} is for a model in a process of its "
                    "own: inline = false",
                    400,
                )
        super().__init__(config, meter)
        self._here = InlineReplica(config.source)
        self._replicas = [self._here]

    async def submit(self, request: PredictionRequest) -> Prediction:
        """Answers one request at once.

        Args:
          request: the request.

        Raises:
          ServeError: 503 if the model is not ready, 500 if it failed, 413 if the
            request is larger than a batch.
        """
        here, signature, rows = self._here, self.signature, request.rows
        if not here.ready or self._draining:
            raise ServeError(f"the model is not ready: {here.reason}", 503, 1.0)
        check_single(self.config.name, signature)
        most = self._most(signature)
        if rows > most:
            raise ServeError(f"a request may have {most} rows, got {rows}", 413)
        begun = time.perf_counter()
        inputs = [request.inputs[spec.name] for spec in signature.inputs]
        outputs = self._run_here(here.model, inputs, rows)
        seconds = time.perf_counter() - begun
        self._meter.batch(self.config.name, rows, seconds, 1, 0.0)
        age = here.model.age
        if age is not None:
            self._meter.age(self.config.name, age)
        named = {
            spec.name: value
            for spec, value in zip(signature.outputs, outputs, strict=True)
        }
        return self._kept(request, Prediction(named, 0.0, seconds, rows, None, age))

    @staticmethod
    def _run_here(
        model: Model, inputs: list[np.ndarray[Any, Any]], rows: int
    ) -> list[np.ndarray[Any, Any]]:
        try:
            return model.run(inputs, rows)
        except ServeError as error:
            if error.status != 500:
                raise
            raise ServeError(f"the model failed: {error_text(error)}", 500) from None
        except Exception as error:
            raise ServeError(f"the model failed: {error_text(error)}", 500) from None


def model_service(
    config: ModelConfig, meter: MetricsSink | None = None
) -> ModelService:
    """Returns the service of a model: in processes of its own, or in this one.

    Args:
      config: the model's configuration.
      meter: counts batches.

    Raises:
      ServeError: an option does not fit `inline`.
    """
    return (InlineService if config.inline else ModelService)(config, meter)
