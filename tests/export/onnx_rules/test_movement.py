import pytest

import fxflow.numpy as fnp
from fxflow import errors, export, jit, lax
from tests.export.onnx_rules.checks import check, kinds

X = fnp.arange(24.0).reshape(2, 3, 4)


def test_movements_agree_with_the_function():
    def f(x):
        return (
            x.reshape(6, 4).T,
            fnp.moveaxis(x, 0, 2),
            x[:, ::-1, 1:3],
            x[..., ::2],
            fnp.concatenate([x, x], axis=1),
            fnp.split(x, 2, axis=2),
            fnp.broadcast_to(x[:, :1], x.shape),
            fnp.flip(x),
            fnp.tril(x[0]),
        )

    check(f, X)


@pytest.mark.parametrize(
    "config",
    [
        [(1, 2, 0), (0, 0, 0), (0, 1, 0)],
        [(0, 0, 2), (1, 0, 1), (0, 0, 0)],
        [(-1, 0, 0), (0, -1, 0), (2, -1, 1)],
        [(-1, -1, 0), (0, 0, 0), (0, 0, 0)],
    ],
    ids=["around", "between", "away", "all"],
)
def test_padding(config):
    check(lambda x: lax.pad(x, 7.0, config), X)


def test_broadcast_constants_are_written_compactly():
    made = check(lambda x: x + lax.broadcasted_iota("float32", (2, 3, 4), 2), X)
    assert max(len(i.raw_data) for i in made.model.graph.initializer) <= 4 * 8
    assert kinds(made)["Transpose"] == 0


def test_empty_arrays():
    check(
        lambda x: (x[:0].sum(), x[:0].T, fnp.concatenate([x[:0], x]), x[:0].max(1)), X
    )


def test_bitcasts_are_refused():
    with pytest.raises(errors.ExportError, match="reads float32 as int32"):
        export.onnx(
            jit(lambda x: lax.bitcast_convert_type(x, fnp.int32)).trace(fnp.ones(3))
        )
