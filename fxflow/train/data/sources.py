"""Makes datasets from arrays, sequences, files, and any iterable."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from fxflow.core import tree
from fxflow.errors import ArgumentError, DataError
from fxflow.lax.axes import natural, number
from fxflow.train.data import numbers, streams
from fxflow.train.data.dataset import Dataset, IndexedDataset
from fxflow.train.data.numbers import Numbered
from fxflow.train.data.parallel import Pairs
from fxflow.train.data.paths import Path, names, opened
from fxflow.train.data.streams import Source, State

T = TypeVar("T")


def arrays(arrays: Any) -> IndexedDataset[Any]:
    """Makes a dataset of the rows of arrays.

    Args:
      arrays: pytree of arrays with equally long first axes: NumPy arrays, possibly
        memory-mapped, or `fxflow.Array`. They are not copied before a batch is
        gathered. Lists are containers, as in every pytree.

    Returns:
      A dataset of pytrees of rows.

    Raises:
      DataError: lengths differ, or an array has no axis.

    Example:
      >>> len(train.data.arrays((np.zeros((3, 2)), np.arange(3))).batch(2))
      2
    """
    rows = tree.map(
        lambda leaf: leaf if hasattr(leaf, "shape") else np.asarray(leaf), arrays
    )
    lengths = {}
    for path, leaf in tree.leaves_with_path(rows):
        name = tree.keystr(path) or "the array"
        if not leaf.shape:
            raise DataError(f"arrays: {name} has no axis, and so no rows")
        lengths[name] = leaf.shape[0]
    if not lengths:
        raise DataError("arrays: there is no array in the tree")
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise DataError(f"arrays: first axes must be equally long, but {found}")
    return IndexedDataset(numbers.of_arrays(rows, next(iter(lengths.values()))))


def indexed(sequence: Any) -> IndexedDataset[Any]:
    """Makes a dataset of anything with `len(s)` and `s[i]`.

    Args:
      sequence: a list, a range, a dataset of PyTorch or Hugging Face, ….

    Returns:
      A dataset of its elements.

    Example:
      >>> train.data.indexed(["a", "b", "c"])[-1]
      'c'
    """
    if not (hasattr(sequence, "__len__") and hasattr(sequence, "__getitem__")):
        raise ArgumentError(
            f"indexed: expected an object with len(s) and s[i], got "
            f"{type(sequence).__name__}; for an iterable, use iterable()"
        )
    length = len(sequence)
    return IndexedDataset(Numbered(length, lambda at: sequence[at % length]))


def files(paths: Path | Iterable[Path]) -> IndexedDataset[str]:
    """Makes a dataset of file names; read the files with `map`.

    Args:
      paths: names, or one pattern such as `"images/*.png"`, whose matches are sorted.
        A pattern may be a URL such as `"s3://bucket/*.png"`, which needs fsspec (extra
        `data`).

    Returns:
      A dataset of names.

    Raises:
      DataError: no file matches.
    """
    found = names("files", paths)
    return IndexedDataset(Numbered(len(found), lambda at: found[at % len(found)]))


def lines(
    paths: Path | Iterable[Path], *, encoding: str = "utf-8", errors: str = "strict"
) -> Dataset[str]:
    """Makes a dataset of the lines of text files, without their line ends.

    Args:
      paths: as for `files`; files that end in `.gz` are decompressed.
      encoding: the text's encoding.
      errors: what to do about invalid bytes, as in `str.decode`.

    Returns:
      A dataset that is read in order, and resumes at a byte offset.

    Raises:
      DataError: no file matches; or, on reading, a line is not text, and the message
        gives its number.
    """
    found = names("lines", paths)

    def start(epoch: int) -> State:
        return {"file": 0, "offset": 0, "line": 0}

    def run(state: State) -> Pairs[str, State]:
        offset, line = state["offset"], state["line"]
        for file in range(state["file"], len(found)):
            with opened(found[file]) as stream:
                stream.seek(offset)
                for raw in stream:
                    offset += len(raw)
                    line += 1
                    try:
                        text = raw.rstrip(b"\r\n").decode(encoding, errors)
                    except UnicodeDecodeError as error:
                        raise DataError(
                            f"lines: {found[file]}, line {line}: {error}"
                        ) from None
                    yield text, {"file": file, "offset": offset, "line": line}
            offset = line = 0

    return Dataset(Source(start, run))


# -- iterables -------------------------------------------------------------------------


def iterable(source: Iterable[T] | Callable[[], Iterable[T]]) -> Dataset[T]:
    """Makes a dataset of anything that can be iterated.

    Args:
      source: PyTorch's `DataLoader`, a dataset of grain, a list, a generator; or a
        function without arguments that returns one of these. Leaves of elements that
        NumPy can convert (tensors) become NumPy arrays.

    Returns:
      A dataset that is read in order. If the iterator or `source` has `get_state` and
      `set_state` (grain) or `state_dict` and `load_state_dict` (torchdata), a resumed
      run continues there; otherwise it reads and drops the earlier elements.

    Raises:
      DataError: on reading, an iterator cannot restart because it was used before, or
        it ends before the saved position.

    Example:
      >>> list(train.data.iterable(lambda: (i * i for i in range(4))).skip(1))
      [1, 4, 9]
    """
    if not callable(source) and not hasattr(source, "__iter__"):
        raise ArgumentError(
            f"iterable: expected an iterable, or a function that makes one, got "
            f"{type(source).__name__}"
        )
    is_spent = False

    def opened() -> Iterator[T]:
        nonlocal is_spent
        made = source() if callable(source) else source
        iterator = iter(made)
        if iterator is source:
            if is_spent:
                raise DataError(
                    f"iterable: a {type(source).__name__} can be read only once; to "
                    f"restart, give a function that makes it"
                )
            is_spent = True
        return iterator

    def start(epoch: int) -> State:
        return {"read": 0, "inner": None}

    def run(state: State) -> Pairs[T, State]:
        iterator, read = opened(), state["read"]
        save, load = _saving(iterator, source)
        if state["inner"] is not None and load is not None:
            load(_from_json(state["inner"]))
        else:
            for passed in range(read):
                if next(iterator, _END) is _END:
                    raise DataError(
                        f"iterable: the source ended after {passed} elements, before "
                        f"the saved position of {read}"
                    )
        for element in iterator:
            read += 1
            inner = None if save is None else _to_json(save())
            yield tree.map(_as_numpy, element), {"read": read, "inner": inner}

    return Dataset(Source(start, run))


_END = object()


def _saving(
    iterator: Any, source: Any
) -> tuple[Callable[[], Any] | None, Callable[[Any], None] | None]:
    """Returns the functions that save and load a foreign position, if there are any."""
    for owner in (iterator, source):
        for get, put in (("get_state", "set_state"), ("state_dict", "load_state_dict")):
            if hasattr(owner, get) and hasattr(owner, put):
                return getattr(owner, get), getattr(owner, put)
    return None, None


def _to_json(state: Any) -> Any:
    """Returns a foreign position as a JSON value."""
    if isinstance(state, bytes):  # grain's
        return {"base64": base64.b64encode(state).decode()}
    return state


def _from_json(state: Any) -> Any:
    if isinstance(state, dict) and state.keys() == {"base64"}:
        return base64.b64decode(state["base64"])
    return state


def _as_numpy(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) or not hasattr(leaf, "__array__"):
        return leaf
    return np.asarray(leaf)


# -- several datasets ------------------------------------------------------------------


def mix(
    datasets: Sequence[Dataset[T]],
    weights: Sequence[float] | None = None,
    *,
    seed: int = 0,
    stop: Literal["first", "all"] = "first",
) -> Dataset[T]:
    """Draws each element from one of several datasets.

    Args:
      datasets: at least one.
      weights: the relative frequency of each dataset; None means equal frequencies.
      seed: the seed of the draws.
      stop: `"first"` to end when the first dataset ends, `"all"` to continue with the
        others until all have ended.

    Returns:
      A dataset that is read in order.

    Example:
      >>> a, b = train.data.indexed("aaaaaa"), train.data.indexed("bb")
      >>> "".join(train.data.mix([a, b], [3, 1], seed=1, stop="all"))
      'aaabaaab'
    """
    sources = _sources("mix", datasets)
    given = [1.0] * len(sources) if weights is None else list(weights)
    values = [number("mix", "weights", weight) for weight in given]
    if len(values) != len(sources) or not all(0 < value < np.inf for value in values):
        raise ArgumentError(
            f"mix: expected {len(sources)} positive weights, got {weights!r}"
        )
    if stop not in ("first", "all"):
        raise ArgumentError(f"mix: stop must be 'first' or 'all', got {stop!r}")
    return Dataset(
        streams.mixed(sources, values, natural("mix", "seed", seed, 0), stop)
    )


def concatenate(datasets: Sequence[Dataset[T]]) -> Dataset[T]:
    """Concatenates datasets.

    Args:
      datasets: at least one.

    Returns:
      A dataset that is read in order.

    Example:
      >>> parts = [train.data.indexed("ab"), train.data.indexed("c")]
      >>> list(train.data.concatenate(parts))
      ['a', 'b', 'c']
    """
    return Dataset(streams.concatenated(_sources("concatenate", datasets)))


def zip(datasets: Sequence[Dataset[Any]]) -> Dataset[tuple[Any, ...]]:
    """Makes a dataset of tuples of one element of each dataset, until one ends.

    Args:
      datasets: at least one.

    Returns:
      A dataset that is read in order.

    Example:
      >>> list(train.data.zip([train.data.indexed("ab"), train.data.indexed(range(3))]))
      [('a', 0), ('b', 1)]
    """
    return Dataset(streams.zipped(_sources("zip", datasets)))


def _sources(name: str, datasets: Any) -> list[Source]:
    if not isinstance(datasets, (list, tuple)) or not datasets:
        raise ArgumentError(f"{name}: expected a list of datasets, got {datasets!r}")
    for one in datasets:
        if not isinstance(one, Dataset):
            raise ArgumentError(
                f"{name}: expected datasets, got a {type(one).__name__}; see "
                f"data.indexed and data.iterable"
            )
    return [one.source for one in datasets]
