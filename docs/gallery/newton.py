"""To which root of z³ = 1 Newton's method leads, with the slope by `grad`."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax


def f(z):
    return z**3 - 1


def newton(z):
    slope = fxflow.grad(f, holomorphic=True)
    return lax.fori_loop(0, 25, lambda _, z: z - f(z) / slope(z), z)


x = fnp.linspace(-1.5, 1.5, 400)
ends = fxflow.jit(fxflow.vmap(newton))((x + 1j * x[:, None]).ravel())
plt.imshow(fnp.angle(ends).reshape(400, 400), cmap="hsv", extent=(-1.5, 1.5, -1.5, 1.5))
