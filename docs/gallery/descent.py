"""Sixty paths of steepest descent: `grad` in `scan` in `vmap` in `jit`."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random


def height(p):
    x, y = p
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


def descend(start):
    return lax.scan(lambda p, _: (p - 0.01 * slope(p), p), start, length=100)[1]


slope = fxflow.grad(height)
starts = random.uniform(random.key(0), (60, 2), minval=-5.0, maxval=5.0)
paths = fxflow.jit(fxflow.vmap(descend))(starts)

grid = fnp.stack(fnp.meshgrid(*2 * [fnp.linspace(-5, 5, 200)]))
plt.contourf(*grid, fnp.log1p(height(grid)), 30, cmap="cividis")
plt.plot(*fnp.moveaxis(paths, -1, 0).mT, color="white", linewidth=0.8)
