"""The kernel of contractions: compilation, registration, calls, the disk cache."""

import concurrent.futures
import re
import subprocess
import sys

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.devices import contractions, native
from fxflow.devices.contractions import Contraction, LoopAxis

llvm = pytest.importorskip("llvmlite.binding")

TILE = native.kernel_tile()
pytestmark = pytest.mark.skipif(TILE is None, reason="no kernel for this processor")
COLUMNS = TILE.columns if TILE else 1


def call(a, b, contraction):
    shape = fxflow.ShapeDtypeStruct(
        (contraction.part_count, *rows_of(contraction), contraction.columns), "float32"
    )
    target = fxflow.ffi.ffi_call(contractions.TARGET, shape)
    numbers = re.findall(r"-?\d+", contraction.config(TILE).partition(": ")[2])
    shape = np.array(numbers, np.int64)
    return np.asarray(fxflow.jit(lambda a, b: target(a, b, shape=shape))(a, b))


def rows_of(contraction):
    return [int(np.prod([axis.size for axis in contraction.rows]))]


def multiply(a, b):
    """A matrix product, with the right operand in panels."""
    (rows, sums), count = a.shape, b.shape[1]
    panels = -(-count // COLUMNS)
    wide = np.zeros((sums, panels * COLUMNS), np.float32)
    wide[:, :count] = b
    lines = wide.reshape(sums, panels, COLUMNS).transpose(1, 0, 2)
    contraction = Contraction(
        (LoopAxis(rows, sums),),
        (LoopAxis(sums, 1, COLUMNS),),
        count,
        panel=sums * COLUMNS,
    )
    return call(a, np.ascontiguousarray(lines), contraction)[0]


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


def test_rows_and_sums_along_several_axes():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(3, 5, 9, 4, 8)).astype(np.float32)
    b = rng.normal(size=(2, 9, 4, COLUMNS)).astype(np.float32)
    # The second half of b's first axis; parts along the second and third axes.
    contraction = Contraction(
        rows=(LoopAxis(3, 5 * 9 * 32), LoopAxis(5, 9 * 32), LoopAxis(8, 1)),
        sums=(LoopAxis(3, 32, 4 * COLUMNS), LoopAxis(4, 8, COLUMNS)),
        columns=COLUMNS,
        panel=COLUMNS,
        parts=(LoopAxis(1, 0), LoopAxis(3, 3 * 32, 3 * 4 * COLUMNS)),
        origin=(0, 9 * 4 * COLUMNS),
    )
    parts = call(a, b, contraction)
    assert parts.shape == (3, 120, COLUMNS)
    expected = np.einsum("xyklr,kln->xyrn", a, b[1]).reshape(120, COLUMNS)
    np.testing.assert_allclose(parts.sum(0), expected, rtol=1e-4, atol=1e-4)


def test_a_matrix_where_it_lies_and_half_a_panel():
    rng = np.random.default_rng(1)
    columns = COLUMNS + COLUMNS // 2
    a = rng.normal(size=(20, 30)).astype(np.float32)
    b = rng.normal(size=(30, columns)).astype(np.float32)
    contraction = Contraction(
        (LoopAxis(20, 30),), (LoopAxis(30, 1, columns),), columns, panel=COLUMNS
    )
    np.testing.assert_allclose(call(a, b, contraction)[0], a @ b, rtol=1e-4, atol=1e-4)


def test_nonfinite_elements_affect_only_their_row_and_column():
    a, b = np.ones((9, 40), np.float32), np.ones((40, 50), np.float32)
    a[8, 3], b[7, 49] = np.nan, np.inf
    out = multiply(a, b)
    assert np.isnan(out[8]).all()
    assert np.isinf(out[:8, 49]).all()
    assert (out[:8, :49] == 40).all()


def test_concurrent_contractions_are_right():
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
    program = "from fxflow.devices import native; print(native.kernel_tile().columns)"
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
    native._compiler.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    assert native.kernel_tile() is None
    assert native.vector_lanes() == 0
    x = fnp.ones((4, 128))
    w = fnp.ones((128, 128)) / 128
    out, _ = fxflow.jit(
        lambda x: fxflow.lax.scan(lambda c, _: (c @ w, None), x, None, length=20)
    )(x)
    np.testing.assert_allclose(np.asarray(out), np.ones((4, 128)), rtol=1e-5)
    native._compiler.cache_clear()


def test_a_compiler_that_cannot_be_loaded(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setattr(native.importlib.util, "find_spec", lambda name: name)
    with pytest.warns(
        UserWarning, match=r"llvmlite is installed, but cannot be loaded"
    ):
        assert native._compiler.__wrapped__() is None
