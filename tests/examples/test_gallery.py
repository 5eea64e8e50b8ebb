"""The programs of the gallery are short, run, and are on its page."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="pip install fxflow[viz]")
ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "docs" / "gallery").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program_draws_a_picture(program: Path, tmp_path: Path) -> None:
    script = ROOT / "scripts" / "gallery.py"
    spec = importlib.util.spec_from_file_location("scripts_gallery", script)
    assert spec is not None and spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    gallery.draw(program, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 4000


def test_programs_are_short() -> None:
    assert len(PROGRAMS) == 24
    for program in PROGRAMS:
        lines = program.read_text(encoding="utf-8").splitlines()
        assert len([line for line in lines if line.strip()]) <= 25, program.name


def test_the_page_shows_every_program() -> None:
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    names = {program.stem for program in PROGRAMS}
    assert set(re.findall(r"literalinclude\} gallery/(\w+)\.py", page)) == names
    assert set(re.findall(r"!\[\w+\]\(gallery/(\w+)\.png\)", page)) == names
    assert all((ROOT / "docs" / "gallery" / f"{n}.png").exists() for n in names)
