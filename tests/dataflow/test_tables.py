"""Tables and times as text."""

from __future__ import annotations

import pytest

from fxflow.dataflow.tables import counted, more, table, time_text


def test_columns_are_aligned() -> None:
    rows = [("a", "bb"), ("ccc", "1")]
    assert table(rows, right=(1,)) == ["a    bb", "ccc   1"]


def test_rows_that_are_not_shown_are_counted() -> None:
    assert more(3, 3, "rows") == more(30, None, "rows") == []
    assert more(30, 20, "rows") == ["… 10 more rows: to_text(shown=None)"]
    assert [counted(n, "device") for n in (0, 1, 2000)] == [
        "0 devices", "1 device", "2,000 devices"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0"), (2.5e-9, "2.5 ns"), (1e-3, "1 ms"), (0.9999e-3, "1 ms"), (12, "12 s")],
)
def test_times_have_a_unit_that_suits_them(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
