"""What `kit.py` measures, one library a process: `kit_worker.py LIBRARY FAMILY CASE`.

Prints one number: seconds, elements per second, or a share, by the family.
"""

import itertools
import os
import shutil
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
    """The work for an element: some ten calls of NumPy, 40 µs."""
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


# -- a step that is fed ----------------------------------------------------------------


def fxflow_batches() -> Iterable[Any]:
    from fxflow.train import data

    rows = data.arrays(images()).shuffle(0).repeat().batch(BATCH)
    return rows.map(together).prefetch().to_devices()


def grain_batches() -> Iterable[Any]:
    import grain

    rows = grain.MapDataset.source(Pixels()).shuffle(seed=0).repeat().batch(BATCH)
    options = grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)
    return rows.map(together).to_iter_dataset(options)


def torch_batches() -> Iterable[Any]:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    rows = TensorDataset(*map(torch.from_numpy, images()))

    def collate(elements: Any) -> Any:
        pixels, labels = torch.utils.data.default_collate(elements)
        return pixels.float() / 255, labels

    while True:  # epochs
        yield from DataLoader(
            rows, BATCH, shuffle=True, num_workers=1, collate_fn=collate
        )


def computing_step() -> Callable[[], None]:
    """A step of about 5 ms on one core, which does not hold Python's lock."""
    values = np.linspace(0, 1, 2**14)
    out, calls = np.empty_like(values), 0
    end = time.perf_counter() + 0.5
    while time.perf_counter() < end:
        np.sin(values, out=out)
        calls += 1

    def step() -> None:
        for _ in range(calls // 100):
            np.sin(values, out=out)

    return step


def fed_share(library: str, case: str) -> float:
    """How much longer a step of 5 ms takes when a pipeline feeds it, as a share.

    A step "elsewhere" is the wait for an accelerator: it leaves every core to the
    pipeline. One "on a core" shares the machine with it: where cores are few, what the
    pipeline computes is in the figure, too. Turns of 20 steps with batches of the
    pipeline and without follow each other in one process; the best of each count.
    """
    compute = computing_step()
    step = compute if case == "on a core" else lambda: time.sleep(5e-3)
    batches = iter(BATCHES[library]())
    one = next(batches)

    def seconds(source: Any) -> float:
        next(source)  # what was made ready meanwhile
        start = time.perf_counter()
        for _ in range(20):
            next(source)
            step()
        return (time.perf_counter() - start) / 20

    turns = [(seconds(batches), seconds(itertools.repeat(one))) for _ in range(30)]
    fed, plain = map(min, zip(*turns, strict=True))
    return fed / plain - 1


# -- checkpoints -----------------------------------------------------------------------


def random_state() -> dict[str, Any]:
    """128 MB in 16 arrays."""
    rng = np.random.default_rng(0)
    return {f"w{i}": rng.random(BYTES // 4 // 16, np.float32) for i in range(16)}


def timed(function: Callable[..., Any], *given: Any) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    found = function(*given)  # is given back after the clock stops
    seconds = time.perf_counter() - start
    del found
    return seconds


def saved_seconds(library: str, case: str) -> float:
    """Seconds to write 128 MB in 16 arrays; all of it is on the disk then."""
    form, turns = case.split(", ")
    write, state = WRITERS[library, form], random_state()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # So that the system has memory at hand for the files of the first library, too.
        touched = folder / "touched"
        touched.write_bytes(bytes(BYTES))
        synced(touched)
        touched.unlink()
        write(folder / "small", {"w": np.zeros(3, np.float32)})
        seconds = []
        for _ in range(1 if turns == "first" else 4):
            seconds.append(timed(write, folder / "state", state))
            shutil.rmtree(folder / "state")
    return min(seconds[1:] or seconds)


def restored_seconds(library: str, case: str) -> float:
    """Seconds to read what the library wrote, into NumPy arrays."""
    form, _ = case.split(", ")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "state")
        WRITERS[library, form](folder, random_state())
        return min(timed(READERS[library, form], folder) for _ in range(4))


def stopped_seconds(library: str) -> float:
    """Seconds that training waits for a save in the background; or for a copy."""
    from fxflow import device_put
    from fxflow.train import checkpoint

    state = device_put(random_state())
    for array in state.values():
        array.block_until_ready()
    if library == "numpy":
        return timed(lambda: [np.array(array) for array in state.values()])
    with (
        tempfile.TemporaryDirectory() as name,
        checkpoint.Checkpointer(name) as checkpoints,
    ):
        checkpoints.save(0, {"w": np.zeros(3)})
        checkpoints.wait()
        return timed(checkpoints.save, 1, state)


def synced(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


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
    synced(folder / "state")
    synced(folder)


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
        one.result()  # the driver calls fsync


def fxflow_read(folder: Path) -> Any:
    from fxflow.train import checkpoint

    return checkpoint.restore(folder)


def fxflow_read_zarr(folder: Path) -> Any:
    from fxflow.train import checkpoint

    return checkpoint.restore({"driver": "file", "path": str(folder)})


def safetensors_read(folder: Path) -> Any:
    from safetensors.numpy import load_file

    return load_file(folder / "state")


def tensorstore_read(folder: Path) -> Any:
    import tensorstore

    specs = [
        {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}}
        for path in sorted(folder.iterdir())
    ]
    opened = [tensorstore.open(spec) for spec in specs]
    read = [one.result().read() for one in opened]
    return [one.result() for one in read]


WRITERS: dict[tuple[str, str], Callable[[Path, Any], None]] = {
    ("fxflow", "one file"): by_fxflow,
    ("fxflow", "zarr"): by_fxflow_zarr,
    ("safetensors", "one file"): by_safetensors,
    ("tensorstore", "zarr"): by_tensorstore,
}
READERS: dict[tuple[str, str], Callable[[Path], Any]] = {
    ("fxflow", "one file"): fxflow_read,
    ("fxflow", "zarr"): fxflow_read_zarr,
    ("safetensors", "one file"): safetensors_read,
    ("tensorstore", "zarr"): tensorstore_read,
}
BATCHES = {
    "fxflow": fxflow_batches,
    "grain": grain_batches,
    "torch": torch_batches,
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
        found = fed_share(library, case)
    elif family == "restore":
        found = restored_seconds(library, case)
    elif family == "stop":
        found = stopped_seconds(library)
    else:
        found = saved_seconds(library, case)
    print(found)


if __name__ == "__main__":
    main()
