"""Checks of every optimizer: optax's numbers, a minimum, preserved types."""

import json
from typing import Any

import numpy as np

import fxflow
from fxflow import lax, optim, tree
from tests.optim.golden import DATA, GRADIENTS, PARAMS
from tests.optim.runs import CALLS, FILE, make, trained

OPTIMIZERS = DATA["optimizers"]
RECORDED = json.loads(FILE.read_text())
DTYPES = ["float32", "bfloat16", "float64"]


def recorded(module: Any) -> list[str]:
    """Returns the recorded runs of the optimizers of a module."""
    return [
        name
        for name, run in OPTIMIZERS.items()
        if hasattr(module, run["call"].partition("(")[0].removeprefix("optim."))
    ]


def updated(tx: Any, params: Any, state: Any, gradients: Any) -> tuple[Any, Any]:
    """Returns parameters and state after one update."""
    updates, state = tx.update(gradients, state, params)
    return optim.apply_updates(params, updates), state


def matches_optax(name: str) -> None:
    """Checks the parameters after several updates."""
    tx = eval(OPTIMIZERS[name]["call"], {"optim": optim})
    params, state = PARAMS, tx.init(PARAMS)
    step = fxflow.jit(lambda p, s, g: updated(tx, p, s, g))
    for gradients in GRADIENTS:
        params, state = step(params, state, gradients)
    for part, want in OPTIMIZERS[name]["params"].items():
        have = np.asarray(params[part]).ravel()
        np.testing.assert_allclose(have, want, rtol=2e-5, atol=1e-5)


def finds_the_minimum(tx: Any) -> None:
    """Checks that 400 steps minimize a quadratic function."""
    target = np.array([1.0, -2.0, 0.5], np.float32)
    params = {"x": np.zeros(3, np.float32) + np.float32(0.1)}

    def loss(params: Any) -> Any:
        return ((params["x"] - target) ** 2).sum()

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        value, gradients = fxflow.value_and_grad(loss)(params)
        return updated(tx, params, state, gradients), value

    # scan requires that the state keeps its types.
    start = params, tx.init(params)
    (params, _), values = fxflow.jit(lambda c: lax.scan(step, c, length=400))(start)
    assert float(loss(params)) < 0.05 * float(np.asarray(values)[0])


def preserves_types(tx: Any, dtype: str) -> None:
    """Checks that updates and states keep their types."""
    params = [fxflow.numpy.ones((2, 3), dtype), fxflow.numpy.ones((), dtype)]

    def types(tree_of: Any) -> list[Any]:
        return [fxflow.typeof(leaf) for leaf in tree.leaves(tree_of)]

    first = tx.init(params)
    updates, second = tx.update(params, first, params)
    assert types(updates) == types(params)
    assert types(second) == types(first)
    assert types(optim.apply_updates(params, updates)) == types(params)


def runs(module: Any) -> list[str]:
    """Returns the runs on a loss of the optimizers of a module, under optax's names."""
    own = {
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
    }
    return [name for name in CALLS if name.partition("-")[0] in own]


def matches_optax_on_a_loss(name: str) -> None:
    """Checks the parameters after several updates by the gradients of a loss."""
    # Line searches compile in any case; other runs are faster without jit.
    jit = [fxflow.jit] if "search" in name or "lbfgs" in name else []
    params = trained(make(CALLS[name], optim), optim, fxflow.value_and_grad, *jit)
    for part, want in RECORDED[name].items():
        have = np.asarray(params[part]).ravel()
        np.testing.assert_allclose(have, want, rtol=5e-5, atol=5e-5)


def compiles_and_keeps_types(tx: Any) -> None:
    """Checks that a step keeps its types in a scan, in bfloat16, and under vmap."""
    tx = optim.with_extra_args_support(tx)

    def loss(params: Any) -> Any:
        return ((params["x"] - 1) ** 2).sum() + params["s"] ** 2

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        value, grad = fxflow.value_and_grad(loss)(params)
        updates, state = tx.update(
            grad, state, params, value=value, grad=grad, value_fn=loss
        )
        return (optim.apply_updates(params, updates), state), value

    def run(x: Any) -> Any:
        params = {"x": x, "s": x[0]}
        return lax.scan(step, (params, tx.init(params)), length=3)[1]

    xs = fxflow.numpy.ones((2, 3), "bfloat16") * 3
    values = fxflow.jit(fxflow.vmap(run))(xs)
    assert values.shape == (2, 3)
    assert np.isfinite(np.asarray(values, np.float32)).all()
