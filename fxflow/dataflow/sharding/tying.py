"""Tying: what repeats in a program, such as its layers, is decided once.

Two dimensions are alike if the same operations use them in the same places, together
with dimensions that are alike. That is colour refinement, as for isomorphism of graphs:
each dimension has a hash of its uses, which takes in the hashes of its neighbours a few
times. Dimensions of equal hashes are tied: one decision, whose cost counts as often as
it is made. The time to solve does not grow with the number of equal layers then.
"""

from __future__ import annotations

from collections import defaultdict

from fxflow.dataflow.sharding.dimensions import NONE, Dimensions
from fxflow.dataflow.sharding.program import LITERAL

#: How far neighbours are looked at. The dimensions within a layer are used together
#: with those around it, which all layers share.
ROUNDS = 3

_MASK = (1 << 64) - 1


def tied(dims: Dimensions) -> list[int]:
    """Returns for each dimension, and then each group of stored values, its decision.

    Args:
      dims: of a program.

    Returns:
      A list of numbers: equal ones are decided together. Those of dimensions are the
      number of a dimension; those of groups follow.
    """
    program = dims.program
    count = dims.count + len(dims.stored)
    labels = [0] * count
    for i, divisor in enumerate(dims.divisor):
        labels[i] = hash(("dimension", divisor))
    for i, store in enumerate(dims.stored):
        types = sorted(str(program.avals[v]) for v in store.leaves)
        labels[dims.count + i] = hash(("stored", *types))
    together = _together(dims)
    for _ in range(ROUNDS):
        sums = [0] * count
        for key, members in together:
            known = hash((key, *[labels[m] for m in members]))
            for position, member in enumerate(members):
                sums[member] = (sums[member] + hash((known, position))) & _MASK
        labels = [hash(pair) for pair in zip(labels, sums, strict=True)]
    classes: dict[int, list[int]] = defaultdict(list)
    for i, label in enumerate(labels):
        classes[label].append(i)
    decision = list(range(count))
    for alike in classes.values():
        for member in alike:
            decision[member] = alike[0]
    # What is used together is decided apart: a mesh axis divides only one of the two.
    apart: set[int] = set()
    for _, members in together:
        named = [decision[m] for m in dict.fromkeys(members)]
        if len(set(named)) < len(named):
            apart.update(d for d in named if named.count(d) > 1)
    return [i if d in apart else d for i, d in enumerate(decision)]


def _together(dims: Dimensions) -> list[tuple[int, tuple[int, ...]]]:
    """Returns for each operation what it does and what it uses, in order."""
    program = dims.program
    found: list[tuple[int, tuple[int, ...]]] = []
    for op, own in zip(program.ops, dims.of_ops, strict=True):
        uses = list(own)
        for value in (*op.inputs, *op.outputs):
            if value == LITERAL:
                continue
            uses += [axis for axis in dims.axes[value] if axis != NONE]
            if value in dims.store_of:
                uses.append(dims.count + dims.store_of[value])
        found.append((hash((op.kind.number, op.runs)), tuple(uses)))
    for ends, word in ((program.inputs, "in"), (program.outputs, "out")):
        for value in ends:
            if value != LITERAL:
                axes = tuple(a for a in dims.axes[value] if a != NONE)
                found.append((hash((word, str(program.avals[value]))), axes))
    return found
