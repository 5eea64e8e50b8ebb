"""Plans of shardings: values and texts."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import P
from fxflow import numpy as fnp
from fxflow.dataflow import ShardingPlan, auto_sharding
from fxflow.dataflow.sharding.plan import spec_text
from tests.dataflow.sharding.networks import (
    accelerator,
    perceptron,
    perceptron_types,
    struct,
)


def plan(layers: int = 1) -> ShardingPlan:
    def network(params: Any, x: Any) -> Any:
        for layer in params:
            x = x + perceptron(layer, x)
        return x

    mesh = fxflow.make_mesh((8,), ("x",))
    types = [perceptron_types(2048, 16384) for _ in range(layers)]
    return auto_sharding(network, mesh, costs=accelerator())(types, struct(8, 2048))


def test_the_text_has_a_line_for_leaves_that_are_alike() -> None:
    lines = str(plan(3)).splitlines()
    assert lines[0].startswith("network over x: 8; ")
    (up,) = (line for line in lines if "['up']" in line)
    assert up.split()[:4] == ["params[0]['up']", "and", "2", "more"]
    assert "P(None, 'x')" in up and "16,777,216" in up and "saves" in up
    assert any(line.split() == ["all-reduce", "x", "3", "196,608"] for line in lines)
    assert "at least" in repr(plan())


def test_specs_are_pytrees() -> None:
    found = plan()
    ((layer,), x) = found.in_specs
    assert layer == {"up": P(None, "x"), "bias": P("x"), "down": P("x")}
    assert x == found.out_specs == P()
    assert found.in_shardings[0][0]["up"].mesh == found.mesh
    (first, *_) = found.leaves
    assert first.label == "params[0]['bias']" and first.nbytes == 16384 * 4 // 8


def test_without_constraints_the_function_is_the_same() -> None:
    def f(x: Any) -> Any:
        return fnp.sin(x)

    mesh = fxflow.make_mesh((2,), ("x",))
    found = auto_sharding(f, mesh)(struct(4))
    assert found.num_constraints == 0 and found.function is f
    np.testing.assert_allclose(found.jit()(np.ones(4)), np.sin(np.ones(4)), rtol=1e-6)


def test_a_check_compares_bytes() -> None:
    found = plan().check()
    assert found.error == 0.0
    text = str(found)
    assert "0.0% of the bytes differ" in text and "predicted" in text
    assert repr(found) == "<ShardingCheck: 0.0% of the bytes differ>"
    found.compiled[("all-to-all", 1)] = (1.0, 65536.0)
    assert found.error == 0.5 and "all-to-all" in str(found)


def test_specs_as_text() -> None:
    assert spec_text(P(None, "x")) == "P(None, 'x')"
