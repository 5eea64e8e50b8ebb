"""Two chemicals react and spread (Gray and Scott), in one loop of 3,000 steps."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random


def spread(u):
    return sum(fnp.roll(u, s, axis) for s in (-1, 1) for axis in (0, 1)) - 4 * u


def step(_, state):
    u, v = state
    reaction = u * v**2
    u = u + 0.16 * spread(u) - reaction + 0.035 * (1 - u)
    return u, v + 0.08 * spread(v) + reaction - 0.1 * v


seeds = random.bernoulli(random.key(0), 0.01, (96, 144)).astype(float)
v = sum(fnp.roll(seeds, (i, j), (0, 1)) for i in range(4) for j in range(4))
start = fnp.ones_like(v), fnp.clip(v, 0, 1) * 0.5
u, v = fxflow.jit(lambda state: lax.fori_loop(0, 3000, step, state))(start)
plt.imshow(v, cmap="inferno")
