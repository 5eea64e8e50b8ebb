"""Parts of a training program, each useful alone around any pure step function."""

from fxflow.core.boundary import public as _public
from fxflow.train import data

__all__ = ["data"]

_public(globals(), __all__)
