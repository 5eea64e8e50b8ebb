"""Calls of `fxflow.nn`."""

from __future__ import annotations

from fxflow import random
from tests.sweeps.catalogue import (
    A,
    call,
    each,
    floating,
    mask,
    real,
    whole,
)

N = "nn"
INIT = "nn.initializers"


_MATRICES = (((1,), (0,)), ((), ()))

CALLS = [
    call(
        "nn.scaled_matmul",
        floating(2, 3, 4),
        floating(2, 5, 4),
        floating(2, 3, 2),
        floating(2, 5, 2),
    ),
    call(f"{N}.scaled_dot_general", floating(3, 4), floating(4, 2), _MATRICES),
    *each(N, "celu elu selu gelu relu6 hard_sigmoid hard_silu hard_tanh", real(3, 4)),
    *each(N, "leaky_relu log_sigmoid mish sigmoid silu soft_sign softplus", real(3, 4)),
    *each(N, "sparse_plus sparse_sigmoid squareplus relu", real(3, 4)),
    *each(N, "tanh identity", A(3, 4)),
    *each(N, "log1mexp", real(3, 4, low=0.5, high=3)),
    call("nn.gelu", real(3, 4), approximate=False, note="exact"),
    *each(N, "glu", real(3, 4)),
    *each(N, "softmax log_softmax standardize", real(3, 4)),
    *each(
        N,
        "softmax log_softmax standardize",
        real(3, 4),
        axis=0,
        where=mask(3, 4),
        note="where",
    ),
    *each(N, "logsumexp", A(3, 4), axis=1),
    *each(N, "logmeanexp", real(3, 4), axis=1),
    call("nn.logsumexp", real(3, 4), b=real(4), return_sign=True, note="weights"),
    call("nn.logsumexp", real(3, 4), axis=0, where=mask(3, 4), note="where"),
    call("nn.one_hot", whole(3, high=4), 5, differentiable=False),
    call(
        "nn.dot_product_attention",
        floating(1, 3, 2, 4),
        floating(1, 5, 2, 4),
        floating(1, 5, 2, 4),
        one_dtype=True,
    ),
    call(
        "nn.dot_product_attention",
        floating(1, 3, 2, 4),
        floating(1, 3, 2, 4),
        floating(1, 3, 2, 4),
        is_causal=True,
        one_dtype=True,
        note="causal",
    ),
    call(
        "nn.dot_product_attention",
        floating(1, 3, 2, 4),
        floating(1, 3, 2, 4),
        floating(1, 3, 2, 4),
        bias=floating(1, 2, 3, 3),
        mask=mask(1, 1, 3, 3),
        one_dtype=True,
        note="bias",
    ),
    call("nn.initializers.zeros", random.key(0), (2, 3), differentiable=False),
    call("nn.initializers.ones", random.key(0), (2, 3), differentiable=False),
]

EXEMPT = {
    f"{INIT}.{name}": "makes an initializer: tests/nn/test_initializers.py"
    for name in [
        "constant",
        "delta_orthogonal",
        "glorot_normal",
        "glorot_uniform",
        "he_normal",
        "he_uniform",
        "lecun_normal",
        "lecun_uniform",
        "normal",
        "orthogonal",
        "truncated_normal",
        "uniform",
        "variance_scaling",
    ]
} | {
    "nn.get_scaled_dot_general_config": "makes no array",
    f"{INIT}.Shape": "a type",
    f"{INIT}.laid_out": "places the result of an initializer",
}
