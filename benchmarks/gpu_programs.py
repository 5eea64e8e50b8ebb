"""Compares what XLA makes of training steps for a GPU that is not here.

    python benchmarks/gpu_programs.py --python VENV/bin/python

`VENV` has jax 0.10.2 with its CUDA plug-in and what fxflow needs: both libraries
compile in it, each in a process of its own, ahead of time for the GPU that `--target`
describes (a `GpuTargetConfigProto` as text; an H200). A step of plain gradient descent
donates its parameters. The table counts what one step of the optimised program starts
(fused loops, calls of libraries, copies of arrays, loops) and its memory. Nothing is
tuned, for that needs the device: which kernels libraries choose is not told.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from cases import convnets, library, training

HERE = Path(__file__).parent.resolve()
TARGET = HERE.parent / "tests/devices/data/h200.txtpb"
MODELS = training.MODELS | convnets.MODELS
SURROUNDINGS = {
    "PYTHONPATH": str(HERE.parent),
    "FXFLOW_CACHE": "0",
    # JAX would look for a driver, which is not needed to compile.
    "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
}
#: What starts work on the device, by the name of its instruction in HLO.
KINDS = {
    "fusion": "fusions",
    "custom-call": "calls",
    "copy": "copies",
    "while": "loops",
    "reduce": "others",
    "scatter": "others",
    "sort": "others",
    "transpose": "others",
    "convolution": "others",
    "dot": "others",
}
COLUMNS = ("fusions", "calls", "copies", "loops", "others")
SIZES = {
    "temporary": "temp_size_in_bytes",
    "aliased": "alias_size_in_bytes",
}
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%[\w.-]+ = .*?[\])}] ([a-z-]+)\(", re.M)


def counts(text: str) -> Counter[str]:
    """What an optimised program starts, bodies of loops once."""
    found: Counter[str] = Counter()
    for part in re.split(r"\n(?=\S)", text):
        name = part.lstrip("ENTRY ").partition(" ")[0]
        if not part.startswith("ENTRY") and not re.search(
            rf"(?:body|condition|branch_computations)=[^\n]*{re.escape(name)}\b", text
        ):
            continue  # what a fusion or a reduction is made of
        found.update(
            KINDS[kind] for kind in _INSTRUCTION.findall(part) if kind in KINDS
        )
    return found


def device(name: str, target: str) -> Any:
    """The first device of the target."""
    if name == "fxflow":
        from fxflow.devices import topologies

        return topologies.gpu_devices(target, "1x1x1")[0]
    from jax.experimental import topologies

    found = topologies.get_topology_desc(
        "topology", "cuda", target_config=target, topology="1x1x1"
    )
    return found.devices[0]


def work(name: str, target: str) -> None:
    """Compiles all steps with one library and prints the figures as JSON."""
    own = library.load(name)
    root = own.root
    where = (
        root.SingleDeviceSharding
        if name == "fxflow"
        else root.sharding.SingleDeviceSharding
    )(device(name, target))
    told = {}
    for title, maker in MODELS.items():
        model = maker(own)
        like = root.tree.map(
            lambda x: root.ShapeDtypeStruct(x.shape, x.dtype, sharding=where),
            (model.params, *model.batch),
        )
        traced = training.step_of(own, model).trace(*like)
        compiled = traced.lower().compile()
        told[title] = {
            **counts(compiled.as_text()),
            **{label: library.nbytes_of(compiled, key) for label, key in SIZES.items()},
        }
        print(f"{name}: {title}", file=sys.stderr, flush=True)
    print(json.dumps(told))


def main() -> None:
    """Prints the table, or compiles for it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="has the plug-in")
    parser.add_argument("--target", type=Path, default=TARGET)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.library:
        work(given.library, given.target.read_text())
        return
    found = {}
    for name in ("fxflow", "jax"):
        command = [given.python, __file__, "--library", name]
        done = subprocess.run(
            [*command, "--target", str(given.target)],
            env={**os.environ, **SURROUNDINGS},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        found[name] = json.loads(done.stdout.splitlines()[-1])
    head = [*COLUMNS, *(f"{label}, MB" for label in SIZES)]
    print("fxflow / jax\n")
    print(f"| step | {' | '.join(head)} |\n|{' --- |' * (len(head) + 1)}")
    for title in MODELS:
        ours, theirs = (found[name][title] for name in ("fxflow", "jax"))
        cells = [f"{ours.get(c, 0)} / {theirs.get(c, 0)}" for c in COLUMNS]
        cells += [f"{ours[c] / 1e6:.3g} / {theirs[c] / 1e6:.3g}" for c in SIZES]
        print(f"| {title} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
