"""k-means: k-means++, then Lloyd's iterations or mini-batches.

    clusters = fit(key, points, k=10)

Arthur and Vassilvitskii 2007 (k-means++, here with a few trials for each centre); Lloyd
1982; Sculley 2010 (mini-batches).
"""

import functools
import math
from typing import NamedTuple

import fxflow
import fxflow.numpy as fnp
from fxflow import Array, lax, ops, random


class Clusters(NamedTuple):
    """Centres `f32[k, d]`, and the sum of squared distances to the nearest one."""

    centres: Array
    inertia: Array


def distances(points: Array, centres: Array) -> Array:
    """Returns squared distances `f32[n, k]`, computed by one matrix product."""
    squares = (points**2).sum(1)[:, None] + (centres**2).sum(1)
    return fnp.maximum(squares - 2 * points @ centres.T, 0)


def seeds(key: Array, points: Array, k: int) -> Array:
    """Draws centres by k-means++: far points are more likely than near ones."""
    trials = 2 + int(math.log(k))
    first, rest = random.split(key)
    start = points[random.randint(first, (), 0, len(points))]
    nearest = distances(points, start[None])[:, 0]

    def choose(nearest: Array, key: Array) -> tuple[Array, Array]:
        # The best of a few candidates: the one that leaves the smallest distances.
        chosen = random.categorical(key, fnp.log(nearest), shape=(trials,))
        left = fnp.minimum(nearest[:, None], distances(points, points[chosen]))
        best = left.sum(0).argmin()
        return left[:, best], points[chosen[best]]

    _, others = lax.scan(choose, nearest, random.split(rest, k - 1))
    return fnp.concatenate([start[None], others])


def means(points: Array, labels: Array, centres: Array) -> Array:
    """Returns the mean of each cluster; an empty cluster keeps its centre."""
    k = len(centres)
    sums = ops.segment_sum(points, labels, k)
    counts = ops.segment_sum(fnp.ones(len(points)), labels, k)[:, None]
    return fnp.where(counts > 0, sums / fnp.maximum(counts, 1), centres)


def lloyd(points: Array, centres: Array, limit: int = 300) -> Clusters:
    """Moves centres to the means of their points until no point changes its centre."""

    def step(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        centres, labels, _, count = carry
        new = distances(points, centres).argmin(1)
        return means(points, new, centres), new, (new != labels).any(), count + 1

    def unfinished(carry: tuple[Array, ...]) -> Array:
        return carry[2] & (carry[3] < limit)

    labels = fnp.full(len(points), -1)
    start = centres, labels, fnp.asarray(True), fnp.asarray(0)
    centres = lax.while_loop(unfinished, step, start)[0]
    return Clusters(centres, distances(points, centres).min(1).sum())


@functools.partial(fxflow.jit, static_argnames=("k", "restarts"))
def fit(key: Array, points: Array, *, k: int, restarts: int = 10) -> Clusters:
    """Returns the best of several runs, which `vmap` makes one program."""
    keys = random.split(key, restarts)
    run = lambda key: lloyd(points, seeds(key, points, k))
    found = fxflow.vmap(run)(keys)
    best = found.inertia.argmin()
    return Clusters(found.centres[best], found.inertia[best])


@functools.partial(fxflow.jit, static_argnames=("k", "steps", "size", "restarts"))
def fit_batches(
    key: Array,
    points: Array,
    *,
    k: int,
    steps: int = 200,
    size: int = 512,
    restarts: int = 5,
) -> Clusters:
    """Uses mini-batches: a centre is the mean of all points assigned to it so far."""

    def run(key: Array) -> Clusters:
        begin, go = random.split(key)

        def step(
            carry: tuple[Array, Array], key: Array
        ) -> tuple[tuple[Array, Array], None]:
            centres, counts = carry
            batch = points[random.randint(key, (size,), 0, len(points))]
            labels = distances(batch, centres).argmin(1)
            new = ops.segment_sum(fnp.ones(size), labels, k)
            sums = ops.segment_sum(batch, labels, k)
            total = counts + new
            moved = (centres * counts[:, None] + sums) / fnp.maximum(total, 1)[:, None]
            return (fnp.where(total[:, None] > 0, moved, centres), total), None

        start = seeds(begin, points, k), fnp.zeros(k)
        (centres, _), _ = lax.scan(step, start, random.split(go, steps))
        return Clusters(centres, distances(points, centres).min(1).sum())

    found = fxflow.vmap(run)(random.split(key, restarts))
    best = found.inertia.argmin()
    return Clusters(found.centres[best], found.inertia[best])
