"""These tests again, with each eager operation compiled: `FXFLOW_EAGER=xla`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sweeps import sampling

ROOT = Path(__file__).parents[2]
FILES = sorted(
    str(path.relative_to(ROOT))
    for path in Path(__file__).parent.rglob("test_*.py")
    if path != Path(__file__)
)


@pytest.mark.slow
@pytest.mark.parametrize("file", sampling.sample(FILES, 2, of="eager=xla"))
def test_passes_with_each_operation_compiled(file: str) -> None:
    environment = {**os.environ, "FXFLOW_EAGER": "xla", "PYTHONPATH": str(ROOT)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"--sweep-seed={sampling.seed}", file],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
