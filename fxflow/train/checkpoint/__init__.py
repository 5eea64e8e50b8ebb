"""Checkpoints: saves states to files atomically, and restores them.

Read the modules in this order: `description` (`tree.json`), `storage` (folders and
object stores), `elements` (the files of arrays), `saving`, `checkpointer`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.train.checkpoint.checkpointer import Checkpointer
from fxflow.train.checkpoint.saving import metadata, restore, save

__all__ = ["Checkpointer", "metadata", "restore", "save"]

_public(globals(), __all__)
# fmt: on
