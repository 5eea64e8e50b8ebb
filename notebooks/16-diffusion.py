# %% [markdown]
# # Drawing digits: an autoencoder, and diffusion in its latent space
#
# This notebook trains two models that make new images. A *variational autoencoder*
# learns to describe a digit by a code of 16 numbers, and to draw it from the code. A
# *diffusion model* learns where in this *latent space* digits are, by learning to
# remove noise. Both are small enough for a CPU.

# %%
import sys
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random

# The code that reads the data is in fxflow's repository.
places = [Path.cwd(), *Path.cwd().parents, Path(fxflow.__file__).parents[1]]
examples = [p / "examples" for p in places if (p / "examples/helpers").is_dir()]
assert examples, "examples/helpers was not found: run this in a checkout of fxflow"
sys.path.insert(0, str(examples[0]))
from helpers.datasets import load_mnist

mnist = load_mnist()
images = mnist.train_images[:12_800].reshape(-1, 784).astype(np.float32) / 255
unseen = mnist.test_images[:1000].reshape(-1, 784).astype(np.float32) / 255
CODE = 16


# %% [markdown]
# ## Layers and a training loop
#
# Both models are stacks of linear layers, and the same loop trains both: a loss is a
# function of parameters, a key and a batch.


# %%
def stack_init(key, *sizes):
    keys = random.split(key, len(sizes) - 1)
    return [
        nn.linear_init(key, *pair)
        for key, pair in zip(keys, pairwise(sizes), strict=True)
    ]


def stack(layers, x):
    for layer in layers[:-1]:
        x = nn.silu(nn.linear(layer, x))
    return nn.linear(layers[-1], x)


def fit(loss, params, data, steps, rate=2e-3, size=128):
    optimizer = optim.adam(optim.cosine_decay_schedule(rate, steps))

    @fxflow.jit
    def step(params, memory, key):
        chosen, key = random.split(key)
        batch = data[random.randint(chosen, (size,), 0, len(data))]
        value, slope = fxflow.value_and_grad(loss)(params, key, batch)
        updates, memory = optimizer.update(slope, memory, params)
        return optim.apply_updates(params, updates), memory, value

    data, memory, losses = fnp.asarray(data), optimizer.init(params), []
    for key in random.split(random.key(7), steps):
        params, memory, value = step(params, memory, key)
        losses.append(value)
    return params, np.array([float(value) for value in losses])


def show(pictures, title):
    rows = len(pictures) // 12
    figure, axes = plt.subplots(rows, 12, figsize=(9, 0.8 * rows))
    for axis, picture in zip(axes.flat, pictures, strict=True):
        axis.imshow(np.asarray(picture).reshape(28, 28), cmap="gray_r")
        axis.axis("off")
    figure.suptitle(title)
    plt.show()


# %% [markdown]
# ## The autoencoder
#
# The encoder gives a mean and a variance for each of the 16 numbers; the decoder gets a
# sample. The loss is the reconstruction error, plus the Kullback–Leibler divergence
# $\frac{1}{2} \sum_i (\mu_i^2 + \sigma_i^2 - \log \sigma_i^2 - 1)$ of the code's
# distribution from the standard normal one, which keeps the space free of holes. The
# gradient passes through the sample because it is `mean + deviation * noise`, with
# noise that does not depend on the parameters.


# %%
def encode(params, x):
    mean, log_variance = fnp.split(stack(params["encoder"], x), 2, axis=-1)
    return mean, log_variance


def vae_loss(params, key, x):
    mean, log_variance = encode(params, x)
    code = mean + fnp.exp(log_variance / 2) * random.normal(key, mean.shape)
    wrong = optim.losses.sigmoid_binary_cross_entropy(stack(params["decoder"], code), x)
    divergence = 0.5 * (mean**2 + fnp.exp(log_variance) - log_variance - 1)
    return fnp.mean(fnp.sum(wrong, -1) + fnp.sum(divergence, -1))


first, second = random.split(random.key(0))
vae, losses = fit(
    vae_loss,
    {
        "encoder": stack_init(first, 784, 256, 2 * CODE),
        "decoder": stack_init(second, CODE, 256, 784),
    },
    images,
    steps=500,
)


def decode(code):
    return nn.sigmoid(stack(vae["decoder"], code))


rebuilt = decode(encode(vae, unseen[:12])[0])
show([*unseen[:12], *rebuilt], "digits that were not trained on, and their copies")

# %% [markdown]
# Codes drawn from the normal distribution give new images, but many are between two
# digits: the codes of real digits do not fill the space evenly.

# %%
show(decode(random.normal(random.key(1), (24, CODE))), "codes drawn blindly")

# %% [markdown]
# ## Diffusion
#
# Take the code $x_0$ of a digit and mix in noise:
# $x_t = \cos(\phi_t) x_0 + \sin(\phi_t) \epsilon$, with an angle $\phi$ from 0 (the
# code) to $\pi / 2$ (noise only). A network learns to predict the noise $\epsilon$ from
# $x_t$ and the angle.

# %%
codes = encode(vae, fnp.asarray(images))[0]
center, spread = codes.mean(0), codes.std(0)
codes = (codes - center) / spread


def noise_in(params, x, angle):
    waves = angle[..., None] * 2.0 ** fnp.arange(4)
    return stack(params, fnp.concatenate([x, fnp.sin(waves), fnp.cos(waves)], -1))


def diffusion_loss(params, key, x):
    first, second = random.split(key)
    angle = random.uniform(first, x.shape[:1], maxval=fnp.pi / 2)
    noise = random.normal(second, x.shape)
    mixed = fnp.cos(angle)[:, None] * x + fnp.sin(angle)[:, None] * noise
    return fnp.mean((noise_in(params, mixed, angle) - noise) ** 2)


denoiser, errors = fit(
    diffusion_loss, stack_init(random.key(2), CODE + 8, 256, 256, CODE), codes, 1800
)
smooth = np.convolve(errors, np.full(50, 1 / 50), "valid")
plt.plot(smooth)
plt.xlabel("step")
_ = plt.ylabel("error of the noise")

# %% [markdown]
# To sample, begin with noise only and turn the angle back in small steps. In each step,
# the predicted noise also gives an estimate of $x_0$; the two are mixed again at the
# next angle. The whole process is one `scan`, and `vmap` is not needed: the network
# takes batches.


# %%
@fxflow.jit
def sample(params, noise):
    angles = fnp.linspace(fnp.pi / 2 - 0.02, 0.0, 60)

    def turn(x, pair):
        here, there = pair
        noise = noise_in(params, x, fnp.full(len(x), here))
        clean = fnp.clip((x - fnp.sin(here) * noise) / fnp.cos(here), -3.5, 3.5)
        return fnp.cos(there) * clean + fnp.sin(there) * noise, None

    return lax.scan(turn, noise, (angles[:-1], angles[1:]))[0]


drawn = sample(denoiser, random.normal(random.key(3), (1000, CODE)))
show(decode(drawn[:24] * spread + center), "codes from the diffusion model")

# %% [markdown]
# ## Evaluation
#
# How far is a code from the nearest code of a real digit? For codes of digits that were
# not trained on, for codes drawn at random, and for those of the diffusion model:


# %%
@fxflow.jit
def distance(some):
    squares = fnp.sum(codes**2, -1) + fnp.sum(some**2, -1)[:, None]
    return fnp.mean(fnp.sqrt(fnp.min(squares - 2 * some @ codes.T, axis=1)))


real = (encode(vae, unseen)[0] - center) / spread
distances = {
    "real digits": float(distance(real)),
    "diffusion": float(distance(drawn)),
    "blind": float(distance(random.normal(random.key(4), (1000, CODE)))),
}
print(distances)
assert distances["diffusion"] < 0.5 * (distances["blind"] + distances["real digits"])
