"""Tables and times as text, for plans, timelines and pictures."""

from __future__ import annotations

from collections.abc import Sequence

#: Rows of a table that a text shows at first.
SHOWN = 20


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Returns rows as lines of aligned columns.

    Args:
      rows: the first is the header.
      right: columns aligned to the right.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def more(count: int, shown: int | None, what: str) -> list[str]:
    """Returns a line for the rows that a table does not show, if there are any.

    Args:
      count: of all rows.
      shown: how many the table shows; None: all.
      what: the rows are.
    """
    if shown is None or count <= shown:
        return []
    return [f"… {count - shown} more {what}: to_text(shown=None)"]


def counted(count: int, what: str) -> str:
    """Returns a number of things: `1 device`, `2 devices`."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def time_text(seconds: float) -> str:
    """Returns a time in a unit that suits it: `12 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= 0.9995 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns" if seconds else "0"
