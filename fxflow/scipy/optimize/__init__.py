"""Minimization, roots, fits and programs: `fxflow.scipy.optimize`.

Every solution has an implicit derivative, by all that its problem depends on: see
`optim.implicit`.
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.scipy.optimize import elementwise as elementwise  # a module
from fxflow.scipy.optimize.assignment import linear_sum_assignment, quadratic_assignment
from fxflow.scipy.optimize.constraints import (
    Bounds, LinearConstraint, NonlinearConstraint,
)
from fxflow.scipy.optimize.evolution import differential_evolution
from fxflow.scipy.optimize.functions import (
    approx_fprime, check_grad, rosen, rosen_der, rosen_hess, rosen_hess_prod,
)
from fxflow.scipy.optimize.global_minimization import (
    basinhopping, brute, dual_annealing,
)
from fxflow.scipy.optimize.isotonic import isotonic_regression
from fxflow.scipy.optimize.least_squares import (
    curve_fit, least_squares, leastsq, lsq_linear, nnls,
)
from fxflow.scipy.optimize.linear_programs import linprog, quadratic_program
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.scipy.optimize.roots import fixed_point, fsolve, root
from fxflow.scipy.optimize.scalar_minimization import bracket, minimize_scalar
from fxflow.scipy.optimize.scalar_roots import (
    bisect, brenth, brentq, newton, ridder, root_scalar, toms748,
)
from fxflow.scipy.optimize.searches import line_search

__all__ = [
    "Bounds", "LinearConstraint", "NonlinearConstraint", "OptimizeResults",
    "approx_fprime", "basinhopping", "bisect", "bracket", "brenth", "brentq", "brute",
    "check_grad", "curve_fit", "differential_evolution", "dual_annealing",
    "fixed_point", "fsolve", "isotonic_regression", "least_squares", "leastsq",
    "line_search", "linear_sum_assignment", "linprog", "lsq_linear", "minimize",
    "minimize_scalar", "newton", "nnls", "quadratic_assignment", "quadratic_program",
    "ridder", "root", "root_scalar", "rosen", "rosen_der", "rosen_hess",
    "rosen_hess_prod", "toms748",
]
# fmt: on

_public(globals(), __all__)
