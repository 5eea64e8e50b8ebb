"""The benchmark driver counts right, and a worker measures fxflow."""

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture(scope="module")
def driver() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "benchmark_run", BENCHMARKS / "run.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(driver: ModuleType, name: str = "x", **samples: list[float]) -> Any:
    case = {"name": name, "unit": "µs", "at_most": 0.5, "aim": 0.1, "most_rounds": 9}
    return driver.Row(case, samples, {})


def test_verdict_is_on_the_ratio_of_the_minima(driver: ModuleType) -> None:
    libraries = ["fxflow", "jax"]
    fast = row(driver, fxflow=[4e-6, 9e-6], jax=[1e-5, 1e-5])
    slow = row(driver, fxflow=[6e-6, 6e-6], jax=[1e-5, 1e-5])
    *_, first, second = driver.table([fast, slow], libraries)
    assert "| 4 / 6.5 | 10 / 10 | 0.400 | 0.650 | 0.5 | 0.1 | ok |" in first
    assert "| 0.600 | 0.600 | 0.5 | 0.1 | **over** |" in second


def test_missing_library_leaves_the_ratio_out(driver: ModuleType) -> None:
    (*_, line) = driver.table([row(driver, fxflow=[1e-6])], ["fxflow", "jax", "torch"])
    cells = [cell.strip() for cell in line.strip("|").split(" | ")]
    assert cells[:4] == ["x", "µs", "1 / 1", ""]
    assert line.count("|") == driver.table([], ["fxflow", "jax", "torch"])[0].count("|")


def test_roofline_names_the_larger_bound(driver: ModuleType) -> None:
    case = {"name": "step x", "unit": "ms"}
    peaks = {"flops": 2e11, "bytes": 1e10}
    rows = [
        driver.Row(case, {"fxflow": [0.02]}, {}, {"flops": 2e9, "nbytes": 1e6}),
        driver.Row(case, {"fxflow": [0.02]}, {}, {"flops": 2e6, "nbytes": 5e7}),
        driver.Row(case, {"fxflow": [0.02]}, {}, {"flops": 0, "nbytes": 5e7}),
        driver.Row(case, {}, {}, {"flops": 2e6, "nbytes": 5e7}),
    ]
    *_, first, second = driver.roofline(rows, peaks)
    assert first == "| step x | 2 | 10 | 1 | 0.1 | 20 | 50%, arithmetic |"
    assert second == "| step x | 0.002 | 0.01 | 50 | 5 | 20 | 25%, memory |"
    assert driver.roofline(rows[2:], peaks) == []


def test_growth_is_per_library(driver: ModuleType) -> None:
    rows = [
        row(driver, "trace chain of 1000", fxflow=[1.0]),
        row(driver, "trace chain of 10000", fxflow=[11.0]),
    ]
    assert driver.growth(rows, ["fxflow", "jax"]) == [
        "- fxflow, trace: 11.0 times (at most 12)"
    ]


def test_given_interpreter_is_used(
    driver: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FXFLOW_BENCH_JAX", "/some/python")
    assert driver.environment("jax") == "/some/python"


def test_worker_measures_and_survives_errors() -> None:
    requests = [
        {"action": "about"},
        {"action": "prepare", "case": "no such case"},
        {"action": "prepare", "case": "eager x + y"},
        {"action": "measure", "case": "eager x + y"},
    ]
    result = subprocess.run(
        [sys.executable, str(BENCHMARKS / "worker.py"), "fxflow"],
        input="".join(json.dumps(request) + "\n" for request in requests),
        capture_output=True,
        text=True,
        cwd=BENCHMARKS,
        env=os.environ | {"PYTHONPATH": str(BENCHMARKS.parent)},
        check=True,
    )
    about, missing, prepared, measured = map(json.loads, result.stdout.splitlines())
    assert about["version"].startswith("fxflow ")
    assert {"start: import", "step MLP"} < about["cases"].keys()
    assert "KeyError" in missing["error"]
    assert prepared == {}
    assert 0 < measured["value"] < 1e-2


def test_two_processes_measure_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    cases = importlib.import_module("cases.two_processes")
    pair = cases.Pair("fxflow")
    try:
        for name in ("all_reduce 1024", "all_reduce_tree", "all_reduce 1024 copy"):
            assert 0 < pair.measure(name) < 10
        with pytest.raises(RuntimeError, match="no_such: exit statuses"):
            pair.measure("no_such")
        assert 0 < pair.measure("all_reduce 1024") < 10  # of new processes
    finally:
        pair.stop()
