"""Minimization, roots, fits and programs: `fxflow.scipy.optimize`.

Every solution has an implicit derivative, with respect to all that its problem depends
on: see `optim.implicit`.
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
from fxflow.scipy.optimize.hessian_updates import BFGS, SR1, HessianUpdateStrategy
from fxflow.scipy.optimize.isotonic import isotonic_regression
from fxflow.scipy.optimize.least_squares import (
    curve_fit, least_squares, leastsq, lsq_linear, nnls,
)
from fxflow.scipy.optimize.linear_programs import linprog, milp, quadratic_program
from fxflow.scipy.optimize.minimization import minimize
from fxflow.scipy.optimize.rectangles import direct
from fxflow.scipy.optimize.homology import shgo
from fxflow.scipy.optimize.results import OptimizeResults
from fxflow.scipy.optimize.root_methods import (
    anderson, broyden1, broyden2, diagbroyden, excitingmixing, linearmixing,
    newton_krylov,
)
from fxflow.scipy.optimize.roots import fixed_point, fsolve, root
from fxflow.scipy.optimize.scalar_minimization import bracket, minimize_scalar
from fxflow.scipy.optimize.scalar_roots import (
    bisect, brenth, brentq, newton, ridder, root_scalar, toms748,
)
from fxflow.scipy.optimize.searches import line_search
from fxflow.scipy.optimize.single_methods import (
    brent, fmin, fmin_bfgs, fmin_cg, fmin_cobyla, fmin_l_bfgs_b, fmin_ncg, fmin_powell,
    fmin_slsqp, fmin_tnc, fminbound, golden,
)

__all__ = [
    "BFGS", "SR1", "Bounds", "HessianUpdateStrategy", "LinearConstraint",
    "NonlinearConstraint", "OptimizeResults", "anderson", "approx_fprime",
    "basinhopping", "bisect", "bracket", "brent", "brenth", "brentq", "broyden1",
    "broyden2", "brute", "check_grad", "curve_fit", "diagbroyden",
    "differential_evolution", "direct", "dual_annealing", "excitingmixing",
    "fixed_point", "fmin", "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b",
    "fmin_ncg", "fmin_powell", "fmin_slsqp", "fmin_tnc", "fminbound", "fsolve",
    "golden", "isotonic_regression", "least_squares", "leastsq", "line_search",
    "linear_sum_assignment", "linearmixing", "linprog", "lsq_linear", "milp",
    "minimize", "minimize_scalar", "newton", "newton_krylov", "nnls",
    "quadratic_assignment", "quadratic_program", "ridder", "root", "root_scalar",
    "rosen", "rosen_der", "rosen_hess", "rosen_hess_prod", "shgo", "toms748",
]
# fmt: on

_public(globals(), __all__)
