"""`scripts/words.py` finds the wordings that the project replaces, and only those."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "words.py"


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("scripts_words", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "text",
    [
        "`x` is no array",
        "the second is none of them",
        "Of arrays that lie elsewhere, a copy is made.",
        "at most so many rows are evicted",
        "Nobody asks.",
        "The server is told.",
        "a worker who leaves",
        "from 3.12 on, it is faster",
        "from version 2 on.",
        "once the run is through",
        "a server that is gone",
        "when all workers have come",
    ],
)
def test_each_habit_is_found(words: ModuleType, text: str) -> None:
    assert len(list(words.findings(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "There is no array, and there is none.",
        "It is no longer used, and is no slower.",
        "A list of arrays, of course. Of course!",
        "so long as it lasts; so many rows of it that it fails",
        "a reader who knows NumPy; people who read; those who do",
        "values from 2 processes on one machine; from now on",
        "It is through the `jit` cache that this is fast.",
        "messages that have come from a worker",
    ],
)
def test_plain_wordings_are_not(words: ModuleType, text: str) -> None:
    assert list(words.findings(text)) == []


def test_a_wording_may_go_on_in_the_next_line(words: ModuleType) -> None:
    comment = "x = 1\n\n    # the shape is\n    # no tuple\n"
    string = '\n    message = (\n        "the shape is "\n        "no tuple"\n    )\n'
    for text, line in (comment, 3), (string, 3):
        [(found, wording, advice)] = words.findings(text)
        assert found == line and wording.startswith("is no") and "is not a" in advice


def test_quoted_messages_of_a_page_are_passed_over(words: ModuleType) -> None:
    page = "`x is no y`:\n\n```text\nit is gone\n```\n\n`a` is\n no b\n"
    [(line, wording, _)] = words.findings(words.prose(page))
    assert line == 7 and wording.startswith("is no b")


def test_main_says_whether_anything_was_found(
    words: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setattr(words, "ROOT", tmp_path)
    monkeypatch.setattr(words, "files", lambda places: [page])
    page.write_text("One.\n\nIt is no tuple.\n", "utf-8")
    assert words.main([]) == 1
    assert capsys.readouterr().out.startswith("page.md:3: “is no tuple.”: ")
    page.write_text("It is not a tuple.\n", "utf-8")
    assert words.main([]) == 0
