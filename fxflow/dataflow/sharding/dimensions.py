"""Dimensions: which axes of which values of a program are divided together.

The rules of operations (`rules`) make axes of values equal, which a union-find carries
through the whole program: the batch, the heads, the hidden units of a layer are one
dimension each, named by no one and found everywhere. A dimension is divided over mesh
axes as a whole, so a program of thousands of values has some dozen decisions.

Two axes of one value, and two dimensions of one operation, are never the same: a device
holds rows or columns of a matrix, not both. Where a rule would make them equal
(queries and keys of one sequence; the two axes of a square matrix within a residual
network), they stay two dimensions, and the operand is moved there if they are divided
differently.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fxflow.core.arrays import dtypes
from fxflow.dataflow.sharding.program import LITERAL, Op, Program

#: In place of a dimension: the axis has length 1.
NONE = -1


@dataclass
class Stored:
    """Values that are stored alike: a parameter, its gradient, its optimizer's state.

    They are combined element by element only. Besides the division of their dimensions
    they may be divided further for storage, and are then gathered where they are used.

    Attributes:
      values: all of them.
      leaves: those among the inputs of the program.
      ndim: the axes that all of them have, counted from the last.
    """

    values: list[int]
    leaves: list[int]
    ndim: int


@dataclass
class Dimensions:
    """The dimensions of a program.

    Attributes:
      program: whose they are.
      count: of the dimensions, which are numbered.
      axes: for each value the dimension of each of its axes, or `NONE`.
      of_ops: for each operation the dimension of each number of its rule.
      divisor: for each dimension the greatest common divisor of its axes' lengths.
      stored: groups of values that are stored alike.
      store_of: for each value its group, if it is in one.
    """

    program: Program
    count: int
    axes: list[tuple[int, ...]]
    of_ops: list[tuple[int, ...]]
    divisor: list[int]
    stored: list[Stored]
    store_of: dict[int, int]


class _Union:
    """Union-find over axes, which refuses to join what is in one place."""

    def __init__(self) -> None:
        self._parent: list[int] = []
        self._places: list[set[int]] = []

    def add(self, place: int) -> int:
        """Returns a new element.

        Args:
          place: a value or an operation; elements of one place stay apart.
        """
        self._parent.append(len(self._parent))
        self._places.append({place})
        return len(self._parent) - 1

    def find(self, i: int) -> int:
        parent = self._parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def join(self, i: int, j: int) -> None:
        """Makes two elements one dimension, unless they share a place."""
        i, j = self.find(i), self.find(j)
        if i == j:
            return
        mine, theirs = self._places[i], self._places[j]
        if len(mine) < len(theirs):
            i, j, mine, theirs = j, i, theirs, mine
        if mine.isdisjoint(theirs):
            self._parent[j] = i
            mine |= theirs
            theirs.clear()


def dimensions_of(program: Program) -> Dimensions:
    """Finds the dimensions of a program.

    Args:
      program: to look at.
    """
    union = _Union()
    first_axis = [
        [union.add(value) for _ in aval.shape]
        for value, aval in enumerate(program.avals)
    ]
    first_of_op = [
        [union.add(-1 - number) for _ in range(op.kind.rule.num_dims)]
        for number, op in enumerate(program.ops)
    ]

    def join(values: Iterable[int], rows: Any, own: Sequence[int]) -> None:
        for value, row in zip(values, rows, strict=True):
            if value == LITERAL:
                continue
            for element, dimension in zip(first_axis[value], row, strict=True):
                if dimension is not None:
                    union.join(element, own[dimension])

    # What sums comes last: `W[d, e]` in `x + x @ W` has two dimensions, and which of
    # them is that of `x` matters less than that the gradient of `W` has the same two.
    for sums in (False, True):
        for op, own in zip(program.ops, first_of_op, strict=True):
            if bool(op.kind.rule.summed) is sums:
                join(op.outputs, op.kind.rule.results, own)
                join(op.inputs, op.kind.rule.operands, own)

    number: dict[int, int] = {}
    divisor: list[int] = []
    axes: list[tuple[int, ...]] = []
    for aval, row in zip(program.avals, first_axis, strict=True):
        found = []
        for length, element in zip(aval.shape, row, strict=True):
            if length in (0, 1):
                found.append(NONE)
                continue
            root = union.find(element)
            if root not in number:
                number[root] = len(number)
                divisor.append(int(length))
            at = number[root]
            divisor[at] = math.gcd(divisor[at], int(length))
            found.append(at)
        axes.append(tuple(found))
    of_ops = [tuple(map(union.find, row)) for row in first_of_op]
    # What could be joined with no axis is divided by none.
    for root in itertools.chain.from_iterable(of_ops):
        if root not in number:
            number[root] = len(number)
            divisor.append(1)
    of_ops = [tuple(number[root] for root in row) for row in of_ops]
    stored, store_of = _stored(program, axes)
    return Dimensions(program, len(number), axes, of_ops, divisor, stored, store_of)


def _stored(
    program: Program, axes: Sequence[Sequence[int]]
) -> tuple[list[Stored], dict[int, int]]:
    """Finds the groups of values that are stored alike and hold an input."""
    union = _Union()
    elements = [union.add(value) for value in range(len(program.avals))]
    for op in program.ops:
        if keeps_storage(op):
            values = [v for v in (*op.inputs, *op.outputs) if v != LITERAL]
            values = [v for v in values if program.avals[v].ndim]
            for value in values[1:]:
                union.join(elements[values[0]], elements[value])
    members: dict[int, list[int]] = defaultdict(list)
    for value, element in enumerate(elements):
        members[union.find(element)].append(value)
    inputs = set(program.inputs)
    found: list[Stored] = []
    store_of: dict[int, int] = {}
    for values in members.values():
        leaves = [v for v in values if v in inputs and is_divisible(program, axes, v)]
        if leaves:
            store_of.update(dict.fromkeys(values, len(found)))
            ndim = min(program.avals[v].ndim for v in values)
            found.append(Stored(values, leaves, ndim))
    return found, store_of


def is_divisible(program: Program, axes: Sequence[Sequence[int]], value: int) -> bool:
    """Returns whether a value has an axis that might be divided."""
    aval = program.avals[value]
    return not dtypes.is_key(aval.dtype) and any(a != NONE for a in axes[value])


def keeps_storage(op: Op) -> bool:
    """Returns whether an operation can run on values as they are stored."""
    kind = op.kind
    return kind.rule.is_pointwise or kind.is_copy
