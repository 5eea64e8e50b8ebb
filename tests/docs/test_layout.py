"""Pages can be read in a terminal, and their indices are complete."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Columns of a line.
LONGEST = 100
#: Lines that cannot be broken: of tables and of printed programs.
WHOLE = re.compile(r"\||%\w+ = |func\.func |  \w+: \w+\[")
WRITTEN = {"_build", "benchmarks", "notebooks", "reference"}  # by docs/pages.py
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(p for p in sorted(ROOT.glob("docs/**/*.md")) if not WRITTEN & {*p.parts}),
    *sorted(ROOT.glob("benchmarks/**/*.md")),
    *sorted(ROOT.glob("examples/**/*.md")),
]
#: The page that lists the pages of each folder.
LISTS = {"design": "how-it-works.md", "guides": "guides.md"}


def long_lines(text: str) -> list[int]:
    """Returns the numbers of the lines that are too long."""
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > LONGEST and " " in line.strip() and not WHOLE.match(line)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short(page: Path) -> None:
    assert long_lines(page.read_text(encoding="utf-8")) == []


def test_long_lines_are_found() -> None:
    assert long_lines("a b\n" + "a " * 50 + "b\n| " + "a " * 99 + "\n" + "a" * 101) == [
        2
    ]


@pytest.mark.parametrize("folder", LISTS)
def test_every_page_is_listed(folder: str) -> None:
    listing = (ROOT / "docs" / LISTS[folder]).read_text(encoding="utf-8")
    pages = {f"{folder}/{path.name}" for path in (ROOT / "docs" / folder).glob("*.md")}
    assert set(re.findall(rf"\]\(({folder}/[^)#]+)\)", listing)) == pages
