"""Rollouts: a stable version and a candidate under one name.

With labels of requests (`feedback`), the areas under the ROC curves of both versions
are compared: the candidate is rolled back if its area is smaller by more than is
allowed and by more than chance, and gets a larger share only when it is shown not to be
worse.

As a shadow, the candidate gets a copy of each request after the stable version has
answered, and the two answers are compared. As a canary it answers a share of the
requests, always the same ones; if it fails, or takes half of the request's time, the
stable version answers.

Generators are rolled out in the same way: the version that yields the first result
serves the whole stream, and a failure counts whenever it happens.

Source: Wilson, Probable Inference, the Law of Succession, and Statistical Inference,
1927.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fxflow.errors import ServeError
from fxflow.serve.cache import key_of
from fxflow.serve.feedback import (
    FeedbackJournal,
    JoinedFeedback,
    check_label_by_id,
    counted_feedback,
)
from fxflow.serve.selection.quality import Auc, AucWindow
from fxflow.serve.service import (
    MetricsSink,
    ModelService,
    Prediction,
    PredictionRequest,
    Provenance,
    allowed,
    answers,
    check_single,
    checked_origin,
)
from fxflow.serve.signatures import ModelSignature, check_alike

# -- decisions -------------------------------------------------------------------------

#: Standard deviations of the interval: each bound holds with probability 98 %.
_Z = 2.05


def point_of(name: str, key: bytes) -> float:
    """Hashes a request or client to a number in [0, 1).

    Args:
      name: name of the rollout; others start with other requests.
      key: identifies the request or client.

    Returns:
      A number; the candidate answers if it is below the share.

    Example:
      >>> 0 <= point_of("digits", b"alice") == point_of("digits", b"alice") < 1
      True
    """
    # The length separates name and key unambiguously.
    text = f"{len(name)}:{name}".encode() + key
    digest = hashlib.blake2b(text, digest_size=7).digest()
    return int.from_bytes(digest, "big") / (1 << 56)


def least_rate(bad: int, of: int) -> float:
    """Returns a lower bound of the true rate.

    Args:
      bad: number of bad requests.
      of: number of requests.

    Returns:
      The lower bound of Wilson's interval; 0 without requests.

    Example:
      >>> round(least_rate(1, 3), 3), round(least_rate(50, 100), 3)
      (0.058, 0.4)
    """
    if not of:
        return 0.0
    p, z2 = bad / of, _Z**2
    spread = _Z * math.sqrt(p * (1 - p) / of + z2 / (4 * of * of))
    return max(0.0, (p + z2 / (2 * of) - spread) / (1 + z2 / of))


@dataclass(frozen=True)
class RolloutPlan:
    """Configures the steps and limits of a rollout.

    Attributes:
      shares: share of the requests in each step; 0: shadow.
      hold: requests to the candidate after which the next step begins; None: only
        `forward` begins it.
      max_errors: allowed rate of errors.
      slow: seconds after which an answer is late; None: no limit.
      max_slow: allowed rate of late answers.
      least: requests to the candidate before it can be rolled back or forward.
      window: number of last requests that count.
      max_auc_loss: how much smaller the candidate's area under the ROC curve may be
        than the stable version's; None: labels do not decide.
      least_labels: labels of each class and version before they decide.
      labels: number of last labels of each version that count.
    """

    shares: tuple[float, ...] = (0.0, 0.01, 0.1, 0.5, 1.0)
    hold: int | None = None
    max_errors: float = 0.01
    slow: float | None = None
    max_slow: float = 0.05
    least: int = 20
    window: int = 1000
    max_auc_loss: float | None = None
    least_labels: int = 100
    labels: int = 100_000


@dataclass(frozen=True)
class Rollout:
    """The state of a rollout, which decides the candidate's share of the requests.

    The share grows in steps. The candidate is rolled back when the lower bound of
    Wilson's interval for its rate of failed or late requests exceeds the limit: one
    failure among three requests is not enough, ten are. Only the last `window` requests
    of a step count. `judged` does the same by labels: the difference of two areas
    counts beyond `_Z` of its standard errors, in both directions.

    Attributes:
      plan: its steps and limits.
      step: index of the current share in the plan.
      back: why it was rolled back; empty if it was not.
      seen: for each of the last requests, whether it failed and whether it was late.
      total: requests to the candidate in this step.
      aucs: the areas of the stable version and of the candidate.

    Example:
      >>> rollout = Rollout(RolloutPlan(shares=(0.1, 1.0), hold=30))
      >>> for _ in range(30):
      ...     rollout = rollout.after(failed=False, seconds=0.01)
      >>> rollout.share
      1.0
      >>> for _ in range(20):
      ...     rollout = rollout.after(failed=True, seconds=0.01)
      >>> rollout.share, rollout.back
      (0.0, '20 of 20 requests failed; the allowed rate is 0.01')
    """

    plan: RolloutPlan
    step: int = 0
    back: str = ""
    seen: tuple[tuple[bool, bool], ...] = ()
    total: int = 0
    aucs: tuple[Auc, Auc] = (Auc(), Auc())

    @property
    def share(self) -> float:
        """The share of the requests that the candidate answers."""
        return 0.0 if self.back else self.plan.shares[self.step]

    @property
    def shadowed(self) -> bool:
        """Whether the candidate runs as a shadow."""
        return not self.back and self.plan.shares[self.step] == 0.0

    def after(self, failed: bool, seconds: float) -> Rollout:
        """Returns the rollout after one more request to the candidate.

        Args:
          failed: whether the request failed.
          seconds: time that it took.

        Returns:
          The rollout, possibly in the next step or rolled back.
        """
        if self.back:
            return self
        plan = self.plan
        late = plan.slow is not None and seconds > plan.slow
        seen = (*self.seen[-(plan.window - 1) :], (failed, late))
        now = replace(self, seen=seen, total=self.total + 1)
        if len(seen) < plan.least:
            return now
        for place, limit, words in (
            (0, plan.max_errors, "failed"),
            (1, plan.max_slow, f"took more than {plan.slow} s"),
        ):
            bad = sum(entry[place] for entry in seen)
            if least_rate(bad, len(seen)) > limit:
                return now.rolled_back(
                    f"{bad} of {len(seen)} requests {words}; the allowed rate is "
                    f"{limit:g}"
                )
        return now._next()

    def judged(self, stable: Auc, candidate: Auc) -> Rollout:
        """Returns the rollout after more labels.

        Args:
          stable, candidate: the areas under the ROC curves of both versions.

        Returns:
          The rollout, possibly in the next step or rolled back.
        """
        now, plan = replace(self, aucs=(stable, candidate)), self.plan
        if self.back or plan.max_auc_loss is None:
            return now
        lost, error = now._auc_loss()
        if lost - error > plan.max_auc_loss:
            return now.rolled_back(
                f"its AUC is {candidate.value:.4f} after "
                f"{candidate.positives + candidate.negatives} labels, the stable "
                f"version's {stable.value:.4f}; the allowed loss is "
                f"{plan.max_auc_loss:g}"
            )
        return now._next() if len(now.seen) >= plan.least else now

    def _auc_loss(self) -> tuple[float, float]:
        """Returns how much smaller the candidate's area is, and the error of that."""
        stable, candidate = self.aucs
        counts = (*stable[1:], *candidate[1:])
        if min(counts) < self.plan.least_labels:
            return 0.0, math.inf
        lost = stable.value - candidate.value
        return lost, _Z * math.hypot(stable.error, candidate.error)

    def _next(self) -> Rollout:
        """Returns the rollout in its next step, if that is due."""
        plan = self.plan
        if plan.hold is None or self.total < plan.hold:
            return self
        if plan.max_auc_loss is not None and sum(self._auc_loss()) > plan.max_auc_loss:
            return self
        return self.forward()

    def forward(self) -> Rollout:
        """Returns the rollout in its next step, or restarted if it was rolled back.

        Returns:
          The rollout.
        """
        if self.back:
            return Rollout(self.plan)
        step = min(self.step + 1, len(self.plan.shares) - 1)
        return self if step == self.step else Rollout(self.plan, step, aucs=self.aucs)

    def rolled_back(self, why: str) -> Rollout:
        """Returns the rollout with its candidate rolled back.

        Args:
          why: the reason.

        Returns:
          The rollout.
        """
        return replace(self, back=why)


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
      output: the output whose area under the ROC curve is computed, numbers from 0 to
        1; None: the first.
      feedback: file to which labels are appended with the columns of their requests,
        for training; None: no file.
      journal: most requests that wait for their label.
      within: seconds for which a request waits for its label.
    """

    name: str
    stable: str
    candidate: str
    plan: RolloutPlan = field(default_factory=RolloutPlan)
    by: str = "request"
    deadline: float | None = None
    tolerance: float = 1e-3
    copies: int = 64
    output: str | None = None
    feedback: str | None = None
    journal: int = 100_000
    within: float = 3600.0

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
        self._journal: FeedbackJournal | None = None
        if config.feedback or config.plan.max_auc_loss is not None:
            self._journal = FeedbackJournal(
                config.feedback, config.journal, config.within
            )
        self._windows = {name: AucWindow(config.plan.labels) for name in config.models}

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
        for signature in found.values():
            self._check_feedback(signature)

    def _check_feedback(self, signature: ModelSignature) -> None:
        if self._journal is None:
            return
        place = f"rollouts.{self.config.name}"
        if signature.streamed:
            raise ServeError(f"{place}: the results of generators have no labels", 400)
        outputs = {spec.name: spec for spec in signature.outputs}
        name = self._output(signature)
        if name not in outputs:
            raise ServeError(
                f"{place}: unknown output {name!r}; outputs: {', '.join(outputs)}", 400
            )
        if self.config.plan.max_auc_loss is None:
            return
        shape = outputs[name].shape[1 if signature.batched else 0 :]
        if outputs[name].dtype.kind not in "fV" or shape not in ((), (1,)):
            raise ServeError(
                f"{place}: max_auc_loss needs an output with one score for each row, "
                f"{name!r} is {outputs[name]}",
                400,
            )

    def _output(self, signature: ModelSignature) -> str:
        return self.config.output or signature.outputs[0].name

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
            "auc": {
                name: auc._asdict() if auc.positives and auc.negatives else None
                for name, auc in zip(self.config.models, rollout.aucs, strict=True)
            },
        }

    def stats(self) -> dict[tuple[str, str], float]:
        """Returns the rollout's statistics, for metrics.

        Returns:
          Numbers by name and label.
        """
        candidate = self.config.candidate
        found = {
            ("share", candidate): self.rollout.share,
            ("rolled_back", candidate): float(bool(self.rollout.back)),
        }
        for name, auc in zip(self.config.models, self.rollout.aucs, strict=True):
            if auc.positives and auc.negatives:
                found["auc", name] = auc.value
                found["labels", name] = auc.positives + auc.negatives
        return found

    async def drain(self) -> None:
        """Cancels the shadow requests in flight."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._journal is not None:
            self._journal.close()

    # -- steps -------------------------------------------------------------------------

    def forward(self) -> None:
        """Moves to the next share, or restarts a rollout that was rolled back."""
        if self.rollout.back:
            self._windows[self.config.candidate] = AucWindow(self.config.plan.labels)
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

    async def submit(self, request: PredictionRequest) -> Prediction:
        """Answers one request by its deadline.

        Args:
          request: the request; its id and client select the version.

        Returns:
          The outputs.

        Raises:
          ServeError: there was no answer in time, or the models are generators.
        """
        check_single(self.config.name, self.signature)
        (answer,) = [answer async for answer in self.stream(request)]
        return answer

    async def stream(
        self, request: PredictionRequest
    ) -> AsyncGenerator[Prediction, None]:
        """Answers one request with all results of the selected version.

        Args:
          request: the request; its id and client select the version.

        Yields:
          The results; close the iterator to stop the model early.

        Raises:
          ServeError: there was no result in time, or the model failed after its first.
        """
        request = request._replace(origin=checked_origin(request.origin))
        stable = self._stable
        limit = allowed(request.timeout, self.deadline)
        end = self._now() + limit
        if self.rollout.share > 0 and self._point(request) < self.rollout.share:
            self.meter.event("choices", self.config.name, self.config.candidate)
            tried = self._try(request._replace(timeout=limit / 2))
            try:
                async with aclosing(tried):
                    async for answer in tried:
                        self._keep(request, self.config.candidate, answer)
                        yield answer
                return
            except _Unanswered:
                pass
        self.meter.event("choices", self.config.name, self.config.stable)
        by = Provenance(request.origin.id, (self.config.stable,), stable.config.version)
        shadowed = self.rollout.shadowed
        kept: list[Prediction] = []
        left = max(end - self._now(), 1e-3)
        results = answers(stable, request._replace(timeout=left))
        async with aclosing(results):
            async for answer in results:
                if shadowed and len(kept) < _COMPARED:
                    kept.append(answer)
                self._keep(request, self.config.stable, answer)
                yield answer._replace(provenance=by)
        if shadowed:
            self._copy(request, kept)

    def _scores(self, answer: Prediction) -> Array:
        signature = self.signature
        scores = answer.outputs[self._output(signature)]
        return scores if signature.batched else scores[None]

    def _keep(self, request: PredictionRequest, model: str, answer: Prediction) -> None:
        """Keeps a request for its label."""
        if self._journal is not None:
            self._journal.put(
                *(request.origin.id, request.inputs, request.rows),
                model=model,
                scores=self._scores(answer),
                objects=self.signature.objects,
            )

    async def feedback(
        self, *, id: str = "", label: Any = None, **other: Any
    ) -> JoinedFeedback:
        """Judges the versions by the label of a request, and writes it for training.

        Args:
          id: id of the request.
          label: label of each row; positive unless 0.
          **other: nothing.

        Returns:
          The versions whose answers it is about.

        Raises:
          ServeError: 400 if the rollout takes no labels, or the feedback is invalid;
            404 if no such request waits, 410 if the label is late, 409 if it has one.
        """
        config = self.config
        with counted_feedback(self.meter, config.name):
            if self._journal is None:
                raise ServeError(
                    f"{config.name!r} takes no feedback: set its option 'max_auc_loss' "
                    "or 'feedback'",
                    400,
                )
            check_label_by_id(id, label, other)
            joined, scored = self._journal.join(id, label)
            if config.plan.max_auc_loss is not None:
                for name, pairs in scored.items():
                    for score, given in pairs:
                        self._windows[name].add(float(score), given)
                stable, candidate = (self._windows[m].auc() for m in config.models)
                self._move(self.rollout.judged(stable, candidate))
            return joined

    def _point(self, request: PredictionRequest) -> float:
        inputs, origin = request.inputs, request.origin
        if self.config.by == "client":
            key = origin.client.encode("utf-8", "surrogatepass")
        elif origin.chosen:
            key = origin.id.encode("utf-8", "surrogatepass")
        else:
            key = key_of(inputs[spec.name] for spec in self.signature.inputs)
        return point_of(self.config.name, key)

    async def _try(
        self, request: PredictionRequest
    ) -> AsyncGenerator[Prediction, None]:
        """Yields the candidate's results; raises `_Unanswered` if there are none."""
        begun, rollout = self._now(), self.rollout
        name, candidate = self.config.name, self.config.candidate
        first: float | None = None
        failed = False
        try:
            service = self._member(candidate)
            by = Provenance(request.origin.id, (candidate,), service.config.version)
            results = answers(service, request)
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

    def _copy(self, request: PredictionRequest, kept: list[Prediction]) -> None:
        if len(self._tasks) >= self.config.copies:
            self.meter.event("shadow", self.config.name, "dropped")
            return
        task = asyncio.get_running_loop().create_task(self._compare(request, kept))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _compare(
        self, request: PredictionRequest, kept: list[Prediction]
    ) -> None:
        copy = PredictionRequest(request.inputs, request.rows, _LOW_PRIORITY)
        theirs = self._try(copy)
        count, alike = 0, True
        try:
            async with aclosing(theirs):
                async for answer in theirs:
                    if self._journal is not None and not count:
                        self._journal.put_other(
                            request.origin.id,
                            self.config.candidate,
                            self._scores(answer),
                        )
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
