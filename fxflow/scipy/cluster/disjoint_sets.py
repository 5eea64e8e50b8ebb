"""Sets without common elements, merged step by step on the host."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from fxflow.errors import ArgumentError


class DisjointSet:
    """Sets without common elements, each element in one of them.

    It is an object of the host: elements are any hashable ones, not traced arrays. A
    step takes nearly constant time: the smaller of two sets is put under the larger.

    Args:
      elements: the first elements, each in a set of its own; None for an empty object.

    Attributes:
      n_subsets: the number of sets.

    Example:
      >>> sets = DisjointSet([1, 2, 3, "a"])
      >>> sets.merge(1, 2), sets.connected(2, 1), sets.n_subsets
      (True, True, 3)
      >>> sets.subsets()
      [{1, 2}, {3}, {'a'}]

    Source: `scipy.cluster.hierarchy.DisjointSet`; R. E. Tarjan, Efficiency of a Good
    But Not Linear Set Union Algorithm, 1975.
    """

    n_subsets: int

    def __init__(self, elements: Iterable[Hashable] | None = None) -> None:
        self.n_subsets = 0
        #: The element above each one; a root is above itself.
        self._above: dict[Any, Any] = {}
        #: Elements of the set of a root, in the order in which they came.
        self._members: dict[Any, list[Any]] = {}
        self._order: dict[Any, int] = {}
        for x in () if elements is None else elements:
            self.add(x)

    def __iter__(self) -> Iterator[Any]:
        """Iterates over the elements, in the order in which they were added."""
        return iter(self._above)

    def __len__(self) -> int:
        """Returns how many elements there are."""
        return len(self._above)

    def __contains__(self, x: Any) -> bool:
        """Returns whether there is an element."""
        return x in self._above

    def __getitem__(self, x: Any) -> Any:
        """Returns the element that stands for a set.

        Raises:
          KeyError: there is no such element.
        """
        if x not in self._above:
            raise KeyError(x)
        path = []
        while self._above[x] != x:
            path.append(x)
            x = self._above[x]
        for y in path:
            self._above[y] = x
        return x

    def add(self, x: Hashable) -> None:
        """Adds an element in a set of its own; one that is there stays where it is.

        Args:
          x: the element.

        Raises:
          ArgumentError: it has no hash.
        """
        try:
            hash(x)
        except TypeError:
            raise ArgumentError(
                f"DisjointSet.add: an element must have a hash, got {x!r}"
            ) from None
        if x in self._above:
            return
        self._order[x] = len(self._above)
        self._above[x] = x
        self._members[x] = [x]
        self.n_subsets += 1

    def merge(self, x: Any, y: Any) -> bool:
        """Merges the sets of two elements.

        Args:
          x: an element.
          y: another one.

        Returns:
          Whether they were in different sets.

        Raises:
          KeyError: there is no such element.
        """
        first, second = self[x], self[y]
        if first == second:
            return False
        sizes = [len(self._members[r]) for r in (first, second)]
        # The set that came first stays where sizes are equal.
        late = self._order[first] > self._order[second]
        if sizes[0] < sizes[1] or (sizes[0] == sizes[1] and late):
            first, second = second, first
        self._above[second] = first
        self._members[first] += self._members.pop(second)
        self.n_subsets -= 1
        return True

    def connected(self, x: Any, y: Any) -> bool:
        """Returns whether two elements are in one set.

        Args:
          x: an element.
          y: another one.

        Raises:
          KeyError: there is no such element.
        """
        return bool(self[x] == self[y])

    def subset(self, x: Any) -> set[Any]:
        """Returns the set of an element.

        Args:
          x: the element.

        Raises:
          KeyError: there is no such element.
        """
        return set(self._members[self[x]])

    def subset_size(self, x: Any) -> int:
        """Returns how many elements the set of an element has.

        Args:
          x: the element.

        Raises:
          KeyError: there is no such element.
        """
        return len(self._members[self[x]])

    def subsets(self) -> list[set[Any]]:
        """Returns all sets, in the order in which their first elements were added."""
        roots = dict.fromkeys(self[x] for x in self)
        return [set(self._members[root]) for root in roots]
