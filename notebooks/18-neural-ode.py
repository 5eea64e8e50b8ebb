# %% [markdown]
# # A neural differential equation
#
# A system follows an unknown law, and was observed at a few times.
# A *neural ODE* is a network in place of the law: solve the equation with the network,
# compare the solution with the observations, and differentiate through the solver.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random
from fxflow.scipy import integrate

# %% [markdown]
# ## A solver is a `scan`
#
# The classical Runge-Kutta step takes four slopes. `lax.scan` repeats it, and stacks
# the states on the way.


# %%
def runge_kutta(law, state, times):
    def step(state, span):
        t, h = span
        k1 = law(t, state)
        k2 = law(t + h / 2, state + h / 2 * k1)
        k3 = law(t + h / 2, state + h / 2 * k2)
        k4 = law(t + h, state + h * k3)
        state = state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return state, state

    spans = times[:-1], fnp.diff(times)
    return fnp.concatenate([state[None], lax.scan(step, state, spans)[1]])


# %% [markdown]
# ## The hidden law
#
# A pendulum with friction. We observe 8 swings, with noise.


# %%
def pendulum(t, state):
    angle, speed = state
    return fnp.stack([speed, -fnp.sin(angle) * 2 - 0.25 * speed])


times = fnp.linspace(0.0, 6.0, 61)
keys = random.split(random.key(0), 4)
starts = random.uniform(keys[0], (8, 2), minval=-2.0, maxval=2.0)
true = fxflow.vmap(lambda start: runge_kutta(pendulum, start, times))(starts)
seen = true + 0.03 * random.normal(keys[1], true.shape)

# %% [markdown]
# Is the solver right? Compare with an adaptive solver of `fxflow.scipy`:

# %%
precise = integrate.solve_ivp(pendulum, (0.0, 6.0), starts[0], t_eval=times, rtol=1e-6)
error = float(abs(precise.y.T - true[0]).max())
print(f"largest difference: {error:.1e}")
assert error < 1e-3

# %% [markdown]
# ## The network in place of the law


# %%
def init(key, width=32):
    first, second, third = random.split(key, 3)
    return [
        nn.linear_init(first, 2, width),
        nn.linear_init(second, width, width),
        nn.linear_init(third, width, 2),
    ]


def law(params, t, state):
    for layer in params[:-1]:
        state = fnp.tanh(nn.linear(layer, state))
    return nn.linear(params[-1], state)


def solve(params, start, times):
    return runge_kutta(lambda t, state: law(params, t, state), start, times)


# %% [markdown]
# Train on pieces of 10 steps: from each observed state, the next ten must be right.
# Long paths from the beginning would depend wildly on the first, bad parameters.

# %%
PIECE = 10
pieces = fnp.concatenate([seen[:, i : i + PIECE + 1] for i in range(0, 50, 5)])
print(pieces.shape)


def loss(params):
    some = times[: PIECE + 1]
    found = fxflow.vmap(lambda piece: solve(params, piece[0], some))(pieces)
    return fnp.mean((found - pieces) ** 2)


optimizer = optim.adam(optim.cosine_decay_schedule(1e-2, 600))


@fxflow.jit
def step(params, memory):
    value, slope = fxflow.value_and_grad(loss)(params)
    updates, memory = optimizer.update(slope, memory, params)
    return optim.apply_updates(params, updates), memory, value


params = init(keys[2])
memory, losses = optimizer.init(params), []
for _ in range(600):
    params, memory, value = step(params, memory)
    losses.append(float(value))

# %% [markdown]
# ## What it learned
#
# Left, the observations of two swings, and the network's from the same start. Right,
# the network's law as arrows over angle and speed, and the true law.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
for number in (0, 3):
    left.plot(times, seen[number, :, 0], ".", markersize=3)
    left.plot(times, solve(params, true[number, 0], times)[:, 0])
left.set(xlabel="time", ylabel="angle")
grid = fnp.stack(fnp.meshgrid(*2 * [fnp.linspace(-2, 2, 15)]), -1).reshape(-1, 2)
for arrows, color in (
    (fxflow.vmap(lambda s: pendulum(0.0, s))(grid), "lightgray"),
    (fxflow.vmap(lambda s: law(params, 0.0, s))(grid), "crimson"),
):
    right.quiver(*grid.T, *arrows.T, color=color, scale=40)
right.set(xlabel="angle", ylabel="speed")
plt.show()

# %% [markdown]
# ## Result
#
# A start that was not trained on, over the whole time:

# %%
start = fnp.array([1.5, -0.5])
guess, truth = solve(params, start, times), runge_kutta(pendulum, start, times)
error = float(np.sqrt(np.mean((guess - truth) ** 2)))
print(f"root mean square error {error:.3f}, of a motion of {float(truth.std()):.2f}")
assert error < 0.15
