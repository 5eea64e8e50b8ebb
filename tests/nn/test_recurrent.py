"""LSTM and GRU against loops written in NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random, tree
from fxflow.errors import ArgumentError, DtypeError, ShapeError

RNG = np.random.default_rng(0)
BATCH, TIME, INPUTS, UNITS = 2, 5, 3, 4
XS = RNG.normal(size=(BATCH, TIME, INPUTS)).astype(np.float32)
MASK = np.arange(TIME) < np.array([[3], [5]])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm_step(params: Any, state: Any, x: Any) -> Any:
    c, h = state
    i, f, g, o = np.split(x @ params["w"] + h @ params["u"] + params["b"], 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(c)
    return (c, h), h


def gru_step(params: Any, h: Any, x: Any) -> Any:
    (wr, wz, wn), (ur, uz, un) = (np.split(params[k], 3, -1) for k in "wu")
    br, bz, bn = np.split(params["b"], 3)
    r, z = sigmoid(x @ wr + h @ ur + br), sigmoid(x @ wz + h @ uz + bz)
    n = np.tanh(x @ wn + bn + r * (h @ un + params["c"]))
    h = (1 - z) * n + z * h
    return h, h


def loop(step: Any, params: Any, state: Any, xs: Any, mask: Any, reverse: bool) -> Any:
    """Each sequence by itself, over the elements that it has."""
    ends, outs = [], np.zeros((*xs.shape[:2], UNITS))
    for row in range(len(xs)):
        now = tree.map(lambda s, row=row: np.asarray(s)[row], state)
        order = np.flatnonzero(mask[row])
        for t in order[::-1] if reverse else order:
            now, outs[row, t] = step(params, now, xs[row, t])
        ends.append(now)
    return tree.map(lambda *s: np.stack(s), *ends), outs


KINDS = {
    "lstm": (nn.lstm, nn.lstm_init, nn.lstm_state, nn.lstm_cell, lstm_step),
    "gru": (nn.gru, nn.gru_init, nn.gru_state, nn.gru_cell, gru_step),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def noisy(params: Any, seed: int = 1) -> Any:
    """So that no bias is 0."""
    rng = np.random.default_rng(seed)
    return tree.map(lambda w: (w + rng.normal(size=w.shape) / 3).astype("f"), params)


def wide(x: Any) -> Any:
    return tree.map(lambda w: np.asarray(w, np.float64), x)


def same(have: Any, want: Any, tol: float = 2e-6) -> None:
    for a, b in zip(tree.leaves(have), tree.leaves(want), strict=True):
        np.testing.assert_allclose(np.asarray(a, np.float64), b, rtol=tol, atol=tol)


@kinds
@pytest.mark.parametrize(
    ("reverse", "masked"),
    [pytest.param(False, False, marks=pytest.mark.slow), (True, True)],
)
def test_as_loop(kind: str, reverse: bool, masked: bool) -> None:
    layer, init, zeros, cell, step = KINDS[kind]
    params = noisy(init(random.key(0), INPUTS, UNITS))
    start = noisy(zeros(params, BATCH))
    mask = MASK if masked else np.ones_like(MASK)
    want = loop(step, wide(params[0]), wide(start[0]), XS, mask, reverse)
    given = MASK if masked else None
    run = fxflow.jit(lambda p, s, x: layer(p, s, x, mask=given, reverse=reverse))
    (end,), ys = run(params, start, XS)
    same((end, ys), want)
    (end,), ys = layer(
        params,
        start,
        XS.swapaxes(0, 1),
        mask=None if given is None else given.T,
        reverse=reverse,
        time_major=True,
    )
    same((end, ys.swapaxes(0, 1)), want)
    same(cell(params[0], start[0], XS[:, 0]), step(wide(params[0]), start[0], XS[:, 0]))


@kinds
def test_layers_of_both_directions(kind: str) -> None:
    layer, init, zeros, _, step = KINDS[kind]
    key = random.key(3)
    params = noisy(init(key, INPUTS, UNITS, layers=2, bidirectional=True))
    xs: Any = XS
    ends = []
    for one, start in zip(params, zeros(params, BATCH), strict=True):
        args = wide(one), wide(start)
        out = [
            loop(step, *(a[way] for a in args), xs, MASK, way == "backward")
            for way in ("forward", "backward")
        ]
        ends.append({"backward": out[1][0], "forward": out[0][0]})
        xs = np.concatenate([out[0][1], out[1][1]], -1)
    same(layer(params, None, XS, mask=MASK), (ends, xs))


@pytest.mark.parametrize("kind", ["lstm", pytest.param("gru", marks=pytest.mark.slow)])
def test_vmap_and_halves_agree_with_the_whole(kind: str) -> None:
    layer, init, _, _, _ = KINDS[kind]
    params = noisy(init(random.key(0), INPUTS, UNITS))
    whole = layer(params, None, XS)
    rows = fxflow.vmap(layer, (None, None, 0))(params, None, XS)
    same(rows, whole)
    halves, first = layer(params, None, XS[:, :2])
    ends, second = layer(params, halves, XS[:, 2:])
    same((ends, fnp.concatenate([first, second], 1)), whole)

    @fxflow.jit
    def loss(params: Any, xs: Any) -> Any:
        return (layer(params, None, xs, mask=MASK)[1] ** 2).sum()

    params, xs = tree.map(lambda w: fnp.asarray(w, "float64"), (params, XS))
    slopes = fxflow.grad(loss, (0, 1))(params, xs)
    assert not np.asarray(slopes[1])[~MASK].any()
    way = noisy((params, xs), 5)
    way = tree.map(lambda w: np.asarray(w, np.float64) / 10, way)
    moved = lambda e: tree.map(lambda p, d: p + e * d, (params, xs), way)
    want = (loss(*moved(1e-4)) - loss(*moved(-1e-4))) / 2e-4
    have = sum(
        (np.asarray(s) * d).sum()
        for s, d in zip(tree.leaves(slopes), tree.leaves(way), strict=True)
    )
    np.testing.assert_allclose(have, want, rtol=1e-6)


@kinds
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_layers_keep_the_dtype(kind: str, dtype: str) -> None:
    layer, init, zeros, _, _ = KINDS[kind]
    params = init(random.key(0), INPUTS, UNITS, dtype=dtype)
    state, ys = layer(params, None, fnp.asarray(XS, dtype))
    assert {x.dtype.name for x in tree.leaves((params, state, ys))} == {dtype}
    single = tree.map(lambda w: w.astype("float32"), params)
    _, want = layer(single, None, XS)
    same(ys, want, 5e-2 if dtype == "bfloat16" else 5e-3)
    wider = np.result_type(np.float32, ys.dtype)
    assert layer(params, None, XS)[1].dtype == wider
    assert zeros(params, (2, 3), "float32")[0][0].dtype == "float32"


def test_first_weights() -> None:
    params = nn.lstm_cell_init(random.key(0), 300, 4, forget_bias=2.0)
    bias = np.zeros(16)
    bias[4:8] = 2
    np.testing.assert_array_equal(params["b"], bias)
    assert abs(float(params["w"].std()) * 300**0.5 - 1) < 0.05
    for gate in np.split(np.asarray(params["u"]), 4, -1):
        np.testing.assert_allclose(gate @ gate.T, np.eye(4), atol=1e-5)
    ones = nn.initializers.ones
    assert nn.gru_cell_init(random.key(0), 2, 3, w_init=ones)["w"].min() == 1


def test_state_can_be_donated() -> None:
    params = nn.lstm_init(random.key(0), INPUTS, UNITS)
    step = fxflow.jit(lambda s, x: nn.lstm(params, s, x), donate_argnums=0)
    state, _ = step(nn.lstm_state(params, BATCH), XS)
    same(step(state, XS)[1], nn.lstm(params, nn.lstm(params, None, XS)[0], XS)[1])


def test_dropout_between_layers() -> None:
    params = nn.lstm_init(random.key(0), INPUTS, UNITS, layers=2)
    plain = nn.lstm(params, None, XS)[1]
    drop = lambda rate: nn.lstm(
        params, None, XS, dropout_key=random.key(1), dropout_rate=rate
    )
    same(drop(0.0)[1], plain)
    assert not np.allclose(drop(0.5)[1], plain)
    same(drop(0.5)[0][0], nn.lstm(params, None, XS)[0][0])  # the first has all
    one = nn.lstm(params[:1], None, XS, dropout_key=random.key(1))[1]
    same(one, nn.lstm(params[:1], None, XS)[1])


def test_inputs_states_and_parameters_that_do_not_fit_are_refused() -> None:
    params = nn.lstm_init(random.key(0), INPUTS, UNITS)
    with pytest.raises(ShapeError, match="lstm: xs must have 3 features in its"):
        nn.lstm(params, None, XS[..., :2])
    with pytest.raises(ArgumentError, match="lstm: params must be a list with an item"):
        nn.lstm(params[0], None, XS)
    with pytest.raises(ArgumentError, match="state has 2 layers and the params 1"):
        nn.lstm(params, [None, None], XS)
    with pytest.raises(
        ArgumentError, match=r"state must be a pair \(c, h\), got Array"
    ):
        nn.lstm_cell(params[0], fnp.zeros((2, 4)), XS[:, 0])
    with pytest.raises(
        ShapeError, match=r"state must be floats of shape \[2, 4\], got"
    ):
        nn.lstm(params, nn.lstm_state(params, 3), XS)
    with pytest.raises(
        ArgumentError, match=r'gru_cell: params must be a dict with "w"'
    ):
        nn.gru_cell(params[0], None, XS[:, 0])
    with pytest.raises(ShapeError, match=r"mask must be bools of shape \[2, 5\], got"):
        nn.lstm(params, None, XS, mask=MASK.T)
    with pytest.raises(DtypeError, match=r"lstm_cell: x must be floats, got i32"):
        nn.lstm_cell(params[0], None, fnp.ones((2, 3), "int32"))
    both = nn.gru_init(random.key(0), INPUTS, UNITS, bidirectional=True)
    with pytest.raises(ArgumentError, match='must have "forward" and "backward", got'):
        nn.gru(both, [fnp.zeros((2, 4))], XS)
    with pytest.raises(ArgumentError, match="lstm_init: layers must be at least 1"):
        nn.lstm_init(random.key(0), 2, 3, layers=0)
