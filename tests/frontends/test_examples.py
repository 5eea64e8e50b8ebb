"""The examples of all languages train to the numbers of Python."""

import re

import numpy as np
import pytest

from tests.frontends.building import ROOT, C, build, plugin, run

EXAMPLE = ROOT / "frontends" / "export_mnist.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of ten patterns, the exported net, and the numbers of Python."""
    folder = tmp_path_factory.mktemp("build")
    draw = np.random.default_rng(0)
    patterns = draw.integers(0, 256, (10, 784))
    for part, count in (("train", 4000), ("test", 300)):
        labels = draw.integers(0, 10, count)
        noise = draw.integers(0, 256, (count, 784))
        images = (patterns[labels] + noise) // 2
        labels.astype("u1").tofile(folder / f"{part}-labels.u8")
        images.astype("u1").tofile(folder / f"{part}-images.u8")
    module = {"__name__": "export_mnist", "__file__": str(EXAMPLE)}
    exec(compile(EXAMPLE.read_text(), str(EXAMPLE), "exec"), module)
    state, functions = module["bundle"](folder)
    images, labels, unseen, truth = (
        np.fromfile(folder / f"{part}.u8", "u1")
        for part in ("train-images", "train-labels", "test-images", "test-labels")
    )
    state, loss = module["train"](functions, state, images.reshape(-1, 784), labels)
    right = module["accuracy"](functions, state, unseen.reshape(-1, 784), truth)
    return folder, loss, right


def compare(text, folder):
    """Checks what an example printed against Python."""
    found = re.search(r"loss ([\d.]+), accuracy ([\d.]+)", text)
    assert found, text
    _, loss, right = folder
    assert right > 0.9
    np.testing.assert_allclose(float(found[1]), loss, rtol=1e-5)
    np.testing.assert_allclose(float(found[2]), right, atol=0.01)


def test_c(folder, tmp_path):
    source = C / "examples" / "mnist.c"
    program = build(tmp_path / "mnist", source, C / "fxflow.c")
    compare(run([program, folder[0]], FXFLOW_PJRT_PLUGIN=plugin()).stdout, folder)


def test_cpp(folder, tmp_path):
    compiled = build(tmp_path / "fxflow.o", C / "fxflow.c", options=("-c",))
    source = ROOT / "frontends" / "cpp" / "examples" / "mnist.cpp"
    program = build(tmp_path / "mnist", source, compiled, language="c++")
    compare(run([program, folder[0]], FXFLOW_PJRT_PLUGIN=plugin()).stdout, folder)
    # An error is an exception with the text of the C front end.
    done = run([program, tmp_path], FXFLOW_PJRT_PLUGIN=plugin(), check=False)
    assert done.returncode == 1 and "mnist.fx cannot be read" in done.stderr
