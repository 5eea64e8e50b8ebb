"""The pattern of a sparse Hessian, found from the operations of a function."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp


def energy(flat):
    u = flat.reshape(8, 8)
    stretch = fnp.sum(fnp.diff(u, axis=0) ** 2) + fnp.sum(fnp.diff(u, axis=1) ** 4)
    return stretch + fnp.sum(u[0] * u[-1])


u = fnp.arange(64.0) / 64
hessian = fxflow.hessian(energy, sparse=True)(u)
plt.spy(hessian.todense(), markersize=2)
plt.title("energy of a cloth of 8 × 8 points")
