"""The StableHLO of small programs is what it was.

A refactor leaves them equal. Where a change is meant, `python tests/golden/update.py`
writes them anew, and the difference is part of the review.
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

from fxflow.devices import mlir
from tests.golden.programs import PROGRAMS, text

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_is_the_stored_one(name):
    path = HERE / f"{name}.mlir"
    assert path.exists(), f"run python tests/golden/update.py {name}"
    stored, now = path.read_text(encoding="utf-8"), text(name)
    if stored != now:
        lines = difflib.unified_diff(
            stored.splitlines(), now.splitlines(), "stored", "now", lineterm="", n=1
        )
        pytest.fail("\n".join(lines))
    mlir.parse(now)


def test_nothing_else_is_stored():
    assert {p.stem for p in HERE.glob("*.mlir")} == set(PROGRAMS)


def test_there_are_enough():
    assert len(PROGRAMS) >= 30


def test_names_and_places_are_left_out():
    now = text("calls")
    assert "loc(" not in now
    assert re.search(r"call @f\d", now)
    assert str(HERE) not in now


def test_the_text_is_the_same_each_time():
    for name in ("mlp_step", "calls", "grad_of_scan", "ordered_effects"):
        assert text(name) == text(name)
