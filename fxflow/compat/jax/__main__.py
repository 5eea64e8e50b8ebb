"""`python -m fxflow.compat.jax program.py args…`: runs it with fxflow as `jax`."""

from __future__ import annotations

import os
import runpy
import sys

from fxflow.compat.jax._install import install

USAGE = """usage: python -m fxflow.compat.jax program.py [argument ...]
       python -m fxflow.compat.jax -m module [argument ...]
       python -m fxflow.compat.jax -c command [argument ...]

Runs a Python program in which `import jax` finds fxflow."""


def main(arguments: list[str]) -> int:
    """Runs what the command line names.

    Args:
      arguments: without the name of this module.

    Returns:
      The exit status; a program that runs gives its own.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if arguments else 2
    kind, *rest = arguments
    if kind in ("-m", "-c") and not rest:
        print(f"{kind} needs an argument\n{USAGE}", file=sys.stderr)
        return 2
    if kind not in ("-m", "-c") and not os.path.exists(kind):
        print(f"there is no file {kind!r}\n{USAGE}", file=sys.stderr)
        return 2
    install()
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = arguments
        # Where Python itself would put the folder of a program that it runs.
        sys.path[0] = os.path.dirname(os.path.abspath(kind))
        runpy.run_path(kind, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
