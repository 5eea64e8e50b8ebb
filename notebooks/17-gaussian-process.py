# %% [markdown]
# # A Gaussian process, and its parameters by Hamiltonian Monte Carlo
#
# A Gaussian process is a distribution over functions: any values `f(x₁), …, f(xₙ)` are
# jointly normal, with a covariance that depends on distance. This notebook fits one by
# the gradient of its likelihood, then samples its parameters with a sampler of 20 lines
# that runs as one compiled program.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, random
from fxflow.scipy import linalg, optimize

fxflow.config.x64 = True  # covariance matrices are nearly singular

# %% [markdown]
# ## Data
#
# 25 noisy measurements of an unknown function.

# %%
keys = random.split(random.key(2), 4)
x = fnp.sort(random.uniform(keys[0], (25,), maxval=10.0))
NOISE = 0.3
y = fnp.sin(x) + 0.5 * fnp.sin(3 * x) + NOISE * random.normal(keys[1], (25,))


# %% [markdown]
# ## The process
#
# Three positive parameters, so their logarithms are free: the size of the function, the
# length over which it changes, and the noise. The covariance function takes two
# numbers; two `vmap`s make the matrix.


# %%
def covariance(theta, a, b):
    size, length = fnp.exp(theta[0]), fnp.exp(theta[1])
    return size**2 * fnp.exp(-0.5 * ((a - b) / length) ** 2)


def matrix(theta, a, b):
    rows = fxflow.vmap(covariance, (None, None, 0))
    return fxflow.vmap(rows, (None, 0, None))(theta, a, b)


def factor(theta):
    noise = fnp.exp(2 * theta[2]) + 1e-8
    return linalg.cholesky(matrix(theta, x, x) + noise * fnp.eye(len(x)), lower=True)


def log_likelihood(theta):
    half = factor(theta)
    white = linalg.solve_triangular(half, y, lower=True)
    constant = 0.5 * len(x) * fnp.log(2 * fnp.pi)
    return -0.5 * white @ white - fnp.sum(fnp.log(fnp.diag(half))) - constant


# %% [markdown]
# ## The most likely parameters
#
# The gradient passes through the Cholesky factor and the triangular solve.

# %%
start = fnp.zeros(3)
found = optimize.minimize(lambda theta: -log_likelihood(theta), start, method="BFGS")
best = found.x
size, length, noise = np.exp(best)
print(f"size {size:.2f}, length {length:.2f}, noise {noise:.2f} (true {NOISE})")


# %%
@fxflow.jit
def posterior(theta, new):
    """Returns the mean and the deviation of the function at new places."""
    half, between = factor(theta), matrix(theta, x, new)
    white = linalg.solve_triangular(half, between, lower=True)
    mean = white.T @ linalg.solve_triangular(half, y, lower=True)
    variance = fnp.exp(2 * theta[0]) - fnp.sum(white**2, axis=0)
    return mean, fnp.sqrt(fnp.maximum(variance, 0.0))


new = fnp.linspace(0, 10, 200)
mean, deviation = posterior(best, new)
plt.plot(x, y, "k.", label="measured")
plt.plot(new, fnp.sin(new) + 0.5 * fnp.sin(3 * new), "--", label="truth")
plt.plot(new, mean, label="mean")
plt.fill_between(new, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2)
plt.legend()
plt.show()

# %% [markdown]
# ## Hamiltonian Monte Carlo
#
# 25 points leave the parameters uncertain. A Markov chain samples them: it gives the
# parameters a random momentum, lets them roll on the landscape of the negative log
# density by *leapfrog* steps, and accepts the end with a probability that corrects the
# error of the steps. The prior is normal for each logarithm.


# %%
def log_density(theta):
    return log_likelihood(theta) - 0.5 * theta @ theta


def leapfrog(theta, momentum, step, count):
    slope = fxflow.grad(log_density)

    def one(_, state):
        theta, momentum = state
        momentum = momentum + 0.5 * step * slope(theta)
        theta = theta + step * momentum
        return theta, momentum + 0.5 * step * slope(theta)

    return lax.fori_loop(0, count, one, (theta, momentum))


def transition(theta, key, step=0.15, count=8):
    first, second = random.split(key)
    momentum = random.normal(first, theta.shape)
    moved, end = leapfrog(theta, momentum, step, count)
    before = log_density(theta) - 0.5 * momentum @ momentum
    after = log_density(moved) - 0.5 * end @ end
    accept = fnp.log(random.uniform(second)) < after - before
    theta = fnp.where(accept, moved, theta)
    return theta, (theta, accept)


@fxflow.jit
def chain(key, start):
    return lax.scan(transition, start, random.split(key, 500))[1]


# %% [markdown]
# Four chains from four places, by `vmap`:

# %%
starts = best + 0.3 * random.normal(keys[2], (4, 3))
samples, accepted = fxflow.vmap(chain)(random.split(keys[3], 4), starts)
samples = samples[:, 100:]
print(f"accepted: {accepted.mean():.0%}")

figure, axes = plt.subplots(1, 3, figsize=(9, 2.6))
for axis, name, column in zip(axes, ("size", "length", "noise"), range(3), strict=True):
    for one in samples[:, :, column]:
        axis.hist(np.exp(one), 30, histtype="step", density=True)
    axis.axvline(np.exp(best[column]), color="black", linestyle=":")
    axis.set_title(name)
plt.show()

# %% [markdown]
# ## Results
#
# If the chains have converged, the variance within each is that of all of them
# (*R-hat* near 1). And the interval for the noise contains the true value.

# %%
within = samples.var(axis=1, ddof=1).mean(0)
between = samples.mean(axis=1).var(axis=0, ddof=1)
r_hat = fnp.sqrt(1 + between / within)
low, high = np.percentile(np.exp(samples[..., 2]), [2.5, 97.5])
print("R-hat:", np.round(r_hat, 3), f" noise: {low:.2f} to {high:.2f}")
assert (r_hat < 1.1).all() and low < NOISE < high and 0.6 < accepted.mean() <= 1
