"""Features: columns of raw data as arrays of ids and numbers, described once.

A description is a value without code of the user's, so that training and serving make
the same arrays: a program that trains fits it and saves it as JSON, a program that
serves reads it.

    described = Features({"site": Hash("site", 10_000), "age": Bucket("age", [18, 65])})
    fitted = described.fit(batches_of_columns)     # one pass
    arrays = fitted({"site": ["a.com", None], "age": [30, 17]})

Id 0 of every feature stands for what is missing (None or nan), unknown or padding. A
column has one kind of values, strings or numbers, from the first batch on.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.errors import ArgumentError, DtypeError, ShapeError

Ids = npt.NDArray[np.int32]
HostArray = np.ndarray[Any, Any]

# From the finalizer of MurmurHash3.
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_HALF = np.uint64(33)
_MOST = 2**31 - 1


class _Column(NamedTuple):
    """Values of a column: strings in an object array, integers or floats."""

    kind: str
    values: HostArray
    missing: npt.NDArray[np.bool_]


# -- features --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Hash:
    """Ids from 1 of a hash of strings or integers.

    The hash is the same in every process and version: BLAKE2b of UTF-8 for strings.

    Args:
      column: name of the column.
      size: number of ids, with 0.
      width: None: one value in each row; else each row is a list of values, of which
        the first `width` count.

    Raises:
      ArgumentError: the size is less than 2, or the width less than 1.

    Example:
      >>> hashed = train.data.Features({"site": train.data.Hash("site", 100)}).fit([])
      >>> hashed({"site": ["a.com", None, "a.com"]})["site"].tolist()
      [21, 0, 21]
    """

    column: str
    size: int
    width: int | None = None

    def __post_init__(self) -> None:
        _at_least("Hash", "size", self.size, 2)
        _check_width("Hash", self.width)


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """Ids from 1 of the values that the fit has seen often enough.

    The most frequent value has id 1; equally frequent ones are in order.

    Args:
      column: name of the column, of strings or integers.
      minimum: how often a value must occur.
      most: maximum number of values, the most frequent ones; None: all.
      width: None: one value in each row; else each row is a list of values, of which
        the first `width` count.

    Raises:
      ArgumentError: a number is less than 1.

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

    def __post_init__(self) -> None:
        _at_least("Vocabulary", "minimum", self.minimum, 1)
        if self.most is not None:
            _at_least("Vocabulary", "most", self.most, 1)
        _check_width("Vocabulary", self.width)


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

    Example:
      >>> scaled = train.data.Features({"price": train.data.Normalize("price")})
      >>> fitted = scaled.fit([{"price": [1.0, 2.0]}, {"price": [3.0, 6.0]}])
      >>> fitted({"price": [3.0, None]})["price"].tolist()
      [0.0, 0.0]

    Source: Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for
    computing sample variances".
    """

    column: str


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
      Features({'site': Hash(column='site', size=100, width=None)})
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

    def fit(self, batches: Iterable[Mapping[str, Any]]) -> FittedFeatures:
        """Returns the features with vocabularies and statistics of data.

        Args:
          batches: the data, in one pass: columns by name, NumPy arrays or sequences of
            strings and numbers. More columns than needed do no harm. No batches: only
            features that learn nothing can be made, and columns may have any kind.

        Raises:
          ArgumentError: a column is missing.
          DtypeError: a column has values of a kind that a feature does not take, or
            that differs from the rows before.
          ShapeError: the columns of a batch differ in length.
        """
        kinds: dict[str, str] = {}
        counts: dict[str, Counter[Any]] = {
            name: Counter()
            for name, feature in self.features.items()
            if isinstance(feature, Vocabulary)
        }
        moments = {
            name: (0, 0.0, 0.0)
            for name, feature in self.features.items()
            if isinstance(feature, Normalize)
        }
        before = 0
        for batch in batches:
            reader = _Reader(batch, kinds, before)
            for name, feature in self.features.items():
                columns = reader.read(name, feature)
                if isinstance(feature, Vocabulary):
                    (column,) = columns
                    present = column.values[~column.missing]
                    counts[name].update(present.tolist())
                elif isinstance(feature, Normalize):
                    (column,) = columns
                    moments[name] = _merged(moments[name], column)
            before += reader.rows or 0
        learned: dict[str, Any] = {}
        for name, feature in self.features.items():
            if isinstance(feature, Vocabulary):
                often = [
                    (-count, value)
                    for value, count in counts[name].items()
                    if count >= feature.minimum
                ]
                learned[name] = [value for _, value in sorted(often)[: feature.most]]
            elif isinstance(feature, Normalize):
                count, mean, squares = moments[name]
                deviation = math.sqrt(squares / count) if count else 0.0
                learned[name] = [mean, deviation or 1.0]
        return FittedFeatures(self.features, kinds, learned)


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
      ([21], {'site': 100})
    """

    version: ClassVar[int] = 1

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
          By name, int32[n] or int32[n, width] of ids, or float32[n].

        Raises:
          ArgumentError: a column is missing.
          DtypeError: a column has values of another kind than in the fit.
          ShapeError: the columns differ in length.
        """
        reader = _Reader(batch, dict(self.kinds), 0)
        found: dict[str, HostArray] = {}
        for name, feature in self.features.items():
            columns = reader.read(name, feature)
            made = self._made(name, feature, columns)
            width = getattr(feature, "width", None)
            if width is not None:
                made = _padded(made, reader.lengths(name, feature), width)
            found[name] = made
        return found

    def _made(
        self, name: str, feature: Feature, columns: Sequence[_Column]
    ) -> HostArray:
        """Returns the array of a feature; lists are one after the other."""
        missing = functools.reduce(operator.or_, (c.missing for c in columns))
        values = columns[0].values
        if isinstance(feature, Normalize):
            mean, deviation = self.learned[name]
            scaled = (values - mean) / deviation
            return np.where(missing, 0, scaled).astype(np.float32)
        if isinstance(feature, Bucket):
            ids = np.searchsorted(feature.edges, values, side="right") + 1
        elif isinstance(feature, Vocabulary):
            index = self._indices[name]
            ids = np.fromiter(
                (index.get(v, 0) for v in values.tolist()), np.int64, len(values)
            )
        else:
            total = _hashes(columns[0])
            for column in columns[1:]:
                total = _mixed(total) ^ _hashes(column)
            ids = (_mixed(total) % np.uint64(feature.size - 1)).astype(np.int64) + 1
        return np.where(missing, 0, ids).astype(np.int32)

    @functools.cached_property
    def _indices(self) -> dict[str, dict[Any, int]]:
        return {
            name: {value: i for i, value in enumerate(self.learned[name], 1)}
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
        self._read: dict[tuple[str, bool], _Column] = {}
        self._lengths: dict[str, HostArray] = {}
        self.rows: int | None = None

    def read(self, name: str, feature: Feature) -> list[_Column]:
        """Returns the columns of a feature."""
        lists = getattr(feature, "width", None) is not None
        found = [self._column(c, lists) for c in columns_of(feature)]
        numbers = isinstance(feature, Bucket | Normalize)
        for column, what in zip(columns_of(feature), found, strict=True):
            if (what.kind == "string") if numbers else (what.kind == "float"):
                wanted = "numbers" if numbers else "strings or integers"
                raise DtypeError(
                    f"features: {name!r} is a {type(feature).__name__} of {wanted}, "
                    f"but column {column!r} has values of kind {what.kind}"
                )
        return found

    def lengths(self, name: str, feature: Feature) -> HostArray:
        """Returns the lengths of the lists of a feature."""
        (column,) = columns_of(feature)
        return self._lengths[column]

    def _column(self, name: str, lists: bool) -> _Column:
        if (name, lists) in self._read:
            return self._read[name, lists]
        if name not in self._batch:
            raise ArgumentError(
                f"features: column {name!r} is missing; there are "
                f"{sorted(map(str, self._batch))}"
            )
        given = self._batch[name]
        if not hasattr(given, "__len__") or isinstance(given, str):
            raise ArgumentError(
                f"features: column {name!r} must be an array or a sequence, got "
                f"{type(given).__name__}"
            )
        if self.rows is None:
            self.rows = len(given)
        elif self.rows != len(given):
            raise ShapeError(
                f"features: column {name!r} has {len(given)} rows, others {self.rows}"
            )
        if lists:
            given = [() if row is None else row for row in given]
            for i, row in enumerate(given):
                if isinstance(row, str) or not hasattr(row, "__len__"):
                    raise _mixed_kinds(name, self._before + i, row, "a list of values")
            self._lengths[name] = np.fromiter(map(len, given), np.int64, len(given))
            given = [value for row in given for value in row]
        column = _column_of(name, given, self._before)
        known = self._kinds.get(name)
        if column.missing.all():
            # Values that no one reads, of the kind of the column.
            blank: Any = np.full(len(column.missing), "", object)
            blank = blank if known == "string" else column.missing.astype(np.int64)
            column = _Column(known or "", blank, column.missing)
        elif known == "float" and column.kind == "integer":
            column = column._replace(kind=known)
        elif known is None or (known == "integer" and column.kind == "float"):
            self._kinds[name] = column.kind
        elif known != column.kind:
            row = self._before + int(np.argmin(column.missing))
            raise DtypeError(
                f"features: column {name!r}: row {row} is of kind {column.kind}, those "
                f"before of kind {known}"
            )
        self._read[name, lists] = column
        return column


def _column_of(name: str, given: Any, before: int) -> _Column:
    """Returns a column with the kind of its values, checked."""
    if isinstance(given, np.ndarray) and given.ndim != 1:
        raise ShapeError(
            f"features: column {name!r} must have one axis, got shape {given.shape}"
        )
    if isinstance(given, np.ndarray) and given.dtype.kind in "iuf":
        if given.dtype.kind == "f":
            return _Column("float", given.astype(np.float64), np.isnan(given))
        return _Column("integer", given.astype(np.int64), np.zeros(len(given), bool))
    values = given.tolist() if isinstance(given, np.ndarray) else list(given)
    count = len(values)
    missing = np.fromiter(map(_is_missing, values), bool, count)
    if any(isinstance(v, str) for v in values):
        for i, v in enumerate(values):
            if not (missing[i] or isinstance(v, str)):
                raise _mixed_kinds(name, before + i, v, "a string, as in other rows")
        strings = np.empty(count, object)
        strings[:] = ["" if m else v for m, v in zip(missing, values, strict=True)]
        return _Column("string", strings, missing)
    for i, v in enumerate(values):
        number = isinstance(v, int | float | np.integer | np.floating)
        if not missing[i] and (isinstance(v, bool | np.bool_) or not number):
            raise _mixed_kinds(name, before + i, v, "a string or a number")
    whole = all(
        isinstance(v, int | np.integer)
        for m, v in zip(missing, values, strict=True)
        if not m
    )
    filled = [0 if m else v for m, v in zip(missing, values, strict=True)]
    if whole:
        try:
            return _Column("integer", np.array(filled, np.int64), missing)
        except OverflowError:
            raise DtypeError(
                f"features: column {name!r} has an integer that does not fit 64 bits"
            ) from None
    return _Column("float", np.array(filled, np.float64), missing)


def _is_missing(value: Any) -> bool:
    return value is None or (
        isinstance(value, float | np.floating) and bool(value != value)
    )


def _mixed_kinds(name: str, row: int, value: Any, wanted: str) -> DtypeError:
    return DtypeError(
        f"features: column {name!r}: row {row} is {value!r}, of type "
        f"{type(value).__name__}; expected {wanted}"
    )


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


def _merged(moments: tuple[int, float, float], column: _Column) -> Any:
    """Returns count, mean and sum of squared deviations with those of a column."""
    values = column.values[~column.missing].astype(np.float64)
    count, mean, squares = moments
    more = len(values)
    if not more:
        return moments
    own = float(values.mean())
    total, apart = count + more, own - mean
    squares += float(((values - own) ** 2).sum()) + apart**2 * count * more / total
    return total, mean + apart * more / total, squares


def _hashes(column: _Column) -> npt.NDArray[np.uint64]:
    """Returns a hash of each value, the same in every process."""
    if column.kind != "string":
        return _mixed(column.values.astype(np.int64).view(np.uint64))
    values = column.values.tolist()
    known = {
        value: int.from_bytes(
            hashlib.blake2b(
                value.encode("utf-8", "surrogatepass"), digest_size=8
            ).digest(),
            "little",
        )
        for value in set(values)
    }
    return np.fromiter((known[v] for v in values), np.uint64, len(values))


def _mixed(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Returns the finalizer of MurmurHash3."""
    for factor in _MIX:
        bits = (bits ^ (bits >> _HALF)) * factor
    mixed: npt.NDArray[np.uint64] = bits ^ (bits >> _HALF)
    return mixed


def _at_least(kind: str, name: str, given: Any, least: int) -> None:
    try:
        number = operator.index(given)
    except TypeError:
        number = least - 1
    if not least <= number <= _MOST:
        raise ArgumentError(
            f"{kind}: {name} must be an int from {least} to 2**31 - 1, got {given!r}"
        )


def _check_width(kind: str, width: int | None) -> None:
    if width is not None:
        _at_least(kind, "width", width, 1)
