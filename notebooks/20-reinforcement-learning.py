# %% [markdown]
# # Reinforcement learning on a pure environment
#
# If the environment is a pure function, a whole episode is a `scan`, many episodes are
# a `vmap` of it, and learning is one compiled program: nothing returns to Python in
# between. Here a pole stands on a cart, and a policy learns to keep it upright by
# pushing the cart to the left and to the right.

# %%
import matplotlib.pyplot as plt
import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, optim, random

# %% [markdown]
# ## The environment
#
# `move` takes a state (place, speed, angle, angular speed) and an action (0 or 1), and
# returns the next state and whether the pole still stands. These are the equations of
# Barto, Sutton and Anderson (1983).


# %%
def move(state, action):
    _, speed, angle, turning = state
    force = fnp.where(action == 1, 10.0, -10.0)
    sin, cos = fnp.sin(angle), fnp.cos(angle)
    push = (force + 0.05 * turning**2 * sin) / 1.1
    bend = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
    pull = push - 0.05 * bend * cos / 1.1
    change = fnp.stack([speed, pull, turning, bend])
    state = state + 0.02 * change
    return state, (abs(state[0]) < 2.4) & (abs(state[2]) < 0.21)


def reset(key):
    return random.uniform(key, (4,), minval=-0.05, maxval=0.05)


print(move(reset(random.key(0)), 1))

# %% [markdown]
# ## A policy, and an episode
#
# The policy gives two scores, and the action is sampled. When the pole has fallen,
# the state stays as it is and later steps do not count: the shape of an episode must
# not depend on how it goes.

# %%
STEPS = 200


def init(key):
    first, second = random.split(key)
    return [nn.linear_init(first, 4, 32), nn.linear_init(second, 32, 2)]


def scores(params, state):
    return nn.linear(params[1], fnp.tanh(nn.linear(params[0], state)))


def episode(params, key):
    """Returns the states, the actions, and which steps count, of one episode."""
    first, *keys = random.split(key, STEPS + 1)

    def step(carry, key):
        state, stands = carry
        action = random.categorical(key, scores(params, state))
        moved, upright = move(state, action)
        after = fnp.where(stands, moved, state), stands & upright
        return after, (state, action, stands)

    return lax.scan(step, (reset(first), True), fnp.stack(keys))[1]


states, actions, counts = episode(init(random.key(1)), random.key(2))
print("an untrained policy keeps it up for", int(counts.sum()), "steps")


# %% [markdown]
# ## The policy gradient
#
# Increase the probability of actions that were followed by many steps, decrease it
# where fewer followed than on average. What followed is a sum from the end:
# `cumsum` of the reversed array. Advantages are numbers, not functions of the
# parameters: they come from episodes that `stop_gradient` cuts off.


# %%
def loss(params, key):
    play = fxflow.vmap(episode, (None, 0))
    states, actions, counts = lax.stop_gradient(play(params, random.split(key, 64)))
    rewards = counts.astype(float)

    def discounted(total, reward):
        total = reward + 0.98 * total
        return total, total

    _, followed = lax.scan(discounted, fnp.zeros(64), rewards.T, reverse=True)
    followed = followed.T
    mean = fnp.mean(followed, where=counts)
    deviation = fnp.std(followed, where=counts)
    advantage = (followed - mean) / (deviation + 1e-6)
    chances = nn.log_softmax(scores(params, states))
    chosen = fnp.take_along_axis(chances, actions[..., None], -1)[..., 0]
    return -fnp.mean(advantage * chosen, where=counts), rewards.sum(1).mean()


# %% [markdown]
# ## Training, as one program
#
# 150 updates of 64 episodes of up to 200 steps: two million moves in a `scan`. And
# because the program is a pure function of a key, `vmap` repeats the experiment with
# three keys, to show how much depends on chance.

# %%
optimizer = optim.adam(0.02)


@fxflow.jit
@fxflow.vmap
def learn(key):
    first, second = random.split(key)

    def update(state, key):
        params, memory = state
        slope, length = fxflow.grad(loss, has_aux=True)(params, key)
        updates, memory = optimizer.update(slope, memory, params)
        return (optim.apply_updates(params, updates), memory), length

    params = init(first)
    state = params, optimizer.init(params)
    (params, _), lengths = lax.scan(update, state, random.split(second, 150))
    return params, lengths


params, lengths = learn(random.split(random.key(3), 3))
plt.plot(lengths.T)
plt.xlabel("update")
plt.ylabel("steps until the pole falls")
_ = plt.title("one line for each key; 200 is the end of an episode")

# %% [markdown]
# ## Result
#
# The best of the three policies, which now takes the better action instead of drawing
# one, in 100 new episodes of 500 steps:

# %%
winner = int(lengths[:, -10:].mean(1).argmax())
best = fxflow.tree.map(lambda leaf: leaf[winner], params)


@fxflow.jit
@fxflow.vmap
def lasts(key):
    def step(carry, _):
        state, stands = carry
        state, upright = move(state, fnp.argmax(scores(best, state)))
        return (state, stands & upright), stands

    return lax.scan(step, (reset(key), True), length=500)[1].sum()


steps = np.asarray(lasts(random.split(random.key(9), 100)))
print(f"mean {steps.mean():.0f} of 500 steps, shortest {steps.min()}")
assert steps.mean() > 300
