"""`frontends/c` with functions that are divided over several devices."""

import hashlib
import random
import re
import struct

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import NamedSharding, P, export
from fxflow.export import tables
from tests.frontends.building import SANITIZED, C, build, plugin, run

STATE = {"n": np.zeros((), np.int32), "w": np.ones((4, 2), np.float32)}
X = np.linspace(0, 1, 32, dtype=np.float32).reshape(8, 4)
Y = np.ones((8, 2), np.float32)


def step(state, x, y):
    def loss(w):
        return fnp.mean((x @ w - y) ** 2)

    value, slope = fxflow.value_and_grad(loss)(state["w"])
    new = {"n": state["n"] + 1, "w": state["w"] - 0.1 * slope}
    return new, {"loss": value, "parts": x @ state["w"], "rows": x * 2}


def jitted(shape, w, *, out=True):
    """`step` over a mesh, with `w` divided as given."""
    mesh = fxflow.make_mesh(shape, ("d", "m"))
    state = {"n": NamedSharding(mesh, P()), "w": NamedSharding(mesh, w)}
    batch = [NamedSharding(mesh, P("d", "m")), NamedSharding(mesh, P("d"))]
    kept = {"loss": None, "parts": NamedSharding(mesh, P(None, "m")), "rows": batch[0]}
    return fxflow.jit(
        step,
        in_shardings=(state, *batch),
        out_shardings=(state if out else None, kept),
    )


@pytest.fixture(scope="module")
def functions():
    """A step over four devices, and a prediction that any device could make."""
    return {
        "step": export.export(jitted((2, 2), P("m")))(STATE, X, Y),
        "total": export.export(fxflow.jit(lambda x: x.sum()))(X),
    }


CALLER = r"""
#include <stdio.h>
#include "fxflow.h"
#define TRY(call) if (call) { puts(fx_error()); return 1; }
static void show(const float *x, int n) {
  for (int i = 0; i < n; ++i) printf("%.9g%c", x[i], i == n - 1 ? '\n' : ' ');
}
int main(int n, char **a) {
  const char *options[] = {a[2]};
  fx_runtime *r = n ? fx_open_with(NULL, options, 1) : NULL;
  if (r) printf("%d\n", fx_device_count(r));
  fx_model *m = r ? fx_load(r, a[1], 0) : NULL;
  if (!m) { puts(fx_error()); return 1; }
  float x[32], y[16], loss, total, parts[16], rows[32], w[8];
  for (int i = 0; i < 32; ++i) x[i] = (float)i / 31;
  for (int i = 0; i < 16; ++i) y[i] = 1;
  fx_array in[] = {
      {.name = "x", .dtype = FX_F32, .rank = 2, .dims = {8, 4}, .data = x},
      {.name = "y", .dtype = FX_F32, .rank = 2, .dims = {8, 2}, .data = y}};
  fx_array out[] = {
      {.name = "output.loss", .dtype = FX_F32, .data = &loss},
      {"output.parts", FX_F32, .rank = 2, .dims = {8, 2}, .data = parts},
      {"output.rows", FX_F32, .rank = 2, .dims = {8, 4}}};
  fx_array sum = {.name = "output", .dtype = FX_F32, .data = &total};
  for (int i = 0; i < 3; ++i) {
    TRY(fx_call(m, "step", in, 2, out, 3));
    TRY(fx_get(out[2].buffer, rows, sizeof rows));
    if (i == 0) in[0].buffer = out[2].buffer; /* then the batch is twice the first */
    else fx_drop(out[2].buffer);
    out[2].buffer = NULL;
  }
  TRY(fx_wait(m));
  show(&loss, 1), show(parts, 16), show(rows, 32);
  fx_array p = {.name = "w", .dtype = FX_F32, .rank = 2, .dims = {4, 2}, .data = w};
  TRY(fx_get_param(m, &p));
  show(w, 8);
  TRY(fx_set_param(m, &p));
  TRY(fx_save(m, a[1]));
  fx_drop(in[0].buffer);
  in[0].buffer = fx_put(m, in);
  TRY(!in[0].buffer || fx_get(in[0].buffer, rows, sizeof rows));
  show(rows, 32);
  /* It is in parts, and this function takes it whole. */
  TRY(fx_call(m, "total", in, 1, &sum, 1));
  show(&total, 1);
  fx_drop(in[0].buffer), in[0].buffer = NULL;
  TRY(fx_call(m, "total", in, 1, &sum, 1));
  show(&total, 1);
  fx_free(m), fx_close(r);
  return 0;
}
"""


@pytest.fixture(scope="module")
def caller(tmp_path_factory):
    folder = tmp_path_factory.mktemp("caller")
    (folder / "caller.c").write_text(CALLER)
    sources = folder / "caller.c", C / "fxflow.c"
    return build(folder / "caller", *sources, options=SANITIZED)


@pytest.mark.parametrize("folder", [False, True])
def test_training_over_four_devices(functions, caller, tmp_path, folder):
    library, path = plugin(), tmp_path / "model"
    export.save(path, functions, params=STATE, folder=folder)
    command = [caller, path, "cpu_device_count=4"]
    lines = run(command, FXFLOW_PJRT_PLUGIN=library).stdout.splitlines()
    x = (np.arange(32, dtype=np.float32) / np.float32(31)).reshape(8, 4)
    state, batch = STATE, x
    for i in range(3):
        state, out = fxflow.jit(step)(state, batch, Y)
        batch = 2 * x if i == 0 else batch
    expected = [out["loss"], out["parts"], out["rows"], state["w"], x]
    for line, array in zip((*lines[1:6],), expected, strict=True):
        np.testing.assert_allclose(
            [*map(float, line.split())], np.ravel(array), rtol=1e-5
        )
    assert lines[0] == "4"
    np.testing.assert_allclose([*map(float, lines[6:])], [x.sum()] * 2, rtol=1e-6)
    saved = export.load(path).params
    np.testing.assert_array_equal(
        np.ravel(saved["w"]), np.array(lines[4].split(), np.float32)
    )
    assert int(saved["n"]) == 3


def test_too_few_devices(functions, caller, tmp_path):
    path = tmp_path / "model.fx"
    export.save(path, functions, params=STATE)
    command = [caller, path, "cpu_device_count=3"]
    done = run(command, FXFLOW_PJRT_PLUGIN=plugin(), check=False)
    assert done.stdout.splitlines()[1] == (
        f"{path} is for 4 devices, but there are 3 from this one on; plug-ins for CPUs "
        "have as many as the option cpu_device_count says"
    )


SHARDINGS = r"""
#include <stdio.h>
#include "fxflow.h"
int main(int n, char **a) {
  const char *options[] = {"cpu_device_count=4"};
  fx_runtime *r = n ? fx_open_with(NULL, options, 1) : NULL;
  fx_model *m = r ? fx_load(r, a[1], 0) : NULL;
  if (!m) return puts(fx_error()), 1;
  float x[32], made[4][32];
  for (int i = 0; i < 32; ++i) x[i] = (float)i;
  fx_array in[] = {{"x", FX_F32, 2, {8, 4}, x, NULL},
                   {"y", FX_F32, 2, {8, 4}, x, NULL}};
  for (int i = 0; i < fx_function_count(m); ++i) {
    const char *name = fx_function_name(m, i);
    fx_array out[4];
    for (int j = 0; j < 4; ++j) {
      const fx_type *t = fx_output(m, name, j);
      fx_array one = {t->name, FX_F32, 2, {t->dims[0], t->dims[1]}, made[j], NULL};
      out[j] = one;
    }
    if (fx_call(m, name, in, 2, out, 4)) {
      puts(fx_error());
      continue;
    }
    for (int j = 0; j < 128; ++j) printf("%g ", made[j / 32][j % 32]);
    puts("");
  }
  fx_free(m), fx_close(r);
  return 0;
}
"""


def test_shardings(tmp_path):
    mesh = fxflow.make_mesh((2, 2), ("d", "m"))

    def where(*spec):
        return NamedSharding(mesh, P(*spec))

    def function(x, y):
        z = fxflow.lax.with_sharding_constraint(x * 2, where("d", "m"))
        return z, z + y, fnp.cumsum(z, 0), z.T

    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    cases = [
        # Both orders of axes along a dimension, whole arrays and parts.
        (
            (where("m", "d"), where(("d", "m"))),
            (where(None, ("m", "d")), where(("m", "d")), where(), where("d")),
        ),
        ((None, where(None, "d")), (where(), where("m"), where(None, "d"), where())),
        ((where("d"), None), (where(), None, where(), where())),
    ]
    functions = {
        str(i): export.export(
            fxflow.jit(function, in_shardings=ins, out_shardings=outs)
        )(x, x)
        for i, (ins, outs) in enumerate(cases)
    }
    functions["one"] = export.export(
        fxflow.jit(lambda x, y: (x * 2, x * 2 + y, fnp.cumsum(x * 2, 0), x.T * 2))
    )(x, x)
    export.save(tmp_path / "model.fx", functions)
    (tmp_path / "shown.c").write_text(SHARDINGS)
    program = build(tmp_path / "shown", tmp_path / "shown.c", C / "fxflow.c")
    command = [program, tmp_path / "model.fx"]
    lines = run(command, FXFLOW_PJRT_PLUGIN=plugin()).stdout.splitlines()
    expected = [2 * x, 3 * x, np.cumsum(2 * x, 0), 2 * x.T]
    for i, line in enumerate(lines):
        if i == 2:  # not known before the program is divided
            assert line == (
                "2 returns output.1 in a sharding that the partitioner chooses: export "
                "it with out_shardings"
            )
            continue
        given = np.array(line.split(), np.float32).reshape(4, 32)
        np.testing.assert_array_equal(given, [np.ravel(a) for a in expected])
    assert len(lines) == 4


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """A file for two devices, whose functions have five results each."""
    path = tmp_path_factory.mktemp("models") / "two.fx"
    functions = {
        "step": export.export(jitted((1, 2), P("m")))(STATE, X, Y),
        # It takes `x` whole, which the program keeps on the devices in parts.
        "other": export.export(fxflow.jit(lambda x: (x,) * 5))(X),
    }
    export.save(path, functions, params=STATE)
    return path


def toured(tour, fake, *paths, **more):
    """Loads each file on the first device: the program takes turns."""
    paths = [each for path in paths for each in ("none", path)]
    done = run([tour, *paths], FXFLOW_PJRT_PLUGIN=str(fake), FAKE_OUTPUTS="5", **more)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()[1::2]


@pytest.mark.slow
def test_each_call_of_the_plug_in_may_fail(tour, fake, two):
    for n in range(1, 300):
        done = toured(tour, fake, two, FAKE_FAIL=str(n))
        if done == ["ok"]:
            break
        assert not done or "a planted failure" in done[0]
    assert n > 60


def test_hostile_layouts(tour, fake, two, tmp_path):
    whole, draw, paths = two.read_bytes(), random.Random(0), []
    start = struct.unpack("<Q", whole[-16:-8])[0]
    for i in range(200):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 4)):
            at = draw.randrange(len(data) - 48 - 250, len(data) - 48)
            data[at] = draw.choice((0, 1, 2, 127, 128, 255, data[at] ^ 1))
        if i % 3 == 0:
            at = draw.randrange(len(data) - 48 - 250, len(data) - 48)
            del data[at : at + draw.randrange(1, 9)]
        data[-48:-16] = hashlib.sha256(data[start:-48]).digest()
        paths.append(tmp_path / str(i))
        paths[-1].write_bytes(data)
    lines = toured(tour, fake, *paths)
    assert len(lines) == 200 and all(lines)
    assert sum("damaged" in line for line in lines) > 60


def test_what_is_refused(tour, fake, tmp_path, monkeypatch):
    made = {
        "first.fx": export.export(jitted((1, 2), P("m"), out=False))(STATE, X, Y),
        "second.fx": {
            "step": export.export(jitted((1, 2), P("m")))(STATE, X, Y),
            "other": export.export(jitted((1, 2), P(None, "m")))(STATE, X, Y),
        },
    }
    for name, functions in made.items():
        export.save(tmp_path / name, functions, params=STATE)
    with monkeypatch.context() as patch:  # as fxflow wrote before
        patch.setattr(tables, "_layout", lambda *_: b"")
        older = export.export(jitted((1, 2), P("m")))(STATE, X, Y)
        export.save(tmp_path / "older.fx", older, params=STATE)
    lines = toured(
        tour, fake, *(tmp_path / name for name in ("first.fx", "second.fx", "older.fx"))
    )
    for line, message in zip(
        lines,
        (
            "step returns w in a sharding that the partitioner chooses: export it with",
            "other takes w in another sharding .* export it with in_shardings",
            "is for several devices, and was written by an older fxflow",
        ),
        strict=True,
    ):
        assert re.search(message, line), lines
