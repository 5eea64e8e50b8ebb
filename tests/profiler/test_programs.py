"""Instructions of compiled programs lead back to operations."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.profiler.programs import OTHER, ProfiledProgram


def model(x: Any, w: Any) -> Any:
    with fxflow.named_scope("dense"):
        x = fnp.tanh(x @ w)

    def body(carry: Any, _: Any) -> Any:
        with fxflow.named_scope("body"):
            return fnp.sin(carry @ w), None

    x, _ = lax.scan(body, x, length=3)
    with fxflow.named_scope("choice"):
        return lax.cond(x[0, 0] > 0, fnp.sum, lambda x: fnp.sum(fnp.sort(x)), x)


def operations(program: ProfiledProgram) -> set[tuple[str, tuple[str, ...]]]:
    found = (program.operations[i.node] for i in program.instructions.values())
    return {(o.name, o.scope) for o in found}


@pytest.mark.parametrize("jitted", [False, True])
def test_scopes_of_a_gradient(jitted: bool) -> None:
    step = fxflow.value_and_grad(model)
    step = fxflow.jit(step, donate_argnums=0) if jitted else step
    x, w = fnp.ones((8, 8)), fnp.ones((8, 8))
    program = ProfiledProgram(step, (x, w), {})
    found = operations(program)
    assert ("dot_general", ("dense",)) in found and ("cos", ("body",)) in found
    assert ("sort", ("choice",)) in found and (OTHER.name, ()) in found
    (line,) = {o.line for o in program.operations if o.scope == ("body",)}
    body = model.__code__.co_firstlineno + 6
    assert line.endswith(f"test_programs.py:{body} (body)")
    # Nothing is donated here: it runs again.
    for _ in range(2):
        value, _ = program.compiled(x, w)
    assert float(value) == pytest.approx(float(model(x, w)))


def test_loops_and_branches_hold_what_runs_in_them() -> None:
    program = ProfiledProgram(model, (fnp.ones((8, 8)), fnp.ones((8, 8))), {})
    by_opcode = {i.opcode: name for name, i in program.instructions.items()}
    seen = set(program.instructions)
    assert program.holds(by_opcode["while"], seen)
    assert program.holds(by_opcode["conditional"], seen)
    assert not program.holds(by_opcode["while"], {by_opcode["while"]})
    assert not program.holds(by_opcode["dot"], seen) and not program.holds("no", seen)


def test_what_an_operation_is_made_of_is_the_operation_s() -> None:
    def f(x: Any) -> Any:
        with fxflow.named_scope("ratio"):
            return fnp.sinc(lax.igamma(x, x))

    program = ProfiledProgram(f, (fnp.ones((8, 8)),), {})
    scopes = {scope for name, scope in operations(program) if name != OTHER.name}
    assert scopes == {("ratio",)}


def test_errors_are_jit_s() -> None:
    with pytest.raises(ArgumentError, match="array"):
        ProfiledProgram(fnp.sin, ("text",), {})
    power = fxflow.jit(lambda x, n: x**n, static_argnums=1)
    with pytest.raises(ArgumentError, match="has static arguments: report a function"):
        ProfiledProgram(power, (1.0, 3), {})
