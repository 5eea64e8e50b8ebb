"""Optimal transport between two sets of points, by Sinkhorn's iteration."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random
from fxflow.scipy.special import logsumexp

angle = fnp.linspace(0, 2 * fnp.pi, 40, endpoint=False)
a = fnp.stack([fnp.cos(angle), fnp.sin(angle)], 1)
b = 0.4 * random.normal(random.key(0), (40, 2)) + fnp.array([2.5, 0.0])
cost = fnp.sum((a[:, None] - b) ** 2, -1) / 0.05


def step(_, potentials):
    f, g = potentials
    f = -logsumexp(g - cost, axis=1)
    return f, -logsumexp(f[:, None] - cost, axis=0)


f, g = fxflow.jit(lambda s: lax.fori_loop(0, 500, step, s))((fnp.zeros(40),) * 2)
plan = fnp.exp(f[:, None] + g - cost)
for i, j in enumerate(plan.argmax(1)):
    plt.plot(*zip(a[i], b[j], strict=True), color="lightgray")
plt.plot(*a.T, "o", *b.T, "o")
