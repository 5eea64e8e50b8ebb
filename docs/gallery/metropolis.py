"""Metropolis sampling of a bent density: 50 chains by `vmap`, steps by `scan`."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random


def log_density(p):
    return -(p[0] ** 2) / 4 - 4 * (p[1] - p[0] ** 2 / 2) ** 2


def step(p, key):
    first, second = random.split(key)
    moved = p + 0.5 * random.normal(first, (2,))
    ratio = log_density(moved) - log_density(p)
    p = fnp.where(fnp.log(random.uniform(second)) < ratio, moved, p)
    return p, p


def chain(key):
    return lax.scan(step, fnp.zeros(2), random.split(key, 400))[1]


samples = fxflow.jit(fxflow.vmap(chain))(random.split(random.key(0), 50))
plt.hexbin(*samples.reshape(-1, 2).T, gridsize=50, cmap="viridis", bins="log")
