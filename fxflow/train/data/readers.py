"""Rows of Parquet, CSV and JSON lines, and of iterables, as batches of columns.

A batch is a dictionary of pyarrow arrays, which `Features` takes as it is, and of which
`np.asarray` makes NumPy arrays. All files have the columns and types of the first rows,
unless the user says which; what differs is an error or skipped, never converted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from fxflow.errors import ArgumentError, DataError
from fxflow.lax.axes import natural
from fxflow.train.data import batching
from fxflow.train.data.dataset import Dataset
from fxflow.train.data.parts import BadRows, Errors, Follow, Part, Rows, arrow
from fxflow.train.data.paths import Path, opened
from fxflow.train.data.sources import iterable

Columns = dict[str, Any]
Report = Callable[[BadRows], None]

#: Bytes of lines that are parsed at once.
_BLOCK = 8 << 20
#: The fewest rows of Parquet that are decoded at once.
_DECODED = 1 << 16


class _Table(Dataset[Columns]):
    """A dataset of batches of columns, whose parts can be divided."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.source())
        self._rows = rows

    def _sharded(self, index: int, count: int, drop: bool) -> Dataset[Columns]:
        if self._rows.follow is not None:
            raise ArgumentError(
                f"shard: the parts of files that grow depend on when they are read; "
                f"call {self._rows.name} with other files in each process"
            )
        if drop:
            return super()._sharded(index, count, drop)
        return _Table(self._rows.shared(index, count))


def parquet(
    paths: Path | Iterable[Path],
    *,
    size: int = 8192,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    errors: Errors = "raise",
    follow: Follow | None = None,
) -> Dataset[Columns]:
    """Makes a dataset of batches of columns from Parquet files.

    Args:
      paths: names, or one pattern such as `"logs/*.parquet"`, whose matches are sorted.
        A pattern may be a URL, which needs fsspec (extra `data`).
      size: rows of a batch; the last one may have fewer. Batches go on from one file to
        the next.
      columns: names of columns to read; None: all those of the first file, which other
        files must have too.
      types: types of columns, by name: "string", "integer", "float" or a type of
        pyarrow. Columns that are not named have the types of the first file. Values
        are converted if nothing is lost.
      errors: what happens with a row group that is corrupt, or a value that does not
        have the column's type: "raise"; "skip", which warns once for each file; or a
        function, called with `BadRows`, that may raise. Files that cannot be opened or
        that change while they are read are always errors.
      follow: reading new files as they appear. A file must be complete when it does:
        write it under another name, and rename it.

    Returns:
      A dataset of dictionaries of pyarrow arrays, which resumes within a row group.
      Positions count the skipped rows before them (`"skipped"`). `shard` with
      `drop_remainder=False` divides row groups, so that a process reads only its own;
      otherwise each reads all.

    Raises:
      ArgumentError: an argument is not valid.
      DataError: no file matches; or, on reading, what the arguments do not allow, with
        the file and the row.
      ImportError: pyarrow is not installed.

    Example:
      >>> import os, pyarrow, pyarrow.parquet, tempfile
      >>> path = os.path.join(tempfile.mkdtemp(), "clicks.parquet")
      >>> table = pyarrow.table({"site": ["a.com", None, "b.org"], "age": [17, 40, 65]})
      >>> pyarrow.parquet.write_table(table, path)
      >>> for batch in train.data.parquet(path, size=2):
      ...     print(batch["site"].to_pylist(), np.asarray(batch["age"]))
      ['a.com', None] [17 40]
      ['b.org'] [65]
    """
    wanted = _Wanted("parquet", columns, types)
    return _table("parquet", _Parquet, wanted, paths, size, errors, follow, grows=False)


def csv(
    paths: Path | Iterable[Path],
    *,
    size: int = 8192,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    errors: Errors = "raise",
    follow: Follow | None = None,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    missing: Sequence[str] = ("",),
) -> Dataset[Columns]:
    r"""Makes a dataset of batches of columns from CSV files.

    Args:
      paths: as for `parquet`; files that end in `.gz` are decompressed.
      size: as for `parquet`.
      columns: as for `parquet`.
      types: as for `parquet`. The type of a column that is not named is inferred from
        the first values that are not missing, in the first megabytes.
      errors: as for `parquet`; bad rows are lines with another number of values, with
        values of another type, or that are not UTF-8.
      follow: reading lines as they are appended to the last file, and new files.
      names: names of the columns, of files without a first line that has them.
      delimiter: between values, one character: `"\t"` for tabs.
      missing: texts that stand for a missing value, if they are not in quotes.

    Returns:
      A dataset as that of `parquet`; it resumes within a block of lines, and divides
      blocks. Values in quotes end on their line.

    Raises:
      ArgumentError: an argument is not valid.
      DataError: as for `parquet`.
      ImportError: pyarrow is not installed.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.csv"
      >>> _ = path.write_text("site,age\na.com,17\nb.org,\n")
      >>> next(iter(train.data.csv(path)))["age"].to_pylist()
      [17, None]
    """
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise ArgumentError(f"csv: delimiter must be one character, got {delimiter!r}")
    wanted = _Wanted("csv", columns, types)
    given = None if names is None else _names("csv", "names", names)

    def opener(wanted: _Wanted, path: str, schema: Any, report: Report) -> _Csv:
        form = _Csv(wanted, path, schema, report)
        form.says(given, delimiter, _names("csv", "missing", missing))
        return form

    return _table("csv", opener, wanted, paths, size, errors, follow)


def json_lines(
    paths: Path | Iterable[Path],
    *,
    size: int = 8192,
    columns: Sequence[str] | None = None,
    types: Mapping[str, Any] | None = None,
    errors: Errors = "raise",
    follow: Follow | None = None,
) -> Dataset[Columns]:
    r"""Makes a dataset of batches of columns from files with a JSON object in a line.

    Args:
      paths: as for `csv`.
      size: as for `parquet`.
      columns: fields to read; None: all those of the first block of lines. Then a field
        that appears later makes its row a bad one. A field that is absent is missing.
      types: as for `csv`.
      errors: as for `parquet`; bad rows are lines that are not one object, or have
        values of another type.
      follow: as for `csv`.

    Returns:
      A dataset as that of `csv`.

    Raises:
      ArgumentError: an argument is not valid.
      DataError: as for `parquet`.
      ImportError: pyarrow is not installed.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.jsonl"
      >>> _ = path.write_text('{"site": "a.com", "tags": ["x", "y"]}\n{"tags": []}\n')
      >>> batch = next(iter(train.data.json_lines(path)))
      >>> batch["site"].to_pylist(), batch["tags"].to_pylist()
      (['a.com', None], [['x', 'y'], []])
    """
    wanted = _Wanted("json_lines", columns, types)
    return _table("json_lines", _Json, wanted, paths, size, errors, follow)


def records(
    source: Iterable[Mapping[str, Any]]
    | Dataset[Mapping[str, Any]]
    | Callable[[], Any],
    *,
    size: int,
    columns: Sequence[str] | None = None,
) -> Dataset[dict[str, list[Any]]]:
    """Makes a dataset of batches of columns from rows, such as messages of a queue.

    Args:
      source: a dataset of dictionaries, or what `iterable` takes.
      size: rows of a batch; the last one may have fewer.
      columns: fields to keep; None: those of the first row of a batch, and another
        field in a later row is an error. A field that a row does not have is None.

    Returns:
      A dataset of dictionaries of lists, which resumes as the source does.

    Raises:
      DataError: on reading, a row is not a dictionary, or has another field.

    Example:
      >>> rows = [{"age": 17, "site": "a.com"}, {"site": "b.org"}]
      >>> list(train.data.records(rows, size=2))
      [{'age': [17, None], 'site': ['a.com', 'b.org']}]
    """
    size = natural("records", "size", size)
    kept = None if columns is None else _names("records", "columns", columns)
    rows = source if isinstance(source, Dataset) else iterable(source)

    def join(group: list[Any]) -> dict[str, list[Any]]:
        for number, row in enumerate(group):
            if not isinstance(row, Mapping):
                raise DataError(
                    f"records: row {number} of a batch is a {type(row).__name__}, not "
                    "a dictionary"
                )
        chosen = list(group[0]) if kept is None else kept
        known = set(chosen)
        for number, row in enumerate(group if kept is None else ()):
            if more := row.keys() - known:
                raise DataError(
                    f"records: row {number} of a batch has a field {sorted(more)[0]!r} "
                    f"that row 0 does not have; columns= says which to keep"
                )
        return {name: [row.get(name) for row in group] for name in chosen}

    return Dataset(
        rows.source.then(lambda pairs: batching.batched(pairs, size, False, join))
    )


def _table(
    name: str,
    form: Callable[[_Wanted, str, Any, Report], Any],
    wanted: _Wanted,
    paths: Any,
    size: int,
    errors: Errors,
    follow: Follow | None,
    grows: bool = True,
) -> Dataset[Columns]:
    def opener(path: str, schema: Any, report: Report) -> Any:
        return form(wanted, path, schema, report)

    size = natural(name, "size", size)
    return _Table(Rows(name, opener, paths, size, errors, follow, grows))


def _names(name: str, argument: str, given: Any) -> list[str]:
    found = None if isinstance(given, str) else list(given)
    if found is None or not all(isinstance(one, str) for one in found):
        raise ArgumentError(
            f"{name}: {argument} must be a sequence of strings, got {given!r}"
        )
    return found


# -- columns and types -----------------------------------------------------------------


class _Wanted:
    """The columns and types that a user has named.

    Args:
      name: of the function that the user called.
      columns: names; None: all.
      types: types of columns.
    """

    def __init__(self, name: str, columns: Any, types: Any) -> None:
        pa = arrow()
        self.name = name
        self.columns = None if columns is None else _names(name, "columns", columns)
        known = {"string": pa.string(), "integer": pa.int64(), "float": pa.float64()}
        self.types: dict[str, Any] = {}
        for column, given in dict(types or {}).items():
            found = known.get(given) if isinstance(given, str) else given
            if not isinstance(found, pa.DataType):
                raise ArgumentError(
                    f"{name}: types[{column!r}] must be {', '.join(map(repr, known))} "
                    f"or a pyarrow.DataType, got {given!r}"
                )
            self.types[column] = found
        if self.columns is not None:
            if not self.columns:
                raise ArgumentError(f"{name}: columns must name at least one column")
            unknown = sorted(set(self.types).difference(self.columns))
            if unknown:
                raise ArgumentError(
                    f"{name}: types names {unknown}, which columns={self.columns} does "
                    "not"
                )

    def chosen(self, path: str, found: Sequence[str], schema: Any) -> list[str]:
        """Returns the columns to read of those of a file, checked.

        Raises:
          DataError: columns are missing, there is one that was not there before, or two
            have one name.
        """
        before = self.columns or (schema and schema.names)
        absent = [c for c in before or self.types if c not in found]
        if absent:
            raise DataError(
                f"{self.name}: {path} has no column {absent[0]!r}; it has {list(found)}"
            )
        more = [c for c in found if c not in (before or found)]
        if more and self.columns is None:
            raise DataError(
                f"{self.name}: {path} has a column {more[0]!r} that the files before "
                "do not have; columns= says which to read"
            )
        chosen = list(before or found)
        twice = [c for c in chosen if list(found).count(c) > 1]
        if twice:
            raise DataError(f"{self.name}: {path} has two columns {twice[0]!r}")
        return chosen


def _good(
    count: int,
    attempt: Callable[[int, int], Any],
    first: int,
    path: str,
    report: Report,
) -> Iterator[Any]:
    """Yields tables of all rows but the bad ones, which bisection finds.

    Args:
      count: number of rows.
      attempt: returns the table of rows from one to before another, or raises.
      first: number of the first row in its file.
      path: of the file.
      report: called with a bad row.
    """
    ranges = [(0, count)]
    while ranges:
        start, stop = ranges.pop()
        try:
            yield attempt(start, stop)
            continue
        except (ValueError, NotImplementedError) as error:  # pyarrow's are these
            reason = " ".join(str(error).split())
        if stop - start == 1:
            report(BadRows(path, first + start, 1, reason))
        else:
            middle = (start + stop) // 2
            ranges += [(middle, stop), (start, middle)]


# -- Parquet ---------------------------------------------------------------------------


class _Parquet:
    """A Parquet file, whose parts are its row groups."""

    def __init__(self, wanted: _Wanted, path: str, schema: Any, report: Report) -> None:
        import pyarrow.parquet as pq

        self._pa = pa = arrow()
        self._path, self._report = path, report
        self._stream = opened(path) if "://" in path else None
        try:
            self._file = pq.ParquetFile(self._stream or path)
            own = self._file.schema_arrow
        except pa.ArrowInvalid as error:
            raise DataError(f"parquet: cannot read {path}: {error}") from error
        chosen = wanted.chosen(path, own.names, schema)
        fields = []
        for name in chosen:
            found = _plain(pa, own.field(name).type)
            known = wanted.types.get(name) or (schema and schema.field(name).type)
            if known is None or _has_null(pa, known):
                known = found
            elif name not in wanted.types and not _alike(pa, known, found):
                raise DataError(
                    f"parquet: column {name!r} of {path} has type {found}, that of the "
                    f"files before {known}; types= says what it should be"
                )
            fields.append((name, known))
        self.schema = pa.schema(fields)

    def part(self, place: int, first: int, ended: bool, wanted: bool) -> Part | None:
        if place == self._file.num_row_groups:
            return None
        rows = self._file.metadata.row_group(place).num_rows
        tables = self._tables(place, first, rows) if wanted else iter(())
        return Part(tables, rows, place + 1)

    def _tables(self, group: int, first: int, rows: int) -> Iterator[Any]:
        given = 0
        batches = self._file.iter_batches(
            _DECODED, row_groups=[group], columns=self.schema.names
        )
        while True:
            try:
                batch, reason = next(batches, None), None
            except (OSError, ValueError) as error:
                reason = f"row group {group} is corrupt: {' '.join(str(error).split())}"
            if reason is not None:
                self._report(BadRows(self._path, first + given, rows - given, reason))
                return
            if batch is None:
                return
            table = self._pa.Table.from_batches([batch]).select(self.schema.names)

            def attempt(start: int, stop: int, table: Any = table) -> Any:
                return table.slice(start, stop - start).cast(self.schema)

            yield from _good(
                len(table), attempt, first + given, self._path, self._report
            )
            given += len(table)

    def close(self) -> None:
        self._file.close()
        if self._stream is not None:
            self._stream.close()


def _plain(pa: Any, found: Any) -> Any:
    """Returns a type without encodings and sizes that are a matter of files."""
    if pa.types.is_dictionary(found):
        return _plain(pa, found.value_type)
    if pa.types.is_large_string(found) or pa.types.is_string_view(found):
        return pa.string()
    if pa.types.is_integer(found):
        return pa.uint64() if found == pa.uint64() else pa.int64()
    if pa.types.is_floating(found):
        return pa.float64()
    if pa.types.is_list(found) or pa.types.is_large_list(found):
        return pa.list_(_plain(pa, found.value_type))
    return found


def _alike(pa: Any, known: Any, found: Any) -> bool:
    """Returns whether a column may become of a known type if no value changes."""
    types = pa.types
    numbers = [types.is_integer(t) or types.is_floating(t) for t in (known, found)]
    return all(numbers) or bool(known == found) or _has_null(pa, found)


# -- lines -----------------------------------------------------------------------------


class _Lines:
    """A file of lines, whose parts are blocks of them.

    A block begins after the one before, and has `_BLOCK` bytes up to the end of a line:
    so blocks are the same whenever a file is read.
    """

    blank: re.Pattern[bytes]  # matches before the end of a line that has no row
    spaces = (b"\n\n", b"\n\r", b"\n ", b"\n\t")  # without these, there is none

    def __init__(self, wanted: _Wanted, path: str, schema: Any, report: Report) -> None:
        self._pa = arrow()
        self.wanted, self.path, self.schema = wanted, path, schema
        self._report = report
        self._file = opened(path)
        self._rest = b""
        self._at = 0  # where the rest begins
        self._is_first = False  # whether more fields may follow in this block

    def part(self, place: int, first: int, ended: bool, wanted: bool) -> Part | None:
        block = self._block(place, ended)
        if block is None:
            return None
        head = self.begin(block) if not place else 0
        lines = block.count(b"\n") + (not block.endswith(b"\n"))
        self._at, self._rest = place + len(block), self._rest[len(block) :]
        number = first + 1 + block[:head].count(b"\n")
        rest = block[head:] if head else block
        tables = self._tables(rest, number) if wanted else iter(())
        return Part(tables, lines, self._at)

    def begin(self, block: bytes) -> int:
        """Reads the head of a file; returns its length in bytes."""
        return 3 if block.startswith(b"\xef\xbb\xbf") else 0  # of Windows' UTF-8

    def _block(self, place: int, ended: bool) -> bytes | None:
        if place != self._at:
            self._file.seek(place)
            self._at, self._rest = place, b""
        while True:
            wanted = max(_BLOCK - len(self._rest), 0) or _BLOCK
            more = self._file.read(wanted) if len(self._rest) < _BLOCK else b""
            self._rest += more
            end = self._rest.rfind(b"\n", 0, _BLOCK) + 1
            if len(self._rest) >= _BLOCK and not end:
                end = self._rest.find(b"\n") + 1  # of a line longer than a block
                if not end:
                    more = self._file.read(_BLOCK)
                    self._rest += more
            if end and (len(self._rest) >= _BLOCK or not more):
                return self._rest[:end]
            if not more:
                return self._rest if ended and self._rest else None

    def _tables(self, block: bytes, first: int) -> Iterator[Any]:
        if not block or block.isspace():
            return
        try:
            yield self._table(block, 1 << 20)
            return
        except ValueError:
            pass  # find which lines they are
        lines = block.split(b"\n")
        if not lines[-1]:
            lines.pop()

        def attempt(start: int, stop: int) -> Any:
            part = b"\n".join(lines[start:stop]) + b"\n"
            return self._table(part, len(part) + 1)

        # Fields that only the later lines of the first block have are known at its end.
        self._is_first = self.schema is None
        found = list(_good(len(lines), attempt, first, self.path, self._report))
        self._is_first = False
        tables = [table for table in found if table is not None]
        if tables:
            yield self._pa.concat_tables(tables, promote_options="permissive")

    def _table(self, block: bytes, size: int) -> Any:
        """Returns the table of lines, or None if they are blank.

        Raises:
          ValueError: not all lines are rows.
        """
        if not block.isascii():
            block.decode()
        if block.isspace():
            return None
        table = self.parsed(block, size, {})
        rows = block.count(b"\n") + (not block.endswith(b"\n"))
        if block[:1].isspace() or any(ends in block for ends in self.spaces):
            ends = block if block.endswith(b"\n") else block + b"\n"
            rows -= len(self.blank.findall(b"\n" + ends))
        if len(table) != rows:
            raise ValueError(f"{rows} lines have {len(table)} rows")
        types = self._pa.types
        dates = {
            field.name: self._pa.string()
            for field in table.schema
            if types.is_temporal(field.type) and field.name not in self.wanted.types
        }
        if dates:
            table = self.parsed(block, size, dates)
        return self._chosen(table)

    def parsed(self, block: bytes, size: int, types: dict[str, Any]) -> Any:
        """Returns what pyarrow makes of lines, with these and the known types."""
        raise AssertionError

    def known(self) -> dict[str, Any]:
        """Returns the types that are known."""
        pa = self._pa
        found = dict(self.wanted.types)
        for field in self.schema or ():
            if not _has_null(pa, field.type):
                found[field.name] = field.type
        return found

    def _chosen(self, table: Any) -> Any:
        """Returns the wanted columns of a table, and learns their types."""
        pa, schema = self._pa, self.schema
        names = self.wanted.columns or (schema.names if schema else table.column_names)
        more = set(table.column_names).difference(names)
        if more and self.wanted.columns is None:
            if not self._is_first:
                raise ValueError(
                    f"{sorted(more)[0]!r} is not a field of the rows before"
                )
            names = [*names, *sorted(more)]
        columns = [
            table.column(name)
            if name in table.column_names
            else pa.chunked_array([pa.nulls(len(table), self.known().get(name))])
            for name in names
        ]
        table = pa.table(columns, names=list(names))
        if schema is None:
            self.schema = table.schema
        elif table.schema != schema:
            fields = [
                new
                if i >= len(schema) or _has_null(pa, schema.field(i).type)
                else schema.field(i)
                for i, new in enumerate(table.schema)
            ]
            self.schema = pa.schema(fields)
        return table

    def close(self) -> None:
        self._file.close()


def _has_null(pa: Any, found: Any) -> bool:
    """Returns whether a type is that of missing values only."""
    null = pa.types.is_null
    return bool(null(found) or (pa.types.is_list(found) and null(found.value_type)))


class _Json(_Lines):
    """A file with a JSON object in each line."""

    blank = re.compile(rb"\n(?=[ \t\r]*\n)")

    def parsed(self, block: bytes, size: int, types: dict[str, Any]) -> Any:
        import pyarrow.json as pj

        pa = self._pa
        known = self.known() | types
        is_complete = self.wanted.columns is not None and set(
            self.wanted.columns
        ) <= set(known)
        return pj.read_json(
            pa.BufferReader(block),
            read_options=pj.ReadOptions(block_size=size),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema(list(known.items())) if known else None,
                unexpected_field_behavior="ignore" if is_complete else "infer",
            ),
        )


class _Csv(_Lines):
    """A file of values between delimiters."""

    blank = re.compile(rb"\n(?=\r?\n)")

    def says(self, names: list[str] | None, delimiter: str, missing: list[str]) -> None:
        """Sets what is particular to this format."""
        self._given, self._delimiter, self._missing = names, delimiter, missing
        self._names: list[str] = []
        self._include: list[str] = []

    def part(self, place: int, first: int, ended: bool, wanted: bool) -> Part | None:
        if place and not self._names:  # a position in the middle of a file
            block = self._block(0, ended)
            if block is not None:
                self.begin(block)
        return super().part(place, first, ended, wanted)

    def begin(self, block: bytes) -> int:
        head = super().begin(block)
        if self._given is not None:
            self._names = self._given
        else:
            end = block.find(b"\n") + 1 or len(block)
            self._names = self._header(block[head:end])
            head = end
        self._include = self.wanted.chosen(self.path, self._names, self.schema)
        return head

    def _header(self, line: bytes) -> list[str]:
        import csv

        try:
            text = line.decode().rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"csv: {self.path}, row 1: {error}") from None
        return next(csv.reader([text], delimiter=self._delimiter), [])

    def parsed(self, block: bytes, size: int, types: dict[str, Any]) -> Any:
        import pyarrow.csv as pc

        if block.count(b'"') % 2:
            raise ValueError("a value in quotes does not end on its line")
        return pc.read_csv(
            self._pa.BufferReader(block),
            read_options=pc.ReadOptions(column_names=self._names, block_size=size),
            parse_options=pc.ParseOptions(delimiter=self._delimiter),
            convert_options=pc.ConvertOptions(
                column_types=self.known() | types,
                include_columns=self._include,
                null_values=self._missing,
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
