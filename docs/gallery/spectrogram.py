"""The spectrogram of a chirp with vibrato."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp
from fxflow import random
from fxflow.scipy import signal

rate = 2000
time = fnp.arange(4 * rate) / rate
wave = signal.chirp(time, f0=100.0, t1=4.0, f1=600.0)
wave = wave + fnp.sin(2 * fnp.pi * (300 * time + 20 * fnp.sin(6 * time)))
noise = 0.3 * random.normal(random.key(0), time.shape)
f, t, power = signal.spectrogram(wave + noise, rate, nperseg=256, noverlap=224)
plt.pcolormesh(t, f, 10 * fnp.log10(power), cmap="magma", vmin=-60)
plt.xlabel("s")
plt.ylabel("Hz")
