"""The lessons' exercises: unsolved as they are, right with the solutions."""

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

for needed in ("nbclient", "matplotlib"):
    pytest.importorskip(needed, reason="pip install fxflow[notebooks]")
ROOT = Path(__file__).parents[2]
COURSE = ROOT / "notebooks" / "course"
LESSONS = sorted(COURSE.glob("[0-9]*.py"))
EXERCISE = re.compile(r"^# exercise (\d)\n(def .*?\n    return None\n)", re.M | re.S)


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.syspath_prepend(COURSE)
    module = importlib.import_module("checks")
    module.results.clear()
    yield module
    plt.close("all")


@pytest.mark.parametrize("solved", [False, True], ids=["unsolved", "solved"])
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_exercises(lesson: Path, solved: bool, checks: ModuleType) -> None:
    cells = load("notebooks").cells(
        load("notebooks").parse(lesson.read_text(encoding="utf-8"))
    )
    texts = [text for kind, text in cells if kind == "markdown" and "<details>" in text]
    solutions = [re.findall(r"^```python\n(.*?)^```", t, re.M | re.S)[0] for t in texts]
    space: dict[str, Any] = {"__name__": lesson.stem}
    for kind, text in cells:
        exercise = EXERCISE.search(text) if kind == "code" else None
        if exercise and solved:
            text = text.replace(exercise[2], solutions[int(exercise[1]) - 1])
        if kind == "code":
            exec(compile(text, lesson.name, "exec"), space)
    assert len(solutions) == 3
    assert checks.results == dict.fromkeys((1, 2, 3), True if solved else None)


def test_a_wrong_answer_is_shown(
    checks: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    checks.check(1, lambda x: x + 1, [(1, 2), (2, 5)])
    assert checks.results == {1: False}
    printed = capsys.readouterr().out
    assert "for (2)" in printed and "your answer: 3" in printed
    checks.check(2, lambda: "text", [((1, 2),)])
    assert checks.results[2] is False


def test_slides_begin_at_headings() -> None:
    page = load("slides").page(COURSE / "4-forward.ipynb")
    text = (COURSE / "4-forward.py").read_text(encoding="utf-8")
    headings = len(re.findall(r"^# #+ ", text, re.M))
    assert page.count("<section>") == headings and "data:image/png" in page
    assert "http" not in page.replace("http://www.w3.org", "")
