"""The pages of results are what their stored numbers render to."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TABLE = "| a | b |\n| --- | --: |\n| x | 1 |\n| y |  |"


@pytest.fixture
def pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "benchmark_pages", BENCHMARKS / "pages.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_up_to_date(pages: ModuleType) -> None:
    machines = pages.kept()
    found = {path.stem: path.read_text("utf-8") for path in pages.RESULTS.glob("*.md")}
    assert found == {key: pages.page(of) for key, of in machines.items()}
    assert pages.INDEX.read_text("utf-8") == pages.index(machines)


def test_every_section_has_its_script_and_pictures(pages: ModuleType) -> None:
    for section in pages.SECTIONS.values():
        assert (BENCHMARKS / section.command.split()[0]).is_file()
        assert all((BENCHMARKS / path).is_file() for path in section.pictures)
    stored = {name for of in pages.kept().values() for name in of}
    assert stored <= pages.SECTIONS.keys()


def test_what_is_printed_is_rendered_again(pages: ModuleType) -> None:
    text = f"## A title\n\nSome words.\n{TABLE}\nMore words."
    title, words, table, more = pages.parsed(text)
    assert (title, words, more) == ("## A title", "Some words.", "More words.")
    assert table["rows"] == [["x", "1"], ["y", ""]]
    assert pages.shown(table) == TABLE and pages.shown(title) == "### A title"


def test_a_machine_is_described_without_its_name(pages: ModuleType) -> None:
    about = {"cpu": "Intel(R) Xeon(R) Processor", "cores": 2, "memory": "24 GiB"}
    assert pages.folder(about) == "intel-xeon-2-cores"
    assert pages.described(about).endswith("Processor, 2 cores, 24 GiB of memory")
    assert set(pages.machine()) <= {"cpu", "cores", "memory", "system", "gpu"}


def test_a_section_is_recorded(
    pages: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(f"import sys\nprint({TABLE!r})\nprint(sys.argv[1:])\n")
    section = pages.Section("A title", "script.py --fast", "What it is.")
    monkeypatch.setattr(pages, "HERE", tmp_path)
    monkeypatch.setattr(pages, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(pages, "INDEX", tmp_path / "RESULTS.md")
    monkeypatch.setattr(pages, "SECTIONS", {"one": section})
    pages.main(["one", "--", "--rounds", "2"])
    [path] = tmp_path.glob("results/*/one.json")
    stored = json.loads(path.read_text("utf-8"))
    assert stored["command"] == "python benchmarks/script.py --fast --rounds 2"
    text = path.parent.with_suffix(".md").read_text("utf-8")
    assert TABLE in text and "['--fast', '--rounds', '2']" in text
    assert f"results/{path.parent.name}.md" in pages.INDEX.read_text("utf-8")
