"""Trains, exports and serves a model of handwritten digits, with a page to draw on.

    python examples/serve_mnist.py                  # a perceptron, trained for seconds
    python examples/serve_mnist.py --model cnn --epochs 8    # the full training
    python examples/serve_mnist.py --export models  # only writes the files
    cd models && fxflow serve serving.toml          # serves them

    pip install 'fxflow[examples,serve]'

The server needs none of this source: it runs StableHLO programs for batches of 1, 8 and
64 images, which share one file of parameters. The page is at /app/, and the state of
the server at /status.
"""

import contextlib
import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mnist
import numpy as np

import fxflow
from fxflow import export, nn

PAGE = Path(__file__).parent / "serving" / "digits.html"
SIZES = (1, 8, 64)
PATIENCE = 30.0  # seconds for a request and its retries
SERVING = """\
slo = "20ms"
static = "page"

[models.digits]
source = "digits-*.fx"
inputs = {image = "f32[batch,28,28]"}
outputs = ["probabilities"]
cache = "4MiB"
"""


def write(folder: Path, model: mnist.Model, params: mnist.Params) -> None:
    """Writes the files for `fxflow serve`: programs, parameters, page, configuration.

    Args:
      folder: the folder, which is created.
      model: the trained model.
      params: its parameters.
    """

    @fxflow.jit
    def probabilities(params: mnist.Params, images: fxflow.Array) -> fxflow.Array:
        return nn.softmax(model.apply(params, images))

    (folder / "page").mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        images = fxflow.ShapeDtypeStruct((size, 28, 28), np.float32)
        export.save(
            folder / f"digits-{size}.fx",
            export.export(probabilities)(params, images),
            params=params,
            beside="digits.safetensors",
        )
    shutil.copyfile(PAGE, folder / "page" / "index.html")
    (folder / "serving.toml").write_text(SERVING)


@contextlib.contextmanager
def served(folder: Path, *options: str) -> Iterator[int]:
    """Runs `fxflow serve` for a folder.

    Args:
      folder: a folder with `serving.toml`.
      options: options of the command.

    Yields:
      The port, once all models are ready.
    """
    command = [sys.executable, "-m", "fxflow", "serve", "serving.toml", *options]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    rest: threading.Thread | None = None
    try:
        seen = []
        for line in process.stderr:
            seen.append(line)
            if found := re.search(r" at https?://[^ ]*:(\d+)$", line):
                break
        else:
            sys.exit("".join(seen))
        # Unread output would fill the pipe and block the server.
        rest = threading.Thread(target=lambda: [*process.stderr])
        rest.start()
        yield int(found[1])
    finally:
        process.terminate()
        process.wait()
        if rest is not None:
            rest.join()
        process.stderr.close()


def post(
    port: int, path: str, body: str | bytes, headers: dict[str, str] | None = None
) -> tuple[Any, bytes]:
    """Sends a request until it is answered; returns the answer's headers and body.

    A server with a latency objective refuses requests that would be late (503), and
    aborts requests that are (504). On a busy machine even the first request may be
    late. The client retries after the time that the server sends.
    """
    end = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", path, body, headers or {})
            reply = connection.getresponse()
            found = reply.read()
        if reply.status == 200:
            return reply.headers, found
        if reply.status not in (503, 504) or time.monotonic() > end:
            raise RuntimeError(f"{reply.status}: {json.loads(found)['error']}")
        time.sleep(float(reply.headers.get("Retry-After", 0.1)))


def ask(port: int, model: str, value: Any) -> Any:
    """Uses the plain route: lists in, lists out."""
    return json.loads(post(port, f"/predict/{model}", json.dumps(value))[1])


def binary(port: int, model: str, name: str, array: np.ndarray) -> np.ndarray:
    """Uses the Open Inference Protocol: tensors as bytes after the JSON."""
    tensor = {"name": name, "datatype": "FP32", "shape": array.shape}
    tensor["parameters"] = {"binary_data_size": array.nbytes}
    head = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    text = json.dumps(head).encode()
    headers, body = post(
        port,
        f"/v2/models/{model}/infer",
        text + array.astype("<f4").tobytes(),
        {"Inference-Header-Content-Length": str(len(text))},
    )
    size = int(headers["Inference-Header-Content-Length"])
    (output,) = json.loads(body[:size])["outputs"]
    return np.frombuffer(body[size:], "<f4").reshape(output["shape"])


def query(port: int, data: mnist.Mnist) -> float:
    """Sends all test images, and some one by one; returns the served accuracy."""
    images = data.test_images.astype(np.float32) / 255
    right = 0
    for start in range(0, len(images), SIZES[-1]):
        part = slice(start, start + SIZES[-1])
        found = binary(port, "digits", "image", images[part])
        right += int(np.sum(found.argmax(-1) == data.test_labels[part]))
    times = []
    for image in images[:100]:
        begun = time.perf_counter()
        ask(port, "digits", [image.tolist()])
        times.append(time.perf_counter() - begun)
    accuracy = right / len(images)
    middle, late = np.percentile(times, [50, 99]) * 1e3
    print(
        f"served accuracy: {accuracy:.2%} of {len(images):,} images; one image takes "
        f"{middle:.1f} ms (99 %: {late:.1f} ms), its JSON and connection included",
        flush=True,
    )
    return accuracy


def main(arguments: list[str] | None = None) -> None:
    """Trains, exports, serves and queries; then serves until Ctrl-C."""
    parser = mnist.options(__doc__.splitlines()[0], model="mlp")
    parser.set_defaults(epochs=2)
    parser.add_argument("--export", metavar="FOLDER", help="only write the files there")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--once", action="store_true", help="end after the queries")
    given = parser.parse_args(arguments)
    data = mnist.load_mnist()
    params, _ = mnist.train(given, data)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(given.export or made)
        write(folder, mnist.MODELS[given.model], params)
        print(f"written: {', '.join(sorted(path.name for path in folder.iterdir()))}")
        if given.export:
            return
        with served(folder, "--port", str(given.port)) as port:
            query(port, data)
            print(f"draw at http://127.0.0.1:{port}/app/", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                while not given.once:
                    time.sleep(3600)


if __name__ == "__main__":
    main()
