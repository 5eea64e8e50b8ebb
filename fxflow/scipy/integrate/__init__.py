"""Integrals and differential equations: `fxflow.scipy.integrate`."""

from fxflow.core.boundary import public as _public
from fxflow.numpy.calculus import trapezoid
from fxflow.scipy.integrate.boundary_value import BVPResult, solve_bvp
from fxflow.scipy.integrate.elementwise import nsum, tanhsinh
from fxflow.scipy.integrate.initial_value import (
    OdeResult,
    OdeSolution,
    odeint,
    solve_ivp,
)
from fxflow.scipy.integrate.quadrature import (
    fixed_quad,
    newton_cotes,
    quad,
    quad_vec,
)
from fxflow.scipy.integrate.repeated import dblquad, nquad, tplquad
from fxflow.scipy.integrate.samples import (
    cumulative_simpson,
    cumulative_trapezoid,
    romb,
    simpson,
)
from fxflow.scipy.integrate.sphere_rules import lebedev_rule
from fxflow.scipy.integrate.volumes import cubature, qmc_quad

__all__ = [
    "cubature",
    "dblquad",
    "newton_cotes",
    "nquad",
    "tplquad",
    "BVPResult",
    "solve_bvp",
    "OdeResult",
    "OdeSolution",
    "odeint",
    "solve_ivp",
    "cumulative_simpson",
    "cumulative_trapezoid",
    "fixed_quad",
    "lebedev_rule",
    "nsum",
    "qmc_quad",
    "quad",
    "quad_vec",
    "romb",
    "simpson",
    "tanhsinh",
    "trapezoid",
]

_public(globals(), __all__)
