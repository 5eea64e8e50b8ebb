"""Names of pytree leaves in files, logs and messages, such as `layers/0/w`."""

from __future__ import annotations

from typing import Any

from fxflow.core import tree


def path_name(path: tuple[Any, ...], alone: str = "") -> str:
    """Returns a path as text.

    Args:
      path: the keys, as `tree.leaves_with_path` returns them.
      alone: the name of the leaf of a tree that consists of a single leaf.
    """
    return tree.keystr(path, simple=True, separator="/") or alone
