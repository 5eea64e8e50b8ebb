"""The cost of dividing a program: seconds and bytes for each choice of its decisions.

A decision is about a dimension (which mesh axes divide it) or about a group of stored
values (over which further axes they are stored). A choice is a set of mesh axes, as
bits. The cost of an operation depends on the few decisions that it touches, so it is a
table over their joint choices; tables of the same decisions are added up. Impossible
choices, such as one mesh axis for two axes of an array, are not in the tables.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.rates import Rates
from fxflow.dataflow.sharding.collectives import (
    ALL_REDUCE,
    Collective,
    MeshSizes,
    resharding,
    summing,
)
from fxflow.dataflow.sharding.dimensions import NONE, Dimensions, keeps_storage
from fxflow.dataflow.sharding.program import LITERAL, Kind, Op
from fxflow.devices.meshes import Mesh

#: Parameters of less than this fraction of the bytes of all are not stored in parts.
SMALL = 1e-3
#: A value that the operations which read it can compute themselves is in memory only if
#: its last use is at least this number of operations away.
FUSED_FOR = 64

Choices = tuple[int, ...]
Table = dict[Choices, float]


class MeshCosts:
    """What computing and communicating take on the devices of a mesh.

    Args:
      mesh: of devices of one kind.
      costs: the model of devices and links.
    """

    mesh: Mesh
    costs: Costs
    scatters: bool
    sizes: MeshSizes

    def __init__(self, mesh: Mesh, costs: Costs) -> None:
        self.mesh, self.costs = mesh, costs
        # XLA's CPU compiler writes it as an all-reduce of which a part is kept.
        self.scatters = mesh.flat[0].platform != "cpu"
        self.sizes = MeshSizes(mesh.axis_sizes)
        self.rates: Rates = costs.of(mesh.flat[0])
        self._slowdown = self.rates.slowdown(mesh.size)
        self._lines: dict[tuple[str, int], tuple[float, float]] = {}

    def compute(self, work: tuple[str, float, float]) -> float:
        """Returns the seconds of work, while all devices of the mesh do as much."""
        return self.rates.seconds(*work) * self._slowdown

    def communicate(self, collective: Collective) -> float:
        """Returns the seconds of a collective."""
        kind, mask, nbytes = collective
        line = self._lines.get((kind, mask))
        if line is None:
            index = tuple(
                slice(None) if mask >> i & 1 else 0
                for i in range(self.mesh.devices.ndim)
            )
            devices = list(self.mesh.devices[index].flat)
            name = kind.replace("collective-", "").replace("-", "_")
            least = self.costs.collective_seconds(name, 0, devices)
            more = self.costs.collective_seconds(name, 1e9, devices)
            line = self._lines[kind, mask] = least, (more - least) / 1e9
        return line[0] + line[1] * nbytes


class Row(NamedTuple):
    """A value as an operation sees it.

    Attributes:
      axes: the decision of each axis, or `NONE`.
      store: the decision of its group, or `NONE`.
      tail: the axes, counted from the last, that all values of the group have.
      aval: its type.
    """

    axes: Choices
    store: int
    tail: int
    aval: Aval


class Signature(NamedTuple):
    """What operations of equal cost have in common.

    Attributes:
      kind: what is done.
      own: the decisions of the dimensions of its rule.
      operands: None for a constant.
      results: likewise.
      keeps_storage: whether it runs on values as they are stored.
      in_branch: whether it runs only if a branch is taken.
    """

    kind: Kind
    own: Choices
    operands: tuple[Row | None, ...]
    results: tuple[Row | None, ...]
    keeps_storage: bool
    in_branch: bool

    @property
    def rows(self) -> list[Row]:
        """Operands and results."""
        return [row for row in (*self.operands, *self.results) if row is not None]


class Move(NamedTuple):
    """What happens to an operand before an operation, or to a result after it.

    Attributes:
      position: of an operand, or `~i` for result `i`.
      masks: the mesh axes that divide each axis: before, if the operation must not be
        divided as the value is afterwards, and then afterwards. Empty for a sum alone.
      collectives: that this takes.
    """

    position: int
    masks: tuple[Choices, ...]
    collectives: tuple[Collective, ...]


@dataclass
class Moment:
    """What is in memory when an operation runs.

    Attributes:
      op: its number; that of no operation stands for the end.
      rows: the values, and how many of each sort there are.
    """

    op: int
    rows: dict[Row, int] = field(default_factory=dict)


Masks = Mapping[int, int]
"""The mesh axes that each decision divides."""


class Model:
    """The cost model of a program on a mesh.

    Args:
      dims: the program's dimensions.
      decisions: of the dimensions, then of the groups, see `tying`.
      costs: of the mesh.
      pinned: choices of dimensions that are made already.
      donated: inputs whose memory results may take.

    Attributes:
      choices: for each decision its choices, of which 0 is always one.
      tables: seconds by joint choices of decisions that have several.
      fixed: the choices of decisions that have one.
      constant: seconds that no decision changes.
    """

    dims: Dimensions
    decisions: Sequence[int]
    costs: MeshCosts
    donated: frozenset[int]
    sizes: MeshSizes
    choices: dict[int, Choices]
    fixed: dict[int, int]
    signatures: dict[Signature, float]
    constant: float

    def __init__(
        self,
        dims: Dimensions,
        decisions: Sequence[int],
        costs: MeshCosts,
        pinned: Mapping[int, int] = {},
        donated: Iterable[int] = (),
    ) -> None:
        self.dims, self.decisions, self.costs = dims, decisions, costs
        self.donated = frozenset(donated)
        self.sizes = costs.sizes
        self.choices = self._choices(pinned)
        self.fixed = {d: c[0] for d, c in self.choices.items() if len(c) == 1}
        self._rows: dict[int, Row] = {}
        self.signatures = self._signatures()
        self.constant = costs.rates.start
        self.tables: dict[Choices, Table] = {}
        self._fill()
        self._history = self._changes()

    # -- decisions ---------------------------------------------------------------------

    def _choices(self, pinned: Mapping[int, int]) -> dict[int, Choices]:
        sets = range(len(self.sizes.of))
        lengths = self.costs.mesh.axis_sizes
        useful = [m for m in sets if all(lengths[i] > 1 for i in _bits(m))]
        found: dict[int, Choices] = {}
        for number, divisor in enumerate(self.dims.divisor):
            fits = tuple(m for m in useful if divisor % self.sizes.of[m] == 0)
            found.setdefault(self.decisions[number], fits)
        avals = self.dims.program.avals
        total = sum(avals[v].nbytes for s in self.dims.stored for v in s.leaves)
        for number, store in enumerate(self.dims.stored):
            decision = self.decisions[self.dims.count + number]
            large = sum(avals[v].nbytes for v in store.leaves) >= SMALL * total
            found.setdefault(decision, tuple(useful) if large else (0,))
        for number, mask in pinned.items():
            found[self.decisions[number]] = (mask,)
        return found

    def row(self, value: int) -> Row:
        """Returns a value with its decisions."""
        known = self._rows.get(value)
        if known is None:
            dims = self.dims
            axes = tuple(
                NONE if a == NONE else self.decisions[a] for a in dims.axes[value]
            )
            store, tail = NONE, 0
            if value in dims.store_of:
                number = dims.store_of[value]
                store = self.decisions[dims.count + number]
                tail = dims.stored[number].ndim
            aval = dims.program.avals[value]
            known = self._rows[value] = Row(axes, store, tail, aval)
        return known

    def signature(self, number: int) -> Signature:
        """Returns what decides the cost of an operation.

        Args:
          number: of the operation.
        """
        op: Op = self.dims.program.ops[number]
        operands, results = (
            tuple(None if v == LITERAL else self.row(v) for v in values)
            for values in (op.inputs, op.outputs)
        )
        own = tuple(self.decisions[d] for d in self.dims.of_ops[number])
        rows = [row for row in (*operands, *results) if row is not None and row.axes]
        stores = {row.store for row in rows}
        keeps = keeps_storage(op) and len(stores) == 1 and stores != {NONE}
        return Signature(op.kind, own, operands, results, keeps, op.in_branch)

    def _signatures(self) -> dict[Signature, float]:
        """Returns how often operations of each sort run."""
        found: dict[Signature, float] = defaultdict(float)
        for number, op in enumerate(self.dims.program.ops):
            found[self.signature(number)] += op.runs
        return found

    # -- what an operation costs -------------------------------------------------------

    def stored_masks(self, row: Row, masks: Masks) -> Choices | None:
        """Returns the mesh axes that divide each axis of a value where it is stored.

        None: the further axes of its group do not divide it.
        """
        own = [0 if a == NONE else masks[a] for a in row.axes]
        further = masks[row.store] if row.store != NONE else 0
        if further:
            axis = self._storage_axis(row, own, further)
            if axis is None:
                return None
            own[axis] |= further
        return tuple(own)

    def _storage_axis(self, row: Row, own: Sequence[int], further: int) -> int | None:
        """Returns the longest of the axes that further mesh axes divide."""
        best, longest = None, 0
        ndim = row.aval.ndim
        for axis in range(ndim - row.tail, ndim):
            length = int(row.aval.shape[axis]) // self.sizes.of[own[axis]]
            if length > longest and length % self.sizes.of[further] == 0:
                best, longest = axis, length
        return best

    def moves(self, sign: Signature, masks: Masks) -> Iterator[Move]:
        """Yields the operands and results of an operation that must be moved.

        Args:
          sign: of the operation.
          masks: a possible choice of its decisions.
        """
        if sign.keeps_storage and self._agrees(sign):
            return
        own = [masks[d] for d in sign.own]

        def wanted(row: Row, axes: Sequence[int | None]) -> Choices:
            needed = [0 if d is None else own[d] for d in axes]
            if sign.keeps_storage:
                further = masks[row.store] if row.axes else 0
                axis = self._storage_axis(row, needed, further) if further else None
                if axis is not None:
                    needed[axis] |= further
            return tuple(needed)

        rule, sizes = sign.kind.rule, self.sizes
        for i, (given, axes) in enumerate(
            zip(sign.operands, rule.operands, strict=True)
        ):
            if given is not None and given.axes:
                row = given
                before = self.stored_masks(row, masks)
                assert before is not None
                after = wanted(row, axes)
                if before != after:
                    found = resharding(row.aval.nbytes, before, after, sizes)
                    # Else the partitioner might divide what computes the operand so.
                    both = any(before) and any(after)
                    states = (before, after) if both else (after,)
                    yield Move(i, states, tuple(found))
        summed = 0
        for dimension in rule.summed:
            summed |= own[dimension]
        for i, (out, axes) in enumerate(zip(sign.results, rule.results, strict=True)):
            if out is None:
                continue
            row = out
            made = wanted(row, axes)
            asked = self.stored_masks(row, masks)
            assert asked is not None
            sums: list[Collective] = []
            if summed:
                local = row.aval.nbytes / sizes.union(made)
                # Where the sum is wanted in parts, each device adds up its own.
                parts = tuple(
                    0 if dim is None else a & summed & ~m
                    for a, m, dim in zip(asked, made, axes, strict=True)
                )
                scattered = sum(parts) if self.costs.scatters else 0
                sums += summing(local, summed, scattered, sizes)
                made = tuple(m | p for m, p in zip(made, parts, strict=True))
                if any(parts) and made == asked:
                    yield Move(~i, (asked,), tuple(sums))
                    continue
            if sums or made != asked:
                sums += resharding(row.aval.nbytes, made, asked, sizes)
                yield Move(~i, () if made == asked else (made, asked), tuple(sums))

    def collectives(self, sign: Signature, masks: Masks) -> Iterator[Collective]:
        """Yields the collectives of one run of an operation.

        Args:
          sign: of the operation.
          masks: a possible choice of its decisions.
        """
        for move in self.moves(sign, masks):
            yield from move.collectives

    @staticmethod
    def _agrees(sign: Signature) -> bool:
        """Returns whether all arrays have the operation's own dimensions."""
        rule = sign.kind.rule
        pairs = zip(
            (*sign.operands, *sign.results),
            (*rule.operands, *rule.results),
            strict=True,
        )
        return all(
            row is None
            or row.axes == tuple(NONE if d is None else sign.own[d] for d in axes)
            for row, axes in pairs
        )

    def work(self, sign: Signature, masks: Masks) -> tuple[str, float, float]:
        """Returns family, flops and bytes of one run of an operation on a device."""
        family, flops, nbytes = sign.kind.work
        rule, own = sign.kind.rule, set(range(len(sign.own)))
        if family in ("gather", "scatter"):
            # A device that has some rows of a table looks at all indices.
            moved = rule.results[0] if family == "gather" else rule.operands[-1]
            own &= {d for d in moved if d is not None}
        parts = self.sizes.union([masks[sign.own[d]] for d in own])
        if sign.keeps_storage:
            store = next(row.store for row in sign.rows if row.axes)
            parts *= self.sizes.of[masks[store]]
        if nbytes and family not in ("gather", "scatter"):
            pairs = zip(
                (*sign.operands, *sign.results),
                (*rule.operands, *rule.results),
                strict=True,
            )
            whole = local = 0.0
            for row, axes in pairs:
                if row is not None:
                    divided = [0 if d is None else masks[sign.own[d]] for d in axes]
                    whole += row.aval.nbytes
                    local += row.aval.nbytes / self.sizes.union(divided)
            return family, flops / parts, nbytes * local / max(1.0, whole)
        return family, flops / parts, nbytes / parts

    def seconds(self, sign: Signature, masks: Masks) -> float:
        """Returns the seconds of one run of an operation.

        Nothing is moved within branches: XLA's partitioner gives wrong sums there.
        """
        found = self.costs.compute(self.work(sign, masks))
        for move in self.moves(sign, masks):
            found += math.inf if sign.in_branch else self.costs.rates.operation
            combined = move.position < 0 and sign.results[~move.position] in self._sums
            for collective in move.collectives:
                found += self.costs.communicate(collective)
                if combined and collective.kind == ALL_REDUCE:
                    # XLA combines the sums of gradients, which wait for each other.
                    least = self.costs.communicate(collective._replace(nbytes=0.0))
                    found -= least * (1 - 1 / self._sums.total())
        return found

    @functools.cached_property
    def _sums(self) -> Counter[Row | None]:
        """The stored values that operations sum up, and how many there are."""
        found: Counter[Row | None] = Counter()
        for sign, count in self.signatures.items():
            if sign.kind.rule.summed:
                for row in sign.results:
                    if row is not None and row.store != NONE:
                        found[row] += round(count)
        return found

    def cost(self, masks: Masks) -> float:
        """Returns the seconds of a choice of all decisions; infinite: impossible."""
        total = self.constant
        for key, table in self.tables.items():
            total += table.get(tuple([masks[d] for d in key]), math.inf)
        return total

    # -- tables ------------------------------------------------------------------------

    def _fill(self) -> None:
        simple: dict[tuple[Choices, Choices], float] = defaultdict(float)
        for sign, count in self.signatures.items():
            if not sign.kind.is_fused:
                self.constant += self.costs.rates.operation * count
            # Most operations are elementwise, and differ in their work alone.
            if self._is_simple(sign):
                store = next((r.store for r in sign.rows if r.axes), NONE)
                stores: Choices = (store,) if store != NONE else ()
                work = self.costs.compute(sign.kind.work) * count
                simple[sign.own, stores] += work
                self._add(sign, 0.0)
            else:
                self._add(sign, count)
        for (own, stores), seconds in simple.items():
            self._add_divided((*own, *stores), seconds)
        # No operation need use an input, or compute an output.
        program = self.dims.program
        ends = [v for v in (*program.inputs, *program.outputs) if v != LITERAL]
        for row in dict.fromkeys(map(self.row, ends)):
            group = _members(row)
            stored = [row] if row.store != NONE else []
            self._add_table(self._free(group), [group], stored, lambda masks: 0.0)

    def _is_simple(self, sign: Signature) -> bool:
        """Returns whether an operation only computes, element by element."""
        if not sign.kind.rule.is_pointwise or not self._agrees(sign):
            return False
        return sign.keeps_storage or all(row.store == NONE for row in sign.rows)

    def _add_divided(self, decisions: Choices, seconds: float) -> None:
        """Adds work that all decisions divide."""

        def cost(masks: Masks) -> float:
            return seconds / self.sizes.union([masks[d] for d in decisions])

        self._add_table(self._free(decisions), [decisions], (), cost)

    def _decisions_of(self, sign: Signature) -> Choices:
        found = dict.fromkeys(sign.own)
        for row in sign.rows:
            found.update(dict.fromkeys(a for a in row.axes if a != NONE))
            if row.store != NONE:
                found[row.store] = None
        return self._free(found)

    def _free(self, decisions: Iterable[int]) -> Choices:
        """Returns the decisions that have several choices, in order."""
        return tuple(sorted({d for d in decisions if len(self.choices[d]) > 1}))

    def _add(self, sign: Signature, count: float) -> None:
        """Adds the seconds of an operation; 0 times, what is possible alone."""
        groups: list[Sequence[int]] = [sign.own]
        rows = dict.fromkeys(sign.rows)
        groups += map(_members, rows)
        stored = [row for row in rows if row.store != NONE]

        def cost(masks: Masks) -> float:
            return count * self.seconds(sign, masks) if count else 0.0

        self._add_table(self._decisions_of(sign), groups, stored, cost)

    def _add_table(
        self,
        decisions: Choices,
        groups: Sequence[Sequence[int]],
        stored: Sequence[Row],
        cost: Callable[[Masks], float],
    ) -> None:
        """Adds the cost of each possible joint choice of decisions.

        Args:
          decisions: those that have several choices.
          groups: decisions that must not share a mesh axis.
          stored: values whose further axes must divide them.
          cost: of a choice.
        """
        table = self.tables.get(decisions)
        given = table is not None
        joint = table if table is not None else self.joint_choices(decisions, groups)
        result: Table = {}
        masks = dict(self.fixed)
        for chosen, before in _items(joint):
            masks.update(zip(decisions, chosen, strict=True))
            if given and not _disjoint(groups, masks):
                continue
            if any(self.stored_masks(row, masks) is None for row in stored):
                continue
            seconds = before + cost(masks)
            if math.isfinite(seconds):
                result[chosen] = seconds
        if decisions:
            self.tables[decisions] = result
        else:
            self.constant += result.get((), math.inf)

    def joint_choices(
        self, decisions: Choices, groups: Sequence[Sequence[int]]
    ) -> list[Choices]:
        """Returns the choices in which no mesh axis occurs twice in a group."""
        position = {d: i for i, d in enumerate(decisions)}
        apart: list[set[int]] = [set() for _ in decisions]
        taken = [0] * len(decisions)
        for group in groups:
            members = [position[d] for d in group if d in position]
            used = 0
            for d in group:
                if used & self.fixed.get(d, 0):
                    return []
                used |= self.fixed.get(d, 0)
            for i in members:
                apart[i].update(j for j in members if j < i)
                taken[i] |= used
        found: list[Choices] = [()]
        for i, decision in enumerate(decisions):
            found = [
                (*chosen, mask)
                for chosen in found
                for mask in self.choices[decision]
                if not mask & taken[i] and all(not mask & chosen[j] for j in apart[i])
            ]
        return found

    # -- memory ------------------------------------------------------------------------

    def nbytes(self, row: Row, masks: Masks) -> float:
        """Returns the bytes of a value on a device, as it is stored."""
        used = masks[row.store] if row.store != NONE else 0
        for a in row.axes:
            if a != NONE:
                used |= masks[a]
        return row.aval.nbytes / self.sizes.of[used]

    def live(self) -> Iterator[tuple[int, dict[int, int]]]:
        """Yields for each operation the values that come and go.

        Yields:
          The number of the operation, and the values that begin (1) or end (-1) there;
          the number of operations stands for the end of the program.
        """
        program = self.dims.program
        end = len(program.ops)
        made: dict[int, int] = {}
        last: dict[int, int] = {}
        fused: set[int] = set()
        for number, op in enumerate(program.ops):
            for value in op.inputs:
                if value != LITERAL:
                    last[value] = number
            for value in op.outputs:
                if value not in made:
                    made[value] = number
                    if op.kind.is_fused:
                        fused.add(value)
        for value in program.inputs:
            made[value] = -1
            if value not in self.donated:
                last[value] = end
        for value in program.outputs:
            if value != LITERAL:
                last[value] = end
                fused.discard(value)
        changes: dict[int, dict[int, int]] = defaultdict(dict)
        for value, start in made.items():
            stop = last.get(value, start)
            if value in fused and stop - start < FUSED_FOR:
                continue
            changes[start][value] = 1
            if stop < end:
                changes[stop + 1][value] = -1
        for number in range(-1, end + 1):
            yield number, changes.get(number, {})

    def _changes(self) -> tuple[list[Row], Any, Any, Any]:
        """Returns rows, and for each change in memory its time, row and sign."""
        rows: dict[Row, int] = {}
        changes: list[tuple[int, int, int]] = []
        for number, found in self.live():
            for value, sign in found.items():
                row = rows.setdefault(self.row(value), len(rows))
                changes.append((number + 1, row, sign))
            if 0 <= number < len(self.dims.program.ops):
                for gathered in self._gathered(number):
                    # Only while the operation runs, and only if it is stored in parts.
                    row = rows.setdefault(gathered._replace(tail=-1), len(rows))
                    changes += [(number + 1, row, 1), (number + 2, row, -1)]
        times, which, signs = np.array(changes or [(0, 0, 0)]).T
        return list(rows), times, which, signs

    def peak(self, masks: Masks) -> tuple[float, int]:
        """Returns the most bytes in memory on a device, and the operation then."""
        rows, times, which, signs = self._history
        if not rows:
            return 0.0, 0
        each = np.array([self._bytes_in_history(row, masks) for row in rows])
        levels = np.zeros(len(self.dims.program.ops) + 3)
        np.add.at(levels, times, signs * each[which])
        levels = np.cumsum(levels)
        where = int(np.argmax(levels))
        return float(levels[where]), where - 1

    def _bytes_in_history(self, row: Row, masks: Masks) -> float:
        if row.tail >= 0:
            return self.nbytes(row, masks)
        if not masks[row.store]:
            return 0.0
        return self.nbytes(row._replace(store=NONE), masks)

    def moment(self, op: int) -> Moment:
        """Returns what is in memory when an operation runs."""
        found: dict[Row, int] = defaultdict(int)
        for number, changes in self.live():
            for value, sign in changes.items():
                found[self.row(value)] += sign
            if number == op:
                break
        rows = {row: count for row, count in found.items() if count}
        if 0 <= op < len(self.dims.program.ops):
            for row in self._gathered(op):
                gathered = row._replace(store=NONE)
                rows[gathered] = rows.get(gathered, 0) + 1
        return Moment(op, rows)

    def _gathered(self, number: int) -> list[Row]:
        """Returns the operands of an operation that it needs gathered."""
        op = self.dims.program.ops[number]
        if keeps_storage(op):
            return []
        rows = [self.row(v) for v in op.inputs if v != LITERAL]
        return [row for row in rows if row.store != NONE]

    def memory_tables(self, moment: Moment) -> tuple[float, dict[Choices, Table]]:
        """Returns the bytes in memory at a moment: a constant, and tables."""
        constant = 0.0
        tables: dict[Choices, Table] = {}
        for row, count in moment.rows.items():
            decisions = self._free(_members(row))
            if not decisions:
                constant += count * self.nbytes(row, self.fixed)
                continue
            masks = dict(self.fixed)
            table = tables.setdefault(decisions, {})
            for chosen in itertools.product(*(self.choices[d] for d in decisions)):
                masks.update(zip(decisions, chosen, strict=True))
                table[chosen] = table.get(chosen, 0.0) + count * self.nbytes(row, masks)
        return constant, tables


def _members(row: Row) -> list[int]:
    """Returns the decisions about a value, no two of which take one mesh axis."""
    return [d for d in (*row.axes, row.store) if d != NONE]


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def _items(joint: Table | list[Choices]) -> Iterable[tuple[Choices, float]]:
    return joint.items() if isinstance(joint, dict) else [(c, 0.0) for c in joint]


def _disjoint(groups: Sequence[Sequence[int]], masks: Masks) -> bool:
    for group in groups:
        used = 0
        for d in group:
            if used & masks[d]:
                return False
            used |= masks[d]
    return True
