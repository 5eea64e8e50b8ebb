"""Mistakes with what JAX itself does not have: layers, training, files, sparse arrays.

They stand in `OWN`, each a function without arguments.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import export, nn, optim, ragged, random, sparse, train
from fxflow.scipy import interpolate, linalg, stats

OWN: dict[str, Callable[[], object]] = {}


def own(function: Callable[[], object]) -> Callable[[], object]:
    OWN[function.__name__] = function
    return function


@functools.cache
def folder() -> Path:
    """Returns a folder for files."""
    return Path(tempfile.mkdtemp(prefix="run-1-"))


def outcome(name: str) -> Exception | None:
    """Returns the error that a mistake ends in."""
    try:
        OWN[name]()
    except Exception as error:
        return error
    return None


# -- layers ----------------------------------------------------------------------------


@own
def seed_for_a_layer():
    nn.linear_init(0, 4, 2)


@own
def layer_of_other_features():
    nn.linear(nn.linear_init(random.key(0), 4, 2), fnp.ones((8, 5)))


@own
def layer_called_with_sizes():
    nn.linear(4, 2)


@own
def layer_as_a_class():
    nn.Linear(4, 2)


@own
def layer_in_features():
    nn.linear_init(random.key(0), in_features=4, units=2)


@own
def conv_padding_as_a_number():
    nn.conv(
        nn.conv_init(random.key(0), 3, 8, (3, 3)), fnp.ones((2, 8, 8, 3)), padding=1
    )


@own
def conv_strides_as_a_number():
    nn.conv(
        nn.conv_init(random.key(0), 3, 8, (3, 3)), fnp.ones((2, 8, 8, 3)), strides=2
    )


@own
def conv_channels_first():
    nn.conv(nn.conv_init(random.key(0), 3, 8, (3, 3)), fnp.ones((2, 3, 8, 8)))


@own
def dropout_without_a_key():
    nn.dropout(None, fnp.ones(3), 0.5)


@own
def lstm_of_other_features():
    nn.lstm(nn.lstm_init(random.key(0), 4, 8), None, fnp.ones((2, 7, 5)))


@own
def attention_mask_of_floats():
    x = fnp.ones((2, 5, 4, 8))
    nn.dot_product_attention(x, x, x, mask=fnp.ones((5, 5)))


@own
def softmax_dim():
    nn.softmax(fnp.ones((2, 3)), dim=1)


@own
def checkpoint_policy_as_text():
    fxflow.checkpoint(lambda x: x, policy="dots")


# -- training --------------------------------------------------------------------------


@own
def labels_as_floats():
    optim.losses.softmax_cross_entropy_with_integer_labels(
        fnp.ones((8, 10)), fnp.ones(8)
    )


@own
def labels_with_an_axis():
    optim.losses.softmax_cross_entropy_with_integer_labels(
        fnp.ones((8, 10)), fnp.ones((8, 1), "int32")
    )


@own
def labels_not_one_hot():
    optim.losses.softmax_cross_entropy(fnp.ones((8, 10)), fnp.ones(8, "int32"))


@own
def metric_of_classes():
    train.metrics.accuracy(fnp.ones(8, "int32"), fnp.ones(8, "int32"))


@own
def data_of_other_lengths():
    train.data.arrays({"x": np.ones((10, 2)), "y": np.ones(9)})


@own
def data_that_raises():
    def parse(element):
        return element["image"] / 255

    next(iter(train.data.arrays({"x": np.ones((10, 2))}).map(parse)))


@own
def data_of_ragged_rows():
    next(iter(train.data.iterable([np.ones(2), np.ones(3)]).batch(2)))


@own
def step_without_outputs():
    batches = train.data.arrays({"x": np.ones((4, 2))}).batch(2)
    train.loop.run(lambda state, batch: state, {"w": fnp.ones(2)}, batches, epochs=1)


@own
def restored_into_other_parameters():
    train.checkpoint.save(folder() / "a", {"w": fnp.ones(3)})
    train.checkpoint.restore(folder() / "a", {"w": fnp.ones(4), "b": fnp.ones(1)})


@own
def saved_with_arguments_swapped():
    train.checkpoint.save({"w": fnp.ones(3)}, "run")


@own
def nothing_to_restore():
    train.checkpoint.restore(folder() / "nothing", {"w": fnp.ones(3)})


@own
def class_of_a_state():
    train.TrainState.create(params={})


# -- optimizers ------------------------------------------------------------------------


@own
def optimizer_lr():
    optim.adam(lr=1e-3)


@own
def optimizer_other_updates():
    p = {"w": fnp.ones(3)}
    optim.apply_updates(p, {"b": fnp.ones(3)})


@own
def optimizer_not_unpacked():
    opt = optim.sgd(0.1)
    p = {"w": fnp.ones(3)}
    u = opt.update(p, opt.init(p))
    optim.apply_updates(p, u)


@own
def optimizer_other_shapes():
    opt = optim.adam(1e-3)
    opt.update({"w": fnp.ones(4)}, opt.init({"w": fnp.ones(3)}))


@own
def optimizer_list():
    optim.chain([optim.clip(1.0), optim.sgd(0.1)]).init({"w": fnp.ones(3)})


@own
def optimizer_without_init():
    opt = optim.adam(1e-3)
    opt.update({"w": fnp.ones(3)}, None)


@own
def optimizer_labels():
    optim.losses.softmax_cross_entropy(fnp.ones((8, 10)), fnp.ones(8, "int32"))


# -- export ----------------------------------------------------------------------------


@own
def exported_without_jit():
    def predict(x):
        return x

    export.export(predict)(fnp.ones(3))


@own
def exported_for_another_shape():
    exported = export.export(fxflow.jit(lambda x: x))(fnp.ones(3))
    exported.call(fnp.ones(4))


@own
def callback_in_an_export():
    host = fxflow.jit(lambda x: fxflow.pure_callback(np.sin, x, x))
    export.export(host)(fnp.ones(3)).serialize()


# -- sparse and ragged arrays ----------------------------------------------------------


@own
def sparse_product_shapes():
    sparse.csr_array(np.eye(3)) @ fnp.ones(4)


@own
def sparse_assignment():
    a = sparse.csr_array(np.eye(3))
    a[0, 1] = 2


@own
def sparse_in_a_dense_function():
    fnp.exp(sparse.csr_array(np.eye(3)))


@own
def sparse_of_a_traced_array():
    fxflow.jit(lambda x: sparse.csr_array(x) @ x)(fnp.eye(3))


@own
def ragged_sum_of_other_lengths():
    ragged.array([[1.0, 2.0], [3.0]]) + ragged.array([[1.0], [2.0, 3.0]])


@own
def ragged_row_that_is_not_there():
    ragged.array([[1.0, 2.0], [3.0]])[5]


@own
def ragged_lengths_of_floats():
    ragged.from_padded(fnp.ones((2, 3)), fnp.array([1.0, 2.0]))


# -- SciPy's names ---------------------------------------------------------------------


@own
def spline_of_lists():
    interpolate.CubicSpline([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])


@own
def cho_solve_of_a_matrix():
    linalg.cho_solve(fnp.eye(3), fnp.ones(3))


@own
def sample_of_a_size():
    stats.norm.rvs(random.key(0), size=3)


@own
def tensor_of_pytorch():
    fnp.tensor([1.0, 2.0])


@own
def gradients_off():
    fxflow.no_grad()
