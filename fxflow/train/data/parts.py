"""Parts of files of rows, one after the other, as batches of columns.

A part is what is read and parsed at once: a row group of a Parquet file, or a block of
lines. A position names a file, the part's place in it, and a row in the part, so that a
resumed run reads the part again and drops the rows before. `readers` says what the
parts of each format are; here they follow each other, over files and while files grow.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

from fxflow.errors import ArgumentError, DataError
from fxflow.lax.axes import number
from fxflow.train.data.parallel import Pairs
from fxflow.train.data.paths import Stamp, names, stamp
from fxflow.train.data.streams import Source, State


def arrow() -> Any:
    """Returns pyarrow.

    Raises:
      ImportError: it is not installed; the message names the extra.
    """
    try:
        import pyarrow
    except ImportError:
        raise ImportError(
            "readers of Parquet, CSV and JSON lines need pyarrow: "
            "pip install 'fxflow[arrow]'"
        ) from None
    return pyarrow


# -- what a user may say ---------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Follow:
    """Reading files that grow: what is appended is read when it is there.

    A last line is kept back until its end arrives. New files that match the pattern are
    read when all earlier ones end, so their names must follow the earlier ones'. Files
    of Parquet, compressed files and files at URLs do not grow: they must be complete
    when they appear.

    Args:
      idle: seconds without new rows after which the dataset ends; None: never.
      stop: called while there is nothing to read; true ends the dataset.
      linger: the most seconds that rows wait for a batch to be full.
      poll: seconds between looks at the files.

    Raises:
      ArgumentError: a number is negative, or `stop` is not a function.

    Example:
      >>> train.data.Follow(idle=60.0)
      Follow(idle=60.0, stop=None, linger=1.0, poll=0.1)
    """

    idle: float | None = None
    stop: Callable[[], bool] | None = None
    linger: float = 1.0
    poll: float = 0.1

    def __post_init__(self) -> None:
        for name in ("idle", "linger", "poll"):
            given = getattr(self, name)
            if given is None and name == "idle":
                continue
            if not number("Follow", name, given) >= 0:
                raise ArgumentError(
                    f"Follow: {name} must be at least 0 seconds, got {given!r}"
                )
        if self.stop is not None and not callable(self.stop):
            raise ArgumentError(f"Follow: stop must be a function, got {self.stop!r}")


class BadRows(NamedTuple):
    """Rows that cannot be read, as a function `errors=` of a reader gets them.

    Attributes:
      path: of the file.
      row: number of the first one in its file: of lines from 1, of Parquet from 0.
      number: how many rows.
      reason: what is wrong with them.

    Example:
      >>> train.data.BadRows("clicks.csv", 7, 1, "Expected 3 columns, got 2").row
      7
    """

    path: str
    row: int
    number: int
    reason: str


#: What to do about rows that cannot be read.
Errors = Literal["raise", "skip"] | Callable[[BadRows], object]


class _Bad:
    """The bad rows of a run: raised, reported or counted."""

    def __init__(self, name: str, errors: Errors, count: int) -> None:
        self._name, self._errors = name, errors
        self.count = count
        self._first: BadRows | None = None

    def add(self, rows: BadRows) -> None:
        if self._errors == "raise":
            raise DataError(f"{self._name}: {rows.path}, row {rows.row}: {rows.reason}")
        if not isinstance(self._errors, str):
            self._errors(rows)
        self._first = self._first or rows
        self.count += rows.number

    def end(self) -> None:
        """Warns of what was skipped in a file."""
        first, self._first = self._first, None
        if first is not None and self._errors == "skip":
            warnings.warn(
                f"{self._name}: skipped rows of {first.path} that cannot be read, the "
                f"first of them row {first.row}: {first.reason}",
                stacklevel=2,
            )


# -- what a format says ----------------------------------------------------------------


class Part(NamedTuple):
    """Rows that are read at once.

    Attributes:
      tables: pyarrow tables of the rows, read when they are asked for.
      rows: number of rows or lines, with bad ones.
      place: of the next part.
    """

    tables: Iterator[Any]
    rows: int
    place: int


class Format(Protocol):
    """An open file of a format.

    Attributes:
      schema: types of the columns as far as they are known; None at the beginning.
    """

    schema: Any

    def part(self, place: int, first: int, ended: bool, wanted: bool) -> Part | None:
        """Returns the part at a place, or None if there is nothing.

        Args:
          place: where the part begins; 0 is the first.
          first: number of rows or lines before it.
          ended: whether the file does not grow.
          wanted: whether the rows are; otherwise there are no tables.
        """

    def close(self) -> None:
        """Closes the file."""


#: Opens a file, with the types of columns that are known and what takes bad rows.
Opener = Callable[[str, Any, Callable[[BadRows], None]], Format]


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows of files in order, in batches, from any position.

    Args:
      name: of the function that the user called.
      opener: of the files' format.
      paths: of files, or a pattern.
      size: rows of a batch.
      errors: what to do about bad rows.
      follow: how files grow; None: they do not.
      grows: whether files of the format can grow.
      share: which parts are read: number `share[0]` of every `share[1]`.
    """

    name: str
    opener: Opener
    paths: Any
    size: int
    errors: Errors
    follow: Follow | None = None
    grows: bool = True
    share: tuple[int, int] = (0, 1)

    def __post_init__(self) -> None:
        if not (self.errors in ("raise", "skip") or callable(self.errors)):
            raise ArgumentError(
                f"{self.name}: errors must be 'raise', 'skip' or a function, got "
                f"{self.errors!r}"
            )
        if self.follow is not None and not isinstance(self.follow, Follow):
            raise ArgumentError(
                f"{self.name}: follow must be a Follow or None, got {self.follow!r}"
            )

    def shared(self, index: int, count: int) -> Rows:
        """Returns every `count`-th part of these rows."""
        first, step = self.share
        return dataclasses.replace(self, share=(first + index * step, count * step))

    def source(self) -> Source:
        """Returns the batches."""

        def start(epoch: int) -> State:
            # Rows before the part in its file, and parts in all files.
            counts = {"before": 0, "parts": 0, "skipped": 0}
            place = {"file": None, "place": 0, "row": 0}
            return {**place, **counts, "size": None, "schema": None}

        return Source(start, self._batches)

    def _batches(self, state: State) -> Pairs[dict[str, Any], State]:
        held: list[Any] = []
        count, since = 0, 0.0
        after = state
        for piece in _pieces(self, state):
            if piece is None:
                assert self.follow is not None
                if count and time.monotonic() - since >= self.follow.linger:
                    yield _columns(held), after
                    held, count = [], 0
                continue
            used, length = 0, piece.table.num_rows
            while length - used >= self.size - count:
                held.append(piece.table.slice(used, self.size - count))
                used += self.size - count
                yield _columns(held), piece.position(used)
                held, count = [], 0
            if used < length:
                since = since if count else time.monotonic()
                held.append(piece.table.slice(used))
                count += length - used
            after = piece.end
        if count:
            yield _columns(held), after


def _columns(tables: list[Any]) -> dict[str, Any]:
    """Returns one array for each column, which holds no other rows in memory."""
    pa = arrow()
    # A column may have no values, and so no type, in the first tables.
    table = pa.concat_tables(tables, promote_options="permissive")
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        chunks = column.chunks
        if len(chunks) == 1:
            used = chunks[0].nbytes
            if chunks[0].get_total_buffer_size() > 2 * used:
                chunks.append(chunks[0].slice(0, 0))  # two are copied
        found[name] = pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
    return found


# -- pieces of parts -------------------------------------------------------------------


class _Piece(NamedTuple):
    """Consecutive rows of a part.

    Attributes:
      table: the rows.
      state: the position before them.
      end: the position after them.
    """

    table: Any
    state: State
    end: State

    def position(self, used: int) -> State:
        """Returns the position after some of the rows."""
        if used == self.table.num_rows:
            return self.end
        return {**self.state, "row": self.state["row"] + used}


class _Files:
    """The files of a run, of which new ones may appear."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._quiet = time.monotonic()
        self.found = names(rows.name, rows.paths, absent=rows.follow is not None)

    def position(self, path: str | None) -> int:
        """Returns the number of the file of a position."""
        if path is None:
            return 0
        if path not in self.found:
            raise DataError(
                f"{self._rows.name}: {path}, where the saved position is, is not among "
                f"the files any more"
            )
        return self.found.index(path)

    def progress(self) -> None:
        """Notes that there were rows."""
        self._quiet = time.monotonic()

    def wait(self, current: int) -> bool:
        """Waits for rows or files after a file; returns False if the dataset ends."""
        rows, follow = self._rows, self._rows.follow
        if follow is None or (follow.stop is not None and follow.stop()):
            return False
        quiet = time.monotonic() - self._quiet
        if follow.idle is not None and quiet >= follow.idle:
            return False
        time.sleep(follow.poll)
        now = names(rows.name, rows.paths, absent=True)
        known = self.found[: current + 1]
        late = [p for p in now if p not in self.found and known and p < known[-1]]
        if late:
            raise DataError(
                f"{rows.name}: {late[0]} has appeared, but files up to {known[-1]} "
                "have been read: names of new files must follow those of earlier ones"
            )
        self.found = known + [p for p in now if p not in known]
        return True


def _pieces(rows: Rows, state: State) -> Iterator[_Piece | None]:
    """Yields rows, and None whenever there are none for now."""
    files = _Files(rows)
    file = files.position(state["file"])
    bad = _Bad(rows.name, rows.errors, state["skipped"])
    while True:
        while file < len(files.found):
            path = files.found[file]
            if state["file"] != path:
                fresh = {"place": 0, "row": 0, "before": 0, "size": None}
                state = {**state, **fresh, "file": path}

            def growing(file: int = file) -> bool:
                return file == len(files.found) - 1

            for piece in _file(rows, path, state, growing, bad):
                if isinstance(piece, dict):
                    state = piece
                    continue
                if piece is not None:
                    files.progress()
                yield piece
                if piece is None and not files.wait(file):
                    bad.end()
                    return
            bad.end()
            file += 1
        if not files.wait(file - 1):
            return
        if file == len(files.found):
            yield None


def _file(
    rows: Rows, path: str, state: State, growing: Callable[[], bool], bad: _Bad
) -> Iterator[_Piece | State | None]:
    """Yields the rows of a file, None while it waits, and positions between parts."""
    # What is opened at a URL, or compressed, does not see what is appended.
    whole = not rows.grows or path.endswith(".gz") or "://" in path
    grows = rows.follow is not None and not whole
    index, count = rows.share
    with _readable(rows.name, path):
        first = _unchanged(rows.name, path, stamp(path), state["size"], grows)
        schema = None if state["schema"] is None else from_text(state["schema"])
        opened = rows.opener(path, schema, bad.add)
    with contextlib.closing(opened), _readable(rows.name, path):
        while True:
            is_growing = grows and growing()
            wanted = state["parts"] % count == index
            part = opened.part(state["place"], state["before"], not is_growing, wanted)
            now = _unchanged(rows.name, path, stamp(path), first, grows)
            if part is None:
                if not is_growing:
                    return
                yield None
                continue
            state = {**state, "size": now.size}

            def end(state: State = state, part: Part = part) -> State:
                return {
                    **state,
                    "schema": to_text(opened.schema),
                    "place": part.place,
                    "row": 0,
                    "before": state["before"] + part.rows,
                    "parts": state["parts"] + 1,
                    "skipped": bad.count,
                }

            yield from _part(part, state, opened, end)
            _unchanged(rows.name, path, stamp(path), first, grows)
            state = end()
            yield state


def _part(
    part: Part, state: State, opened: Format, end: Callable[[], State]
) -> Iterator[_Piece]:
    """Yields the rows of a part after a position; the last ones end the part."""
    before, last = state["row"], None
    row = 0
    for table in part.tables:
        dropped = min(max(before - row, 0), table.num_rows)
        row += table.num_rows
        if dropped == table.num_rows:
            continue
        if last is not None:
            yield last
        start = {
            **state,
            "row": row - table.num_rows + dropped,
            "schema": to_text(opened.schema),
        }
        last = _Piece(table.slice(dropped), start, {**start, "row": row})
    if last is not None:
        yield last._replace(end=end())


@contextlib.contextmanager
def _readable(name: str, path: str) -> Iterator[None]:
    """Names the file in errors of the system."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{name}: cannot read {path}: {error}") from error


def _unchanged(
    name: str, path: str, now: Stamp, before: Stamp | int | None, grows: bool
) -> Stamp:
    """Returns what a file is known by now, checked against what it was."""
    size = before.size if isinstance(before, Stamp) else before
    if size is None:
        return now
    same = now.size >= size if grows else now.size == size
    if isinstance(before, Stamp):
        same = same and now.file == before.file
        same = same and (grows or now.modified == before.modified)
    if not same:
        raise DataError(
            f"{name}: {path} is not the file that it was: it had {size} bytes, now "
            f"{now.size}; a file must not be rewritten while it is read"
        )
    return now


# -- types of columns in positions -----------------------------------------------------


def to_text(schema: Any) -> str | None:
    """Returns types of columns as text."""
    return None if schema is None else base64.b64encode(schema.serialize()).decode()


def from_text(text: str) -> Any:
    """Returns types of columns that `to_text` has written."""
    pa = arrow()
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
