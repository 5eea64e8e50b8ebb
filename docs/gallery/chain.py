"""A hanging chain with a weight, by minimizing its energy."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp
from fxflow.scipy import optimize

links, length = 30, 1.5 / 30
weights = fnp.ones(links - 1).at[9].set(15.0)


def points(angles):
    steps = length * fnp.stack([fnp.cos(angles), fnp.sin(angles)], 1)
    return fnp.cumsum(steps, 0)


def energy(angles):
    p = points(angles)
    stretch = fnp.sum((p[-1] - fnp.array([1.0, 0.0])) ** 2)
    return fnp.sum(weights * p[:-1, 1]) / links + 100 * stretch


found = optimize.minimize(energy, fnp.linspace(-1, 1, links), method="BFGS")
x, y = points(found.x).T
plt.plot(fnp.append(0, x), fnp.append(0, y), "o-", markersize=3)
plt.plot(x[9], y[9], "o", markersize=14)
