"""Builds a page that reads digits, and learns from corrections, without a server.

    npm install onnxruntime-web
    python frontends/web/build_page.py build/page --ort node_modules/onnxruntime-web
    python -m http.server --directory build/page

Trains a net for MNIST, and writes a folder with everything that the page needs; it
works offline.
"""

import argparse
import shutil
import sys
from pathlib import Path

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import export, nn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT / "examples")]

import export_mnist  # noqa: E402

#: What the page loads of ONNX Runtime: its script, and WebAssembly.
RUNTIME = (
    "ort.wasm.min.mjs",
    "ort-wasm-simd-threaded.mjs",
    "ort-wasm-simd-threaded.wasm",
)


def predict(params, images):
    """Returns the probabilities of the digits."""
    return {"probabilities": nn.softmax(export_mnist.logits(params, images))}


def tune(params, images, labels):
    """Returns the parameters after a step of the last layer, and the loss before it."""

    def loss(last):
        return export_mnist.loss({**params, "output": last}, images, labels)

    value, slope = fxflow.value_and_grad(loss)(params["output"])
    last = fxflow.tree.map(lambda p, g: p - 0.02 * g, params["output"], slope)
    return {**params, "output": last}, {"loss": value}


def write(folder, params, runtime):
    """Writes the page.

    Args:
      folder: where to.
      params: the trained parameters.
      runtime: the folder of `onnxruntime-web`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    image, label = np.zeros((1, 784), "u1"), np.zeros(1, "u1")
    functions = {
        "predict": export.export(fxflow.jit(predict))(params, image),
        "tune": export.export(fxflow.jit(tune))(params, image, label),
    }
    path = folder / "digits.fx"
    export.save(path, functions, params=params, onnx=("predict", "tune"))
    page = (ROOT / "examples" / "serving" / "digits.html").read_text()
    script = '<script type="module" src="local.js"></script>\n</html>'
    (folder / "index.html").write_text(page.replace("</html>", script))
    shutil.copyfile(HERE / "page" / "local.js", folder / "local.js")
    shutil.copyfile(HERE / "index.js", folder / "fxflow-web.js")
    for name in RUNTIME:
        shutil.copyfile(runtime / "dist" / name, folder / name)


def main() -> None:
    """Trains, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ort", type=Path, required=True, help="of onnxruntime-web")
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    from helpers.datasets import load_mnist

    data = load_mnist()
    images = data.train_images.reshape(-1, 784)
    state = fxflow.jit(export_mnist.init)(fxflow.random.key(0))
    step = fxflow.jit(export_mnist.step)
    draw = np.random.default_rng(0)
    for epoch in range(options.epochs):
        order, losses = draw.permutation(len(images)), []
        for i in range(0, len(images), export_mnist.BATCH):
            batch = order[i : i + export_mnist.BATCH]
            state, out = step(state, images[batch], data.train_labels[batch])
            losses.append(out["loss"])
        print(
            f"epoch {epoch}: loss {float(fnp.mean(fnp.stack(losses))):.4f}", flush=True
        )
    write(options.folder, state["params"], options.ort)


if __name__ == "__main__":
    main()
