"""How sure is a median? 5,000 samples drawn again, by `vmap`."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import random

data = random.exponential(random.key(0), (60,))


@fxflow.jit
@fxflow.vmap
def median_of_resample(key):
    return fnp.median(random.choice(key, data, (60,)))


medians = median_of_resample(random.split(random.key(1), 5000))
plt.hist(medians, 60, color="steelblue")
for edge in fnp.percentile(medians, fnp.array([2.5, 97.5])):
    plt.axvline(float(edge), color="crimson")
plt.axvline(float(fnp.log(2.0)), color="black", linestyle=":")
plt.title("95 % interval (red), true median (dotted)")
