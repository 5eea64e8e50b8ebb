# %% [markdown]
# # The next word: an LSTM, and a sampled softmax
#
# A language model assigns each word a probability, given the words before it. This
# notebook trains a small one on Shakespeare in two ways: with the full softmax, and
# with a softmax over only the labels and some sampled words.
# `examples/language_model.py` is the complete program.

# %%
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, random

# The example is in fxflow's repository: in a folder above this notebook, or where
# fxflow was installed from.
name = "language_model.py"
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples" / name).exists()]
assert examples, f"examples/{name} was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
import language_model as lm
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
# `nn.lstm` is this loop, but computes the products of all inputs before it.

# %%
_, same = nn.lstm(params, state, inputs)
bool(fnp.allclose(same, outputs))

# %% [markdown]
# ## The data
#
# Texts are processed in parallel. A step processes a few words of each and passes its
# state to the next step: back-propagation is *truncated* there, but the state is not.

# %%
settings = lm.Settings(vocabulary=2000, units=64, batch=16, length=16, drawn=64)
texts = load_shakespeare()[:12]
learned, held_out, known = lm.coded(texts, settings.vocabulary)
words, labels = next(lm.batches(learned, settings.batch, settings.length))
print(f"{len(learned):,} words")
print(" ".join(known.words[word] for word in words[:, 0]))
print(" ".join(known.words[word] for word in labels[:, 0]))

# %% [markdown]
# ## Two losses
#
# The full softmax needs a score for each known word. The sampled softmax needs scores
# only for the labels and a few sampled words, corrected for their sampling probability;
# a step gathers, differentiates and writes back only the rows of these words.

# %%
results, curves = {}, {}
for loss in ("full", "sampled"):
    losses = curves[loss] = []
    results[loss] = lm.fit(
        learned,
        held_out,
        settings._replace(loss=loss, steps=200),
        log=lambda step, values, losses=losses: losses.append(
            float(next(iter(values.values())))
        ),
    )
for loss, result in results.items():
    print(
        f"{loss:8} perplexity {result.perplexity:6.1f}   {result.milliseconds:.1f} ms"
    )
assert all(result.perplexity < 600 for result in results.values())

# %%
for loss, losses in curves.items():
    plt.plot(range(50, 50 * len(losses) + 1, 50), losses, label=loss)
plt.xlabel("step")
plt.ylabel("training loss (of another number of words each)")
_ = plt.legend()

# %% [markdown]
# The larger the vocabulary, the more the sampled loss saves: with 40,000 words a step
# takes less than a sixth of the time.
