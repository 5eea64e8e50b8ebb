"""Optimizers: pure pairs of `init` and `update` that compose.

optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-3))
state = optimizer.init(params)
updates, state = optimizer.update(gradients, state, params)
params = optim.apply_updates(params, updates)

Names, arguments and results are those of optax 0.2.8. Each docstring names its paper,
and any difference from optax's results. For gradients of 16 bits, optimizers compute in
float32, and states are float32 unless a dtype is given. Zero gradients give finite
steps for every ε, including 0.

fxflow has one name where optax has several. Losses are in `optim.losses`, helpers for
states and moments in `optim.tree` (`update_moment`, `map_params`), recent optimizers in
`optim.contrib`. `partition` is `multi_transform`, `inject_hyperparams` also takes
stateful schedules, `EmptyState` is the only state without fields, states with the same
fields share a class (`scale_by_belief` and `scale_by_stddev` have a
`ScaleByAdamState`), and `convex_kl_divergence` is `losses.generalized_kl_divergence`.

Sophia does not print. The CTC losses are `nn.ctc_loss` and
`nn.ctc_loss_with_forward_probs`.
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.optim.adams import (
    adabelief, adam, adamax, adamaxw, adamw, amsgrad, lamb, nadam, nadamw, radam, yogi,
)
from fxflow.optim.adans import ScaleByAdanState, adan, scale_by_adan
from fxflow.optim.averages import incremental_update, periodic_update
from fxflow.optim.base import (
    EmptyState, GradientTransformation, GradientTransformationExtraArgs, Params,
    ScalarOrSchedule, Schedule, TransformInitFn, TransformUpdateExtraArgsFn,
    TransformUpdateFn, Updates, apply_updates, chain, global_norm, identity,
    named_chain, safe_increment, set_to_zero, stateless, stateless_with_tree_map,
    with_extra_args_support,
)
from fxflow.optim.base import Mask as MaskOrFn
from fxflow.optim.base import State as OptState
from fxflow.optim.clipping import (
    adaptive_grad_clip, clip, clip_by_block_rms, clip_by_global_norm,
    per_example_global_norm_clip, per_example_layer_norm_clip, unitwise_clip,
    unitwise_norm,
)
from fxflow.optim.conditions import (
    ApplyEvery, ConditionallyMaskState, ConditionallyTransformState, apply_every,
    conditionally_mask, conditionally_transform, skip_large_updates, skip_not_finite,
)
from fxflow.optim.descents import (
    adadelta, adagrad, lars, lion, momentum, nesterov, noisy_sgd, rmsprop, sgd,
    sign_sgd,
)
from fxflow.optim.distributions import MultiNormal, multi_normal
from fxflow.optim.factored import (
    FactoredState, ScaleBySM3State, adafactor, scale_by_factored_rms, scale_by_sm3, sm3,
)
from fxflow.optim.implicit_derivatives import implicit
from fxflow.optim.iterations import matrix_inverse_pth_root, power_iteration
from fxflow.optim.layerwise import (
    ScaleByDistanceOverGradientsState, ScaleByNovogradState, fromage, novograd,
    scale_by_distance_over_gradients, scale_by_novograd, scale_by_param_block_norm,
)
from fxflow.optim.least_squares import nnls
from fxflow.optim.linesearch import (
    BacktrackingLinesearchInfo, ScaleByBacktrackingLinesearchState,
    ScaleByZoomLinesearchState, ZoomLinesearchInfo, scale_by_backtracking_linesearch,
    scale_by_zoom_linesearch, value_and_grad_from_state,
)
from fxflow.optim.lookaheads import LookaheadParams, LookaheadState, lookahead
from fxflow.optim.masking import (
    MaskedNode, MaskedState, PartitionState, freeze, masked, multi_transform,
    selective_transform,
)
from fxflow.optim.measuring import (
    MonitorState, SnapshotState, measure_with_ema, monitor, snapshot,
)
from fxflow.optim.moments import (
    ScaleByAdaDeltaState, ScaleByAdamState, ScaleByAmsgradState, ScaleByRmsState,
    ScaleByRssState, scale_by_adadelta, scale_by_adam, scale_by_adamax,
    scale_by_amsgrad, scale_by_belief, scale_by_radam, scale_by_rms, scale_by_rss,
    scale_by_stddev, scale_by_yogi,
)
from fxflow.optim.numerics import safe_norm, safe_root_mean_squares, scale_gradient
from fxflow.optim.optimistic import (
    ScaleByOptimisticGradientState, optimistic_adam, optimistic_adam_v2,
    optimistic_gradient_descent, scale_by_optimistic_gradient,
)
from fxflow.optim.polyak import polyak_sgd, scale_by_polyak
from fxflow.optim.proximal import FtrlState, ftrl
from fxflow.optim.quasi_newton import ScaleByLBFGSState, lbfgs, scale_by_lbfgs
from fxflow.optim.rows import rowwise_adagrad
from fxflow.optim.scaling import (
    AddNoiseState, ScaleByScheduleState, ZeroNansState, add_decayed_weights, add_noise,
    centralize, keep_params_nonnegative, normalize_by_update_norm, scale,
    scale_by_learning_rate, scale_by_param_block_rms, scale_by_schedule, scale_by_sign,
    scale_by_trust_ratio, zero_nans,
)
from fxflow.optim.schedules import (
    constant_schedule, cosine_decay_schedule, cosine_onecycle_schedule,
    exponential_decay, join_schedules, linear_onecycle_schedule, linear_schedule,
    piecewise_constant_schedule, piecewise_interpolate_schedule, polynomial_schedule,
    sgdr_schedule, warmup_constant_schedule, warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from fxflow.optim.signs import ScaleByRpropState, rprop, scale_by_rprop, signum
from fxflow.optim.traces import (
    EmaState, ScaleByLionState, TraceState, ema, scale_by_lion, trace,
)
from fxflow.optim.vectors import flatten
from fxflow.optim.wrappers import (
    ApplyIfFiniteState, InjectHyperparamsState, MultiSteps, MultiStepsState,
    StatefulSchedule, WrappedSchedule, apply_if_finite, inject_hyperparams,
)

if _typing.TYPE_CHECKING:
    from fxflow.optim import (
        assignment, contrib, losses, microbatching, perturbations, projections,
        second_order, tree,
    )
    from fxflow.optim.row_steps import (
        RowState, RowTransformation, RowUpdateFn, by_rows,
    )

__all__ = [
    "AddNoiseState", "ApplyEvery", "ApplyIfFiniteState", "BacktrackingLinesearchInfo",
    "ConditionallyMaskState", "ConditionallyTransformState", "EmaState", "EmptyState",
    "FactoredState", "FtrlState", "GradientTransformation",
    "GradientTransformationExtraArgs", "InjectHyperparamsState", "LookaheadParams",
    "LookaheadState", "MaskOrFn", "MaskedNode", "MaskedState", "MonitorState",
    "MultiNormal", "MultiSteps", "MultiStepsState", "OptState", "Params",
    "PartitionState", "RowState", "RowTransformation", "RowUpdateFn",
    "ScalarOrSchedule", "ScaleByAdaDeltaState", "ScaleByAdamState", "ScaleByAdanState",
    "ScaleByAmsgradState", "ScaleByBacktrackingLinesearchState",
    "ScaleByDistanceOverGradientsState", "ScaleByLBFGSState", "ScaleByLionState",
    "ScaleByNovogradState", "ScaleByOptimisticGradientState", "ScaleByRmsState",
    "ScaleByRpropState", "ScaleByRssState", "ScaleBySM3State", "ScaleByScheduleState",
    "ScaleByZoomLinesearchState", "Schedule", "SnapshotState", "StatefulSchedule",
    "TraceState", "TransformInitFn", "TransformUpdateExtraArgsFn", "TransformUpdateFn",
    "Updates", "WrappedSchedule", "ZeroNansState", "ZoomLinesearchInfo", "adabelief",
    "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan",
    "adaptive_grad_clip", "add_decayed_weights", "add_noise", "amsgrad", "apply_every",
    "apply_if_finite", "apply_updates", "assignment", "by_rows", "centralize", "chain",
    "clip", "clip_by_block_rms", "clip_by_global_norm", "conditionally_mask",
    "conditionally_transform", "constant_schedule", "contrib", "cosine_decay_schedule",
    "cosine_onecycle_schedule", "ema", "exponential_decay", "flatten", "freeze",
    "fromage", "ftrl", "global_norm", "identity", "implicit", "incremental_update",
    "inject_hyperparams", "join_schedules", "keep_params_nonnegative", "lamb", "lars",
    "lbfgs", "linear_onecycle_schedule", "linear_schedule", "lion", "lookahead",
    "losses", "masked", "matrix_inverse_pth_root", "measure_with_ema", "microbatching",
    "momentum", "monitor", "multi_normal", "multi_transform", "nadam", "nadamw",
    "named_chain", "nesterov", "nnls", "noisy_sgd", "normalize_by_update_norm",
    "novograd", "optimistic_adam", "optimistic_adam_v2", "optimistic_gradient_descent",
    "per_example_global_norm_clip", "per_example_layer_norm_clip", "periodic_update",
    "perturbations", "piecewise_constant_schedule", "piecewise_interpolate_schedule",
    "polyak_sgd", "polynomial_schedule", "power_iteration", "projections", "radam",
    "rmsprop", "rowwise_adagrad", "rprop", "safe_increment", "safe_norm",
    "safe_root_mean_squares", "scale", "scale_by_adadelta", "scale_by_adam",
    "scale_by_adamax", "scale_by_adan", "scale_by_amsgrad",
    "scale_by_backtracking_linesearch", "scale_by_belief",
    "scale_by_distance_over_gradients", "scale_by_factored_rms", "scale_by_lbfgs",
    "scale_by_learning_rate", "scale_by_lion", "scale_by_novograd",
    "scale_by_optimistic_gradient", "scale_by_param_block_norm",
    "scale_by_param_block_rms", "scale_by_polyak", "scale_by_radam", "scale_by_rms",
    "scale_by_rprop", "scale_by_rss", "scale_by_schedule", "scale_by_sign",
    "scale_by_sm3", "scale_by_stddev", "scale_by_trust_ratio", "scale_by_yogi",
    "scale_by_zoom_linesearch", "scale_gradient", "second_order", "selective_transform",
    "set_to_zero", "sgd", "sgdr_schedule", "sign_sgd", "signum", "skip_large_updates",
    "skip_not_finite", "sm3", "snapshot", "stateless", "stateless_with_tree_map",
    "trace", "tree", "unitwise_clip", "unitwise_norm", "value_and_grad_from_state",
    "warmup_constant_schedule", "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule", "with_extra_args_support", "yogi", "zero_nans",
]

_public(
    globals(),
    __all__,
    lazy=(
        "assignment", "contrib", "losses", "microbatching", "perturbations",
        "projections", "second_order", "tree",
    ),
    # They import kernels.
    elsewhere={"row_steps": "RowState RowTransformation RowUpdateFn by_rows"},
)
# fmt: on
