"""What solvers return: named tuples with SciPy's fields, which are pytrees.

`status` is a number, so that it can be traced; `message` says it in words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Array
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ConcretizationError

MINIMIZED = {
    0: "Converged.",
    1: "Stopped at the greatest number of iterations, or of calls.",
    2: "A value is not finite.",
    3: "No better point was found.",
    4: "The constraints are not satisfied.",
}
SOLVED = {
    0: "Converged.",
    1: "Stopped at the greatest number of iterations, or of calls.",
    2: "A value is not finite.",
    3: "Stopped at a point that is not a root.",
}
FITTED = {
    -1: "A residual is not finite.",
    0: "Stopped at the greatest number of calls.",
    1: "Converged: `gtol` is satisfied.",
    2: "Converged: `ftol` is satisfied.",
    3: "Converged: `xtol` is satisfied.",
    4: "Converged: both `ftol` and `xtol` are satisfied.",
}
PROGRAMMED = {
    0: "Optimal.",
    1: "Stopped at the greatest number of iterations, or of programs.",
    2: "Infeasible: no point satisfies the constraints.",
    3: "Unbounded: the objective decreases without end.",
    4: "Stopped, because of rounding errors.",
}


def message_of(words: dict[int, str], status: Any) -> str:
    """Returns a status in words.

    Args:
      words: of each status.
      status: int, or an array of them.

    Raises:
      ConcretizationError: the status is traced.
    """
    if isinstance(status, Tracer):
        raise ConcretizationError(
            "message: the status is traced, so it is not known yet; read the message "
            "of what the function returns, outside jit and vmap"
        )
    numbers = np.unique(np.asarray(status))
    return " ".join(words[int(number)] for number in numbers)


class OptimizeResults(NamedTuple):
    """What `minimize`, `minimize_scalar` and `differential_evolution` return.

    Attributes:
      x: the point with the least value, like `x0`.
      success: bool: whether the solver converged.
      status: int: 0 converged; 1 too many iterations, or calls; 2 a value that is not
        finite; 3 no better point was found; 4 the constraints are not satisfied.
      fun: float: the value at x.
      jac: the gradient at x, like `x0`; None for methods that use no derivative.
      hess_inv: float[n, n]: an estimate of the Hessian's inverse; None except for
        "BFGS".
      nfev: int: number of calls of the function.
      njev: int: number of calls of the gradient.
      nit: int: number of iterations.
      multipliers: for each constraint the derivatives of `fun` by its values, with the
        bounds moved inwards; None without constraints.
      maxcv: float: the largest violation of a constraint; None without constraints.
      xl: float[k, n]: of `shgo`, the local minima it found, the lowest first.
      funl: float[k]: likewise, their values.
    """

    x: Any
    success: bool | Array
    status: int | Array
    fun: Array
    jac: Any
    hess_inv: Array | None
    nfev: int | Array
    njev: int | Array
    nit: int | Array
    multipliers: tuple[Array, ...] | None = None
    maxcv: Array | None = None
    xl: Array | None = None
    funl: Array | None = None

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(MINIMIZED, self.status)


class RootResults(NamedTuple):
    """What `root`, `root_scalar` and similar functions return.

    Attributes:
      x: the root, like `x0`.
      success: bool: whether the solver converged.
      status: int: 0 converged; 1 too many iterations; 2 a value that is not finite; 3
        a point that is not a root.
      fun: the function at the root.
      nfev: int: number of calls of the function.
      nit: int: number of iterations.
    """

    x: Any
    success: bool | Array
    status: int | Array
    fun: Any
    nfev: int | Array
    nit: int | Array

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(SOLVED, self.status)


class ScalarRootResults(NamedTuple):
    """What `root_scalar` returns, and `brentq` and similar functions with it.

    Attributes:
      root: float: the root.
      iterations: int: number of iterations.
      function_calls: int: number of calls of the function and its derivatives.
      converged: bool: whether the solver converged.
      status: int: 0 converged; 1 too many iterations; 2 a value that is not finite; 3
        the function has the same sign at both ends of the bracket.
    """

    root: Array
    iterations: Array
    function_calls: Array
    converged: Array
    status: Array

    @property
    def flag(self) -> str:
        """The status in words."""
        words = {**SOLVED, 3: "The signs of f(a) and f(b) do not differ."}
        return message_of(words, self.status)


class LeastSquaresResults(NamedTuple):
    """What `least_squares` and `lsq_linear` return.

    Attributes:
      x: the solution, like `x0`.
      cost: float: half the sum of squares, or of the losses, at x.
      fun: float[m]: the residuals at x.
      jac: float[m, n]: their Jacobian; of a robust loss, scaled by it.
      grad: float[n]: the gradient of the cost.
      optimality: float: the largest element of the gradient that is not at a bound.
      active_mask: int[n]: -1 at a lower bound, 1 at an upper bound, else 0.
      nfev: int: number of calls of the function.
      njev: int: number of calls of the Jacobian.
      status: int: -1 a residual is not finite; 0 too many calls; 1 `gtol`, 2 `ftol`, 3
        `xtol`, 4 both of these are satisfied.
      success: bool: whether the solver converged.
    """

    x: Any
    cost: Array
    fun: Array
    jac: Array
    grad: Array
    optimality: Array
    active_mask: Array
    nfev: Array
    njev: Array
    status: Array
    success: Array

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(FITTED, self.status)


class Sensitivity(NamedTuple):
    """One group of constraints of a linear program at its solution.

    Attributes:
      residual: float[k]: how far the constraints are from being active.
      marginals: float[k]: derivatives of the objective with respect to the constraints'
        bounds.
    """

    residual: Array
    marginals: Array


class ProgramResults(NamedTuple):
    """What `linprog`, `milp` and `quadratic_program` return.

    Attributes:
      x: float[n]: the solution; nan unless it is optimal.
      fun: float: the objective there.
      slack: float[m]: `b_ub - A_ub x`.
      con: float[k]: `b_eq - A_eq x`.
      success: bool: whether the solution is optimal.
      status: int: 0 optimal; 1 too many iterations; 2 infeasible; 3 unbounded; 4
        rounding errors.
      nit: int: number of iterations.
      ineqlin: of `A_ub x ≤ b_ub`.
      eqlin: of `A_eq x = b_eq`.
      lower: of the lower bounds.
      upper: of the upper bounds.
      mip_node_count: int: number of programs that were solved; None unless variables
        must be whole.
      mip_dual_bound: float: no point has a lower value; likewise.
      mip_gap: float: the relative difference of the objective to it; likewise.
    """

    x: Array
    fun: Array
    slack: Array
    con: Array
    success: Array
    status: Array
    nit: Array
    ineqlin: Sensitivity
    eqlin: Sensitivity
    lower: Sensitivity
    upper: Sensitivity
    mip_node_count: Array | None = None
    mip_dual_bound: Array | None = None
    mip_gap: Array | None = None

    @property
    def message(self) -> str:
        """The status in words."""
        return message_of(PROGRAMMED, self.status)
