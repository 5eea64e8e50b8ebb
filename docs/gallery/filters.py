"""A filter without delay: Butterworth, forward and backward."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp
from fxflow import random
from fxflow.scipy import signal

time = fnp.linspace(0, 1, 500)
clean = fnp.sin(6 * fnp.pi * time) + 0.5 * fnp.sign(fnp.sin(4 * fnp.pi * time))
noisy = clean + 0.4 * random.normal(random.key(0), (500,))
sections = signal.butter(4, 15, fs=500, output="sos")
plt.plot(time, noisy, linewidth=0.5)
plt.plot(time, clean, "k--", label="clean")
plt.plot(time, signal.sosfiltfilt(sections, noisy), label="filtered")
plt.legend()
