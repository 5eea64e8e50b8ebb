"""Programs that others wrote, read in a process of their own.

What fxflow writes has a digest, so that nothing damaged reaches MLIR's reader of
bytecode, which corrupts memory on flipped bits. What JAX writes has none. A child reads
it and prints it; the text is parsed and verified here, and written as a program again.
Whatever the bytes do to their reader, it does to the child.
"""

from __future__ import annotations

import importlib
import os
import struct
import subprocess
import sys
from collections.abc import Sequence

from fxflow.errors import ExportError

#: Seconds for the child: it starts in one, and reads 100 MB in some more.
_DEADLINE = 120
_CODE = "from fxflow.devices.portable import print_programs; print_programs()"
_SIZE = struct.Struct("<Q")


def reread(payloads: Sequence[bytes]) -> list[bytes]:
    """Returns portable artifacts written anew from what a child read in them.

    Args:
      payloads: artifacts of StableHLO, of any writer.

    Raises:
      ExportError: one is damaged, or of a version that is not known here; or no child
        can be started.
    """
    # The same modules as here, wherever they were found.
    found = os.pathsep.join(filter(None, sys.path))
    given = b"".join(part for p in payloads for part in (_SIZE.pack(len(p)), p))
    try:
        child = subprocess.run(
            [sys.executable, "-c", _CODE],
            input=given,
            capture_output=True,
            timeout=_DEADLINE,
            env={**os.environ, "PYTHONPATH": found},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ExportError(
            f"the artifact is damaged: its program was not read in {_DEADLINE} s"
        ) from None
    except OSError as error:
        raise ExportError(
            "the artifact has no digest, and no process that reads its program can be "
            f"started ({error}): deserialize(blob, trusted=True) reads it here"
        ) from None
    if child.returncode:
        said = child.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"its reader ended with {child.returncode}"
        raise ExportError(f"the artifact has no program that can be read: {why}")
    portable = importlib.import_module("fxflow.devices.portable")
    try:
        return [portable.write(text.decode()) for text in parts(child.stdout)]
    except ValueError as error:
        raise ExportError(
            f"the artifact has no program that can be read: {error}"
        ) from None


def parts(data: bytes) -> list[bytes]:
    """Returns what was written one after another, each behind its length."""
    found, at = [], 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        found.append(data[at : at + size])
        at += size
    return found
