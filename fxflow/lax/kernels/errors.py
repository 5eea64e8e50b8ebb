"""What the compilers of kernels raise."""

from __future__ import annotations


class UnsupportedError(Exception):
    """The compiler of kernels does not know an operation, or a dtype."""
