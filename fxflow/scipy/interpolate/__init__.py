"""Interpolation: `fxflow.scipy.interpolate`."""

from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    make_interp_spline,
    make_lsq_spline,
)
from fxflow.scipy.interpolate.fitpack import splantider, splder, splev, splint, splrep
from fxflow.scipy.interpolate.grids import RegularGridInterpolator, interpn
from fxflow.scipy.interpolate.piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
)
from fxflow.scipy.interpolate.polynomials import (
    BarycentricInterpolator,
    barycentric_interpolate,
    interp1d,
)
from fxflow.scipy.interpolate.scattered import (
    LinearNDInterpolator,
    NearestNDInterpolator,
    RBFInterpolator,
    griddata,
)
from fxflow.scipy.interpolate.surfaces import RectBivariateSpline

__all__ = [
    "Akima1DInterpolator",
    "BSpline",
    "BarycentricInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "LinearNDInterpolator",
    "NearestNDInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "RectBivariateSpline",
    "RegularGridInterpolator",
    "barycentric_interpolate",
    "griddata",
    "interp1d",
    "interpn",
    "make_interp_spline",
    "make_lsq_spline",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splrep",
]
