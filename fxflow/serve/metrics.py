"""What a server counts, as Prometheus reads it."""

from __future__ import annotations

import collections
import functools
import time
from dataclasses import dataclass, field
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.repository import Repository
from fxflow.serve.service import Meter

#: Seconds, around the objectives that people promise.
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
#: Figures of a service → what they are.
_GAUGES = {
    "queue_rows": "Rows that wait.",
    "batch_limit": "The most rows of the next batch.",
    "replicas_ready": "Processes that can be called.",
    "starts": "Processes that were started.",
    "streams": "Streams of results that are open.",
    "cache_hits": "Answers that were known.",
    "cache_misses": "Requests whose answer was not known.",
    "cache_bytes": "Bytes of the answers that are kept.",
}
#: Events of a group of models → what they are, and what their second label is.
_EVENTS = {
    "choices": ("Answers that a model took part in.", "model"),
    "failures": ("Requests to which a model of a group had no answer.", "model"),
    "stragglers": ("Answers that came too late for the group's.", "model"),
    "feedback": ("Feedback, by what became of it.", "result"),
    "judged": ("Answers of a model that feedback was for.", "model"),
    "losses": ("The sum of their losses.", "model"),
    "shadow": ("Copies, by how the candidate's answer was.", "result"),
    "rollbacks": ("Candidates that were rolled back.", "model"),
}
#: Figures of a group → what they are, and what their second label is.
_GROUP_GAUGES = {
    "weight": ("How much a model counts, in the context without a name.", "model"),
    "contexts": ("Contexts and predictions that are remembered.", "what"),
    "store": ("Whether states are shared, and what went wrong.", "what"),
    "share": ("Of the requests, that the candidate answers.", "model"),
    "rolled_back": ("Whether the candidate was rolled back.", "model"),
}


@dataclass
class Tally:
    """The sums of what was counted of one model.

    Attributes:
      successes, success_seconds: requests that were answered, and their time.
      failures, failure_seconds: those that were not.
      last: when the last one was answered, in seconds since 1970; 0: none was.
      requests, queued, computed: of batches, and their time before and within these.
      rows: of all batches.
      batches: rows of a batch → how many there were, and their time.
    """

    successes: int = 0
    success_seconds: float = 0.0
    failures: int = 0
    failure_seconds: float = 0.0
    last: float = 0.0
    requests: int = 0
    queued: float = 0.0
    computed: float = 0.0
    rows: int = 0
    batches: dict[int, tuple[int, float]] = field(default_factory=dict)

    def request(self, status: int, seconds: float) -> None:
        """Counts a request that was answered.

        Args:
          status: of HTTP.
          seconds: that it took.
        """
        self.last = time.time()
        if status < 400:
            self.successes += 1
            self.success_seconds += seconds
        else:
            self.failures += 1
            self.failure_seconds += seconds

    def batch(self, rows: int, seconds: float, requests: int, queued: float) -> None:
        """Counts a batch.

        Args:
          rows: that it has.
          seconds: that it took.
          requests: that it is made of.
          queued: seconds that these had waited, together.
        """
        self.requests += requests
        self.queued += queued
        self.computed += requests * seconds
        self.rows += rows
        count, before = self.batches.get(rows, (0, 0.0))
        self.batches[rows] = count + 1, before + seconds


class Metrics(Meter):
    """Counts requests and batches by model.

    Raises:
      ServeError: prometheus-client is not installed.
    """

    def __init__(self) -> None:
        try:
            import prometheus_client
        except ImportError:
            raise ServeError(
                "metrics need prometheus-client: pip install 'fxflow[serve]'"
            ) from None
        self._client: Any = prometheus_client
        self._tallies: dict[str, Tally] = collections.defaultdict(Tally)
        self._registry = prometheus_client.CollectorRegistry()
        common = {"registry": self._registry, "namespace": "fxflow_serve"}
        self._requests = prometheus_client.Counter(
            "requests", "Requests that were answered.", ["model", "status"], **common
        )
        self._seconds = prometheus_client.Histogram(
            "request_seconds",
            "Seconds until requests were answered.",
            ["model"],
            buckets=SECONDS,
            **common,
        )
        self._batch_seconds = prometheus_client.Histogram(
            "batch_seconds",
            "Seconds that batches took.",
            ["model"],
            buckets=SECONDS,
            **common,
        )
        self._rows = prometheus_client.Histogram(
            "batch_rows", "Rows of batches.", ["model"], buckets=ROWS, **common
        )
        self._results = prometheus_client.Counter(
            "results", "Results of streams.", ["model"], **common
        )
        self._first, self._next = (
            prometheus_client.Histogram(
                name, words, ["model"], buckets=SECONDS, **common
            )
            for name, words in (
                ("first_result_seconds", "Seconds until a stream's first result."),
                ("next_result_seconds", "Seconds between results of a stream."),
            )
        )
        # Looking up labels takes longer than counting.
        self._of_batches = functools.cache(
            lambda model: (self._rows.labels(model), self._batch_seconds.labels(model))
        )
        self._of_requests = functools.cache(
            lambda model, status: (
                self._requests.labels(model, str(status)),
                self._seconds.labels(model),
            )
        )
        self._gauges = {
            name: prometheus_client.Gauge(name, words, ["model"], **common)
            for name, words in _GAUGES.items()
        }
        self._events, self._group_gauges = (
            {
                name: kind(f"group_{name}", words, ["group", label], **common)
                for name, (words, label) in table.items()
            }
            for kind, table in (
                (prometheus_client.Counter, _EVENTS),
                (prometheus_client.Gauge, _GROUP_GAUGES),
            )
        )

    def tally(self, model: str) -> Tally:
        """Returns the sums of what was counted of a model.

        Args:
          model: its name, or that of a group of models.
        """
        return self._tallies.get(model) or Tally()

    def batch(
        self, model: str, rows: int, seconds: float, requests: int, queued: float
    ) -> None:
        """A batch of requests was run, which together had waited so long for it."""
        of_rows, of_seconds = self._of_batches(model)
        of_rows.observe(rows)
        of_seconds.observe(seconds)
        self._tallies[model].batch(rows, seconds, requests, queued)

    def request(self, model: str, status: int, seconds: float) -> None:
        """A request was answered."""
        count, of_seconds = self._of_requests(model, status)
        count.inc()
        of_seconds.observe(seconds)
        self._tallies[model].request(status, seconds)

    def result(self, model: str, number: int, seconds: float) -> None:
        """A stream has one more result, so long after the one or the request before."""
        self._results.labels(model).inc()
        (self._next if number else self._first).labels(model).observe(seconds)
        if not number:
            self._tallies[model].batch(1, seconds, 1, 0.0)

    def event(self, kind: str, group: str, what: str, amount: float = 1.0) -> None:
        """Something happened in a group of models."""
        self._events[kind].labels(group, what).inc(amount)

    def histograms(self) -> dict[str, dict[str, Any]]:
        """Returns what was counted, by model.

        Returns:
          Of each model ``statuses`` (status → requests), and the histograms
          ``seconds``, ``batch_seconds`` and ``rows``, each as a list of upper bounds
          and counts between them; the last bound is infinite and therefore None.
        """
        found: dict[str, dict[str, Any]] = {}
        for metric in self._requests.collect():
            for sample in metric.samples:
                if sample.name.endswith("_total"):
                    of = found.setdefault(sample.labels["model"], {"statuses": {}})
                    of["statuses"][sample.labels["status"]] = int(sample.value)
        for name, histogram in (
            ("seconds", self._seconds),
            ("batch_seconds", self._batch_seconds),
            ("rows", self._rows),
        ):
            for metric in histogram.collect():
                for sample in metric.samples:
                    if not sample.name.endswith("_bucket"):
                        continue
                    of = found.setdefault(sample.labels["model"], {"statuses": {}})
                    bound = float(sample.labels["le"])
                    buckets = of.setdefault(name, [])
                    before = sum(count for _, count in buckets)
                    buckets.append(
                        [
                            None if bound == float("inf") else bound,
                            int(sample.value) - before,
                        ]
                    )
        return found

    def exposition(self, repository: Repository) -> tuple[bytes, str]:
        """Returns all numbers in Prometheus's text format.

        Args:
          repository: the models, whose queues are looked at now.

        Returns:
          The text and its content type.
        """
        for gauge in (*self._gauges.values(), *self._group_gauges.values()):
            gauge.clear()
        for service in repository:
            for name, value in service.figures().items():
                self._gauges[name].labels(service.config.name).set(value)
        for group_name, group in repository.groups.items():
            for (name, label), value in group.figures().items():
                self._group_gauges[name].labels(group_name, label).set(value)
        text: bytes = self._client.generate_latest(self._registry)
        return text, self._client.CONTENT_TYPE_LATEST
