"""Optimizers: pure pairs of `init` and `update` that compose.

optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-3))
state = optimizer.init(params)
updates, state = optimizer.update(gradients, state, params)
params = optim.apply_updates(params, updates)
"""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.optim import losses
from fxflow.optim.adams import (
    adabelief, adam, adamax, adamaxw, adamw, amsgrad, lamb, nadam, nadamw, radam, yogi,
)
from fxflow.optim.base import (
    EmptyState, GradientTransformation, GradientTransformationExtraArgs, apply_updates,
    chain, global_norm, identity, named_chain, set_to_zero, stateless,
    with_extra_args_support,
)
from fxflow.optim.clipping import (
    adaptive_grad_clip, clip, clip_by_block_rms, clip_by_global_norm,
)
from fxflow.optim.descents import (
    adadelta, adagrad, lars, lion, momentum, nesterov, noisy_sgd, rmsprop, sgd,
    sign_sgd,
)
from fxflow.optim.masking import (
    MaskedNode, MaskedState, PartitionState, masked, multi_transform,
)
from fxflow.optim.moments import (
    EmaState, ScaleByAdaDeltaState, ScaleByAdamState, ScaleByAmsgradState,
    ScaleByLionState, ScaleByRmsState, ScaleByRssState, TraceState, ema,
    scale_by_adadelta, scale_by_adam, scale_by_adamax, scale_by_amsgrad,
    scale_by_belief, scale_by_lion, scale_by_radam, scale_by_rms, scale_by_rss,
    scale_by_stddev, scale_by_yogi, trace,
)
from fxflow.optim.scaling import (
    AddNoiseState, ScaleByScheduleState, add_decayed_weights, add_noise, centralize,
    keep_params_nonnegative, normalize_by_update_norm, scale, scale_by_learning_rate,
    scale_by_param_block_rms, scale_by_schedule, scale_by_sign, scale_by_trust_ratio,
    zero_nans,
)
from fxflow.optim.schedules import (
    constant_schedule, cosine_decay_schedule, cosine_onecycle_schedule,
    exponential_decay, join_schedules, linear_onecycle_schedule, linear_schedule,
    piecewise_constant_schedule, piecewise_interpolate_schedule, polynomial_schedule,
    sgdr_schedule, warmup_constant_schedule, warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from fxflow.optim.wrappers import (
    ApplyIfFiniteState, InjectHyperparamsState, MultiSteps, MultiStepsState,
    apply_if_finite, inject_hyperparams,
)

__all__ = [
    "AddNoiseState", "ApplyIfFiniteState", "EmaState", "EmptyState",
    "GradientTransformation", "GradientTransformationExtraArgs",
    "InjectHyperparamsState", "MaskedNode", "MaskedState", "MultiSteps",
    "MultiStepsState", "PartitionState", "ScaleByAdaDeltaState", "ScaleByAdamState",
    "ScaleByAmsgradState", "ScaleByLionState", "ScaleByRmsState", "ScaleByRssState",
    "ScaleByScheduleState", "TraceState", "adabelief", "adadelta", "adagrad", "adam",
    "adamax", "adamaxw", "adamw", "adaptive_grad_clip", "add_decayed_weights",
    "add_noise", "amsgrad", "apply_if_finite", "apply_updates", "centralize", "chain",
    "clip", "clip_by_block_rms", "clip_by_global_norm", "constant_schedule",
    "cosine_decay_schedule", "cosine_onecycle_schedule", "ema", "exponential_decay",
    "global_norm", "identity", "inject_hyperparams", "join_schedules",
    "keep_params_nonnegative", "lamb", "lars", "linear_onecycle_schedule",
    "linear_schedule", "lion", "losses", "masked", "momentum", "multi_transform",
    "nadam", "nadamw", "named_chain", "nesterov", "noisy_sgd",
    "normalize_by_update_norm", "piecewise_constant_schedule",
    "piecewise_interpolate_schedule", "polynomial_schedule", "radam", "rmsprop",
    "scale", "scale_by_adadelta", "scale_by_adam", "scale_by_adamax",
    "scale_by_amsgrad", "scale_by_belief", "scale_by_learning_rate", "scale_by_lion",
    "scale_by_param_block_rms", "scale_by_radam", "scale_by_rms", "scale_by_rss",
    "scale_by_schedule", "scale_by_sign", "scale_by_stddev", "scale_by_trust_ratio",
    "scale_by_yogi", "set_to_zero", "sgd", "sgdr_schedule", "sign_sgd", "stateless",
    "trace", "warmup_constant_schedule", "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule", "yogi", "with_extra_args_support", "zero_nans",
]
# fmt: on

_public(globals(), __all__)
