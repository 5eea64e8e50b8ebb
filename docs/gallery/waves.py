"""Waves behind a wall with two slits, by finite differences."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax

wall = fnp.ones((200, 300)).at[:, 100:103].set(0)
wall = wall.at[80:88].set(1).at[112:120].set(1).at[:, -1].set(0)


def step(n, state):
    before, now = state
    bend = sum(fnp.roll(now, s, axis) for s in (-1, 1) for axis in (0, 1)) - 4 * now
    after = 0.995 * (2 * now - before + 0.25 * bend) + 0.005 * before
    return now, wall * after.at[:, 10].add(0.2 * fnp.sin(0.25 * n))


still = fnp.zeros_like(wall), fnp.zeros_like(wall)
_, u = fxflow.jit(lambda state: lax.fori_loop(0, 450, step, state))(still)
plt.imshow(fnp.where(wall > 0, u, fnp.nan), cmap="RdBu", vmin=-0.4, vmax=0.4)
