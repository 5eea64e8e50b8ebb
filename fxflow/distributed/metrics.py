"""Metrics of a process in Prometheus's text format, without a client library.

A `Registry` holds families of counters, gauges and histograms; `exposition` returns all
of them in version 0.0.4 of the format. There are no locks: the same thread must update
a registry and call `exposition`.

    registry = Registry("fxflow_serve")
    requests = registry.counter("requests", "Requests answered.", "model", "status")
    requests.labels("digits", 200).inc()

Looking up a series by its labels takes longer than counting, so hot paths keep series.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

#: Version 0.0.4 of the text format; every Prometheus reads it.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Measured:
    """The value of one series of a counter or a gauge.

    Attributes:
      value: the current value.
    """

    __slots__ = ("value",)

    value: float

    def __init__(self) -> None:
        self.value = 0.0

    def inc(self, amount: float = 1.0) -> None:
        """Adds to the value.

        Args:
          amount: what to add; not negative for a counter.
        """
        self.value += amount

    def set(self, value: float) -> None:
        """Replaces the value.

        Args:
          value: the new value.
        """
        self.value = value

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Yields suffixes of the name, further labels, and values."""
        yield "", "", self.value


class Observations:
    """One series of a histogram.

    Attributes:
      bounds: inclusive upper bounds of the buckets, without the infinite one.
      counts: the number of observations in each bucket, the infinite one last.
      sum: the sum of the observed values.
    """

    __slots__ = ("bounds", "counts", "sum")

    bounds: Sequence[float]
    counts: list[int]
    sum: float

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Counts a value.

        Args:
          value: the observed value.
          times: how often it was observed.
        """
        self.counts[bisect.bisect_left(self.bounds, value)] += times
        self.sum += value * times

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Yields suffixes of the name, further labels, and values."""
        bounds = [*map(_number, self.bounds), "+Inf"]
        totals = list(itertools.accumulate(self.counts))
        for bound, total in zip(bounds, totals, strict=True):
            yield "_bucket", f'le="{bound}"', total
        yield "_sum", "", self.sum
        yield "_count", "", totals[-1]


SeriesT = TypeVar("SeriesT", bound="Measured | Observations")


class Family(Generic[SeriesT]):
    """All series of one metric, made by a `Registry`.

    Attributes:
      name: the metric's name, with the namespace and, for a counter, ``_total``.
      kind: ``"counter"``, ``"gauge"`` or ``"histogram"``.
      help: one line that explains the metric.
      label_names: the names of the labels of each series.
      series: label values → series, in order of creation.
    """

    def __init__(
        self,
        name: str,
        kind: str,
        help: str,
        label_names: tuple[str, ...],
        make: Callable[[], SeriesT],
    ) -> None:
        self.name: str = name
        self.kind: str = kind
        self.help: str = help
        self.label_names: tuple[str, ...] = label_names
        self.series: dict[tuple[str, ...], SeriesT] = {}
        self._make: Callable[[], SeriesT] = make

    def labels(self, *values: object) -> SeriesT:
        """Returns the series with these labels, creating it if necessary.

        Args:
          *values: the labels' values, in the order of `label_names`.
        """
        key = tuple(map(str, values))
        found = self.series.get(key)
        if found is None:
            assert len(key) == len(self.label_names), (self.label_names, key)
            found = self.series[key] = self._make()
        return found

    def clear(self) -> None:
        """Drops all series."""
        self.series.clear()

    def lines(self) -> Iterator[str]:
        """Yields the family in the text format."""
        yield f"# HELP {self.name} {self.help}"
        yield f"# TYPE {self.name} {self.kind}"
        for values, series in self.series.items():
            own = [
                f'{name}="{_escaped(value)}"'
                for name, value in zip(self.label_names, values, strict=True)
            ]
            for suffix, more, value in series.samples():
                joined = ",".join([*own, more] if more else own)
                braced = f"{{{joined}}}" if joined else ""
                yield f"{self.name}{suffix}{braced} {_number(value)}"


class Registry:
    """The metrics of one server.

    Args:
      namespace: the prefix of every metric's name.

    Example:
      >>> registry = Registry("shop")
      >>> registry.counter("sales", "Things sold.", "what").labels("tea").inc(2)
      >>> waits = registry.histogram("wait_seconds", "Waits.", bounds=(1,))
      >>> waits.labels().observe(0.5)
      >>> print(registry.exposition(), end="")
      # HELP shop_sales_total Things sold.
      # TYPE shop_sales_total counter
      shop_sales_total{what="tea"} 2
      # HELP shop_wait_seconds Waits.
      # TYPE shop_wait_seconds histogram
      shop_wait_seconds_bucket{le="1"} 1
      shop_wait_seconds_bucket{le="+Inf"} 1
      shop_wait_seconds_sum 0.5
      shop_wait_seconds_count 1
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._families: list[Family[Any]] = []

    def counter(self, name: str, help: str, *labels: str) -> Family[Measured]:
        """Adds a counter.

        Args:
          name: the metric's name, without ``_total``.
          help: one line that explains the metric.
          *labels: names of the labels of each series.

        Returns:
          The family of its series.
        """
        return self._add(f"{name}_total", "counter", help, labels, Measured)

    def gauge(self, name: str, help: str, *labels: str) -> Family[Measured]:
        """Adds a gauge.

        Args:
          name: the metric's name.
          help: one line that explains the metric.
          *labels: names of the labels of each series.

        Returns:
          The family of its series.
        """
        return self._add(name, "gauge", help, labels, Measured)

    def histogram(
        self, name: str, help: str, *labels: str, bounds: Sequence[float]
    ) -> Family[Observations]:
        """Adds a histogram.

        Args:
          name: the metric's name.
          help: one line that explains the metric.
          *labels: names of the labels of each series.
          bounds: ascending upper bounds of the buckets, without the infinite one.

        Returns:
          The family of its series.
        """
        return self._add(name, "histogram", help, labels, lambda: Observations(bounds))

    def exposition(self) -> str:
        """Returns all metrics in the text format (`CONTENT_TYPE`)."""
        lines = itertools.chain.from_iterable(f.lines() for f in self._families)
        return "\n".join(lines) + "\n"

    def _add(
        self,
        name: str,
        kind: str,
        help: str,
        labels: tuple[str, ...],
        make: Callable[[], SeriesT],
    ) -> Family[SeriesT]:
        family = Family(f"{self._namespace}_{name}", kind, help, labels, make)
        self._families.append(family)
        return family


def _number(value: float) -> str:
    # Whole numbers have no exponent, however large; inf and nan as Prometheus has them.
    if value in (float("inf"), float("-inf")) or value != value:
        return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}[str(value)]
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
