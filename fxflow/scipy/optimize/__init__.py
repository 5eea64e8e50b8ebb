"""Minimization: `fxflow.scipy.optimize`."""

from fxflow.core.boundary import public as _public
from fxflow.scipy.optimize.minimization import OptimizeResults, minimize

__all__ = ["OptimizeResults", "minimize"]

_public(globals(), __all__)
