"""The examples of all languages train to the numbers of Python."""

import re

import numpy as np
import pytest

from tests.frontends import programs
from tests.frontends.building import ROOT, SANITIZED, C, build, compiler, plugin, run

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


KEPT = r"""
#include <iostream>
#include "fxflow.hpp"
int main(int, char **paths) {
  fxflow::Runtime runtime(nullptr, {"cpu_device_count=2"});
  fxflow::Model model(runtime, paths[1], 1);
  std::vector<float> x(12, 1.0f), row(3);
  auto first = [&] {
    return model.call("swapped", {fxflow::in("x", {4, 3}, x)},
                      {fxflow::kept("output", FX_F32, {3})});
  };
  auto kept = first();
  kept.at(0).copy_to(std::span(row));
  first();  // frees what it returns
  std::cout << kept.size() << " " << row[0] + row[2] << "\n";
  try {
    model.get_param(fxflow::out("v", {3}, row));
  } catch (const fxflow::Error &error) {
    std::cout << error.status() << " " << error.what() << "\n";
  }
  try {
    model.save(std::string("a\0b", 3));
  } catch (const fxflow::Error &error) {
    std::cout << error.status() << "\n";
  }
  // Memory without elements is memory, and a runtime outlives its models.
  std::vector<float> none;
  std::cout << (fxflow::out("y", {0, 3}, none).raw().data != nullptr);
  model.put(fxflow::in("x", {0, 3}, none)).copy_to(std::span(none));
  fxflow::Model moved(std::move(model));
  runtime = fxflow::Runtime();
  std::cout << moved.functions().size() << model.functions().size() << "\n";
}
"""


@pytest.mark.slow
def test_cpp_keeps_results_on_the_device(state_file, fake, tmp_path):
    (tmp_path / "kept.cpp").write_text(KEPT)
    compiled = build(tmp_path / "fxflow.o", C / "fxflow.c", options=("-c",))
    sources = tmp_path / "kept.cpp", compiled
    program = build(tmp_path / "kept", *sources, options=SANITIZED, language="c++")
    # The plug-in for tests returns its operands, and counts what is left.
    places = {"FXFLOW_PJRT_PLUGIN": str(fake), "FAKE_OUTPUTS": "3"}
    done = run([program, state_file], **places)
    assert done.stdout.splitlines() == [
        "1 2",
        f"1 {state_file} has no parameter v; it has b, w",
        "1",
        "120",
    ]
    assert not done.stderr


@pytest.fixture(scope="module")
def state_file(tmp_path_factory):
    """The file that the tests of each language run on."""
    return programs.write(tmp_path_factory.mktemp("models") / "model.fx")


def test_rust(folder, state_file, tmp_path):
    cargo = compiler("cargo")
    manifest = ROOT / "frontends" / "rust" / "Cargo.toml"
    places = {
        "FXFLOW_PJRT_PLUGIN": plugin(),
        "FXFLOW_TEST_MODEL": str(state_file),
        "CARGO_TARGET_DIR": str(tmp_path / "target"),
    }
    options = ["--offline", "--quiet", "--manifest-path", manifest]
    done = run([cargo, "test", *options, "--tests"], timeout=300, **places)
    assert "2 passed" in done.stdout
    example = [cargo, "run", *options, "--example", "mnist", "--", folder[0]]
    compare(run(example, timeout=300, **places).stdout, folder)


def test_go(folder, state_file, tmp_path):
    go = compiler("go")
    places = {
        "FXFLOW_PJRT_PLUGIN": plugin(),
        "FXFLOW_TEST_MODEL": str(state_file),
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
        "GOCACHE": str(tmp_path / "cache"),
    }
    here = ROOT / "frontends" / "go"
    run([go, "test", "./..."], timeout=300, cwd=here, **places)
    example = [go, "run", "./examples/mnist", folder[0]]
    compare(run(example, timeout=300, cwd=here, **places).stdout, folder)


def test_node(folder, state_file, tmp_path):
    node, here = compiler("node"), ROOT / "frontends" / "node"
    places = {
        "FXFLOW_PJRT_PLUGIN": plugin(),
        "FXFLOW_TEST_MODEL": str(state_file),
        "FXFLOW_NODE_BUILD": str(tmp_path),
    }
    made = run([node, here / "build.js"], check=False, **places)
    if "node_api.h is missing" in made.stderr:
        pytest.skip("Node's headers are not installed")
    assert made.returncode == 0, made.stderr
    tests = run([node, "--test", here / "test"], **places)
    assert "# fail 0" in tests.stdout and "# pass 2" in tests.stdout
    example = [node, here / "examples" / "mnist.js", folder[0]]
    compare(run(example, **places).stdout, folder)
