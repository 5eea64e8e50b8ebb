"""A small network learns a picture: from coordinates to brightness."""

import matplotlib.pyplot as plt

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random

x, y = fnp.meshgrid(fnp.linspace(-1, 1, 60), fnp.linspace(-1, 1, 60))
target = fnp.sin(6 * fnp.hypot(x, y) + fnp.arctan2(y, x))
inputs = fnp.stack([x, y], -1)
keys = random.split(random.key(0), 2)
params = nn.linear_init(keys[0], 128, 64), nn.linear_init(keys[1], 64, 1)
optimizer = optim.adam(1e-2)
waves = 5 * random.normal(random.key(1), (2, 64))


def net(params):
    z = fnp.concatenate([fnp.sin(inputs @ waves), fnp.cos(inputs @ waves)], -1)
    return nn.linear(params[1], nn.gelu(nn.linear(params[0], z)))[..., 0]


@fxflow.jit
def train(params):
    def step(state, _):
        slope = fxflow.grad(lambda p: fnp.mean((net(p) - target) ** 2))(state[0])
        updates, memory = optimizer.update(slope, state[1])
        return (optim.apply_updates(state[0], updates), memory), None

    return lax.scan(step, (params, optimizer.init(params)), length=150)[0][0]


plt.imshow(fnp.concatenate([target, net(train(params))], 1), cmap="gray")
