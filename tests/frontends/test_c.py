"""`frontends/c`: with failures of the plug-in, on hostile files, and for real."""

import ctypes.util
import hashlib
import random
import re
import shutil
import struct

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import export
from tests.export.artifacts import GOLDEN
from tests.frontends.building import (
    HERE,
    C,
    build,
    compiler,
    plugin,
    run,
)
from tests.frontends.programs import STATE, X, write


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write(tmp_path_factory.mktemp("models") / "model.fx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write(tmp_path_factory.mktemp("models") / "folder", folder=True)


def toured(tour, fake, *paths, **more):
    done = run([tour, *paths], FXFLOW_PJRT_PLUGIN=str(fake), FAKE_OUTPUTS="3", **more)
    # The sanitizer's, and those of the program and the plug-in.
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_everything_is_freed(tour, fake, model, folder):
    assert toured(tour, fake, model, folder, model) == ["ok"] * 3
    # A folder is not saved over another one.
    (line,) = toured(tour, fake, folder)
    assert line == f"fx_save: {folder}.saved exists; a folder is saved to where it " + (
        "was loaded from, or to a new one"
    )
    shutil.rmtree(f"{folder}.saved")


def test_misuse(tour, fake, model, tmp_path):
    other, long = tmp_path / "other.fx", tmp_path / ("n" * 250 + ".fx")
    export.save(other, export.export(fxflow.jit(lambda p: p))(STATE), params=STATE)
    lines = toured(tour, fake, "misused", model, other, long)
    assert lines == [
        "a call: no model",
        "a call: no name of a function",
        "step: no inputs",
        "a call: no model",
        "fx_wait: no model",
        "fx_put: no model",
        "fx_put: no array",
        "fx_get: no buffer",
        "a parameter: no array",
        "a parameter: no model",
        "fx_save: no model",
        "fx_save: no path",
        'option "(null)" is not name=value',
        "-1 -1 0",
        "ok",
        "fx_get: no memory",
        "ok",
        "ok",
        f"{other} has changed since it was loaded",
        "ok",
    ]
    for path in (model, other, long):
        assert list(export.load(path).functions) == ["step", "swapped"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [long.name, "other.fx"]


def test_a_folder_is_copied_whole_or_not_at_all(tour, fake, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "model")
    (tmp_path / "model" / "step.jax").unlink()
    (tmp_path / "model" / "step.jax").mkdir()
    (line,) = toured(tour, fake, tmp_path / "model")
    assert line == f"{tmp_path / 'model' / 'step.jax'} cannot be read: not a file"
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_valgrind_finds_nothing(tmp_path, fake, model):
    valgrind = compiler("valgrind")
    program = build(tmp_path / "tour", HERE / "tour.c", C / "fxflow.c", options=["-g"])
    # What is still reachable is the plug-in, which stays loaded.
    options = ["--error-exitcode=9", "--leak-check=full"]
    command = [valgrind, *options, program, model]
    done = run(command, FXFLOW_PJRT_PLUGIN=str(fake), FAKE_OUTPUTS="3")
    assert done.stdout == "ok\n" and "ERROR SUMMARY: 0 errors" in done.stderr


@pytest.mark.parametrize(
    "kind", ["file", pytest.param("folder", marks=pytest.mark.slow)]
)
def test_each_call_of_the_plug_in_may_fail(tour, fake, model, folder, kind):
    path = {"file": model, "folder": folder}[kind]
    for n in range(1, 200):
        lines = toured(tour, fake, path, FAKE_FAIL=str(n))
        if lines == ["ok"]:
            break
        assert "a planted failure" in lines[0]
        shutil.rmtree(f"{folder}.saved", ignore_errors=True)
    assert n > 30
    shutil.rmtree(f"{folder}.saved", ignore_errors=True)


def test_a_failed_call_hands_out_nothing(tour, fake, tmp_path):
    """Two results stay on the device, and the copy of a third to the host fails."""
    made = export.export(fxflow.jit(lambda x: (x[0], x[1], x[2])))(X)
    export.save(tmp_path / "three.fx", made)
    failures = []
    for n in range(1, 200):
        lines = toured(tour, fake, tmp_path / "three.fx", FAKE_FAIL=str(n))
        if lines == ["ok"]:
            break
        failures.append(lines[0])
    copies = ["output.1: a planted failure"] * 2  # its start, its end
    assert failures[-4:-2] == copies, failures


@pytest.mark.parametrize(
    "environment, message",
    [
        ({"FAKE_MAJOR": "7"}, "has version 7.* of PJRT's interface, expected 0.x"),
        ({"FXFLOW_PJRT_PLUGIN": ""}, "python -m fxflow.export.plugin"),
        ({"FXFLOW_PJRT_PLUGIN": "/nowhere.so"}, "/nowhere.so"),
        ({"FXFLOW_PJRT_PLUGIN": ctypes.util.find_library("m")}, "no GetPjrtApi"),
    ],
    ids=["version", "none", "absent", "another library"],
)
def test_wrong_plug_ins(tour, fake, model, environment, message):
    environment = {"FXFLOW_PJRT_PLUGIN": str(fake), **environment}
    line = run([tour, model], **environment).stdout
    assert re.match(f"plug-in: .*{message}", line), line


def test_hostile_files(tour, fake, model, tmp_path):
    """Each of 2,000 damaged files is refused, or used as far as it says."""
    whole, draw = model.read_bytes(), random.Random(0)
    start = struct.unpack("<Q", whole[-16:-8])[0]
    # A path that the program appends to must not exceed a command's length.
    for part in range(8):
        paths = []
        for i in range(250):
            data = bytearray(whole)
            kind = i % 5
            if kind == 0:
                data = data[: draw.randrange(len(data))]
            elif kind == 1:
                data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            else:  # a table with the right digest
                for _ in range(kind - 1):
                    at = draw.randrange(start, len(data) - 48)
                    data[at] = draw.choice((0, 1, 127, 128, 255, data[at] ^ 1))
                if kind == 4:
                    at = draw.randrange(start, len(data) - 48)
                    del data[at : at + draw.randrange(1, 9)]
                data[-48:-16] = hashlib.sha256(data[start:-48]).digest()
            path = tmp_path / f"{part}-{i}"
            path.write_bytes(data)
            paths.append(path)
        lines = toured(tour, fake, *paths)
        assert len(lines) == 250 and all(lines)
        # What is cut off is refused.
        refused = re.compile("damaged|has no table|is not a .fx file")
        assert all(refused.search(line) for line in lines[::5])


def test_hostile_folders(tour, fake, folder, tmp_path):
    """Each of 100 damaged folders is refused, or used as far as it says."""
    draw, paths, refusals = random.Random(0), [], []
    names = ("signature.bin", "params.safetensors", "step.mlirbc", "swapped.mlirbc")
    for i in range(100):
        path, name = tmp_path / str(i), names[i % 4]
        shutil.copytree(folder, path)
        paths.append(path)
        data = bytearray((path / name).read_bytes())
        if i % 3 == 0:
            data = data[: draw.randrange(len(data))]
        else:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        if i % 8 == 0 and i % 3:  # a table with the right digest
            data[-48:-16] = hashlib.sha256(data[:-48]).digest()
        else:
            refusals.append(i)
        (path / name).write_bytes(data)
    lines = toured(tour, fake, *paths)
    refused = re.compile("damaged|has no table|cannot be read|is not the file")
    assert all(refused.search(lines[i]) for i in refusals), lines


def test_wrong_folders(tour, fake, folder, tmp_path):
    table = (folder / "signature.bin").read_bytes()
    other = table.replace(b"\4\0step", b"\4\0../x")[:-48]
    changes = {
        r"signature\.bin cannot be read: No such file": ("signature.bin", None),
        "is damaged: its table": (
            "signature.bin",
            other + hashlib.sha256(other).digest() + table[-16:],
        ),
        r"params\.safetensors cannot be read: No": ("params.safetensors", None),
        r"step\.mlirbc cannot be read: No": ("step.mlirbc", None),
        "is not the file that its folder was written with": (
            "params.safetensors",
            (folder / "params.safetensors")
            .read_bytes()
            .replace(b"fxflow.sha256", b"fxflow.sha257"),
        ),
    }
    for i, (message, (name, data)) in enumerate(changes.items()):
        path = tmp_path / str(i)
        shutil.copytree(folder, path)
        (path / name).unlink()
        if data is not None:
            (path / name).write_bytes(data)
        (line,) = toured(tour, fake, path)
        assert re.search(message, line), line


def test_wrong_files(tour, fake, model, tmp_path):
    whole = model.read_bytes()
    cases = {
        "is not a .fx file": b"PK" + whole,
        "has format version 9": whole[:8] + struct.pack("<I", 9) + whole[12:],
        "has no table for C at its end": whole + b"x",
        "cannot be read": None,
    }
    for i, (message, data) in enumerate(cases.items()):
        path = tmp_path / str(i)
        if data is not None:
            path.write_bytes(data)
        (line,) = toured(tour, fake, path)
        assert message in line


CALLER = r"""
#include <stdio.h>
#include "fxflow.h"
static void report(int status) { printf("%s\n", status ? fx_error() : "ok"); }
int main(int n, char **paths) {
  float x[12] = {0}, y, w[3];
  fx_runtime *r = n > 1 ? fx_open(NULL) : NULL;
  fx_model *m = fx_load(r, paths[1], 0);
  if (!m) { puts(fx_error()); return 1; }
  fx_array in = {.name = "x", .dtype = FX_F32, .rank = 2, .dims = {4, 3}, .data = x};
  fx_array out = {.name = "output", .dtype = FX_F32, .data = &y};
  for (int i = 0; i < 12; ++i) x[i] = (float)i / 11;
  for (int i = 0; i < 100; ++i) if (fx_call(m, "step", &in, 1, &out, 1)) break;
  printf("%.9g\n", y);
  fx_array param = {.name = "w", .dtype = FX_F32, .rank = 1, .dims = {3}, .data = w};
  report(fx_get_param(m, &param));
  printf("%.9g %.9g %.9g\n", w[0], w[1], w[2]);
  report(fx_save(m, paths[1]) || fx_save(m, paths[2]));
  report(fx_call(m, "stop", &in, 1, &out, 1));
  report(fx_call(m, "step", &in, 0, &out, 1));
  in.dims[1] = 4;
  report(fx_call(m, "step", &in, 1, &out, 1));
  in.dims[1] = 3, in.dtype = FX_I32;
  report(fx_call(m, "step", &in, 1, &out, 1));
  in.dtype = FX_F32, in.name = "y";
  report(fx_call(m, "step", &in, 1, &out, 1));
  in.name = "x", out.name = "loss";
  report(fx_call(m, "step", &in, 1, &out, 1));
  param.name = "v";
  report(fx_set_param(m, &param));
  fx_load(r, paths[1], 99), puts(fx_error());
  fx_free(m), fx_close(r);
  return 0;
}
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_training_gives_the_numbers_of_python(tmp_path, model, folder, kind):
    library = plugin()
    path = tmp_path / "model.fx"
    if kind == "file":
        path.write_bytes(model.read_bytes())
    else:
        shutil.copytree(folder, path)
    (tmp_path / "caller.c").write_text(CALLER)
    program = build(tmp_path / "caller", tmp_path / "caller.c", C / "fxflow.c")
    command = [program, path, tmp_path / "again"]
    lines = run(command, FXFLOW_PJRT_PLUGIN=library).stdout.splitlines()
    state, taken = STATE, fxflow.jit(export.load(model).functions["step"].call)
    x = (np.arange(12, dtype=np.float32) / np.float32(11)).reshape(4, 3)
    for _ in range(100):
        state, y = taken(state, x)
    np.testing.assert_allclose(float(lines[0]), y, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose([*map(float, lines[2].split())], state["w"], rtol=1e-6)
    assert lines[1] == lines[3] == "ok"
    # It was saved, with its digests.
    weights = np.array(lines[2].split(), np.float32)
    for saved in (path, tmp_path / "again"):
        np.testing.assert_array_equal(export.load(saved).params["w"], weights)
        assert list(export.load(saved).functions) == ["step", "swapped"]
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == ["again", "caller", "caller.c", "model.fx"]
    assert lines[4:] == [
        f"{path} has no function stop; it has step, swapped",
        "step: x f32[4,3] is missing",
        "step: x is f32[4,4], expected f32[4,3]",
        "step: x is i32[4,3], expected f32[4,3]",
        "step has no argument y; it has x",
        "step has no result loss; it has output",
        f"{path} has no parameter v; it has b, w",
        lines[-1],
    ]
    assert lines[-1].startswith("fx_load: device 99 of ")


DEVICES = r"""
#include <stdio.h>
#include "fxflow.h"
int main(int n, char **paths) {
  const char *options[] = {"cpu_device_count=3"};
  fx_runtime *r = fx_open_with(NULL, options, (size_t)n - 1);
  fx_model *models[3] = {0};
  float x[12] = {1}, y;
  fx_array in = {.name = "x", .dtype = FX_F32, .rank = 2, .dims = {4, 3}, .data = x};
  fx_array out = {.name = "output", .dtype = FX_F32, .data = &y};
  printf("%d\n", fx_device_count(r));
  for (int i = 0; i < 3; ++i) models[i] = fx_load(r, paths[1], i);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j <= i; ++j)
      if (fx_call(models[i], "step", &in, 1, &out, 1)) puts(fx_error());
  for (int i = 0; i < 3; ++i) {
    float w[3];
    fx_array param = {.name = "w", .dtype = FX_F32, .rank = 1, .dims = {3}, .data = w};
    fx_get_param(models[i], &param);
    printf("%.9g\n", w[0]);
    fx_free(models[i]);
  }
  fx_close(r);
  return 0;
}
"""


def test_models_on_several_devices(tmp_path, model):
    (tmp_path / "devices.c").write_text(DEVICES)
    program = build(tmp_path / "devices", tmp_path / "devices.c", C / "fxflow.c")
    lines = run([program, model], FXFLOW_PJRT_PLUGIN=plugin()).stdout.split()
    assert lines[0] == "3"
    x, state = np.zeros((4, 3), np.float32), STATE
    x[0, 0] = 1
    taken = export.load(model).functions["step"].call
    for line in lines[1:]:  # each was trained a step longer
        state, _ = taken(state, x)
        np.testing.assert_allclose(float(line), state["w"][0], rtol=1e-6)


def test_files_of_earlier_versions(tmp_path, tour):
    names = ("divided.fx", "with-table.fx", "folder")  # the first is for two devices
    for name in names:
        source = GOLDEN / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    command = [tour, *(tmp_path / name for name in names)]
    done = run(command, FXFLOW_PJRT_PLUGIN=plugin())
    assert done.stdout.splitlines() == ["ok"] * 3, done.stdout
    for name in names:
        assert export.load(tmp_path / f"{name}.saved").params["b"].tolist() == [3, 4]


def test_kinds_of_programs(tmp_path, tour):
    """Keys, several platforms, unused and captured arrays, a scalar, an empty array."""
    library = plugin()
    table = fnp.arange(6.0)

    def function(params, key, i, unused, empty):
        value = fxflow.random.uniform(key) + params["a"].astype("float32")[0]
        return value, table[i], empty.sum(), params["a"] + 1

    params = {"a": fnp.ones(2, "bfloat16")}
    args = (fxflow.random.key(0), np.int32(2), np.ones(3), np.zeros((0, 2), "f"))
    made = export.export(fxflow.jit(function), platforms=("cpu", "cuda"))(params, *args)
    export.save(tmp_path / "all.fx", made, params=params)
    beside = export.export(fxflow.jit(lambda p: p["a"] * 2))(params)
    export.save(tmp_path / "two.fx", beside, params=params, beside="two.st")
    for name, expected in (
        ("all.fx", "ok"),
        ("two.fx", "the parameters of .* are in a separate file"),
    ):
        done = run(
            [
                build(tmp_path / "plain", HERE / "tour.c", C / "fxflow.c"),
                tmp_path / name,
            ],
            FXFLOW_PJRT_PLUGIN=library,
        )
        assert re.search(expected, done.stdout), done.stdout


def test_programs_that_this_front_end_refuses(tmp_path, tour, fake):
    sizes = export.symbolic_shape("n, 3")
    made = export.export(fxflow.jit(lambda x: x + 1))(
        fxflow.ShapeDtypeStruct(sizes, "float32")
    )
    export.save(tmp_path / "sizes.fx", made)
    elsewhere = export.export(fxflow.jit(lambda x: x + 1), platforms=["tpu"])(X)
    export.save(tmp_path / "tpu.fx", elsewhere)
    large = export.export(fxflow.jit(lambda x: x + 1))(np.ones((1,) * 17))
    export.save(tmp_path / "large.fx", large)
    names = ("sizes.fx", "tpu.fx", "large.fx")
    lines = toured(tour, fake, *(tmp_path / name for name in names))
    assert lines[2].endswith("large.fx has an array with 17 axes; this source takes 16")
    assert "x" in lines[0] and lines[0] != "ok"
    assert lines[1].endswith(
        'not exported for the platform cpu: export it with platforms=("tpu", "cpu")'
    )
