"""Finds a PJRT plug-in for the front ends in other languages.

    export FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin)       # this CPU
    export FXFLOW_PJRT_PLUGIN=$(python -m fxflow.export.plugin cuda)

jaxlib's own CPU runtime is not a plug-in. Wheels with one are `xla-cpu-pjrt` and
`lammps-jax-pjrt-cpu`; install the second with `pip install --no-deps`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fxflow.devices import plugins
from fxflow.errors import BackendError

#: Package, shared library and wheel of the plug-ins for CPUs, which fxflow itself does
#: not need.
_CPU = (
    ("xla_plugins.xla_cpu_pjrt", "xla_cpu_pjrt.so", "xla-cpu-pjrt"),
    (
        "lammps_jax_pjrt_cpu",
        "pjrt_c_api_cpu_plugin.so",
        "--no-deps lammps-jax-pjrt-cpu",
    ),
)


def find_plugin(platform: str = "cpu") -> Path:
    """Returns the shared library of an installed plug-in.

    Args:
      platform: `"cpu"`, `"cuda"`, `"rocm"`, `"tpu"`, or a name in
        `PJRT_NAMES_AND_LIBRARY_PATHS`.

    Raises:
      BackendError: none is installed for this platform.

    Example:
      >>> find_plugin("nothing")
      Traceback (most recent call last):
          ...
      fxflow.errors.BackendError: no PJRT plug-in for nothing is installed
    """
    found = plugins.find()
    if platform in found:
        return found[platform].library
    if platform == "cpu":
        for package, file, _ in _CPU:
            folder = plugins.folder_of(package)
            if folder is not None and (folder / file).exists():
                return folder / file
        wheels = " or ".join(f"pip install {wheel}" for _, _, wheel in _CPU)
        raise BackendError(f"no PJRT plug-in for cpu is installed: {wheels}")
    raise BackendError(f"no PJRT plug-in for {platform} is installed")


def main(argv: Sequence[str]) -> int:
    """Prints the path of a plug-in.

    Args:
      argv: the arguments of the command.

    Returns:
      The exit status: 0, or 1 if there is no plug-in.
    """
    parser = argparse.ArgumentParser(
        prog="python -m fxflow.export.plugin",
        description="Print the path of an installed PJRT plug-in, for the variable "
        "FXFLOW_PJRT_PLUGIN of the front ends in C and other languages.",
    )
    parser.add_argument("platform", nargs="?", default="cpu", help="cpu, cuda, tpu, …")
    try:
        print(find_plugin(parser.parse_args(argv).platform))
    except BackendError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
