"""SciPy's own tests of its functions on other arrays, run on `fxflow.numpy`."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sweeps import sampling

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

pytest.importorskip("scipy", "1.17")  # whose tests know immutable arrays


def known_failures() -> dict[str, str]:
    """Returns the reason why each test of `known_failures.txt` fails, by its start."""
    lines = (HERE / "known_failures.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("  ", 1) for line in lines if line and line[0] != "#")


def run(packages: list[str], count: int, seed: int, tmp_path: Path) -> dict[str, str]:
    """Runs a sample of SciPy's tests; returns the messages of those that fail."""
    spec = importlib.util.find_spec("scipy")
    assert spec is not None and spec.origin is not None
    site, outcomes = Path(spec.origin).parents[1], tmp_path / "outcomes.json"
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short"]
    command += ["-c", str(HERE / "pytest.ini"), "--rootdir", str(site)]
    command += ["-p", "tests.scipy.array_api.plugin", "-p", "no:cacheprovider"]
    command += ["--sample", f"{count}/{seed}" if count else ""]
    command += ["--outcomes", str(outcomes), "--pyargs", *packages]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(outcomes.read_text(encoding="utf-8"))
    assert any(how == "passed" for how, _ in found.values())
    return {
        name: text for name, (outcome, text) in found.items() if outcome == "failed"
    }


def check(packages: list[str], count: int, seed: int, tmp_path: Path) -> None:
    """Asserts that the tests which fail are known to."""
    failed, known = run(packages, count, seed, tmp_path), known_failures()
    new = {
        name: text for name, text in failed.items() if not name.startswith(tuple(known))
    }
    assert not new, "\n".join(f"{name}: {text}" for name, text in new.items())


def test_sample_of_the_suites(tmp_path: Path) -> None:
    packages = ["scipy.cluster", "scipy.differentiate", "scipy.integrate"]
    check(packages, 60, sampling.seed, tmp_path)


#: How many tests of each package a run draws; 0 draws all.
PACKAGES = {
    "cluster": 100,
    "differentiate": 60,
    "fft": 100,
    "integrate": 60,
    "interpolate": 100,
    "linalg": 100,
    "ndimage": 100,
    "optimize": 60,
    "signal": 60,
    "spatial": 100,
    "special": 100,
    "stats": 150,
}


@pytest.mark.slow
@pytest.mark.parametrize("package", PACKAGES)
def test_suite_of_a_package(package: str, tmp_path: Path) -> None:
    count = 0 if sampling.whole else PACKAGES[package]
    check([f"scipy.{package}"], count, sampling.seed, tmp_path)
