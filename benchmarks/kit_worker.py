"""What `kit.py` measures, one library a process: `kit_worker.py LIBRARY CASE`.

Prints one number: seconds, or elements per second where the case says so.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

ROWS, WIDTH, BATCH = 40_000, 784, 128
BYTES = 128 * 2**20
STEPS = 400


def images() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (ROWS, WIDTH), np.uint8)
    return pixels, np.arange(ROWS, dtype=np.int32) % 10


def scaled(row: tuple[Any, Any]) -> tuple[Any, Any]:
    """The work for an element: about 10 µs of NumPy."""
    pixels, label = row
    values = pixels.astype(np.float32) / 255
    return (values - values.mean()) / (values.std() + 1e-3), label


def together(batch: tuple[Any, Any]) -> tuple[Any, Any]:
    """The work for a batch at once."""
    pixels, labels = batch
    return pixels.astype(np.float32) / 255, labels


class Pixels:
    """The images as grain and PyTorch read them: one by one."""

    def __init__(self, function: Any = None) -> None:
        self.pixels, self.labels = images()
        self.function = function

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, index: int) -> Any:
        row = self.pixels[index], self.labels[index]
        return row if self.function is None else self.function(row)


def rate(batches: Iterable[Any]) -> float:
    """Elements per second, from the second batch on: workers have begun."""
    iterator, count = iter(batches), 0
    next(iterator)
    start = time.perf_counter()
    for _ in iterator:
        count += BATCH
    return count / (time.perf_counter() - start)


# -- pipelines -------------------------------------------------------------------------


def fxflow_pipeline(case: str) -> float:
    from fxflow.train import data

    rows = data.arrays(images()).shuffle(0)
    if case == "rows":
        return rate(rows.batch(BATCH))
    workers = 0 if case == "mapped" else 2
    processes = case == "2 processes"
    return rate(rows.map(scaled, workers=workers, processes=processes).batch(BATCH))


def grain_pipeline(case: str) -> float:
    import grain

    rows = grain.MapDataset.source(Pixels()).shuffle(seed=0)
    if case != "rows":
        rows = rows.map(scaled)
    threads = 2 if case == "2 threads" else 0
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 * threads)
    batches = rows.batch(BATCH).to_iter_dataset(options)
    if case == "2 processes":
        processes = grain.MultiprocessingOptions(num_workers=2)
        batches = batches.mp_prefetch(processes)
    return rate(batches)


def torch_pipeline(case: str) -> float:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    if case == "rows":
        rows: Any = TensorDataset(*map(torch.from_numpy, images()))
    else:
        rows = Pixels(scaled)
    workers = 2 if case == "2 processes" else 0
    return rate(DataLoader(rows, BATCH, shuffle=True, num_workers=workers))


# -- the loop --------------------------------------------------------------------------


def made_step() -> tuple[Any, Any, Any]:
    """A jitted step of about a millisecond, its state and a batch."""
    import fxflow
    from fxflow import numpy as fnp

    @fxflow.jit
    def step(weights: Any, batch: Any) -> Any:
        out = fnp.tanh(batch @ weights) @ weights.T
        return weights - 1e-3 * batch.T @ out, {"loss": fnp.mean(out**2)}

    return step, fnp.full((256, 256), 1e-2), np.full((64, 256), 1e-2, np.float32)


def loop_seconds(case: str) -> float:
    """Seconds for a step."""
    from fxflow.train import logs, loop

    step, state, batch = made_step()
    batches = [batch] * STEPS
    options: dict[str, Any] = {}
    if case == "run, checked and logged":
        folder = tempfile.mkdtemp()
        log = logs.Logger(logs.json_lines(Path(folder, "log")))
        options = {"log": log, "on_nonfinite": "stop"}
    for _ in range(2):  # the first compiles
        start = time.perf_counter()
        if case == "plain":
            now = state
            for one in batches:
                now, _ = step(now, one)
        else:
            now = loop.run(step, state, batches, **options).state
        now.block_until_ready()
    return (time.perf_counter() - start) / STEPS


def fed_seconds(case: str) -> float:
    """Seconds for a step of 5 ms, with one batch again and again or with a pipeline."""
    from fxflow.train import data

    pixels, labels = images()
    batches: Iterable[Any] = [(pixels[:BATCH], labels[:BATCH])] * 200
    if case == "by a pipeline":
        rows = data.arrays((pixels, labels)).shuffle(0).batch(BATCH).take(201)
        batches = rows.map(together).prefetch().to_devices()
    iterator = iter(batches)
    next(iterator)
    start, count = time.perf_counter(), 0
    for _ in iterator:
        time.sleep(5e-3)
        count += 1
    return (time.perf_counter() - start) / count


# -- checkpoints -----------------------------------------------------------------------


def saved_seconds(library: str, case: str) -> float:
    """Seconds to write 128 MB in 16 arrays; all of it is on the disk then."""
    shape = (BYTES // 4 // 16,)
    rng = np.random.default_rng(0)
    state = {f"w{i}": rng.random(shape, np.float32) for i in range(16)}
    with tempfile.TemporaryDirectory() as folder:
        write = WRITERS[library, case]
        write(Path(folder, "first"), {"w": np.zeros(3, np.float32)})
        start = time.perf_counter()
        write(Path(folder, "state"), state)
        return time.perf_counter() - start


def by_fxflow(folder: Path, state: Any) -> None:
    from fxflow.train import checkpoint

    checkpoint.save(folder, state)


def by_fxflow_zarr(folder: Path, state: Any) -> None:
    from fxflow.train import checkpoint

    checkpoint.save({"driver": "file", "path": str(folder)}, state)


def by_safetensors(folder: Path, state: Any) -> None:
    from safetensors.numpy import save_file

    folder.mkdir()
    save_file(state, folder / "state")
    descriptor = os.open(folder / "state", os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def by_tensorstore(folder: Path, state: Any) -> None:
    import tensorstore

    written = []
    for name, array in state.items():
        spec = {
            "driver": "zarr3",
            "kvstore": {"driver": "file", "path": f"{folder}/{name}/"},
            "metadata": {
                "shape": array.shape,
                "data_type": "float32",
                "chunk_grid": {
                    "name": "regular",
                    "configuration": {"chunk_shape": array.shape},
                },
                "codecs": [
                    {"name": "bytes", "configuration": {"endian": "little"}},
                    {"name": "crc32c"},
                ],
            },
        }
        opened = tensorstore.open(spec, create=True).result()
        written.append(opened.write(array))
    for one in written:
        one.result()


WRITERS: dict[tuple[str, str], Callable[[Path, Any], None]] = {
    ("fxflow", "one file"): by_fxflow,
    ("fxflow", "zarr"): by_fxflow_zarr,
    ("safetensors", "one file"): by_safetensors,
    ("tensorstore", "zarr"): by_tensorstore,
}
PIPELINES = {
    "fxflow": fxflow_pipeline,
    "grain": grain_pipeline,
    "torch": torch_pipeline,
}


def main() -> None:
    library, family, case = sys.argv[1:]
    if family == "pipeline":
        found = PIPELINES[library](case)
    elif family == "loop":
        found = loop_seconds(case)
    elif family == "fed":
        found = fed_seconds(case)
    else:
        found = saved_seconds(library, case)
    print(found)


if __name__ == "__main__":
    main()
