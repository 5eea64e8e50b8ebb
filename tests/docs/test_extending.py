"""The page on extending fxflow runs as written."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import ffi
from fxflow.core.ir.primitive import table
from tests.docs.page_examples import failures

PAGE = Path(__file__).parent.parent.parent / "docs" / "extending.md"


@pytest.fixture(autouse=True)
def table_unchanged() -> Iterator[None]:
    before = dict(table)
    yield
    # What fxflow registers comes with its first use, and stays.
    own = {n: p for n, p in table.items() if type(p).__module__.startswith("fxflow.")}
    table.clear()
    table.update({**own, **before})


def test_the_page_runs() -> None:
    failed = failures(PAGE.read_text(encoding="utf-8"), PAGE.name)
    assert not failed, failed


def test_the_kernel_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no C++ compiler is installed")
    page = PAGE.read_text(encoding="utf-8")
    kernel, command, program = (
        re.findall(rf"^```{language}\n(.*?)^```", page, flags=re.M | re.S)[-1]
        for language in ("cpp", "bash", "python")
    )
    monkeypatch.chdir(tmp_path)
    Path("kernel.cc").write_text(kernel)
    command = re.sub(r'"\$\(.*\)"', ffi.include_dir(), command)
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    space: dict[str, Any] = {}
    exec(program, space)
    axpy = space["axpy"]
    x, y = fnp.array([1.0, 2.0]), fnp.array([10.0, 20.0])
    assert fxflow.jit(axpy, static_argnums=0)(3.0, x, y).tolist() == [13.0, 26.0]
    rows = fxflow.vmap(lambda x: axpy(3.0, x, y))(fnp.stack([x, y]))
    assert rows.tolist() == [[13.0, 26.0], [40.0, 80.0]]
    slopes = fxflow.grad(lambda x: fnp.sum(axpy(3.0, x, y) ** 2))(x)
    assert slopes.tolist() == [6 * 13.0, 6 * 26.0]
