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
from fxflow.scipy.interpolate.newton_polynomials import (
    KroghInterpolator,
    approximate_taylor_polynomial,
    krogh_interpolate,
    lagrange,
    pade,
    pchip_interpolate,
)
from fxflow.scipy.interpolate.rational_functions import (
    AAA,
    FloaterHormannInterpolator,
)
from fxflow.scipy.interpolate.smoothing_splines import (
    generate_knots,
    make_smoothing_spline,
    make_splprep,
    make_splrep,
)

__all__ = [
    "AAA",
    "Akima1DInterpolator",
    "BSpline",
    "BarycentricInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "FloaterHormannInterpolator",
    "KroghInterpolator",
    "LinearNDInterpolator",
    "NearestNDInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "RectBivariateSpline",
    "RegularGridInterpolator",
    "approximate_taylor_polynomial",
    "barycentric_interpolate",
    "generate_knots",
    "griddata",
    "interp1d",
    "interpn",
    "krogh_interpolate",
    "lagrange",
    "make_interp_spline",
    "make_lsq_spline",
    "make_smoothing_spline",
    "make_splprep",
    "make_splrep",
    "pade",
    "pchip_interpolate",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splrep",
]
