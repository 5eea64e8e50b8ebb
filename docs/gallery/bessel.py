"""A drum: Bessel functions of real order, their zeros, and a mode."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp
from fxflow.scipy import optimize, special

zero = optimize.root_scalar(lambda x: special.jv(3, x), bracket=(9.0, 11.0)).root
x, y = fnp.meshgrid(fnp.linspace(-1, 1, 200), fnp.linspace(-1, 1, 200))
r, angle = fnp.hypot(x, y), fnp.arctan2(y, x)
mode = special.jv(3, zero * r) * fnp.cos(3 * angle)
figure, (left, right) = plt.subplots(1, 2)
left.imshow(fnp.where(r < 1, mode, fnp.nan), cmap="coolwarm")
left.axis("off")
grid = fnp.linspace(0.01, 12, 200)
orders = fnp.array([0, 0.5, 1, 3])
right.plot(grid, special.jv(orders, grid[:, None]), label=orders.tolist())
right.legend(title="order", fontsize=7)
