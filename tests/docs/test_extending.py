"""The page on extending fxflow runs as written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fxflow.core.ir.primitive import table
from tests.docs.test_tour import failures

PAGE = Path(__file__).parent.parent.parent / "docs" / "extending.md"


@pytest.fixture(autouse=True)
def table_unchanged() -> Iterator[None]:
    before = dict(table)
    yield
    table.clear()
    table.update(before)


def test_it_runs() -> None:
    failed = failures(PAGE.read_text(encoding="utf-8"), PAGE.name)
    assert not failed, failed
