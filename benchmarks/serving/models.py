"""The four models, and a free one, as fxflow serves them: `… models.py:linear`."""

import sys
from pathlib import Path

# By path of the file: the models' processes import this one from anywhere.
sys.path.insert(0, str(Path(__file__).parent))

from weights import GAMMA, PIXELS, weights

import fxflow.numpy as fnp
from fxflow import nn
from fxflow.serve import Model


def _model(function, name):
    return Model(
        function,
        weights(name),
        inputs={"x": f"f32[batch,{PIXELS}]"},
        outputs=["y"],
    )


def _linear(p, x):
    return x @ p["w"] + p["b"]


def _kernel(p, x):
    squares = fnp.sum(x**2, axis=1, keepdims=True) + p["norms"]
    return fnp.exp(-GAMMA * (squares - 2 * (x @ p["points"]))) @ p["w"]


def _mlp(p, x):
    return nn.relu(nn.relu(x @ p["w0"]) @ p["w1"]) @ p["w2"]


def _cnn(p, x):
    x = x.reshape(-1, 28, 28, 1)
    for layer in ("c0", "c1"):
        x = nn.relu(nn.conv({"w": p[layer]}, x))
        x = nn.max_pool(x, (2, 2))
    return nn.relu(x.reshape(x.shape[0], -1) @ p["w0"]) @ p["w1"]


def _echo(x):
    return x[:, :10]


def _steps(x):
    for _ in range(100):
        yield x[:, :1]


linear = _model(_linear, "linear")
kernel = _model(_kernel, "kernel")
mlp = _model(_mlp, "mlp")
cnn = _model(_cnn, "cnn")
#: It costs nothing: what is measured is the server.
echo = Model(_echo, inputs={"x": f"f32[batch,{PIXELS}]"}, outputs=["y"], jit=False)
steps = Model(_steps, inputs={"x": f"f32[batch,{PIXELS}]"}, outputs=["y"], jit=False)
