"""Joins elements into batches: stacked, padded, ragged, or grouped by length."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.core import tree
from fxflow.core.tree.paths import difference
from fxflow.errors import DataError
from fxflow.ragged.array import made
from fxflow.train.data.parallel import Pairs
from fxflow.train.data.streams import Source, State

#: The length of a batch's elements; None for that of the longest element.
Length = int | None
NDArray = np.ndarray[Any, Any]


def _columns(elements: Sequence[Any], name: str) -> tuple[list[list[NDArray]], Any]:
    """Returns each leaf's arrays in all elements, and the structure."""
    first, treedef = tree.flatten(elements[0])
    rows = [first]
    for number, element in enumerate(elements[1:], 1):
        leaves, structure = tree.flatten(element)
        if structure != treedef:
            raise DataError(
                f"{name}: element {number} of a batch differs from element 0: "
                f"{difference(treedef, element) or f'{structure}, not {treedef}'}"
            )
        rows.append(leaves)
    return [[np.asarray(leaf) for leaf in column] for column in zip(*rows)], treedef


def _leaf(elements: Sequence[Any], number: int) -> str:
    path = tree.leaves_with_path(elements[0])[number][0]
    return tree.keystr(path) or "the element"


def stacked(elements: Sequence[Any], name: str = "batch") -> Any:
    """Returns one pytree with the elements' leaves stacked along axis 0.

    Raises:
      DataError: structures or shapes differ.
    """
    columns, treedef = _columns(elements, name)
    leaves = []
    for number, column in enumerate(columns):
        shapes = [array.shape for array in column]
        if len(set(shapes)) > 1:
            other = next(i for i, shape in enumerate(shapes) if shape != shapes[0])
            raise DataError(
                f"{name}: {_leaf(elements, number)} has shape {shapes[0]} in element 0 "
                f"of a batch and {shapes[other]} in element {other}; padded_batch and "
                f"bucket_by_length join elements of different lengths"
            )
        # This takes half the time of `np.stack`, which makes a view of each array.
        joined = np.concatenate(column, axis=None)
        leaves.append(joined.reshape(len(column), *shapes[0]))
    return treedef.unflatten(leaves)


def padded(
    elements: Sequence[Any], pad_value: Any, length: Length, multiple: int
) -> Any:
    """Returns a batch whose leaves are padded at the end of every axis.

    Args:
      elements: the elements to join.
      pad_value: the padding; a pytree prefix of an element.
      length: the length of the first axis; None means that of the longest element.
      multiple: round the length up to a multiple of this.

    Raises:
      DataError: ranks differ, or an element is longer than `length`.
    """
    columns, treedef = _columns(elements, "padded_batch")
    fills = tree.broadcast_prefix(
        pad_value, elements[0], name="padded_batch: pad_value"
    )
    leaves = []
    for number, (column, fill) in enumerate(zip(columns, fills)):
        if len({array.ndim for array in column}) > 1:
            raise DataError(
                f"padded_batch: {_leaf(elements, number)} has different ranks in a "
                f"batch: {sorted({array.ndim for array in column})}"
            )
        shape = [max(sizes) for sizes in zip(*(array.shape for array in column))]
        if shape:
            if length is not None and shape[0] > length:
                raise DataError(
                    f"padded_batch: {_leaf(elements, number)} has an element of "
                    f"length {shape[0]}, more than length={length}; shorten it in "
                    f"map() or increase the length"
                )
            wanted = shape[0] if length is None else length
            shape[0] = -(-wanted // multiple) * multiple
        batch = np.full((len(column), *shape), fill, np.result_type(*column))
        for row, array in enumerate(column):
            place: Any = (row, *map(slice, array.shape))
            batch[place] = array
        leaves.append(batch)
    return treedef.unflatten(leaves)


def joined_rows(elements: Sequence[Any], size: int, capacity: int) -> Any:
    """Returns a batch whose leaves are ragged arrays of `size` rows.

    Leaves without axes are stacked; rows that no element fills are empty, or 0.

    Raises:
      DataError: structures differ, or shapes beyond the first axis.
    """
    columns, treedef = _columns(elements, "ragged_batch")
    leaves: list[Any] = []
    for number, column in enumerate(columns):
        first, *others = (array.shape for array in column)
        wrong = [s for s in others if s[1:] != first[1:] or len(s) != len(first)]
        if wrong:
            raise DataError(
                f"ragged_batch: {_leaf(elements, number)} has shape {first} in element "
                f"0 of a batch and {wrong[0]} in another: only the first axis may "
                "differ"
            )
        dtype = np.result_type(*column)
        if not first:
            rows = np.zeros(size, dtype)
            rows[: len(column)] = column
            leaves.append(rows)
            continue
        values = np.zeros((capacity, *first[1:]), dtype)
        joined = np.concatenate(column)
        values[: len(joined)] = joined
        lengths = np.zeros(size, np.int32)
        lengths[: len(column)] = [len(array) for array in column]
        leaves.append(made(values, lengths))
    return treedef.unflatten(leaves)


def filled(
    pairs: Pairs[Any, Any], size: int, capacity: int, drop: bool
) -> Pairs[Any, Any]:
    """Yields ragged batches of as many elements as fit; see `Dataset.ragged_batch`."""
    group: list[Any] = []
    room: list[int] = []
    then: Any = None
    for element, state in pairs:
        lengths = [np.shape(leaf)[0] for leaf in tree.leaves(element) if np.ndim(leaf)]
        if max(lengths, default=0) > capacity:
            raise DataError(
                f"ragged_batch: an element has {max(lengths)} values, more than "
                f"capacity={capacity}; shorten it in map() or increase the capacity"
            )
        fits = len(group) < size and all(
            n <= left for n, left in zip(lengths, room, strict=False)
        )
        if group and not fits:
            yield joined_rows(group, size, capacity), then
            group = []
        if not group:
            room = [capacity] * len(lengths)
        group.append(element)
        room = [left - n for n, left in zip(lengths, room, strict=False)]
        then = state
    if group and not drop:
        yield joined_rows(group, size, capacity), then


def batched(
    pairs: Pairs[Any, Any], size: int, drop: bool, join: Callable[[list[Any]], Any]
) -> Pairs[Any, Any]:
    """Yields batches of `size` elements; `drop` drops an incomplete last batch."""
    while group := list(itertools.islice(pairs, size)):
        if len(group) == size or not drop:
            yield join([element for element, _ in group]), group[-1][1]


class Buckets(NamedTuple):
    """The arguments of `bucket_by_length`."""

    length: Callable[[Any], int]
    boundaries: tuple[int, ...]
    sizes: tuple[int, ...]
    pad_value: Any
    pad_to_boundary: bool
    drop: bool

    def join(self, elements: list[Any], bucket: int) -> Any:
        """Returns a batch of elements of one bucket."""
        inner = self.pad_to_boundary and bucket < len(self.boundaries)
        return padded(
            elements, self.pad_value, self.boundaries[bucket] if inner else None, 1
        )


def bucketed(source: Source, buckets: Buckets) -> Source:
    """Yields a batch whenever a bucket is full, and the other buckets at the end.

    Elements wait in buckets. So the position is the source's before the oldest waiting
    element, and a number whose bit `i` says whether the `i`-th element after that
    position has already been in a batch. A resumed run reads these elements again.
    """

    def start(epoch: int) -> State:
        return {"given": 0, "source": source.start(epoch)}

    def run(state: State) -> Pairs[Any, State]:
        last = state["source"]
        bits = state["given"]
        given = {i for i in range(bits.bit_length()) if bits >> i & 1}
        before: deque[State] = deque()  # positions before elements `offset`, …
        offset = 0
        waiting: list[list[tuple[int, Any]]] = [[] for _ in buckets.sizes]

        def after(numbers: Iterable[int]) -> State:
            nonlocal offset
            given.update(numbers)
            while before and offset in given:
                given.discard(offset)
                before.popleft()
                offset += 1
            bits = sum(1 << number - offset for number in given)
            return {"given": bits, "source": before[0] if before else last}

        def join(bucket: int) -> tuple[Any, State]:
            group, waiting[bucket] = waiting[bucket], []
            batch = buckets.join([element for _, element in group], bucket)
            return batch, after(number for number, _ in group)

        for number, (element, then) in enumerate(source.run(last)):
            before.append(last)
            last = then
            if number in given:
                after(())
                continue
            bucket = bisect_left(buckets.boundaries, buckets.length(element))
            waiting[bucket].append((number, element))
            if len(waiting[bucket]) == buckets.sizes[bucket]:
                yield join(bucket)
        for bucket, group in enumerate(waiting):
            if group and not buckets.drop:
                yield join(bucket)

    return Source(start, run)
