# %% [markdown]
# # The next word: an LSTM, and a sampled softmax
#
# A language model assigns each word a probability, given the words before it. This
# notebook trains a small one on Shakespeare in two ways: with the full softmax, and
# with a softmax over only the labels and some sampled words.
# `examples/language_model.py` is the complete program.

# %%
import sys
import time
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, random, tree

# The code that reads the texts is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.texts import load_shakespeare

# %% [markdown]
# ## A cell, and a loop over it
#
# A cell takes a state and an input and returns the next state and an output. `lax.scan`
# applies it to a sequence of any length, in one compiled, differentiable loop.

# %%
params = nn.lstm_init(random.key(0), inputs=3, units=4)
state = nn.lstm_state(params)
inputs = random.normal(random.key(1), (6, 3))


def cell(state, x):
    return nn.lstm_cell(params[0], state, x)


last, outputs = lax.scan(cell, state[0], inputs)
outputs.shape

# %% [markdown]
# `nn.lstm` is this loop, except that one matrix product before it multiplies all inputs
# by their weights.

# %%
_, same = nn.lstm(params, state, inputs)
bool(fnp.allclose(same, outputs))

# %% [markdown]
# ## The data
#
# Each of the most frequent words has a number; all others share the number 0. The last
# twentieth of the text is the test set.

# %%
VOCABULARY, UNITS, BATCH, LENGTH, DRAWN = 2000, 64, 16, 16, 64

text = [word for play in load_shakespeare()[:12] for word in play]
known = ["<unknown>", *(w for w, _ in Counter(text).most_common(VOCABULARY - 1))]
numbers = {word: number for number, word in enumerate(known)}
coded = np.array([numbers.get(word, 0) for word in text], "int32")
learned, held_out = np.split(coded, [len(coded) * 19 // 20])
print(f"{len(learned):,} words to learn from, {len(held_out):,} to test with")

# %% [markdown]
# The text is cut into parallel parts. A step processes a few words of each and passes
# its state to the next step: back-propagation is *truncated* there, but the state is
# passed on.


# %%
def batches(words, count):
    """Yields words i32[LENGTH, count] and the words that follow them."""
    rows = (len(words) - 1) // count
    now = words[: rows * count].reshape(count, rows).T
    after = words[1 : rows * count + 1].reshape(count, rows).T
    for start in range(0, rows - LENGTH + 1, LENGTH):
        yield now[start : start + LENGTH], after[start : start + LENGTH]


now, after = next(batches(learned, BATCH))
print(" ".join(known[word] for word in now[:, 0]))
print(" ".join(known[word] for word in after[:, 0]))

# %% [markdown]
# ## The model
#
# Each word has a vector, the LSTM processes the vectors in order, and a dense layer
# gives each word of the vocabulary a score. Each row of that layer's weights belongs to
# a word, too.


# %%
def init(key):
    first, second, third = random.split(key, 3)
    softmax = nn.linear_init(third, UNITS, VOCABULARY)
    return {
        "embed": nn.embedding_init(first, VOCABULARY, UNITS),
        "lstm": nn.lstm_init(second, UNITS, UNITS),
        "softmax": {"w": softmax["w"].T, "b": softmax["b"]},  # one row for each word
    }


def outputs(lstm, carry, vectors):
    """Returns the last state, and the outputs f32[words, units] for all words."""
    carry, ys = nn.lstm(lstm, carry, vectors, time_major=True)
    return carry, ys.reshape(-1, UNITS)


tree.map(fnp.shape, init(random.key(0)))

# %% [markdown]
# ## Two losses
#
# The full softmax needs a score for each word of the vocabulary. The sampled softmax
# needs scores only for the labels and a few sampled words, corrected for their sampling
# probability: the rest of the table is neither read nor differentiated.


# %%
def full_loss(softmax, ys, labels):
    return fnp.mean(nn.linear_cross_entropy(softmax, ys, labels))


def sampled_loss(rows, ys, drawn):
    """`rows`: of the labels, then of the drawn words, as are their numbers here."""
    count = len(ys)
    here = drawn._replace(ids=count + fnp.arange(DRAWN))
    places = fnp.arange(count)[:, None]
    return fnp.mean(nn.sampled_softmax_loss(rows, ys, places, here))


# %% [markdown]
# ## A step
#
# Only the rows of words that occur in the batch are gathered, differentiated and
# written back: rows of the vectors and, with the sampled loss, also of the softmax.
# Adagrad divides an update by the root of the sum of all squared gradients so far.


# %%
RATE = 0.1


def moved(weight, square, slope, ids):
    """Returns a weight and its squares after a step, of the rows `ids` (None: all)."""
    if ids is None:
        square = square + slope**2
        return weight - RATE * slope / fnp.sqrt(square), square
    square = square.at[ids].add(slope**2)
    return weight.at[ids].add(-RATE * slope / fnp.sqrt(square[ids])), square


def make_step(sampled):
    def step(params, squares, carry, key, words, labels):
        words, labels = words.reshape(-1), labels.reshape(-1)
        softmax, ids, drawn = params["softmax"], None, None
        if sampled:
            drawn = nn.log_uniform_candidates(key, labels[:, None], DRAWN, VOCABULARY)
            ids = fnp.concatenate([labels, drawn.ids])
            softmax = {name: weight[ids] for name, weight in softmax.items()}
        vectors = {"w": params["embed"]["w"][words]}
        taken = {"embed": vectors, "lstm": params["lstm"], "softmax": softmax}

        def loss(taken):
            inputs = taken["embed"]["w"].reshape(LENGTH, BATCH, UNITS)
            last, ys = outputs(taken["lstm"], carry, inputs)
            if sampled:
                return sampled_loss(taken["softmax"], ys, drawn), last
            return full_loss(taken["softmax"], ys, labels), last

        (value, last), slopes = fxflow.value_and_grad(loss, has_aux=True)(taken)
        written = {"embed": words, "lstm": None, "softmax": ids}
        for name, rows in written.items():
            old = params[name], squares[name], slopes[name]
            pairs = [
                moved(*leaves, rows)
                for leaves in zip(*map(tree.leaves, old), strict=True)
            ]
            weights, sums = zip(*pairs, strict=True)
            shape = tree.structure(params[name])
            params = {**params, name: tree.unflatten(shape, weights)}
            squares = {**squares, name: tree.unflatten(shape, sums)}
        return params, squares, last, value

    return fxflow.jit(step, donate_argnums=(0, 1, 2))


# %% [markdown]
# ## Training
#
# A model is measured by its perplexity on the test words, under the full softmax. This
# is the exponential of the mean loss: a perplexity of 300 is the uncertainty of a
# choice among 300 equally likely words.


# %%
@fxflow.jit
def tested(params, carry, words, labels):
    carry, ys = outputs(params["lstm"], carry, params["embed"]["w"][words])
    return carry, full_loss(params["softmax"], ys, labels.reshape(-1))


def perplexity(params):
    carry, losses = nn.lstm_state(params["lstm"], BATCH), []
    for now, after in batches(held_out, BATCH):
        carry, value = tested(params, carry, now, after)
        losses.append(float(value))
    return np.exp(np.mean(losses))


def fit(sampled, steps=200):
    step, key = make_step(sampled), random.key(0)
    params = init(key)
    squares = tree.map(lambda w: fnp.full(w.shape, 0.01), params)
    carry, losses = nn.lstm_state(params["lstm"], BATCH), []
    for number, (now, after) in zip(range(steps), batches(learned, BATCH)):
        if number == 1:
            begun = time.perf_counter()  # the first step was compiled
        fold = random.fold_in(key, number)
        params, squares, carry, value = step(params, squares, carry, fold, now, after)
        losses.append(float(value))
    return params, losses, (time.perf_counter() - begun) / (steps - 1)


curves, reached = {}, {}
for name, sampled in (("full", False), ("sampled", True)):
    params, curves[name], seconds = fit(sampled)
    reached[name] = perplexity(params)
    print(f"{name:8} perplexity {reached[name]:6.1f}   {1000 * seconds:.1f} ms a step")
assert max(reached.values()) < 600

# %%
for name, losses in curves.items():
    plt.plot(np.convolve(losses, np.full(20, 1 / 20), "valid"), label=name)
plt.xlabel("step")
plt.ylabel("training loss (of another number of words each)")
_ = plt.legend()

# %% [markdown]
# The larger the vocabulary, the more the sampled loss saves: with 40,000 words, a step
# of `examples/language_model.py` takes 32 ms instead of 544 ms.
