"""What the tests of this folder look at: files, variables, programs, processes."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
DEPLOY = ROOT / "deploy"
#: The guides to runs of several processes, in order.
GUIDES = [
    ROOT / "docs" / "guides" / f"{name}.md"
    for name in ("multi-host", "fault-tolerance", "parameter-server", "monitoring")
]


@functools.cache
def known_variables() -> frozenset[str]:
    """The `FXFLOW_*` variables that something in the checkout reads."""
    from fxflow._config import _OPTIONS

    sources = [*ROOT.glob("fxflow/**/*.py"), *ROOT.glob("examples/**/*.py")]
    read = re.compile(r"[\"'](FXFLOW_[A-Z_]+)[\"']")
    found = {name for path in sources for name in read.findall(path.read_text())}
    return frozenset(found | {option.environment for option in _OPTIONS.values()})


@functools.cache
def options_of(program: str) -> frozenset[str]:
    """The options that a Python program lists by `--help`; it must exist."""
    path = ROOT / program
    assert path.is_file(), f"there is no {program}"
    if "argparse" not in path.read_text() and "options(" not in path.read_text():
        return frozenset()
    shown = run([sys.executable, program, "--help"])
    assert shown.returncode == 0, shown.stderr
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", shown.stdout))


@functools.cache
def options_of_command(name: str) -> frozenset[str]:
    """The options of ``fxflow NAME``."""
    shown = run([sys.executable, "-m", "fxflow", *name.split(), "--help"])
    assert shown.returncode == 0, shown.stderr
    return frozenset(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", shown.stdout))


def check_command(command: Sequence[str]) -> None:
    """Checks that a subcommand of ``fxflow`` exists and knows its options."""
    name, *arguments = command
    for argument in arguments:
        if argument.startswith("-"):
            option = argument.partition("=")[0]
            assert option in options_of_command(name), f"fxflow {name} {option}"


def check_program(command: Sequence[str]) -> None:
    """Checks that a Python program exists and knows the options it is given."""
    program, *arguments = command
    known = options_of(program)
    for argument in arguments:
        if argument.startswith("-"):
            name = argument.partition("=")[0]
            assert name in known, f"{program} has no option {name}"


def environment(**variables: str) -> dict[str, str]:
    """The environment for a process that is part of a run of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("FXFLOW", "XLA"))}
    kept["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    )
    return kept | {"PYTHONUNBUFFERED": "1"} | variables


def run(
    command: Sequence[str], timeout: float = 60, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command in the root of the checkout; it fails after `timeout` seconds."""
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
