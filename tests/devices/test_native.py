"""The kernel for products of few rows: compiled, registered, called, kept on disk."""

import concurrent.futures
import subprocess
import sys

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.devices import native, packed_products

llvm = pytest.importorskip("llvmlite.binding")

COLUMNS = native.panel_columns()
pytestmark = pytest.mark.skipif(not COLUMNS, reason="no kernel for this processor")


def packed(b):
    sums, count = b.shape
    panels = -(-count // COLUMNS)
    wide = np.zeros((sums, panels * COLUMNS), np.float32)
    wide[:, :count] = b
    return np.ascontiguousarray(wide.reshape(sums, panels, COLUMNS).transpose(1, 0, 2))


def multiply(a, b):
    shape = fxflow.ShapeDtypeStruct((len(a), b.shape[1]), "float32")
    call = fxflow.ffi.ffi_call(packed_products.TARGET, shape)
    return np.asarray(fxflow.jit(call)(a, packed(b)))


@pytest.mark.parametrize(
    ("rows", "sums", "columns"),
    [
        (1, 1, 1),
        (3, 5, 7),
        (7, 40, COLUMNS),
        (8, 33, COLUMNS + 1),
        (9, 128, 3 * COLUMNS - 1),
        (17, 64, 100),
        (16, 512, 2048),  # divided over threads
        (23, 300, 777),
    ],
)
def test_products(rows, sums, columns):
    rng = np.random.default_rng(rows)
    a = rng.normal(size=(rows, sums)).astype(np.float32)
    b = rng.normal(size=(sums, columns)).astype(np.float32)
    expected = a.astype(np.float64) @ b
    np.testing.assert_allclose(multiply(a, b), expected, rtol=1e-4, atol=1e-4)


def test_what_is_not_finite_stays_in_its_row_and_column():
    a, b = np.ones((9, 40), np.float32), np.ones((40, 50), np.float32)
    a[8, 3], b[7, 49] = np.nan, np.inf
    out = multiply(a, b)
    assert np.isnan(out[8]).all()
    assert np.isinf(out[:8, 49]).all()
    assert (out[:8, :49] == 40).all()


def test_many_at_once():
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(16, 16 * i)).astype(np.float32) for i in range(1, 9)]
    b = [rng.normal(size=(a.shape[1], 1024)).astype(np.float32) for a in matrices]

    def check(i):
        out = multiply(matrices[i % 8], b[i % 8])
        np.testing.assert_allclose(
            out, matrices[i % 8] @ b[i % 8], rtol=1e-3, atol=1e-3
        )
        return i

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(check, range(40))) == list(range(40))


def test_machine_code_is_kept(tmp_path):
    program = "from fxflow.devices import native; print(native.panel_columns())"
    environment = {"FXFLOW_CACHE_DIR": str(tmp_path), "PATH": ""}
    found = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert found == [f"{COLUMNS}\n"] * 2
    assert len(list(tmp_path.glob("*.fxc"))) == 1


def test_without_llvmlite(monkeypatch):
    monkeypatch.setattr(native, "_columns", None)
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert native.panel_columns() == 0
    monkeypatch.setattr(native, "_columns", None)
    x = fnp.ones((4, 128))
    w = fnp.ones((128, 128)) / 128
    out, _ = fxflow.jit(
        lambda x: fxflow.lax.scan(lambda c, _: (c @ w, None), x, None, length=20)
    )(x)
    np.testing.assert_allclose(np.asarray(out), np.ones((4, 128)), rtol=1e-5)
