"""The `fxflow` command; also `python -m fxflow`.

fxflow doctor
fxflow cache info
fxflow launch -n 2 train.py
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from fxflow import __version__, devices
from fxflow.devices.doctor import problem_report
from fxflow.devices.memory import bytes_text
from fxflow.distributed import launch, standalone
from fxflow.distributed.parameter_server import command, simulator_command
from fxflow.errors import BackendError
from fxflow.serve import command as serving


class Command(NamedTuple):
    """A command: what runs it, what it is for, and whether it ends the process."""

    run: Callable[[Sequence[str]], int]
    summary: str
    #: Threads of a run's server wait in the runtime, and are not joined.
    leaves_threads: bool = False


# -- what is done here -----------------------------------------------------------------


def _doctor(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="fxflow doctor",
        description="Say which devices fxflow uses, why an accelerator is or is not "
        "used, where compiled programs are kept, and which options are set.",
        epilog="Exit status: 0, or 1 if no device can be used.",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="a text in Markdown for a bug report: also the system, the versions of "
        "packages, and environment variables (no secrets)",
    )
    if parser.parse_args(argv).report:
        print(problem_report())
    else:
        devices.doctor()
    try:
        devices.devices()
    except BackendError:
        return 1
    return 0


def _cache(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="fxflow cache",
        description="The compiled programs that are kept on disk, so that another "
        "process need not compile them again.",
        epilog="FXFLOW_CACHE_DIR says where they are, FXFLOW_CACHE_MAX_BYTES how many "
        "bytes they may take, FXFLOW_CACHE=0 turns the cache off.",
    )
    what = parser.add_subparsers(dest="what", required=True, metavar="info|clear")
    what.add_parser("info", help="where they are, how many, how large")
    what.add_parser("clear", help="remove them all; they are compiled again when used")
    asked = parser.parse_args(argv).what
    before = devices.cache_info()
    if asked == "clear":
        devices.clear_cache()
        left = devices.cache_info().entries
        print(f"removed {before.entries - left} programs, {bytes_text(before.nbytes)}")
        if left:
            print(f"fxflow cache: {left} could not be removed", file=sys.stderr)
        return int(bool(left))
    print(f"directory  {before.directory}")
    print(f"state      {'on' if before.enabled else 'off'}")
    print(f"programs   {before.entries}")
    print(f"size       {bytes_text(before.nbytes)}")
    return 0


# -- the command line ------------------------------------------------------------------

COMMANDS = {
    "doctor": Command(_doctor, "which devices are used, and why others are not"),
    "cache": Command(_cache, "compiled programs on disk: how many there are; clear"),
    "launch": Command(
        launch.main, "start the processes of a run, here or on other machines", True
    ),
    "parameter-server": Command(
        command.main, "one server of an asynchronous parameter server", True
    ),
    "simulate": Command(
        simulator_command.main, "how fast a parameter server's workers would train"
    ),
    "serve": Command(serving.main, "models over HTTP, within a latency objective"),
    "coordinator": Command(
        standalone.main, "where processes meet that something else starts", True
    ),
}


def _parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<16} {c.summary}" for name, c in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="fxflow",
        usage="fxflow COMMAND [arguments]",
        description="fxflow from the shell.",
        epilog=f"commands:\n{commands}\n\n"
        "`fxflow COMMAND --help` says what a command takes.\n\n"
        "examples:\n"
        "  fxflow doctor\n"
        "  fxflow launch -n 2 train.py --epochs 3",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"fxflow {__version__}")
    return parser


def _exit(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the `fxflow` command.

    Args:
      argv: the arguments; None is the command line's.

    Returns:
      The exit status. `launch` and `coordinator` end the process themselves.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else ""
    command = COMMANDS.get(name)
    if command is None:
        parser = _parser()
        if name.startswith("-"):
            parser.parse_args(arguments[:1])
        if not name:
            parser.print_help(sys.stderr)
            return 2
        near = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean `fxflow {near[0]}`?" if near else "see `fxflow --help`"
        parser.error(f"there is no command {name!r}: {hint}")
    try:
        status = command.run(arguments[1:])
    except KeyboardInterrupt:
        print(f"fxflow {name}: interrupted", file=sys.stderr)
        status = 130
    if command.leaves_threads:
        _exit(status)
    return status


if __name__ == "__main__":
    sys.exit(main())
