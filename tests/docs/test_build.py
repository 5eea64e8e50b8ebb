"""The site builds without a warning: markup, links, every public docstring."""

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.mark.slow
def test_no_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    # Pages of the reference are written beside the sources. Nothing is rendered.
    source = tmp_path / "docs"
    copy_sources(source)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    done = subprocess.run(
        [*command, "-b", "dummy", str(source), str(tmp_path / "built")],
        capture_output=True,
        text=True,
        cwd=DOCS.parent,
    )
    assert done.returncode == 0, done.stderr
    assert (source / "reference" / "fxflow.numpy" / "dot.rst").exists()
    assert (source / "notebooks" / "01-quickstart.md").exists()


def copy_sources(target: Path) -> None:
    """Copies the documentation without what a build writes."""
    written = {"_build", "notebooks", "reference"}
    for path in DOCS.rglob("*"):
        place = path.relative_to(DOCS)
        if path.is_file() and place.parts[0] not in written:
            (target / place).parent.mkdir(parents=True, exist_ok=True)
            (target / place).write_bytes(path.read_bytes())
