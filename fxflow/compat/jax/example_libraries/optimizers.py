"""`jax.example_libraries.optimizers`: optimizers as three functions.

Each returns `(init, update, get_params)`: `state = init(params)`,
`state = update(step, gradient, state)`, `params = get_params(state)`. New programs take
`fxflow.optim`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.core import tree

# For annotations.
Array = Any
Params = Any
State = Any
Updates = Any
Step = int
Schedule = Callable[[Any], Any]


@dataclass(frozen=True)
class OptimizerState:
    """The states of all leaves, and the structures to put them together again."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


tree.register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, children: OptimizerState(children[0], *aux),
)


InitFn = Callable[[Params], OptimizerState]
UpdateFn = Callable[[Step, Updates, OptimizerState], OptimizerState]
ParamsFn = Callable[[OptimizerState], Params]


class Optimizer(NamedTuple):
    """Three functions; see the module."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def optimizer(maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Makes an optimizer of pytrees of one of single arrays.

    Args:
      maker: returns `(init, update, get_params)` for one array.

    Returns:
      The same for pytrees.
    """

    @functools.wraps(maker)
    def tree_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = maker(*args, **kwargs)

        def pack(states: Any, treedef: Any) -> OptimizerState:
            flat = [tree.flatten(state) for state in states]
            return OptimizerState(
                tuple(tuple(leaves) for leaves, _ in flat),
                treedef,
                tuple(structure for _, structure in flat),
            )

        def unpack(state: OptimizerState) -> list[Any]:
            pairs = zip(state.subtree_defs, state.packed_state, strict=True)
            return [structure.unflatten(leaves) for structure, leaves in pairs]

        def tree_init(params: Any) -> OptimizerState:
            leaves, treedef = tree.flatten(params)
            return pack([init(leaf) for leaf in leaves], treedef)

        def tree_update(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, treedef = tree.flatten(grads)
            if treedef != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did "
                    f"not match the parameter tree: {state.tree_def} and {treedef}"
                )
            pairs = zip(leaves, unpack(state), strict=True)
            return pack([update(i, g, s) for g, s in pairs], treedef)

        def tree_params(state: OptimizerState) -> Any:
            values = [get_params(leaf_state) for leaf_state in unpack(state)]
            return state.tree_def.unflatten(values)

        return Optimizer(tree_init, tree_update, tree_params)

    return tree_maker


# -- schedules -------------------------------------------------------------------------


def constant(step_size: Any) -> Schedule:
    """Returns a schedule that is always `step_size`."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Returns `step_size * decay_rate ** (i / decay_steps)`."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False
) -> Schedule:
    """Returns `step_size / (1 + decay_rate * i / decay_steps)`."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * fnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0
) -> Schedule:
    """Returns a schedule from `step_size` to `final_step_size` in `decay_steps`."""

    def schedule(i: Any) -> Any:
        left = 1 - fnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """Returns a schedule that is `values[k]` from step `boundaries[k - 1]` on.

    Raises:
      ValueError: there is not one value more than boundaries, which have one axis.
    """
    edges, steps = fnp.asarray(boundaries), fnp.asarray(values)
    if not edges.ndim == steps.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if edges.shape[0] != steps.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: steps[fnp.sum(i > edges)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """Returns a schedule of a number or a schedule.

    Raises:
      TypeError: it is neither.
    """
    if callable(scalar_or_schedule):
        schedule: Schedule = scalar_or_schedule
        return schedule
    if fnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(type(scalar_or_schedule))


# -- optimizers ------------------------------------------------------------------------


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent."""
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Any, mass: float) -> Any:
    """Gradient descent with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return (lambda x: (x, fnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def nesterov(step_size: Any, mass: float) -> Any:
    """Gradient descent with Nesterov's momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return (lambda x: (x, fnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def adagrad(step_size: Any, momentum: float = 0.9) -> Any:
    """Adagrad with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, average = state
        squares = squares + fnp.square(g)
        scale = fnp.where(squares > 0, 1.0 / fnp.sqrt(squares), 0.0)
        average = (1.0 - momentum) * (g * scale) + momentum * average
        return x - rate(i) * average, squares, average

    def init(x: Any) -> Any:
        return x, fnp.zeros_like(x), fnp.zeros_like(x)

    return init, update, (lambda state: state[0])


@optimizer
def rmsprop(step_size: Any, gamma: float = 0.9, eps: float = 1e-8) -> Any:
    """RMSProp."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average = state
        average = average * gamma + fnp.square(g) * (1.0 - gamma)
        return x - rate(i) * g / fnp.sqrt(average + eps), average

    return (lambda x: (x, fnp.zeros_like(x))), update, (lambda state: state[0])


@optimizer
def rmsprop_momentum(
    step_size: Any, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Any:
    """RMSProp with momentum."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average, velocity = state
        average = average * gamma + fnp.square(g) * (1.0 - gamma)
        velocity = momentum * velocity + rate(i) * g / fnp.sqrt(average + eps)
        return x - velocity, average, velocity

    def init(x: Any) -> Any:
        return x, fnp.zeros_like(x), fnp.zeros_like(x)

    return init, update, (lambda state: state[0])


@optimizer
def adam(step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Any:
    """Adam."""
    rate = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, v = state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * fnp.square(g) + b2 * v
        m_hat = m / (1 - fnp.asarray(b1, m.dtype) ** (i + 1))
        v_hat = v / (1 - fnp.asarray(b2, m.dtype) ** (i + 1))
        return x - rate(i) * m_hat / (fnp.sqrt(v_hat) + eps), m, v

    def init(x: Any) -> Any:
        return x, fnp.zeros_like(x), fnp.zeros_like(x)

    return init, update, (lambda state: state[0])


@optimizer
def adamax(
    step_size: Any, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8
) -> Any:
    """AdaMax (Kingma, Ba 2014)."""
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        return x, fnp.zeros_like(x), fnp.zeros_like(x)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, top = state
        mean = (1 - b1) * g + b1 * mean
        top = fnp.maximum(b2 * top, fnp.abs(g))
        x = x - rate(i) / (1 - b1 ** (i + 1)) * mean / (top + eps)
        return x, mean, top

    return init, update, (lambda state: state[0])


@optimizer
def sm3(step_size: Any, momentum: float = 0.9) -> Any:
    """SM3 (Anil, Gupta, Koren, Singer 2019) with momentum."""
    rate = make_schedule(step_size)

    def along(i: int, ndim: int) -> tuple[Any, ...]:
        return (None,) * i + (slice(None),) + (None,) * (ndim - i - 1)

    def init(x: Any) -> Any:
        return x, fnp.zeros_like(x), tuple(fnp.zeros(n, x.dtype) for n in x.shape)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, average, covers = state
        parts = [v[along(axis, x.ndim)] for axis, v in enumerate(covers)]
        accumulated = functools.reduce(fnp.minimum, parts) + fnp.square(g)
        scale = fnp.where(accumulated > 0, 1.0 / fnp.sqrt(accumulated), 0.0)
        average = (1.0 - momentum) * (g * scale) + momentum * average
        others = [
            tuple(a for a in range(x.ndim) if a != axis) for axis in range(x.ndim)
        ]
        return (
            x - rate(i) * average,
            average,
            tuple(fnp.max(accumulated, axis=axes) for axes in others),
        )

    return init, update, (lambda state: state[0])


# -- norms -----------------------------------------------------------------------------


def l2_norm(values: Any) -> Any:
    """Returns the norm of all leaves as one vector."""
    leaves = tree.leaves(values)
    return fnp.sqrt(sum(fnp.vdot(x, x) for x in leaves))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """Returns gradients whose norm is at most `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree.map(
        lambda g: fnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree
    )


@dataclass(frozen=True)
class JoinPoint:
    """Marks where the state of one parameter begins, in a state that is unpacked."""

    subtree: Any


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Returns a state as a pytree in the structure of the parameters, for saving."""
    pairs = zip(opt_state.subtree_defs, opt_state.packed_state, strict=True)
    points = [JoinPoint(structure.unflatten(leaves)) for structure, leaves in pairs]
    return opt_state.tree_def.unflatten(points)


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Returns the state of which `unpack_optimizer_state` made a pytree."""
    points, treedef = tree.flatten(marked_pytree)
    flat = [tree.flatten(point.subtree) for point in points]
    return OptimizerState(
        tuple(tuple(leaves) for leaves, _ in flat),
        treedef,
        tuple(structure for _, structure in flat),
    )


__all__ = [
    "JoinPoint",
    "Optimizer",
    "OptimizerState",
    "adagrad",
    "adam",
    "adamax",
    "clip_grads",
    "constant",
    "exponential_decay",
    "inverse_time_decay",
    "l2_norm",
    "make_schedule",
    "momentum",
    "nesterov",
    "optimizer",
    "pack_optimizer_state",
    "piecewise_constant",
    "polynomial_decay",
    "rmsprop",
    "rmsprop_momentum",
    "sgd",
    "sm3",
    "unpack_optimizer_state",
]

listen(globals())
