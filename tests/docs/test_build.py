"""The documentation builds without a warning: markup, links, every public docstring."""

import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent.parent / "docs"


@pytest.fixture(scope="module")
def as_rst() -> Callable[[str], str]:
    convert: Callable[[str], str] = runpy.run_path(str(DOCS / "conf.py"))["as_rst"]
    return convert


@pytest.mark.slow
def test_no_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx", reason="the docs extra is not installed")
    # Autosummary writes its pages beside the sources.
    source = shutil.copytree(
        DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("_build", "generated")
    )
    # Nothing is written, and types in signatures (a third of the time) are left out.
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"]
    command += ["-b", "dummy", "-D", "autodoc_typehints=none", str(source)]
    done = subprocess.run(
        [*command, str(tmp_path / "built")],
        capture_output=True,
        text=True,
        cwd=DOCS.parent,
    )
    assert done.returncode == 0, done.stderr


def test_docstrings_are_converted(as_rst: Callable[[str], str]) -> None:
    assert as_rst("Of `Array`s and ``b``.") == "Of ``Array``\\ s and ``b``."
    assert as_rst("`a * b`, |a| * b") == "``a * b``, \\|a\\| \\* b"
