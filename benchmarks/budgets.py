"""Compares `checkpoint(budget=)` with policies that are written by hand.

    python benchmarks/budgets.py --rounds 15

Three models are a `scan` over layers whose body is under `checkpoint`; a run is the
gradient of a sum of squares. What a policy keeps is measured: the growth of the
program's temporary memory with each layer, above that of `nothing_saveable`, which
keeps a layer's input only. The budgets are what three policies keep. A budget competes
with the fastest policy that keeps no more. All programs take turns; times are
minima of the process's CPU time, which other work on the machine disturbs less.
"""

import argparse
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import fxflow
import fxflow.numpy as fnp
from fxflow import checkpoint, jit, lax, nn
from fxflow import checkpoint_policies as policies

RANDOM = np.random.default_rng(0)
LAYERS = 6
name = fxflow.checkpoint_name


def weights(*shape: int) -> np.ndarray:
    """Weights of one layer, scaled by the number of inputs."""
    return (RANDOM.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)


def normed(x: Any) -> Any:
    center = x - x.mean(-1, keepdims=True)
    return center * lax.rsqrt(fnp.square(center).mean(-1, keepdims=True) + 1e-5)


def transformer(x: Any, p: Any) -> Any:
    """A block of a transformer with 4 heads."""
    batch, length, width = x.shape
    heads = lambda a: fnp.swapaxes(a.reshape(batch, length, 4, -1), 1, 2)
    joined = name(normed(x) @ p[0], "inputs")
    q, k, v = map(heads, fnp.split(joined, 3, axis=-1))
    scores = nn.softmax(q @ fnp.swapaxes(k, 2, 3) * (width // 4) ** -0.5)
    attended = fnp.swapaxes(scores @ v, 1, 2).reshape(x.shape)
    x = name(x + name(attended, "sums") @ p[1], "sums")
    return x + nn.gelu(name(normed(x) @ p[2], "inputs")) @ p[3]


def residual(x: Any, p: Any) -> Any:
    """A residual block of two convolutions, each behind a norm."""
    conv = lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    h = name(conv(nn.relu(normed(x)), p[0]), "inputs")
    return x + conv(nn.gelu(name(normed(h), "sums")), p[1])


def gated(x: Any, p: Any) -> Any:
    """A block of a gated feed-forward net (SwiGLU)."""
    h = name(normed(x), "sums")
    gate, up = name(h @ p[0], "inputs"), name(h @ p[1], "inputs")
    return x + (nn.silu(gate) * up) @ p[2]


class Model(NamedTuple):
    """A layer, the shape of its input, and those of its weights."""

    layer: Callable[[Any, Any], Any]
    inputs: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]


MODELS: Mapping[str, Model] = {
    "transformer, 4 × 128 × 128": Model(
        transformer, (4, 128, 128), ((128, 384), (128, 128), (128, 512), (512, 128))
    ),
    "residual, 8 × 16 × 16 × 32": Model(
        residual, (8, 16, 16, 32), ((3, 3, 32, 32), (3, 3, 32, 32))
    ),
    "gated, 512 × 256": Model(gated, (512, 256), ((256, 768), (256, 768), (768, 256))),
}
#: What hands write: the usual policies, and two by names given in the layer.
HAND: Mapping[str, Any] = {
    "nothing": policies.nothing_saveable,
    "products": policies.dots_saveable,
    "products without batch axes": policies.dots_with_no_batch_dims_saveable,
    "names: wide products": policies.save_only_these_names("inputs"),
    "names: all": policies.save_only_these_names("inputs", "sums"),
    "everything": policies.everything_saveable,
}


class Program(NamedTuple):
    """A compiled gradient, and the bytes that it keeps for each layer."""

    run: Callable[[], Any]
    kept: float


def compiled(
    model: Model, layers: int, **options: Any
) -> tuple[Callable[[], Any], int]:
    """Returns the gradient of a number of layers, and its temporary memory."""
    params = [np.stack([weights(*s) for _ in range(layers)]) for s in model.weights]
    body = checkpoint(model.layer, prevent_cse=False, **options)

    def loss(params: Any, x: Any) -> Any:
        return fnp.square(lax.scan(lambda x, p: (body(x, p), None), x, params)[0]).sum()

    x = RANDOM.standard_normal(model.inputs).astype(np.float32)
    args = fxflow.device_put((params, x))
    found = jit(fxflow.grad(loss)).lower(*args).compile()
    size = found.memory_analysis()["temp_size_in_bytes"]
    return lambda: fxflow.block_until_ready(found(*args)), size


def program(model: Model, **options: Any) -> Program:
    """Returns the gradient; `kept` is the growth of its memory with a layer."""
    run, size = compiled(model, LAYERS, **options)
    _, larger = compiled(model, 2 * LAYERS, **options)
    return Program(run, (larger - size) / LAYERS)


def timed(programs: Mapping[str, Program], rounds: int) -> dict[str, float]:
    """Returns the least CPU seconds of each program; they take turns."""
    least = dict.fromkeys(programs, float("inf"))
    for found in programs.values():
        found.run()
    for i in range(rounds):
        for label in list(programs)[:: 1 if i % 2 else -1]:
            start = time.process_time()
            programs[label].run()
            least[label] = min(least[label], time.process_time() - start)
    return least


def compare(model: Model, rounds: int) -> list[str]:
    """Returns the rows of a model's budgets."""
    hand = {label: program(model, policy=policy) for label, policy in HAND.items()}
    base = hand["nothing"].kept
    kept = {label: found.kept - base for label, found in hand.items()}
    sizes = sorted({round(size) for size in kept.values() if size > 0})
    budgets = {f"{size:,}": size for size in sizes}
    ours = {text: program(model, budget=size) for text, size in budgets.items()}
    times = timed({**hand, **ours}, rounds)
    rows = []
    for text, size in budgets.items():
        rival = min((k for k in hand if kept[k] <= size * 1.001), key=times.__getitem__)
        used = ours[text].kept - base
        rows.append(
            f"| {size / 1e3:,.0f} | {used / 1e3:,.0f} | {used / size:.2f} | "
            f"{times[text] * 1e3:.2f} | {times[rival] * 1e3:.2f} ({rival}) | "
            f"{times[text] / times[rival]:.2f} |"
        )
    return rows


def main() -> None:
    """Prints a table for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    rounds = parser.parse_args().rounds
    for label, model in MODELS.items():
        print(f"### {label}\n")
        print("| budget, kB a layer | used | of it | CPU ms | best by hand | ratio |")
        print("| --: | --: | --: | --: | --- | --: |")
        print("\n".join(compare(model, rounds)), flush=True)
        print()


if __name__ == "__main__":
    main()
