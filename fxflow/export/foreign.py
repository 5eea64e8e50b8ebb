"""Reads programs without a digest in a separate process.

Artifacts of fxflow have a digest, so that damage never reaches MLIR's bytecode reader,
which corrupts memory on flipped bits. Artifacts of JAX have none. A child process reads
them and prints their text, which is parsed, verified and serialized again here. Damaged
bytes can only crash the child.
"""

from __future__ import annotations

import importlib
import os
import struct
import subprocess
import sys
from collections.abc import Sequence

from fxflow.errors import ExportError

#: Seconds for the child, which starts in one and reads 100 MB in a few more.
_DEADLINE = 120
_CODE = "from fxflow.devices.portable import print_programs; print_programs()"
_SIZE = struct.Struct("<Q")


def reread(payloads: Sequence[bytes]) -> list[bytes]:
    """Parses portable artifacts in a child process, and serializes them again.

    Args:
      payloads: StableHLO artifacts, of any writer.

    Raises:
      ExportError: an artifact is damaged or of an unknown version, or the child cannot
        be started.
    """
    # Let the child import the same modules.
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
            f"the artifact is damaged: reading its program took over {_DEADLINE} s"
        ) from None
    except OSError as error:
        raise ExportError(
            "the artifact has no digest, and a process to read its program cannot be "
            f"started ({error}): deserialize(blob, trusted=True) reads it here"
        ) from None
    if child.returncode:
        lines = child.stderr.decode(errors="replace").strip().splitlines()
        why = lines[-1] if lines else f"its reader exited with {child.returncode}"
        raise ExportError(f"the artifact's program cannot be read: {why}")
    portable = importlib.import_module("fxflow.devices.portable")
    try:
        return [portable.write(text.decode()) for text in parts(child.stdout)]
    except ValueError as error:
        raise ExportError(f"the artifact's program cannot be read: {error}") from None


def parts(data: bytes) -> list[bytes]:
    """Splits a sequence of parts, each with its length before it."""
    found, at = [], 0
    while at < len(data):
        (size,) = _SIZE.unpack_from(data, at)
        at += _SIZE.size
        found.append(data[at : at + size])
        at += size
    return found
