"""Splines through eight points: cubic, monotone, and Akima's."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp
from fxflow.scipy import interpolate

x = fnp.array([0.0, 1, 2, 3, 4, 5, 6, 7])
y = fnp.array([0.0, 0, 0, 1, 1, 0.2, 0.8, 0.8])
grid = fnp.linspace(0, 7, 300)
for kind in ("CubicSpline", "PchipInterpolator", "Akima1DInterpolator"):
    curve = getattr(interpolate, kind)(x, y)
    plt.plot(grid, curve(grid), label=kind)
plt.plot(x, y, "ko")
plt.legend(fontsize=8)
