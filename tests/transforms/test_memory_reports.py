"""Reports of memory name the right lines."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, nn
from fxflow.devices.callbacks import raise_original
from fxflow.errors import ArgumentError, OutOfMemoryError

X = np.ones((128, 128), "f4")


def outer_product(x):
    y = x[:, :, None] * x[:, None, :]  # here
    return fnp.sum(y @ x[:, :2])


def residuals_of_a_loop(x):
    def step(c, _):
        h = fnp.tanh(c @ fnp.repeat(x, 8, axis=1))  # here
        return h[:, :128] * 0.5, None

    c, _ = lax.scan(step, x, None, length=60)
    return fnp.sum(c)


def stacked_results(x):
    def step(c, _):
        h = fnp.tanh(c @ x)  # here
        return h, h

    ys = lax.scan(step, x, None, length=60)[1]
    return fnp.sum(ys @ x[:, :2])


def one_hot_codes(x):
    codes = nn.one_hot(fnp.argmax(x, axis=1), 8192)  # here
    return fnp.sum(codes @ fnp.ones((8192, 2)))


def scores(x):
    q = fnp.reshape(x, (1, 1024, 16))
    s = fnp.einsum("bqd,bkd->bqk", q, q)  # here
    return fnp.sum(s @ q)


def concatenated(x):
    wide = fnp.concatenate([fnp.sin(x)] * 40, axis=0)  # here
    return fnp.sum(wide @ x[:, :2])


def padded(x):
    p = fnp.pad(x, ((0, 2000), (0, 300)))  # here
    return fnp.sum(p @ p.T[:, :16])


def gathered(x):
    rows = fnp.take(fnp.cos(x), fnp.arange(4000) % 128, axis=0)  # here
    return fnp.sum(rows @ x[:, :2])


def scoped(x):
    with fxflow.named_scope("wide"):
        y = x @ fnp.repeat(x[:, :4], 2000, axis=1)  # here
    return fnp.sum(fnp.sin(y))


def called(x):
    def inner(z):
        return z @ fnp.ones((128, 6000))  # here

    return fnp.sum(fxflow.jit(inner)(fnp.sin(x)) ** 3)


PLANTED = [
    (outer_product, False), (residuals_of_a_loop, True), (stacked_results, False),
    (one_hot_codes, False), (scores, False), (concatenated, False), (padded, False),
    (gathered, False), (scoped, False), (called, False),
]  # fmt: skip


def marked_line(f):
    lines, start = inspect.getsourcelines(f)
    (offset,) = (i for i, text in enumerate(lines) if "# here" in text)
    return f"test_memory_reports.py:{start + offset} "


@pytest.mark.slow
@pytest.mark.parametrize(("f", "is_gradient"), PLANTED)
def test_planted_line(f, is_gradient):
    function = fxflow.grad(f) if is_gradient else f
    report = fxflow.jit(function).lower(X).compile().memory_report()
    if report.sizes["temp_size_in_bytes"] < 1e6:
        pytest.skip("this jaxlib fuses the line with what reads it: nothing is held")
    largest = max(
        (row for row in report.rows("line") if "argument" not in row.name),
        key=lambda row: row.nbytes,
    )
    assert marked_line(f) in largest.name, report


def test_report():
    compiled = fxflow.jit(scoped).lower(X).compile()
    report = compiled.memory_report()
    assert report.nbytes == sum(
        report.sizes[f"{kind}_size_in_bytes"] for kind in ("argument", "output", "temp")
    )
    held = sum(b.nbytes for b in report.buffers)
    assert 0.8 * report.nbytes < held <= report.nbytes + 4096
    assert sum(row.share for row in report.rows("kind")) == pytest.approx(1)
    scopes = {row.name: row.nbytes for row in report.rows("scope")}
    assert scopes["wide"] > 1e6 and "(arguments)" in scopes
    assert any(b.label == "x" and b.type == "f32[128,128]" for b in report.buffers)
    text = str(report)
    assert "by line" in text and "by scope" in text and "the argument x" in text
    assert "and 1 more" in report.table("line", len(report.rows("line")) - 1)
    assert len(report.largest(2).splitlines()) == 2
    with pytest.raises(ArgumentError, match="by is one of"):
        report.rows("size")
    assert re.match(r"scoped needs .* MB on each device", text)


def test_programs_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("fxflow.transforms.memory_reports.SMALL_PROGRAM", 0)
    monkeypatch.setattr(
        "fxflow.transforms.memory_reports.memory_limit", lambda device: 1_000_000
    )
    with pytest.raises(OutOfMemoryError, match=r"needs .* and .* has 1 MB") as error:
        fxflow.jit(lambda x: scoped(x))(X)
    assert marked_line(scoped) in str(error.value) and "in wide" in str(error.value)
    # It can be looked at all the same.
    compiled = fxflow.jit(scoped).lower(X).compile()
    assert compiled.memory_report().nbytes > 1e6
    with pytest.raises(OutOfMemoryError):
        compiled(X)
    assert float(fxflow.jit(fnp.sum)(X)) == X.size


EXHAUSTED = "RESOURCE_EXHAUSTED: Out of memory "


@pytest.mark.parametrize(
    "said", ["allocating {} bytes.", "while trying to allocate {:.2f}MiB."]
)
def test_the_runtimes_exhaustion_names_the_program(said):
    compiled = fxflow.jit(scoped).lower(X).compile()
    nbytes = compiled.memory_analysis()["temp_size_in_bytes"]
    text = EXHAUSTED + said.format(nbytes / 2**20 if "MiB" in said else nbytes)
    with pytest.raises(OutOfMemoryError, match="scoped allocates that") as error:
        raise_original(RuntimeError(text))
    assert marked_line(scoped) in str(error.value)
    # No program allocates this much.
    with pytest.raises(OutOfMemoryError, match="for a program: use smaller"):
        raise_original(RuntimeError(EXHAUSTED + f"allocating {nbytes * 977} bytes."))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits memory as Linux does")
def test_a_program_that_runs_out_of_memory_says_of_what():
    code = """
import resource
import fxflow, fxflow.numpy as fnp
def pairs(x):
    y = fnp.sort(x[:, None] * x[None, :], axis=1)  # here
    return fnp.sum(y[:, 0] - y[:, -1])
x = fnp.ones(1 << 14)
run = fxflow.jit(pairs)
run.lower(x).compile()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 28),) * 2)
try:
    run(x).block_until_ready()
except fxflow.errors.OutOfMemoryError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    text = done.stdout
    assert "pairs allocates that much: it needs 1.07 GB" in text
    assert "f32[16384,16384]  sort" in text
