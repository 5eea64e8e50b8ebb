"""Functions that neural networks are made of: activations, layers, losses, attention.

All are pure. One with weights, `layer`, comes with `layer_init`, and all such pairs
have one shape:

    params = layer_init(key, sizes, ...)        # a dict of arrays, of one dtype
    y = layer(params, x, ...)

where the key is left out if nothing is drawn. What is remembered from call to call is
an argument and a result, in the order of `lax.scan`:

    state = layer_state(sizes, ...)             # before the first call
    state, y = layer(params, state, x, ...)

Layers over sequences are built of such dicts: see `lstm_init`. Options are keywords.
Features are the last axis; what stands before the axes that a layer knows is batch.
"""

# fmt: off
import typing as _typing

from fxflow.core.boundary import public as _public
from fxflow.nn import initializers
from fxflow.nn.activations import (
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_tanh, identity, leaky_relu,
    log1mexp, log_sigmoid, mish, relu, relu6, selu, sigmoid, silu, soft_sign, softplus,
    sparse_plus, sparse_sigmoid, squareplus,
)
from fxflow.nn.dropout import dropout
from fxflow.nn.linear import (
    conv, conv_init, embedding, embedding_init, linear, linear_init,
)
from fxflow.nn.normalization import (
    log_softmax, logmeanexp, logsumexp, softmax, standardize,
)
from fxflow.numpy import tanh

if _typing.TYPE_CHECKING:
    from fxflow.nn.attention import dot_product_attention
    from fxflow.nn.bags import embedding_bag
    from fxflow.nn.candidates import (
        Candidates, log_uniform_candidates, uniform_candidates, unigram_candidates,
    )
    from fxflow.nn.ctc import ctc_loss, ctc_loss_with_forward_probs
    from fxflow.nn.encoding import one_hot
    from fxflow.nn.linear_losses import linear_cross_entropy
    from fxflow.nn.norms import (
        batch_norm, batch_norm_init, batch_norm_state, group_norm, group_norm_init,
        instance_norm, instance_norm_init, layer_norm, layer_norm_init, rms_norm,
        rms_norm_init,
    )
    from fxflow.nn.pooling import avg_pool, max_pool
    from fxflow.nn.quantized import quantized_linear, quantized_linear_init
    from fxflow.nn.recurrent import (
        gru, gru_cell, gru_cell_init, gru_init, gru_state, lstm, lstm_cell,
        lstm_cell_init, lstm_init, lstm_state,
    )
    from fxflow.nn.sampled_losses import (
        in_batch_softmax_loss, nce_loss, sampled_softmax_loss,
    )
    from fxflow.nn.scaled_products import (
        get_scaled_dot_general_config, scaled_dot_general, scaled_matmul,
    )

__all__ = [
    "avg_pool", "batch_norm", "batch_norm_init", "batch_norm_state", "Candidates",
    "celu", "conv", "conv_init", "ctc_loss", "ctc_loss_with_forward_probs",
    "dot_product_attention", "dropout", "elu",
    "embedding", "embedding_bag", "embedding_init", "gelu",
    "get_scaled_dot_general_config", "glu",
    "group_norm", "group_norm_init", "gru", "gru_cell", "gru_cell_init", "gru_init",
    "gru_state", "hard_sigmoid", "hard_silu", "hard_tanh", "identity",
    "in_batch_softmax_loss", "initializers",
    "instance_norm", "instance_norm_init", "layer_norm", "layer_norm_init",
    "leaky_relu", "linear", "linear_cross_entropy", "linear_init", "log1mexp",
    "log_sigmoid", "log_softmax", "log_uniform_candidates", "logmeanexp", "logsumexp",
    "lstm", "lstm_cell", "lstm_cell_init", "lstm_init", "lstm_state", "max_pool",
    "mish", "nce_loss", "one_hot", "quantized_linear", "quantized_linear_init", "relu",
    "relu6", "rms_norm", "rms_norm_init", "sampled_softmax_loss", "scaled_dot_general",
    "scaled_matmul", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "standardize",
    "tanh", "uniform_candidates", "unigram_candidates",
]

_public(
    globals(),
    __all__,
    # Layers and losses that not every net has.
    elsewhere={
        "attention": "dot_product_attention",
        "bags": "embedding_bag",
        "candidates": (
            "Candidates log_uniform_candidates uniform_candidates "
            "unigram_candidates"
        ),
        "ctc": "ctc_loss ctc_loss_with_forward_probs",
        "encoding": "one_hot",
        "linear_losses": "linear_cross_entropy",
        "norms": (
            "batch_norm batch_norm_init batch_norm_state group_norm group_norm_init "
            "instance_norm instance_norm_init layer_norm layer_norm_init rms_norm "
            "rms_norm_init"
        ),
        "pooling": "avg_pool max_pool",
        "quantized": "quantized_linear quantized_linear_init",
        "recurrent": (
            "gru gru_cell gru_cell_init gru_init gru_state lstm lstm_cell "
            "lstm_cell_init lstm_init lstm_state"
        ),
        "sampled_losses": "in_batch_softmax_loss nce_loss sampled_softmax_loss",
        "scaled_products": (
            "get_scaled_dot_general_config scaled_dot_general scaled_matmul"
        ),
    },
)
# fmt: on
