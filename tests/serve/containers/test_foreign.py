"""Models of other libraries, each with a queue and a process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.service import ModelConfig, ModelService, PredictionRequest


def answers(source: ModelSource, x: Any) -> dict[str, Any]:
    """Returns the model's answers for the rows of x, in concurrent requests."""

    async def main() -> dict[str, Any]:
        service = ModelService(ModelConfig("m", source, slo=2.0, deadline=20.0))
        await service.start()
        try:
            (spec,) = service.signature.inputs
            found = await asyncio.gather(
                *(
                    service.submit(PredictionRequest({spec.name: row[None]}, 1))
                    for row in x
                )
            )
            names = found[0].outputs
            return {
                name: np.concatenate([answer.outputs[name] for answer in found])
                for name in names
            }
        finally:
            await service.close()

    return asyncio.run(main())


def test_scikit_learn(tmp_path: Path) -> None:
    """A fitted classifier, created by a factory in the process."""
    ensemble = pytest.importorskip("sklearn.ensemble")
    path = tmp_path / "served_forest.py"
    path.write_text(
        "import numpy as np\n"
        "from sklearn.ensemble import RandomForestClassifier\n"
        "from fxflow.serve import Model\n"
        "def fitted():\n"
        "    rng = np.random.default_rng(0)\n"
        "    x = rng.normal(size=(200, 3)).astype(np.float32)\n"
        "    return RandomForestClassifier(10, random_state=0).fit(x, x[:, 0] > 0)\n"
        "def load():\n"
        "    forest = fitted()\n"
        "    return Model(lambda x: {'class': forest.predict(x),\n"
        "                            'shares': forest.predict_proba(x)},\n"
        "                 inputs={'x': 'f32[n,3]'}, jit=False)\n"
    )
    rng = np.random.default_rng(0)
    seen = rng.normal(size=(200, 3)).astype(np.float32)
    forest = ensemble.RandomForestClassifier(10, random_state=0)
    forest.fit(seen, seen[:, 0] > 0)
    x = np.random.default_rng(1).normal(size=(12, 3)).astype(np.float32)
    found = answers(ModelSource(f"{path}:load", factory=True), x)
    np.testing.assert_array_equal(found["class"], forest.predict(x))
    np.testing.assert_allclose(found["shares"], forest.predict_proba(x))


def test_onnxruntime(tmp_path: Path) -> None:
    """A session with one thread, for an ONNX file."""
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["z"]),
            helper.make_node("Tanh", ["z"], ["y"]),
        ],
        "g",
        [helper.make_tensor_value_info("x", kind, ["n", 3])],
        [helper.make_tensor_value_info("y", kind, ["n", 2])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    path = tmp_path / "served_onnx.py"
    path.write_text(
        "import onnxruntime\n"
        "from fxflow.serve import Model\n"
        "def load(path):\n"
        "    options = onnxruntime.SessionOptions()\n"
        "    options.intra_op_num_threads = 1\n"
        "    net = onnxruntime.InferenceSession(\n"
        "        path, options, providers=['CPUExecutionProvider'])\n"
        "    return Model(lambda x: net.run(None, {'x': x}),\n"
        "                 inputs={'x': 'f32[n,3]'}, outputs=['y'], jit=False)\n"
    )
    x = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    arguments = {"path": str(tmp_path / "net.onnx")}
    source = ModelSource(f"{path}:load", factory=True, arguments=arguments)
    found = answers(source, x)
    np.testing.assert_allclose(found["y"], np.tanh(x @ weights), rtol=1e-5, atol=1e-6)
