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
the compile cache, for this machine and version of jaxlib; the table of this module.
Measured times of fragments (`Costs.learn`) then correct the estimates of the operations
they consist of, and replace the estimates of the fragments themselves.
"""

from __future__ import annotations

import functools
import json
import math
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from fxflow._config import config
from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.devices import Device, cache, local_devices, memory_stats
from fxflow.devices.buffers import Placement
from fxflow.devices.memory import host_memory
from fxflow.errors import ArgumentError, BackendError
from fxflow.lax.families import Accurate, Exponential

#: How far an estimate may be off if no other figure is given: a placement is changed
#: only for a gain above it.
ERROR = 0.2
#: How many measured times of one fragment count in its mean.
_REMEMBERED = 8


@dataclass(frozen=True, eq=False)
class Rates:
    """What a kind of device does in a second.

    Attributes:
      flops: a second by family; a family that is missing counts as elementwise. "dot16"
        and "dot64" are products of 16-bit and 64-bit numbers.
      bandwidth: bytes of its memory a second; by family where a family differs.
      start: seconds to start a program.
      operation: seconds that an operation takes at least, unless it is fused.
      round: seconds of a round of a loop besides its operations.
      at_once: how many devices' worth of work the process does at once. The CPU devices
        of a process share its cores; other devices do not slow each other down.
      memory: bytes, or None if the runtime tells.
      error: how far an estimate may be off, as a fraction.
    """

    flops: Mapping[str, float]
    bandwidth: Mapping[str, float]
    start: float = 1e-5
    operation: float = 1e-6
    round: float = 1e-6
    at_once: float = math.inf
    memory: int | None = None
    error: float = ERROR

    def __post_init__(self) -> None:
        for name, rates in (("flops", self.flops), ("bandwidth", self.bandwidth)):
            if "elementwise" not in rates or not all(r > 0 for r in rates.values()):
                raise ArgumentError(
                    f"Rates: {name} maps families to positive numbers, 'elementwise' "
                    f"at the least, got {dict(rates)!r}"
                )

    def seconds(self, family: str, flops: float, nbytes: float) -> float:
        """Returns the seconds of some work, without the least that an operation takes.

        Args:
          family: of the operation, see `family_of`.
          flops: estimated from types.
          nbytes: read and written.
        """
        rate = self.flops.get(family)
        if rate is None and family.startswith("dot"):
            rate = self.flops.get("dot")
        rate = rate or self.flops["elementwise"]
        bandwidth = self.bandwidth.get(family) or self.bandwidth["elementwise"]
        return max(flops / rate, nbytes / bandwidth)

    def slowdown(self, busy: int) -> float:
        """Returns how many times longer work takes while `busy` devices work.

        Args:
          busy: number of devices of this kind in one process that work at a time.
        """
        return max(1.0, busy / self.at_once)


@dataclass(frozen=True)
class Link:
    """What sending from a device to another takes.

    Attributes:
      latency: seconds of a value of a few bytes.
      bandwidth: bytes a second.
    """

    latency: float
    bandwidth: float

    def seconds(self, nbytes: float) -> float:
        """Returns the seconds in which a value arrives.

        Args:
          nbytes: of the value.
        """
        return self.latency + nbytes / self.bandwidth


# -- what is known without measuring ---------------------------------------------------


def _accelerator(half: float, single: float, bandwidth: float, memory: float) -> Rates:
    """Returns the rates of an accelerator.

    Args:
      half: 10¹² flops a second of 16-bit products.
      single: of 32-bit products.
      bandwidth: 10⁹ bytes a second.
      memory: 10⁹ bytes.
    """
    vector = bandwidth * 1e9 / 2
    flops = {
        "dot": single * 1e12 * 0.6,
        "dot16": half * 1e12 * 0.6,
        "dot64": single * 1e12 * 0.1,
        "conv": single * 1e12 * 0.4,
        "elementwise": vector,
        "transcendental": vector / 2,
        "sort": vector / 20,
        "linalg": single * 1e12 * 0.02,
        "fft": vector,
        "random": vector,
    }
    memory_rates = {"elementwise": bandwidth * 0.8e9, "scatter": bandwidth * 0.2e9}
    return Rates(flops, memory_rates, 1e-5, 4e-6, 1e-5, memory=int(memory * 1e9))


#: By a part of `Device.device_kind`; figures of the makers' data sheets (products of
#: 32 bits as TF32 where there is one).
_TABLE = {
    "b200": _accelerator(2250, 1100, 7700, 180),
    "h200": _accelerator(989, 495, 4800, 141),
    "h100": _accelerator(989, 495, 3350, 80),
    "a100": _accelerator(312, 156, 2000, 80),
    "v100": _accelerator(125, 16, 900, 32),
    "l40": _accelerator(181, 90, 864, 48),
    "l4": _accelerator(121, 60, 300, 24),
    "t4": _accelerator(65, 8, 320, 16),
    "tpu v6": _accelerator(918, 459, 1640, 32),
    "tpu v5p": _accelerator(459, 230, 2765, 95),
    "tpu v5": _accelerator(197, 98, 819, 16),
    "tpu v4": _accelerator(275, 137, 1200, 32),
}
_OTHER = _accelerator(100, 50, 1000, 16)

# Fractions of the time of one core of a server of about 2023, AVX2.
_CORE = {
    "dot": 4e10,
    "dot16": 1e10,
    "dot64": 2e10,
    "conv": 2e10,
    "elementwise": 4e9,
    "transcendental": 4e8,
    "reduce": 2e9,
    "sort": 1e8,
    "fft": 2e9,
    "linalg": 3e9,
    "random": 2e8,
}


def _cpu() -> Rates:
    cores = os.cpu_count() or 1
    flops = {name: rate * cores for name, rate in _CORE.items()}
    # These are not divided over cores.
    flops |= {name: _CORE[name] for name in ("sort", "fft", "linalg", "random")}
    bandwidth = {"elementwise": 1e10, "gather": 3e9, "scatter": 5e8}
    return Rates(flops, bandwidth, 1e-5, 1e-6, 1e-6, at_once=1.0)


#: Between devices of one process, of one machine, and of two machines.
_LINKS = {
    "cpu cpu": Link(2e-5, 5e9),
    "cpu other": Link(2e-5, 2e10),
    "other other": Link(1e-5, 1e11),
    "process": Link(6e-5, 2e9),
}


# -- families --------------------------------------------------------------------------

#: By the module of the operation's class, or by the package around it.
_FAMILIES = {
    "dot": "dot",
    "scaled_products": "dot",
    "ragged_products": "dot",
    "convolution": "conv",
    "reduction": "reduce",
    "arg_extremum": "reduce",
    "custom_reduction": "reduce",
    "cumulative": "reduce",
    "window": "reduce",
    "window_selection": "reduce",
    "sort": "sort",
    "approximate": "sort",
    "fourier": "fft",
    "linalg": "linalg",
    "linear_solve": "linalg",
    "gather": "gather",
    "dynamic_slicing": "gather",
    "gather_scatter": "scatter",
    "threefry": "random",
    "random_bits": "random",
    "rbg": "random",
    "rng_bit_generator": "random",
    "callbacks": "callback",
    "collectives": "collective",
    "collective_reductions": "collective",
    "collective_movement": "collective",
    "special": "transcendental",
    "gammas": "transcendental",
    "bessel": "transcendental",
    "incomplete_gamma": "transcendental",
    "incomplete_beta": "transcendental",
    "trigonometric": "transcendental",
    "powers": "elementwise",
}
#: Families that XLA fuses with what comes before and after.
FUSED = frozenset({"elementwise", "transcendental", "random"})


@functools.cache
def family_of(primitive: Any) -> str:
    """Returns the family of an operation, by which rates are known.

    Args:
      primitive: of a node.

    Returns:
      "dot", "conv", "elementwise", "transcendental", "reduce", "gather", "scatter",
      "sort", "fft", "linalg", "random", "callback" or "collective".
    """
    cls = primitive if isinstance(primitive, type) else type(primitive)
    modules = cls.__module__.split(".")
    for module in reversed(modules):
        if module in _FAMILIES:
            return _FAMILIES[module]
    return (
        "transcendental" if issubclass(cls, Accurate | Exponential) else "elementwise"
    )


class _Work:
    """Flops and bytes of nodes; types that were met before are looked up."""

    def __init__(self) -> None:
        self._nbytes: dict[Any, int] = {}
        self._products: dict[Any, tuple[str, float]] = {}

    def nbytes(self, atoms: Iterable[Any]) -> int:
        """Returns the bytes of values."""
        known, total = self._nbytes, 0
        for atom in atoms:
            aval = atom.aval
            found = known.get(aval)
            if found is None:
                found = known[aval] = int(aval.nbytes)
            total += found
        return total

    def fused(self, node: Node) -> float:
        """Returns the flops of an operation that XLA fuses: its elements."""
        aval = node.outputs[0].aval
        return self.nbytes(node.outputs) / max(1, int(aval.dtype.itemsize))

    def of(self, node: Node, family: str) -> tuple[str, float, float]:
        """Returns the family with the width of its numbers, flops and bytes."""
        if family == "gather":
            given = self.nbytes(node.outputs)
            return family, given / 4, 2.0 * given
        if family == "scatter":
            updates = self.nbytes(node.inputs[-1:])
            return family, updates / 4, 3.0 * updates
        moved = float(self.nbytes(node.inputs) + self.nbytes(node.outputs))
        if family == "callback":
            return family, 0.0, moved
        avals = [a.aval for a in node.inputs]
        if family == "dot":
            axes = node.params.get("dimension_numbers")
            key = (node.primitive, axes, *avals)
            product = self._products.get(key)
            if product is None:
                flops = _flops(node, avals)
                product = self._products[key] = _width(avals[0].dtype.itemsize), flops
            return (*product, moved)
        flops = _flops(node, avals)
        if family == "sort":
            longest = max(max(a.shape, default=1) for a in avals)
            flops *= math.log2(max(2, longest))
        return family, flops, moved


def work_of(node: Node) -> tuple[str, float, float]:
    """Returns the family of a node with the width of its numbers, flops and bytes.

    Args:
      node: of any graph; it holds no graphs itself.
    """
    family, work = family_of(node.primitive), _Work()
    if family in FUSED:
        return family, work.fused(node), 0.0
    return work.of(node, family)


def _flops(node: Node, avals: Sequence[Any]) -> float:
    try:
        return float(node.primitive.cost(*avals, **node.params)["flops"])
    except Exception:  # a primitive of a user's need not have one
        return float(sum(v.aval.size for v in node.outputs))


def _width(itemsize: int) -> str:
    return "dot" if itemsize == 4 else "dot16" if itemsize < 4 else "dot64"


# -- graphs ----------------------------------------------------------------------------


def _seconds(graph: Graph, rates: Rates) -> list[float]:
    """Returns the seconds of each node of a graph, by types."""
    work = _Work()
    inside: set[Any] = set()  # what operations that are fused make
    outside: set[Any] = {a for a in graph.outputs if type(a) is Var}
    kinds: list[tuple[str, list[Graph]]] = []
    for node in graph.nodes:
        family = family_of(node.primitive)
        graphs = [g for _, g in subgraphs(node.params)]
        if family in FUSED and not graphs:
            inside.update(node.outputs)
        else:
            outside.update(a for a in node.inputs if type(a) is Var)
        kinds.append((family, graphs))
    found = []
    for node, (family, graphs) in zip(graph.nodes, kinds, strict=True):
        if graphs:
            found.append(_holder_seconds(node, graphs, rates))
            continue
        least = rates.operation
        if family in FUSED:
            read = [a for a in node.inputs if type(a) is Var and a not in inside]
            written = [v for v in node.outputs if v in outside]
            moved = work.nbytes(read) + work.nbytes(written)
            flops, nbytes = work.fused(node), float(moved)
            least = least if written else 0.0
        else:
            family, flops, nbytes = work.of(node, family)
        found.append(max(least, rates.seconds(family, flops, nbytes)))
    return found


def _holder_seconds(node: Node, graphs: Sequence[Graph], rates: Rates) -> float:
    """Returns the seconds of an operation that holds graphs: a loop, branch or call."""
    each = [_total(graph, rates) for graph in graphs]
    name = node.primitive.name
    if name == "scan":
        return float(node.params["length"]) * (sum(each) + rates.round)
    if name == "cond":
        return max(each) + rates.operation
    if name.startswith("while"):
        return sum(each) + rates.round
    return sum(each) + rates.operation


def _total(graph: Graph, rates: Rates) -> float:
    return graph.remembered(
        ("seconds", rates), lambda: float(sum(_seconds(graph, rates)))
    )


def signature(node: Node) -> tuple[Any, ...]:
    """Returns what nodes of equal work on one device have in common.

    Args:
      node: of any graph.
    """
    function = node.params.get("function")  # of a host callback
    return (
        node.primitive.name,
        id(getattr(function, "__wrapped__", function)),
        *(str(a.aval) for a in node.inputs),
        None,
        *(str(v.aval) for v in node.outputs),
        *(fingerprint(g) for _, g in subgraphs(node.params)),
    )


def fingerprint(graph: Graph) -> int:
    """Returns a number that equal graphs share, whatever their variables are called.

    Args:
      graph: of a fragment.
    """

    def find() -> int:
        numbers: dict[Any, int] = {v: i for i, v in enumerate(graph.inputs)}
        text = []
        for node in graph.nodes:
            uses = [numbers.get(a, -1) for a in node.inputs if type(a) is Var]
            for var in node.outputs:
                numbers[var] = len(numbers)
            text.append((signature(node), *uses))
        results = [numbers.get(a, -1) for a in graph.outputs if type(a) is Var]
        return hash((*text, *results))

    return graph.remembered("fingerprint", find)


def kind_of(device: Device) -> str:
    """Returns the kind of a device: those of one kind have one set of rates."""
    kind = getattr(device, "device_kind", device.platform)  # a task's has none
    return f"{device.platform} {kind}".lower()


def process_of(device: Any) -> Any:
    """Returns what devices of one process have in common.

    Args:
      device: of any process, or of a task.
    """
    number = getattr(device, "number", None)
    return device.process_index if number is None else (id(device.cluster), number)


def _family_link(source: Device, target: Device) -> str:
    if process_of(source) != process_of(target):
        return "process"
    cpus = (source.platform == "cpu") + (target.platform == "cpu")
    return ("other other", "cpu other", "cpu cpu")[cpus]


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
    """A model of what operations and transfers take, corrected by what is measured.

    Args:
      rates: by kind of device ("cpu cpu", "gpu nvidia h200"), in place of what is known
        about it otherwise.
      links: in place of the table's: by pair of kinds in one process ("cpu cpu", "cpu
        other", "other other"), and "process" between processes.
      capacity: bytes of memory that a plan may use: of every device, or by device.
        None: what the runtime says.

    Attributes:
      measured: mean seconds of fragments that were measured, by kind and fingerprint.

    Example:
      >>> from fxflow.dataflow import Costs
      >>> costs = Costs(capacity=2**30)
      >>> cpu = fxflow.local_devices()[0]
      >>> costs.memory(cpu)
      1073741824
      >>> small, large = (costs.transfer_seconds(n, cpu, cpu) for n in (4, 4_000_000))
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
        self._known: dict[str, Rates] = dict(self.rates)
        self._links: dict[str, Link] = {**_LINKS, **self.links}
        self._ratios: dict[tuple[str, tuple[Any, ...]], _Mean] = {}
        self._lock = threading.Lock()
        #: By how much estimates were off, by kind of device.
        self._deviations: dict[str, _Mean] = {}
        #: Incremented when something is measured.
        self.version = 0

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
            ("seconds of nodes", rates), lambda: _seconds(graph, rates)
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
            ("seconds of nodes", rates), lambda: _seconds(graph, rates)
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
        return self._links[_family_link(first[0], last[0])].seconds(nbytes)

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
        links = [self._links[_family_link(a, b)] for a, b in pairs]
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


def default_rates(device: Device) -> Rates:
    """Returns the rates of a kind of device by the table, whether one is there or not.

    Args:
      device: of any process, or of a topology.
    """
    kind = kind_of(device)
    if device.platform == "cpu":
        return _cpu()
    return next((rates for name, rates in _TABLE.items() if name in kind), _OTHER)


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
