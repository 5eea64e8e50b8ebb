"""Calls of optimizers and transformations, for tests of all of them.

`runs.py` has the calls that are compared with optax; these are the others, and calls
with ε = 0, which may divide by 0.
"""

from __future__ import annotations

from typing import Any

from fxflow import optim
from tests.optim import runs

#: What needs the loss as a function, or parameters of another kind.
_OTHERS = {
    "lookahead",
    "lookahead-reset",
    "lbfgs",
    "lbfgs-search",
    "scale_by_zoom_linesearch",
    "sophia",
}

_RATES = (
    "adabelief adadelta adagrad adam adamax adamaxw adamw amsgrad ftrl lamb lars lion "
    "momentum nadam nadamw nesterov radam rmsprop rowwise_adagrad sgd sign_sgd yogi"
)

CALLS: dict[str, str] = {
    **{name: call for name, call in runs.CALLS.items() if name not in _OTHERS},
    **{name: f"{name}(0.1)" for name in _RATES.split()},
    "rmsprop-centered": "rmsprop(0.1, centered=True)",
    "ema": "ema(0.9)",
    "scale_by_lion": "scale_by_lion(mode='smooth')",
    "scale_by_stddev": "scale_by_stddev(bias_correction=True)",
    "add_decayed_weights": "add_decayed_weights(0.1)",
    "centralize": "centralize()",
    "clip_by_global_norm": "clip_by_global_norm(1.0)",
    "clip_by_block_rms": "clip_by_block_rms(0.5)",
    "adaptive_grad_clip": "adaptive_grad_clip(0.1)",
    "scale": "scale(1e-3)",
    "scale_by_schedule": "scale_by_schedule(lambda count: 1.0 / (1 + count))",
}

#: With ε = 0, or a largest norm of 0.
AT_ZERO: dict[str, str] = {
    "adabelief": "adabelief(0.1, eps=0.0, eps_root=0.0)",
    "adadelta": "adadelta(eps=0.0)",
    "adafactor": "adafactor(0.1, 2, eps=0.0)",
    "adagrad": "adagrad(0.1, 0.0, 0.0)",
    "adam": "adam(0.1, eps=0.0)",
    "adamax": "adamax(0.1, eps=0.0)",
    "adan": "adan(0.1, eps=0.0, eps_root=0.0)",
    "adaptive_grad_clip": "adaptive_grad_clip(0.1, 0.0)",
    "amsgrad": "amsgrad(0.1, eps=0.0)",
    "clip_by_block_rms": "clip_by_block_rms(0.0)",
    "clip_by_global_norm": "clip_by_global_norm(0.0)",
    "fromage": "fromage(0.1, 0.0)",
    "ftrl": "ftrl(0.1, beta=0.0)",
    "lamb": "lamb(0.1, eps=0.0)",
    "normalize_by_update_norm": "normalize_by_update_norm(eps=0.0)",
    "novograd": "novograd(0.1, eps=0.0)",
    "radam": "radam(0.1, eps=0.0)",
    "rmsprop": "rmsprop(0.1, eps=0.0)",
    "rmsprop-outside": "rmsprop(0.1, eps=0.0, eps_in_sqrt=False)",
    "rowwise_adagrad": "rowwise_adagrad(0.1, 0.0, 0.0)",
    "scale_by_distance_over_gradients": "scale_by_distance_over_gradients(0.0, 0.0)",
    "scale_by_param_block_norm": "scale_by_param_block_norm(0.0)",
    "scale_by_param_block_rms": "scale_by_param_block_rms(0.0)",
    "scale_by_sm3": "scale_by_sm3(eps=0.0)",
    "scale_by_stddev": "scale_by_stddev(eps=0.0)",
    "scale_by_yogi": "scale_by_yogi(eps=0.0, initial_accumulator_value=0.0)",
    "acprop": "contrib.acprop(0.1, eps=0.0, eps_root=0.0)",
    "ademamix": "contrib.ademamix(0.1, eps=0.0)",
    "adopt": "contrib.adopt(0.1, eps=0.0)",
    "cocob": "contrib.cocob(eps=0.0)",
    "dadapt_adamw": "contrib.dadapt_adamw(eps=0.0)",
    "dog": "contrib.dog(1.0, ('heuristic', 1e-6), eps=0.0)",
    "dowg": "contrib.dowg(eps=0.0)",
    "madgrad": "contrib.madgrad(0.1, eps=0.0)",
    "mechanize": "contrib.mechanize(optim.sgd(1.0), eps=0.0)",
    "momo_adam": "contrib.momo_adam(eps=0.0)",
    "muon": "contrib.muon(0.1, eps=0.0)",
    "muon-aol": "contrib.muon(0.1, eps=0.0, preconditioning='aol')",
    "muon-schatten": "contrib.muon(0.1, eps=0.0, preconditioning='schatten')",
    "prodigy": "contrib.prodigy(eps=0.0)",
}


def make(call: str) -> optim.GradientTransformationExtraArgs:
    """Makes the transformation of a call."""
    return optim.with_extra_args_support(runs.make(call, optim))


def updated(tx: Any, gradients: Any, params: Any, steps: int) -> Any:
    """Returns the last updates of several steps with the same gradients."""
    state, updates = tx.init(params), gradients
    for _ in range(steps):
        updates, state = tx.update(gradients, state, params, value=1.0)
        params = optim.apply_updates(params, updates)
    return updates
