"""The tour, the front page and the guides run as written; pages name what exists."""

import inspect
import re
from pathlib import Path

import pytest

import fxflow
from fxflow import errors
from tests.docs.page_examples import failures

ROOT = Path(__file__).parent.parent.parent
TOUR = ROOT / "docs" / "tour.md"
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
RUN = [TOUR, ROOT / "docs" / "index.md", *GUIDES]
PACKAGES = {path.parent.name for path in (ROOT / "fxflow").glob("*/__init__.py")}
WRITTEN = {"_build", "benchmarks", "notebooks", "reference"}  # by docs/pages.py
PAGES = [
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if not WRITTEN & {*path.parts}
    ),
    ROOT / "CONTRIBUTING.md",
    ROOT / "README.md",
]
SOURCES = sorted((ROOT / "fxflow").rglob("*.py"))


def missing(text: str) -> list[str]:
    """Returns what a page names of the package and what does not exist.

    That is `core/tree`, `core/tree/nodes.py`, and a name in a file: `devices/x.Name`.
    """
    found = []
    for path, name in re.findall(r"`(?:fxflow/)?(\w+(?:/\w+)+)(?:\.(\w+))?`", text):
        if path.partition("/")[0] not in PACKAGES:
            continue
        place = ROOT / "fxflow" / path
        file = place.with_suffix(".py")
        if not (place.is_dir() or file.exists()):
            found.append(path)
        elif name not in ("", "py") and name not in file.read_text(encoding="utf-8"):
            found.append(f"{path}.{name}")
    return found


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.name)
def test_pages_run(page: Path) -> None:
    failed = failures(page.read_text(encoding="utf-8"), page.name)
    assert not failed, failed


def test_twelve_chapters_with_an_example_and_files_each() -> None:
    page = TOUR.read_text(encoding="utf-8")
    chapters = re.split(r"^## ", page, flags=re.M)[1:]
    assert [c.split(".")[0] for c in chapters] == [str(n) for n in range(1, 13)]
    for chapter in chapters:
        assert ">>> " in chapter, chapter.splitlines()[0]
        assert "*Read next:* `" in chapter, chapter.splitlines()[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_named_exists(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_each_error_is_explained_and_says_where() -> None:
    guide = (ROOT / "docs" / "guides" / "errors.md").read_text(encoding="utf-8")
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind)]
    own = [kind for kind in kinds if kind.__module__ == errors.__name__]
    sections = re.findall(r"^## (\w+)$", guide, flags=re.M)
    assert sorted(sections) == sorted(kind.__name__ for kind in own)
    for kind in own:
        place = f"`docs/guides/errors.md#{kind.__name__.lower()}`"
        assert place in str(kind.__doc__), kind


def test_names_for_those_from_jax_exist() -> None:
    guide = (ROOT / "docs" / "guides" / "from-jax.md").read_text(encoding="utf-8")
    table = guide[guide.index("| JAX | fxflow |") :].partition("\n\n")[0]
    named = re.findall(r"`(fxflow\.[\w.]+)", table)
    assert len(named) > 15
    for name in named:
        value: object = fxflow
        for part in name.split(".")[1:]:
            value = getattr(value, part)


def test_what_sources_name_exists() -> None:
    found = {path: missing(path.read_text(encoding="utf-8")) for path in SOURCES}
    assert not {str(path): names for path, names in found.items() if names}


def test_wrong_pages_are_seen() -> None:
    page = "```python\n>>> 1 + 1\n{}\n\n```\n"
    assert failures(page.format(2), "page") == ""
    assert "Expected:\n    3" in failures(page.format(3), "page")
    assert "NameError" in failures(page.format(2).replace("1 +", "x +"), "page")
    named = (
        "`core/tree` `lax/dot.py` `numpy/array.py` `lax/dot.dot` `lax/dot.Dut` `a/b.py`"
    )
    assert missing(named) == ["numpy/array", "lax/dot.Dut"]
