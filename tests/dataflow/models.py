"""Models of eight kinds, as losses with the types of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fxflow
from fxflow import lax, nn
from fxflow import numpy as fnp

Loss = Callable[..., Any]


def of(*shape: int) -> Any:
    """The type of an argument."""
    return fxflow.ShapeDtypeStruct(shape, "float32")


def mlp(ws: Any, x: Any) -> Any:
    """Layers in a chain."""
    for w in ws:
        x = fnp.tanh(x @ w)
    return fnp.mean(x**2)


def cnn(ws: Any, x: Any) -> Any:
    """Convolutions in a chain, then a product."""
    *kernels, head = ws
    for w in kernels:
        x = nn.relu(lax.conv(x, w, (1, 1), "SAME"))
    return fnp.mean((fnp.mean(x, (2, 3)) @ head) ** 2)


def lstm(ws: Any, xs: Any) -> Any:
    """Two layers of cells over six steps: a grid of dependences."""
    state = [(fnp.zeros_like(xs[0]), fnp.zeros_like(xs[0])) for _ in ws]
    for x in xs:
        for i, (w, u) in enumerate(ws):
            h, c = state[i]
            gates = fnp.split(x @ w + h @ u, 4, 1)
            a, b, d, e = gates
            c = nn.sigmoid(a) * c + nn.sigmoid(b) * fnp.tanh(d)
            x = nn.sigmoid(e) * fnp.tanh(c)
            state[i] = x, c
    return fnp.mean(x**2)


def attention(x: Any, y: Any, wq: Any, wk: Any, wv: Any) -> Any:
    """Two heads."""
    heads = []
    for i in range(2):
        q, k, v = x @ wq[i], y @ wk[i], y @ wv[i]
        heads.append(nn.softmax(q @ k.T / 8.0) @ v)
    return fnp.concatenate(heads, 1)


def transformer(ws: Any, x: Any) -> Any:
    """Two blocks of attention and a feed-forward network."""
    for wq, wk, wv, up, down in ws:
        x = x + attention(x, x, wq, wk, wv)
        x = x + nn.gelu(x @ up) @ down
    return fnp.mean(x**2)


def two_towers(ws: Any, x: Any, y: Any) -> Any:
    """Two networks that meet in a product."""
    for a, b in ws:
        x, y = nn.relu(x @ a), nn.relu(y @ b)
    return fnp.mean(fnp.sum(x * y, 1))


def inception(ws: Any, x: Any) -> Any:
    """Blocks of four unequal branches."""
    for block in ws:
        rows = []
        for i, w in enumerate(block):
            h = x
            for _ in range(i + 1):
                h = nn.relu(h @ w)
            rows.append(h)
        x = sum(rows[1:], rows[0])
    return fnp.mean(x**2)


def encoder_decoder(ws: Any, x: Any, y: Any) -> Any:
    """The decoder attends to what the encoder gives."""
    encoder, decoder = ws
    for wq, wk, wv in encoder:
        x = x + attention(x, x, wq, wk, wv)
    for wq, wk, wv in decoder:
        y = y + attention(y, y, wq, wk, wv)
        y = y + attention(y, x, wq, wk, wv)
    return fnp.mean(y**2)


def experts(ws: Any, x: Any) -> Any:
    """Four experts, all of which see all rows, weighted by a gate."""
    for gate, ups, downs in ws:
        weights = nn.softmax(x @ gate)
        total = x
        for i in range(4):
            own = nn.gelu(x @ ups[i]) @ downs[i]
            total = total + weights[:, i : i + 1] * own
        x = total
    return fnp.mean(x**2)


_QKV = [[of(64, 32)] * 2] * 3
MODELS: dict[str, tuple[Loss, tuple[Any, ...]]] = {
    "mlp": (mlp, ([of(64, 64)] * 6, of(64, 64))),
    "cnn": (cnn, ([of(8, 8, 3, 3)] * 3 + [of(8, 8)], of(4, 8, 16, 16))),
    "lstm": (lstm, ([(of(64, 256), of(64, 256))] * 2, [of(32, 64)] * 6)),
    "transformer": (
        transformer,
        ([[*_QKV, of(64, 128), of(128, 64)]] * 2, of(64, 64)),
    ),
    "two towers": (
        two_towers,
        ([(of(64, 64), of(64, 64))] * 3, of(64, 64), of(64, 64)),
    ),
    "inception": (inception, ([[of(64, 64)] * 4] * 2, of(64, 64))),
    "encoder-decoder": (
        encoder_decoder,
        (([_QKV] * 2, [_QKV] * 2), of(64, 64), of(64, 64)),
    ),
    "experts": (
        experts,
        ([(of(64, 4), [of(64, 128)] * 4, [of(128, 64)] * 4)] * 2, of(64, 64)),
    ),
}
