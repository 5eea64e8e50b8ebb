"""One model's queue and processes: groups requests into batches, and answers them.

A service runs in one event loop. `_pump` runs when a request arrives, when a process
becomes free and when a delay expires, and takes the next work for each free process
from the queue. A request's future resolves to an answer or an error by its deadline; if
the model is a generator, to a stream of results.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import AsyncGenerator, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.batching import (
    Lateness,
    Pace,
    Processing,
    Queue,
    QueueEntry,
    Refusal,
    batch_policy,
)
from fxflow.serve.cache import PredictionCache, key_of
from fxflow.serve.containers.regions import Stream
from fxflow.serve.containers.replica import ModelSource, Replica, placement_of
from fxflow.serve.feedback import (
    FeedbackJournal,
    JoinedFeedback,
    check_label_by_id,
    counted_feedback,
)
from fxflow.serve.signatures import ModelSignature

#: Share of the objective that a batch may take: a request that arrives just after a
#: batch starts waits for that batch, and runs in the next one.
_SHARE = 0.5
#: Seconds after a refusal within which more are expected.
_OVERLOAD = 1.0


@dataclass(frozen=True)
class ModelConfig:
    """Configures one model.

    Attributes:
      name: the model's name in requests.
      source: the model that its processes load.
      version: the version that requests may name.
      replicas: number of processes.
      devices: devices of the processes, round-robin (`placement`); empty: the
        platform's default.
      slo: latency objective in seconds, which limits the size of batches.
      deadline: seconds after which a request fails; None: five times the `slo`. For a
        stream, seconds until its first result, and between results.
      duration: longest time of a stream, in seconds.
      batching: ``aimd``, ``quantile``, ``fixed`` or ``none``.
      delay: seconds that a batch that is not full waits for more requests.
      capacity: most rows in the queue.
      hang: seconds after which an unresponsive process is killed; None: ten times the
        deadline, at least a second.
      cache: bytes of the prediction cache; 0: no cache. Only for models whose answers
        depend on nothing but the inputs.
      inline: whether the model runs in the server's process, each request at once.
      feedback: file to which labels are appended with the columns of their requests,
        for training; None: the model takes no labels.
      journal: most requests that wait for their label.
      within: seconds for which a request waits for its label.
      ray: options of the model's Ray Serve deployment; ignored without Ray.
    """

    name: str
    source: ModelSource
    version: str = "1"
    replicas: int = 1
    devices: tuple[str, ...] = ()
    slo: float = 0.1
    deadline: float | None = None
    duration: float = 600.0
    batching: str = "aimd"
    delay: float = 0.0
    capacity: int = 1024
    hang: float | None = None
    cache: int = 0
    inline: bool = False
    feedback: str | None = None
    journal: int = 100_000
    within: float = 3600.0
    ray: Mapping[str, Any] = field(default_factory=dict)


class RequestOrigin(NamedTuple):
    """Identifies a request; groups of models use it to choose a model.

    Attributes:
      id: the request's id, or empty.
      client: the client that sent it.
      context: the context in which models are chosen.
      chosen: whether the client chose the id.
    """

    id: str = ""
    client: str = ""
    context: str = ""
    chosen: bool = False


class PredictionRequest(NamedTuple):
    """A request for a prediction.

    Attributes:
      inputs: arrays by name, already checked against the signature.
      rows: number of rows.
      priority: smaller goes first.
      timeout: the client's timeout for the answer, or the first result of a stream, in
        seconds; 0: the deadline of the model or group.
      origin: identifies the request for groups of models.
    """

    inputs: Mapping[str, np.ndarray[Any, Any]]
    rows: int
    priority: int = 0
    timeout: float = 0.0
    origin: RequestOrigin = RequestOrigin()


#: Most characters of an id or a context, as groups store them.
_MAX_LENGTH = 256


def checked_origin(origin: RequestOrigin) -> RequestOrigin:
    """Checks the origin of a request, and gives it an id if it has none.

    Args:
      origin: the origin.

    Returns:
      The origin with its id, or with a random one.

    Raises:
      ServeError: status 400; its id or context is too long.
    """
    for name, text in (("id", origin.id), ("context", origin.context)):
        if len(text) > _MAX_LENGTH:
            raise ServeError(
                f"{name!r} may have {_MAX_LENGTH} characters, got {len(text)}", 400
            )
    if origin.id:
        return origin._replace(chosen=True)
    return origin._replace(id=secrets.token_hex(16))


class Provenance(NamedTuple):
    """The models of a group that produced an answer.

    Attributes:
      id: the request's id, which feedback names.
      models: the models whose answers were used.
      version: version of the model or group.
      late: models whose answers did not arrive in time.
      confidence: for each row, the share of the group's models that agree.
    """

    id: str
    models: tuple[str, ...]
    version: str
    late: tuple[str, ...] = ()
    confidence: np.ndarray[Any, Any] | None = None


class Prediction(NamedTuple):
    """A model's answer and its timing.

    Attributes:
      outputs: arrays by name.
      queued: seconds until its batch or stream started.
      ran: seconds of the batch, or of the stream so far.
      rows: rows of the batch; 0 if the answer was cached.
      provenance: for a group, the models that produced the answer.
      age: seconds since the rows of tables that it is made of were read from where
        they change; None: the model has no such tables.
    """

    outputs: dict[str, np.ndarray[Any, Any]]
    queued: float
    ran: float
    rows: int
    provenance: Provenance | None = None
    age: float | None = None


class MetricsSink:
    """Receives counts and timings; this class discards them."""

    def batch(
        self, model: str, rows: int, seconds: float, requests: int, queued: float
    ) -> None:
        """Counts a batch; `queued` is the total wait of its requests."""

    def age(self, model: str, seconds: float) -> None:
        """Counts a batch with tables; `seconds` is the age of its rows."""

    def request(self, model: str, status: int, seconds: float) -> None:
        """Counts a request."""

    def result(self, model: str, number: int, seconds: float) -> None:
        """Counts a result of a stream; `seconds` is the time since the previous one."""

    def event(self, kind: str, group: str, what: str, amount: float = 1.0) -> None:
        """Counts an event in a group of models."""


class _QueuedRequest(NamedTuple):
    inputs: list[np.ndarray[Any, Any]]
    #: Resolves to the answer, or to the replica and the stream of a generator.
    future: asyncio.Future[Any]


def answers(
    served: Any, request: PredictionRequest
) -> AsyncGenerator[Prediction, None]:
    """Returns all results for a request: one, unless the model is a generator.

    Args:
      served: a model's service, or a group of models.
      request: the request.

    Returns:
      The results; close the iterator to stop the model early.
    """

    async def one() -> AsyncGenerator[Prediction, None]:
        yield await served.submit(request)

    if served.signature.streamed:
        streamed: AsyncGenerator[Prediction, None] = served.stream(request)
        return streamed
    return one()


def allowed(timeout: float, deadline: float) -> float:
    """Returns the time limit of a request in seconds.

    Args:
      timeout: the client's timeout; 0: none.
      deadline: the deadline of the model or group.
    """
    return min(timeout, deadline) if timeout > 0 else deadline


def check_single(name: str, signature: ModelSignature) -> None:
    """Checks that a model answers a request with one result.

    Args:
      name: name of the model or group.
      signature: its signature.

    Raises:
      ServeError: status 400; it answers with a stream of results.
    """
    if signature.streamed:
        raise ServeError(
            f"the model answers with a stream of results: use /v2/models/{name}"
            f"/generate_stream, /predict/{name} or ModelStreamInfer",
            400,
        )


def _too_late(why: Refusal) -> ServeError:
    words = f"the request cannot be answered in time: {why.reason}"
    return ServeError(words, 503, why.retry_after)


class ModelService:
    """Serves one model from a queue and one or more processes.

    Args:
      config: the model's configuration.
      meter: counts batches.

    Attributes:
      config: the model's configuration.
      deadline: seconds after which a request fails.
    """

    deadline: float

    def __init__(self, config: ModelConfig, meter: MetricsSink | None = None) -> None:
        self.config = config
        self._meter = meter or MetricsSink()
        self.deadline = config.deadline or 5 * config.slo
        self._hang = config.hang or max(1.0, 10 * self.deadline)
        self._budget = config.slo * _SHARE
        self._policy = batch_policy(
            config.batching, self._budget, config.source.max_batch
        )
        self._pace = Pace()
        #: Lateness of requests since their arrival, and of batches since their start.
        self._overdue = self._overrun = Lateness()
        self._queue = Queue(config.capacity, config.delay)
        self._cache = PredictionCache(config.cache)
        devices = config.devices or ("",)
        self._replicas = [
            Replica(
                config.source, self._change, placement_of(devices[k % len(devices)])
            )
            for k in range(config.replicas)
        ]
        self._journal: FeedbackJournal | None = None
        self._refused_at = -math.inf
        #: For which wait `refusal` returned which error, until something changes.
        self._refusal: tuple[float, ServeError] | None = None
        self._busy: set[Replica] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._draining = False

    # -- lifetime ----------------------------------------------------------------------

    async def start(self) -> None:
        """Starts the processes and returns when one is ready.

        Raises:
          ServeError: no process can load the model; the message says why.
        """
        config = self.config
        if config.feedback:
            self._journal = FeedbackJournal(
                config.feedback, config.journal, config.within
            )
        for replica in self._replicas:
            replica.start()
        try:
            while not self.ready:
                failed = [r.reason for r in self._replicas if r.failed]
                if len(failed) == len(self._replicas):
                    raise ServeError(f"model {self.config.name!r}: {failed[0]}", 400)
                await asyncio.sleep(0.01)
            self._check()
        except BaseException:  # the caller may have been cancelled
            await self.close()
            raise

    async def drain(self, timeout: float = 30.0) -> None:
        """Answers the accepted requests, accepts no new ones, and stops the processes.

        Args:
          timeout: seconds after which the remaining requests are refused.
        """
        self._draining = True
        end = self._now() + timeout
        while self._now() < end and (
            len(self._queue) or self._busy or any(r.streams for r in self._replicas)
        ):
            await asyncio.sleep(0.005)
        await self.close()

    async def close(self) -> None:
        """Stops the processes, and refuses the requests in the queue."""
        self._draining = True
        if self._timer is not None:
            self._timer.cancel()
        for entry in self._queue.drain():
            self._refuse(entry, ServeError("the server is shutting down", 503, 1.0))
        if self._journal is not None:
            self._journal.close()
        await asyncio.gather(*(replica.close() for replica in self._replicas))
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _check(self) -> None:
        wrong = ""
        if not self.signature.streamed and self.config.source.streams != 1:
            wrong = "streams are for generators, and its function is not one"
        elif self.signature.streamed and self.config.cache:
            wrong = "cache: the results of a generator are not cached"
        elif self.signature.streamed and self.config.feedback:
            wrong = "feedback: the results of a generator have no labels"
        if wrong:
            raise ServeError(f"model {self.config.name!r}: {wrong}", 400)

    # -- status ------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether any process is ready."""
        return any(replica.ready for replica in self._replicas) and not self._draining

    @property
    def signature(self) -> ModelSignature:
        """The model's signature.

        Raises:
          ServeError: status 503; no process has loaded the model yet.
        """
        for replica in self._replicas:
            if replica.signature is not None:
                return replica.signature
        raise ServeError("the model is not ready", 503, 1.0)

    @property
    def streamed(self) -> bool:
        """Whether the model is known to be a generator."""
        for replica in self._replicas:
            if replica.signature is not None:
                return replica.signature.streamed
        return False

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that requests may name."""
        return (self.config.version,)

    def stats(self) -> dict[str, float]:
        """Returns the service's statistics, for metrics.

        Returns:
          Numbers by name.
        """
        return {
            "queue_rows": self._queue.rows,
            "batch_limit": self._policy.limit,
            "replicas_ready": sum(replica.ready for replica in self._replicas),
            "starts": sum(replica.starts for replica in self._replicas),
            "streams": sum(replica.streams for replica in self._replicas),
            "cache_hits": self._cache.hits,
            "cache_misses": self._cache.misses,
            "cache_bytes": self._cache.nbytes,
        }

    def pids(self) -> list[int]:
        """Returns the ids of the running processes."""
        return [r.pid for r in self._replicas if r.pid is not None]

    # -- requests ----------------------------------------------------------------------

    def refusal(self, waited: float = 0.0) -> ServeError | None:
        """Returns why `submit` would refuse a request now, or None.

        The protocols call it before they read a request's body. It assumes the default
        priority and timeout. As it runs for each request, it returns None at once if
        there is a cache, or if no request was refused recently, and the same error
        until the queue or the processes change.

        Args:
          waited: seconds that the request has waited already.
        """
        now = self._now()
        if self.config.cache or now - self._refused_at > _OVERLOAD:
            return None
        if self._refusal is not None and waited >= self._refusal[0]:
            return self._refusal[1]
        entry = QueueEntry(None, 1, now, now + self.deadline - waited)
        state = self._processing(self.signature)
        refused = self._queue.predict_wait(entry, now, state)
        if not isinstance(refused, Refusal):
            return None
        error = _too_late(refused)
        if state.replicas and not state.until:  # otherwise it changes with time
            self._refusal = waited, error
        return error

    async def submit(self, request: PredictionRequest) -> Prediction:
        """Answers one request by its deadline.

        Args:
          request: the request.

        Returns:
          The outputs.

        Raises:
          ServeError: 503 if the answer would be late, 504 if it is late, 500 if the
            model failed, 413 if the request is larger than a batch, 400 if the model
            is a generator.
        """
        signature = self.signature
        check_single(self.config.name, signature)
        arrays = [request.inputs[spec.name] for spec in signature.inputs]
        key = b""
        if self.config.cache and not self._draining:
            key = key_of(arrays)
            known = self._cache.get(key)
            if known is not None:
                return self._kept(request, Prediction(known, 0.0, 0.0, 0))
        entry = self._entered(signature, arrays, request)
        answer: Prediction = await self._turn(entry)
        if key and answer.age is None:
            self._cache.put(key, answer.outputs)
        return self._kept(request, answer)

    def _kept(self, request: PredictionRequest, answer: Prediction) -> Prediction:
        """Keeps a request for its label, if there is a file for labels."""
        if self._journal is None:
            return answer
        signature, name = self.signature, self.config.name
        id = checked_origin(request.origin).id
        scores = answer.outputs[signature.outputs[0].name]
        self._journal.put(
            *(id, request.inputs, request.rows),
            model=name,
            scores=scores if signature.batched else scores[None],
            objects=signature.objects,
        )
        return answer._replace(provenance=Provenance(id, (name,), self.config.version))

    async def feedback(
        self, *, id: str = "", label: Any = None, **other: Any
    ) -> JoinedFeedback:
        """Appends the label of a request to the file for labels.

        Args:
          id: id of the request.
          label: label of each row.
          **other: nothing.

        Raises:
          ServeError: 400 if there is no file, or the feedback is invalid; 404 if no
            such request waits, 410 if the label is late, 409 if it has one already.
        """
        with counted_feedback(self._meter, self.config.name):
            if self._journal is None:
                raise ServeError(
                    f"{self.config.name!r} takes no feedback: its option 'feedback' "
                    "names the file for labels",
                    400,
                )
            check_label_by_id(id, label, other)
            return self._journal.join(id, label)[0]

    async def stream(
        self, request: PredictionRequest
    ) -> AsyncGenerator[Prediction, None]:
        """Answers one request with a generator's results; `answers` takes any model.

        Args:
          request: the request.

        Yields:
          The results. Close the iterator (`aclosing`) to close the generator early.

        Raises:
          ServeError: 503 if it does not start in time, 504 if the next result is late,
            500 if the model failed, 413 if the inputs are too large.
        """
        signature = self.signature
        arrays = [request.inputs[spec.name] for spec in signature.inputs]
        entry = self._entered(signature, arrays, request)
        replica, stream = await self._turn(entry)
        last, deadline, count = entry.arrived, entry.deadline, 0
        begun = self._now()
        end = begun + self.config.duration
        try:
            while True:
                left = min(deadline, end) - self._now()
                try:
                    if left <= 0:  # even if a result is ready: streams may be endless
                        raise TimeoutError
                    outputs = await stream.next(left)
                except TimeoutError:
                    words = f"the stream took more than {self.config.duration:g} s"
                    if deadline < end:
                        seconds = deadline - last
                        words = f"the model gave no result within {seconds:.3g} s"
                    raise ServeError(words, 504) from None
                if outputs is None:
                    return
                now = self._now()
                named = {
                    spec.name: value
                    for spec, value in zip(signature.outputs, outputs, strict=True)
                }
                self._meter.result(self.config.name, count, now - last)
                yield Prediction(
                    named, begun - entry.arrived, now - begun, request.rows
                )
                # The model's time starts when the client has taken the result.
                last = self._now()
                count, deadline = count + 1, last + self.deadline
        finally:
            self._spawn(self._end(replica, stream))

    async def _end(self, replica: Replica, stream: Stream) -> None:
        await replica.end(stream, self._hang)
        self._change()

    def _entered(
        self,
        signature: ModelSignature,
        arrays: list[np.ndarray[Any, Any]],
        request: PredictionRequest,
    ) -> QueueEntry:
        """Adds a request to the queue, or raises the reason why it is refused."""
        most, rows = self._most(signature), request.rows
        if rows > most:
            raise ServeError(f"a request may have {most} rows, got {rows}", 413)
        now = self._now()
        limit = allowed(request.timeout, self.deadline)
        # The arrays of one batch have the same shape except for the first axis.
        group = tuple(a.shape[1:] for a in arrays) if signature.batched else None
        future = asyncio.get_running_loop().create_future()
        entry = QueueEntry(
            *(_QueuedRequest(arrays, future), rows, now, now + limit),
            *(request.priority, group),
        )
        refused = self._queue.offer(entry, now, self._processing(signature))
        if refused is not None:
            self._refused_at = now
            raise _too_late(refused)
        return entry

    def _processing(self, signature: ModelSignature) -> Processing:
        """Returns the state of the processes, for the queue."""
        running, until = sum(r.ready for r in self._replicas), 0.0
        if not running:  # count the processes that are restarting
            now = self._now()
            coming = [s for r in self._replicas if (s := r.ready_in(now)) < math.inf]
            running, until = len(coming), min(coming, default=0.0)
        return Processing(
            self._limit(signature),
            self._pace,
            free=sum(map(self._free, self._replicas)),
            replicas=0 if self._draining else running,
            margin=self._overdue.margin,
            until=until,
        )

    async def _turn(self, entry: QueueEntry) -> Any:
        """Waits for the result of a queued request's future, up to its deadline."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(entry.deadline - entry.arrived, self._expire, entry)
        future = entry.item.future
        try:
            self._pump()
            return await future
        except asyncio.CancelledError:
            # Its stream may have opened in the same iteration of the event loop.
            opened = future.done() and not (future.cancelled() or future.exception())
            if opened and self.signature.streamed:
                self._spawn(self._end(*future.result()))
            raise
        finally:
            timer.cancel()
            if self._queue.withdraw(entry):  # the client disconnected
                self._refusal = None

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _free(self, replica: Replica) -> bool:
        return replica.room > 0 and replica not in self._busy

    def _most(self, signature: ModelSignature) -> int:
        most = self.config.source.max_batch
        return min(most, signature.sizes[-1]) if signature.sizes else most

    def _limit(self, signature: ModelSignature) -> int:
        if signature.streamed or not signature.batched:
            return 1
        return min(self._policy.limit, self._most(signature))

    def _change(self) -> None:
        """Starts more work, as a process has become ready, free, or neither."""
        self._refusal = None
        self._pump()

    def _pump(self) -> None:
        """Starts the next batch or stream on each free process."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for replica in self._replicas:
            while self._free(replica):
                if not self._begin(replica):
                    return

    def _begin(self, replica: Replica) -> bool:
        """Starts the next work on a free process; False if there is none yet."""
        now, signature = self._now(), self.signature
        decision = self._queue.take(
            now, self._limit(signature), self._pace, self._overrun.margin
        )
        if decision.shed or decision.batch:
            self._refusal = None
        for entry, why in decision.shed:
            self._refuse(entry, _too_late(why))
        if not decision.batch:
            if decision.wake < float("inf"):
                # Timers have millisecond resolution: round up, so as not to re-arm.
                wait = math.ceil((decision.wake - now) * 1e3) / 1e3
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(wait, self._pump)
            return False
        if signature.streamed:
            (entry,) = decision.batch
            try:
                stream = replica.open(entry.item.inputs, entry.rows)
                entry.item.future.set_result((replica, stream))
            except ServeError as error:
                self._refuse(entry, error)
        else:
            self._busy.add(replica)
            self._spawn(self._run(replica, decision.batch))
        return True

    async def _run(self, replica: Replica, batch: list[QueueEntry]) -> None:
        try:
            await self._run_batch(replica, batch)
        finally:
            self._busy.discard(replica)
            self._change()

    async def _run_batch(self, replica: Replica, batch: list[QueueEntry]) -> None:
        signature = self.signature
        rows = sum(entry.rows for entry in batch)
        parts = [
            [entry.item.inputs[k] for entry in batch]
            for k in range(len(signature.inputs))
        ]
        begun = self._now()
        try:
            outputs, busy, age = await replica.call(parts, rows, self._hang)
        except ServeError as error:
            if len(batch) > 1 and replica.ready and error.status in (400, 500):
                # The model raised: run each request alone to find the faulty one.
                for entry in batch:
                    if not entry.item.future.done():
                        await self._run_batch(replica, [entry])
                return
            for entry in batch:
                self._refuse(entry, error)
            return
        now = self._now()
        seconds = now - begun
        self._overrun = self._overrun.after(seconds - self._pace.predict(rows))
        if predicted := [entry.due for entry in batch if entry.due]:
            self._overdue = self._overdue.after(now - min(predicted))
        # Use the worker's own time: the time that the server spends on other requests
        # does not depend on the size of the batch.
        self._pace = self._pace.after(rows, busy)
        # If one row alone misses the objective, small batches do not help: allow twice
        # the time of one row, or throughput would be close to zero.
        least = min(2 * self._pace.predict(1), 0.9 * self.deadline)
        self._policy = self._policy.after(
            rows, busy * self._budget / max(self._budget, least)
        )
        queued = len(batch) * begun - sum(entry.arrived for entry in batch)
        self._meter.batch(self.config.name, rows, seconds, len(batch), queued)
        if age is not None:
            self._meter.age(self.config.name, age)
        at = 0
        for entry in batch:
            future = entry.item.future
            if not future.done():
                piece = slice(at, at + entry.rows) if signature.batched else ...
                named = {
                    spec.name: value[piece]
                    for spec, value in zip(signature.outputs, outputs, strict=True)
                }
                future.set_result(
                    Prediction(named, begun - entry.arrived, seconds, rows, None, age)
                )
            at += entry.rows

    def _expire(self, entry: QueueEntry) -> None:
        waited = self._queue.withdraw(entry)
        self._refusal = None
        if waited and entry.due:  # it is late by at least this
            self._overdue = self._overdue.after(self._now() - entry.due)
        words = "it waited" if waited else "its batch ran"
        error = ServeError(
            f"no answer by the deadline: {words} until then",
            503 if waited else 504,
            0.1,
        )
        self._refuse(entry, error)

    @staticmethod
    def _refuse(entry: QueueEntry, error: ServeError) -> None:
        future = entry.item.future
        if not future.done():
            future.set_exception(
                ServeError(str(error), error.status, error.retry_after)
            )

    @staticmethod
    def _now() -> float:
        return time.monotonic()  # uvloop caches the loop's time during an iteration
