"""Conway's game of life: neighbours by a convolution, generations by `scan`."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random
from fxflow.scipy import signal

AROUND = fnp.ones((3, 3)).at[1, 1].set(0)


def generation(alive, _):
    neighbours = fnp.round(signal.convolve2d(alive, AROUND, "same"))
    born, stays = neighbours == 3, (neighbours == 2) & (alive > 0)
    return (born | stays).astype(float), alive


first = random.bernoulli(random.key(0), 0.3, (60, 90)).astype(float)
history = fxflow.jit(lambda first: lax.scan(generation, first, length=60)[1])(first)
age = fnp.sum(history * fnp.linspace(0, 1, 60)[:, None, None] ** 3, 0)
plt.imshow(age + 4 * history[-1], cmap="magma")
