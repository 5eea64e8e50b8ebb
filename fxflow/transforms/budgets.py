"""What `checkpoint(budget=)` keeps: the values that are worth their memory.

The forward pass of a derivative is a graph; its backward pass reads some of the values,
the residuals. A value is kept, or moved to the host's memory and back, or computed
again from what is kept. This finds the choice that takes least work within two numbers
of bytes: a linear program in 0 and 1, which HiGHS solves (through SciPy). Without SciPy
the values that cost most bytes for the least work are dropped one by one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fxflow.core import source
from fxflow.core.arrays import dtypes, typeof
from fxflow.core.boundary import guard_methods
from fxflow.core.interpreters.linearize import LinearGraphs, linearize_graph
from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.devices import Device, buffers, clients
from fxflow.devices.memory import bytes_text
from fxflow.devices.memory_kinds import Space, kind_of
from fxflow.devices.remote import RemoteDevice
from fxflow.devices.shardings import SingleDeviceSharding
from fxflow.errors import ArgumentError
from fxflow.lax.remat import Name, Offload, inlined, residuals_of
from fxflow.transforms.memory_reports import aval_bytes

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
# Work in units of one byte of memory traffic: a device does some ten operations of a
# matrix product while it moves one byte.
_FLOPS_A_BYTE = 10.0
# What the compiler fuses with its neighbours does not go through memory.
_FUSED = 0.25
_HEAVY = {
    "dot_general", "conv_general_dilated", "sort", "gather", "scatter", "scatter-add",
    "reduce_window", "cumsum", "cumprod", "top_k", "fft", "scan", "while", "cond",
    "custom_call", "ffi_call", "ragged_dot", "random_bits", "threefry2x32",
}  # fmt: skip
#: Work of keeping a byte, which is written, read back, and often in pages that the
#: system must clear first. Measured with `benchmarks/budgets.py` on a CPU: with 3 to 6,
#: large budgets were never slower than the best policy by hand; with 0.5 they took up
#: to 2.2 times as long. What is cheaper to compute again is not kept, whatever the
#: budget.
KEEPING = 4.0
#: Work of moving a byte to the host and back where it is not measured: processes that
#: run one program together must choose alike.
MOVING = 128.0
# Bytes that are moved to measure it, how often.
_MEASURED_BYTES, _MEASURED_RUNS = 1 << 24, 4
#: Seconds that the solver may take.
SOLVER_SECONDS = 10.0


def bytes_of(budget: Any, what: str) -> int:
    """Returns a number of bytes that is written as `"8GB"`, `"512MiB"` or `8e9`.

    Args:
      budget: as the user gave it.
      what: names the argument, for messages.

    Raises:
      ArgumentError: it is not such a number, or is negative.
    """
    if isinstance(budget, str):
        match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([KMGT]?i?B?)\s*", budget, re.I)
        unit = _UNITS.get(match[2].upper()) if match else None
        with contextlib.suppress(ValueError, OverflowError):  # as of "." and "1e999"
            if match and unit is not None:
                return int(float(match[1]) * unit)
    elif isinstance(budget, int | float | np.integer | np.floating):
        size = float(budget)
        if type(budget) is not bool and 0 <= size < float("inf"):
            return int(budget)
    raise ArgumentError(
        f'{what} is a number of bytes, as in "8GB", "512MiB" or 8e9, got {budget!r}'
    )


class PlanRow(NamedTuple):
    """A value that the backward pass needs.

    Attributes:
      action: `"keep"`, `"offload"` or `"recompute"`.
      type: such as `f32[64,64]`.
      nbytes: its size.
      operation: that makes it.
      line: of the user's program.
      work: of making it, in units of one byte of memory traffic, estimated.
    """

    action: str
    type: str
    nbytes: int
    operation: str
    line: str
    work: float


@guard_methods
@dataclass(frozen=True, repr=False)
class CheckpointPlan:
    """What `checkpoint(budget=)` keeps, moves and computes again; `print` shows it.

    Attributes:
      budget: in bytes.
      host_budget: likewise, of the host's memory.
      offloaded: bytes that are moved there and back.
      moving: work of moving a byte there and back, in units of one byte of memory
        traffic, measured on the default device; 0 if nothing may be moved.
      kept: bytes that are kept.
      everything: bytes that would be kept without a budget.
      work: of computing values again, in units of one byte of memory traffic,
        estimated.
      forward: the same of the whole forward pass.
      rows: the values, the largest first.
    """

    budget: int
    host_budget: int
    offloaded: int
    moving: float
    kept: int
    everything: int
    work: float
    forward: float
    rows: tuple[PlanRow, ...]

    def __str__(self) -> str:
        share = self.work / self.forward if self.forward else 0.0
        moved = (
            f"moves {bytes_text(self.offloaded)} to the host (budget "
            f"{bytes_text(self.host_budget)}), "
            if self.host_budget
            else ""
        )
        lines = [
            f"keeps {bytes_text(self.kept)} of {bytes_text(self.everything)} (budget "
            f"{bytes_text(self.budget)}), {moved}computes {share:.0%} of the forward "
            "pass again"
        ]
        groups: dict[tuple[str, str, str, str], list[int]] = {}
        for row in self.rows:
            key = row.action, row.type, row.operation, row.line
            groups.setdefault(key, []).append(row.nbytes)
        for (action, kind, operation, line), held in sorted(
            groups.items(), key=lambda group: (group[0][0], -sum(group[1]))
        ):
            lines.append(
                f"{action:>9} {bytes_text(sum(held)):>9}  {len(held)} × {kind}  "
                f"{operation} at {line}"
            )
        return "\n".join(lines)

    __repr__ = __str__


@dataclass(frozen=True)
class Budget:
    """A policy of `checkpoint` that looks at the whole graph.

    Attributes:
      nbytes: that may be kept.
      host: bytes that may be moved to the host's memory.
    """

    nbytes: int
    host: int = 0

    def choose(self, split: LinearGraphs, count: int) -> dict[Var, bool | Offload]:
        """Returns the values to keep, as `_keepable` of `lax/remat` does.

        Args:
          split: the derivative.
          count: how many results the function has.
        """
        problem = _Problem(split, count)
        space = host_space() if self.host else None
        kept = problem.solve(self.nbytes, self.host, space)
        chosen: dict[Var, bool | Offload] = {
            v: True for i in kept for v in problem.nodes[i].outputs
        }
        if space:
            away = Offload("device", space.kind)
            moved = problem.moved
            chosen |= {v: away for i in moved for v in problem.nodes[i].outputs}
        return chosen


class HostSpace(NamedTuple):
    """The memory of the host, as the default device sees it.

    Attributes:
      kind: of the memory.
      moving: work of moving a byte there and back.
    """

    kind: str
    moving: float


def host_space() -> HostSpace | None:
    """Returns the memory of the host; None if the device computes in it.

    Raises:
      PlacementError: the default device cannot address it.
    """
    device = buffers.default_placement().devices[0]
    kind = kind_of(Space.Host, device)
    if kind is None:
        return None
    if isinstance(device, RemoteDevice) or clients.process_count() > 1:
        return HostSpace(kind, MOVING)
    return HostSpace(kind, _measured(device, kind))


@functools.cache
def _measured(device: Device, kind: str) -> float:
    """Returns the work of moving a byte: the time, in those of copies on the device.

    It is a power of two, so that programs are the same in the next process.
    """
    sharding = SingleDeviceSharding(device, memory_kind=kind)
    here, there = buffers.placement(device), buffers.placement_for(sharding)
    values = np.zeros(_MEASURED_BYTES, np.int8)
    aval = typeof(values)
    seconds: dict[str, float] = {}

    def copied(name: str, buffer: Any, where: Any) -> Any:
        start = time.perf_counter()
        copy = buffers.copy_to(aval, buffer, where)
        buffers.block_until_ready([copy])
        took = time.perf_counter() - start
        seconds[name] = min(took, seconds.get(name, took))
        return copy

    first = buffers.put(aval, values, here)
    for _ in range(_MEASURED_RUNS):
        copied("within", first, here)
        copied("back", copied("away", first, there), here)
    # A copy within the device reads and writes each byte.
    ratio = 2 * (seconds["away"] + seconds["back"]) / seconds["within"]
    return float(2.0 ** round(math.log2(max(ratio, 1.0))))


clients.on_clear(_measured.cache_clear)


def plan_of(graph: Graph, budget: int, host: int = 0) -> CheckpointPlan:
    """Returns what is kept of a function that is differentiated by all it can be.

    Args:
      graph: of the function.
      budget: in bytes.
      host: that may be moved to the host's memory.
    """
    whole = inlined(graph)
    nonzero = [dtypes.is_inexact(aval.dtype) for aval in whole.in_avals]
    problem = _Problem(linearize_graph(whole, nonzero), len(whole.outputs))
    space = host_space() if host else None
    return problem.plan(problem.solve(budget, host, space), budget, host, space)


class _Problem:
    """Which of the operations before the residuals to keep the results of.

    Args:
      split: the derivative.
      count: how many results the function has.

    Attributes:
      moved: what the last solution moves to the host.
    """

    def __init__(self, split: LinearGraphs, count: int) -> None:
        self.moved: set[int] = set()
        graph = split.primal
        residuals = [v for v in residuals_of(split, count) if type(v) is Var]
        maker = {v: node for node in graph.nodes for v in node.outputs}
        needed = {v for v in residuals if v in maker}
        nodes = []
        read = set(needed)
        for node in reversed(graph.nodes):
            if any(v in read for v in node.outputs):
                nodes.append(node)
                read.update(a for a in node.inputs if type(a) is Var)
        nodes.reverse()
        self.nodes: list[Node] = nodes
        number = {v: i for i, node in enumerate(nodes) for v in node.outputs}
        self.inputs = [
            sorted({number[a] for a in node.inputs if type(a) is Var and a in number})
            for node in nodes
        ]
        self.needed = sorted({number[v] for v in needed})
        self.sizes = np.array(
            [
                sum(aval_bytes(v.aval) for v in node.outputs if v in read)
                for node in nodes
            ],
            float,
        )
        self.work = np.array([_work(node) for node in nodes], float)
        self.forward = float(sum(map(_work, graph.nodes)))
        # The names of values are kept with what they name.
        self.may_keep = np.array(
            [node.primitive.name != Name.name for node in nodes], bool
        )

    def again(self, kept: set[int]) -> set[int]:
        """Returns the operations that are computed again."""
        found: set[int] = set()
        front = [i for i in self.needed if i not in kept]
        while front:
            i = front.pop()
            if i not in found:
                found.add(i)
                front += [j for j in self.inputs[i] if j not in kept]
        return found

    def solve(
        self, budget: int, host: int = 0, space: HostSpace | None = None
    ) -> set[int]:
        """Returns the operations whose results are kept; sets `moved`.

        Args:
          budget: bytes to keep.
          host: bytes to move to the memory of the host.
          space: that memory; None: nothing is moved.
        """
        self.moved = set()
        if not self.nodes:
            return set()
        try:
            optimize = importlib.import_module("scipy.optimize")
            sparse = importlib.import_module("scipy.sparse")
        except ImportError:
            return self._dropped(budget, host, space)
        count = len(self.nodes)
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        low: list[float] = []

        def require(terms: Sequence[tuple[int, float]], at_least: float) -> None:
            for column, value in terms:
                rows.append(len(low))
                columns.append(column)
                values.append(value)
            low.append(at_least)

        # Columns: whether a result is kept; whether it is computed again; if there is a
        # space, whether it is moved.
        blocks = 3 if space else 2

        def there(i: int) -> list[tuple[int, float]]:
            return [(block * count + i, 1) for block in range(blocks)]

        for i in self.needed:
            require(there(i), 1)
        for i, inputs in enumerate(self.inputs):
            for j in inputs:
                require([*there(j), (count + i, -1)], 0)
        scale = float(self.sizes.max()) or 1.0
        costs = np.concatenate([KEEPING * self.sizes, self.work])
        most = np.concatenate([self.may_keep, np.ones(count)])
        for block, bound in ((0, budget), (2, host))[: blocks - 1]:
            held = [
                (block * count + i, -size / scale) for i, size in enumerate(self.sizes)
            ]
            require(held, -bound / scale)
        if space:
            costs = np.concatenate([costs, space.moving * self.sizes])
            most = np.concatenate([most, self.may_keep])
        matrix = sparse.csr_array(
            (values, (rows, columns)), shape=(len(low), blocks * count)
        )
        found = optimize.milp(
            costs / (costs.max() or 1.0),
            integrality=np.ones(blocks * count),
            bounds=optimize.Bounds(0, most),
            constraints=optimize.LinearConstraint(matrix, np.array(low), np.inf),
            options={"time_limit": SOLVER_SECONDS, "mip_rel_gap": 1e-4},
        )
        if found.x is None:
            return self._dropped(budget, host, space)
        chosen = found.x.reshape(blocks, count) > 0.5
        if space:
            self.moved = set(np.flatnonzero(chosen[2] & ~chosen[0]).tolist())
        return set(np.flatnonzero(chosen[0]).tolist())

    def _dropped(self, budget: int, host: int, space: HostSpace | None) -> set[int]:
        """Returns what is left after dropping what costs least to compute again.

        What is dropped is moved, until the same is dropped of that.
        """
        needed = {i for i in self.needed if self.may_keep[i]}
        kept = self._fitting(needed, set(), budget)
        if space:
            self.moved = self._fitting(needed - kept, kept, host, space.moving)
        return kept

    def _fitting(
        self, held: set[int], beside: set[int], budget: int, cost: float | None = None
    ) -> set[int]:
        """Drops from what is held what costs least work for its bytes, one by one.

        Args:
          held: to begin with.
          beside: what is held elsewhere.
          budget: bytes that are left in the end.
          cost: of holding a byte: what is cheaper to compute again is dropped, too.
        """
        held = set(held)

        def work(without: int | None = None) -> float:
            again = self.again((held | beside) - {without})
            return float(sum(self.work[i] for i in again))

        while held:
            now = work()
            worth = {i: (work(i) - now) / (self.sizes[i] or 1e-9) for i in held}
            least = min(held, key=worth.__getitem__)
            fits = sum(self.sizes[i] for i in held) <= budget
            if fits and (cost is None or worth[least] >= cost):
                break
            held.discard(least)
        return held

    def plan(
        self, kept: set[int], budget: int, host: int, space: HostSpace | None
    ) -> CheckpointPlan:
        """Returns what is done, in words and numbers."""
        again = self.again(kept | self.moved)
        actions = dict.fromkeys(again, "recompute")
        actions |= dict.fromkeys(self.moved, "offload") | dict.fromkeys(kept, "keep")
        rows = []
        for i in sorted(actions, key=lambda i: -self.sizes[i]):
            node = self.nodes[i]
            if i in again and i not in self.needed:
                continue  # on the way to a residual
            rows.append(
                PlanRow(
                    actions[i],
                    str(node.outputs[0].aval),
                    int(self.sizes[i]),
                    node.primitive.name,
                    source.describe(node.source),
                    float(self.work[i]),
                )
            )
        return CheckpointPlan(
            budget,
            host,
            int(sum(self.sizes[i] for i in self.moved)),
            space.moving if space else 0.0,
            int(sum(self.sizes[i] for i in kept)),
            int(sum(self.sizes[i] for i in self.needed)),
            float(sum(self.work[i] for i in again)),
            self.forward,
            tuple(rows),
        )


@functools.cache
def _unit(name: str) -> float:
    return 1.0 if name in _HEAVY else _FUSED


def _work(node: Node) -> float:
    """Returns the estimated work of an operation, in bytes of memory traffic."""
    avals = [a.aval for a in node.inputs]
    try:
        cost = node.primitive.cost(*avals, **node.params)
    except Exception:  # a primitive of a user's need not have one
        cost = {"bytes": float(sum(aval_bytes(v.aval) for v in node.outputs))}
    inner = subgraphs(node.params)
    flops, nbytes = cost.get("flops", 0.0), cost.get("bytes", 0.0)
    if inner and not flops:
        flops = sum(_work(n) for _, graph in inner for n in graph.nodes)
    moved = nbytes * _unit(node.primitive.name)
    return flops / _FLOPS_A_BYTE + moved
