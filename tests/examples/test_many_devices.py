"""The examples for many devices train as one device does."""

import functools
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fxflow
from fxflow import dataflow
from tests.examples.programs import EXAMPLES, example
from tests.sweeps.sampling import sample

pytest.importorskip("tqdm", reason="pip install fxflow[examples]")
ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def data() -> object:
    """Noise with labels: the runs are compared, not judged."""
    rng = np.random.default_rng(0)

    def draw(n: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.integers(0, 256, (n, 28, 28)).astype(np.uint8), (
            rng.integers(0, 10, n).astype(np.uint8)
        )

    return example("mnist").Mnist(*draw(128), *draw(64))


def fitted(data: object, **settings: object) -> object:
    mnist = example("mnist")
    return mnist.fit(
        mnist.MODELS["softmax"],
        data,
        epochs=2,
        batch_size=32,
        learning_rate=1e-3,
        progress=False,
        **settings,
    )[1]


@pytest.fixture(scope="module")
def alone(data: object) -> object:
    return fitted(data)


@pytest.mark.parametrize("name", ["pmap", "sharded", "replicas"])
def test_mnist_is_that_of_one_device(data: object, alone: object, name: str) -> None:
    module = example(f"mnist_{name}")
    make = module.make_step
    if name == "pmap":
        make = functools.partial(make, devices=4)
    elif name == "replicas":
        names = ["master", "worker 0", "worker 1"]
        devices = dict(zip(names, fxflow.local_devices(), strict=False))
        make = functools.partial(make, devices=devices)
    curve = fitted(data, make_step=make)
    np.testing.assert_allclose(curve.losses, alone.losses, rtol=1e-4)
    np.testing.assert_allclose(curve.accuracies, alone.accuracies, atol=1 / 64)


def test_batches_that_cannot_be_cut() -> None:
    module = example("mnist_pmap")
    with pytest.raises(SystemExit, match="10 images cannot be cut into 4 parts"):
        module.in_parts(4, np.zeros((10, 2)))
    assert module.in_parts(2, np.zeros((10, 3)))[0].shape == (2, 5, 3)


def test_tensor_parallel(capsys: pytest.CaptureFixture[str]) -> None:
    assert example("tensor_parallel").run(4, 3, width=8, hidden=16) < 1e-5
    # Two layers, one sum each; and one on the way back.
    assert "the compiled step has 3 all-reduces" in capsys.readouterr().out


@pytest.mark.parametrize(("devices", "parts"), [(4, 3), (2, 1)])
def test_pipeline_parallel(devices: int, parts: int) -> None:
    assert example("pipeline_parallel").run(devices, parts, steps=1, width=8) < 1e-4


def test_sharded_transformer() -> None:
    module = example("sharded_transformer")
    loss, difference = module.run(2, 2, steps=4, blocks=1, length=6)
    assert difference < 1e-4
    assert loss < 4


@pytest.mark.slow
def test_pipeline_transformer_over_processes() -> None:
    module = example("pipeline_transformer")
    text = (np.arange(200) * 3 % 7).astype(np.int32)
    settings = module.Settings(
        width=8, heads=2, blocks=2, length=6, batch=8, microbatches=4, steps=2
    )
    with dataflow.local_cluster(2) as cluster:
        losses, plan = module.fit(text, 7, settings, cluster.devices, "1f1b")
    assert {place.device for place in plan.places} == set(cluster.devices)
    here, _ = module.fit(text, 7, settings, fxflow.local_devices()[:2], "1f1b")
    assert losses == here  # to the bit


# -- the whole, as a user runs it ------------------------------------------------------


def launched(script: str, *arguments: str, processes: int = 1) -> list[str]:
    """Runs a script in one or several processes; gives what each of them prints."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("FXFLOW_NUM")}
    kept["PYTHONPATH"] = os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    started = []
    for i in range(processes):
        several = {
            "FXFLOW_COORDINATOR_ADDRESS": address,
            "FXFLOW_NUM_PROCESSES": str(processes),
            "FXFLOW_PROCESS_ID": str(i),
        }
        started.append(
            subprocess.Popen(
                [sys.executable, str(EXAMPLES / script), *arguments],
                env=kept | several if processes > 1 else kept,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    try:
        printed = [process.communicate(timeout=300)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    for process, text in zip(started, printed, strict=True):
        assert process.returncode == 0, text[-2000:]
    return printed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "processes", "options"),
    sample(
        [
            ("mnist_pmap.py", 1, []),
            ("mnist_sharded.py", 1, []),
            ("mnist_sharded.py", 1, ["--exchange", "int8"]),
            ("mnist_sharded.py", 2, ["--devices", "2"]),
            ("mnist_ps.py", 1, ["--consistency", "local_sgd"]),
            ("mnist_multihost.py", 2, []),
        ],
        2,
        of="mnist on many devices",
    ),
)
def test_accuracy_on_the_complete_mnist(
    script: str, processes: int, options: list[str]
) -> None:
    """One epoch of eight: one device reaches 95.5 %, and so do many."""
    printed = launched(script, "--epochs", "1", *options, processes=processes)
    told = printed[0].rpartition("test accuracy: ")[2]
    assert float(told.partition("%")[0]) >= 95.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    sample(
        ["tensor_parallel.py", "pipeline_parallel.py", "sharded_transformer.py"],
        1,
        of="model parallel",
    ),
)
def test_model_parallel_examples_run(script: str) -> None:
    (text,) = launched(script)
    assert "step " in text
