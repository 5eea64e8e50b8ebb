"""Interpolation: `fxflow.scipy.interpolate`."""

from fxflow.core.boundary import public as _public
from fxflow.scipy.interpolate.bernstein import BPoly
from fxflow.scipy.interpolate.bsplines import (
    BSpline,
    make_interp_spline,
    make_lsq_spline,
)
from fxflow.scipy.interpolate.fitpack import (
    insert,
    spalde,
    splantider,
    splder,
    splev,
    splint,
    splprep,
    splrep,
    sproot,
)
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
from fxflow.scipy.interpolate.radial import Rbf
from fxflow.scipy.interpolate.scattered import (
    NearestNDInterpolator,
    RBFInterpolator,
    griddata,
)
from fxflow.scipy.interpolate.surfaces import BivariateSpline, RectBivariateSpline
from fxflow.scipy.interpolate.scattered_surfaces import (
    LSQBivariateSpline,
    SmoothBivariateSpline,
    bisplev,
    bisplrep,
)
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
from fxflow.scipy.interpolate.sphere_surfaces import (
    LSQSphereBivariateSpline,
    RectSphereBivariateSpline,
    SmoothSphereBivariateSpline,
)
from fxflow.scipy.interpolate.tensor_products import NdBSpline, NdPPoly
from fxflow.scipy.interpolate.triangles import (
    CloughTocher2DInterpolator,
    LinearNDInterpolator,
)
from fxflow.scipy.interpolate.univariate import (
    InterpolatedUnivariateSpline,
    LSQUnivariateSpline,
    UnivariateSpline,
)

__all__ = [
    "AAA",
    "Akima1DInterpolator",
    "BPoly",
    "BSpline",
    "BarycentricInterpolator",
    "BivariateSpline",
    "CloughTocher2DInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "FloaterHormannInterpolator",
    "InterpolatedUnivariateSpline",
    "KroghInterpolator",
    "LSQBivariateSpline",
    "LSQSphereBivariateSpline",
    "LSQUnivariateSpline",
    "LinearNDInterpolator",
    "NdBSpline",
    "NdPPoly",
    "NearestNDInterpolator",
    "PPoly",
    "PchipInterpolator",
    "RBFInterpolator",
    "Rbf",
    "RectBivariateSpline",
    "RectSphereBivariateSpline",
    "RegularGridInterpolator",
    "SmoothBivariateSpline",
    "SmoothSphereBivariateSpline",
    "UnivariateSpline",
    "approximate_taylor_polynomial",
    "barycentric_interpolate",
    "bisplev",
    "bisplrep",
    "generate_knots",
    "griddata",
    "insert",
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
    "spalde",
    "splantider",
    "splder",
    "splev",
    "splint",
    "splprep",
    "splrep",
    "sproot",
]

_public(globals(), __all__)
