# %% [markdown]
# # Physics: the orbit of Mercury
#
# In general relativity an orbit is not closed: its perihelion moves. For Mercury, the
# part that the other planets do not explain is 43 seconds of arc in a century. The
# explanation was the theory's first success (Einstein, 1915). This notebook integrates
# the orbit, finds the perihelion as an *event* of the solver, and differentiates the
# answer with respect to the physics.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow.scipy.integrate import solve_ivp
from fxflow.scipy.special import ellipk

fxflow.config.update("x64", True)

# %% [markdown]
# ## The equation
#
# With $u = a/r$, where $a$ is the semi-major axis, and the angle $\varphi$ as the
# variable, the orbit satisfies
#
# $$u'' + u = \frac{1}{1 - e^2} + 3 \varepsilon u^2, \qquad
# \varepsilon = \frac{G M}{c^2 a}.$$
#
# Newton's orbit has $\varepsilon = 0$. At a perihelion $u'$ falls through zero: the
# solver finds the first one after $\varphi = 0$ as the root of an event.


# %%
def orbit(epsilon, e, **options):
    def slope(phi, y):
        u, v = y
        return fnp.stack([v, 1 / (1 - e**2) + 3 * epsilon * u**2 - u])

    start = fnp.stack([1 / (1 - e), 0.0 * e])
    return solve_ivp(
        slope, (0.0, 8.0), start, method="DOP853", rtol=1e-12, atol=1e-13, **options
    )


def perihelion(phi, y):
    return y[1]


perihelion.direction = -1


def advance(epsilon, e):
    """Returns by how much the perihelion moves in a revolution."""
    found = orbit(epsilon, e, events=perihelion)
    times = found.t_events[0]
    return times[fnp.argmax(times > 1.0)] - 2 * np.pi


# %% [markdown]
# ## A strong field, where the effect is visible
#
# In a strong field, such as near a black hole, the whole orbit visibly turns.

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4.5))
for axis, epsilon in zip(axes, (0.0, 0.012)):

    def slope(phi, y, epsilon=epsilon):
        return fnp.stack([y[1], 1 / (1 - 0.5**2) + 3 * epsilon * y[0] ** 2 - y[0]])

    angles = np.linspace(0, 12 * np.pi, 2000)
    path = solve_ivp(slope, (0, 12 * np.pi), [2.0, 0.0], t_eval=angles, rtol=1e-8)
    radius = 1 / np.asarray(path.y[0])
    axis.plot(radius * np.cos(angles), radius * np.sin(angles), lw=0.8)
    axis.plot(0, 0, "o", color="orange")
    axis.set(title=f"$\\varepsilon$ = {epsilon}", aspect="equal")
plt.show()

# %% [markdown]
# ## Mercury
#
# $\varepsilon = 2.55 \times 10^{-8}$, $e = 0.2056$, 415.2 revolutions in a century.

# %%
MERCURY = (1476.625 / 57.909e9, 0.205630)  # half the Sun's Schwarzschild radius / a
ARC = 180 * 3600 / np.pi * 36525 / 87.9691

# The error of the solver is of the order of the effect: subtract Newton's orbit.
moved = advance(*MERCURY) - advance(0.0, MERCURY[1])
print(f"{float(moved) * ARC:.2f} seconds of arc in a century")

# %% [markdown]
# ## The derivative
#
# How does the advance depend on $\varepsilon$ and $e$? `fxflow.grad` differentiates the
# time of the event through the solver. To first order the advance is
# $6 \pi \varepsilon / (1 - e^2)$.

# %%
strong = (1e-4, 0.2)
by_field, by_shape = fxflow.jit(fxflow.grad(advance, argnums=(0, 1)))(*strong)
print("by the field:", float(by_field), "first order:", 6 * np.pi / (1 - 0.2**2))
print(
    "by the shape:",
    float(by_shape),
    "first order:",
    12 * np.pi * 1e-4 * 0.2 / (1 - 0.2**2) ** 2,
)

# %% [markdown]
# ## A pendulum, exactly
#
# The period of a pendulum of amplitude $\theta$ is $4 K(\sin^2(\theta/2))$: special
# functions have derivatives, too. Small oscillations have the period $2\pi$.

# %%
amplitudes = np.linspace(0.01, 3.0, 200)
period = lambda theta: 4 * ellipk(fnp.sin(theta / 2) ** 2)
figure, axis = plt.subplots(figsize=(6, 3.5))
axis.plot(amplitudes, fxflow.vmap(period)(amplitudes), label="period")
axis.plot(amplitudes, fxflow.vmap(fxflow.grad(period))(amplitudes), label="derivative")
axis.set(xlabel="amplitude")
axis.legend()
plt.show()

# %% [markdown]
# The numbers, compared with the textbooks:

# %%
assert abs(float(moved) * ARC - 42.98) < 0.05
assert abs(float(by_field) / (6 * np.pi / (1 - 0.2**2)) - 1) < 0.01
print(f"{float(moved) * ARC:.2f}″ in a century, {float(period(np.pi / 2)):.6f}")
