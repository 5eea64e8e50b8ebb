"""Losses of elements or examples; most are not averaged."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.optim.losses.common import (
    cosine_distance, cosine_similarity, generalized_kl_divergence, hinge_loss,
    huber_loss, kl_divergence, kl_divergence_with_log_targets, l2_loss, log_cosh,
    multiclass_hinge_loss, multiclass_perceptron_loss, perceptron_loss,
    poly_loss_cross_entropy, safe_softmax_cross_entropy, sigmoid_binary_cross_entropy,
    sigmoid_focal_loss, smooth_labels, softmax_cross_entropy,
    softmax_cross_entropy_with_integer_labels, squared_error, triplet_margin_loss,
)
from fxflow.optim.losses.contrastive import ntxent
from fxflow.optim.losses.ranking import ranking_softmax_loss
from fxflow.optim.losses.segmentation import (
    binary_dice_loss, dice_loss, multiclass_generalized_dice_loss,
)
from fxflow.optim.losses.sparse import (
    make_fenchel_young_loss, multiclass_sparsemax_loss, sparsemax_loss,
)

__all__ = [
    "binary_dice_loss", "cosine_distance", "cosine_similarity", "dice_loss",
    "generalized_kl_divergence", "hinge_loss", "huber_loss", "kl_divergence",
    "kl_divergence_with_log_targets", "l2_loss", "log_cosh", "make_fenchel_young_loss",
    "multiclass_generalized_dice_loss", "multiclass_hinge_loss",
    "multiclass_perceptron_loss", "multiclass_sparsemax_loss", "ntxent",
    "perceptron_loss", "poly_loss_cross_entropy", "ranking_softmax_loss",
    "safe_softmax_cross_entropy", "sigmoid_binary_cross_entropy", "sigmoid_focal_loss",
    "smooth_labels", "softmax_cross_entropy",
    "softmax_cross_entropy_with_integer_labels", "sparsemax_loss", "squared_error",
    "triplet_margin_loss",
]
# fmt: on

_public(globals(), __all__)
