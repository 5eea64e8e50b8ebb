"""Interpolation: `fxflow.scipy.interpolate`."""

from fxflow.scipy.interpolate.grids import RegularGridInterpolator

__all__ = ["RegularGridInterpolator"]
