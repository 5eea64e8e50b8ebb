"""Costs: about how long operations, transfers and collectives take on a device.

Everything that chooses places or shardings asks one object, `Costs`:

| question | method |
| --- | --- |
| seconds of each operation of a graph on a device | `Costs.node_seconds` |
| seconds of a graph as one program, its start included | `Costs.graph_seconds` |
| seconds to send `n` bytes from a place to another | `Costs.transfer_seconds` |
| seconds of a collective over an axis of a mesh | `Costs.collective_seconds` |
| bytes of memory of a device | `Costs.memory` |

The estimate is a roofline: an operation takes the longer of its flops by the rate of
its family and its bytes by the bandwidth. Chains of elementwise operations are fused by
XLA, so values that only pass between them are not counted as bytes.

**Calibration.** The rates of a kind of device come from, in this order: what the
caller gives; a run of `calibrate` on this machine, which is kept in the directory of
the compile cache, for this machine and version of jaxlib; the table of `rates`.
Measured times of fragments (`Costs.learn`) then correct the estimates of the operations
they consist of, and replace the estimates of the fragments themselves.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fxflow._config import config
from fxflow.core.ir.graph import Graph
from fxflow.dataflow.rates import (
    LINKS,
    Link,
    Rates,
    default_rates,
    family_link,
    kind_of,
)
from fxflow.dataflow.work import fingerprint, seconds_of, signature
from fxflow.devices import Device, cache, local_devices, memory_stats
from fxflow.devices.buffers import Placement
from fxflow.devices.memory import host_memory
from fxflow.errors import ArgumentError, BackendError

#: How many measured times of one fragment count in its mean.
_REMEMBERED = 8


@dataclass
class _Mean:
    """A running mean of measured seconds."""

    value: float = 0.0
    count: int = 0

    def add(self, seconds: float) -> None:
        self.count = min(self.count + 1, _REMEMBERED)
        self.value += (seconds - self.value) / self.count


@dataclass
class Costs:
    """A model of the time of operations and transfers, corrected by measurements.

    Args:
      rates: by kind of device ("cpu cpu", "gpu nvidia h200"), in place of what is known
        about it otherwise.
      links: in place of the table's: by pair of kinds in one process ("cpu cpu", "cpu
        other", "other other"), and "process" between processes.
      capacity: bytes of memory that a plan may use: of every device, or by device.
        None: as the runtime reports.

    Attributes:
      measured: mean seconds of fragments that were measured, by kind and fingerprint.

    Example:
      >>> from fxflow.dataflow import Costs
      >>> costs = Costs(capacity=2**30)
      >>> one, other = fxflow.local_devices()[:2]
      >>> costs.memory(one)
      1073741824
      >>> small, large = (costs.transfer_seconds(n, one, other) for n in (4, 4_000_000))
      >>> small < large
      True
    """

    rates: Mapping[str, Rates] = field(default_factory=dict)
    links: Mapping[str, Link] = field(default_factory=dict)
    capacity: int | Mapping[Device, int] | None = None
    measured: dict[tuple[str, int], _Mean] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        given = self.capacity
        ok = (
            given is None
            or isinstance(given, Mapping)
            or (isinstance(given, int) and not isinstance(given, bool) and given > 0)
        )
        if not ok:
            raise ArgumentError(
                "Costs: capacity is the bytes of memory of a device, or a mapping from "
                f"devices to bytes, got {given!r}"
            )
        for what, entries, kind in (
            ("rates", self.rates, Rates),
            ("links", self.links, Link),
        ):
            wrong = [name for name, x in entries.items() if not isinstance(x, kind)]
            if wrong:
                raise ArgumentError(
                    f"Costs: {what}[{wrong[0]!r}] is a {kind.__name__}, got "
                    f"{entries[wrong[0]]!r}"
                )
        if unknown := [name for name in self.links if name not in LINKS]:
            raise ArgumentError(
                f"Costs: there are no links {unknown[0]!r}; a name is one of "
                f"{', '.join(map(repr, LINKS))}"
            )
        self._known: dict[str, Rates] = dict(self.rates)
        self._links: dict[str, Link] = {**LINKS, **self.links}
        self._ratios: dict[tuple[str, tuple[Any, ...]], _Mean] = {}
        self._lock = threading.Lock()
        #: By how much estimates were off, by kind of device.
        self._deviations: dict[str, _Mean] = {}
        #: Incremented when something is measured.
        self.version: int = 0

    def __reduce__(self) -> Any:
        # What was measured holds for this process.
        return type(self), (dict(self.rates), dict(self.links), self.capacity)

    # -- devices -----------------------------------------------------------------------

    def of(self, device: Device) -> Rates:
        """Returns the rates of a device.

        Args:
          device: of any process, or of a topology.
        """
        kind = kind_of(device)
        found = self._known.get(kind)
        if found is None:
            rates, links = calibrated(device)
            found = self._known[kind] = rates or default_rates(device)
            for name, link in links.items():
                if name not in self.links:
                    self._links[name] = link
        return found

    def require_rates_of(self, devices: Iterable[Device]) -> None:
        """Checks that rates that were given are of some of the devices.

        Args:
          devices: of a plan.

        Raises:
          ArgumentError: they are of none.
        """
        kinds = dict.fromkeys(map(kind_of, devices))
        if self.rates and self.rates.keys().isdisjoint(kinds):
            told, have = (", ".join(map(repr, names)) for names in (self.rates, kinds))
            raise ArgumentError(
                f"Costs: rates are of {told}, and the devices are of the kinds {have}"
            )

    def error(self, device: Device) -> float:
        """Returns how far estimates for a device may be off, as a fraction.

        Once fragments are measured it is the mean deviation of their estimates.

        Args:
          device: of any process, or of a topology.
        """
        mean = self._deviations.get(kind_of(device))
        if mean is None:
            return self.of(device).error
        return min(max(mean.value, 0.02), 0.5)

    def memory(self, device: Device) -> int | None:
        """Returns the bytes of memory of a device that a plan may use, None: unknown.

        Args:
          device: of any process, or of a topology.
        """
        given = self.capacity
        if isinstance(given, Mapping):
            return given.get(device)
        if given is not None:
            return given
        if device.platform != "cpu":
            try:
                told = memory_stats(device).get("bytes_limit")
            except Exception:  # not of this process
                told = None
            return told or self.of(device).memory
        # The CPU devices of a process share the machine's memory.
        client = getattr(device, "client", None)
        shares = len(client.local_devices()) if client else 1
        return host_memory() // max(1, shares) or None

    # -- work --------------------------------------------------------------------------

    def node_seconds(self, graph: Graph, device: Device) -> list[float]:
        """Returns the seconds of each operation of a graph on a device.

        Args:
          graph: with its calls written out; the loops and branches inside count whole.
          device: that is otherwise idle.
        """
        rates = self.of(device)
        found = graph.remembered(
            ("seconds of nodes", rates), lambda: seconds_of(graph, rates)
        )
        if not self._ratios:
            return list(found)
        kind, ratios = kind_of(device), self._ratios
        corrected = []
        for node, seconds in zip(graph.nodes, found, strict=True):
            ratio = ratios.get((kind, signature(node)))
            if ratio is None:
                corrected.append(seconds)
            elif node.primitive.name == "python_callback":
                corrected.append(ratio.value)
            else:
                corrected.append(seconds * ratio.value)
        return corrected

    def graph_seconds(self, graph: Graph, place: Placement | Device) -> float:
        """Returns the seconds of a graph as one program: measured, or estimated.

        Args:
          graph: of a fragment.
          place: where it runs; over several devices the work is divided.
        """
        devices = list(getattr(place, "devices", None) or [place])
        if self.measured:
            mean = self.measured.get((kind_of(devices[0]), fingerprint(graph)))
            if mean is not None:
                return mean.value
        seconds = sum(self.node_seconds(graph, devices[0])) / len(devices)
        return self.of(devices[0]).start + seconds

    def fragment_seconds(self, fragment: Any) -> float:
        """Returns the seconds of a fragment where it runs; see `graph_seconds`.

        Args:
          fragment: of a plan.
        """
        return self.graph_seconds(fragment.graph, fragment.place)

    def learn(self, graph: Graph, place: Placement | Device, seconds: float) -> None:
        """Takes note of how long a fragment took.

        Its later estimates are the mean of what was measured; those of its operations
        in other fragments are scaled alike. A fragment with host callbacks gives the
        time above its estimate to them.

        Args:
          graph: of the fragment.
          place: where it ran.
          seconds: from its start to its results.
        """
        devices = list(getattr(place, "devices", None) or [place])
        device, kind = devices[0], kind_of(devices[0])
        rates = self.of(device)
        estimates = graph.remembered(
            ("seconds of nodes", rates), lambda: seconds_of(graph, rates)
        )
        expected = self.graph_seconds(graph, place)
        work = max(seconds - rates.start, 0.0) * len(devices)
        total = sum(estimates)
        calls = [n for n in graph.nodes if n.primitive.name == "python_callback"]
        with self._lock:
            deviation = min(abs(expected / seconds - 1), 1.0) if seconds > 0 else 0.0
            self._deviations.setdefault(kind, _Mean()).add(deviation)
            key = kind, fingerprint(graph)
            self.measured.setdefault(key, _Mean()).add(seconds)
            if calls:
                each = max(work - total, 0.0) / len(calls)
                for node in calls:
                    found = self._ratios.setdefault((kind, signature(node)), _Mean())
                    found.add(each)
            elif total > 0:
                # What the start of a program hides says little of its operations.
                ratio = max(work, 0.1 * total) / total
                for node in graph.nodes:
                    found = self._ratios.setdefault((kind, signature(node)), _Mean())
                    found.add(ratio)
            self.version += 1

    # -- links -------------------------------------------------------------------------

    def transfer_seconds(
        self, nbytes: float, source: Placement | Device, target: Placement | Device
    ) -> float:
        """Returns the seconds in which a value arrives at another place.

        Args:
          nbytes: of the value.
          source: where it is.
          target: where it is needed.
        """
        if source is target:
            return 0.0
        first, last = (getattr(p, "devices", None) or [p] for p in (source, target))
        self.of(first[0])  # what calibration knows about links
        return self._links[family_link(first[0], last[0])].seconds(nbytes)

    def sent(self, edges: Iterable[Any]) -> Callable[[Any, Any], float]:
        """Returns the seconds of sending between fragments, for `simulate`.

        Args:
          edges: of a plan.

        Returns:
          A function from a fragment, and one at another place that takes its results.
        """
        nbytes: dict[tuple[int, Any], int] = defaultdict(int)
        for edge in edges:
            if edge.source is not None:
                nbytes[edge.source, edge.place] += edge.nbytes
        return lambda source, work: self.transfer_seconds(
            nbytes[source.index, work.place], source.place, work.place
        )

    def collective_seconds(
        self, kind: str, nbytes: float, devices: Sequence[Device]
    ) -> float:
        """Returns the seconds of a collective over devices, by the ring algorithm.

        Args:
          kind: "all_reduce", "all_gather", "reduce_scatter", "all_to_all" or "permute".
          nbytes: of the larger of its operand and its result on one device.
          devices: along the axis.

        Raises:
          ArgumentError: there is no collective of that kind.
        """
        count = len(devices)
        if kind not in _COLLECTIVES:
            raise ArgumentError(
                "collective_seconds: a collective is one of "
                f"{', '.join(_COLLECTIVES)}, got {kind!r}"
            )
        if count < 2:
            return 0.0
        self.of(devices[0])
        pairs = zip(devices, [*devices[1:], devices[0]], strict=True)
        links = [self._links[family_link(a, b)] for a, b in pairs]
        latency = max(link.latency for link in links)
        bandwidth = min(link.bandwidth for link in links)
        share = (count - 1) / count
        steps, volume = {
            "all_reduce": (2 * (count - 1), 2 * share),
            "all_gather": (count - 1, share),
            "reduce_scatter": (count - 1, share),
            "all_to_all": (count - 1, share / 2),
            "permute": (1, 1.0),
        }[kind]
        return steps * latency + volume * nbytes / bandwidth


_COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "permute")


# -- what calibration keeps ------------------------------------------------------------


def _key(device: Device) -> bytes:
    return cache.key("calibration of dataflow costs 1", b"", device)


def calibrated(device: Device) -> tuple[Rates | None, dict[str, Link]]:
    """Returns what `calibrate` kept about a device, or None and no links.

    Args:
      device: of any process, or of a topology.
    """
    if not config.cache:
        return None, {}
    try:
        device = _like_here(device)
        payload = cache.load(_key(device))
        kept = json.loads(payload) if payload else None
        if kept is None:
            return None, {}
        rates = replace(default_rates(device), **kept["rates"])
        links = {name: Link(**link) for name, link in kept["links"].items()}
    except (KeyError, TypeError, ValueError, BackendError):
        return None, {}
    return rates, links


def _like_here(device: Device) -> Device:
    """Returns a device of this process, of a task's kind if it is of a task."""
    if getattr(device, "client", None) is not None:
        return device
    kind = kind_of(device)
    for found in local_devices(backend=device.platform):
        if kind_of(found) == kind:
            return found
    raise BackendError(f"this process has no device of the kind {kind!r}")


def keep(device: Device, rates: Rates, links: Mapping[str, Link]) -> None:
    """Keeps the rates of a kind of device on disk, beside compiled programs.

    Args:
      device: one of the kind.
      rates: that were measured.
      links: that were measured.
    """
    if not config.cache:
        return
    names = ("flops", "bandwidth", "start", "operation", "round", "at_once", "error")
    held = {name: getattr(rates, name) for name in names}
    kept = {"rates": held, "links": {name: asdict(k) for name, k in links.items()}}
    cache.store(_key(device), json.dumps(kept).encode())
