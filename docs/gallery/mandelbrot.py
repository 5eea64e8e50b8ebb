"""The Mandelbrot set: a loop for one point, `vmap` for all."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax


def steps(c):
    def step(_, state):
        z, count = state
        inside = abs(z) < 2
        return fnp.where(inside, z * z + c, z), count + inside

    return lax.fori_loop(0, 60, step, (0 * c, 0))[1]


x, y = fnp.linspace(-2.1, 0.7, 480), fnp.linspace(-1.1, 1.1, 320)
counts = fxflow.jit(fxflow.vmap(steps))((x + 1j * y[:, None]).ravel())
plt.imshow(counts.reshape(320, 480), cmap="twilight_shifted")
plt.axis("off")
