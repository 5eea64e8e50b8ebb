"""Rollouts: a stable version and a candidate under one name.

As a shadow, the candidate gets a copy of each request after the stable version has
answered, and the two answers are compared. As a canary it answers a share of the
requests, always the same ones; if it fails, or takes half of the request's time, the
stable version answers. `Rollout` decides the candidate's share.

Generators are rolled out in the same way: the version that yields the first result
serves the whole stream, and a failure counts whenever it happens.
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
#: The priority of shadow requests.
_LOW_PRIORITY = 4
#: Most results of a stream that are compared.
_COMPARED = 64


class _Unanswered(Exception):
    """The candidate failed before its first result; the stable version can answer."""


@dataclass(frozen=True)
class VersionsConfig:
    """Configures a rollout.

    Attributes:
      name: the rollout's name in requests.
      stable, candidate: names of the models, which have the same inputs and outputs.
      plan: shares, limits and window of the rollout.
      by: what selects requests for the candidate: ``request`` (its id, or else its
        inputs) or ``client``.
      deadline: seconds after which a request fails; None: the stable model's.
      tolerance: distance within which numbers of the two agree.
      copies: most shadow requests in flight.
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
        """Names of the two models."""
        return self.stable, self.candidate


def same(
    one: Mapping[str, Array], other: Mapping[str, Array], tolerance: float
) -> bool:
    """Returns whether the outputs of two models agree.

    Args:
      one, other: outputs by name.
      tolerance: relative and absolute tolerance for numbers.

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
    """Serves a stable version and a candidate under one name.

    Args:
      config: the rollout's configuration.
      member: returns the service of a model (and version), or raises `ServeError`.
      meter: counts events.

    Attributes:
      config: the rollout's configuration.
      rollout: the rollout's state.
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

    # -- status ------------------------------------------------------------------------

    @property
    def _stable(self) -> ModelService:
        return self._member(self.config.stable)

    @property
    def ready(self) -> bool:
        """Whether the stable version is ready."""
        try:
            return self._stable.ready
        except ServeError:
            return False

    @property
    def signature(self) -> ModelSignature:
        """The signature that both versions share.

        Raises:
          ServeError: status 503; the stable model is not loaded yet.
        """
        return self._stable.signature

    @property
    def deadline(self) -> float:
        """Seconds after which a request fails."""
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
        """Checks that the two models are interchangeable.

        Raises:
          ServeError: status 400; they are not.
        """
        found = {}
        for name in self.config.models:
            try:
                found[name] = self._member(name).signature
            except ServeError:
                continue
        check_alike(self.config.name, found)

    def pinned(self, version: str) -> ModelService:
        """Returns the model with a version.

        Args:
          version: the version that a request names.

        Returns:
          The model's service.

        Raises:
          ServeError: status 404; neither model has this version.
        """
        for name in self.config.models:
            with contextlib.suppress(ServeError):
                return self._member(name, version)
        raise ServeError(
            f"{self.config.name!r} has no version {version!r}; versions: "
            f"{', '.join(map(repr, self.versions)) or 'none'}",
            404,
        )

    def describe(self) -> dict[str, Any]:
        """Returns the rollout's state.

        Returns:
          A JSON object.
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
        """Returns the rollout's statistics, for metrics.

        Returns:
          Numbers by name and label.
        """
        candidate = self.config.candidate
        return {
            ("share", candidate): self.rollout.share,
            ("rolled_back", candidate): float(bool(self.rollout.back)),
        }

    async def drain(self) -> None:
        """Cancels the shadow requests in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # -- steps -------------------------------------------------------------------------

    def forward(self) -> None:
        """Moves to the next share, or restarts a rollout that was rolled back."""
        self._move(self.rollout.forward())

    def back(self, why: str = "by request") -> None:
        """Rolls the candidate back.

        Args:
          why: the reason.
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
          inputs: arrays by name, already checked against the signature.
          rows: rows of the request.
          priority: smaller goes first.
          timeout: the client's timeout in seconds, if shorter than the deadline.
          origin: the request's id and client, which select the version.

        Returns:
          The outputs.

        Raises:
          ServeError: there was no answer in time, or the models are generators.
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
        """Answers one request with all results of the selected version.

        Args:
          inputs, rows, priority, origin: as for `submit`.
          timeout: seconds until the first result, if shorter than the deadline.

        Yields:
          The results; close the iterator to stop the model early.

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
        """Yields the candidate's results; raises `_Unanswered` if there are none."""
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
            if first is None:  # an empty stream
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
            # A client that disconnects earlier says nothing about the candidate.
            if first is not None:
                self._seen(rollout, failed=failed, seconds=first)

    def _seen(self, then: Rollout, *, failed: bool, seconds: float) -> None:
        # A request from another step, or from before a rollback, does not count.
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
        theirs = self._try(inputs, rows, _LOW_PRIORITY, 0.0, "")
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
