"""Reports of what it takes to compile."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.profiler import compile_report


def model(x: Any) -> Any:
    with fxflow.named_scope("many"):
        for _ in range(30):
            x = fnp.sin(x) @ x  # many
    with fxflow.named_scope("few"):
        return lax.scan(lambda c, _: (fnp.tanh(c), None), x, length=3)[0]


def test_report_of_a_function() -> None:
    report = compile_report(model, fnp.ones((4, 4)))
    scopes = {row.name: row for row in report.rows("scope")}
    assert scopes["many"].lowered >= 60 and scopes["many"].optimized >= 30
    assert scopes["few"].lowered < scopes["many"].lowered
    assert "test_compiling.py" in report.rows("line")[0].name
    assert min(report.tracing, report.lowering, report.compiling) > 0
    assert report.retraces == ()
    text = str(report)
    assert "# many" in text and "XLA" in text and "by scope" in text
    assert "and 1 more" in report.table("line", len(report.rows("line")) - 1)
    names = [row.name for row in report.rows("operation")]
    assert "sin" in names and "dot_general" in names


def test_retraces_are_explained() -> None:
    @fxflow.jit
    def f(x: Any) -> Any:
        return x * 2

    f(fnp.ones(2))
    f(fnp.ones(3))
    f(fnp.ones(3, "int32"))
    report = compile_report(f, fnp.ones(2))
    assert len(report.retraces) == 2
    assert "changed from f32[2] to f32[3]" in report.retraces[0]
    assert "traced 3 times" in str(report)


def test_wrong_arguments() -> None:
    with pytest.raises(ArgumentError, match="expected a function"):
        compile_report(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="by is one of"):
        compile_report(fnp.sin, fnp.ones(2)).rows("size")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"power has static arguments.*lambda x"):
        compile_report(fxflow.jit(power, static_argnums=1), 2.0, 3)
    with pytest.raises(ArgumentError, match=r"^power: argument n of .*'abc'"):
        compile_report(power, 1.0, "abc")


def power(x: Any, n: Any) -> Any:
    return x**n
