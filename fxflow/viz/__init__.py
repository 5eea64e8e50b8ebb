"""Pictures: how arrays lie over devices."""

from fxflow.core.boundary import public as _public
from fxflow.viz.shardings import sharding_picture, sharding_text

__all__ = ["sharding_picture", "sharding_text"]

_public(globals(), __all__)
