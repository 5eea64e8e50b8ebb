"""The same four models behind other servers, each as its documentation shows it.

    PORT=8000 python peers.py fastapi LIBRARY MODEL FORM   # jax, torch or onnxruntime
    PORT=8000 python peers.py ray MODEL

Under FastAPI a handler has several forms (`FORMS`), and which is the fastest depends on
the model and the machine, so all are measured. `mlserver` and `bentoml` are started by
their own commands, which import the classes below. A model is called as one call of its
library: compiled (JAX), in inference mode (PyTorch) or as a session (onnxruntime), with
one thread, as fxflow's has one.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from weights import GAMMA, PIXELS, weights

# -- models ----------------------------------------------------------------------------


def jax_model(name: str) -> Any:
    import jax
    import jax.numpy as jnp

    p = {k: jnp.asarray(v) for k, v in weights(name).items()}

    def conv(x, w):
        dims = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=dims)
        window = (1, 2, 2, 1)
        x = jax.nn.relu(x)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")

    def linear(x):
        return x @ p["w"] + p["b"]

    def kernel(x):
        squares = jnp.sum(x**2, 1, keepdims=True) + p["norms"]
        return jnp.exp(-GAMMA * (squares - 2 * (x @ p["points"]))) @ p["w"]

    def mlp(x):
        return jax.nn.relu(jax.nn.relu(x @ p["w0"]) @ p["w1"]) @ p["w2"]

    def cnn(x):
        x = conv(conv(x.reshape(-1, 28, 28, 1), p["c0"]), p["c1"])
        return jax.nn.relu(x.reshape(x.shape[0], -1) @ p["w0"]) @ p["w1"]

    made = {"linear": linear, "kernel": kernel, "mlp": mlp, "cnn": cnn}
    compiled = jax.jit(made[name])
    return lambda x: np.asarray(compiled(x))


def torch_model(name: str) -> Any:
    import torch
    from torch.nn import functional as F

    torch.set_num_threads(1)
    p = {k: torch.from_numpy(v) for k, v in weights(name).items()}

    def linear(x):
        return x @ p["w"] + p["b"]

    def kernel(x):
        squares = (x**2).sum(1, keepdim=True) + p["norms"]
        return torch.exp(-GAMMA * (squares - 2 * (x @ p["points"]))) @ p["w"]

    def mlp(x):
        return torch.relu(torch.relu(x @ p["w0"]) @ p["w1"]) @ p["w2"]

    def cnn(x):
        x = x.reshape(-1, 1, 28, 28)
        for layer in kernels:
            x = F.max_pool2d(torch.relu(F.conv2d(x, layer, padding=1)), 2)
        x = x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)
        return torch.relu(x @ p["w0"]) @ p["w1"]

    if name == "cnn":
        kernels = [p[k].permute(3, 2, 0, 1).contiguous() for k in ("c0", "c1")]
    function = {"linear": linear, "kernel": kernel, "mlp": mlp, "cnn": cnn}[name]

    def run(x):
        with torch.inference_mode():
            return function(torch.from_numpy(x)).numpy()

    return run


def onnx_file(name: str) -> Path:
    """The model as a file, which is made where there is none."""
    import onnx
    from onnx import TensorProto, numpy_helper
    from onnx import helper as h

    p = weights(name)
    nodes = []

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        out = f"v{len(nodes)}"
        nodes.append(h.make_node(kind, list(inputs), [out], **attributes))
        return out

    def constant(key: str, value: np.ndarray) -> str:
        p[key] = value
        return key

    match name:
        case "linear":
            node("Gemm", "x", "w", "b")
        case "kernel":
            one = constant("one", np.array([1], np.int64))
            squares = node("ReduceSum", node("Mul", "x", "x"), one, keepdims=1)
            two = constant("two", np.float32(2))
            product = node("Mul", node("MatMul", "x", "points"), two)
            distance = node("Sub", node("Add", squares, "norms"), product)
            scale = constant("scale", np.float32(-GAMMA))
            node("MatMul", node("Exp", node("Mul", distance, scale)), "w")
        case "mlp":
            hidden = node("Relu", node("MatMul", "x", "w0"))
            node("MatMul", node("Relu", node("MatMul", hidden, "w1")), "w2")
        case "cnn":
            shape = constant("shape", np.array([-1, 1, 28, 28], np.int64))
            at = node("Reshape", "x", shape)
            for key in ("c0", "c1"):
                p[key] = np.ascontiguousarray(p[key].transpose(3, 2, 0, 1))
                at = node("Relu", node("Conv", at, key, pads=[1, 1, 1, 1]))
                at = node("MaxPool", at, kernel_shape=[2, 2], strides=[2, 2])
            at = node("Transpose", at, perm=[0, 2, 3, 1])
            at = node("Reshape", at, constant("flat", np.array([0, -1], np.int64)))
            node("MatMul", node("Relu", node("MatMul", at, "w0")), "w1")
    nodes[-1].output[0] = "y"
    graph = h.make_graph(
        nodes,
        name,
        [h.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", PIXELS])],
        [h.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 10])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in p.items()],
    )
    made = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = folder / "fxflow" / "benchmarks" / f"serving-{name}.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(made, path)
    return path


def onnx_model(name: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    path = str(onnx_file(name))
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    return lambda x: session.run(None, {"x": x})[0]


def no_model(name: str) -> Any:
    """Costs nothing: what is measured is the server."""
    return lambda x: x[:, :10]


MAKERS = {
    "none": no_model,
    "jax": jax_model,
    "torch": torch_model,
    "onnxruntime": onnx_model,
}


def warm(run: Any) -> Any:
    """The model when its first calls are over."""
    for rows in (1, 2, 1):
        run(np.zeros((rows, PIXELS), np.float32))
    return run


# -- servers ---------------------------------------------------------------------------


#: Form of a handler under FastAPI → what it is, for tables. In all of them a call of
#: the library has one thread, and requests are not joined into batches.
FORMS = {
    "async": "async def, called in the event loop; pydantic; 1 process",
    "lean": "async def, called in the event loop; orjson, no pydantic; 1 process",
    "threads": "def, called in a pool of threads; pydantic; 1 process",
    "workers": "lean, in a process for each core",
}


def app() -> Any:
    """The application of FastAPI that the environment's variables name."""
    import orjson
    from fastapi import FastAPI, Request, Response
    from pydantic import BaseModel

    library, name, form = (os.environ[v] for v in ("LIBRARY", "MODEL", "FORM"))
    run = warm(MAKERS[library](name))
    made = FastAPI()
    numbers = orjson.OPT_SERIALIZE_NUMPY

    class Given(BaseModel):
        x: list[list[float]]

    def answered(body: bytes) -> Response:
        x = np.frombuffer(body, np.float32).reshape(-1, PIXELS)
        return Response(run(x).tobytes(), media_type="application/octet-stream")

    async def of_json(given: Given) -> dict[str, list[list[float]]]:
        return {"y": run(np.array(given.x, np.float32)).tolist()}

    def of_json_in_a_thread(given: Given) -> dict[str, list[list[float]]]:
        return {"y": run(np.array(given.x, np.float32)).tolist()}

    async def of_json_lean(request: Request) -> Response:
        x = np.array(orjson.loads(await request.body())["x"], np.float32)
        y = np.ascontiguousarray(run(x))
        text = orjson.dumps({"y": y}, option=numbers)
        return Response(text, media_type="application/json")

    async def of_bytes(request: Request) -> Response:
        return answered(await request.body())

    async def of_bytes_in_a_thread(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        return await run_in_threadpool(answered, await request.body())

    json_handlers = {"async": of_json, "threads": of_json_in_a_thread}
    made.post("/json")(json_handlers.get(form, of_json_lean))
    threads = form == "threads"
    made.post("/binary")(of_bytes_in_a_thread if threads else of_bytes)
    return made


def fastapi(library: str, name: str, form: str) -> None:
    """A handler for each kind of body, under uvicorn with uvloop and httptools."""
    import uvicorn

    os.environ |= {"LIBRARY": library, "MODEL": name, "FORM": form}
    uvicorn.run(
        "peers:app",
        factory=True,
        port=int(os.environ["PORT"]),
        workers=len(os.sched_getaffinity(0)) if form == "workers" else 1,
        loop="uvloop",
        http="httptools",
        access_log=False,
        log_config=None,
    )


def ray(name: str) -> None:
    """A deployment of Ray Serve, with its batching."""
    import time

    from ray import serve
    from starlette.requests import Request

    @serve.deployment(max_ongoing_requests=256)
    class Served:
        def __init__(self) -> None:
            self.run = warm(onnx_model(name))

        @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.002)
        async def batched(self, rows: list[list[float]]) -> list[list[float]]:
            return self.run(np.array(rows, np.float32)).tolist()

        async def __call__(self, request: Request) -> dict[str, list[list[float]]]:
            given = (await request.json())["x"]
            return {"y": [await self.batched(row) for row in given]}

    serve.start(http_options={"host": "127.0.0.1", "port": int(os.environ["PORT"])})
    serve.run(Served.bind(), route_prefix="/json")
    while True:
        time.sleep(3600)


# What `bentoml serve` and `mlserver start` import.
if "bentoml" in sys.modules:
    import bentoml

    @bentoml.service(workers=1, traffic={"timeout": 60})
    class Bento:
        def __init__(self) -> None:
            self.run = warm(onnx_model(os.environ["MODEL"]))

        @bentoml.api(
            batchable=True, max_batch_size=64, max_latency_ms=20, route="/json"
        )
        def predict(self, x: np.ndarray) -> np.ndarray:
            return self.run(x.astype(np.float32))


if "mlserver" in sys.modules:
    from mlserver import MLModel
    from mlserver.codecs import NumpyCodec
    from mlserver.types import InferenceRequest, InferenceResponse

    class Served(MLModel):
        async def load(self) -> bool:
            self.run = warm(onnx_model(self.name))
            return True

        async def predict(self, payload: InferenceRequest) -> InferenceResponse:
            x = self.decode(payload.inputs[0], default_codec=NumpyCodec)
            y = self.run(x.reshape(-1, PIXELS).astype(np.float32))
            return InferenceResponse(
                model_name=self.name, outputs=[NumpyCodec.encode_output("y", y)]
            )


if __name__ == "__main__":
    {"fastapi": fastapi, "ray": ray}[sys.argv[1]](*sys.argv[2:])
