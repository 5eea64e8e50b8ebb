"""Calls of `fxflow.nn`."""

from __future__ import annotations

import numpy as np

from fxflow import nn, random
from tests.sweeps.catalogue import (
    A,
    call,
    each,
    floating,
    index,
    made,
    mask,
    real,
    whole,
)

N = "nn"
INIT = "nn.initializers"


_MATRICES = (((1,), (0,)), ((), ()))

KEY = random.key(0)
AFFINE = {"scale": floating(4), "bias": floating(4)}
LSTM = {"w": floating(4, 12), "u": floating(3, 12), "b": floating(12)}
GRU = {"w": floating(4, 9), "u": floating(3, 9), "b": floating(9), "c": floating(3)}
SAID = made(lambda rng, s: rng.integers(1, 4, s), 2, 2, kinds="iu")
CLASS = index(2, 1, below=9)
ROWS = {"w": floating(9, 3), "b": floating(9)}
DRAWN = nn.Candidates(
    np.arange(4), np.zeros(4, "f"), np.zeros((2, 1), "f"), np.zeros((2, 4), bool)
)

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
    call(
        "nn.max_pool", real(1, 5, 4, 2), (2, 2), (2, 1), padding="SAME", dilation=(1, 2)
    ),
    call("nn.avg_pool", floating(1, 5, 4, 2), (2, 2), padding="SAME"),
    call("nn.dropout", KEY, floating(3, 4), 0.5, broadcast_axes=1, random=True),
    call("nn.linear", {"w": floating(3, 4), "b": floating(4)}, floating(2, 3)),
    call("nn.quantized_linear_init", {"w": floating(3, 4)}, differentiable=False),
    call(
        "nn.quantized_linear_init",
        {"w": floating(4, 4)},
        bits=4,
        group_size=2,
        zero_points=True,
        differentiable=False,
        note="4 bits",
    ),
    call(
        "nn.quantized_linear",
        {"w": index(3, 4, below=9), "scale": floating(4)},
        floating(2, 3),
    ),
    call("nn.conv", {"w": floating(3, 3, 2, 4)}, floating(1, 5, 4, 2), strides=(2, 1)),
    call("nn.embedding", {"w": floating(5, 3)}, index(2, 3, below=5), padding_id=0),
    call("nn.embedding_bag", {"w": floating(5, 3)}, index(2, 3, below=5), padding_id=0),
    *each(N, "layer_norm instance_norm", AFFINE, floating(2, 3, 4)),
    call("nn.rms_norm", {"scale": floating(4)}, floating(2, 3, 4)),
    call("nn.group_norm", AFFINE, floating(2, 3, 4), 2),
    call(
        "nn.batch_norm",
        AFFINE,
        {"mean": floating(4), "var": floating(4, low=0.5)},
        floating(2, 3, 4),
        training=True,
        mask=mask(2, 3),
    ),
    call("nn.lstm_cell", LSTM, (floating(2, 3), floating(2, 3)), floating(2, 4)),
    call("nn.gru_cell", GRU, floating(2, 3), floating(2, 4)),
    call("nn.lstm", [LSTM], None, floating(2, 2, 4), mask=mask(2, 2)),
    call("nn.gru", [GRU], [floating(2, 3)], floating(2, 2, 4), reverse=True),
    call("nn.lstm_state", [LSTM], 2, differentiable=False),
    call("nn.gru_state", [GRU], 2, differentiable=False),
    *each(
        N, "uniform_candidates log_uniform_candidates", KEY, CLASS, 4, 9, random=True
    ),
    call("nn.unigram_candidates", KEY, CLASS, 4, floating(9, low=0.5), random=True),
    *each(N, "nce_loss sampled_softmax_loss", ROWS, floating(2, 3), CLASS, DRAWN),
    call(
        "nn.in_batch_softmax_loss",
        floating(3, 4),
        floating(5, 4),
        ids=index(5, below=9),
        log_expected=floating(5),
    ),
    call("nn.linear_cross_entropy", ROWS, floating(2, 3), index(2, below=9), block=4),
    call("nn.ctc_loss", floating(2, 5, 4), SAID, label_mask=mask(2, 2)),
    call(
        "nn.ctc_loss_with_forward_probs", floating(2, 5, 4), SAID, label_mask=mask(2, 2)
    ),
    call("nn.linear_init", KEY, 3, 4, random=True),
    call("nn.conv_init", KEY, 2, 4, (3, 3), random=True),
    call("nn.embedding_init", KEY, 5, 3, random=True),
    *each(N, "lstm_init lstm_cell_init gru_init gru_cell_init", KEY, 2, 3, random=True),
    *each(N, "layer_norm_init rms_norm_init", (3, 4), differentiable=False),
    *each(N, "group_norm_init instance_norm_init", 3, differentiable=False),
    *each(N, "batch_norm_init batch_norm_state", 3, differentiable=False),
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
