"""Lorenz's equations from three starts that differ by 0.001."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax


def law(p):
    x, y, z = p
    return fnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def step(p, _, h=0.01):
    k1 = law(p)
    k2 = law(p + h / 2 * k1)
    k3 = law(p + h / 2 * k2)
    return p + h / 6 * (k1 + 2 * k2 + 2 * k3 + law(p + h * k3)), p


starts = fnp.ones((3, 3)).at[:, 0].add(fnp.arange(3) * 1e-3)
paths = fxflow.jit(fxflow.vmap(lambda p: lax.scan(step, p, length=2500)[1]))(starts)
for path in paths:
    plt.plot(path[:, 0], path[:, 2], linewidth=0.5)
