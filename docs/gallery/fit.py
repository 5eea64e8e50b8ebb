"""A fitted curve and its band of errors, by `curve_fit` and `jacfwd`."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.scipy import optimize


def decay(x, height, rate, level):
    return height * fnp.exp(-rate * x) + level


x = fnp.linspace(0, 4, 25)
y = decay(x, 2.5, 1.3, 0.5) + 0.15 * random.normal(random.key(0), (25,))
best, covariance = optimize.curve_fit(decay, x, y, p0=fnp.ones(3))
grid = fnp.linspace(0, 5, 100)
slopes = fxflow.jacfwd(lambda p: decay(grid, *p))(best)
error = fnp.sqrt(fnp.einsum("ni,ij,nj->n", slopes, covariance, slopes))
plt.plot(x, y, "k.")
plt.plot(grid, decay(grid, *best))
middle = decay(grid, *best)
plt.fill_between(grid, middle - 2 * error, middle + 2 * error, alpha=0.3)
