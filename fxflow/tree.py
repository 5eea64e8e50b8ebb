"""Pytrees: nested containers of arrays. `fxflow.tree.map(f, tree)` and its family."""

from fxflow.core.boundary import public as _public
from fxflow.core.tree import *  # noqa: F403 (what the package lists)
from fxflow.core.tree import __all__ as __all__

_public(globals(), __all__)
