"""A double pendulum: its equations of motion by `grad` of the Lagrangian."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax


def lagrangian(q, v):
    a, b = q
    kinetic = v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * fnp.cos(a - b)
    return kinetic + 9.8 * (2 * fnp.cos(a) + fnp.cos(b))


def step(state, _, h=0.002):
    q, v = state
    mass = fxflow.hessian(lagrangian, 1)(q, v)
    turn = fxflow.jvp(lambda q: fxflow.grad(lagrangian, 1)(q, v), (q,), (v,))[1]
    v = v + h * fnp.linalg.solve(mass, fxflow.grad(lagrangian)(q, v) - turn)
    return (q + h * v, v), q


start = fnp.array([2.0, 2.5]), fnp.zeros(2)
a, b = fxflow.jit(lambda state: lax.scan(step, state, length=6000)[1])(start).T
x, y = fnp.sin(a) + fnp.sin(b), -fnp.cos(a) - fnp.cos(b)
plt.scatter(x, y, c=fnp.arange(6000), s=0.5, cmap="plasma")
