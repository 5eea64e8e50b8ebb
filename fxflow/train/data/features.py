"""Features: columns of raw data as arrays of ids and numbers, described once.

A description is a value without code of the user's, so that training and serving make
the same arrays: a program that trains fits it and saves it as JSON, a program that
serves reads it.

    described = Features({"site": Hash("site", 10_000), "age": Bucket("age", [18, 65])})
    fitted = described.fit(batches_of_columns)     # one pass
    arrays = fitted({"site": ["a.com", None], "age": [30, 17]})

Id 0 of every feature stands for what is missing (None or nan), unknown or padding. A
column has one kind of values, strings or numbers, from the first batch on. `columns`
reads columns and hashes their values, `learned` counts them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fxflow.errors import ArgumentError, DataError, DtypeError, ShapeError
from fxflow.ragged.array import made
from fxflow.train.data.columns import (
    Column,
    Index,
    column,
    hashes_of,
    lists,
    mixed,
    sized,
)
from fxflow.train.data.learned import Learned, merged, moments

Ids = npt.NDArray[np.int32]
HostArray = np.ndarray[Any, Any]

_MOST = 2**31 - 1
_HALF = np.uint64(32)


# -- features --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Hash:
    """Ids from 1 of a hash of strings or integers.

    The hash is the same in every process, of the bytes of UTF-8 for strings. It is not
    a cryptographic one.

    Args:
      column: name of the column.
      size: number of ids, with 0.
      width: if each row is a list of values, how many of them count, the first ones;
        None, with no `capacity`: one value in each row.
      capacity: rows are lists, and become a `ragged.RaggedArray` with room for this
        many values in a batch; a batch with more is an error. With `width=` too,
        `width` times the rows of a batch is always enough.

    Raises:
      ArgumentError: the size is less than 2, or the width or capacity less than 1.

    Example:
      >>> hashed = train.data.Features({"site": train.data.Hash("site", 100)}).fit([])
      >>> hashed({"site": ["a.com", None, "a.com"]})["site"].tolist()
      [4, 0, 4]
      >>> tags = train.data.Features({"tags": train.data.Hash("tags", 9, capacity=6)})
      >>> tags.fit([])({"tags": [["a", "b"], [], ["a"]]})["tags"].tolist()
      [[1, 3], [], [1]]
    """

    column: str
    size: int
    width: int | None = None
    capacity: int | None = None

    def __post_init__(self) -> None:
        _at_least("Hash", "size", self.size, 2)
        _check_lists("Hash", self)


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Ids from 1 of the values that the fit has seen often enough.

    The most frequent value has id 1; equally frequent ones are in order. Two values are
    the same if their hashes of 64 bits are.

    Args:
      column: name of the column, of strings or integers.
      minimum: how often a value must occur.
      most: maximum number of values, the most frequent ones; None: all.
      width: as for `Hash`.
      capacity: as for `Hash`.
      memory: how many counts the fit keeps; it evicts the values that it has seen least
        often. Then counts are too small by at most the number of values that were
        seen, divided by `memory + 1` (`Statistics.errors`): no value is in the
        vocabulary that is rarer than `minimum`, but some that are little more frequent
        may not be. None: all counts are kept, and are exact.

    Raises:
      ArgumentError: a number is less than 1, or `memory` less than `most`.

    Example:
      >>> words = {"word": train.data.Vocabulary("word", minimum=2)}
      >>> batches = [{"word": ["b", "a", "b"]}, {"word": ["a", "c", "b"]}]
      >>> fitted = train.data.Features(words).fit(batches)
      >>> fitted({"word": ["a", "b", "c", "d"]})["word"].tolist()
      [2, 1, 0, 0]
    """

    column: str
    minimum: int = 1
    most: int | None = None
    width: int | None = None
    capacity: int | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        _at_least("Vocabulary", "minimum", self.minimum, 1)
        if self.most is not None:
            _at_least("Vocabulary", "most", self.most, 1)
        if self.memory is not None:
            _at_least("Vocabulary", "memory", self.memory, self.most or 1)
        _check_lists("Vocabulary", self)


@dataclasses.dataclass(frozen=True)
class Bucket:
    """Ids from 1 of intervals of numbers.

    Args:
      column: name of the column.
      edges: ascending; id 1 is below the first one, which belongs to id 2.

    Raises:
      ArgumentError: the edges are not ascending.

    Example:
      >>> ages = {"age": train.data.Bucket("age", [18, 65])}
      >>> fitted = train.data.Features(ages).fit([])
      >>> fitted({"age": [17, 18, 70, None]})["age"].tolist()
      [1, 2, 3, 0]
    """

    column: str
    edges: Sequence[float]

    def __post_init__(self) -> None:
        edges = tuple(map(float, self.edges))
        if not all(a < b for a, b in itertools.pairwise(edges)):
            raise ArgumentError(f"Bucket: edges must be ascending, got {edges}")
        object.__setattr__(self, "edges", edges)  # the dataclass is frozen


@dataclasses.dataclass(frozen=True)
class Cross:
    """Ids from 1 of a hash of the values of several columns together.

    Args:
      columns: names of the columns, of strings or integers.
      size: number of ids, with 0, which stands for rows with a missing value.

    Raises:
      ArgumentError: there are fewer than two columns, or the size is less than 2.

    Example:
      >>> both = {"both": train.data.Cross(["site", "ad"], 1000)}
      >>> fitted = train.data.Features(both).fit([])
      >>> found = fitted({"site": ["x", "y", None], "ad": [7, 7, 7]})
      >>> a, b, c = found["both"].tolist()
      >>> a != b, c
      (True, 0)
    """

    columns: Sequence[str]
    size: int

    def __post_init__(self) -> None:
        columns = (self.columns,) if isinstance(self.columns, str) else self.columns
        object.__setattr__(self, "columns", tuple(columns))
        if len(self.columns) < 2:
            raise ArgumentError(
                f"Cross: expected at least two columns, got {self.columns!r}"
            )
        _at_least("Cross", "size", self.size, 2)


@dataclasses.dataclass(frozen=True)
class Normalize:
    """Numbers with mean 0 and standard deviation 1 over the data of the fit.

    A missing value becomes 0, the mean. The statistics take one pass: those of batches
    are combined.

    Args:
      column: name of the column.
      log: whether `sign(x) * log(1 + abs(x))` is normalized, for counts and amounts.

    Example:
      >>> scaled = train.data.Features({"price": train.data.Normalize("price")})
      >>> fitted = scaled.fit([{"price": [1.0, 2.0]}, {"price": [3.0, 6.0]}])
      >>> fitted({"price": [3.0, None]})["price"].tolist()
      [0.0, 0.0]
    """

    column: str
    log: bool = False

    def of(self, values: HostArray) -> HostArray:
        """Returns the numbers that are normalized."""
        if not self.log:
            return values
        return np.copysign(np.log1p(np.abs(values)), values)


Feature = Hash | Vocabulary | Bucket | Cross | Normalize
_KINDS: dict[str, Any] = {
    kind.__name__: kind for kind in (Hash, Vocabulary, Bucket, Cross, Normalize)
}


class Features:
    """A description of features, to be fitted.

    Args:
      features: features by the name of their array.

    Raises:
      ArgumentError: one of them is not a feature.

    Example:
      >>> described = train.data.Features({"site": train.data.Hash("site", 100)})
      >>> described
      Features({'site': Hash(column='site', size=100, width=None, capacity=None)})
    """

    def __init__(self, features: Mapping[str, Feature]) -> None:
        for name, feature in features.items():
            if type(feature).__name__ not in _KINDS:
                raise ArgumentError(
                    f"Features: {name!r} must be one of {', '.join(_KINDS)}, got "
                    f"{feature!r}"
                )
        self.features = dict(features)

    def __repr__(self) -> str:
        return f"Features({self.features})"

    def statistics(self) -> Statistics:
        """Returns empty statistics, to which `Statistics.update` adds data.

        Example:
          >>> words = train.data.Features({"w": train.data.Vocabulary("w")})
          >>> parts = [words.statistics(), words.statistics()]  # of two processes
          >>> for part, column in zip(parts, ["aab", "b"]):
          ...     part.update({"w": list(column)})
          >>> parts[0].merged(parts[1]).fitted().learned["w"]
          ['a', 'b']
        """
        return Statistics(self)

    def fit(
        self,
        batches: Iterable[Mapping[str, Any]],
        *,
        previous: FittedFeatures | None = None,
    ) -> FittedFeatures:
        """Returns the features with vocabularies and statistics of data.

        Args:
          batches: the data, in one pass: columns by name, NumPy arrays, pyarrow arrays,
            or sequences of strings and numbers. More columns than needed do no harm. No
            batches: only features that learn nothing can be made, and columns may have
            any kind.
          previous: features of a fit to earlier data: as for `Statistics.fitted`.

        Raises:
          ArgumentError: a column is missing.
          DataError: a number to normalize is infinite.
          DtypeError: a column has values of a kind that a feature does not take, or
            that differs from the rows before.
          ShapeError: the columns of a batch differ in length.
        """
        found = self.statistics()
        for batch in batches:
            found.update(batch)
        return found.fitted(previous=previous)


class Statistics:
    """What features learn from data, batch by batch. Made by `Features.statistics`.

    Those of parts of the data are merged, for example of the files of each process.

    Args:
      described: the features.

    Example:
      >>> prices = train.data.Features({"price": train.data.Normalize("price")})
      >>> found = prices.statistics()
      >>> found.update({"price": [1.0, 2.0, 3.0]})
      >>> found.rows, found.fitted().learned["price"][0]
      (3, 2.0)
    """

    def __init__(self, described: Features) -> None:
        self.described = described
        features = described.features.items()
        self._learned = Learned(
            {name: one.memory for name, one in features if isinstance(one, Vocabulary)},
            [name for name, one in features if isinstance(one, Normalize)],
        )

    def __repr__(self) -> str:
        return f"Statistics({self.described}, rows={self.rows})"

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self._learned.rows

    @property
    def errors(self) -> dict[str, int]:
        """By name, by how much the counts of a vocabulary may be too small."""
        return {name: one.error for name, one in self._learned.counts.items()}

    def update(self, batch: Mapping[str, Any]) -> None:
        """Adds a batch.

        Args:
          batch: columns by name, as for `Features.fit`.
        """
        learned = self._learned
        reader = _Reader(batch, learned.kinds, learned.rows)
        for name, feature in self.described.features.items():
            columns = reader.read(name, feature)
            if isinstance(feature, Vocabulary):
                learned.counts[name].add(columns[0].counts())
            elif isinstance(feature, Normalize):
                one = columns[0]
                more = moments(
                    feature.column, one, feature.of(one.values), learned.rows
                )
                learned.moments[name] = merged(learned.moments[name], more)
        learned.rows += reader.rows or 0

    def merged(self, other: Statistics) -> Statistics:
        """Returns the statistics of the data of both.

        Args:
          other: statistics of the same features.

        Raises:
          ArgumentError: the features differ.
          DtypeError: a column has another kind there.
        """
        if self.described.features != other.described.features:
            raise ArgumentError("Statistics.merged: the features differ")
        both = Statistics(self.described)
        both._learned.add(self._learned)
        both._learned.add(other._learned)
        return both

    def fitted(self, *, previous: FittedFeatures | None = None) -> FittedFeatures:
        """Returns the features with what was learned.

        Args:
          previous: features of earlier data, whose vocabularies are kept: their values
            keep their ids, and values that are new and frequent enough in this data get
            the ids after them, up to `most`. Means and deviations are those of this
            data; merge statistics for those of all data.

        Raises:
          ArgumentError: a vocabulary of `previous` is of another column, or larger than
            `most`.
          DtypeError: a column has another kind there.
        """
        learned: dict[str, Any] = {}
        kinds = dict(self._learned.kinds)
        for name, feature in self.described.features.items():
            if isinstance(feature, Vocabulary):
                kept = [] if previous is None else _kept(name, feature, previous, kinds)
                known = set(kept)
                often = [
                    (-count, value)
                    for value, count in self._learned.counts[name].found.items()
                    if count >= feature.minimum and value not in known
                ]
                room = None if feature.most is None else feature.most - len(kept)
                learned[name] = kept + [value for _, value in sorted(often)[:room]]
            elif isinstance(feature, Normalize):
                count, mean, squares = self._learned.moments[name]
                deviation = math.sqrt(squares / count) if count else 0.0
                learned[name] = [mean, deviation or 1.0]
        return FittedFeatures(self.described.features, kinds, learned)

    def to_json(self) -> str:
        """Returns the statistics as JSON, for another process that merges them."""
        return self._learned.to_json()

    @classmethod
    def from_json(cls, described: Features, text: str) -> Statistics:
        """Returns the statistics that `to_json` has written.

        Args:
          described: the features.
          text: JSON.

        Raises:
          ArgumentError: the text is not that of statistics of these features.
        """
        found = cls(described)
        try:
            found._learned.read(text)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArgumentError(
                f"Statistics.from_json: not statistics of these features: {error!r}"
            ) from error
        return found


def _kept(
    name: str, feature: Vocabulary, previous: FittedFeatures, kinds: dict[str, str]
) -> list[Any]:
    """Returns the values of an earlier vocabulary, and adds the kind of its column."""
    before = previous.features.get(name)
    if before is None:
        return []
    if not isinstance(before, Vocabulary) or before.column != feature.column:
        raise ArgumentError(
            f"Statistics.fitted: {name!r} is {before} in previous and {feature} here"
        )
    kept: list[Any] = previous.learned[name]
    if feature.most is not None and len(kept) > feature.most:
        raise ArgumentError(
            f"Statistics.fitted: {name!r} has {len(kept)} values in previous, more "
            f"than most={feature.most}"
        )
    kind = previous.kinds.get(feature.column)
    if kind is not None and kinds.setdefault(feature.column, kind) != kind:
        raise DtypeError(
            f"Statistics.fitted: column {feature.column!r} is of kind "
            f"{kinds[feature.column]}, in previous of kind {kind}"
        )
    return list(kept)


class FittedFeatures:
    """A pure function from columns to arrays. Made by `Features.fit`, or from JSON.

    Args:
      features: features by the name of their array.
      kinds: by column, "string", "integer" or "float".
      learned: by name, the values of a vocabulary, or mean and standard deviation.

    Example:
      >>> fitted = train.data.Features({"site": train.data.Hash("site", 100)}).fit([])
      >>> again = train.data.FittedFeatures.from_json(fitted.to_json())
      >>> again({"site": ["a.com"]})["site"].tolist(), again.sizes
      ([4], {'site': 100})
    """

    version: ClassVar[int] = 2

    def __init__(
        self,
        features: Mapping[str, Feature],
        kinds: Mapping[str, str],
        learned: Mapping[str, Any],
    ) -> None:
        self.features, self.kinds = dict(features), dict(kinds)
        self.learned = dict(learned)

    def __repr__(self) -> str:
        return f"FittedFeatures({self.features})"

    @property
    def sizes(self) -> dict[str, int]:
        """By name, the number of ids of a feature, for `TableSpec(rows=)`."""
        found = {}
        for name, feature in self.features.items():
            if isinstance(feature, Hash | Cross):
                found[name] = feature.size
            elif isinstance(feature, Vocabulary):
                found[name] = len(self.learned[name]) + 1
            elif isinstance(feature, Bucket):
                found[name] = len(feature.edges) + 2
        return found

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, HostArray]:
        """Returns the arrays of a batch.

        Args:
          batch: columns by name, as for `Features.fit`.

        Returns:
          By name, int32[n] or int32[n, width] of ids, a `RaggedArray` of int32 ids for
          features with a capacity, or float32[n].

        Raises:
          ArgumentError: a column is missing.
          DataError: lists have more values than a capacity.
          DtypeError: a column has values of another kind than in the fit.
          ShapeError: the columns differ in length.
        """
        reader = _Reader(batch, dict(self.kinds), 0)
        found: dict[str, HostArray] = {}
        for name, feature in self.features.items():
            columns = reader.read(name, feature)
            flat = self._made(name, feature, columns)
            width = getattr(feature, "width", None)
            capacity = getattr(feature, "capacity", None)
            if capacity is not None:
                lengths = reader.lengths(name, feature)
                found[name] = _ragged(name, flat, lengths, width, capacity)
            elif width is not None:
                found[name] = _padded(flat, reader.lengths(name, feature), width)
            else:
                found[name] = flat
        return found

    def _made(
        self, name: str, feature: Feature, columns: Sequence[Column]
    ) -> HostArray:
        """Returns the array of a feature; lists are one after the other."""
        one = columns[0]
        missing = functools.reduce(operator.or_, (c.missing for c in columns))
        if isinstance(feature, Normalize):
            mean, deviation = self.learned[name]
            scaled = (feature.of(one.values) - mean) / deviation
            ids: HostArray = scaled.astype(np.float32)
        elif isinstance(feature, Bucket):
            before = np.searchsorted(feature.edges, one.values, side="right")
            ids = (before + 1).astype(np.int32)
        elif isinstance(feature, Vocabulary):
            ids = self._indices[name].find(one.hashes)
        else:
            total = one.hashes
            for other in columns[1:]:
                total = mixed(mixed(total) ^ other.hashes)
            ids = _remainders(total, feature.size - 1) + np.int32(1)
        if missing.any():
            ids[missing] = 0
        return ids

    @functools.cached_property
    def _indices(self) -> dict[str, Index]:
        return {
            name: Index(_known(self.learned[name]))
            for name, feature in self.features.items()
            if isinstance(feature, Vocabulary)
        }

    def to_json(self) -> str:
        """Returns the fitted features as JSON, for the program that serves."""
        features = {
            name: {"kind": type(feature).__name__, **dataclasses.asdict(feature)}
            for name, feature in self.features.items()
        }
        described = {
            "version": self.version,
            "features": features,
            "kinds": self.kinds,
            "learned": self.learned,
        }
        return json.dumps(described)

    @classmethod
    def from_json(cls, text: str) -> FittedFeatures:
        """Returns the fitted features that `to_json` has written.

        Args:
          text: JSON.

        Raises:
          ArgumentError: the text is not that of features, or of a later version.
        """
        try:
            given = json.loads(text)
            if given["version"] != cls.version:
                raise ArgumentError(
                    f"FittedFeatures.from_json: version {given['version']} is not "
                    f"{cls.version}: it needs another version of fxflow"
                )
            features = {}
            for name, fields in given["features"].items():
                kind = _KINDS[fields.pop("kind")]
                features[name] = kind(**fields)
            return cls(features, given["kinds"], given["learned"])
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise ArgumentError(
                f"FittedFeatures.from_json: not a description of features: {error!r}"
            ) from error


# -- columns ---------------------------------------------------------------------------


class _Reader:
    """The columns of a batch, each read once.

    Args:
      batch: columns by name.
      kinds: kinds of the columns of earlier batches; this one is added.
      before: number of rows of earlier batches, for messages.
    """

    def __init__(
        self, batch: Mapping[str, Any], kinds: dict[str, str], before: int
    ) -> None:
        self._batch, self._kinds, self._before = batch, kinds, before
        self._read: dict[tuple[str, bool], Column] = {}
        self._lengths: dict[str, HostArray] = {}
        self.rows: int | None = None

    def read(self, name: str, feature: Feature) -> list[Column]:
        """Returns the columns of a feature."""
        of_lists = _has_lists(feature)
        found = [self._column(c, of_lists) for c in columns_of(feature)]
        numbers = isinstance(feature, Bucket | Normalize)
        for of, what in zip(columns_of(feature), found, strict=True):
            if (what.kind == "string") if numbers else (what.kind == "float"):
                wanted = "numbers" if numbers else "strings or integers"
                raise DtypeError(
                    f"features: {name!r} is a {type(feature).__name__} of {wanted}, "
                    f"but column {of!r} has values of kind {what.kind}"
                )
        return found

    def lengths(self, name: str, feature: Feature) -> HostArray:
        """Returns the lengths of the lists of a feature."""
        (column,) = columns_of(feature)
        return self._lengths[column]

    def _column(self, name: str, of_lists: bool) -> Column:
        if (name, of_lists) in self._read:
            return self._read[name, of_lists]
        if name not in self._batch:
            raise ArgumentError(
                f"features: column {name!r} is missing; there are "
                f"{sorted(map(str, self._batch))}"
            )
        given = self._batch[name]
        rows = sized(name, given)
        if self.rows is None:
            self.rows = rows
        elif self.rows != rows:
            raise ShapeError(
                f"features: column {name!r} has {rows} rows, others {self.rows}"
            )
        if of_lists:
            self._lengths[name], given = lists(name, given, self._before)
        found = column(name, given, self._before)
        known = self._kinds.get(name)
        if not found.kind:  # all are missing
            found = found.of_kind(known or "")
            if known == "string":
                found = Column(known, found.missing, texts=[""] * len(found))
        elif known == "float" and found.kind == "integer":
            found = found.of_kind(known)
        elif known is None or (known == "integer" and found.kind == "float"):
            self._kinds[name] = found.kind
        elif known != found.kind:
            row = self._before + int(np.argmin(found.missing))
            raise DtypeError(
                f"features: column {name!r}: row {row} is of kind {found.kind}, those "
                f"before of kind {known}"
            )
        self._read[name, of_lists] = found
        return found


def columns_of(feature: Feature) -> Sequence[str]:
    """Returns the names of a feature's columns.

    Args:
      feature: the feature.
    """
    return feature.columns if isinstance(feature, Cross) else (feature.column,)


def _padded(flat: HostArray, lengths: HostArray, width: int) -> Ids:
    """Returns rows of the ids of lists, cut or followed by 0."""
    out = np.zeros((len(lengths), width), np.int32)
    row = np.repeat(np.arange(len(lengths)), lengths)
    at = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    kept = at < width
    out[row[kept], at[kept]] = flat[kept]
    return out


def _ragged(
    name: str, flat: HostArray, lengths: HostArray, width: int | None, capacity: int
) -> Any:
    """Returns rows of the ids of lists as a ragged array of NumPy arrays."""
    if width is not None and lengths.max(initial=0) > width:
        at = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat, lengths = flat[at < width], np.minimum(lengths, width)
    if len(flat) > capacity:
        raise DataError(
            f"features: {name!r}: {len(lengths)} rows have {len(flat)} values, more "
            f"than capacity={capacity}; increase it, or bound rows by width="
        )
    values = np.zeros(capacity, np.int32)
    values[: len(flat)] = flat
    return made(values, lengths.astype(np.int32))


def _remainders(hashes: npt.NDArray[np.uint64], size: int) -> Ids:
    """Returns numbers below a size, of the upper half of each hash.

    A product and a shift take a fifth of the time of a division.
    """
    return ((hashes >> _HALF) * np.uint64(size) >> _HALF).astype(np.int32)


def _known(values: Sequence[Any]) -> npt.NDArray[np.uint64]:
    """Returns the hashes of the values of a vocabulary."""
    if values and isinstance(values[0], str):
        return hashes_of(values)
    return mixed(np.array(values, np.int64).view(np.uint64))


def _has_lists(feature: Feature) -> bool:
    """Returns whether each row of a feature's column is a list."""
    return isinstance(feature, Hash | Vocabulary) and (
        feature.width is not None or feature.capacity is not None
    )


def _at_least(kind: str, name: str, given: Any, least: int) -> None:
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if not least <= number <= _MOST:
        raise ArgumentError(
            f"{kind}: {name} must be an int from {least} to 2**31 - 1, got {given!r}"
        )


def _check_lists(kind: str, feature: Hash | Vocabulary) -> None:
    for name in ("width", "capacity"):
        if getattr(feature, name) is not None:
            _at_least(kind, name, getattr(feature, name), 1)
