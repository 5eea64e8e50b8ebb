"""The density of 400 points, estimated by Gaussian kernels."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp
from fxflow import random
from fxflow.scipy import stats

turn, noise = random.split(random.key(0))
angle = random.uniform(turn, (400,), maxval=3.0)
points = fnp.stack([fnp.cos(angle), fnp.sin(2 * angle)])
points = points + 0.15 * random.normal(noise, points.shape)

grid = fnp.stack(fnp.meshgrid(*2 * [fnp.linspace(-1.6, 1.6, 100)]))
density = stats.gaussian_kde(points, 0.25)(grid.reshape(2, -1)).reshape(100, 100)
plt.contourf(*grid, density, 20, cmap="Blues")
plt.plot(*points, "k.", markersize=1)
