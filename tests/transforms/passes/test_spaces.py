"""Functions of rows in programs that the partitioner divides are kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import P, config, nn
from fxflow.transforms.passes import rewriting
from fxflow.transforms.passes.spaces import COLUMN, FULL, NUMBER, ROW, Rows, Space

MESH = fxflow.make_mesh((2, 4), ("a", "b"))
RNG = np.random.default_rng(0)


def put(x: Any, *spec: Any) -> Any:
    return fxflow.device_put(x, fxflow.NamedSharding(MESH, P(*spec)))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of any number and length become kernels."""
    pytest.importorskip("llvmlite")
    for name in ("LEAST", "_ROWS", "_COLUMNS"):
        monkeypatch.setattr(rewriting, name, 1)


def loss(params: Any, x: Any, w: Any) -> Any:
    y = nn.layer_norm(params, x @ w)
    return fnp.mean(nn.softmax(y) ** 2 * fnp.cos(y))


def answers(f: Any, *args: Any) -> int:
    """How many kernels a program has; its numbers are those without."""
    found = {}
    for passes in ("all", "none"):
        with config.override(passes=passes):
            lowered = fxflow.jit(lambda *a: f(*a)).lower(*args)
            found[passes] = lowered.compile()(*args)
        if passes == "all":
            count = lowered.as_text().count("fxflow_kernel_")
    for a, b in zip(*map(fxflow.tree.leaves, found.values()), strict=True):
        np.testing.assert_allclose(a, b, 1e-4, 1e-5)
        assert a.sharding == b.sharding
    return count


@pytest.mark.parametrize(
    "spec", [("a",), ("b",), (("a", "b"),), ("a", "b"), (None, "b"), ()]
)
@pytest.mark.usefixtures("small")
def test_gradients_of_divided_rows(spec: Any) -> None:
    x = put(RNG.normal(size=(8, 12, 24)).astype(np.float32), *spec)
    w = put(RNG.normal(size=(24, 24)).astype(np.float32))
    params = fxflow.tree.map(put, nn.layer_norm_init(24))
    assert answers(fxflow.grad(loss, argnums=(0, 1, 2)), params, x, w) == 1
    assert answers(nn.softmax, x) == 1


@pytest.mark.usefixtures("small")
def test_parts_whose_rows_blocks_do_not_divide() -> None:
    x = put(RNG.normal(size=(2 * 331, 96)).astype(np.float32), "a")
    params = fxflow.tree.map(put, nn.layer_norm_init(96))

    def slopes(params: Any, x: Any) -> Any:
        return fxflow.vjp(nn.layer_norm, params, x)[1](fnp.sin(x))

    assert answers(slopes, params, x) == 1


@pytest.mark.usefixtures("small")
def test_scales_that_are_divided_are_gathered() -> None:
    x = put(RNG.normal(size=(16, 24)).astype(np.float32), "a")
    params = fxflow.tree.map(lambda p: put(p, "a"), nn.layer_norm_init(24))
    assert answers(nn.layer_norm, params, x) == 1
    # Here the partitioner divides the rows as the scale is.
    params = fxflow.tree.map(lambda p: put(p, "b"), nn.layer_norm_init(24))
    assert answers(nn.layer_norm, params, x) == 0


@pytest.mark.usefixtures("small")
def test_rows_that_stay_as_operations() -> None:
    x = RNG.normal(size=(16, 24)).astype(np.float32)
    # A row is divided, rows cannot be divided evenly, how is not known.
    assert answers(nn.softmax, put(x, None, "b")) == 0
    assert answers(lambda x: nn.softmax(x[:14]), put(x, "a")) == 0
    other = put(x, "b")
    assert answers(lambda x, y: nn.softmax(x + y), put(x, "a"), other) == 0


def test_small_parts_stay_as_operations() -> None:
    pytest.importorskip("llvmlite")
    x = RNG.normal(size=(256, 256)).astype(np.float32)
    assert answers(nn.softmax, put(x, ("a",))) == 1
    assert answers(nn.softmax, put(x, ("a", "b"))) == 0


def test_spaces() -> None:
    space = Space((4, 6), (5, 2))
    assert (space.rows, space.columns) == (24, 10)
    kinds = {(4, 6, 5, 2): FULL, (4, 6): ROW, (4, 6, 1, 1): ROW, (): NUMBER, (5, 2): ""}
    for shape, kind in kinds.items():
        assert space.kind(shape) == kind
    assert space.canonical(FULL, 3) == (3, 10) and space.canonical(COLUMN, 3) == (10,)
    a, b = object(), object()
    rows = Rows(MESH, {a: (("a",), (), (), ()), b: ((), ())})
    lead = rows.lead(space, [(a, FULL), (b, ROW)])
    assert lead is not None
    assert (lead.names, lead.part) == ((("a",), ()), (2, 6))
    assert rows.lead(space, [(object(), FULL)]) is None
    assert rows.lead(Space((4,), (6,)), [(b, FULL)]) is not None
