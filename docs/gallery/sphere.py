"""A rendered scene: the normals of a surface are the gradient of its distance."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax


def distance(p):
    ball = fnp.linalg.norm(p - fnp.array([0.0, 0.0, 3.0])) - 1
    bumps = 0.05 * fnp.prod(fnp.sin(8 * p))
    return fnp.minimum(ball + bumps, p[1] + 1.0)


def color(x, y):
    ray = fnp.array([x, y, 1.5]) / fnp.linalg.norm(fnp.array([x, y, 1.5]))
    point = lax.fori_loop(0, 60, lambda _, p: p + 0.8 * distance(p) * ray, 0 * ray)
    normal = fxflow.grad(distance)(point)
    light = fnp.array([0.6, 0.7, -0.4])
    shade = fnp.clip(normal @ light, 0.05, 1)
    return fnp.where(point[2] < 12, shade, 1.0)


x, y = fnp.meshgrid(fnp.linspace(-1.2, 1.2, 360), fnp.linspace(0.8, -0.8, 240))
plt.imshow(fxflow.jit(fnp.vectorize(color))(x, y), cmap="bone")
