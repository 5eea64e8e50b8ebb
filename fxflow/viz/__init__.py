"""Pictures: how arrays lie over devices."""

from fxflow.viz.shardings import sharding_picture, sharding_text

__all__ = ["sharding_picture", "sharding_text"]
