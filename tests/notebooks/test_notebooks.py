"""Notebooks run from the first cell to the last and hold what their sources say."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPT = ROOT / "scripts" / "notebooks.py"
TUTORIALS = sorted((ROOT / "notebooks").glob("*.py"))
SOURCES = [*TUTORIALS, *sorted((ROOT / "notebooks/course").glob("[0-9]*.py"))]

for needed in ("nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(needed, reason="pip install fxflow[notebooks]")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def notebooks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_script", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_notebooks() -> None:
    assert SOURCES


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_notebook_runs_and_is_in_step(source: Path) -> None:
    result = run("--check", str(source))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_written_notebook_was_executed(notebooks: ModuleType, source: Path) -> None:
    written = notebooks.nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    code = [cell for cell in written.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    pictures = [o for c in code for o in c.outputs if "image/png" in o.get("data", {})]
    assert pictures or source not in TUTORIALS


def test_cells_are_parsed(notebooks: ModuleType) -> None:
    text = "# %% [markdown]\n# # Title\n#\n# words\n\n# %%\nx = 1\n\n\n# %%\nx\n"
    parsed = notebooks.parse(text)
    assert notebooks.cells(parsed) == [
        ("markdown", "# Title\n\nwords"),
        ("code", "x = 1"),
        ("code", "x"),
    ]


def test_text_before_the_first_cell_is_refused(notebooks: ModuleType) -> None:
    with pytest.raises(ValueError, match="begins with a line `# %%`"):
        notebooks.parse("x = 1\n# %%\n")


def test_failing_cell_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "bad.py"
    source.write_text("# %%\n1 / 0\n")
    result = run(str(source))
    assert result.returncode == 1
    assert "ZeroDivisionError" in result.stderr
    assert not source.with_suffix(".ipynb").exists()


def test_stale_notebook_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "stale.py"
    source.write_text("# %%\nx = 1\n")
    assert "is missing" in run("--check", str(source)).stderr
    assert run(str(source)).returncode == 0
    assert run("--check", str(source)).returncode == 0
    source.write_text("# %%\nx = 2\n")
    result = run("--check", str(source))
    assert result.returncode == 1
    assert "differs from its source" in result.stderr
