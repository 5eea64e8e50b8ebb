"""Models with symbolic sizes."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export, lax, nn, tree
from fxflow.errors import ExportError, ShapeError
from tests.export.models import NETS
from tests.export.onnx_rules.checks import compare, kinds

pytest.importorskip("onnx", reason="pip install fxflow[onnx]")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

from onnx import checker

_SIZES = ({"b": 1, "t": 4}, {"b": 3, "t": 7})


def struct(spec: str, dtype: str = "float32", scope: Any = None) -> Any:
    scope = scope or export.SymbolicScope()
    return fxflow.ShapeDtypeStruct(export.symbolic_shape(spec, scope=scope), dtype)


def sampled(spec: Any, sizes: dict[str, int]) -> np.ndarray:
    rng = np.random.default_rng(0)
    shape = [int(eval(str(n), {}, sizes)) for n in spec.shape]
    if spec.dtype == np.int32:
        return rng.integers(0, 9, shape).astype(np.int32)
    return rng.normal(size=shape).astype(np.float32)


def check(function: Any, *specs: Any, params: Any = None) -> Any:
    """Compares one model at several sizes with the function itself."""
    first = () if params is None else (params,)
    made = export.onnx(fxflow.jit(function).trace(*first, *specs), params=params)
    checker.check_model(made.model, full_check=True)
    for sizes in _SIZES:
        args = tree.map(partial(sampled, sizes=sizes), specs)
        wanted = tree.leaves(function(*first, *tree.map(fnp.asarray, args)))
        for a, b in zip(tree.leaves(made(*args)), wanted, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            compare(np.asarray(a), np.asarray(b))
    return made


def shapes(infos: Any) -> list[list[Any]]:
    """Returns the shapes that the model declares: names and numbers."""
    return [
        [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim]
        for i in infos
    ]


def nets() -> dict[str, tuple[Any, ...]]:
    scope = export.SymbolicScope()
    state = struct("b, 7", scope=scope)
    return {
        "mnist": (struct("b, 28, 28"),),
        "sentences": (struct("b, t + 4", "int32"),),
        "lstm": ((state, state), struct("b, 5", scope=scope)),
        "transformer": (struct("b, 6", "int32"),),
    }


@pytest.mark.parametrize("name", NETS)
def test_networks_with_a_symbolic_batch_size(name: str) -> None:
    apply, params, _ = NETS[name]()
    made = check(apply, *nets()[name], params=params)
    assert all(shape[0] == "b" for shape in shapes(made.model.graph.output))


def moved(x: Any) -> Any:
    b, t = x.shape
    index = fnp.arange(t) // 2
    return (
        x.reshape(-1)[: b * t // 2 + 1],
        fnp.pad(x, ((1, t), (0, 0)))[::-1],
        x[:, index] + fnp.argsort(x, 0)[:, index],
        x.at[:, -1].add(fnp.linspace(0, 1, b)),
        fnp.full((t, t // 2 + t % 3), b),
    )


def looped(x: Any) -> Any:
    rows = lax.scan(lambda c, row: (c + row, c * row), x[0], x)
    last = lax.fori_loop(0, x.shape[1], lambda i, c: c + x[0, i], 0.0)
    return rows, last, lax.associative_scan(lax.mul, x, axis=1)


def block(x: Any) -> Any:
    b, t, d = x.shape
    q, k, v = fnp.split(fnp.tile(nn.standardize(x), 3).reshape(b, t, 2, -1), 3, -1)
    return x + nn.dot_product_attention(q, k, v, is_causal=True).reshape(b, t, d)


@pytest.mark.parametrize(
    ("function", "spec"),
    [(moved, "b, 2*t"), (looped, "b, t"), (block, "b, t, 8")],
    ids=["moved", "looped", "block"],
)
def test_operations_of_symbolic_sizes_agree(function: Any, spec: str) -> None:
    check(function, struct(spec))


def test_sizes_are_computed_once_before_other_nodes() -> None:
    made = export.onnx(
        fxflow.jit(lambda x: fnp.ones((x.shape[0], x.shape[0] + 1)) * x.shape[0]).trace(
            struct("3*b + 1")
        )
    )
    assert shapes(made.model.graph.input) == [["3*b + 1"]]
    assert shapes(made.model.graph.output) == [["3*b + 1", "3*b + 2"]]
    found = kinds(made)
    assert (found["Shape"], found["Div"]) == (1, 1)
    assert made(np.ones(4, "f4")).tolist() == [[4.0] * 5] * 4
    with pytest.raises(ShapeError, match=r"axis 0 of x.* is 5, .* no b"):
        made(np.ones(5, "f4"))


def test_sizes_that_onnx_cannot_derive_are_refused() -> None:
    def pooled(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, x.shape, (1,), "VALID")

    with pytest.raises(ExportError, match="over windows of symbolic size"):
        export.onnx(fxflow.jit(pooled).trace(struct("b")))
    with pytest.raises(ExportError, match="no input determines b, t"):
        export.onnx(fxflow.jit(lambda x: x + x.shape[0]).trace(struct("b*t")))
