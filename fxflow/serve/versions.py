"""Two versions under one name: the stable one, and a candidate on trial.

In the shadow the candidate gets a copy of each request after it was answered, and the
two answers are compared; as a canary it answers a share of the requests, the same ones
each time. A canary's request that fails is answered by the stable version while there
is time: half of it is the candidate's. `Rollout` decides how far it gets.

Generators are rolled out in the same way: a stream that has its first result is the
version's that gave it, and its end, or a failure later, is what counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.cache import key_of
from fxflow.serve.selection.rollouts import Rollout, RolloutPlan, point_of
from fxflow.serve.service import (
    MetricsSink,
    ModelService,
    Prediction,
    Provenance,
    RequestOrigin,
    allowed,
    answers,
    check_single,
    checked_origin,
)
from fxflow.serve.signatures import ModelSignature, check_alike

_log = logging.getLogger("fxflow.serve")
Array = np.ndarray[Any, Any]
#: Requests of little urgency: copies.
_LAST = 4
#: Results of a stream that are kept to be compared.
_COMPARED = 64


class _Unanswered(Exception):
    """The candidate has no answer, and the stable version is to give one."""


@dataclass(frozen=True)
class VersionsConfig:
    """A stable version and a candidate under one name.

    Attributes:
      name: in requests.
      stable, candidate: names of the models, which agree in inputs and outputs.
      plan: how the candidate is rolled out.
      by: what selects requests for the candidate: ``request`` (its id, or else its
        inputs) or ``client``.
      deadline: seconds after which an answer is of no use; None: the stable model's.
      tolerance: within which numbers of the two agree.
      copies: the most copies of requests in flight in the shadow.
    """

    name: str
    stable: str
    candidate: str
    plan: RolloutPlan = field(default_factory=RolloutPlan)
    by: str = "request"
    deadline: float | None = None
    tolerance: float = 1e-3
    copies: int = 64

    @property
    def models(self) -> tuple[str, str]:
        """Names of the two."""
        return self.stable, self.candidate


def same(
    one: Mapping[str, Array], other: Mapping[str, Array], tolerance: float
) -> bool:
    """Returns whether two models have answered alike.

    Args:
      one, other: outputs by name.
      tolerance: relative and absolute, for numbers.

    Returns:
      Whether all outputs agree in all rows.

    Example:
      >>> same({"y": np.array([1.0])}, {"y": np.array([1.01])}, tolerance=0.1)
      True
    """
    for name, value in one.items():
        theirs = other.get(name)
        if theirs is None or theirs.shape != value.shape:
            return False
        if value.dtype.kind in "fV":
            near = np.isclose(
                value.astype(np.float64),
                theirs.astype(np.float64),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
            )
        else:
            near = np.asarray(value == theirs)
        if not near.all():
            return False
    return True


class Versions:
    """A stable version and a candidate under one name.

    Args:
      config: which and how.
      member: returns the service of a model (and version), or raises `ServeError`.
      meter: counts events.

    Attributes:
      config: which and how.
      rollout: how far the candidate is.
    """

    meter: MetricsSink
    rollout: Rollout

    def __init__(
        self,
        config: VersionsConfig,
        member: Callable[..., ModelService],
        meter: MetricsSink | None = None,
    ) -> None:
        self.config = config
        self.rollout = Rollout(config.plan)
        self.meter = meter or MetricsSink()
        self._member = member
        self._tasks: set[asyncio.Task[None]] = set()

    # -- what it is --------------------------------------------------------------------

    @property
    def _stable(self) -> ModelService:
        return self._member(self.config.stable)

    @property
    def ready(self) -> bool:
        """Whether the stable version can be called."""
        try:
            return self._stable.ready
        except ServeError:
            return False

    @property
    def signature(self) -> ModelSignature:
        """What both take and give.

        Raises:
          ServeError: status 503; it is not known yet.
        """
        return self._stable.signature

    @property
    def deadline(self) -> float:
        """Seconds after which an answer is of no use."""
        return self.config.deadline or self._stable.deadline

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions that requests may name, the stable one first."""
        found: list[str] = []
        for name in self.config.models:
            with contextlib.suppress(ServeError):
                found += self._member(name).versions
        return tuple(found)

    def check(self) -> None:
        """Checks that one can stand for the other.

        Raises:
          ServeError: status 400; it cannot.
        """
        found = {}
        for name in self.config.models:
            try:
                found[name] = self._member(name).signature
            except ServeError:
                continue
        check_alike(self.config.name, found)

    def pinned(self, version: str) -> ModelService:
        """Returns what answers requests for a version.

        Args:
          version: that a request names: of one of the two.

        Returns:
          The service of that model.

        Raises:
          ServeError: status 404; neither has it.
        """
        for name in self.config.models:
            with contextlib.suppress(ServeError):
                return self._member(name, version)
        raise ServeError(
            f"there is no version {version!r} of {self.config.name!r}: there is "
            f"{', '.join(map(repr, self.versions)) or 'none'}",
            404,
        )

    def describe(self) -> dict[str, Any]:
        """Returns how far the candidate is.

        Returns:
          Values that JSON has.
        """
        rollout = self.rollout
        return {
            "stable": self.config.stable,
            "candidate": self.config.candidate,
            "share": rollout.share,
            "shadow": rollout.shadowed,
            "shares": list(rollout.plan.shares),
            "step": rollout.step,
            "rolled_back": rollout.back,
            "requests": rollout.total,
            "failed": sum(failed for failed, _ in rollout.seen),
            "late": sum(late for _, late in rollout.seen),
        }

    def stats(self) -> dict[tuple[str, str], float]:
        """Returns how far the candidate is, for metrics.

        Returns:
          Numbers by name and label.
        """
        candidate = self.config.candidate
        return {
            ("share", candidate): self.rollout.share,
            ("rolled_back", candidate): float(bool(self.rollout.back)),
        }

    async def drain(self) -> None:
        """Cancels the copies in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- moving ------------------------------------------------------------------------

    def forward(self) -> None:
        """Gives the candidate its next share; one that was rolled back begins again."""
        self._move(self.rollout.forward())

    def back(self, why: str = "by request") -> None:
        """Takes the candidate out.

        Args:
          why: in words.
        """
        self._move(self.rollout.rolled_back(why))

    def _move(self, new: Rollout) -> None:
        old, self.rollout = self.rollout, new
        name, candidate = self.config.name, self.config.candidate
        if new.back and not old.back:
            self.meter.event("rollbacks", name, candidate)
            _log.warning("%s: %s is rolled back: %s", name, candidate, new.back)
        elif new.step != old.step or (old.back and not new.back):
            _log.info("%s: %s has a share of %g", name, candidate, new.share)

    # -- requests ----------------------------------------------------------------------

    async def submit(
        self,
        inputs: Mapping[str, Array],
        rows: int,
        *,
        priority: int = 0,
        timeout: float = 0.0,
        origin: RequestOrigin | None = None,
    ) -> Prediction:
        """Answers one request by its deadline.

        Args:
          inputs: as the signature has them, which is checked before.
          rows: of the request.
          priority: smaller goes first.
          timeout: seconds that the client has, if fewer than the deadline.
          origin: whose it is, which decides what version answers.

        Returns:
          The outputs of its rows.

        Raises:
          ServeError: there was no answer in time, or it is a generator's.
        """
        check_single(self.config.name, self.signature)
        results = self.stream(
            inputs, rows, priority=priority, timeout=timeout, origin=origin
        )
        (answer,) = [answer async for answer in results]
        return answer

    async def stream(
        self,
        inputs: Mapping[str, Array],
        rows: int,
        *,
        priority: int = 0,
        timeout: float = 0.0,
        origin: RequestOrigin | None = None,
    ) -> AsyncGenerator[Prediction, None]:
        """Answers one request by all results of the version that is to answer it.

        Args:
          inputs, rows, priority, origin: as of `submit`.
          timeout: seconds until the first result, if fewer than the deadline.

        Yields:
          One result after the other; close it to end it before the last.

        Raises:
          ServeError: there was no result in time, or the model failed after its first.
        """
        origin = checked_origin(origin or RequestOrigin())
        stable = self._stable
        limit = allowed(timeout, self.deadline)
        end = self._now() + limit
        if self.rollout.share > 0 and self._point(inputs, origin) < self.rollout.share:
            self.meter.event("choices", self.config.name, self.config.candidate)
            tried = self._try(inputs, rows, priority, limit / 2, origin.id)
            try:
                async with aclosing(tried):
                    async for answer in tried:
                        yield answer
                return
            except _Unanswered:
                pass
        self.meter.event("choices", self.config.name, self.config.stable)
        by = Provenance(origin.id, (self.config.stable,), stable.config.version)
        shadowed = self.rollout.shadowed
        kept: list[Prediction] = []
        left = max(end - self._now(), 1e-3)
        results = answers(stable, inputs, rows, priority=priority, timeout=left)
        async with aclosing(results):
            async for answer in results:
                if shadowed and len(kept) < _COMPARED:
                    kept.append(answer)
                yield answer._replace(provenance=by)
        if shadowed:
            self._copy(inputs, rows, kept)

    def _point(self, inputs: Mapping[str, Array], origin: RequestOrigin) -> float:
        if self.config.by == "client":
            key = origin.client.encode("utf-8", "surrogatepass")
        elif origin.chosen:
            key = origin.id.encode("utf-8", "surrogatepass")
        else:
            key = key_of(inputs[spec.name] for spec in self.signature.inputs)
        return point_of(self.config.name, key)

    async def _try(
        self,
        inputs: Mapping[str, Array],
        rows: int,
        priority: int,
        timeout: float,
        id: str,
    ) -> AsyncGenerator[Prediction, None]:
        """The candidate's results; `_Unanswered` if it fails before the first."""
        begun, rollout = self._now(), self.rollout
        name, candidate = self.config.name, self.config.candidate
        first: float | None = None
        failed = False
        try:
            service = self._member(candidate)
            by = Provenance(id, (candidate,), service.config.version)
            results = answers(service, inputs, rows, priority=priority, timeout=timeout)
            async with aclosing(results):
                async for answer in results:
                    if first is None:
                        first = self._now() - begun
                    yield answer._replace(provenance=by)
            if first is None:  # a stream of nothing
                first = self._now() - begun
        except ServeError as error:
            _log.info("%s: %s failed: %s", name, candidate, error)
            self.meter.event("failures", name, candidate)
            failed = True
            if first is None:
                first = self._now() - begun
                raise _Unanswered from error
            raise
        finally:
            # Whose client goes away before that says nothing of the candidate.
            if first is not None:
                self._seen(rollout, failed=failed, seconds=first)

    def _seen(self, then: Rollout, *, failed: bool, seconds: float) -> None:
        # What was asked in another step, or before a roll-back, says nothing of this.
        if (then.step, then.back) == (self.rollout.step, self.rollout.back):
            self._move(self.rollout.after(failed, seconds))

    def _copy(
        self, inputs: Mapping[str, Array], rows: int, kept: list[Prediction]
    ) -> None:
        if len(self._tasks) >= self.config.copies:
            self.meter.event("shadow", self.config.name, "dropped")
            return
        task = asyncio.get_running_loop().create_task(self._compare(inputs, rows, kept))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _compare(
        self, inputs: Mapping[str, Array], rows: int, kept: list[Prediction]
    ) -> None:
        theirs = self._try(inputs, rows, _LAST, 0.0, "")
        count, alike = 0, True
        try:
            async with aclosing(theirs):
                async for answer in theirs:
                    alike = (
                        alike
                        and count < len(kept)
                        and same(
                            kept[count].outputs, answer.outputs, self.config.tolerance
                        )
                    )
                    count += 1
                    if count == _COMPARED:
                        break
            result = "same" if alike and count == len(kept) else "different"
        except (ServeError, _Unanswered):
            result = "failed"
        self.meter.event("shadow", self.config.name, result)

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()
