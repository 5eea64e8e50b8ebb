"""A picture from its largest singular values."""

import matplotlib.pyplot as plt

import fxflow.numpy as fnp

x, y = fnp.meshgrid(fnp.linspace(-3, 3, 240), fnp.linspace(-2, 2, 160))
picture = fnp.sin(4 * x * y) * fnp.exp(-(x**2) / 4) + (x**2 + y**2 < 1)
u, s, vh = fnp.linalg.svd(picture, full_matrices=False)
figure, axes = plt.subplots(2, 2)
for axis, rank in zip(axes.flat, (2, 6, 20, 160), strict=True):
    axis.imshow((u[:, :rank] * s[:rank]) @ vh[:rank], cmap="gray")
    axis.set_title(f"rank {rank}", fontsize=8)
    axis.axis("off")
