"""Elements by number: the implementation of `IndexedDataset`.

Numbers continue from epoch to epoch: with `n` elements, number `e * n + i` is element
`i` of epoch `e`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow.core import tree
from fxflow.train.data.batching import stacked
from fxflow.train.data.parallel import Pairs, note
from fxflow.train.data.streams import Source, generator

NDArray = np.ndarray[Any, Any]


class Numbered(NamedTuple):
    """Elements that have numbers.

    Attributes:
      length: the length of an epoch; infinite if it never ends.
      at: returns the element of a number.
      take: returns the elements of several numbers, stacked; None means to call `at`
        for each.
    """

    length: float
    at: Callable[[int], Any]
    take: Callable[[NDArray], Any] | None = None

    def stack(self, numbers: NDArray) -> Any:
        """Returns the elements of several numbers, stacked."""
        if self.take is not None:
            return self.take(numbers)
        return stacked([self.at(number) for number in numbers.tolist()])

    def through(self, length: float, numbers: Callable[[Any], Any]) -> Numbered:
        """Returns these elements, numbered differently.

        Args:
          length: the new length of an epoch.
          numbers: maps a new number, or an array of them, to old numbers.
        """

        def at(number: int) -> Any:
            return self.at(int(numbers(number)))

        take = self.take
        if take is None:
            return Numbered(length, at)
        return Numbered(length, at, lambda wanted: take(numbers(wanted)))

    def source(self, at: Callable[[int], Any]) -> Source:
        """Returns a source of `at` of each number."""

        def start(epoch: int) -> Any:
            return {"epoch": epoch, "index": 0}

        def run(state: Any) -> Pairs[Any, Any]:
            epoch, index = state["epoch"], state["index"]
            first = 0 if math.isinf(self.length) else epoch * int(self.length)
            while index < self.length:
                index += 1
                yield at(first + index - 1), {"epoch": epoch, "index": index}

        return Source(start, run)


def of_arrays(arrays: Any, length: int) -> Numbered:
    """Returns the rows of a pytree's leaves."""
    leaves, treedef = tree.flatten(arrays)

    def take(numbers: Any) -> Any:  # one row, or several
        rows = numbers % length
        return treedef.unflatten([leaf[rows] for leaf in leaves])

    return Numbered(length, take, take)


def shuffled(source: Numbered, seed: int) -> Numbered:
    """Shuffles each epoch in a different order."""
    length = int(source.length)

    @functools.lru_cache(maxsize=2)  # the numbers of a batch may be in two epochs
    def order(epoch: int) -> NDArray:
        return generator(seed, epoch).permutation(length)

    def numbers(wanted: Any) -> Any:
        if isinstance(wanted, int):
            epoch, index = divmod(wanted, length)
            return epoch * length + order(epoch).item(index)
        found = np.empty_like(wanted)
        epochs = wanted // length
        for epoch in np.unique(epochs).tolist():
            mask = epochs == epoch
            found[mask] = epoch * length + order(epoch)[wanted[mask] - epoch * length]
        return found

    return source.through(length, numbers)


def cut(source: Numbered, first: int, step: int, length: float) -> Numbered:
    """Returns `length` elements of each epoch: `first`, `first + step`, …."""
    whole = 0 if math.isinf(source.length) else int(source.length)

    def numbers(wanted: Any) -> Any:
        if math.isinf(length):
            return first + step * wanted
        epoch, index = divmod(wanted, int(length))
        return epoch * whole + first + step * index

    return source.through(length, numbers)


def repeated(source: Numbered, count: int | None) -> Numbered:
    """Makes several epochs one; the numbers do not change."""
    length = math.inf if count is None else source.length * count
    return source._replace(length=length if source.length else 0)


def batched(source: Numbered, size: int, drop: bool) -> Numbered:
    """Stacks every `size` consecutive elements."""
    length = source.length
    if math.isinf(length):
        batches = math.inf
    else:
        batches = length // size if drop else -(-length // size)

    def at(number: int) -> Any:
        epoch, first, last = 0, number * size, math.inf
        if not math.isinf(length):
            epoch, index = divmod(number, int(batches))
            first = epoch * int(length) + index * size
            last = (epoch + 1) * int(length)
        return source.stack(np.arange(first, min(first + size, last), dtype=np.int64))

    return Numbered(batches, at)


def mapped(
    source: Numbered,
    arguments: Callable[[int], tuple[Any, ...]],
    function: Callable[..., Any],
    label: Callable[[int], str],
) -> Numbered:
    """Applies a function; its errors get a note that names the element."""

    def at(number: int) -> Any:
        try:
            return function(*arguments(number))
        except Exception as error:
            error.add_note(note(label(number)))
            raise

    return Numbered(source.length, at)
