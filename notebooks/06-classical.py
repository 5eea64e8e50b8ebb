# %% [markdown]
# # Classical learning
#
# This notebook runs k-means, logistic regression, a random forest, Bayesian regression
# and a Gaussian process on small tables. Each is a file of a page or two in
# `examples/classical`, written with `vmap`, `scan`, `grad` and `optim`;
# `python examples/classical/compare.py` compares them with scikit-learn.

# %%
import sys

sys.path.insert(0, "../examples/classical")

import bayes
import forest
import kmeans
import logistic
import matplotlib.pyplot as plt
import numpy as np
import process
from compare import accuracy, r2, table

from fxflow import random

# %% [markdown]
# ## k-means
#
# k-means++ is a `scan`, Lloyd's iterations are a `while_loop`, and `vmap` runs both
# from ten starting points in one program, which returns the best run. These are the
# centres of ten clusters of handwritten digits, found without any label.

# %%
digits = table("digits", scaled=False)
clusters = kmeans.fit(random.key(0), digits.x, k=10)
figure, axes = plt.subplots(1, 10, figsize=(10, 1.3))
for axis, centre in zip(axes, np.asarray(clusters.centres), strict=True):
    axis.imshow(centre.reshape(8, 8), cmap="gray_r")
    axis.axis("off")

# %% [markdown]
# ## Logistic regression
#
# The loss is convex, so L-BFGS with a line search converges in a few dozen steps.

# %%
scaled = table("digits")
model = logistic.fit(scaled.x, scaled.y, classes=10)
by_logistic = accuracy(logistic.predict(model, scaled.new_x), scaled.new_y)
by_logistic

# %% [markdown]
# ## A random forest
#
# Histograms determine the split of each node. All trees have the same depth, so a tree
# is three arrays, and a forest is `vmap` of a tree.

# %%
edges = forest.quantiles(digits.x, 8)
seen, new = (forest.binned(x, edges) for x in (digits.x, digits.new_x))
trees = forest.fit(random.key(0), seen, digits.y, classes=10, bins=8, depth=8, trees=30)
by_forest = accuracy(forest.predict(trees, new), digits.new_y)
by_forest

# %% [markdown]
# ## Bayesian regression
#
# Hamiltonian Monte Carlo needs only the gradient of a log density; `vmap` runs the
# chains in parallel. Variational inference finds the nearest normal distribution with
# Adam. Both give the uncertainty of each weight.

# %%
diabetes = table("diabetes")
key = random.key(0)
draws, rate = bayes.sample(key, diabetes.x, diabetes.y, warmup=300, draws=300)
mean, deviation = bayes.approximate(key, diabetes.x, diabetes.y, steps=800)

columns = np.arange(10)
plt.figure(figsize=(7, 3))
for shift, centre, width, name in (
    (-0.1, np.mean(draws.w, (0, 1)), np.std(draws.w, (0, 1)), "sampled"),
    (0.1, mean.w, deviation.w, "normal"),
):
    plt.errorbar(columns + shift, centre, width, fmt="o", label=name)
plt.xlabel("column")
plt.ylabel("weight")
plt.legend()
print("accepted:", round(float(rate), 2))
print("R of the chains:", round(float(bayes.spread(draws.w).max()), 3))

# %% [markdown]
# ## A Gaussian process
#
# L-BFGS finds the parameters that maximize the evidence. The plot of a process in one
# dimension shows where it is certain and where it is not.

# %%
rng = np.random.default_rng(0)
x = np.sort(rng.uniform(-3, 3, 30)).astype("float32")[:, None]
y = (np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=30)).astype("float32")
gaussian = process.fit(x, y)
line = np.linspace(-4.5, 4.5, 200, dtype="float32")[:, None]
middle, around = map(np.asarray, process.predict(gaussian, x, y, line))
plt.figure(figsize=(7, 3))
plt.fill_between(line[:, 0], middle - 2 * around, middle + 2 * around, alpha=0.2)
plt.plot(line[:, 0], middle)
plt.plot(x[:, 0], y, "k.")

# %% [markdown]
# ## Expected results

# %%
predicted = diabetes.new_x @ np.mean(draws.w, (0, 1)) + np.mean(draws.b)
explained = r2(predicted, diabetes.new_y)
noise = float(np.exp(gaussian.noise))
print(f"logistic {by_logistic:.3f}, forest {by_forest:.3f}, HMC R² {explained:.3f}")
assert by_logistic > 0.95
assert by_forest > 0.93
assert explained > 0.34
assert 0.05 < noise < 0.2
