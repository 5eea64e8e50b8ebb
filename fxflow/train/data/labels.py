"""Labels that arrive after the rows they belong to, joined within a window of time."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from fxflow.errors import ArgumentError, DataError, ShapeError
from fxflow.lax.axes import number

Columns = Mapping[str, Any]


@dataclasses.dataclass
class LabelJoin:
    """Joins rows with labels that arrive later, by a key: clicks with impressions.

    A row is returned when its label arrives, or, with the values of `absent`, when the
    time of the data is `window` after the row's. That time is the latest of all rows,
    less `skew`, so that streams that are read again give the same rows. A label may be
    read before its row, and waits for as long; read labels no later than the rows of
    their time, since those end windows.

    Clocks of machines differ: a label may be up to `skew` earlier than its row. A time
    later than `now + skew` is wrong, and counts as that time; otherwise one wrong clock
    would end the window of all rows.

    Each row and label is returned or counted in `counts`: "late", labels after the
    window of their row; "unmatched", labels without a row; "repeated", further labels
    of a row; "twice", rows whose key is that of another; "ahead", times that are wrong.

    Args:
      key: name of the column of keys, in both.
      time: name of the column of times in seconds, in both.
      window: seconds that a row waits for its label.
      absent: names of the columns of labels, with the values of rows without a label.
      skew: seconds by which clocks may differ.

    Attributes:
      state: what waits, as a JSON value if keys and columns are; may be set.
      counts: how many rows and labels of each kind there were.

    Raises:
      ArgumentError: a number is negative, or there is no column in `absent`.

    Example:
      >>> join = train.data.LabelJoin("id", "time", 60.0, {"clicked": 0})
      >>> join.update({"id": [1, 2], "time": [0, 5]}, {"id": [], "time": []})
      {}
      >>> join.update(labels={"id": [2], "time": [9], "clicked": [1]})
      {'id': [2], 'time': [5], 'clicked': [1]}
      >>> join.update({"id": [3], "time": [61]})
      {'id': [1], 'time': [0], 'clicked': [0]}
    """

    key: str
    time: str
    window: float
    absent: Mapping[str, Any]
    skew: float = 0.0

    def __post_init__(self) -> None:
        for name in ("window", "skew"):
            if not number("LabelJoin", name, getattr(self, name)) >= 0:
                raise ArgumentError(
                    f"LabelJoin: {name} must be at least 0 seconds, got "
                    f"{getattr(self, name)!r}"
                )
        if not self.absent or {self.key, self.time} & self.absent.keys():
            raise ArgumentError(
                "LabelJoin: absent must have the columns of labels other than "
                f"{self.key!r} and {self.time!r}, got {self.absent!r}"
            )
        kinds = ("late", "unmatched", "repeated", "twice", "ahead")
        self.counts = dict.fromkeys(kinds, 0)
        self._latest = -math.inf
        self._names: list[str] | None = None
        # By key: time, values of the row (None: returned).
        self._rows: dict[Any, tuple[float, list[Any] | None]] = {}
        # By key: time, values of the label.
        self._early: dict[Any, tuple[float, list[Any]]] = {}
        self._ends: list[tuple[float, int, Any]] = []  # a heap of times and keys
        self._added = 0

    @property
    def state(self) -> dict[str, Any]:
        """What waits, and the counts."""
        return {
            "latest": None if self._latest == -math.inf else self._latest,
            "names": self._names,
            "rows": [[key, *row] for key, row in self._rows.items()],
            "early": [[key, *label] for key, label in self._early.items()],
            "counts": dict(self.counts),
        }

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        latest = state["latest"]
        self._latest = -math.inf if latest is None else latest
        self._names, self.counts = state["names"], dict(state["counts"])
        self._rows = {key: (time, row) for key, time, row in state["rows"]}
        self._early = {key: (time, label) for key, time, label in state["early"]}
        self._ends = []
        for waiting in (self._rows, self._early):
            for key, (time, _) in waiting.items():
                self._wait(time, key)

    def update(
        self,
        rows: Columns | None = None,
        labels: Columns | None = None,
        *,
        now: float | None = None,
    ) -> dict[str, list[Any]]:
        """Adds rows and labels, and returns the rows that are complete.

        Args:
          rows: columns by name, arrays or sequences; None: no rows.
          labels: columns by name, with those of `absent`; None: no labels.
          now: the time by a clock that is right; None: all times are believed.

        Returns:
          Columns of complete rows as lists, with those of labels; empty without rows.

        Raises:
          DataError: a column is missing, or a time is not a number.
          ShapeError: columns differ in length.
        """
        done: list[list[Any]] = []
        for key, time, values in self._read("rows", rows, now):
            if key in self._rows:
                self.counts["twice"] += 1
                continue
            self._rows[key] = (time, values)
            self._wait(time, key)
            if key in self._early:
                self._match(key, *self._early.pop(key), done)
        for key, time, values in self._read("labels", labels, now):
            self._match(key, time, values, done)
        return self._columns(done + self._expired(self._latest - self.skew))

    def finish(self) -> dict[str, list[Any]]:
        """Returns the rows that still wait, as without labels."""
        return self._columns(self._expired(math.inf))

    def _match(self, key: Any, time: float, label: list[Any], done: list[Any]) -> None:
        if key not in self._rows:
            if key in self._early:
                self.counts["repeated"] += 1
            else:
                self._early[key] = (time, label)
                self._wait(time, key)
            return
        since, row = self._rows[key]
        if row is None:
            self.counts["repeated"] += 1
        elif not -self.skew <= time - since <= self.window + self.skew:
            self.counts["late"] += 1
        else:
            done.append(row + label)
            self._rows[key] = (since, None)

    def _wait(self, time: float, key: Any) -> None:
        self._added += 1
        heapq.heappush(self._ends, (time, self._added, key))

    def _expired(self, now: float) -> list[list[Any]]:
        """Returns rows without labels whose window has ended, and forgets the rest."""
        absent, done = [*self.absent.values()], []
        while self._ends and self._ends[0][0] + self.window < now:
            time, _, key = heapq.heappop(self._ends)
            if key in self._rows and self._rows[key][0] == time:
                row = self._rows.pop(key)[1]
                if row is not None:
                    done.append(row + absent)
            elif key in self._early and self._early[key][0] == time:
                del self._early[key]
                self.counts["unmatched"] += 1
        return done

    def _read(self, what: str, columns: Columns | None, now: float | None) -> Any:
        """Returns key, time and values of each row, in order."""
        if columns is None:
            return ()
        names = [*self.absent] if what == "labels" else self._names
        if names is None:
            names = self._names = [*columns]
        lists = {}
        for name in (self.key, self.time, *names):
            if name not in columns:
                if what == "labels" and not any(map(len, columns.values())):
                    return ()
                raise DataError(
                    f"LabelJoin: {what} have no column {name!r}; they have "
                    f"{sorted(columns)}"
                )
            lists[name] = _list(columns[name])
        if len({*map(len, lists.values())}) > 1:
            raise ShapeError(
                f"LabelJoin: columns of {what} differ in length: "
                f"{ {name: len(values) for name, values in lists.items()} }"
            )
        times = [self._clock(what, i, t, now) for i, t in enumerate(lists[self.time])]
        if what == "rows":
            self._latest = max(self._latest, *times) if times else self._latest
        values = map(list, zip(*(lists[name] for name in names), strict=True))
        return zip(lists[self.key], times, values, strict=True)

    def _clock(self, what: str, row: int, time: Any, now: float | None) -> float:
        if isinstance(time, bool) or not isinstance(time, int | float) or time != time:
            raise DataError(
                f"LabelJoin: {what}: row {row} has the time {time!r}, not seconds"
            )
        if now is not None and time > now + self.skew:
            self.counts["ahead"] += 1
            return now + self.skew
        return float(time)

    def _columns(self, rows: list[list[Any]]) -> dict[str, list[Any]]:
        if not rows:
            return {}
        names = itertools.chain(self._names or (), self.absent)
        return {name: [*v] for name, v in zip(names, zip(*rows), strict=True)}


def _list(column: Any) -> Sequence[Any]:
    """Returns a column as a list of Python's values."""
    for method in ("to_pylist", "tolist"):
        if hasattr(column, method):
            found: list[Any] = getattr(column, method)()
            return found
    return [*column]
