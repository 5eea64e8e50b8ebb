"""Functions that neural networks are made of: activations, softmax, attention."""

# fmt: off
from fxflow.core.boundary import public as _public
from fxflow.nn import initializers
from fxflow.nn.activations import (
    celu, elu, gelu, glu, hard_sigmoid, hard_silu, hard_tanh, identity, leaky_relu,
    log1mexp, log_sigmoid, mish, relu, relu6, selu, sigmoid, silu, soft_sign, softplus,
    sparse_plus, sparse_sigmoid, squareplus,
)
from fxflow.nn.attention import dot_product_attention
from fxflow.nn.encoding import one_hot
from fxflow.nn.normalization import (
    log_softmax, logmeanexp, logsumexp, softmax, standardize,
)
from fxflow.nn.scaled_products import (
    get_scaled_dot_general_config, scaled_dot_general, scaled_matmul,
)
from fxflow.numpy import tanh

__all__ = [
    "celu", "dot_product_attention", "elu", "gelu", "get_scaled_dot_general_config",
    "glu", "hard_sigmoid", "hard_silu",
    "hard_tanh", "identity", "initializers", "leaky_relu", "log1mexp", "log_sigmoid",
    "log_softmax", "logmeanexp", "logsumexp", "mish", "one_hot", "relu", "relu6",
    "scaled_dot_general", "scaled_matmul",
    "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus", "sparse_plus",
    "sparse_sigmoid", "squareplus", "standardize", "tanh",
]
# fmt: on

_public(globals(), __all__)
