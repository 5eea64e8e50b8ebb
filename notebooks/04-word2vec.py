# %% [markdown]
# # Word vectors
#
# Words that occur next to the same words have similar meanings. *word2vec* learns a
# vector for each word that predicts its neighbours, so the vectors of similar words
# point in similar directions. This notebook uses 8,000 of 25,000 film reviews;
# `examples/word2vec.py` uses all 5.8 million words, for ten epochs.

# %%
import sys
import tempfile
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, random, train

# The code that reads the texts is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.texts import load_reviews

# %% [markdown]
# ## Words to numbers
#
# The most frequent word has the number 0. Frequent words (*the*, *and*) say little
# about their neighbours, so most of their occurrences are dropped at random.

# %%
texts = load_reviews().texts[:8000]
counted = Counter(word for text in texts for word in text)
words = [word for word, count in counted.most_common() if count >= 10]
numbers = {word: number for number, word in enumerate(words)}
stream = np.array([numbers[w] for text in texts for w in text if w in numbers])
counts = np.bincount(stream)

generator = np.random.default_rng(0)
keep = np.sqrt(1e-4 * len(stream) / counts)
stream = stream[generator.random(len(stream)) < keep[stream]]
print(f"{len(words):,} words; {len(stream):,} occurrences are left of {counts.sum():,}")

# %% [markdown]
# ## The loss
#
# The score of a pair is the dot product of two vectors: each word has one for
# predicting (`in`) and one for being predicted (`out`). Pairs from the text should have
# high scores, and pairs with words drawn at random should have low ones (*negative
# sampling*). The loss is a function of the *rows* of a few words, and so is its
# gradient: whole tables are never differentiated.


# %%
SIZE, WINDOW, DRAWN, WEIGHT = 100, 5, 64, 5


def loss(rows):
    """`in` and `out`: f32[pairs, size]; `drawn`: f32[drawn, size]."""
    found = nn.log_sigmoid(fnp.sum(rows["in"] * rows["out"], -1))
    wrong = nn.log_sigmoid(-(rows["in"] @ rows["drawn"].T))
    return -fnp.sum(found) - WEIGHT / DRAWN * fnp.sum(wrong)


rows = {"in": fnp.ones((3, 2)), "out": fnp.ones((3, 2)), "drawn": fnp.ones((4, 2))}
print(fxflow.tree.map(lambda slope: slope.shape, fxflow.grad(loss)(rows)))

# %% [markdown]
# ## A step
#
# Each word of a stretch of the text predicts one neighbour, at a random distance; near
# words are drawn more often. The step gathers the rows, differentiates, and adds to the
# same rows: `.at[ids].add`. Adagrad divides the update of each row by the root of the
# sum of its squared gradients so far. The tables are *donated*: the result is written
# to their memory, so a step never copies a table.


# %%
PAIRS = 4096
chances = fnp.log(fnp.asarray(counts**0.75, "float32"))


def neighbours(key):
    """Returns distances from 1 to WINDOW, in both directions, near ones more often."""
    first, second, third = random.split(key, 3)
    reach = random.randint(first, (PAIRS,), 1, WINDOW + 1)
    distance = 1 + random.randint(second, (PAIRS,), 0, reach)
    return distance * random.rademacher(third, (PAIRS,), "int32")


@fxflow.jit(donate_argnums=0)
def step(state, key, stretch):
    """`stretch`: i32[PAIRS + 2 WINDOW], a part of the text."""
    tables, squares = state
    first, second = random.split(key)
    places = WINDOW + fnp.arange(PAIRS)
    drawn = random.categorical(second, chances, shape=(DRAWN,))
    own, other = stretch[places], stretch[places + neighbours(first)]
    rows = {
        "in": tables["in"][own],
        "out": tables["out"][other],
        "drawn": tables["out"][drawn],
    }
    value, slopes = fxflow.value_and_grad(loss)(rows)
    ids = {"in": own, "out": fnp.concatenate([other, drawn])}
    slopes["out"] = fnp.concatenate([slopes["out"], slopes.pop("drawn")])
    new_tables, new_squares = {}, {}
    for name, slope in slopes.items():
        total = squares[name].at[ids[name]].add(fnp.mean(slope**2, -1))
        pace = 0.1 / fnp.sqrt(total[ids[name]] + 1e-8)
        new_tables[name] = tables[name].at[ids[name]].add(-pace[:, None] * slope)
        new_squares[name] = total
    return (new_tables, new_squares), value / PAIRS


def learn(steps=2000):
    first, key = random.split(random.key(0))
    start = random.uniform(first, (len(words), SIZE), minval=-0.005, maxval=0.005)
    tables = {"in": start, "out": fnp.zeros((len(words), SIZE))}
    state = tables, {name: fnp.zeros(len(words)) for name in tables}
    text, losses = fnp.asarray(stream, "int32"), []
    for number in range(steps):
        begin = generator.integers(0, len(stream) - PAIRS - 2 * WINDOW)
        part = lax.dynamic_slice(text, (begin,), (PAIRS + 2 * WINDOW,))
        state, value = step(state, random.fold_in(key, number), part)
        losses.append(value)
    return np.asarray(state[0]["in"]), np.array([float(value) for value in losses])


vectors, losses = learn()
vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
plt.plot(np.convolve(losses, np.full(20, 1 / 20), "valid"))
plt.xlabel("step")
_ = plt.ylabel("loss of a pair")

# %% [markdown]
# ## Nearest words
#
# The nearest words are those with the largest cosine similarity.


# %%
def nearest(vector, count=8, but=()):
    order = np.argsort(-(vectors @ vector))
    return [words[n] for n in order[: count + len(but)] if words[n] not in but][:count]


for word in ("good", "actor", "horror", "wife"):
    print(word, ":", ", ".join(nearest(vectors[numbers[word]], but=[word])))

# %% [markdown]
# What is to *she* as *his* is to *he*?

# %%
he, his, she = (vectors[numbers[word]] for word in ("he", "his", "she"))
print(nearest(his - he + she, but=["he", "his", "she"]))

# %% [markdown]
# Some vectors in two dimensions, along the directions in which they differ most:

# %%
chosen = "he she his her husband wife son daughter good great bad awful boring dull"
points = vectors[[numbers[word] for word in chosen.split()]]
_, _, directions = np.linalg.svd(points - points.mean(0), full_matrices=False)
x, y = directions[:2] @ points.T
plt.scatter(x, y, s=8)
for word, *place in zip(chosen.split(), x, y, strict=True):
    plt.annotate(word, place)

# %% [markdown]
# TensorBoard's projector shows all vectors in three dimensions: run
# `tensorboard --logdir` with the folder.

# %%
folder = tempfile.mkdtemp()
with train.logs.Logger(train.logs.tensorboard(folder)) as log:
    log(0, {"words": train.logs.Embedding(vectors[:2000], words[:2000])})
len(list(Path(folder).rglob("*.tsv")))

# %% [markdown]
# ## Evaluation
#
# In how many of 24 pairs, which were chosen before training, is the second word among
# the ten nearest to the first?

# %%
TESTED = """
good-great bad-terrible actor-actress horror-scary funny-hilarious movie-film
boring-dull awful-terrible husband-wife son-daughter brother-sister
mother-father man-woman boy-girl music-soundtrack killer-murderer three-four
dvd-vhs book-novel script-screenplay plot-storyline excellent-superb
vampire-vampires zombie-zombies
"""
pairs = [pair.split("-") for pair in TESTED.split()]
found = [b in nearest(vectors[numbers[a]], 10, [a]) for a, b in pairs]
print(f"{sum(found)} of {len(found)}")
assert sum(found) >= 11
