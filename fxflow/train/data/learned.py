"""What features learn from data: counts of values and moments, of any part of it.

Statistics of parts are merged, so that processes count their own files. Counts may be
held in bounded memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fxflow.errors import DataError, DtypeError
from fxflow.train.data.columns import Column

#: Count, mean, and sum of squared deviations.
Moments = tuple[int, float, float]


class Counts:
    """How often values occur, of the most frequent values only.

    When there are twice as many values as are kept, the count of the largest one that
    is not kept is subtracted from all counts, and those that are not positive are
    dropped.
    So a count is too small by at most `error`, and that is at most the number of
    all values divided by `most + 1`.

    Args:
      most: number of values that are kept; None: all.

    Source: Misra, Gries 1982, "Finding repeated elements"; Agarwal et al. 2012,
    "Mergeable summaries".
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self.error = 0
        self.found: dict[Any, int] = {}

    def add(self, counts: Mapping[Any, int], error: int = 0) -> None:
        """Adds counts, which are too small by at most `error`."""
        found = self.found
        get = found.get
        for value, count in counts.items():
            found[value] = get(value, 0) + count
        self.error += error
        if self.most is not None and len(found) > 2 * self.most:
            self._reduce(self.most)

    def _reduce(self, most: int) -> None:
        counts = np.fromiter(self.found.values(), np.int64, len(self.found))
        place = len(counts) - most - 1
        less = int(np.partition(counts, place)[place])
        self.found = {v: n - less for v, n in self.found.items() if n > less}
        self.error += less


def merged(a: Moments, b: Moments) -> Moments:
    """Returns the moments of two samples together.

    Source: Chan, Golub, LeVeque 1979, "Updating formulae and a pairwise algorithm for
    computing sample variances".
    """
    if not b[0]:
        return a
    count, apart = a[0] + b[0], b[1] - a[1]
    mean = a[1] + apart * b[0] / count
    return count, mean, a[2] + b[2] + apart**2 * a[0] * b[0] / count


def moments(name: str, column: Column, values: Any, before: int) -> Moments:
    """Returns the moments of the values of a column that are not missing.

    Raises:
      DataError: a value is infinite.
    """
    present = values[~column.missing]
    if not len(present):
        return 0, 0.0, 0.0
    mean = float(present.mean())
    if not math.isfinite(mean):
        row = before + int(np.argmax(np.isinf(values) & ~column.missing))
        raise DataError(
            f"features: column {name!r}: row {row} is infinite, and so is the mean"
        )
    return len(present), mean, float(((present - mean) ** 2).sum())


class Learned:
    """The counts and moments of features, and the kinds of their columns.

    Args:
      most: by the name of a vocabulary, how many values are counted; None: all.
      normalized: names of features that need moments.
    """

    version: ClassVar[int] = 1

    def __init__(self, most: Mapping[str, int | None], normalized: list[str]) -> None:
        self.counts = {name: Counts(bound) for name, bound in most.items()}
        self.moments: dict[str, Moments] = dict.fromkeys(normalized, (0, 0.0, 0.0))
        self.kinds: dict[str, str] = {}
        self.rows = 0

    def add(self, other: Learned) -> None:
        """Adds what was learned from other data.

        Raises:
          DtypeError: a column has another kind there.
        """
        for name, kind in other.kinds.items():
            known = self.kinds.setdefault(name, kind)
            if {known, kind} == {"integer", "float"}:
                self.kinds[name] = "float"
            elif known != kind:
                raise DtypeError(
                    f"Statistics.merged: column {name!r} is of kind {known} in one "
                    f"part and {kind} in another"
                )
        for name, counts in other.counts.items():
            self.counts[name].add(counts.found, counts.error)
        for name, more in other.moments.items():
            self.moments[name] = merged(self.moments[name], more)
        self.rows += other.rows

    def to_json(self) -> str:
        """Returns this as JSON."""
        counts = {
            name: [[*one.found], [*one.found.values()], one.error]
            for name, one in self.counts.items()
        }
        parts = {"counts": counts, "moments": self.moments, "kinds": self.kinds}
        return json.dumps({"version": self.version, "rows": self.rows, **parts})

    def read(self, text: str) -> None:
        """Reads what `to_json` has written.

        Raises:
          ValueError: it is of other features or of another version.
        """
        given = json.loads(text)
        if given["version"] != self.version:
            raise ValueError(f"version {given['version']} is not {self.version}")
        same = given["counts"].keys() == self.counts.keys()
        if not same or given["moments"].keys() != self.moments.keys():
            raise ValueError("they are statistics of other features")
        for name, (values, counts, error) in given["counts"].items():
            self.counts[name].add(dict(zip(values, counts, strict=True)), error)
        self.moments = {name: tuple(m) for name, m in given["moments"].items()}
        self.kinds, self.rows = given["kinds"], given["rows"]
