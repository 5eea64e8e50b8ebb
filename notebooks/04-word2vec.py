# %% [markdown]
# # Word vectors
#
# Words that occur next to the same words have similar meanings. *word2vec* learns a
# vector for each word that predicts its neighbours, so the vectors of similar words
# point in similar directions. This notebook uses a part of 25,000 film reviews;
# `examples/word2vec.py` uses all 5.8 million words, ten times.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import train

# The example is in fxflow's repository: in a folder above this notebook, or where
# fxflow was installed from.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/word2vec.py").exists()]
assert examples, "examples/word2vec.py was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
import word2vec
from helpers.texts import load_reviews, words

# %% [markdown]
# ## Pairs from a window
#
# A text becomes pairs of a word and a neighbour. These use a window of one word on each
# side.

# %%
text = words("The quick brown fox jumps over the lazy dog")
pairs = [
    (text[i], text[j]) for i in range(4) for j in (i - 1, i + 1) if 0 <= j < len(text)
]
pairs

# %% [markdown]
# In the program, a pair is an entry of a table that says which of 32 words predicts
# which word around it. The size of the window is drawn for each word, up to five words,
# so that nearer words count more.

# %%
key = fxflow.random.key(0)
settings = word2vec.Settings(epochs=2)
docs = fnp.zeros((1, 32 + 2 * settings.window), "int32")
plt.imshow(word2vec.neighbours(key, docs, settings)[0], cmap="gray_r")
plt.xlabel("is predicted")
_ = plt.ylabel("predicts")

# %% [markdown]
# ## The loss
#
# The score of a pair is the product of two vectors: each word has one for predicting
# (`in`) and one for being predicted (`out`). The loss distinguishes pairs of the text,
# which should have high scores, from pairs with sampled words, which should have low
# scores. It is a pure function of the rows of a few words, and so is its gradient:
# whole tables are never differentiated.

# %%
rows = {
    "in": fnp.full((1, 32, 100), 0.1),
    "out": fnp.full((1, 42, 100), 0.1),
    "drawn": fnp.full((64, 100), 0.1),
}
taken = word2vec.neighbours(key, docs, settings)
slopes = fxflow.grad(word2vec.loss_of)(rows, taken, settings)
{name: slope.shape for name, slope in slopes.items()}

# %% [markdown]
# ## Learning
#
# The tables are donated to the step, which writes the rows to their memory. A step
# takes a few milliseconds for a vocabulary of any size.

# %%
texts = load_reviews().texts[:8000]
losses = []
vectors, pace = word2vec.fit(
    texts, settings, log=lambda step, values: losses.append(float(values["loss"]))
)
print(f"{len(vectors.words):,} words known")
plt.plot(100 * np.arange(1, len(losses) + 1), losses)
plt.xlabel("step")
_ = plt.ylabel("loss")

# %% [markdown]
# ## Near words
#
# The nearest words are those with the largest cosine similarity.

# %%
for word in ("good", "actor", "horror", "wife"):
    print(word, ":", ", ".join(near for near, _ in vectors.nearby(word, 8)))

# %% [markdown]
# `analogy(a, b, c)` looks for what is to `c` as `b` is to `a`.

# %%
print(", ".join(word for word, _ in vectors.analogy("he", "his", "she")))

# %% [markdown]
# The chosen vectors in two dimensions, along the directions in which they differ most:

# %%
chosen = "he she his her husband wife son daughter good great bad awful boring dull"
chosen = [word for word in chosen.split() if word in vectors.ids]
points = vectors.rows[[vectors.ids[word] for word in chosen]]
points = points - points.mean(0)
_, _, directions = np.linalg.svd(points, full_matrices=False)
x, y = directions[:2] @ points.T
plt.scatter(x, y, s=8)
for word, *place in zip(chosen, x, y, strict=True):
    plt.annotate(word, place)

# %% [markdown]
# TensorBoard's projector shows all vectors in three dimensions: run
# `tensorboard --logdir` with the folder.

# %%
folder = tempfile.mkdtemp()
with train.logs.Logger(train.logs.tensorboard(folder)) as log:
    log(0, {"words": train.logs.Embedding(vectors.rows[:2000], vectors.words[:2000])})
len(list(Path(folder).rglob("*.tsv")))

# %% [markdown]
# ## The result
#
# Forty pairs of words were chosen before the training. The result is the number of
# pairs whose second word is among the ten nearest words of the first. (With ten passes
# over all reviews it is 38.)

# %%
known = [
    pair
    for pair in word2vec.PAIRS.split()
    if all(word in vectors.ids for word in pair.split("-"))
]
found = sum(word2vec.found_pairs(vectors, " ".join(known)).values())
print(f"{found} of {len(known)}")
assert found >= 15
