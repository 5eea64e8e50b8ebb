# %% [markdown]
# # A small GPT, from text to generation
#
# A language model predicts the next character from those before it. This notebook
# builds a transformer from its parts (attention, rotary embeddings, blocks), trains it
# on Shakespeare, saves it in a checkpoint, and generates text with it.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random, train

# The code that reads the data is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.texts import load_shakespeare

# %% [markdown]
# ## Text to numbers
#
# Each character has a number. The last twentieth of the text is held out for
# evaluation.

# %%
text = " ".join(" ".join(words) for words in load_shakespeare()[:12])
alphabet = sorted(set(text))
numbers = {character: number for number, character in enumerate(alphabet)}
codes = np.array([numbers[character] for character in text], np.int32)
learned, held_out = codes[: -len(codes) // 20], codes[-len(codes) // 20 :]
print(f"{len(codes):,} characters, {len(alphabet)} different: {''.join(alphabet)}")
print(text[:80])


# %% [markdown]
# ## Attention
#
# Each position asks a question (*query*), which is compared with what it and every
# earlier position offer (*key*); the answer is the mean of their *values*, weighted by
# how well they match. The mask keeps a position from looking ahead.


# %%
def attention(query, key, value):
    """All f32[heads, length, features]."""
    length, features = query.shape[-2:]
    scores = query @ key.mT / features**0.5
    earlier = fnp.tril(fnp.ones((length, length), bool))
    return nn.softmax(fnp.where(earlier, scores, -1e9)) @ value


q, k, v = random.normal(random.key(0), (3, 2, 5, 8))
mine = attention(q, k, v)
# `nn.dot_product_attention` is this function without an array of scores; its axes are
# batch, length, heads, features.
same = nn.dot_product_attention(
    *(a.swapaxes(0, 1)[None] for a in (q, k, v)), is_causal=True
)[0].swapaxes(0, 1)
print("largest difference:", float(abs(mine - same).max()))
assert fnp.allclose(mine, same, atol=1e-5)


# %% [markdown]
# ## Rotary embeddings
#
# Attention alone does not depend on where a key is. A *rotary embedding* rotates pairs
# of features by an angle proportional to the position, so that the product of a query
# and a key depends on their distance only. Each pair rotates at a different speed.


# %%
def rotate(x):
    """`x` is f32[heads, length, features]."""
    length, features = x.shape[-2:]
    speeds = 1000.0 ** -fnp.linspace(0, 1, features // 2)
    angles = fnp.arange(length)[:, None] * speeds
    left, right = fnp.split(x, 2, axis=-1)
    cos, sin = fnp.cos(angles), fnp.sin(angles)
    return fnp.concatenate([left * cos - right * sin, left * sin + right * cos], -1)


# The same query and key at all positions: the scores depend on the distance alone.
turned = rotate(fnp.ones((1, 40, 16)))[0]
scores = turned @ turned.T
assert fnp.allclose(scores[3, 10], scores[20, 27], atol=1e-3)
plt.imshow(scores)
plt.title("scores of equal vectors, by position")
plt.colorbar()
plt.show()

# %% [markdown]
# ## The model
#
# A block adds the output of attention to its input, and then the output of two dense
# layers. Parameters are dictionaries; those of the blocks are stacked, so that
# `lax.scan` runs one compiled block for each layer. The model takes one text; `vmap`
# adds an axis for batches.

# %%
WIDTH, HEADS, LAYERS, LENGTH = 64, 4, 2, 48


def init(key):
    def block(key):
        keys = random.split(key, 4)
        return {
            "qkv": nn.linear_init(keys[0], WIDTH, 3 * WIDTH, bias=False),
            "mix": nn.linear_init(keys[1], WIDTH, WIDTH, bias=False),
            "up": nn.linear_init(keys[2], WIDTH, 4 * WIDTH),
            "down": nn.linear_init(keys[3], 4 * WIDTH, WIDTH),
            "norms": fnp.ones((2, WIDTH)),
        }

    embed, blocks = random.split(key)
    return {
        "embed": 0.1 * random.normal(embed, (len(alphabet), WIDTH)),
        "blocks": fxflow.vmap(block)(random.split(blocks, LAYERS)),
        "norm": fnp.ones(WIDTH),
    }


def normalized(scale, x):
    return scale * x * lax.rsqrt(fnp.mean(x**2, -1, keepdims=True) + 1e-6)


def block(x, params):
    qkv = nn.linear(params["qkv"], normalized(params["norms"][0], x))
    heads = qkv.reshape(len(x), 3, HEADS, -1).transpose(1, 2, 0, 3)
    found = attention(rotate(heads[0]), rotate(heads[1]), heads[2])
    x = x + nn.linear(params["mix"], found.swapaxes(0, 1).reshape(x.shape))
    hidden = nn.gelu(nn.linear(params["up"], normalized(params["norms"][1], x)))
    return x + nn.linear(params["down"], hidden), None


def logits(params, text):
    """Returns f32[length, alphabet], the scores of the character after each one."""
    # `checkpoint` computes the inside of a block again in the backward pass, instead of
    # keeping it: memory for one block instead of all.
    x, _ = lax.scan(fxflow.checkpoint(block), params["embed"][text], params["blocks"])
    return normalized(params["norm"], x) @ params["embed"].T


params = init(random.key(1))
print(f"{sum(leaf.size for leaf in fxflow.tree.leaves(params)):,} parameters")

# %% [markdown]
# A character must not depend on later ones. If it does, training is fast and the model
# useless, so check it: change the last character, and compare the scores before it.

# %%
sample = fnp.asarray(learned[:LENGTH])
changed = sample.at[-1].set(0)
assert fnp.allclose(logits(params, sample)[:-1], logits(params, changed)[:-1])


# %% [markdown]
# ## Training


# %%
def loss(params, texts):
    """`texts`: i32[batch, length + 1]."""
    scores = fxflow.vmap(logits, (None, 0))(params, texts[:, :-1])
    losses = optim.losses.softmax_cross_entropy_with_integer_labels(
        scores, texts[:, 1:]
    )
    return fnp.mean(losses)


STEPS = 300
rate = optim.warmup_cosine_decay_schedule(0.0, 5e-3, 20, STEPS)
optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate))


@fxflow.jit
def step(state, texts):
    params, memory = state
    value, gradients = fxflow.value_and_grad(loss)(params, texts)
    updates, memory = optimizer.update(gradients, memory, params)
    return (optim.apply_updates(params, updates), memory), value


generator = np.random.default_rng(0)


def batch(codes, size=16):
    starts = generator.integers(0, len(codes) - LENGTH - 1, size)
    return codes[starts[:, None] + np.arange(LENGTH + 1)]


state, losses = (params, optimizer.init(params)), []
for _ in range(STEPS):
    state, value = step(state, batch(learned))
    losses.append(value)

params = state[0]
reached = float(loss(params, batch(held_out, 200)))
plt.plot([float(value) for value in losses])
plt.axhline(np.log(len(alphabet)), color="gray", linestyle=":")
plt.xlabel("step")
plt.ylabel("loss")
plt.title("dotted: every character equally likely")
plt.show()

# %% [markdown]
# ## A checkpoint
#
# The checkpoint holds the parameters and the optimizer's state, so that training could
# continue from it.

# %%
folder = Path(tempfile.mkdtemp()) / "gpt"
train.checkpoint.save(folder, state)
params, _ = train.checkpoint.restore(folder, like=state)

# %% [markdown]
# ## Sampling
#
# The model sees the last `LENGTH` characters, and the next one is drawn from its
# distribution. A *temperature* below 1 prefers likely characters. The whole loop is one
# compiled `scan`.


# %%
@fxflow.jit(static_argnames="count")
def write(params, key, start, temperature, count):
    def next_character(text, key):
        scores = logits(params, text)[-1] / temperature
        character = random.categorical(key, scores)
        return fnp.append(text[1:], character), character

    return lax.scan(next_character, start, random.split(key, count))[1]


start = fnp.asarray(learned[:LENGTH])
for temperature in (0.5, 1.0):
    written = write(params, random.key(3), start, temperature, count=200)
    print(f"{temperature}: {''.join(alphabet[code] for code in np.asarray(written))}\n")

# %% [markdown]
# The loss per character on the held-out text. Guessing uniformly gives the logarithm of
# the number of different characters, and guessing by their frequencies about 2.8.

# %%
print(f"{reached:.2f}, guessing {np.log(len(alphabet)):.2f}")
assert reached < 2.4
