# %% [markdown]
# # Classical learning
#
# k-means, logistic regression, a random forest and Bayesian regression on small tables,
# each in a page of `vmap`, `scan` and `grad`. `examples/classical` has more complete
# versions, and `python examples/classical/compare.py` compares them with scikit-learn.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn import datasets

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, ops, optim, random
from fxflow.scipy import optimize

x, labels = datasets.load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(x))
x, labels = fnp.asarray(x[order]), fnp.asarray(labels[order], "int32")
x, new_x, labels, new_labels = x[:1300], x[1300:], labels[:1300], labels[1300:]
print(x.shape, new_x.shape)

# %% [markdown]
# ## k-means
#
# Begin with centres that are far apart: each is a point, drawn with a probability
# proportional to its squared distance from the nearest centre so far (k-means++, a
# `scan`). Then move each centre to the mean of its points until no point changes its
# centre (a `while_loop`). `vmap` does both for ten keys in one program, and the best
# result is kept.


# %%
def distances(points, centres):
    squares = fnp.sum(points**2, 1)[:, None] + fnp.sum(centres**2, 1)
    return fnp.maximum(squares - 2 * points @ centres.T, 0)


def seeds(key, points, k):
    first, *keys = random.split(key, k)
    start = points[random.randint(first, (), 0, len(points))]

    def choose(nearest, key):
        chosen = points[random.categorical(key, fnp.log(nearest))]
        apart = distances(points, chosen[None])[:, 0]
        return fnp.minimum(nearest, apart), chosen

    nearest = distances(points, start[None])[:, 0]
    return fnp.vstack([start, lax.scan(choose, nearest, fnp.stack(keys))[1]])


def k_means(key, points, k):
    def step(state):
        centres, old, _ = state
        new = fnp.argmin(distances(points, centres), 1)
        counts = ops.segment_sum(fnp.ones(len(points)), new, k)[:, None]
        means = ops.segment_sum(points, new, k) / fnp.maximum(counts, 1)
        centres = fnp.where(counts > 0, means, centres)
        return centres, new, fnp.any(new != old)

    start = seeds(key, points, k), fnp.full(len(points), -1), True
    centres = lax.while_loop(lambda state: state[2], step, start)[0]
    return centres, fnp.sum(fnp.min(distances(points, centres), 1))


runs = fxflow.jit(fxflow.vmap(lambda key: k_means(key, x, 10)))
centres, spread = runs(random.split(random.key(0), 10))
print("sums of squares:", spread.astype(int))
figure, axes = plt.subplots(1, 10, figsize=(10, 1.3))
for axis, centre in zip(axes, centres[spread.argmin()], strict=True):
    axis.imshow(centre.reshape(8, 8), cmap="gray_r")
    axis.axis("off")

# %% [markdown]
# The centres look like digits, and were found without any label.
#
# ## Logistic regression
#
# A linear function for each class, and a convex loss. `optimize.minimize` runs until
# the gradient is small, compiled as one program.


# %%
def linear(w, x):
    return x / 16 @ w[:-1] + w[-1]


def loss(flat):
    w = flat.reshape(65, 10)
    scores = linear(w, x)
    losses = optim.losses.softmax_cross_entropy_with_integer_labels(scores, labels)
    return fnp.mean(losses) + 1e-4 * fnp.sum(w[:-1] ** 2)


found = optimize.minimize(loss, fnp.zeros(650), method="L-BFGS-B")
weights = found.x.reshape(65, 10)
by_logistic = float(fnp.mean(linear(weights, new_x).argmax(1) == new_labels))
print(f"{int(found.nit)} steps, accuracy {by_logistic:.3f}")

# %% [markdown]
# ## A random forest
#
# Each node of a tree tests whether a feature is above a threshold (`bound`). All trees
# have the same depth, so a tree is three arrays: the feature and the threshold of each
# node, and the fractions of the classes in each leaf. At a node, count the classes for
# every value of a few random features (`segment_sum` makes the histograms of all nodes
# of a level at once), and split where the two sides are purest. Pixels have 17 values.

# %%
VALUES, DEPTH, TREES, TRIED = 17, 8, 30, 8


def split(key, x, votes, node, nodes):
    """Returns the best feature and bound of each node of a level."""
    scores = random.uniform(key, (nodes, x.shape[1]))
    features = lax.top_k(scores, TRIED)[1]
    values = fnp.take_along_axis(x, features[node], 1)
    cell = (node[:, None] * TRIED + fnp.arange(TRIED)) * VALUES + values
    spread = fnp.broadcast_to(votes[:, None], (*cell.shape, 10)).reshape(-1, 10)
    counts = ops.segment_sum(spread, cell.ravel(), nodes * TRIED * VALUES)
    left = fnp.cumsum(counts.reshape(nodes, TRIED, VALUES, 10), 2)
    right = left[:, :, -1:] - left

    def purity(side):
        return fnp.sum(side**2, -1) / fnp.maximum(fnp.sum(side, -1), 1e-6)

    best = (purity(left) + purity(right)).reshape(nodes, -1).argmax(1)
    feature = fnp.take_along_axis(features, (best // VALUES)[:, None], 1)[:, 0]
    return feature, best % VALUES


def below(node, x, feature, bound):
    """Returns the child of its node to which each point goes."""
    value = fnp.take_along_axis(x, feature[node][:, None], 1)[:, 0]
    return 2 * node + (value > bound[node])


def grow(key, x, labels):
    draw, key = random.split(key)
    drawn = random.randint(draw, (len(x),), 0, len(x))  # points with replacement
    votes = nn.one_hot(labels, 10) * fnp.bincount(drawn, length=len(x))[:, None]
    node, levels = fnp.zeros(len(x), "int32"), []
    for level in range(DEPTH):
        levels.append(split(random.fold_in(key, level), x, votes, node, 2**level))
        node = below(node, x, *levels[-1])
    counts = ops.segment_sum(votes, node, 2**DEPTH)
    return levels, counts / fnp.maximum(counts.sum(1, keepdims=True), 1e-6)


def vote(tree, x):
    levels, fractions = tree
    node = fnp.zeros(len(x), "int32")
    for feature, bound in levels:
        node = below(node, x, feature, bound)
    return fractions[node]


pixels, new_pixels = x.astype("int32"), new_x.astype("int32")
plant = fxflow.jit(lambda key: lax.map(lambda k: grow(k, pixels, labels), key))
forest = plant(random.split(random.key(1), TREES))
votes = fxflow.jit(fxflow.vmap(vote, (0, None)))(forest, new_pixels)
many = fnp.cumsum(votes, 0).argmax(-1) == new_labels
by_forest = float(many[-1].mean())
plt.plot(range(1, TREES + 1), many.mean(1))
plt.xlabel("trees")
_ = plt.ylabel("accuracy")

# %% [markdown]
# ## Bayesian regression
#
# How certain are the weights of a linear model? Variational inference looks for the
# normal distribution that is nearest to the posterior: its means and standard
# deviations are parameters, and the gradient passes through samples. The noise of the
# data is a parameter too.

# %%
table, target = datasets.load_diabetes(return_X_y=True)
table = fnp.asarray((table - table.mean(0)) / table.std(0))
target = fnp.asarray((target - target.mean()) / target.std())
seen, held = slice(0, 330), slice(330, None)


def log_posterior(w, log_noise):
    errors = (target[seen] - table[seen] @ w) / fnp.exp(log_noise)
    return -0.5 * fnp.sum(errors**2) - 330 * log_noise - 0.5 * fnp.sum(w**2) / 0.3**2


def negative_bound(params, key):
    """The expected log density and the entropy of the normal distribution."""
    noise = random.normal(key, (16, 10))
    w = params["mean"] + fnp.exp(params["log_deviation"]) * noise
    density = fxflow.vmap(log_posterior, (0, None))(w, params["log_noise"])
    return -fnp.mean(density) - fnp.sum(params["log_deviation"])


@fxflow.jit
def approximate(key):
    optimizer = optim.adam(optim.cosine_decay_schedule(0.05, 1000))
    params = {
        "mean": fnp.zeros(10),
        "log_deviation": fnp.full(10, -2.0),
        "log_noise": fnp.zeros(()),
    }

    def step(state, key):
        params, memory = state
        slope = fxflow.grad(negative_bound)(params, key)
        updates, memory = optimizer.update(slope, memory)
        return (optim.apply_updates(params, updates), memory), None

    start = params, optimizer.init(params)
    return lax.scan(step, start, random.split(key, 1000))[0][0]


normal = approximate(random.key(2))
plt.errorbar(
    range(10), normal["mean"], 2 * fnp.exp(normal["log_deviation"]), fmt="o", capsize=3
)
plt.axhline(0, color="gray", linewidth=0.5)
plt.xticks(range(10), datasets.load_diabetes().feature_names)
_ = plt.ylabel("weight, with two deviations")

# %% [markdown]
# ## Results

# %%
guesses = table[held] @ normal["mean"]
variance = fnp.var(target[held])
explained = float(1 - fnp.mean((guesses - target[held]) ** 2) / variance)
print(f"logistic {by_logistic:.3f}, forest {by_forest:.3f}, R² {explained:.3f}")
assert by_logistic > 0.94 and by_forest > 0.93 and explained > 0.34
