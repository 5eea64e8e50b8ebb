"""Collectives: what devices send each other, as predicted and as compiled.

`resharding` and `summing` say which collectives a change of division needs; `compiled`
reads those of a program from its HLO.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fxflow.devices.meshes import AbstractMesh

ALL_REDUCE, ALL_GATHER = "all-reduce", "all-gather"
REDUCE_SCATTER, ALL_TO_ALL = "reduce-scatter", "all-to-all"
PERMUTE = "collective-permute"
KINDS = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, PERMUTE)


class Collective(NamedTuple):
    """What devices do together.

    Attributes:
      kind: `"all-reduce"`, `"all-gather"`, `"reduce-scatter"`, `"all-to-all"` or
        `"collective-permute"`.
      axes: the mesh axes along which devices take part, as a set of bits: axis `i` of
        the mesh is `1 << i`.
      nbytes: on each device, of the larger one of operand and result.
    """

    kind: str
    axes: int
    nbytes: float


Masks = Sequence[int]
"""For each axis of an array the mesh axes that divide it, as a set of bits."""


class MeshSizes:
    """Numbers of devices along sets of mesh axes.

    Args:
      lengths: of the mesh axes.

    Attributes:
      of: for each set of axes, as bits, the product of their lengths.
    """

    of: list[int]

    def __init__(self, lengths: Sequence[int]) -> None:
        self.of = [1]
        for length in lengths:
            self.of += [n * int(length) for n in self.of]

    def union(self, masks: Masks) -> int:
        """Returns the number of parts of an array."""
        total = 0
        for mask in masks:
            total |= mask
        return self.of[total]


def resharding(
    nbytes: float, before: Masks, after: Masks, sizes: MeshSizes
) -> Iterator[Collective]:
    """Yields the collectives that divide an array in another way.

    Args:
      nbytes: of the whole.
      before: how it is divided.
      after: how it is to be divided.
      sizes: of the mesh.
    """
    if before == after:
        return
    gathered = moved = wanted = given = 0
    for old, new in zip(before, after, strict=True):
        given |= old
        wanted |= new
        moved |= old & ~new
    gathered = moved & ~wanted
    moved &= wanted
    if moved:
        yield Collective(ALL_TO_ALL, moved, nbytes / sizes.of[given])
    if gathered:
        yield Collective(ALL_GATHER, gathered, nbytes / sizes.of[wanted])


def summing(
    nbytes: float, summed: int, scattered: int, sizes: MeshSizes
) -> Iterator[Collective]:
    """Yields the collectives that add up parts of a sum.

    Args:
      nbytes: of the sum on a device.
      summed: the mesh axes over which there are parts.
      scattered: those over which the sum is to be divided.
      sizes: of the mesh.
    """
    scattered &= summed
    if scattered:
        yield Collective(REDUCE_SCATTER, scattered, nbytes)
        nbytes /= sizes.of[scattered]
    if summed & ~scattered:
        yield Collective(ALL_REDUCE, summed & ~scattered, nbytes)


# -- compiled programs -----------------------------------------------------------------

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_CALL = re.compile(r"(body|condition|calls|to_apply|branch_computations)=\{?([^}\s]*)")
_OPERATION = re.compile(
    r"= (\(.*?\)|\S+) (all-reduce|all-gather|reduce-scatter|all-to-all|"
    r"collective-permute)(?:-start)?\((.*)$"
)
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_ARRAY = re.compile(r"\b(pred|[a-z]+\d+\w*)\[([\d,]*)\]")
_LISTED = re.compile(r"replica_groups=\{\{([\d,{} ]*)\}\}")
_IOTA = re.compile(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_PAIRS = re.compile(r"source_target_pairs=\{\{([\d,{} ]*)\}\}")


def compiled(text: str, mesh: AbstractMesh) -> list[tuple[Collective, int]]:
    """Returns the collectives of a compiled program.

    Args:
      text: its HLO after optimization.
      mesh: the devices that it runs on, in the program's order.

    Returns:
      Each collective with the number of times that it runs. The bytes are those of one
      run on one device.
    """
    computations, entry = _computations(text)
    groups = _known_groups(mesh)
    found: list[tuple[Collective, int]] = []

    def visit(name: str, times: int) -> None:
        for line in computations.get(name, ()):
            match = _OPERATION.search(line)
            if match is not None:
                axes = _axes(line, groups)
                if axes:
                    sizes = _bytes(match[1], match[2], line)
                    found.append((Collective(match[2], axes, sizes), times))
            trips = _TRIPS.search(line)
            for word, called in _CALL.findall(line):
                inner = times * (int(trips[1]) if trips and word == "body" else 1)
                for one in called.split(","):
                    visit(one.strip().lstrip("%"), inner)

    visit(entry, 1)
    return found


def _computations(text: str) -> tuple[dict[str, list[str]], str]:
    computations: dict[str, list[str]] = {}
    entry, lines = "", []
    for line in text.splitlines():
        begun = _COMPUTATION.match(line)
        if begun:
            lines = computations[begun[2]] = []
            entry = begun[2] if begun[1] else entry
        else:
            lines.append(line)
    return computations, entry


def _bytes(result: str, kind: str, line: str) -> float:
    """Returns the bytes of the larger one of operands and results."""
    arrays = [_nbytes(*array) for array in _ARRAY.findall(result)]
    whole = float(sum(arrays))
    if f" {kind}-start(" in line and kind in (ALL_GATHER, PERMUTE):
        whole = float(arrays[1]) if len(arrays) > 1 else whole  # operand, then result
    if kind == REDUCE_SCATTER:
        groups = re.search(r"replica_groups=(\S+)", line)
        whole *= _group_size(groups[0]) if groups else 1
    return whole


def _group_size(text: str) -> int:
    rows = _rows(text)
    return len(rows[0]) if rows else 1


def _nbytes(dtype: str, shape: str) -> int:
    count = int(np.prod([int(n) for n in shape.split(",") if n], dtype=np.int64))
    if dtype == "pred":
        return count
    bits = int(re.sub(r"^[a-z]+(\d+).*$", r"\1", dtype))
    return count * bits // 8


def _rows(line: str) -> list[tuple[int, ...]]:
    """Returns the groups of devices that a collective names."""
    iota = _IOTA.search(line)
    if iota is not None:
        shape, dims = ([int(n) for n in iota[i].split(",")] for i in (1, 2))
        ids = np.arange(np.prod(dims)).reshape(dims)
        if iota[3]:
            ids = ids.transpose([int(n) for n in iota[3].split(",")])
        return [tuple(row) for row in ids.reshape(shape).tolist()]
    listed = _LISTED.search(line) or _PAIRS.search(line)
    if listed is None:
        return []
    rows = listed[1].replace(" ", "").split("},{")
    return [tuple(int(n) for n in row.split(",") if n) for row in rows]


def _known_groups(mesh: AbstractMesh) -> dict[frozenset[frozenset[int]], int]:
    """Returns for each grouping of devices along mesh axes the axes, as bits."""
    sizes = mesh.axis_sizes
    ids = np.arange(mesh.size).reshape(sizes)
    found: dict[frozenset[frozenset[int]], int] = {}
    for mask in range(1, 1 << len(sizes)):
        along = [i for i in range(len(sizes)) if mask >> i & 1 and sizes[i] > 1]
        rest = [i for i in range(len(sizes)) if i not in along]
        rows = ids.transpose([*rest, *along]).reshape(
            -1, int(np.prod([sizes[i] for i in along], dtype=np.int64))
        )
        found.setdefault(frozenset(map(frozenset, rows.tolist())), mask)
    return found


def _axes(line: str, groups: dict[frozenset[frozenset[int]], int]) -> int:
    """Returns the mesh axes along which a collective's groups run; 0: on one device."""
    rows = _rows(line)
    if "collective-permute" in line and "source_target_pairs" in line:
        return _axes_of_pairs([r for r in rows if len(set(r)) > 1], groups)
    if not rows:
        return max(groups.values(), default=0)
    if all(len(row) == 1 for row in rows):
        return 0
    known = groups.get(frozenset(map(frozenset, rows)))
    return known if known is not None else max(groups.values())


def _axes_of_pairs(
    pairs: Sequence[Sequence[int]], groups: dict[frozenset[frozenset[int]], int]
) -> int:
    """Returns the smallest set of mesh axes along which all pairs of devices lie."""
    if not pairs:
        return 0
    for grouping, mask in sorted(groups.items(), key=lambda item: item[1].bit_count()):
        if all(any({*pair} <= group for group in grouping) for pair in pairs):
            return mask
    return max(groups.values())


Totals = dict[tuple[str, int], tuple[float, float]]
"""For each kind of collective and set of mesh axes: how often, and bytes in all."""


def totals(found: Sequence[tuple[Collective, float]]) -> Totals:
    """Returns how often each kind of collective runs, and the bytes in all.

    Args:
      found: collectives, and how often they run.
    """
    result: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for collective, times in found:
        row = result[collective.kind, collective.axes]
        row[0] += times
        row[1] += times * collective.nbytes
    order = {kind: i for i, kind in enumerate(KINDS)}
    keys = sorted(result, key=lambda key: (order[key[0]], key[1]))
    return {key: (result[key][0], result[key][1]) for key in keys}


def axis_names(mesh: AbstractMesh, mask: int) -> tuple[object, ...]:
    """Returns the names of a set of mesh axes."""
    return tuple(
        itertools.compress(mesh.axis_names, (mask >> i & 1 for i in range(32)))
    )
