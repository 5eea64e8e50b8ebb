"""Networks as ONNX models: results, names, files, int8 weights."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, load_model

import fxflow
import fxflow.numpy as fnp
from fxflow import errors, export, random, tree
from tests.export.models import NETS, example
from tests.export.onnx_rules.checks import check


@pytest.mark.parametrize("name", NETS)
def test_answers_are_xlas(name: str) -> None:
    apply, params, inputs = NETS[name]()
    made = check(apply, params, *inputs, bind=True)
    stored = {i.name for i in made.model.graph.initializer}
    named = [n for n in stored if n.startswith("params.")]
    assert len(named) == len(tree.leaves(params))


def test_other_networks_of_the_examples() -> None:
    mnist = example("mnist")
    params = mnist.mlp_init(random.key(0))
    check(mnist.mlp_apply, params, random.uniform(random.key(1), (3, 28, 28)))


def test_nearby_words() -> None:
    """The search of `examples/word2vec.py`: cosines, then the largest."""
    vectors = random.normal(random.key(0), (50, 8))

    def nearby(vectors: Any, words: Any) -> Any:
        unit = vectors / fnp.linalg.norm(vectors, axis=1, keepdims=True)
        return fxflow.lax.top_k(unit[words] @ unit.T, 5)

    check(nearby, vectors, fnp.array([3, 7]))


def test_a_language_model_over_a_text() -> None:
    cell = NETS["lstm"]()

    def run(params: Any, xs: Any) -> Any:
        zero = fnp.zeros((3, 7))
        return fxflow.lax.scan(
            lambda state, x: cell.apply(params, state, x), (zero, zero), xs
        )

    made = check(run, cell.params, random.normal(random.key(3), (4, 3, 5)))
    assert "Scan" in {node.op_type for node in made.model.graph.node}


def test_names_and_structure() -> None:
    def f(params: Any, x: Any, *rest: Any, more: Any) -> Any:
        total = x + rest[0] + rest[1]["a"] + more[0] + params["w"][1]
        return {"a": [total, None], "c": (total * 2,)}

    ones = fnp.ones(2)
    args = {"w": [ones, ones]}, ones, ones, {"a": ones}
    made = export.onnx(fxflow.jit(f).lower(*args, more=(ones,)), params=args[0])
    assert made.in_names == ("x", "rest.0", "rest.1.a", "more.0")
    assert made.out_names == ("output.a.0", "output.c.0")
    stored = {i.name for i in made.model.graph.initializer}
    assert stored >= {"params.w.0", "params.w.1"}
    found = made(*args[1:], more=(ones,))
    assert tree.structure(found) == tree.structure(f(*args, more=(ones,)))
    assert "f(f32[2], f32[2], f32[2], f32[2]) -> (f32[2], f32[2])" in repr(made)
    with pytest.raises(errors.ArgumentError, match="structure"):
        made(ones)
    with pytest.raises(errors.ArgumentError, match=r"f32\[2\] as x, got f32\[3\]"):
        made(fnp.ones(3), *args[2:], more=(ones,))


def test_an_exported_function_becomes_a_model() -> None:
    apply, params, inputs = NETS["lstm"]()
    exported = export.export(fxflow.jit(lambda *xs: apply(params, *xs)))(*inputs)
    found = export.onnx(exported)(*inputs)
    np.testing.assert_allclose(found[1], apply(params, *inputs)[1], rtol=1e-5)
    loaded = export.deserialize(exported.serialize())
    with pytest.raises(errors.ArgumentError, match="has only StableHLO"):
        export.onnx(loaded)


def test_quantized_weights_are_smaller() -> None:
    apply, params, inputs = NETS["mnist"]()
    lowered = fxflow.jit(apply).lower(params, *inputs)
    whole = export.onnx(lowered, params=params)
    small = export.onnx(lowered, params=params, quantize="int8")
    assert small.model.ByteSize() < 0.27 * whole.model.ByteSize()
    rounded = apply(export.dequantize(export.quantize(params)), *inputs)
    np.testing.assert_allclose(small(*inputs), rounded, rtol=1e-5, atol=1e-5)
    kinds = {i.name: i.data_type for i in small.model.graph.initializer}
    assert kinds["params.conv1.w.int8"] == TensorProto.INT8
    captured = export.onnx(
        fxflow.jit(lambda *xs: apply(params, *xs)).lower(*inputs), quantize="int8"
    )
    np.testing.assert_allclose(captured(*inputs), rounded, rtol=1e-5, atol=1e-5)


def test_weights_in_one_file_or_a_separate_one(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    apply, params, inputs = NETS["mnist"]()
    made = export.onnx(fxflow.jit(apply).lower(params, *inputs), params=params)
    one, two = tmp_path / "one.onnx", tmp_path / "two.onnx"
    made.save(one)
    made.save(two, beside="weights.bin")
    made.save(two, beside="weights.bin")  # again: the file does not grow
    assert two.stat().st_size < 20_000 < one.stat().st_size
    weights = sum(leaf.nbytes for leaf in tree.leaves(params))
    assert (tmp_path / "weights.bin").stat().st_size <= weights + 8 * 4096
    want = np.asarray(made(*inputs))
    for path in (str(one), two):
        session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"images": np.asarray(inputs[0])})
        np.testing.assert_array_equal(found, want)
    told = load_model(str(one))
    assert (told.producer_name, told.opset_import[0].version) == ("fxflow", 21)


def test_invalid_options_and_parameters_are_refused() -> None:
    lowered = fxflow.jit(fnp.sin).lower(fnp.ones(3))
    with pytest.raises(errors.ArgumentError, match="'int8' or None"):
        export.onnx(lowered, quantize="int4")
    with pytest.raises(errors.ArgumentError, match=r"params: sin.*f32\[3\] as x"):
        export.onnx(lowered, params=fnp.ones(4))
    with pytest.raises(errors.ArgumentError, match="no first argument"):
        export.onnx(fxflow.jit(lambda: fnp.ones(3)).lower(), params=1)
    with pytest.raises(errors.ArgumentError, match="returns keys"):
        export.onnx(fxflow.jit(lambda k: k).lower(random.key(0)))
    with pytest.raises(errors.ArgumentError, match="has effects"):
        export.onnx(fxflow.jit(lambda x: fxflow.debug.print("{}", x)).lower(1.0))
    with pytest.raises(errors.ArgumentError, match="expected the result of export"):
        export.onnx(fnp.sin)
    double = export.onnx(fxflow.jit(fnp.tan).lower(np.ones(3, np.float64)))
    if double.in_avals[0].dtype == np.float64:
        with pytest.raises(errors.ArgumentError, match="NOT_IMPLEMENTED"):
            double(np.ones(3))


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = fxflow.jit(fnp.sin).lower(fnp.ones(2))
    made = export.onnx(lowered)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match="pip install onnxruntime"):
        made(fnp.ones(2))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"fxflow\[onnx\]"):
        export.onnx(lowered)
