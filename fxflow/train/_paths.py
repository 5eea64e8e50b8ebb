"""What a leaf of a pytree is called in files, logs and messages: `layers/0/w`."""

from __future__ import annotations

from typing import Any

from fxflow.core import tree


def path_name(path: tuple[Any, ...], alone: str = "") -> str:
    """Returns a path as text.

    Args:
      path: of keys, as `tree.leaves_with_path` gives it.
      alone: what a tree that is one leaf is called.
    """
    return tree.keystr(path, simple=True, separator="/") or alone
