"""Datasets: sequences of elements that can be read from a saved position.

A dataset is a description: nothing is read before it is iterated. Its methods return
new datasets. There are two kinds:

- An `IndexedDataset` finds an element by its number. Shuffling, batching, repeating and
  sharding only compute with numbers, and a batch is gathered in one operation.
- Any other `Dataset` is read in order, from its beginning or from a saved position.

`numbers`, `streams`, `batching` and `parallel` implement the methods.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, Self, TypeVar

from fxflow.core.boundary import require_callable
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

#: Seconds after which a source or a function counts as stuck.
TIMEOUT = 300.0


def _seed(name: str, seed: Any) -> int:
    return natural(name, "seed", seed, 0)


def _seconds(name: str, timeout: Any) -> float:
    seconds = number(name, "timeout", timeout)
    if not seconds > 0:
        raise ArgumentError(f"{name}: timeout must be positive seconds, got {seconds}")
    return seconds


def _alike(first: State, state: State) -> bool:
    """Returns whether a position has the keys of another; None matches anything."""
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
    """Iterates over the elements of a dataset after a position.

    Its threads and processes end when it is closed, by `close` or a `with` block, or
    garbage-collected.
    """

    def __init__(self, source: Source, state: State) -> None:
        self._pairs = source.run(state)
        self._state = state

    @property
    def state(self) -> State:
        """The position after the last element: a pytree for `iterate(state)`."""
        return self._state

    def __next__(self) -> T:
        element: T
        element, self._state = next(self._pairs)
        return element

    def close(self) -> None:
        """Ends the iteration, and its threads and processes."""
        self._pairs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Dataset(Generic[T]):
    """A sequence of elements, made by the functions and methods of `fxflow.train.data`.

    Iterating yields NumPy data, each time from the first element of epoch 0::

        for batch in dataset: ...

    To be able to resume, save the position with the parameters::

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
        """Returns an iterator over the elements after a position.

        Args:
          state: `DataIterator.state` of a dataset made in the same way; None means the
            beginning.
          epoch: the epoch to begin with; each epoch shuffles in a different order.

        Returns:
          An iterator with a position.

        Raises:
          DataError: `state` is not a position of this dataset.
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
        """Returns the items that `map` reads; cheap if elements have numbers."""
        return streams.numbered(self.source)

    def _element(self, item: Any) -> T:
        element: T = item[2]
        return element

    def _place(self, item: Any) -> tuple[int, ...]:
        """Returns an element's place, from which its random numbers derive."""
        epoch, number, _ = item
        return epoch, number

    def _number(self, state: State) -> int:
        """Returns the number, in its epoch, of the element before a position."""
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
          function: called with an element and, if there is a `seed`, a
            `numpy.random.Generator`.
          seed: the seed of generators that depend only on it and the element's place,
            so that a resumed run draws the same numbers. At least 0.
          workers: the number of threads that compute ahead, in the order of elements;
            0 means that the consumer's thread computes.
          processes: whether each worker computes in a process of its own, for functions
            that hold the GIL. Function and elements are pickled, and the program's main
            module must be guarded by `if __name__ == "__main__":`.
          timeout: seconds to wait for an element.

        Returns:
          A dataset, which is indexed if this one is and there are no workers.

        Raises:
          DataTimeoutError: on reading, an element took too long.
          DataError: on reading, a process ended.
          Exception: on reading, an error of `function`, with a note that names the
            element.

        Example:
          >>> rows = train.data.arrays(np.arange(4))
          >>> list(rows.map(lambda x: int(x) ** 2, workers=2))
          [0, 1, 4, 9]
        """
        require_callable(function, "map")
        natural("map", "workers", workers, 0)
        timeout = _seconds("map", timeout)
        if seed is not None:
            _seed("map", seed)
        if processes and not workers:
            raise ArgumentError("map: processes=True needs workers=, their count")

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
        """Maps each element to an iterable, and concatenates the iterables.

        Args:
          function: called with an element; returns an iterable, which must be the same
            when a resumed run calls it again.

        Returns:
          A dataset of the iterables' elements.

        Example:
          >>> pairs = lambda word: zip(word, word[1:])
          >>> list(train.data.indexed(["ab", "cde"]).flat_map(pairs))
          [('a', 'b'), ('c', 'd'), ('d', 'e')]
        """
        if not inspect.isgeneratorfunction(function):  # which gives several elements
            require_callable(function, "flat_map")
        return Dataset(streams.flattened(self.source, function))

    def filter(self, predicate: Callable[[T], Any]) -> Dataset[T]:
        """Keeps the elements for which a function returns true.

        Args:
          predicate: called with an element.

        Returns:
          A dataset that is read in order, because its length is unknown.

        Example:
          >>> list(train.data.indexed(range(7)).filter(lambda x: x % 3 == 0))
          [0, 3, 6]
        """
        require_callable(predicate, "filter")
        return Dataset(streams.filtered(self.source, predicate))

    # -- which elements, in which order ------------------------------------------------

    def shuffle(self, seed: int, *, buffer: int | None = None) -> Dataset[T]:
        """Shuffles the elements, each epoch in a different order.

        Args:
          seed: the seed of the orders. At least 0.
          buffer: the number of consecutive elements that are held in memory and
            shuffled. None shuffles all of an indexed dataset, and holds no elements.

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
                "buffer=, the number of elements to hold and shuffle; or shuffle it "
                "before filter, flat_map, or map with workers"
            )
        buffer = natural("shuffle", "buffer", buffer)
        return Dataset(streams.shuffled(self.source, seed, buffer))

    def repeat(self, count: int | None = None) -> Dataset[T]:
        """Reads the dataset several times.

        Args:
          count: the number of epochs; None means forever.

        Returns:
          A dataset with one epoch for each `count` epochs of this one.

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
          count: the most elements to keep.

        Returns:
          A dataset of these elements.

        Example:
          >>> list(train.data.indexed(range(9)).take(2))
          [0, 1]
        """
        count = natural("take", "count", count, 0)
        return Dataset(streams.cut(self.source, 0, count))

    def skip(self, count: int) -> Dataset[T]:
        """Skips the first elements of each epoch.

        Args:
          count: the number of elements to skip.

        Returns:
          A dataset of the other elements.

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
          index: the number of the part, from 0; None means `fxflow.process_index()`.
          count: the number of parts; None means `fxflow.process_count()`.
          drop_remainder: whether to drop the last elements if there is not one for each
            part, so that all parts are equally long. Otherwise processes that run
            collectives would wait for a process whose part has ended.

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
          size: the number of elements in a batch.
          drop_remainder: whether to drop a last batch that is smaller. A jitted step
            would be compiled again for its size.

        Returns:
          A dataset of pytrees of `[size, …]` NumPy arrays.

        Raises:
          DataError: on reading, elements have different shapes or structures.

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
        """Joins elements of different lengths, padded at the end.

        Args:
          size: the number of elements in a batch.
          pad_value: the padding; a pytree prefix of an element.
          length: the length of the first axis of every leaf; None means that of the
            longest element in the batch, which always determines other axes.
          multiple: round the length up to a multiple of this, so that a jitted step is
            compiled for fewer shapes.
          drop_remainder: as for `batch`.

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

    def ragged_batch(
        self, size: int, *, capacity: int, drop_remainder: bool = False
    ) -> Dataset[Any]:
        """Joins elements of different lengths into ragged arrays, without padding.

        A batch holds the elements that follow, at most `size` and at most as many as
        have `capacity` values together. Its shapes are the same for all batches, so
        that a jitted step is compiled once.

        Args:
          size: the number of rows of a batch; those without an element are empty.
          capacity: how many values there is room for, in each leaf.
          drop_remainder: whether to drop the last batch, which may have few elements.

        Returns:
          A dataset of pytrees of `ragged.RaggedArray`s of NumPy arrays; of arrays
          [size] for leaves without axes, 0 where there is no element.

        Raises:
          DataError: on reading, an element has more values than `capacity`, or elements
            differ in an axis other than the first.

        Example:
          >>> words = train.data.indexed([np.ones(1), np.ones(3), np.ones(2)])
          >>> [batch.tolist() for batch in words.ragged_batch(2, capacity=4)]
          [[[1.0], [1.0, 1.0, 1.0]], [[1.0, 1.0], []]]
        """
        size = natural("ragged_batch", "size", size)
        capacity = natural("ragged_batch", "capacity", capacity)
        return Dataset(
            self.source.then(
                lambda pairs: batching.filled(
                    pairs, size, capacity, bool(drop_remainder)
                )
            )
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
        """Joins elements of similar length, padded at the end.

        Args:
          length: returns the length of an element.
          boundaries: the largest length of each bucket, increasing; one more bucket
            has the longer elements.
          batch_size: the batch size, the same for all buckets or one for each, which is
            one more than `boundaries`.
          pad_value: as for `padded_batch`.
          pad_to_boundary: whether to pad batches to their bucket's largest length, so
            that a jitted step is compiled once for each bucket; else to the longest
            element, as always in the last bucket.
          drop_remainder: whether to drop the elements left in buckets at the end.

        Returns:
          A dataset of pytrees of `[size, length, …]` NumPy arrays, in the order in
          which buckets become full.

        Raises:
          ArgumentError: the boundaries do not increase, or there are not enough sizes.

        Example:
          >>> words = train.data.indexed([np.ones(n) for n in (1, 5, 2, 6)])
          >>> [b.shape for b in words.bucket_by_length(len, [4], 2)]
          [(2, 4), (2, 6)]
        """
        require_callable(length, "bucket_by_length")
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
          size: the most elements to hold ready.
          timeout: seconds that the consumer waits for an element.

        Returns:
          A dataset of the same elements. Positions do not count held elements.

        Raises:
          DataTimeoutError: on reading, no element arrived in time; the message shows
            the thread's stack.
        """
        size, timeout = natural("prefetch", "size", size), _seconds("prefetch", timeout)
        return Dataset(
            self.source.then(
                # `size` are held, and the consumer has one more.
                lambda pairs: parallel.prefetched(pairs, size + 1, timeout, "prefetch")
            )
        )

    def to_devices(
        self, where: Any = None, *, size: int = 2, timeout: float = TIMEOUT
    ) -> Dataset[Any]:
        """Transfers NumPy data to devices ahead of their use, in a thread.

        Args:
          where: a device or a sharding, or a pytree prefix of them. For a sharding over
            several processes, each process's batch is its part. A list of devices
            splits the first axis into one part per device, `[devices, n / devices, …]`,
            for `pmap`. None means the default device.
          size: the most elements on devices, including the one in use; 2 is double
            buffering.
          timeout: seconds that the consumer waits for an element.

        Returns:
          A dataset of pytrees of `fxflow.Array`. Positions do not count elements that
          were only transferred ahead.

        Raises:
          DataError: on reading, the first axis cannot be split into equal parts.
          DataTimeoutError: on reading, no element arrived in time; the message shows
            the thread's stack.
        """
        size = natural("to_devices", "size", size)
        timeout = _seconds("to_devices", timeout)
        return Dataset(
            self.source.then(lambda pairs: transferred(pairs, where, size, timeout))
        )


class IndexedDataset(Dataset[T]):
    """A dataset whose elements have numbers: it has `len(d)` and `d[i]`.

    Its methods are those of `Dataset`, but read only the elements that they return.
    """

    def __init__(self, elements: Numbered) -> None:
        super().__init__(elements.source(elements.at))
        self._elements = elements

    def __len__(self) -> int:
        if math.isinf(self._elements.length):
            raise TypeError("len: a dataset that repeats forever has no length")
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
          seed: the seed of the orders. At least 0.
          buffer: the number of consecutive elements that are shuffled; None for all.
        """
        if buffer is not None:
            return super().shuffle(seed, buffer=buffer)
        _seed("shuffle", seed)
        if math.isinf(self._elements.length):
            raise ArgumentError(
                "shuffle: this dataset repeats forever; shuffle it before repeat(), "
                "so that each epoch has a different order, or give buffer="
            )
        return IndexedDataset(numbers.shuffled(self._elements, seed))

    def repeat(self, count: int | None = None) -> IndexedDataset[T]:
        """Reads the dataset several times: `Dataset.repeat`.

        Args:
          count: the number of epochs; None means forever.
        """
        if count is not None:
            count = natural("repeat", "count", count, 0)
        return IndexedDataset(numbers.repeated(self._elements, count))

    def take(self, count: int) -> IndexedDataset[T]:
        """Keeps the first elements of each epoch: `Dataset.take`.

        Args:
          count: the most elements to keep.
        """
        count = natural("take", "count", count, 0)
        length = min(count, self._elements.length)
        return IndexedDataset(numbers.cut(self._elements, 0, 1, length))

    def skip(self, count: int) -> IndexedDataset[T]:
        """Skips the first elements of each epoch: `Dataset.skip`.

        Args:
          count: the number of elements to skip.
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
    """Returns the part's number and the number of parts; by default this process's."""
    count = process_count() if count is None else natural("shard", "count", count)
    index = process_index() if index is None else natural("shard", "index", index, 0)
    if index >= count:
        raise ArgumentError(f"shard: index {index} is not below count {count}")
    return index, count
