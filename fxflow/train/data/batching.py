"""Elements joined into batches: stacked, padded to one length, or sorted by length."""

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
from fxflow.train.data.parallel import Pairs
from fxflow.train.data.streams import Source, State

#: What is given for the lengths of a batch: how long, or None for the longest element.
Length = int | None
NDArray = np.ndarray[Any, Any]


def _columns(elements: Sequence[Any], name: str) -> tuple[list[list[NDArray]], Any]:
    """Returns for each leaf its arrays in all elements, and the structure."""
    first, treedef = tree.flatten(elements[0])
    rows = [first]
    for number, element in enumerate(elements[1:], 1):
        leaves, structure = tree.flatten(element)
        if structure != treedef:
            raise DataError(
                f"{name}: element {number} of a batch is not built like element 0: "
                f"{difference(treedef, element) or f'{structure}, not {treedef}'}"
            )
        rows.append(leaves)
    return [[np.asarray(leaf) for leaf in column] for column in zip(*rows)], treedef


def _leaf(elements: Sequence[Any], number: int) -> str:
    path = tree.leaves_with_path(elements[0])[number][0]
    return tree.keystr(path) or "the element"


def stacked(elements: Sequence[Any], name: str = "batch") -> Any:
    """Returns one pytree whose leaves have those of the elements along axis 0.

    Raises:
      DataError: their structures or shapes differ.
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
                f"bucket_by_length join elements of several lengths"
            )
        # Half the time of `np.stack`, which makes a view of each array first.
        joined = np.concatenate(column, axis=None)
        leaves.append(joined.reshape(len(column), *shapes[0]))
    return treedef.unflatten(leaves)


def padded(
    elements: Sequence[Any], pad_value: Any, length: Length, multiple: int
) -> Any:
    """Returns a batch whose leaves are filled up at the end of every axis.

    Args:
      elements: to be joined.
      pad_value: what to fill with; a pytree prefix of an element.
      length: of the first axis; None means that of the longest element.
      multiple: the length is rounded up to a multiple of it.

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
                f"padded_batch: {_leaf(elements, number)} has elements of ranks "
                f"{sorted({array.ndim for array in column})}"
            )
        shape = [max(sizes) for sizes in zip(*(array.shape for array in column))]
        if shape:
            if length is not None and shape[0] > length:
                raise DataError(
                    f"padded_batch: {_leaf(elements, number)} has an element of "
                    f"length {shape[0]}, more than length={length}; cut it in map() "
                    f"or raise the length"
                )
            wanted = shape[0] if length is None else length
            shape[0] = -(-wanted // multiple) * multiple
        batch = np.full((len(column), *shape), fill, np.result_type(*column))
        for row, array in enumerate(column):
            place: Any = (row, *map(slice, array.shape))
            batch[place] = array
        leaves.append(batch)
    return treedef.unflatten(leaves)


def batched(
    pairs: Pairs[Any, Any], size: int, drop: bool, join: Callable[[list[Any]], Any]
) -> Pairs[Any, Any]:
    """Yields every `size` elements joined; the last ones too, unless `drop`."""
    while group := list(itertools.islice(pairs, size)):
        if len(group) == size or not drop:
            yield join([element for element, _ in group]), group[-1][1]


class Buckets(NamedTuple):
    """How `bucket_by_length` sorts elements."""

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
    """Gives a batch whenever a bucket is full, at the end those that are not.

    Elements wait in buckets, so the position is that of the source before the oldest
    one that waits, and a number whose bit `i` says whether the `i`-th element after it
    was given out already. A resumed run reads them again.
    """

    def start(epoch: int) -> State:
        return {"given": 0, "source": source.start(epoch)}

    def run(state: State) -> Pairs[Any, State]:
        last = state["source"]
        bits = state["given"]
        given = {i for i in range(bits.bit_length()) if bits >> i & 1}
        before: deque[State] = deque()  # the positions before those since `offset`
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
