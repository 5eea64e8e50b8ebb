# %% [markdown]
# # Economics: optimal growth
#
# A household divides output between consumption and capital (Ramsey, 1928; Brock and
# Mirman, 1972). With logarithmic utility, full depreciation and output $k^\alpha$ the
# answer is known, $k' = \alpha \beta k^\alpha$, so every step here can be checked: a
# value function as a *spline*, its fixed point, the derivative of the fixed point with
# respect to the discount factor, and a linear-quadratic version, whose solution is that
# of a Riccati equation.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.scipy.interpolate import CubicSpline
from fxflow.scipy.linalg import solve_discrete_are
from fxflow.scipy.special import roots_hermite

fxflow.config.update("x64", True)
ALPHA, BETA, SIGMA = 0.36, 0.96, 0.1

# %% [markdown]
# ## Bellman's equation
#
# $V(k) = \max_{k'} \log(z k^\alpha - k') + \beta\, \mathbb{E} V(k')$. The value is a
# cubic spline in the logarithm of capital; a golden-section search finds the best
# saving at all 40 nodes at once; Gauss–Hermite quadrature computes the expectation over
# the shock.

# %%
nodes = fnp.linspace(fnp.log(0.05), fnp.log(0.6), 40)
points, weights = roots_hermite(7)
shocks = fnp.exp(np.sqrt(2) * SIGMA * fnp.asarray(points))
weights = fnp.asarray(weights) / np.sqrt(np.pi)
GOLDEN = (np.sqrt(5) - 1) / 2


def best(value, node, beta, alpha=ALPHA):
    """Returns the best share of output to save, and the value, without a shock."""
    spline = CubicSpline(nodes, value)
    output = fnp.exp(alpha * node)

    def worth(share):
        return fnp.log((1 - share) * output) + beta * spline(fnp.log(share * output))

    def cut(bounds, _):
        low, high = bounds
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        better = worth(left) > worth(right)
        low, high = fnp.where(better, low, left), fnp.where(better, right, high)
        return (low, high), None

    (low, high), _ = lax.scan(cut, (0.05, 0.95), None, length=40)
    share = lax.stop_gradient((low + high) / 2)  # the envelope theorem
    return share, worth(share)


def bellman(value, beta):
    """Returns the value a period earlier, in expectation over the shock."""
    values = fxflow.vmap(lambda node: best(value, node, beta)[1])(nodes)
    # A shock multiplies output: its logarithm adds to the value of consumption.
    return values + fnp.sum(weights * fnp.log(shocks)) / (1 - ALPHA * beta)


# %% [markdown]
# ## The fixed point, and its derivative
#
# `lax.custom_root` finds the value by iterating, and differentiates it by the implicit
# function theorem: none of the 400 iterations is stored.


# %%
def solution(beta):
    residual = lambda value: bellman(value, beta) - value

    def solve(_, guess):
        step = lambda value, _: (bellman(value, beta), None)
        return lax.scan(step, guess, None, length=400)[0]

    def linear(f, y):
        return fnp.linalg.solve(fxflow.jacobian(f)(y), y)

    return lax.custom_root(residual, fnp.zeros(40), solve, linear)


value = fxflow.jit(solution)(BETA)
share = fxflow.jit(fxflow.vmap(lambda node: best(value, node, BETA)[0]))(nodes)
print("saving:", float(share.min()), "to", float(share.max()), "exact:", ALPHA * BETA)

by_patience = fxflow.jit(fxflow.jacfwd(solution))(BETA)


def exact(beta, node):
    """Returns the known value (without shocks)."""
    saving = ALPHA * beta
    constant = (fnp.log(1 - saving) + saving / (1 - saving) * fnp.log(saving)) / (
        1 - beta
    )
    return constant + ALPHA / (1 - saving) * node


exact_value = fxflow.vmap(exact, (None, 0))(BETA, nodes)
exact_slope = fxflow.vmap(fxflow.grad(exact), (None, 0))(BETA, nodes)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.5))
for axis, ours, known, title in (
    (axes[0], value, exact_value, "value"),
    (axes[1], by_patience, exact_slope, "derivative in the discount factor"),
):
    axis.plot(np.exp(nodes), ours, ".", label="spline")
    axis.plot(np.exp(nodes), known, lw=1, label="exact")
    axis.set(title=title, xlabel="capital")
    axis.legend()
plt.show()

# %% [markdown]
# ## A linear-quadratic economy
#
# Around the steady state the problem is approximately quadratic, and its policy solves
# a discrete Riccati equation. The slope of the policy is known to be $\alpha$; its
# derivative with respect to $\beta$ comes from the equation itself.


# %%
def policy_slope(beta):
    """Returns dk'/dk at the steady state, from the second-order expansion."""
    steady = (ALPHA * beta) ** (1 / (1 - ALPHA))

    def utility(pair):
        return fnp.log(pair[0] ** ALPHA - pair[1])

    curve = fxflow.hessian(utility)(fnp.stack([steady, steady]))
    root = fnp.sqrt(beta)
    # State: capital; control: next capital; discounting goes into both.
    a, b = fnp.zeros((1, 1)), root * fnp.ones((1, 1))
    q, r, s = -curve[:1, :1], -curve[1:, 1:], -curve[:1, 1:]
    p = solve_discrete_are(a, b, q, r, s=s)
    return -((b.T @ p @ a + s.T) / (r + b.T @ p @ b))[0, 0]


print("slope:", float(policy_slope(BETA)), "exact:", ALPHA)
print("its derivative in the discount factor:", float(fxflow.grad(policy_slope)(BETA)))

# %% [markdown]
# The numbers, compared with theory:

# %%
assert float(fnp.max(fnp.abs(share - ALPHA * BETA))) < 1e-5
assert abs(float(policy_slope(BETA)) - ALPHA) < 1e-8
error = float(fnp.max(fnp.abs(by_patience / exact_slope - 1)))
assert error < 0.01, error
print(f"the derivative of the value is right to {error:.1e}")
