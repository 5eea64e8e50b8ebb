"""Datasets: what gives elements, from a position that can be saved.

A dataset is a description: nothing is read before it is iterated. Its methods return
further datasets. There are two kinds:

- An `IndexedDataset` finds an element by its number. Shuffling, batching, repeating and
  sharding it only compute with numbers, and a batch is gathered at once.
- Any other `Dataset` is read from its beginning, or from a saved position.

What they compute stands in `numbers`, `streams`, `batching` and `workers`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

from fxflow.core.source import name_of
from fxflow.devices import process_count, process_index
from fxflow.errors import ArgumentError, DataError, OutOfRangeError
from fxflow.lax.axes import integer, natural, number
from fxflow.train.data import batching, numbers, parallel, streams
from fxflow.train.data.batching import Buckets
from fxflow.train.data.numbers import Numbered
from fxflow.train.data.parallel import Pairs
from fxflow.train.data.streams import Source, State
from fxflow.train.data.transfer import transferred

T = TypeVar("T")
U = TypeVar("U")

#: Seconds that a source or a function may take before it counts as stuck.
TIMEOUT = 300.0


def _seed(name: str, seed: Any) -> int:
    return natural(name, "seed", seed, 0)


def _seconds(name: str, timeout: Any) -> float:
    seconds = number(name, "timeout", timeout)
    if not seconds > 0:
        raise ArgumentError(f"{name}: timeout must be positive seconds, got {seconds}")
    return seconds


def require_callable(name: str, function: Any) -> None:
    """Raises ArgumentError unless `function` is one; `name` is the caller's."""
    if not callable(function):
        raise ArgumentError(f"{name}: expected a function, got {function!r}")


def _alike(first: State, state: State) -> bool:
    """Whether a position has the keys of another; None stands for anything."""
    if isinstance(first, dict):
        return (
            isinstance(state, dict)
            and first.keys() == state.keys()
            and all(_alike(first[key], state[key]) for key in first)
        )
    if isinstance(first, list):
        return (
            isinstance(state, (list, tuple))
            and len(first) == len(state)
            and all(map(_alike, first, state))
        )
    return first is None or not isinstance(state, (dict, list, tuple))


class DataIterator(Iterator[T]):
    """The elements of a dataset after a position.

    To drop it, to `close` it, or to leave its `with` block ends the threads and
    processes that work for it.
    """

    def __init__(self, source: Source, state: State) -> None:
        self._pairs = source.run(state)
        self._state = state

    @property
    def state(self) -> State:
        """The position after the last element given: a pytree for `iterate(state)`."""
        return self._state

    def __next__(self) -> T:
        element: T
        element, self._state = next(self._pairs)
        return element

    def close(self) -> None:
        """Ends what works for this iterator; it gives nothing more."""
        self._pairs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Dataset(Generic[T]):
    """Elements in order, made by the functions and methods of `fxflow.train.data`.

    Iterating gives NumPy data, each time from the first element of epoch 0::

        for batch in dataset: ...

    To resume, keep the position beside the parameters::

        batches = dataset.iterate(state)  # state=None: from the beginning
        for batch in batches:
            ...
            checkpoint(params, batches.state)

    Example:
      >>> images = np.arange(10.0).reshape(5, 2)
      >>> dataset = train.data.arrays({"x": images}).shuffle(seed=0).batch(2)
      >>> batches = dataset.iterate()
      >>> next(batches)["x"].shape, batches.state
      ((2, 2), {'epoch': 0, 'index': 1})
      >>> resumed = dataset.iterate(batches.state)
      >>> all((a["x"] == b["x"]).all() for a, b in zip(batches, resumed))
      True
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    # -- reading -----------------------------------------------------------------------

    def __iter__(self) -> DataIterator[T]:
        return self.iterate()

    def iterate(self, state: State = None, *, epoch: int = 0) -> DataIterator[T]:
        """Gives the elements from a position on.

        Args:
          state: `DataIterator.state` of a dataset made in the same way; None means the
            beginning.
          epoch: which epoch to begin with; what is shuffled has another order in each.

        Returns:
          An iterator that knows its position.

        Raises:
          DataError: `state` is the position of a dataset made in another way.
        """
        first = self.source.start(natural("iterate", "epoch", epoch, 0))
        if state is None:
            state = first
        elif not _alike(first, state):
            raise DataError(
                "iterate: this is not a position of this dataset, whose positions "
                f"look like {first}: {state!r}"
            )
        return DataIterator(self.source, state)

    # -- element by element ------------------------------------------------------------

    def _items(self) -> Source:
        """Returns what `map` draws: cheap where an element is found by its number."""
        return streams.numbered(self.source)

    def _element(self, item: Any) -> T:
        element: T = item[2]
        return element

    def _place(self, item: Any) -> tuple[int, ...]:
        """Where an element is, for the random numbers that belong to it."""
        epoch, number, _ = item
        return epoch, number

    def _number(self, state: State) -> int:
        """Returns the number in its epoch of the element whose state is given."""
        number: int = state["number"] - 1
        return number

    def map(
        self,
        function: Callable[..., U],
        *,
        seed: int | None = None,
        workers: int = 0,
        processes: bool = False,
        timeout: float = TIMEOUT,
    ) -> Dataset[U]:
        """Applies a function to each element.

        Args:
          function: called with an element; with a `seed`, with a
            `numpy.random.Generator` too.
          seed: of generators that depend on the seed and the element's place alone, so
            that a resumed run draws the same numbers. At least 0.
          workers: how many threads compute ahead; 0 means the thread that iterates. The
            order of elements stays.
          processes: whether each of them has a process of its own compute, for
            functions that hold Python's lock. Function and elements are pickled then,
            and the program's main module must be guarded by
            `if __name__ == "__main__":`.
          timeout: seconds that an element may take after it is waited for.

        Returns:
          A dataset; of an indexed one, without workers, an indexed one.

        Raises:
          DataTimeoutError: on reading, an element took too long.
          DataError: on reading, a process ended.
          Exception: on reading, whatever `function` raises, with a note that names the
            element.

        Example:
          >>> rows = train.data.arrays(np.arange(4))
          >>> list(rows.map(lambda x: int(x) ** 2, workers=2))
          [0, 1, 4, 9]
        """
        require_callable("map", function)
        natural("map", "workers", workers, 0)
        timeout = _seconds("map", timeout)
        if seed is not None:
            _seed("map", seed)
        if processes and not workers:
            raise ArgumentError("map: processes=True needs workers=, how many")

        def arguments(item: Any) -> tuple[Any, ...]:
            element = self._element(item)
            if seed is None:
                return (element,)
            return element, streams.generator(seed, *self._place(item))

        name = name_of(function)
        return self._mapped(function, arguments, name, workers, processes, timeout)

    def _mapped(
        self,
        function: Callable[..., U],
        arguments: Callable[[Any], tuple[Any, ...]],
        name: str,
        workers: int,
        processes: bool,
        timeout: float,
    ) -> Dataset[U]:
        def label(state: State) -> str:
            return f"element {self._number(state)} of map({name})"

        def change(items: Pairs[Any, State]) -> Pairs[Any, State]:
            if not workers:
                return streams.mapped(items, arguments, function, label)
            return parallel.mapped(
                items,
                arguments,
                function,
                workers=workers,
                processes=processes,
                timeout=timeout,
                label=label,
            )

        return Dataset(self._items().then(change))

    def flat_map(self, function: Callable[[T], Iterable[U]]) -> Dataset[U]:
        """Gives everything that a function makes of each element.

        Args:
          function: called with an element; gives an iterable, the same one if it is
            called again (a resumed run does).

        Returns:
          A dataset of what is in the iterables.

        Example:
          >>> pairs = lambda word: zip(word, word[1:])
          >>> list(train.data.indexed(["ab", "cde"]).flat_map(pairs))
          [('a', 'b'), ('c', 'd'), ('d', 'e')]
        """
        require_callable("flat_map", function)
        return Dataset(streams.flattened(self.source, function))

    def filter(self, predicate: Callable[[T], Any]) -> Dataset[T]:
        """Keeps the elements of which a function is true.

        Args:
          predicate: called with an element.

        Returns:
          A dataset that is read in order: its length is not known before.

        Example:
          >>> list(train.data.indexed(range(7)).filter(lambda x: x % 3 == 0))
          [0, 3, 6]
        """
        require_callable("filter", predicate)
        return Dataset(streams.filtered(self.source, predicate))

    # -- which elements, in which order ------------------------------------------------

    def shuffle(self, seed: int, *, buffer: int | None = None) -> Dataset[T]:
        """Shuffles the elements, each epoch in another order.

        Args:
          seed: of the orders. At least 0.
          buffer: how many consecutive elements are held and shuffled among themselves.
            None shuffles a whole indexed dataset and holds nothing.

        Returns:
          A dataset of the same elements.

        Raises:
          ArgumentError: the dataset has no length and no `buffer` is given.

        Example:
          >>> list(train.data.indexed(range(6)).shuffle(seed=1).repeat(2).take(8))
          [0, 5, 4, 1, 3, 2, 0, 3]
        """
        _seed("shuffle", seed)
        if buffer is None:
            raise ArgumentError(
                "shuffle: this dataset is read in order and has no length, so it needs "
                "buffer=, how many elements to hold and shuffle; or shuffle it before "
                "filter, flat_map, or map with workers"
            )
        buffer = natural("shuffle", "buffer", buffer)
        return Dataset(streams.shuffled(self.source, seed, buffer))

    def repeat(self, count: int | None = None) -> Dataset[T]:
        """Reads the dataset several times.

        Args:
          count: how many epochs; None means without end.

        Returns:
          A dataset whose epoch is that many of this one.

        Example:
          >>> list(train.data.indexed("ab").repeat(2))
          ['a', 'b', 'a', 'b']
        """
        if count is not None:
            count = natural("repeat", "count", count, 0)
        return Dataset(streams.repeated(self.source, count))

    def take(self, count: int) -> Dataset[T]:
        """Keeps the first elements of each epoch.

        Args:
          count: how many at most.

        Returns:
          A dataset of them.

        Example:
          >>> list(train.data.indexed(range(9)).take(2))
          [0, 1]
        """
        count = natural("take", "count", count, 0)
        return Dataset(streams.cut(self.source, 0, count))

    def skip(self, count: int) -> Dataset[T]:
        """Leaves out the first elements of each epoch.

        Args:
          count: how many at most.

        Returns:
          A dataset of the others.

        Example:
          >>> list(train.data.indexed(range(5)).skip(3))
          [3, 4]
        """
        count = natural("skip", "count", count, 0)
        return Dataset(streams.cut(self.source, count, None))

    def shard(
        self,
        index: int | None = None,
        count: int | None = None,
        *,
        drop_remainder: bool = True,
    ) -> Dataset[T]:
        """Keeps every `count`-th element: the part of one process.

        Args:
          index: of the part, from 0; None means `fxflow.process_index()`.
          count: of parts; None means `fxflow.process_count()`.
          drop_remainder: whether to leave out the last elements when they do not make
            one for each part, so that all parts are equally long. Processes that act
            together would wait for the one that has no more.

        Returns:
          A dataset of the part.

        Raises:
          ArgumentError: `index` is not below `count`.

        Example:
          >>> list(train.data.indexed(range(7)).shard(1, 3))
          [1, 4]
        """
        return self._sharded(*_part(index, count), drop_remainder)

    def _sharded(self, index: int, count: int, drop: bool) -> Dataset[T]:
        return Dataset(streams.strided(self.source, index, count, drop))

    # -- batches -----------------------------------------------------------------------

    def batch(self, size: int, *, drop_remainder: bool = False) -> Dataset[Any]:
        """Joins elements along a new first axis.

        Args:
          size: how many.
          drop_remainder: whether to leave out the last elements when they are fewer. A
            batch of another size makes a jitted step compile again.

        Returns:
          A dataset of pytrees of `[size, …]` NumPy arrays.

        Raises:
          DataError: on reading, the elements have several shapes or structures.

        Example:
          >>> [b.tolist() for b in train.data.indexed(range(5)).batch(2)]
          [[0, 1], [2, 3], [4]]
        """
        return self._batched(natural("batch", "size", size), bool(drop_remainder))

    def _batched(self, size: int, drop: bool) -> Dataset[Any]:
        return self._joined(size, drop, batching.stacked)

    def _joined(
        self, size: int, drop: bool, join: Callable[[list[T]], Any]
    ) -> Dataset[Any]:
        return Dataset(
            self.source.then(lambda pairs: batching.batched(pairs, size, drop, join))
        )

    def padded_batch(
        self,
        size: int,
        *,
        pad_value: Any = 0,
        length: int | None = None,
        multiple: int = 1,
        drop_remainder: bool = False,
    ) -> Dataset[Any]:
        """Joins elements of several lengths, filled up at the end.

        Args:
          size: how many.
          pad_value: what to fill with; a pytree prefix of an element.
          length: of the first axis of every leaf; None means that of the longest in the
            batch. Other axes have the length of the longest.
          multiple: the length is rounded up to a multiple of it, so that a jitted step
            meets fewer shapes.
          drop_remainder: as of `batch`.

        Returns:
          A dataset of pytrees of `[size, length, …]` NumPy arrays.

        Raises:
          DataError: on reading, an element is longer than `length`.

        Example:
          >>> words = train.data.indexed([np.ones(1), np.ones(3)])
          >>> next(iter(words.padded_batch(2, pad_value=-1, multiple=4))).tolist()
          [[1.0, -1.0, -1.0, -1.0], [1.0, 1.0, 1.0, -1.0]]
        """
        size = natural("padded_batch", "size", size)
        multiple = natural("padded_batch", "multiple", multiple)
        if length is not None:
            length = natural("padded_batch", "length", length)
        return self._joined(
            size,
            bool(drop_remainder),
            lambda group: batching.padded(group, pad_value, length, multiple),
        )

    def bucket_by_length(
        self,
        length: Callable[[T], int],
        boundaries: Sequence[int],
        batch_size: int | Sequence[int],
        *,
        pad_value: Any = 0,
        pad_to_boundary: bool = True,
        drop_remainder: bool = False,
    ) -> Dataset[Any]:
        """Joins elements of similar length, filled up at the end.

        Args:
          length: gives the length of an element.
          boundaries: the largest length of each bucket, increasing; one more bucket
            takes what is longer.
          batch_size: of every bucket, or of each: one more than `boundaries`.
          pad_value: as of `padded_batch`.
          pad_to_boundary: whether the batches of a bucket have its largest length, so
            that a jitted step meets one shape for each; else that of the longest
            element. The last bucket has none and always does the latter.
          drop_remainder: whether to leave out what waits in buckets at the end.

        Returns:
          A dataset of pytrees of `[size, length, …]` NumPy arrays, given as buckets
          become full.

        Raises:
          ArgumentError: the boundaries do not increase, or sizes do not fit them.

        Example:
          >>> words = train.data.indexed([np.ones(n) for n in (1, 5, 2, 6)])
          >>> [b.shape for b in words.bucket_by_length(len, [4], 2)]
          [(2, 4), (2, 6)]
        """
        require_callable("bucket_by_length", length)
        edges = [integer("bucket_by_length", "boundaries", edge) for edge in boundaries]
        if sorted(set(edges)) != edges:
            raise ArgumentError(
                f"bucket_by_length: boundaries must increase, got {edges}"
            )
        if isinstance(batch_size, Sequence):
            sizes = tuple(batch_size)
        else:
            sizes = (batch_size,) * (len(edges) + 1)
        if len(sizes) != len(edges) + 1:
            raise ArgumentError(
                f"bucket_by_length: {len(edges)} boundaries make {len(edges) + 1} "
                f"buckets, but batch_size has {len(sizes)} sizes"
            )
        sizes = tuple(natural("bucket_by_length", "batch_size", n) for n in sizes)
        buckets = Buckets(
            length, tuple(edges), sizes, pad_value, pad_to_boundary, drop_remainder
        )
        return Dataset(batching.bucketed(self.source, buckets))

    # -- ahead of the consumer ---------------------------------------------------------

    def prefetch(self, size: int = 2, *, timeout: float = TIMEOUT) -> Dataset[T]:
        """Reads ahead in a thread.

        Args:
          size: how many elements it holds ready; then it waits.
          timeout: seconds that the consumer waits for an element.

        Returns:
          A dataset of the same elements. Positions do not count what is only held.

        Raises:
          DataTimeoutError: on reading, no element came in time; it says where the
            thread is.
        """
        size, timeout = natural("prefetch", "size", size), _seconds("prefetch", timeout)
        return Dataset(
            self.source.then(
                # It holds `size`, and one was given.
                lambda pairs: parallel.prefetched(pairs, size + 1, timeout, "prefetch")
            )
        )

    def to_devices(
        self, where: Any = None, *, size: int = 2, timeout: float = TIMEOUT
    ) -> Dataset[Any]:
        """Makes arrays of NumPy data ahead of their use, in a thread.

        Args:
          where: a device or a sharding, or a pytree prefix of them. A sharding over
            several processes takes the batch of each as its part. A list of devices
            cuts the first axis into as many parts, `[devices, n / devices, …]`, one on
            each, as `pmap` takes them. None means the default device.
          size: how many elements are on devices, the one in use included; 2 are double
            buffering.
          timeout: seconds that the consumer waits for an element.

        Returns:
          A dataset of pytrees of `fxflow.Array`. Positions do not count what was only
          put ahead.

        Raises:
          DataError: on reading, the first axis cannot be cut into equal parts.
          DataTimeoutError: on reading, no element came in time; it says where the
            thread is.
        """
        size = natural("to_devices", "size", size)
        timeout = _seconds("to_devices", timeout)
        return Dataset(
            self.source.then(lambda pairs: transferred(pairs, where, size, timeout))
        )


class IndexedDataset(Dataset[T]):
    """A dataset whose elements are found by their number: `len(d)`, `d[i]`, slices.

    What `Dataset` describes, without reading what it does not give.
    """

    def __init__(self, elements: Numbered) -> None:
        super().__init__(elements.source(elements.at))
        self._elements = elements

    def __len__(self) -> int:
        if math.isinf(self._elements.length):
            raise TypeError("len: a dataset that repeats without end has no length")
        return int(self._elements.length)

    def __getitem__(self, index: int) -> T:
        length, at = self._elements.length, integer("dataset", "index", index)
        if at < 0 and not math.isinf(length):
            at += int(length)
        if not 0 <= at < length:
            raise OutOfRangeError(
                f"dataset: index {index} is out of range for {length} elements"
            )
        element: T = self._elements.at(at)
        return element

    def _items(self) -> Source:
        return self._elements.source(lambda number: number)

    def _element(self, item: Any) -> T:
        element: T = self._elements.at(item)
        return element

    def _place(self, item: Any) -> tuple[int, ...]:
        return (item,)

    def _number(self, state: State) -> int:
        number: int = state["index"] - 1
        return number

    def _mapped(
        self,
        function: Callable[..., U],
        arguments: Callable[[Any], tuple[Any, ...]],
        name: str,
        workers: int,
        processes: bool,
        timeout: float,
    ) -> Dataset[U]:
        if workers:
            return super()._mapped(
                function, arguments, name, workers, processes, timeout
            )
        length = self._elements.length

        def label(number: int) -> str:
            return f"element {number % length:.0f} of map({name})"

        mapped = numbers.mapped(self._elements, arguments, function, label)
        return IndexedDataset(mapped)

    def shuffle(self, seed: int, *, buffer: int | None = None) -> Dataset[T]:
        """Shuffles the elements: `Dataset.shuffle`; without `buffer` all of them.

        Args:
          seed: of the orders. At least 0.
          buffer: how many consecutive elements are held and shuffled; None: all.
        """
        if buffer is not None:
            return super().shuffle(seed, buffer=buffer)
        _seed("shuffle", seed)
        if math.isinf(self._elements.length):
            raise ArgumentError(
                "shuffle: this dataset repeats without end; shuffle before repeat(), "
                "which gives each epoch an order of its own, or give buffer="
            )
        return IndexedDataset(numbers.shuffled(self._elements, seed))

    def repeat(self, count: int | None = None) -> IndexedDataset[T]:
        """Reads the dataset several times: `Dataset.repeat`.

        Args:
          count: how many epochs; None means without end.
        """
        if count is not None:
            count = natural("repeat", "count", count, 0)
        return IndexedDataset(numbers.repeated(self._elements, count))

    def take(self, count: int) -> IndexedDataset[T]:
        """Keeps the first elements of each epoch: `Dataset.take`.

        Args:
          count: how many at most.
        """
        count = natural("take", "count", count, 0)
        length = min(count, self._elements.length)
        return IndexedDataset(numbers.cut(self._elements, 0, 1, length))

    def skip(self, count: int) -> IndexedDataset[T]:
        """Leaves out the first elements of each epoch: `Dataset.skip`.

        Args:
          count: how many at most.
        """
        count = natural("skip", "count", count, 0)
        length = max(self._elements.length - count, 0)
        return IndexedDataset(numbers.cut(self._elements, count, 1, length))

    def _sharded(self, index: int, count: int, drop: bool) -> Dataset[T]:
        length = self._elements.length
        if not math.isinf(length):
            length = length // count if drop else -(-(length - index) // count)
        return IndexedDataset(numbers.cut(self._elements, index, count, length))

    def _batched(self, size: int, drop: bool) -> Dataset[Any]:
        return IndexedDataset(numbers.batched(self._elements, size, drop))


def _part(index: int | None, count: int | None) -> tuple[int, int]:
    """Returns which part of how many; by default those of this process."""
    count = process_count() if count is None else natural("shard", "count", count)
    index = process_index() if index is None else natural("shard", "index", index, 0)
    if index >= count:
        raise ArgumentError(f"shard: index {index} is not below count {count}")
    return index, count
