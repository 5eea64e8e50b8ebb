# %% [markdown]
# # From PyTorch, in practice
#
# A training script for PyTorch, moved to fxflow part by part. Each part shows the
# PyTorch code and then the cell that replaces it. The task: tell two spirals apart.

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, optim, random, train

# %% [markdown]
# ## Data
#
# ```text
# loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
# for x, y in loader: ...
# ```

# %%
generator = np.random.default_rng(0)
label = np.arange(600) % 2
turn = generator.uniform(0.3, 3.0, 600)
points = turn[:, None] * np.stack([np.cos(4 * turn), np.sin(4 * turn)], -1)
points = np.float32(points * (1 - 2 * label[:, None]) / 3)
points += generator.normal(0, 0.02, points.shape).astype(np.float32)
batches = train.data.arrays((points[:500], label[:500])).shuffle(seed=0).batch(100)
print([part.shape for part in next(iter(batches))])

# %% [markdown]
# ## The module
#
# ```text
# class Net(nn.Module):
#     def __init__(self):
#         super().__init__()
#         self.layers = nn.ModuleList([nn.Linear(2, 64), nn.Linear(64, 64)])
#         self.drop = nn.Dropout(0.1)
#         self.out = nn.Linear(64, 2)
#     def forward(self, x):
#         for layer in self.layers:
#             x = self.drop(torch.relu(layer(x)))
#         return self.out(x)
# ```
#
# A module is two functions: one makes the parameters, one uses them. What PyTorch keeps
# in the object (parameters, the random state, `train()` or `eval()`) is an argument
# here.


# %%
def init(key):
    keys = random.split(key, 3)
    return {
        "layers": [nn.linear_init(keys[0], 2, 64), nn.linear_init(keys[1], 64, 64)],
        "out": nn.linear_init(keys[2], 64, 2),
    }


def net(params, x, key=None):
    """With a key the net drops features, as in training."""
    for number, layer in enumerate(params["layers"]):
        x = nn.relu(nn.linear(layer, x))
        if key is not None:
            x = nn.dropout(random.fold_in(key, number), x, 0.1)
    return nn.linear(params["out"], x)


params = init(random.key(0))
print(net(params, fnp.zeros((1, 2))))

# %% [markdown]
# ## The step
#
# ```text
# optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
# optimizer.zero_grad()
# loss = F.cross_entropy(net(x), y)
# loss.backward()
# torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
# optimizer.step()
# ```
#
# Nothing is recorded, so there is nothing to zero: `value_and_grad` returns the
# gradient. Clipping is a part of the optimizer, and the whole step is one compiled
# program (`torch.compile` would be its counterpart).

# %%
optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(1e-2))


def loss(params, x, y, key):
    scores = net(params, x, key)
    return optim.losses.softmax_cross_entropy_with_integer_labels(scores, y).mean()


@fxflow.jit
def step(params, memory, x, y, key):
    value, slope = fxflow.value_and_grad(loss)(params, x, y, key)
    updates, memory = optimizer.update(slope, memory, params)
    return optim.apply_updates(params, updates), memory, value


memory, losses = optimizer.init(params), []
for _ in range(100):
    for x, y in batches:
        key = random.fold_in(random.key(1), len(losses))
        params, memory, value = step(params, memory, x, y, key)
        losses.append(value)

# %% [markdown]
# ## Evaluation
#
# ```text
# net.eval()
# with torch.no_grad():
#     accuracy = (net(x).argmax(-1) == y).float().mean()
# ```

# %%
guesses = fnp.argmax(net(params, points[500:]), axis=-1)
accuracy = float(fnp.mean(guesses == label[500:]))

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.plot([float(value) for value in losses])
left.set(xlabel="step", ylabel="loss")
grid = fnp.stack(fnp.meshgrid(*2 * [fnp.linspace(-1.1, 1.1, 150)]), -1)
right.imshow(nn.softmax(net(params, grid))[..., 1], extent=[-1.1, 1.1, 1.1, -1.1])
right.scatter(*points.T, c=label, s=4, cmap="coolwarm")
plt.show()

# %% [markdown]
# ## Weights from PyTorch
#
# A `state_dict` is a dictionary of arrays with dotted names. PyTorch's `Linear` keeps
# its matrix transposed; the rest is a matter of names.
#
# ```text
# np.savez("net.npz", **{k: v.numpy() for k, v in net.state_dict().items()})
# ```


# %%
def from_state_dict(state):
    def linear(name):
        return {"w": fnp.asarray(state[f"{name}.weight"].T), "b": state[f"{name}.bias"]}

    return {
        "layers": [linear("layers.0"), linear("layers.1")],
        "out": linear("out"),
    }


# Stands for a file that PyTorch wrote: the names and shapes are those of `Net`.
given = {
    "layers.0": params["layers"][0],
    "layers.1": params["layers"][1],
    "out": params["out"],
}
file = Path(tempfile.mkdtemp()) / "net.npz"
np.savez(
    file,
    **{f"{name}.weight": np.asarray(layer["w"]).T for name, layer in given.items()},
    **{f"{name}.bias": np.asarray(layer["b"]) for name, layer in given.items()},
)
read = from_state_dict(np.load(file))
assert fnp.allclose(net(read, points), net(params, points), atol=1e-5)

# %% [markdown]
# ## Habits to change
#
# | in PyTorch | here |
# | --- | --- |
# | `x[mask] = 0` | `x = x.at[mask].set(0)`, or `fnp.where(mask, 0, x)` |
# | `if x.sum() > 0:` in `forward` | `lax.cond`, or `fnp.where` |
# | `for t in range(n):` over time | `lax.scan`: one compiled loop |
# | `for x in batch:` | `vmap` |
# | `torch.manual_seed(0)` | a key as an argument |
# | `print(x)` in `forward` | `fxflow.debug.print("{}", x)` |
# | `x.cuda()` | arrays are made on the GPU; `fxflow.device_put` moves them |
# | per-example gradients by hooks | `vmap(grad(loss), in_axes=(None, 0, 0))` |
#
# The last one, on this net: which examples pull hardest?


# %%
def one(params, x, y):
    return loss(params, x, y, None)


slopes = fxflow.vmap(fxflow.grad(one), (None, 0, 0))(params, points, label)
norms = fxflow.vmap(optim.global_norm)(slopes)
print("largest:", fnp.argsort(-norms)[:5], fnp.sort(norms)[-5:])

# %%
print(f"accuracy on new points: {accuracy:.0%}")
assert accuracy > 0.9
