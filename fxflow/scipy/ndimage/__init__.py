"""Images of any number of axes: `fxflow.scipy.ndimage`."""

from fxflow.core.boundary import public as _public
from fxflow.scipy.ndimage.interpolation import map_coordinates

__all__ = ["map_coordinates"]

_public(globals(), __all__)
