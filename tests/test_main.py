"""The `fxflow` command, and `python -m fxflow`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fxflow
from fxflow import devices
from fxflow.__main__ import COMMANDS, main

Capture = pytest.CaptureFixture[str]


def asked(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    """Status, output and errors of a command."""
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr()
    return status, said.out, said.err


def test_help_names_every_command(capsys: Capture) -> None:
    status, out, _ = asked(capsys, "--help")
    assert status == 0
    for name, command in COMMANDS.items():
        assert f"  {name} " in out and command.summary in out
    assert asked(capsys)[::2] == (2, out)


def test_version(capsys: Capture) -> None:
    assert asked(capsys, "--version")[:2] == (0, f"fxflow {fxflow.__version__}\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fxflow", name, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0 and f"usage: fxflow {name}" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lunch"], "no command 'lunch': did you mean `fxflow launch`?"),
        (["train.py"], "no command 'train.py': see `fxflow --help`"),
        (["-n"], "unrecognized arguments: -n"),
        (["cache"], "the following arguments are required: info|clear"),
        (["cache", "remove"], "invalid choice: 'remove'"),
        (["doctor", "now"], "unrecognized arguments: now"),
    ],
)
def test_invalid_arguments_exit_with_status_2(
    capsys: Capture, arguments: list[str], words: str
) -> None:
    status, out, err = asked(capsys, *arguments)
    assert status == 2 and not out
    assert words in err


def test_doctor(capsys: Capture, tmp_path: Path) -> None:
    # A cache of its own: in the usual one other processes enter programs meanwhile.
    with fxflow.config.override(cache_dir=str(tmp_path)):
        status, out, _ = asked(capsys, "doctor")
        assert status == 0
        assert out == devices.doctor(show=False) + "\n"


def test_doctor_report(capsys: Capture) -> None:
    status, out, _ = asked(capsys, "doctor", "--report")
    assert status == 0 and out.startswith("### fxflow doctor\n")


def test_doctor_without_a_device() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fxflow", "doctor"],
        capture_output=True,
        text=True,
        env={**os.environ, "FXFLOW_PLATFORMS": "none"},
    )
    assert done.returncode == 1, done.stderr
    assert "NO BACKEND" in done.stdout and not done.stderr


def test_cache(capsys: Capture, tmp_path: Path) -> None:
    with fxflow.config.override(cache_dir=str(tmp_path), cache=True):
        fxflow.jit(lambda x: x * 3.25 + 1.5)(2.0)
        count = devices.cache_info().entries
        assert count > 0
        status, out, _ = asked(capsys, "cache", "info")
        assert status == 0
        fields = dict(line.split(maxsplit=1) for line in out.splitlines())
        assert fields["directory"] == str(tmp_path) and fields["state"] == "on"
        assert fields["programs"] == str(count) and fields["size"].endswith("B")
        status, out, _ = asked(capsys, "cache", "clear")
        assert status == 0 and out.startswith(f"removed {count} programs, ")
        assert devices.cache_info().entries == 0


def test_an_interrupt_is_one_line(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(show: bool = True) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(devices, "doctor", interrupted)
    assert asked(capsys, "doctor") == (130, "", "fxflow doctor: interrupted\n")
