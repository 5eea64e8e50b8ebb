"""Bayesian linear regression, by Hamiltonian Monte Carlo and by variational inference.

    y ~ normal(x w + b, sigma),    w ~ normal(0, tau),    tau, sigma ~ half Cauchy

`sample` draws from the posterior of (w, b, log tau, log sigma); `approximate` finds the
normal distribution nearest to it. A prediction needs only the means of w and b.

Duane et al. 1987, Neal 2011 (HMC); Hoffman and Gelman 2014 (the step size, by dual
averaging); Kucukelbir et al. 2017 (variational inference by gradients).
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, optim, random


class Draw(NamedTuple):
    """One set of parameters."""

    w: Array
    b: Array
    log_tau: Array
    log_sigma: Array


def log_density(draw: Draw, x: Array, y: Array) -> Array:
    """Returns the logarithm of the posterior density, up to a constant."""
    tau, sigma = fnp.exp(draw.log_tau), fnp.exp(draw.log_sigma)
    errors = (y - x @ draw.w - draw.b) / sigma
    likelihood = -0.5 * (errors**2).sum() - len(y) * draw.log_sigma
    prior = -0.5 * ((draw.w / tau) ** 2).sum() - len(draw.w) * draw.log_tau
    # Half Cauchy priors of tau and sigma, as densities of their logarithms.
    scales = sum(
        log - fnp.log1p(fnp.exp(2 * log)) for log in (draw.log_tau, draw.log_sigma)
    )
    return likelihood + prior + scales - 0.5 * draw.b**2


def start(x: Array) -> Draw:
    """Returns the starting point of both methods: zeros."""
    return Draw(fnp.zeros(x.shape[1]), *(fnp.zeros(()) for _ in range(3)))


# -- Hamiltonian Monte Carlo ----------------------------------------------------------


class Chain(NamedTuple):
    """The state of a chain; the last four fields are for dual averaging."""

    at: Draw
    step: Array
    mean_log_step: Array
    error: Array
    count: Array


def transition(
    key: Array, at: Draw, density: Callable[[Draw], Array], step: Array, length: int
) -> tuple[Draw, Array]:
    """Runs one step of HMC; returns its end and its probability of acceptance."""
    kick, choice = random.split(key)
    momentum = optim.tree.random_like(kick, at)
    slope = fxflow.grad(density)

    def energy(at: Draw, momentum: Draw) -> Array:
        return -density(at) + 0.5 * optim.tree.norm(momentum, squared=True)

    def leap(carry: tuple[Draw, Draw], _: None) -> tuple[tuple[Draw, Draw], None]:
        at, momentum = carry
        momentum = optim.tree.add_scale(momentum, 0.5 * step, slope(at))
        at = optim.tree.add_scale(at, step, momentum)
        momentum = optim.tree.add_scale(momentum, 0.5 * step, slope(at))
        return (at, momentum), None

    (end, last), _ = lax.scan(leap, (at, momentum), length=length)
    change = energy(at, momentum) - energy(end, last)
    chance = fnp.exp(fnp.minimum(fnp.where(fnp.isnan(change), -fnp.inf, change), 0.0))
    taken = random.uniform(choice) < chance
    return optim.tree.where(taken, end, at), chance


@functools.partial(
    fxflow.jit, static_argnames=("chains", "warmup", "draws", "length", "target")
)
def sample(
    key: Array,
    x: Array,
    y: Array,
    *,
    chains: int = 4,
    warmup: int = 500,
    draws: int = 500,
    length: int = 16,
    target: float = 0.8,
) -> tuple[Draw, Array]:
    """Returns draws `[chains, draws, …]`, and the rate of acceptance."""
    density = lambda at: log_density(at, x, y)

    def adapt(chain: Chain, key: Array) -> tuple[Chain, None]:
        at, chance = transition(key, chain.at, density, chain.step, length)
        count = chain.count + 1
        error = chain.error + (target - chance - chain.error) / (count + 10)
        log_step = fnp.log(0.5) - fnp.sqrt(count) / 0.05 * error
        weight = count**-0.75
        mean = weight * log_step + (1 - weight) * chain.mean_log_step
        return Chain(at, fnp.exp(log_step), mean, error, count), None

    def run(key: Array) -> tuple[Draw, Array]:
        first, warm, go = random.split(key, 3)
        begin = optim.tree.scale(0.1, optim.tree.random_like(first, start(x)))
        zero = fnp.zeros(())
        chain = Chain(begin, fnp.asarray(0.05), zero, zero, zero)
        chain, _ = lax.scan(adapt, chain, random.split(warm, warmup))
        step = fnp.exp(chain.mean_log_step)

        def draw(at: Draw, key: Array) -> tuple[Draw, tuple[Draw, Array]]:
            at, chance = transition(key, at, density, step, length)
            return at, (at, chance)

        _, (found, chances) = lax.scan(draw, chain.at, random.split(go, draws))
        return found, chances.mean()

    found, rates = fxflow.vmap(run)(random.split(key, chains))
    return found, rates.mean()


def spread(draws: Array) -> Array:
    """Returns Gelman and Rubin's R of each number: near 1 where chains agree."""
    n = draws.shape[1]
    within = draws.var(1, ddof=1).mean(0)
    between = draws.mean(1).var(0, ddof=1)
    return fnp.sqrt((n - 1) / n + between / within)


# -- variational inference ------------------------------------------------------------


@functools.partial(fxflow.jit, static_argnames=("steps", "samples"))
def approximate(
    key: Array, x: Array, y: Array, *, steps: int = 1500, samples: int = 8
) -> tuple[Draw, Draw]:
    """Returns the mean and deviations of a normal distribution near the posterior."""
    tx = optim.adam(optim.cosine_decay_schedule(0.05, steps))

    def bound(params: tuple[Draw, Draw], key: Array) -> Array:
        mean, log_scale = params

        def one(key: Array) -> Array:
            noise = optim.tree.random_like(key, mean)
            scales = fxflow.tree.map(fnp.exp, log_scale)
            at = optim.tree.add(mean, optim.tree.mul(scales, noise))
            return log_density(at, x, y)

        entropy = optim.tree.sum(log_scale)
        return -(fxflow.vmap(one)(random.split(key, samples)).mean() + entropy)

    def step(carry: tuple, key: Array) -> tuple[tuple, Array]:
        params, state = carry
        value, grad = fxflow.value_and_grad(bound)(params, key)
        updates, state = tx.update(grad, state, params)
        return (optim.apply_updates(params, updates), state), value

    params = start(x), optim.tree.full_like(start(x), -2.0)
    (params, _), _ = lax.scan(step, (params, tx.init(params)), random.split(key, steps))
    return params[0], fxflow.tree.map(fnp.exp, params[1])
