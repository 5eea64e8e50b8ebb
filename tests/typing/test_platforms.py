"""Systems on which CI does not run: names exist there, and every module loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_every_name_exists_there(system: str, tmp_path: Path) -> None:
    # typeshed knows which of the standard library's names a system lacks. A name that
    # only one system has stands under `if sys.platform …`, which mypy follows.
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml"]
    options = ["--no-warn-unreachable", "--no-warn-unused-ignores", "--no-pretty"]
    cache = ["--cache-dir", str(tmp_path)]
    done = subprocess.run(
        [*command, *options, *cache, "--platform", system],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_trains_without_the_names_that_windows_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(HERE / "windows.py")],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "modules" in done.stdout
