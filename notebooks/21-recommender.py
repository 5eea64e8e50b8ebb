# %% [markdown]
# # A recommender
#
# Which films will a person like? 943 people gave 100,000 ratings of 1,682 films
# (MovieLens-100k, GroupLens Research). Each person and each film becomes a vector, and
# the product of two vectors predicts the stars.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random

# The code that reads the data is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.ratings import load_ratings

ratings = load_ratings()
people, films, stars = ratings.people, ratings.films, ratings.stars
print(people.max() + 1, films.max() + 1, stars.mean())
plt.bar(*np.unique(stars, return_counts=True))
plt.xlabel("stars")
plt.ylabel("ratings")
plt.show()

# %% [markdown]
# ## What to measure
#
# The last ten ratings of each person are held out: a recommender must predict later
# ratings from earlier ones. The simplest guess is the mean of the film, and any model
# should be better.

# %%
last = np.ones(len(people), bool)
last[:-10] = people[10:] != people[:-10]
learned, held_out = np.flatnonzero(~last), np.flatnonzero(last)

sums = np.bincount(films[learned], stars[learned], 1682)
counts = np.bincount(films[learned], minlength=1682)
means = (sums + 5 * stars[learned].mean()) / (counts + 5)


def error(guesses):
    return float(np.sqrt(np.mean((np.asarray(guesses) - stars[held_out]) ** 2)))


by_film = error(means[films[held_out]])
print(f"{len(learned):,} to learn from")
print(f"the film's mean is wrong by {by_film:.3f} stars")

# %% [markdown]
# ## The model
#
# A table has a row for each person, another for each film; `nn.embedding` takes rows.
# Besides the product there is a level for each person (some are strict) and for each
# film (some are good).

# %%
FEATURES = 16


def init(key):
    keys = random.split(key, 2)
    small = nn.initializers.normal(0.05)

    def table(key, rows):
        vectors = nn.embedding_init(key, rows, FEATURES, w_init=small)
        return {"vectors": vectors, "level": fnp.zeros(rows)}

    return {
        "people": table(keys[0], 943),
        "films": table(keys[1], 1682),
        "mean": fnp.float32(stars[learned].mean()),
    }


def guess(params, person, film):
    """`person` and `film` are i32[...]; returns f32[...]."""
    one = nn.embedding(params["people"]["vectors"], person)
    other = nn.embedding(params["films"]["vectors"], film)
    levels = params["people"]["level"][person] + params["films"]["level"][film]
    return params["mean"] + levels + fnp.sum(one * other, -1)


# %% [markdown]
# The loss keeps vectors small (*weight decay*), else the 16 numbers of a person would
# explain her ratings by heart. Only the rows in the batch count, so frequent films are
# held back more often, as they should be.


# %%
def loss(params, person, film, given):
    wrong = (guess(params, person, film) - given) ** 2
    rows = [
        nn.embedding(params["people"]["vectors"], person),
        nn.embedding(params["films"]["vectors"], film),
    ]
    size = sum(fnp.sum(row**2, -1) for row in rows)
    return fnp.mean(wrong + 0.1 * size)


EPOCHS, BATCH = 6, 1000
optimizer = optim.adam(optim.cosine_decay_schedule(0.01, EPOCHS * 90))


@fxflow.jit
def step(state, *batch):
    params, memory = state
    value, slope = fxflow.value_and_grad(loss)(params, *batch)
    updates, memory = optimizer.update(slope, memory, params)
    return (optim.apply_updates(params, updates), memory), value


evaluate = fxflow.jit(guess)
params = init(random.key(0))
state, errors = (params, optimizer.init(params)), []
generator = np.random.default_rng(0)
for _ in range(EPOCHS):
    order = generator.permutation(learned)
    for start in range(0, len(order) - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        state, _ = step(state, people[rows], films[rows], stars[rows])
    errors.append(error(evaluate(state[0], people[held_out], films[held_out])))

params = state[0]
plt.plot(range(1, EPOCHS + 1), errors, "o-", label="model")
plt.axhline(by_film, linestyle=":", color="gray", label="the film's mean")
plt.xlabel("epoch")
plt.ylabel("error on later ratings, stars")
plt.legend()
plt.show()

# %% [markdown]
# ## Recommend
#
# The guesses for all films at once are a row; leave out what the person has seen, and
# take the largest.


# %%
@fxflow.jit
def recommend(params, person, seen):
    row = guess(params, person, fnp.arange(1682))
    return fxflow.lax.top_k(fnp.where(seen, -fnp.inf, row), 5)


for person in (0, 1):
    seen = np.zeros(1682, bool)
    seen[films[learned][people[learned] == person]] = True
    values, best = recommend(params, person, seen)
    shown = ", ".join(f"{film} ({value:.1f})" for film, value in zip(best, values))
    print(f"person {person}: films {shown}")

# %% [markdown]
# Films that the same people like have similar vectors. The neighbours of a film are
# those with the largest cosine; here, of the film with the most ratings:

# %%
vectors = params["films"]["vectors"]["w"]
units = vectors / fnp.linalg.norm(vectors, axis=1, keepdims=True)
film = int(counts.argmax())
cosines = fnp.where(counts >= 30, units @ units[film], -1)
print(f"film {film} (from 0) resembles", fnp.argsort(-cosines)[1:6])

# %% [markdown]
# The number: the error on later ratings.

# %%
print(f"{errors[-1]:.3f} stars; the film's mean {by_film:.3f}")
assert errors[-1] < by_film - 0.02
