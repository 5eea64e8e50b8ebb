"""Selectors: several models under one name, selected or combined based on feedback.

A bandit policy sends each request to one model; an ensemble policy sends it to all, and
combines the answers that have arrived when the objective expires. A journal keeps the
answers until feedback arrives; each context has its own state, which a store can share
with other servers. None of this loses requests: if a model fails, another one is tried
while there is time, and no request waits for an unresponsive store. If the models are
generators, the chosen one streams its results.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.cache import key_of
from fxflow.serve.feedback import counted_feedback
from fxflow.serve.selection import ensembles, losses
from fxflow.serve.selection.memory import Contexts, Journal, PredictionRecord
from fxflow.serve.selection.policies import (
    Choice,
    Exp4,
    LossTotals,
    SelectionPolicy,
    among,
)
from fxflow.serve.service import (
    MetricsSink,
    ModelService,
    Prediction,
    PredictionRequest,
    Provenance,
    RequestOrigin,
    allowed,
    answers,
    check_single,
    checked_origin,
)
from fxflow.serve.signatures import ModelSignature, check_alike
from fxflow.serve.store import Sharing

Array = np.ndarray[Any, Any]
#: The priority of requests that feedback repeats.
_LOW_PRIORITY = 4
_LOSSES: dict[str, losses.Loss] = {
    "auto": losses.auto,
    "zero_one": losses.zero_one,
    "absolute": losses.absolute,
    "squared": losses.squared,
}


@dataclass(frozen=True)
class SelectorConfig:
    """Configures a selector.

    Attributes:
      name: the selector's name in requests.
      models: names of the models, which have the same inputs and outputs.
      policy: `Exp4` runs all models and weights their answers; `Exp3`, `EpsilonGreedy`
        and `Thompson` choose one for each request.
      version: the version that requests may name.
      slo: seconds after which the answers that have arrived are combined.
      deadline: seconds after which a request fails; None: five times the `slo`.
      contexts: most contexts in memory.
      combine: ``vote``, ``mean``, or a function of outputs and weights by model.
      output: name of the output that is voted on and compared with labels; None: the
        first.
      stragglers: ``drop`` late models, or ``substitute`` the others' answer for theirs.
      loss: ``auto`` (classes: wrong or right; numbers: distance), ``zero_one``,
        ``absolute``, ``squared``, or a function of output and label.
      tolerance: distance within which numbers agree.
      journal: most predictions that wait for feedback.
      within: seconds for which a prediction waits for feedback.
      store: URL of the Redis server that shares the states; None: not shared.
      store_timeout: seconds that a request may wait for the store.
      seed: seed of the random draws; None: a random seed.
    """

    name: str
    models: tuple[str, ...]
    policy: SelectionPolicy = field(default_factory=Exp4)
    version: str = "1"
    slo: float = 0.1
    deadline: float | None = None
    contexts: int = 1000
    combine: str | ensembles.Combine = "vote"
    output: str | None = None
    stragglers: str = "drop"
    loss: str | losses.Loss = "auto"
    tolerance: float = 0.1
    journal: int = 10_000
    within: float = 3600.0
    store: str | None = None
    store_timeout: float = 0.02
    seed: int | None = None


class FeedbackResult(NamedTuple):
    """The effect of feedback.

    Attributes:
      losses: loss of each model that the feedback determines.
      weights: new weights of all models in the request's context.
      shared: whether the store has the change; None: there is no store.
    """

    losses: dict[str, float]
    weights: dict[str, float]
    shared: bool | None


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieves a task's error: asyncio logs errors that are never retrieved."""
    if not task.cancelled():
        task.exception()


def _none_ready() -> ServeError:
    return ServeError("none of its models is ready", 503, 1.0)


class Selector:
    """Selects among several models under one name, and learns from feedback.

    Args:
      config: the selector's configuration.
      member: returns the service of a model, or raises `ServeError`.
      meter: counts events.

    Attributes:
      config: the selector's configuration.
      deadline: seconds after which a request fails.

    Raises:
      ServeError: redis is not installed, or the store is not a Redis URL.
    """

    meter: MetricsSink
    deadline: float

    def __init__(
        self,
        config: SelectorConfig,
        member: Callable[[str], ModelService],
        meter: MetricsSink | None = None,
    ) -> None:
        self.config = config
        self._member = member
        self.meter = meter or MetricsSink()
        self.deadline = config.deadline or 5 * config.slo
        self._policy = config.policy
        self._loss = config.loss if callable(config.loss) else _LOSSES[str(config.loss)]
        models = len(config.models)
        self._contexts = Contexts(models, config.contexts, shared=bool(config.store))
        self._journal = Journal(config.journal, config.within)
        self._sharing = Sharing.of(config, self._contexts)
        self._seed = secrets.randbits(63) if config.seed is None else config.seed
        self._draws = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    # -- status ------------------------------------------------------------------------

    def _ready_models(self) -> dict[int, ModelService]:
        found = {}
        for number, name in enumerate(self.config.models):
            try:
                service = self._member(name)
            except ServeError:
                continue
            if service.ready:
                found[number] = service
        return found

    @property
    def ready(self) -> bool:
        """Whether any model is ready."""
        return bool(self._ready_models())

    @property
    def signature(self) -> ModelSignature:
        """The signature that its models share.

        Raises:
          ServeError: status 503; no model is ready.
        """
        for service in self._ready_models().values():
            return service.signature
        raise _none_ready()

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that requests may name."""
        return (self.config.version,)

    def check(self) -> None:
        """Checks that the models are interchangeable.

        Raises:
          ServeError: status 400; they are not.
        """
        services = self._ready_models()
        names = self.config.models
        check_alike(
            self.config.name, {names[k]: s.signature for k, s in services.items()}
        )
        for number, service in services.items():
            if service.signature.streamed and self._policy.runs_all:
                raise ServeError(
                    f"selectors.{self.config.name}: model {names[number]!r} answers "
                    f"with a stream, and policy {self._policy.name!r} cannot combine "
                    "streams: use policy 'exp3', 'epsilon-greedy' or 'thompson'",
                    400,
                )
            outputs = [spec.name for spec in service.signature.outputs]
            if self.config.output and self.config.output not in outputs:
                raise ServeError(
                    f"selectors.{self.config.name}: unknown output "
                    f"{self.config.output!r}; outputs: {', '.join(outputs)}",
                    400,
                )
            if self.config.combine == "mean" and self._policy.runs_all:
                zeros = {
                    spec.name: np.zeros(1, spec.dtype)
                    for spec in service.signature.outputs
                }
                ensembles.mean({"": zeros}, {"": 1.0})

    def pinned(self, version: str) -> Selector:
        """Checks the version that a request names.

        Args:
          version: the version.

        Returns:
          Itself.

        Raises:
          ServeError: status 404; this is another version.
        """
        if version != self.config.version:
            raise ServeError(
                f"{self.config.name!r} has no version {version!r}; versions: "
                f"{self.config.version!r}",
                404,
            )
        return self

    def describe(self, context: str = "") -> dict[str, Any]:
        """Returns the selector's state in a context.

        Args:
          context: name of the context.

        Returns:
          A JSON object.

        Raises:
          ServeError: status 400; the context's name is too long.
        """
        checked_origin(RequestOrigin(context=context))
        state = self._state(context)
        named = zip(
            self.config.models,
            self._policy.weights(state),
            state.counts,
            state.loss,
            strict=True,
        )
        return {
            "policy": self._policy.name,
            "context": context,
            "models": {
                name: {"weight": weight, "losses": count, "loss": loss}
                for name, weight, count, loss in named
            },
            "contexts": len(self._contexts),
            "shared": self._sharing.up if self._sharing else None,
        }

    def stats(self) -> dict[tuple[str, str], float]:
        """Returns the selector's statistics, for metrics.

        Returns:
          Numbers by name and label.
        """
        weights = self._policy.weights(self._state(""))
        found = {
            ("weight", m): w for m, w in zip(self.config.models, weights, strict=True)
        }
        contexts = self._contexts
        found["contexts", "known"] = len(contexts)
        found["contexts", "forgotten"] = contexts.forgotten
        found["contexts", "journal"] = len(self._journal)
        if self._sharing:
            found["store", "up"] = float(self._sharing.up)
            found["store", "failures"] = self._sharing.failures
            found["store", "dropped"] = contexts.dropped + self._sharing.dropped
        return found

    async def drain(self) -> None:
        """Waits for the requests in flight, and sends pending changes to the store."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self.deadline)
        for task in self._tasks:
            task.cancel()
        if self._sharing:
            await self._sharing.close()

    # -- requests ----------------------------------------------------------------------

    async def submit(self, request: PredictionRequest) -> Prediction:
        """Answers one request by its deadline.

        Args:
          request: the request; its context selects models.

        Returns:
          The outputs, and the models that they are from.

        Raises:
          ServeError: no model answered in time, or the models answer with streams.
        """
        check_single(self.config.name, self.signature)
        end, record = await self._start_prediction(request)
        if not self._policy.runs_all:
            results = self._run_one(request, end, record)
            (answer,) = [answer async for answer in results]
            return answer
        answer = await self._run_all(request, end, record)
        self._journal.put(record)
        if self._sharing:
            self._sharing.keep(record)
        return answer

    async def stream(
        self, request: PredictionRequest
    ) -> AsyncGenerator[Prediction, None]:
        """Answers one request with the results of the chosen generator.

        Feedback is accepted after the first result; labels are compared with the last.

        Args:
          request: the request; its context selects models.

        Yields:
          The results; close the iterator to stop the model early.

        Raises:
          ServeError: no model had a result in time, or the chosen one failed after its
            first result.
        """
        end, record = await self._start_prediction(request)
        results = self._run_one(request, end, record)
        async with aclosing(results):
            async for answer in results:
                yield answer

    async def _start_prediction(
        self, request: PredictionRequest
    ) -> tuple[float, PredictionRecord]:
        """Returns the time at which a request ends, and its record."""
        origin = checked_origin(request.origin)
        limit = allowed(request.timeout, self.deadline)
        end = self._now() + limit
        key = self._key(request.inputs, origin.context)
        if self._sharing and not self._contexts.known(origin.context):
            self._contexts.get(origin.context, self._now())
            await self._sharing.settled(min(self.config.store_timeout, limit / 4))
        none = Choice(-1, 1.0, ())
        return end, PredictionRecord(
            origin.id, key, origin.context, none, request.rows, time.time()
        )

    async def _run_one(
        self, request: PredictionRequest, end: float, record: PredictionRecord
    ) -> AsyncGenerator[Prediction, None]:
        """Yields the chosen model's answer, or its results."""
        names = self.config.models
        ready = self._ready_models()
        if not ready:
            raise _none_ready()
        signature = self.signature  # read now: unknown once all models have exited
        while True:
            state = self._state(record.context)
            choice = self._policy.choose(state, ready.keys(), self._draw())
            name = names[choice.model]
            self.meter.event("choices", self.config.name, name)
            by = Provenance(record.id, (name,), self.config.version)
            left = end - self._now()
            results = answers(ready.pop(choice.model), request._replace(timeout=left))
            begun = False
            try:
                async with aclosing(results):
                    async for answer in results:
                        if not begun:
                            begun, record.choice = True, choice
                            self._journal.put(record)
                        if not record.used:
                            self._write(record, choice.model, answer, signature)
                        yield answer._replace(provenance=by)
                return
            except ServeError as error:
                if error.status < 500:
                    raise
                self.meter.event("failures", self.config.name, name)
                # Overload is not the model's fault; anything else counts as a wrong
                # answer, unless feedback for the first results has set the loss.
                if error.status != 503 and not record.used:
                    self._learn(record.context, choice, {choice.model: 1.0})
                    if begun:
                        self._journal.use(record)
                if begun or not ready or end - self._now() < 1e-3:
                    raise
            finally:
                if begun and self._sharing and not record.used:
                    self._sharing.keep(record)

    async def _run_all(
        self, request: PredictionRequest, end: float, record: PredictionRecord
    ) -> Prediction:
        ready = self._ready_models()
        if not ready:
            raise _none_ready()
        record.choice = Choice(-1, 1.0, tuple(ready))
        signature = self.signature
        tasks = {
            number: asyncio.ensure_future(
                service.submit(request._replace(timeout=end - self._now()))
            )
            for number, service in ready.items()
        }
        begun = self._now()
        try:
            waiting = set(tasks.values())
            _, waiting = await asyncio.wait(
                waiting, timeout=min(self.config.slo, end - begun)
            )
            # No answer arrived by the objective: wait for the first one.
            while waiting and all(
                t in waiting or t.exception() for t in tasks.values()
            ):
                _, waiting = await asyncio.wait(
                    waiting, return_when=asyncio.FIRST_COMPLETED
                )
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
                task.add_done_callback(_retrieve)
            raise
        arrived: dict[int, Prediction] = {}
        late: list[int] = []
        errors: list[BaseException] = []
        for number, task in tasks.items():
            name = self.config.models[number]
            if task in waiting:
                late.append(number)
                self.meter.event("stragglers", self.config.name, name)
                task.add_done_callback(self._write_late(record, number, signature))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif error := task.exception():
                errors.append(error)
                self.meter.event("failures", self.config.name, name)
            else:
                arrived[number] = task.result()
                self.meter.event("choices", self.config.name, name)
                self._write(record, number, arrived[number], signature)
        if not arrived:
            raise errors[0]
        return self._combined(record, arrived, late, signature)

    def _combined(
        self,
        record: PredictionRecord,
        arrived: dict[int, Prediction],
        late: list[int],
        signature: ModelSignature,
    ) -> Prediction:
        names = self.config.models
        batched = signature.batched
        share = among(
            self._policy.weights(self._state(record.context)), record.choice.ready
        )
        weights = {names[k]: share[k] for k in record.choice.ready}
        outputs = {
            names[k]: {
                name: value if batched else value[None]
                for name, value in answer.outputs.items()
            }
            for k, answer in arrived.items()
        }
        decider = self._decider(signature)
        votes = {name: found[decider] for name, found in outputs.items()}
        if self.config.stragglers == "substitute":
            outputs = ensembles.substituted(outputs, weights, decider)
        if callable(self.config.combine):
            found = ensembles.by_function(self.config.combine, outputs, weights)
        elif self.config.combine == "mean":
            found = ensembles.mean(outputs, weights)
        else:
            found = ensembles.vote(outputs, weights, decider)
        confidence = ensembles.confidence(
            found[decider], votes, len(names), self.config.tolerance
        )
        slowest = max(arrived.values(), key=lambda a: a.queued + a.ran)
        return Prediction(
            {name: value if batched else value[0] for name, value in found.items()},
            slowest.queued,
            slowest.ran,
            slowest.rows,
            Provenance(
                record.id,
                tuple(names[k] for k in arrived),
                self.config.version,
                tuple(names[k] for k in late),
                confidence,
            ),
            max((a.age for a in arrived.values() if a.age is not None), default=None),
        )

    # -- feedback ----------------------------------------------------------------------

    async def feedback(
        self,
        *,
        id: str = "",
        inputs: Mapping[str, Array] | None = None,
        rows: int = 1,
        label: Any = None,
        loss: float | None = None,
        losses: Mapping[str, float] | None = None,
        context: str | None = None,
    ) -> FeedbackResult:
        """Updates the state from feedback on a prediction.

        Args:
          id: id of the request; or
          inputs: the request's inputs (the last request with them counts). An ensemble
            runs the models again if the journal no longer has their answers.
          rows: rows of the inputs.
          label: the right answer for each row; or
          loss: the chosen model's loss, from 0 (right) to 1; or
          losses: losses by model.
          context: the request's context; None: as in the journal, ``""`` with inputs.

        Returns:
          The effect of the feedback.

        Raises:
          ServeError: 400 if the feedback is invalid; 404 if no such prediction is
            known, 410 if it expired, 409 if it has feedback already.
        """
        with counted_feedback(self.meter, self.config.name):
            if bool(id) == (inputs is not None):
                raise ServeError("feedback must have either 'id' or 'inputs'", 400)
            if sum(x is not None for x in (label, loss, losses)) != 1:
                raise ServeError(
                    "feedback must have one of 'label', 'loss' and 'losses' (by model)",
                    400,
                )
            record, remote = await self._find(id, inputs, rows, label, context)
            found = self._losses(record, label, loss, losses)
            if remote and self._sharing:
                await self._sharing.claim(record.id)
            elif record.id in self._journal:
                self._journal.use(record)
                if self._sharing:
                    self._sharing.used(record)
            self._learn(record.context, record.choice, found)
            names = self.config.models
            for number, value in found.items():
                self.meter.event("losses", self.config.name, names[number], value)
                self.meter.event("judged", self.config.name, names[number])
            shared = None
            if self._sharing:
                shared = await self._sharing.settled(self.config.store_timeout)
            weights = self._policy.weights(self._state(record.context))
            return FeedbackResult(
                {names[k]: value for k, value in found.items()},
                dict(zip(names, weights, strict=True)),
                shared,
            )

    async def _find(
        self,
        id: str,
        inputs: Mapping[str, Array] | None,
        rows: int,
        label: Any,
        context: str | None,
    ) -> tuple[PredictionRecord, bool]:
        """Returns the record to judge, and whether it is from another server."""
        checked_origin(RequestOrigin(id, context=context or ""))
        remote = False
        if inputs is not None:
            key = self._key(inputs, context or "")
            last = self._journal.last(key)
            if last is not None:
                record = self._journal.find(last, time.time())
            elif self._policy.runs_all and label is not None:
                record = await self._predict_again(inputs, rows, key, context or "")
            else:
                raise ServeError(
                    "no prediction for these inputs waits for feedback in this context",
                    404,
                )
        elif self._sharing and id not in self._journal:
            record, remote = await self._sharing.fetch(id), True
        else:
            record = self._journal.find(id, time.time())
        if context is not None and context != record.context:
            raise ServeError(
                f"request {record.id!r} had context {record.context!r}, but the "
                f"feedback has {context!r}",
                400,
            )
        return record, remote

    def _losses(
        self,
        record: PredictionRecord,
        label: Any,
        loss: float | None,
        given: Mapping[str, float] | None,
    ) -> dict[int, float]:
        names = self.config.models
        chosen = record.choice.model
        if label is not None:
            right = losses.parse_label(label, record.rows)
            return {
                k: losses.loss_of(self._loss, answer, right)
                for k, answer in record.answers.items()
            }
        if loss is not None:
            if chosen < 0:
                raise ServeError(
                    "the answer combines several models: feedback needs a 'label', or "
                    "'losses' by model",
                    400,
                )
            return {chosen: losses.parse_loss(loss)}
        assert given is not None
        if not given or (unknown := given.keys() - set(names)):
            wrong = ", ".join(map(repr, sorted(unknown))) if given else "nothing"
            raise ServeError(
                f"'losses' must be by model, among {', '.join(map(repr, names))}; got "
                f"{wrong}",
                400,
            )
        found = {
            names.index(name): losses.parse_loss(value, f"the loss of {name!r}")
            for name, value in given.items()
        }
        if chosen >= 0 and chosen not in found:
            raise ServeError(
                f"request {record.id!r} was answered by {names[chosen]!r}, whose loss "
                "is missing",
                400,
            )
        return found if chosen < 0 else {chosen: found[chosen]}

    async def _predict_again(
        self, inputs: Mapping[str, Array], rows: int, key: bytes, context: str
    ) -> PredictionRecord:
        """Runs all models again; cached answers cost nothing."""
        ready, signature = self._ready_models(), self.signature
        request = PredictionRequest(inputs, rows, _LOW_PRIORITY)
        answers = await asyncio.gather(
            *(service.submit(request) for service in ready.values()),
            return_exceptions=True,
        )
        choice = Choice(-1, 1.0, tuple(ready))
        record = PredictionRecord("", key, context, choice, rows, time.time())
        for number, answer in zip(ready, answers, strict=True):
            if not isinstance(answer, BaseException):
                self._write(record, number, answer, signature)
        if not record.answers:
            first = next((a for a in answers if isinstance(a, ServeError)), None)
            raise first or _none_ready()
        return record

    # -- helpers -----------------------------------------------------------------------

    def _decider(self, signature: ModelSignature) -> str:
        return self.config.output or signature.outputs[0].name

    def _key(self, inputs: Mapping[str, Array], context: str) -> bytes:
        arrays = [inputs[spec.name] for spec in self.signature.inputs]
        text = context.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(key_of(arrays) + text, digest_size=16).digest()

    def _state(self, context: str) -> LossTotals:
        state = self._contexts.get(context, self._now())
        if self._sharing:
            self._sharing.wake()
        return state

    def _learn(self, context: str, choice: Choice, found: Mapping[int, float]) -> None:
        state = self._state(context)
        change = self._policy.learn(state, choice, found, self._draw())
        self._contexts.change(context, change)
        if self._sharing:
            self._sharing.wake()

    def _write(
        self,
        record: PredictionRecord,
        number: int,
        answer: Prediction,
        signature: ModelSignature,
    ) -> None:
        value = answer.outputs[self._decider(signature)]
        if not signature.batched:
            value = value[None]
        # A view would keep the whole batch in memory.
        record.answers[number] = value if value.base is None else value.copy()

    def _write_late(
        self, record: PredictionRecord, number: int, signature: ModelSignature
    ) -> Callable[[asyncio.Task[Prediction]], None]:
        def write(task: asyncio.Task[Prediction]) -> None:
            if not (task.cancelled() or task.exception() or record.used):
                self._write(record, number, task.result(), signature)

        return write

    def _draw(self) -> int:
        self._draws += 1
        return self._seed << 64 | self._draws

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
