"""`summary`: a table of a model's arrays, their types and their memory."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from fxflow.core import tree
from fxflow.core.arrays import ShapeDtypeStruct, is_arraylike, not_an_array, typeof
from fxflow.devices.memory import bytes_text
from fxflow.train._paths import path_name


@dataclasses.dataclass(frozen=True)
class Row:
    """One array, or a subtree.

    Attributes:
      path: the keys, joined by `/`.
      type: an array's type, such as `f32[784,128]`; a subtree's number of arrays.
      count: the number of elements.
      bytes: the number of bytes.
    """

    path: str
    type: str
    count: int
    bytes: int


@dataclasses.dataclass(frozen=True)
class Summary:
    """A table of arrays, which `print` shows.

    Attributes:
      rows: the rows, in the order of the tree.
      total: the sum of all rows.
    """

    rows: tuple[Row, ...]
    total: Row

    def __str__(self) -> str:
        rows = (*self.rows, self.total)
        cells = [(r.path, r.type, f"{r.count:,}", bytes_text(r.bytes)) for r in rows]
        cells.insert(0, ("path", "type", "count", "bytes"))
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = [
            f"{path:<{widths[0]}}  {kind:<{widths[1]}}  {count:>{widths[2]}}  "
            f"{size:>{widths[3]}}"
            for path, kind, count, size in cells
        ]
        rule = "-" * len(lines[0])
        return "\n".join((lines[0], rule, *lines[1:-1], rule, lines[-1]))

    def __repr__(self) -> str:
        return str(self)


def summary(params: Any, *, depth: int | None = None) -> Summary:
    """Returns a table of the arrays of a pytree.

    Args:
      params: pytree of arrays or of `ShapeDtypeStruct`, which `fxflow.eval_shape`
        returns without computing anything.
      depth: the number of keys to show; arrays at deeper levels are added up. None
        shows each array.

    Returns:
      A `Summary`.

    Raises:
      ArgumentError: a leaf is not an array.

    Example:
      >>> params = {"w": fnp.zeros((784, 10)), "b": fnp.zeros(10)}
      >>> print(train.summary(params))
      path   type         count    bytes
      ----------------------------------
      b      f32[10]         10     40 B
      w      f32[784,10]  7,840  31.4 kB
      ----------------------------------
      total  2 arrays     7,850  31.4 kB
    """
    groups: dict[str, list[Row]] = {}
    for path, leaf in tree.leaves_with_path(params):
        if not (is_arraylike(leaf) or isinstance(leaf, ShapeDtypeStruct)):
            raise not_an_array(leaf, f"summary: {tree.keystr(path)} is")
        aval = typeof(leaf)
        count = math.prod(aval.shape)
        name = path_name(path[:depth])
        row = Row(name, str(aval), count, count * aval.dtype.itemsize)
        groups.setdefault(name, []).append(row)
    rows = tuple(_joined(name, group) for name, group in groups.items())
    return Summary(
        rows, _joined("total", list(itertools.chain(*groups.values())), counted=True)
    )


def _joined(path: str, rows: list[Row], counted: bool = False) -> Row:
    """Returns the sum of several rows."""
    if len(rows) == 1 and not counted:
        return rows[0]
    plural = "s" * (len(rows) != 1)
    return Row(
        path,
        f"{len(rows)} array{plural}",
        sum(row.count for row in rows),
        sum(row.bytes for row in rows),
    )
