"""The server's metrics, for Prometheus, the status page and Triton clients."""

from __future__ import annotations

import collections
import functools
import time
from dataclasses import dataclass, field
from typing import Any

from fxflow.distributed.metrics import CONTENT_TYPE, Registry
from fxflow.serve.repository import Repository
from fxflow.serve.service import MetricsSink

#: Histogram bounds in seconds, around typical latency objectives.
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
AGES = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 600, 3600, 86400)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
#: Statistic of a service → help text.
_GAUGES = {
    "queue_rows": "Rows in the queue.",
    "batch_limit": "Row limit of the next batch.",
    "replicas_ready": "Processes that are ready.",
    "starts": "Process starts.",
    "streams": "Open streams of results.",
    "cache_hits": "Requests answered from the cache.",
    "cache_misses": "Requests not found in the cache.",
    "cache_bytes": "Bytes of the cached predictions.",
}
#: Event in a group of models → help text and second label.
_EVENTS = {
    "choices": ("Answers that include a model's prediction.", "model"),
    "failures": ("Requests that a model of the group failed.", "model"),
    "stragglers": ("Predictions too late to be combined.", "model"),
    "feedback": ("Feedback by result.", "result"),
    "judged": ("Predictions of a model that received feedback.", "model"),
    "losses": ("Sum of the losses from feedback.", "model"),
    "shadow": ("Shadow requests by result of the comparison.", "result"),
    "rollbacks": ("Rollbacks of the candidate.", "model"),
}
#: Statistic of a group → help text and second label.
_GROUP_GAUGES = {
    "weight": ("Weight of a model in the default context.", "model"),
    "contexts": ("Contexts and predictions in memory.", "what"),
    "store": ("Whether the store is up, and its failures.", "what"),
    "share": ("Share of the requests that the candidate answers.", "model"),
    "rolled_back": ("Whether the candidate was rolled back.", "model"),
    "auc": ("Area under the ROC curve over the last labels.", "model"),
    "labels": ("Labels that the area is computed from.", "model"),
}


@dataclass
class Tally:
    """Totals of one model.

    Attributes:
      successes, success_seconds: requests answered, and their total time.
      failures, failure_seconds: requests that failed, and their total time.
      last: Unix time at which the last request finished; 0: no request yet.
      requests, queued, computed: requests in batches, and their total seconds in the
        queue and in batches.
      rows: rows of all batches.
      batches: rows of a batch → number of such batches, and their total time.
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
        """Counts a request.

        Args:
          status: HTTP status.
          seconds: time that the request took.
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
          rows: number of rows.
          seconds: time that the batch took.
          requests: number of requests.
          queued: total seconds that the requests waited in the queue.
        """
        self.requests += requests
        self.queued += queued
        self.computed += requests * seconds
        self.rows += rows
        count, before = self.batches.get(rows, (0, 0.0))
        self.batches[rows] = count + 1, before + seconds


class Metrics(MetricsSink):
    """Counts requests and batches by model."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = collections.defaultdict(Tally)
        self._registry = registry = Registry("fxflow_serve")
        self._requests = registry.counter(
            "requests", "Requests by model and status.", "model", "status"
        )
        self._results = registry.counter("results", "Results of streams.", "model")
        self._seconds, self._batch_seconds, self._first, self._next = (
            registry.histogram(name, help, "model", bounds=SECONDS)
            for name, help in (
                ("request_seconds", "Seconds to answer a request."),
                ("batch_seconds", "Seconds to run a batch."),
                ("first_result_seconds", "Seconds until a stream's first result."),
                ("next_result_seconds", "Seconds between results of a stream."),
            )
        )
        self._rows = registry.histogram(
            "batch_rows", "Rows of batches.", "model", bounds=ROWS
        )
        self._ages = registry.histogram(
            "table_age_seconds",
            "Seconds since the rows of a batch were read from where they change.",
            "model",
            bounds=AGES,
        )
        # Looking up labels takes longer than counting.
        self._of_batches = functools.cache(
            lambda model: (self._rows.labels(model), self._batch_seconds.labels(model))
        )
        self._of_requests = functools.cache(
            lambda model, status: (
                self._requests.labels(model, status),
                self._seconds.labels(model),
            )
        )
        self._gauges = {
            name: registry.gauge(name, help, "model") for name, help in _GAUGES.items()
        }
        self._events, self._group_gauges = (
            {
                name: make(f"group_{name}", help, "group", label)
                for name, (help, label) in table.items()
            }
            for make, table in (
                (registry.counter, _EVENTS),
                (registry.gauge, _GROUP_GAUGES),
            )
        )

    def tally(self, model: str) -> Tally:
        """Returns the totals of a model.

        Args:
          model: name of a model or a group of models.
        """
        return self._tallies.get(model) or Tally()

    def batch(
        self, model: str, rows: int, seconds: float, requests: int, queued: float
    ) -> None:
        """Counts a batch; `queued` is the total wait of its requests."""
        of_rows, of_seconds = self._of_batches(model)
        of_rows.observe(rows)
        of_seconds.observe(seconds)
        self._tallies[model].batch(rows, seconds, requests, queued)

    def age(self, model: str, seconds: float) -> None:
        """Counts a batch with tables; `seconds` is the age of its rows."""
        self._ages.labels(model).observe(seconds)

    def request(self, model: str, status: int, seconds: float) -> None:
        """Counts a request."""
        count, of_seconds = self._of_requests(model, status)
        count.inc()
        of_seconds.observe(seconds)
        self._tallies[model].request(status, seconds)

    def result(self, model: str, number: int, seconds: float) -> None:
        """Counts a result of a stream; `seconds` is the time since the previous one."""
        self._results.labels(model).inc()
        (self._next if number else self._first).labels(model).observe(seconds)
        if not number:
            self._tallies[model].batch(1, seconds, 1, 0.0)

    def event(self, kind: str, group: str, what: str, amount: float = 1.0) -> None:
        """Counts an event in a group of models."""
        self._events[kind].labels(group, what).inc(amount)

    def histograms(self) -> dict[str, dict[str, Any]]:
        """Returns the counts by model.

        Returns:
          For each model ``statuses`` (status → requests) and the histograms
          ``seconds``, ``batch_seconds`` and ``rows``: lists of pairs of upper bound and
          count. The last bound, infinity, is None.
        """
        found: dict[str, dict[str, Any]] = {}
        for (model, status), count in self._requests.series.items():
            of = found.setdefault(model, {"statuses": {}})
            of["statuses"][status] = int(count.value)
        for name, family in (
            ("seconds", self._seconds),
            ("batch_seconds", self._batch_seconds),
            ("rows", self._rows),
        ):
            for (model,), series in family.series.items():
                of = found.setdefault(model, {"statuses": {}})
                bounds = (*series.bounds, None)
                of[name] = [list(b) for b in zip(bounds, series.counts, strict=True)]
        return found

    def exposition(self, repository: Repository) -> tuple[bytes, str]:
        """Returns all metrics in Prometheus's text format.

        Args:
          repository: the models whose current statistics are included.

        Returns:
          The text and its content type.
        """
        for gauge in (*self._gauges.values(), *self._group_gauges.values()):
            gauge.clear()
        for service in repository:
            for name, value in service.stats().items():
                self._gauges[name].labels(service.config.name).set(value)
        for group_name, group in repository.groups.items():
            for (name, label), value in group.stats().items():
                self._group_gauges[name].labels(group_name, label).set(value)
        return self._registry.exposition().encode(), CONTENT_TYPE
