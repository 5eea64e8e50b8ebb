"""Taylor polynomials of the sine at 1, whose terms `jet` finds in one pass."""

import math

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp

value, series = fxflow.jet(fnp.sin, (1.0,), ((1.0, *10 * [0.0]),))
terms = [value, *series]

x = fnp.linspace(-5, 7, 300)
plt.plot(x, fnp.sin(x), "k", linewidth=3)
for order in (1, 3, 5, 7, 9, 11):
    powers = [t / math.factorial(n) * (x - 1) ** n for n, t in enumerate(terms)]
    plt.plot(x, sum(powers[: order + 1]), label=f"order {order}")
plt.ylim(-3, 3)
plt.legend(fontsize=7)
