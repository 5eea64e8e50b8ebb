"""`jax.experimental.rnn`: an LSTM of several layers, on every platform.

JAX calls cuDNN, which other platforms do not have; here it is a scan of
`fxflow.nn.lstm_cell`. The weights lie in one vector as cuDNN has them: for each layer
and direction the matrices of the inputs and of the state, then all biases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn, random
from fxflow.compat.jax._mirror import listen

Matrices = dict[int, Any]


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, int]]:
    """Yields the shape of the inputs' matrix of each layer and direction."""
    ways = 2 if bidirectional else 1
    for layer in range(num_layers):
        inputs = ways * hidden_size if layer else input_size
        for _ in range(ways):
            yield 4 * hidden_size, inputs


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """Returns the number of weights."""
    shapes = _shapes(input_size, hidden_size, num_layers, bidirectional)
    return sum(rows * (inputs + hidden_size + 2) for rows, inputs in shapes)


def init_lstm_weight(
    rng: Any, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Any:
    """Returns first weights, uniform within ±1/√hidden_size."""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1.0 / hidden_size)
    return random.uniform(rng, (count,), fnp.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
) -> tuple[Matrices, Matrices, Matrices, Matrices]:
    """Returns W_ih, W_hh, b_ih, b_hh: each from layer and direction to an array."""
    w_ih: Matrices = {}
    w_hh: Matrices = {}
    b_ih: Matrices = {}
    b_hh: Matrices = {}
    shapes = list(_shapes(input_size, hidden_size, num_layers, bidirectional))
    start = 0

    def take(*shape: int) -> Any:
        nonlocal start
        start += math.prod(shape)
        return weights[start - math.prod(shape) : start].reshape(shape)

    for i, (rows, inputs) in enumerate(shapes):
        w_ih[i], w_hh[i] = take(rows, inputs), take(rows, hidden_size)
    for i, (rows, _) in enumerate(shapes):
        b_ih[i], b_hh[i] = take(rows), take(rows)
    return w_ih, w_hh, b_ih, b_hh


def swap_lstm_gates(
    weights: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    bidirectional: bool,
) -> Any:
    """Returns the weights with the last two of the four gates exchanged."""
    sizes = (input_size, hidden_size, num_layers, bidirectional)

    def swapped(part: Any) -> Any:
        i, f, g, o = fnp.split(part, 4)
        return fnp.concatenate([i, f, o, g]).ravel()

    w_ih, w_hh, b_ih, b_hh = unpack_lstm_weights(weights, *sizes)
    matrices = [p for i in w_ih for p in (w_ih[i], w_hh[i])]
    biases = [p for i in b_ih for p in (b_ih[i], b_hh[i])]
    return fnp.concatenate([swapped(p) for p in (*matrices, *biases)])


def lstm(
    x: Any,
    h_0: Any,
    c_0: Any,
    weights: Any,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Any, Any, Any]:
    """Runs the layers over sequences; see `lstm_ref`.

    Args:
      weights: float[n]; see `unpack_lstm_weights`.
      precision: a `Precision` or its name: that of the products; None: the default.
    """
    sizes = (input_size, hidden_size, num_layers, bidirectional)
    parts = unpack_lstm_weights(weights, *sizes)
    name = None if precision is None else str(getattr(precision, "name", precision))
    with fxflow.config.override(default_matmul_precision=name and name.lower()):
        return lstm_ref(
            x, h_0, c_0, *parts, seq_lengths, *sizes[:3], dropout, bidirectional
        )


def lstm_ref(
    x: Any,
    h_0: Any,
    c_0: Any,
    W_ih: Matrices,
    W_hh: Matrices,
    b_ih: Matrices,
    b_hh: Matrices,
    seq_lengths: Any,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Any, Any, Any]:
    """Runs the layers over sequences.

    Args:
      x: float[batch, time, input_size].
      h_0: float[layers · directions, batch, hidden_size]; first outputs.
      c_0: like `h_0`; first states.
      W_ih: matrices of the inputs, float[4 · hidden_size, inputs].
      W_hh: matrices of the outputs before, float[4 · hidden_size, hidden_size].
      b_ih: biases float[4 · hidden_size].
      b_hh: other biases, which are added.
      seq_lengths: int[batch]; steps after these change no state and give zeros.
      input_size: features of `x`.
      hidden_size: units.
      num_layers: how many layers.
      dropout: must be 0.
      bidirectional: whether each layer also runs backwards.

    Returns:
      `(y, h_n, c_n)`: the last layer's outputs, both directions side by side, and the
      last outputs and states of all.

    Raises:
      NotImplementedError: `dropout` is not 0.
    """
    if dropout:
        raise NotImplementedError(
            f"jax.experimental.rnn: dropout must be 0, got {dropout}: there is no key "
            "to draw with; apply it between layers"
        )
    ways = 2 if bidirectional else 1
    valid = fnp.arange(x.shape[1])[:, None, None] < seq_lengths[None, :, None]
    steps = fnp.swapaxes(x, 0, 1)
    last: list[tuple[Any, Any]] = []
    for layer in range(num_layers):
        outs = []
        for way in range(ways):
            i = layer * ways + way
            params = {"w": W_ih[i].T, "u": W_hh[i].T, "b": b_ih[i] + b_hh[i]}

            def step(state: Any, given: Any, params: Any = params) -> Any:
                row, live = given
                new, y = nn.lstm_cell(params, state, row)
                kept = [fnp.where(live, n, s) for n, s in zip(new, state, strict=True)]
                return tuple(kept), fnp.where(live, y, 0)

            state, ys = lax.scan(
                step, (c_0[i], h_0[i]), (steps, valid), reverse=way == 1
            )
            outs.append(ys)
            last.append(state)
        steps = fnp.concatenate(outs, axis=-1)
    h_n = fnp.stack([h for _, h in last])
    return fnp.swapaxes(steps, 0, 1), h_n, fnp.stack([c for c, _ in last])


__all__ = [
    "get_num_params_in_lstm",
    "init_lstm_weight",
    "lstm",
    "lstm_ref",
    "swap_lstm_gates",
    "unpack_lstm_weights",
]

listen(globals())
