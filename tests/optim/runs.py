"""Runs of optimizers on one loss, the same for fxflow and optax.

`python tests/optim/runs.py`, with optax 0.2.8 installed, writes its results: the
parameters after `STEPS` updates, for each call. The loss uses only operators, so that
it is the same function for both libraries.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

STEPS = 12
FILE = Path(__file__).parent / "data" / "optax-0.2.8-runs.json"

_rng = np.random.default_rng(7)
X = _rng.normal(size=(6, 4)).astype(np.float32)
Y = _rng.normal(size=(6, 3)).astype(np.float32)
PARAMS = {
    "w": _rng.normal(size=(4, 3)).astype(np.float32) / 2,
    "b": _rng.normal(size=3).astype(np.float32) / 2,
    "s": np.array([0.7], np.float32),
}


def loss(params: Any) -> Any:
    """A smooth function of a matrix and two vectors, with its minimum at 0.2."""
    error = X @ params["w"] + params["b"] - Y
    quartic = (error * error * error * error).sum() * 0.02
    return (
        (error * error).sum() * 0.1 + quartic + ((params["s"] - 1.0) ** 2).sum() + 0.2
    )


#: Calls, by the name of a function of the module under test, and a variant of it.
CALLS: dict[str, str] = {
    "lookahead": "lookahead(optim.sgd(0.1), 3, 0.5)",
    "lookahead-reset": "lookahead(optim.adam(0.1), 4, 0.3, reset_state=True)",
    "adafactor": "adafactor(0.1, min_dim_size_to_factor=2)",
    "adafactor-whole": "adafactor(0.1, factored=False, clipping_threshold=None)",
    "adafactor-all": (
        "adafactor(0.1, 2, 0.7, 0, False, 0.5, momentum=0.8, weight_decay_rate=0.01)"
    ),
    "adafactor-relative": "adafactor(min_dim_size_to_factor=2)",
    "scale_by_factored_rms": (
        "chain(optim.scale_by_factored_rms(min_dim_size_to_factor=3), optim.scale(-.1))"
    ),
    "sm3": "sm3(0.1)",
    "scale_by_sm3": "chain(optim.scale_by_sm3(0.8, 0.9, 1e-6), optim.scale(-0.1))",
    "novograd": "novograd(0.05)",
    "novograd-decay": "novograd(0.05, 0.8, 0.5, weight_decay=0.1)",
    "fromage": "fromage(0.05)",
    "scale_by_param_block_norm": (
        "chain(optim.scale_by_param_block_norm(), optim.scale(-0.03))"
    ),
    "scale_by_distance_over_gradients": (
        "chain(optim.scale_by_distance_over_gradients(0.1), optim.scale(-1.0))"
    ),
    "rprop": "rprop(0.05)",
    "rprop-bounds": "rprop(0.1, 0.4, 1.5, 0.01, 0.2)",
    "signum": "signum(0.05)",
    "optimistic_gradient_descent": "optimistic_gradient_descent(0.05, 0.7, 0.5)",
    "optimistic_adam": "optimistic_adam(0.05, 0.02)",
    "optimistic_adam_v2": "optimistic_adam_v2(0.05, alpha=0.9, beta=0.5)",
    "polyak_sgd": "polyak_sgd(f_min=0.2)",
    "polyak_sgd-plus": "polyak_sgd(0.5, 0.7, 0.3, 0.1, 'sps+')",
    "adan": "adan(0.05)",
    "lbfgs": "lbfgs()",
    "lbfgs-search": (
        "lbfgs(0.9, 3, False, optim.scale_by_backtracking_linesearch(9, 0.1, 0.5))"
    ),
    "scale_by_lbfgs": "chain(optim.scale_by_lbfgs(4), optim.scale(-0.2))",
    "scale_by_zoom_linesearch": (
        "chain(optim.sgd(0.01), optim.scale_by_zoom_linesearch(9))"
    ),
    "adan-decay": "adan(0.05, 0.9, 0.8, 0.95, weight_decay=0.1)",
    "dadapt_adamw": "contrib.dadapt_adamw(1.0, estim_lr0=0.01, weight_decay=0.1)",
    "prodigy": "contrib.prodigy(1.0, estim_lr0=0.01, weight_decay=0.1)",
    "prodigy-warm": "contrib.prodigy(0.5, estim_lr0=0.02, safeguard_warmup=True)",
    "dog": "contrib.dog(1.0, ('distance', 0.1), weight_decay=0.1)",
    "dog-heuristic": "contrib.dog(1.0, ('heuristic', 0.05))",
    "dog-rate": "contrib.dog(1.0, ('learning_rate', 0.05))",
    "dowg": "contrib.dowg(1.0, 0.01)",
    "mechanize": "contrib.mechanize(optim.adam(0.1), s_init=0.1)",
    "momo": "contrib.momo(1.0, weight_decay=0.1)",
    "momo-bound": "contrib.momo(1.0, 0.8, 5.0, adapt_lower_bound=True)",
    "momo_adam": "contrib.momo_adam(0.2, weight_decay=0.1)",
    "momo_adam-bound": "contrib.momo_adam(0.5, lower_bound=5., adapt_lower_bound=True)",
    "momo-lowered": "contrib.momo(0.5, 0.8, -1.0, 0.1, True)",
    "momo_adam-lowered": ("contrib.momo_adam(0.1, 0.8, 0.95, 1e-3, -1.0, 0.1, True)"),
    "scale_by_cocob": "contrib.scale_by_cocob(5.0)",
    "cocob": "contrib.cocob(alpha=5.0, weight_decay=0.1)",
    "reduce_on_plateau": (
        "chain(optim.adam(0.9), optim.contrib.reduce_on_plateau(0.5, 1, cooldown=1))"
    ),
    "reduce_on_plateau-mean": (
        "chain(optim.adam(0.9), optim.contrib.reduce_on_plateau(0.5, 1, "
        "accumulation_size=2, min_scale=0.3))"
    ),
    "adopt": "contrib.adopt(0.1)",
    "adopt-nesterov": "contrib.adopt(0.1, nesterov=True, use_clipping=False)",
    "acprop": "contrib.acprop(0.01, weight_decay=0.1)",
    "ademamix": "contrib.ademamix(0.1, b3=0.99, weight_decay=0.1)",
    "simplified_ademamix": "contrib.simplified_ademamix(0.01, alpha=0.5)",
    "madgrad": "contrib.madgrad(0.1, weight_decay=0.1)",
    "normalize": "chain(optim.contrib.normalize(), optim.sgd(0.1))",
    "schedule_free": "contrib.schedule_free(optim.adam(0.1, b1=0.0), 0.1)",
    "schedule_free_sgd": "contrib.schedule_free_sgd(0.1, weight_decay=0.1)",
    "schedule_free_adamw": "contrib.schedule_free_adamw(0.1, weight_decay=0.1)",
    "sam": (
        "contrib.sam(optim.sgd(0.1), optim.chain(optim.contrib.normalize(), "
        "optim.sgd(0.05)), 3)"
    ),
    "muon": "contrib.muon(0.1, weight_decay=0.1, adam_weight_decay=0.1)",
    "muon-adaptive": "contrib.muon(0.01, nesterov=False, adaptive=True, beta=0.8)",
    "muon-schatten": (
        "contrib.muon(0.1, preconditioning='schatten', consistent_rms=0.2, "
        "adam_learning_rate=0.01)"
    ),
    "muon-spectral": "contrib.muon(0.1, preconditioning='spectral')",
    "muon-aol": "contrib.muon(0.1, 'dion', preconditioning='aol')",
    "galore": "contrib.galore(0.1, 2, 3, 0.5, weight_decay=0.1)",
    "scale_by_galore": (
        "chain(optim.contrib.scale_by_galore(2, 4, "
        "base_optimizer=optim.trace(0.9)), optim.scale(-0.02))"
    ),
    "sophia": "contrib.sophia(0.05, update_interval=3)",
}


def make(call: str, optim: Any) -> Any:
    """Makes the optimizer of a call; `optim` is its module."""
    return eval("optim." + call, {"optim": optim})


def trained(tx: Any, optim: Any, value_and_grad: Any, jit: Any = lambda f: f) -> Any:
    """Returns the parameters after several updates."""
    params: Any = PARAMS
    slow = "Lookahead" in getattr(tx.init, "__qualname__", "").title()
    if slow:
        params = optim.LookaheadParams.init_synced(params)
    # optax's `sam` takes no extra arguments.
    looks = not getattr(tx.update, "__qualname__", "").startswith("sam.")
    sees_loss = "hessian_fn_state" in repr(tx.init(params))
    state = tx.init(params)
    tx = optim.with_extra_args_support(tx)

    @jit
    def step(params: Any, state: Any) -> Any:
        fast = params.fast if slow else params
        value, grad = value_and_grad(loss)(fast)
        extra = {"value": value, "grad": grad, "value_fn": loss} if looks else {}
        if sees_loss:
            extra["obj_fn"] = loss
        updates, state = tx.update(grad, state, params, **extra)
        return optim.apply_updates(params, updates), state

    for _ in range(STEPS):
        params, state = step(params, state)
    return params.slow if slow else params


def main() -> None:
    """Writes optax's results."""
    import jax
    import optax
    import optax.contrib

    assert optax.__version__ == "0.2.8", optax.__version__
    found = {}
    for name, call in CALLS.items():
        params = trained(make(call, optax), optax, jax.value_and_grad)
        found[name] = {k: np.asarray(v).ravel().tolist() for k, v in params.items()}
        for values in found[name].values():
            values[:] = [float(f"{x:.6g}") for x in values]
    lines = [f"{json.dumps(n)}: {json.dumps(v)}" for n, v in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
