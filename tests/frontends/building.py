"""Compiles the front ends, and files for them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
C = ROOT / "frontends" / "c"
SANITIZED = (
    *("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
)
#: Where `scripts/test.sh` installs the plug-in of `clients.txt`.
FOLDER = Path(sys.prefix) / "clients-frontends"


def compiler(name):
    """Returns the path of a compiler or another program, or skips the test."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def build(target, *sources, options=(), language="c"):
    """Compiles a program of C or C++ sources; warnings are errors."""
    standard = {"c": ("gcc", "-std=c11"), "c++": ("g++", "-std=c++20")}[language]
    command = [compiler(standard[0]), standard[1], "-Wall", "-Wextra", "-Werror"]
    command += [*options, f"-I{C}", f"-I{ROOT / 'frontends' / 'cpp'}", "-o", target]
    run([*command, *sources, "-ldl"])
    return target


def run(command, *, timeout=120, check=True, cwd=None, **environment):
    """Runs a command; returns what it printed, or fails with it unless not `check`."""
    done = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **environment},
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def plugin():
    """Returns the plug-in for CPUs, or skips the test."""
    found = os.environ.get("FXFLOW_PJRT_PLUGIN") or next(
        map(str, FOLDER.glob("xla_plugins/*/*.so")), None
    )
    if not found or not Path(found).exists():
        pytest.skip("no PJRT plug-in for CPUs: pip install xla-cpu-pjrt")
    return found
