"""What the compilers of kernels raise."""

from __future__ import annotations

from typing import Any


class UnsupportedError(Exception):
    """The compiler of kernels does not know an operation, or a dtype.

    Attributes:
      source: of the operation, as in `Node.source`, or None.
    """

    source: Any = None
