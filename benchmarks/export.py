"""Measures programs that left the process: their sizes, and how fast they answer.

    python benchmarks/export.py

Four nets, one input at a time, on the CPU: fxflow itself (XLA), IREE's runtime, ONNX
Runtime and the C library, which take turns. Weights in 8 bits: what they save, and what
they cost the MNIST net, which is trained for it. And fresh processes, from their start
to the first answer, beside JAX and ONNX Runtime. JAX has an environment of its own.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from run import HERE, REQUIREMENTS, environment, number

REQUIREMENTS["fxflow"] = [
    "--editable",
    f"{HERE.parent}[examples,iree,onnx]",
    "onnxruntime",
]
REQUIREMENTS["jax"] = [*REQUIREMENTS["jax"], "flatbuffers"]
RUNTIMES = ("XLA", "IREE", "ONNX Runtime", "C library")
#: Seconds of calls whose mean is one figure.
LONG = 0.1


class Net(NamedTuple):
    """A function of parameters and of one input, with both."""

    apply: Callable[..., Any]
    params: Any
    inputs: tuple[Any, ...]


def nets(epochs: int) -> dict[str, Net]:
    """The four nets; the first one is trained."""
    import mnist
    import sentences
    from helpers.datasets import load_mnist

    from fxflow import nn, random
    from fxflow import numpy as fnp

    model = mnist.MODELS["cnn"]
    params, _ = mnist.fit(
        model,
        load_mnist(),
        epochs=epochs,
        batch_size=model.batch_size,
        learning_rate=model.learning_rate,
        progress=False,
    )
    key = random.key(0)
    settings = sentences.Settings()
    words = {
        **sentences.init(key, 100, settings),
        "vectors": [random.normal(key, (5_000, 100))],
    }

    def classify(params: Any, words: Any) -> Any:
        return sentences.logits(params, (), words, None, 0.0)

    zeros = fnp.zeros((1, 512))
    return {
        "MNIST CNN": Net(model.apply, params, (random.uniform(key, (1, 28, 28)),)),
        "sentence CNN": Net(classify, words, (fnp.arange(20)[None],)),
        "LSTM step, 256 → 512": Net(
            nn.lstm_cell,
            nn.lstm_cell_init(key, 256, 512),
            ((zeros, zeros), random.normal(key, (1, 256))),
        ),
        "transformer block, 64 × 256": Net(
            block, block_init(key, 256), (random.normal(key, (64, 256)),)
        ),
    }


def block_init(key: Any, width: int) -> Any:
    """Parameters of one block of a transformer."""
    from fxflow import nn, random

    shapes = {"qkv": 3 * width, "out": width, "up": 4 * width}
    keys = random.split(key, 4)
    params = {
        name: nn.linear_init(one, width, outputs)
        for one, (name, outputs) in zip(keys, shapes.items(), strict=False)
    }
    params["down"] = nn.linear_init(keys[3], 4 * width, width)
    return params | {name: nn.layer_norm_init(width) for name in ("norm1", "norm2")}


def block(params: Any, x: Any) -> Any:
    """Attention of four heads and a hidden layer of gelus, each beside x itself."""
    from fxflow import nn
    from fxflow import numpy as fnp

    length, width = x.shape
    inner = nn.linear(params["qkv"], nn.layer_norm(params["norm1"], x))
    q, k, v = inner.reshape(length, 3, 4, width // 4).transpose(1, 2, 0, 3)
    scores = fnp.einsum("htd,hsd->hts", q, k) / fnp.sqrt(width / 4)
    mixed = fnp.einsum("hts,hsd->thd", nn.softmax(scores), v).reshape(length, width)
    x = x + nn.linear(params["out"], mixed)
    hidden = nn.gelu(nn.linear(params["up"], nn.layer_norm(params["norm2"], x)))
    return x + nn.linear(params["down"], hidden)


# -- answers one after another ---------------------------------------------------------


def seconds_a_call(call: Callable[[], Any]) -> float:
    """The mean over a tenth of a second."""
    count, started = 0, time.perf_counter()
    while (passed := time.perf_counter() - started) < LONG or not count:
        call()
        count += 1
    return passed / count


def in_c(net: Net, folder: Path, made: Any) -> Callable[[], float]:
    """Returns what runs a program around the library, which prints its mean."""
    from fxflow import tree

    sizes = [leaf.nbytes for leaf in tree.leaves(net.inputs)]
    outs = [leaf.nbytes for leaf in tree.leaves(net.apply(net.params, *net.inputs))]
    arrays = [f"static char in{i}[{n}];" for i, n in enumerate(sizes)]
    arrays += [f"static char out{i}[{n}];" for i, n in enumerate(outs)]
    given = [f"(void *)in{i}" for i in range(len(sizes))]
    given += [f"(void *)out{i}" for i in range(len(outs))]
    text = f"""\
#include <stdio.h>
#include <time.h>
#include "net.h"
{" ".join(arrays)}
static char workspace[NET_WORKSPACE];
static double now(void) {{
  struct timespec t;
  timespec_get(&t, TIME_UTC);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}}
int main(void) {{
  double start = now(), passed;
  long count = 0;
  do {{
    if (net({", ".join([*given, "workspace"])})) return 1;
    ++count;
  }} while ((passed = now() - start) < {LONG});
  printf("%.9f", passed / count);
  return 0;
}}
"""
    (folder / "main.c").write_text(text)
    files = ["main.c", made.source.name, made.object.name, "-lm", "-o", "program"]
    subprocess.run(["gcc", "-std=c11", "-O2", *files], cwd=folder, check=True)

    def run() -> float:
        return float(subprocess.run([folder / "program"], capture_output=True).stdout)

    return run


class Programs(NamedTuple):
    """A net in all its forms: how to time each, and bytes of each file."""

    timers: dict[str, Callable[[], float]]
    sizes: dict[str, int]


def programs(net: Net, folder: Path) -> Programs:
    """Compiles a net with its weights inside for each runtime."""
    import numpy as np
    import onnxruntime

    import fxflow
    from fxflow import export

    apply, params, inputs = net
    jitted = fxflow.jit(lambda *xs: apply(params, *xs))
    lowered = jitted.lower(*inputs)
    module = export.iree(lowered)
    model = export.onnx(fxflow.jit(apply).lower(params, *inputs), params=params)
    model.save(folder / "net.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(
        folder / "net.onnx", options, ["CPUExecutionProvider"]
    )
    leaves = [np.asarray(leaf) for leaf in fxflow.tree.leaves(inputs)]
    given = dict(zip(model.in_names, leaves, strict=True))
    library = export.c_library(lowered, folder, name="net")
    timed_c = in_c(net, folder, library)
    saved = folder / "net.fx"
    exported = export.export(fxflow.jit(apply))(params, *inputs)
    export.save(saved, exported, params=params)
    small = export.onnx(
        fxflow.jit(apply).lower(params, *inputs), params=params, quantize="int8"
    )
    return Programs(
        {
            "XLA": lambda: seconds_a_call(
                lambda: fxflow.block_until_ready(jitted(*inputs))
            ),
            "IREE": lambda: seconds_a_call(lambda: module(*inputs)),
            "ONNX Runtime": lambda: seconds_a_call(lambda: session.run(None, given)),
            "C library": timed_c,
        },
        {
            "`.fx`": saved.stat().st_size,
            "IREE": len(module.data),
            "IREE, int8": len(export.iree(lowered, quantize="int8").data),
            "ONNX": (folder / "net.onnx").stat().st_size,
            "ONNX, int8": small.model.ByteSize(),
            "C program": (folder / "program").stat().st_size,
        },
    )


# -- what eight bits cost --------------------------------------------------------------


def accuracies(net: Net) -> tuple[float, float, int]:
    """Shares of MNIST's test images recognised in floats and in eight bits.

    Returns:
      Both, and of how many images the answer changed.
    """
    import numpy as np
    from helpers.datasets import load_mnist

    import fxflow
    from fxflow import export

    data = load_mnist()
    images = data.test_images.astype(np.float32) / 255
    jitted = fxflow.jit(net.apply)
    small = export.dequantize(export.quantize(net.params))
    found = [np.asarray(jitted(p, images)).argmax(-1) for p in (net.params, small)]
    right = [float((answer == data.test_labels).mean()) for answer in found]
    return right[0], right[1], int((found[0] != found[1]).sum())


# -- from the start of a process to its first answer -----------------------------------

_ZEROS = "import numpy as np; x = np.zeros((1, 28, 28), np.float32)\n"
STARTS = {
    "Python and NumPy alone": ("fxflow", _ZEROS),
    "ONNX Runtime": (
        "fxflow",
        _ZEROS
        + "import onnxruntime as o\n"
        + "s = o.InferenceSession('net.onnx', providers=['CPUExecutionProvider'])\n"
        + "s.run(None, {'images': x})",
    ),
    "fxflow, machine code in the file": (
        "fxflow",
        _ZEROS
        + "from fxflow import export\n"
        + "np.asarray(export.load('compiled.fx', compiled=True).call(x))",
    ),
    "fxflow, portable program": (
        "fxflow",
        _ZEROS
        + "from fxflow import export\n"
        + "np.asarray(export.load('net.fx').call(x))",
    ),
    "JAX, the same program": (
        "jax",
        _ZEROS
        + "from jax import export\n"
        + "f = export.deserialize(open('net.jax', 'rb').read())\n"
        + "np.asarray(f.call(x))",
    ),
}


def starts(net: Net, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Wall times of fresh processes; nothing is in a cache."""
    import fxflow
    from fxflow import export

    apply, params, inputs = net
    exported = export.export(fxflow.jit(apply))(params, *inputs)
    export.save(folder / "compiled.fx", exported, params=params, compiled=True)
    inside = export.export(fxflow.jit(lambda x: apply(params, x)))(*inputs)
    (folder / "net.jax").write_bytes(inside.serialize())
    found: dict[str, list[float]] = {}
    for turn in range(rounds):
        for name, (library, code) in sorted(STARTS.items(), reverse=bool(turn % 2)):
            with tempfile.TemporaryDirectory() as cache:
                started = time.perf_counter()
                subprocess.run(
                    [environment(library), "-c", code],
                    cwd=folder,
                    env={**os.environ, "FXFLOW_CACHE_DIR": cache},
                    check=True,
                )
                found.setdefault(name, []).append(time.perf_counter() - started)
    return found


# -- the report ------------------------------------------------------------------------


def measured(rounds: int, epochs: int) -> list[str]:
    """The lines of the report, from the environment that has everything."""
    known = nets(epochs)
    sizes, times = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for i, (name, net) in enumerate(known.items()):
            folder = Path(scratch, str(i))
            folder.mkdir()
            made = programs(net, folder)
            taken: dict[str, list[float]] = {runtime: [] for runtime in RUNTIMES}
            for turn in range(rounds):
                order = RUNTIMES if turn % 2 == 0 else RUNTIMES[::-1]
                for runtime in order:
                    taken[runtime].append(1e6 * made.timers[runtime]())
            shown = (
                f"{number(min(taken[r]))} / {number(median(taken[r]))}"
                for r in RUNTIMES
            )
            times.append(f"| {name} | {' | '.join(shown)} |")
            kilobytes = (f"{size / 1000:,.0f}" for size in made.sizes.values())
            sizes.append(f"| {name} | {' | '.join(kilobytes)} |")
            kinds = list(made.sizes)
        first = known["MNIST CNN"]
        passed = starts(first, Path(scratch, "0"), rounds)
    whole, small, changed = accuracies(first)
    return [
        f"- {rounds} interleaved rounds; minimum / median; one input at a time",
        "",
        "## µs an answer",
        "",
        f"| | {' | '.join(RUNTIMES)} |",
        f"| --- |{' --- |' * len(RUNTIMES)}",
        *times,
        "",
        "XLA, IREE and ONNX Runtime are called from Python and use all cores; the C "
        "library is a loop in C on one.",
        "",
        "## Sizes in kB, weights included",
        "",
        f"| | {' | '.join(kinds)} |",
        f"| --- |{' --- |' * len(kinds)}",
        *sizes,
        "",
        f"Weights in 8 bits: the MNIST net (epochs of training: {epochs}) recognises "
        f"{100 * small:.2f} % of the 10,000 test images instead of {100 * whole:.2f} "
        f"%; {changed} answers changed.",
        "",
        "## From the start of a process to the first answer (MNIST CNN)",
        "",
        "| | s |",
        "| --- | --- |",
        *(
            f"| {name} | {number(min(values))} / {number(median(values))} |"
            for name in STARTS
            for values in [passed[name]]
        ),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if shutil.which("gcc") is None:
        parser.error("gcc is not installed, which the C library needs")
    if not given.inside:
        environment("jax")  # made before anything is timed
        command = [environment("fxflow"), str(HERE / "export.py"), "--inside"]
        settings = ["--rounds", str(given.rounds), "--epochs", str(given.epochs)]
        raise SystemExit(subprocess.run([*command, *settings]).returncode)
    sys.path.insert(0, str(HERE.parent / "examples"))
    print("\n".join(measured(given.rounds, given.epochs)))


if __name__ == "__main__":
    main()
