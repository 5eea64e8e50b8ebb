"""Five clusters by k-means."""

import matplotlib.pyplot as plt

from fxflow import random
from fxflow.scipy.cluster import vq

keys = random.split(random.key(4), 3)
centers = random.uniform(keys[0], (5, 1, 2), minval=-4.0, maxval=4.0)
points = (centers + 0.6 * random.normal(keys[1], (5, 120, 2))).reshape(-1, 2)
found, labels = vq.kmeans2(points, 5, minit="++", key=keys[2])
plt.scatter(*points.T, c=labels, s=6, cmap="Set1")
plt.plot(*found.T, "k*", markersize=14)
