"""Images of any number of axes: `fxflow.scipy.ndimage`."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.ndimage.filters import (
    convolve, convolve1d, correlate, correlate1d, gaussian_filter, gaussian_filter1d,
    laplace, prewitt, sobel, uniform_filter, uniform_filter1d,
)
from fxflow.scipy.ndimage.interpolation import map_coordinates

__all__ = [
    "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter",
    "gaussian_filter1d", "laplace", "map_coordinates", "prewitt", "sobel",
    "uniform_filter", "uniform_filter1d",
]
# fmt: on

_public(globals(), __all__)
