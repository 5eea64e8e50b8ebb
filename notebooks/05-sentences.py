# %% [markdown]
# # Sentiment: a convolutional net for sentences
#
# In Kim's net (2014), filters three, four and five words wide slide over the vectors of
# a sentence's words; the largest response of each filter, at any position, is an input
# of one dense layer. This notebook trains a small net on a third of the sentences;
# `examples/sentences.py` uses all of them in ten folds, optionally with pretrained
# vectors from `examples/word2vec.py`.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random

# The example is in fxflow's repository: in a folder above this notebook, or where
# fxflow was installed from.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/sentences.py").exists()]
assert examples, "examples/sentences.py was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
import sentences
from helpers.texts import load_reviews

# %% [markdown]
# ## The data
#
# Half of the 8,530 sentences are positive, half negative.

# %%
reviews = load_reviews()
for number in (0, 1, -1):
    print(reviews.labels[number], " ".join(reviews.sentences[number])[:72])

# %% [markdown]
# A sentence is a row of numbers, with padding on both sides so that the widest filter
# can begin before it and end after it.

# %%
data, known = sentences.encoded(reviews.sentences, reviews.labels, 5)
print(data.words.shape, len(known), "words")
data.words[0]

# %% [markdown]
# ## The net
#
# A convolution over words has one spatial axis. The response of a filter is largest
# where the sentence matches it.

# %%
filters = nn.conv_init(random.key(0), 8, 4, (3,))
table = random.normal(random.key(1), (len(known), 8))
answers = nn.conv(filters, table[data.words[:1]], padding="VALID")[0]
plt.imshow(nn.relu(answers[:40]).T, aspect="auto", cmap="viridis")
plt.xlabel("place in the sentence")
_ = plt.ylabel("filter")

# %% [markdown]
# The whole net is a function of its weights. Their shapes:

# %%
settings = sentences.Settings(filters=24, rate=3e-3, epochs=5)
params = {
    **sentences.init(random.key(0), 32, settings),
    "vectors": [fnp.zeros((len(known), 32))],
}
fxflow.tree.map(fnp.shape, params)

# %% [markdown]
# ## Learning
#
# `fit` trains on the selected sentences and keeps the weights that are best on a tenth
# of them, which it does not train on.

# %%
rng = np.random.default_rng(0)
order = rng.permutation(len(data.labels))
taken, tested = order[:3000], order[-1000:]
tables = sentences.tables_of(settings, 32, len(known), None)
predict = sentences.fit(data, taken, tables, 32, settings)
reached = float(np.mean(predict(tested) == data.labels[tested]))
print(f"{reached:.1%} of {len(tested)} sentences it has not seen")
assert reached > 0.58, reached

# %% [markdown]
# With all sentences and filters, about three of four predictions are right, and
# slightly more with vectors that were pretrained on texts without labels.
