"""Sources: elements in order, each with the position after it.

A position is a dictionary with a source's own numbers and the positions of the sources
that it reads. Its keys are the same at all elements. A source yields nothing after the
position at its end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fxflow.train.data.parallel import Pairs, note

State = Any


class Source(NamedTuple):
    """The implementation of a dataset.

    Attributes:
      start: returns the position before the first element of an epoch.
      run: yields the elements after a position.
    """

    start: Callable[[int], State]
    run: Callable[[State], Pairs[Any, State]]

    def then(self, change: Callable[[Pairs[Any, State]], Pairs[Any, State]]) -> Source:
        """Returns a source with changed elements and the same positions."""
        return Source(self.start, lambda state: change(self.run(state)))


def generator(seed: int, *numbers: int) -> np.random.Generator:
    """Returns the random generator for a seed and a place in the data."""
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence((seed, *numbers)))
    )


def filtered(source: Source, keep: Callable[[Any], Any]) -> Source:
    """Yields the elements for which `keep` returns true."""

    def run(pairs: Pairs[Any, State]) -> Pairs[Any, State]:
        return (pair for pair in pairs if keep(pair[0]))

    return source.then(run)


def numbered(source: Source) -> Source:
    """Yields `(epoch, number, element)`, numbered within the epoch."""

    def start(epoch: int) -> State:
        return {"number": 0, "epoch": epoch, "source": source.start(epoch)}

    def run(state: State) -> Pairs[Any, State]:
        number, epoch = state["number"], state["epoch"]
        for element, inner in source.run(state["source"]):
            number += 1
            after = {"number": number, "epoch": epoch, "source": inner}
            yield (epoch, number - 1, element), after

    return Source(start, run)


def mapped(
    pairs: Pairs[Any, State],
    arguments: Callable[[Any], tuple[Any, ...]],
    function: Callable[..., Any],
    label: Callable[[State], str],
) -> Pairs[Any, State]:
    """Yields a function of each element; errors get a note that names the element."""
    for item, state in pairs:
        try:
            result = function(*arguments(item))
        except Exception as error:
            error.add_note(note(label(state)))
            raise
        yield result, state


def flattened(source: Source, function: Callable[[Any], Any]) -> Source:
    """Yields the elements of the iterables that a function returns."""

    def start(epoch: int) -> State:
        return {"given": 0, "source": source.start(epoch)}

    def run(state: State) -> Pairs[Any, State]:
        # The position stays before an element until its iterable has ended.
        given, before = state["given"], state["source"]
        for element, after in source.run(before):
            for part in itertools.islice(function(element), given, None):
                given += 1
                yield part, {"given": given, "source": before}
            given, before = 0, after

    return Source(start, run)


def cut(source: Source, first: int, last: int | None) -> Source:
    """Yields the elements `first` to `last - 1` of each epoch."""

    def start(epoch: int) -> State:
        return {"read": 0, "source": source.start(epoch)}

    def run(state: State) -> Pairs[Any, State]:
        read = state["read"]
        if last is not None and read >= last:
            return
        for element, inner in source.run(state["source"]):
            read += 1
            if read > first:
                yield element, {"read": read, "source": inner}
            if read == last:
                return

    return Source(start, run)


def strided(source: Source, index: int, count: int, drop: bool) -> Source:
    """Yields element `index` of every `count`; `drop` drops incomplete groups."""

    def run(pairs: Pairs[Any, State]) -> Pairs[Any, State]:
        while group := list(itertools.islice(pairs, count)):
            if len(group) == count or (index < len(group) and not drop):
                yield group[index][0], group[-1][1]

    return source.then(run)


def repeated(source: Source, count: int | None) -> Source:
    """Yields the elements of several epochs of a source."""

    def start(epoch: int) -> State:
        first = epoch if count is None else epoch * count
        return {"epoch": first, "source": source.start(first)}

    def run(state: State) -> Pairs[Any, State]:
        epoch, before = state["epoch"], state["source"]
        last = None if count is None else (epoch // max(count, 1) + 1) * count
        while epoch != last:
            is_empty = before == source.start(epoch)
            for element, after in source.run(before):
                is_empty = False
                yield element, {"epoch": epoch, "source": after}
            if is_empty:
                return  # all later epochs would be empty too
            epoch += 1
            before = source.start(epoch)

    return Source(start, run)


def shuffled(source: Source, seed: int, buffer: int) -> Source:
    """Shuffles each window of `buffer` elements.

    A resumed run reads its window again, so that the position contains no elements.
    """

    def start(epoch: int) -> State:
        inner = source.start(epoch)
        return {"epoch": epoch, "window": 0, "given": 0, "source": inner}

    def run(state: State) -> Pairs[Any, State]:
        epoch, window, given = state["epoch"], state["window"], state["given"]
        before = state["source"]
        pairs = source.run(before)
        while group := list(itertools.islice(pairs, buffer)):
            order = generator(seed, epoch, window).permutation(len(group))
            after = group[-1][1]
            for at in range(given, len(group)):
                # The position after a window's last element is in the next window.
                is_last = at == len(group) - 1
                yield (
                    group[order[at]][0],
                    {
                        "epoch": epoch,
                        "window": window + is_last,
                        "given": 0 if is_last else at + 1,
                        "source": after if is_last else before,
                    },
                )
            before, window, given = after, window + 1, 0

    return Source(start, run)


# -- several sources -------------------------------------------------------------------


def _started(sources: Sequence[Source], **own: int) -> Callable[[int], State]:
    def start(epoch: int) -> State:
        inner = [source.start(epoch) for source in sources]
        return {**own, "epoch": epoch, "sources": inner}

    return start


def zipped(sources: Sequence[Source]) -> Source:
    """Yields tuples of one element of each source, until a source ends."""

    def run(state: State) -> Pairs[Any, State]:
        runs = [one.run(at) for one, at in zip(sources, state["sources"])]
        for pairs in zip(*runs):
            after = {"epoch": state["epoch"], "sources": [then for _, then in pairs]}
            yield tuple(element for element, _ in pairs), after

    return Source(_started(sources), run)


def concatenated(sources: Sequence[Source]) -> Source:
    """Yields the elements of one source after those of another."""

    def run(state: State) -> Pairs[Any, State]:
        inner = list(state["sources"])
        for part in range(state["part"], len(sources)):
            for element, after in sources[part].run(inner[part]):
                inner[part] = after
                yield element, {**state, "part": part, "sources": list(inner)}

    return Source(_started(sources, part=0), run)


#: The number of random numbers that are drawn at once.
_BLOCK = 1024


def mixed(
    sources: Sequence[Source], weights: Sequence[float], seed: int, stop: str
) -> Source:
    """Yields elements of sources that are drawn at random, by weight."""

    def run(state: State) -> Pairs[Any, State]:
        count, ended, inner = state["count"], state["ended"], list(state["sources"])
        runs = [one.run(at) for one, at in zip(sources, inner)]
        while ended.bit_count() < len(runs):
            # The choice depends only on the number of the draw.
            block, place = divmod(count, _BLOCK)
            if not place or count == state["count"]:
                draws = generator(seed, state["epoch"], block).random(_BLOCK)
            alive = [0.0 if ended >> i & 1 else w for i, w in enumerate(weights)]
            edges = np.cumsum(alive) / sum(alive)
            which = int(np.searchsorted(edges, draws[place], side="right"))
            count += 1
            pair = next(runs[which], None)
            if pair is not None:
                element, inner[which] = pair
                own = {"count": count, "ended": ended, "epoch": state["epoch"]}
                yield element, {**own, "sources": list(inner)}
            elif stop == "first":
                return
            else:
                ended |= 1 << which

    return Source(_started(sources, count=0, ended=0), run)
