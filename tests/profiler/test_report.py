"""Where a step's time goes."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import lax, profiler
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.profiler.programs import Operation
from fxflow.profiler.report import Report, Spent


def step(x: Any, w: Any) -> Any:
    with fxflow.named_scope("outer"):
        with fxflow.named_scope("large"):
            x = x @ w
        x = fnp.tanh(x)

    def body(carry: Any, _: Any) -> Any:
        return fnp.sin(carry), None

    with fxflow.named_scope("loop"):
        return fnp.sum(lax.scan(body, x, length=4)[0])


def test_a_step() -> None:
    x = fnp.ones((256, 256))
    found = profiler.report(fxflow.grad(step, (0, 1)), x, x, runs=3)
    rows = {row.name: row for row in found.rows()}
    assert rows["outer"].seconds >= rows["outer/large"].seconds > 0
    assert 0 < found.busy <= found.profiled and found.runs == 3
    # Operations may run beside each other; the loop of four steps holds its body.
    assert found.busy <= 1.001 * found.total
    assert rows["loop"].calls >= 4
    shares = [row.share for name, row in rows.items() if "/" not in name]
    assert sum(shares) == pytest.approx(1)
    lines = {row.name for row in found.rows("line")}
    assert any(f"{step.__code__.co_firstlineno + 3} (step)" in line for line in lines)
    product = {row.name: row for row in found.rows("operation")}["dot_general"]
    assert product.flops * product.seconds == pytest.approx(3 * 2 * 256**3)
    text = str(found)
    assert "grad(step): " in text and "outer/large" in text
    assert "x = x @ w" in text


MADE = Report(
    "f", 0.01, 0.008, 0.011, 5, 1,
    (
        Spent(Operation("dot", ("a", "b"), "/x/f.py:3 (f)", 1e9, 1e6), 0.006, 1, 1),
        Spent(Operation("add", ("a",), "/x/f.py:4 (f)", 1e3, 1e6), 0.001, 1, 1),
        Spent(Operation("add", (), "/x/f.py:5 (f)", 1e3, 1e6), 0.001, 2, 1),
    ),
)  # fmt: skip


def test_rows_and_tables() -> None:
    assert [(row.name, round(row.share, 3)) for row in MADE.rows()] == [
        ("a", 0.875),
        ("a/b", 0.75),
        ("(no scope)", 0.125),
    ]
    assert [row.calls for row in MADE.rows("operation")] == [1, 3]
    assert MADE.table("line", limit=1).splitlines()[1:] == [
        "    6.000  75.0      1      167  f.py:3  ",
        f"{'':31}  and 2 more",
    ]
    assert str(MADE).startswith(
        "f: 10 ms a step; while profiled 11 ms, of which 8 ms (73%) in operations"
    )
    with pytest.raises(ArgumentError, match="by is one of scope, line, operation"):
        MADE.rows("size")


def test_the_picture() -> None:
    pytest.importorskip("matplotlib", reason="pip install 'fxflow[viz]'")
    scopes, lines = MADE.picture().axes
    assert [text.get_text() for text in scopes.texts] == [
        "a 88%",
        "(no scope)",
        "b 75%",
    ]
    widths = [bar.get_width() for bar in scopes.patches]
    assert widths == pytest.approx([7, 1, 6])
    assert len(lines.patches) == 3


def test_invalid_functions_and_run_counts_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected a function, got 3"):
        profiler.report(3)
    with pytest.raises(ArgumentError, match="runs must be at least 1, got 0"):
        profiler.report(fnp.sin, 1.0, runs=0)
