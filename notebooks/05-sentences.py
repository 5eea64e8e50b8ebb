# %% [markdown]
# # Sentiment: a convolutional net for sentences
#
# In Kim's net (2014), filters three, four and five words wide slide over the vectors of
# a sentence's words; the largest response of each filter over all positions is one
# input of a dense layer. This notebook trains a small net on a third of the sentences;
# `examples/sentences.py` uses all of them, with ten-fold cross-validation and
# optionally with pretrained vectors from `examples/word2vec.py`.

# %%
import sys
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random

# The code that reads the texts is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.texts import load_reviews

# %% [markdown]
# ## The data
#
# Half of the 8,530 sentences are positive, half negative.

# %%
reviews = load_reviews()
labels = np.asarray(reviews.labels, "int32")
for number in (0, 1, -1):
    print(labels[number], " ".join(reviews.sentences[number])[:72])

# %% [markdown]
# A sentence becomes a row of numbers, the most frequent word being 1. The number 0 is
# padding: on both sides, so that the widest filter can begin before the sentence and
# end after it.

# %%
WIDTHS, SIZE, FILTERS = (3, 4, 5), 32, 24

counted = Counter(word for sentence in reviews.sentences for word in sentence)
numbers = {word: n for n, (word, _) in enumerate(counted.most_common(), 1)}
margin = max(WIDTHS) - 1
length = max(map(len, reviews.sentences)) + 2 * margin
words = np.zeros((len(labels), length), "int32")
for row, sentence in zip(words, reviews.sentences, strict=True):
    row[margin : margin + len(sentence)] = [numbers[word] for word in sentence]
print(words.shape, len(numbers), "words")
words[0]

# %% [markdown]
# ## The net
#
# A convolution over words has one spatial axis. The response of a filter is largest
# where the sentence matches it.

# %%
filters = nn.conv_init(random.key(0), 8, 4, (3,))
table = random.normal(random.key(1), (len(numbers) + 1, 8))
answers = nn.conv(filters, table[words[:1]], padding="VALID")[0]
plt.imshow(nn.relu(answers[:40]).T, aspect="auto", cmap="viridis")
plt.xlabel("place in the sentence")
_ = plt.ylabel("filter")

# %% [markdown]
# The whole net is a function of its weights: vectors of words, filters of three widths,
# and a dense layer with one output for each class. Dropout needs a key; without one
# nothing is dropped.


# %%
def init(key):
    first, second, *keys = random.split(key, 2 + len(WIDTHS))
    shape = len(numbers) + 1, SIZE
    return {
        "vectors": {"w": random.uniform(first, shape, minval=-0.25, maxval=0.25)},
        "filters": [
            nn.conv_init(k, SIZE, FILTERS, (width,))
            for k, width in zip(keys, WIDTHS, strict=True)
        ],
        "out": nn.linear_init(second, len(WIDTHS) * FILTERS, 2),
    }


def logits(params, words, key=None):
    """Returns f32[sentences, 2] for i32[sentences, length]."""
    vectors = nn.embedding(params["vectors"], words, padding_id=0)
    answers = [
        fnp.max(nn.relu(nn.conv(filters, vectors, padding="VALID")), axis=1)
        for filters in params["filters"]
    ]
    joined = fnp.concatenate(answers, axis=-1)
    joined = nn.dropout(key, joined, 0.5, deterministic=key is None)
    return nn.linear(params["out"], joined)


fxflow.tree.map(fnp.shape, init(random.key(0)))

# %% [markdown]
# ## A step
#
# The loss is the mean cross entropy of a batch. A step differentiates it with respect
# to all weights and applies Adam's update. Parameters and optimizer state are arguments
# and results of the step, which has no other state.

# %%
optimizer = optim.adam(3e-3)


def loss(params, key, words, labels):
    out = logits(params, words, key)
    each = optim.losses.softmax_cross_entropy_with_integer_labels(out, labels)
    return fnp.mean(each)


@fxflow.jit
def step(params, state, key, words, labels):
    value, slopes = fxflow.value_and_grad(loss)(params, key, words, labels)
    updates, state = optimizer.update(slopes, state, params)
    return optim.apply_updates(params, updates), state, value


@fxflow.jit
def right(params, words, labels):
    """Returns the fraction that is classified correctly."""
    return fnp.mean(fnp.argmax(logits(params, words), axis=-1) == labels)


# %% [markdown]
# ## Training
#
# The net is trained on 2,700 sentences. After each epoch, the accuracy on 300 others
# decides which weights to keep; another 1,000 are used only for the test.

# %%
generator = np.random.default_rng(0)
order = generator.permutation(len(labels))
used, held, tested = order[300:3000], order[:300], order[-1000:]
params, key = init(random.key(0)), random.key(1)
state, best, kept, curve = optimizer.init(params), -1.0, params, []
for _ in range(5):
    for batch in generator.permutation(used).reshape(-1, 50):
        key, drop = random.split(key)
        params, state, value = step(params, state, drop, words[batch], labels[batch])
        curve.append(value)
    reached = float(right(params, words[held], labels[held]))
    print(f"loss {curve[-1]:.2f}, {reached:.1%} of the held-out sentences")
    if reached > best:
        best, kept = reached, params

# %%
plt.plot(curve)
plt.xlabel("step")
_ = plt.ylabel("loss of a batch")

# %% [markdown]
# ## Evaluation

# %%
reached = float(right(kept, words[tested], labels[tested]))
print(f"{reached:.1%} of {len(tested)} sentences it has not seen")
assert reached > 0.62, reached

# %% [markdown]
# With all sentences and filters, about three in four predictions are right, and
# slightly more with vectors that were pretrained on texts without labels.
