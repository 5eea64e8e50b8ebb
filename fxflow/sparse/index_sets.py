"""Index sets: for each element of an array the inputs that it depends on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fxflow.core.arrays import Shape


class Dependence:
    """Index sets: for each element of an array the inputs that it depends on.

    Attributes:
      shape: shape of the array.
      starts: int64[elements + 1]: where the set of each element begins in `sources`.
      sources: int64[entries]: the inputs, ascending within a set.
      count: the number of inputs.
    """

    __slots__ = ("count", "shape", "sources", "starts")

    def __init__(
        self, shape: Shape, starts: np.ndarray, sources: np.ndarray, count: int
    ) -> None:
        self.shape: Shape = shape
        self.starts: np.ndarray[Any, Any] = starts
        self.sources: np.ndarray[Any, Any] = sources
        self.count: int = count

    @classmethod
    def each(cls, shape: Shape, first: int, count: int) -> Dependence:
        """Returns that of inputs themselves, which are numbered from `first`."""
        size = math.prod(shape)
        starts = np.arange(size + 1, dtype=np.int64)
        return cls(shape, starts, starts[:-1] + first, count)

    @property
    def ids(self) -> np.ndarray:
        """The numbers of its elements, int64 of its shape."""
        return np.arange(math.prod(self.shape), dtype=np.int64).reshape(self.shape)

    def coords(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns the element and the input of each entry."""
        rows = np.arange(len(self.starts) - 1, dtype=np.int64)
        return np.repeat(rows, np.diff(self.starts)), self.sources

    def reshaped(self, shape: Shape) -> Dependence:
        """Returns the same sets for another shape."""
        return Dependence(shape, self.starts, self.sources, self.count)

    def taken(self, ids: np.ndarray) -> Dependence:
        """Returns the sets of the elements `ids`, of their shape; -1 is empty."""
        flat = ids.reshape(-1)
        inside = flat >= 0
        lengths = np.diff(self.starts)
        safe = np.where(inside, flat, 0)
        if not lengths.size:
            counts = np.zeros(flat.shape, np.int64)
        else:
            counts = np.where(inside, lengths[safe], 0)
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        if lengths.size:
            first = np.repeat(self.starts[safe] - starts[:-1], counts)
            sources = self.sources[first + np.arange(starts[-1])]
        else:
            sources = self.sources[:0]
        return Dependence(ids.shape, starts, sources, self.count)

    def joined(
        self, targets: np.ndarray, origins: np.ndarray, shape: Shape
    ) -> Dependence:
        """Returns sets for another shape: unions of the sets of the elements.

        Args:
          targets: element k of the new shape contains the set of element `origins[k]`.
          origins: -1 is empty.
          shape: the new one.
        """
        part = self.taken(origins.reshape(-1))
        rows = np.repeat(targets.reshape(-1), np.diff(part.starts))
        return from_coords(rows, part.sources, shape, self.count)

    def pooled(self, axes: Sequence[int]) -> Dependence:
        """Returns the unions along axes, which have length 1 then."""
        if not axes:
            return self
        shape = tuple(1 if d in axes else n for d, n in enumerate(self.shape))
        if not math.prod(self.shape):
            return empty(shape, self.count)
        targets = np.arange(math.prod(shape), dtype=np.int64).reshape(shape)
        targets = np.broadcast_to(targets, self.shape)
        return self.joined(targets, self.ids, shape)

    def spread(self, shape: Shape) -> Dependence:
        """Returns the sets broadcast to a shape, as NumPy does it."""
        if shape == self.shape:
            return self
        return self.taken(np.broadcast_to(self.ids, shape))

    def __or__(self, other: Dependence) -> Dependence:
        """The unions, element by element."""
        if other is self or same(self, other):
            return self
        if not len(other.sources):
            return self
        if not len(self.sources):
            return other.reshaped(self.shape)
        a, b = self.coords(), other.coords()
        rows, sources = (np.concatenate(parts) for parts in zip(a, b, strict=True))
        return from_coords(rows, sources, self.shape, self.count)


def same(a: Dependence, b: Dependence) -> bool:
    """Returns whether two arrays have the same index sets."""
    return (
        len(a.sources) == len(b.sources)
        and np.array_equal(a.starts, b.starts)
        and np.array_equal(a.sources, b.sources)
    )


def empty(shape: Shape, count: int) -> Dependence:
    """Returns empty index sets for a shape."""
    size = math.prod(shape)
    return Dependence(shape, np.zeros(size + 1, np.int64), np.zeros(0, np.int64), count)


def from_coords(
    rows: np.ndarray, sources: np.ndarray, shape: Shape, count: int
) -> Dependence:
    """Returns the index sets of entries, which may repeat.

    Args:
      rows: the element of each entry.
      sources: the input of each entry.
      shape: shape of the array.
      count: the number of inputs.
    """
    size = math.prod(shape)
    # Mostly a few ascending runs, which a stable sort merges.
    keys = np.sort(rows * count + sources, kind="stable")
    if len(keys):
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    rows, sources = np.divmod(keys, max(count, 1))
    starts = np.searchsorted(rows, np.arange(size + 1)).astype(np.int64)
    return Dependence(shape, starts, sources, count)


#: The index sets of an operand, or None if it does not depend on the inputs.
Given: TypeAlias = Dependence | None


def union(parts: Iterable[Given]) -> Given:
    """Returns the unions of those that there are."""
    total: Given = None
    for part in parts:
        if part is not None:
            total = part if total is None else total | part
    return total
