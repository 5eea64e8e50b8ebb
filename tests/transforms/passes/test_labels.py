"""Losses that read one element of each row are functions of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax, make_graph, nn
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.passes import rewriting
from fxflow.transforms.passes.labels import compare_labels

RNG = np.random.default_rng(0)
LABELS = np.array([0, 6, 3, -1, -7, 2], np.int32)
OUTSIDE = np.array([0, 7, 3, -8, 100, 2], np.int32)
X = RNG.normal(size=(6, 7)).astype(np.float32)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LEAST", "_ROWS", "_COLUMNS"):
        monkeypatch.setattr(rewriting, name, 1)


def picked(x: Any, labels: Any, mode: Any = None) -> Any:
    at = labels[..., None]
    return fnp.take_along_axis(nn.log_softmax(x), at, axis=-1, mode=mode)


def loss(x: Any, labels: Any) -> Any:
    return -fnp.mean(picked(x, labels))


def compared(f: Any, *args: Any) -> set[str]:
    """The operations of the rewritten graph, whose numbers are the same."""
    graph = inlined(make_graph(f)(*args).graph, CALLS)
    after = compare_labels(graph)
    after.check()
    assert after.out_avals == graph.out_avals
    for a, b in zip(graph.evaluate(*args), after.evaluate(*args), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)
    return {node.primitive.name for node in after.nodes}


@pytest.mark.parametrize("labels", [LABELS, OUTSIDE])
@pytest.mark.parametrize("mode", ["clip", "fill", None])
def test_reads(labels: Any, mode: Any) -> None:
    assert "gather" not in compared(lambda x, y: picked(x, y, mode), X, labels)
    wide, more = X.reshape(2, 3, 7), labels.reshape(2, 3)
    assert "gather" not in compared(lambda x, y: picked(x, y, mode), wide, more)


@pytest.mark.parametrize("labels", [LABELS, OUTSIDE])
def test_gradients_write_by_comparisons(labels: Any) -> None:
    found = compared(fxflow.value_and_grad(loss), X, labels)
    assert found.isdisjoint({"gather", "scatter_add"})


def test_other_elements_may_be_infinite() -> None:
    x = np.array([[0, -np.inf, 2], [1, 3, -np.inf]], np.float32)
    compared(lambda x, y: picked(x, y), x, np.array([0, 1], np.int32))


def test_what_stays_a_gather() -> None:
    def rows(x: Any) -> Any:
        return nn.softmax(x)

    two = np.zeros((6, 2), np.int32)
    for f, args in (
        # Several of a row, of an array in memory, without a function of rows, int64.
        (lambda x, y: fnp.take_along_axis(rows(x), y, -1), (X, two)),
        (lambda x, y: (rows(x), fnp.take_along_axis(x, y[:, :1], -1)), (X, two)),
        (lambda x, y: fnp.take_along_axis(fnp.sin(x), y[:, :1], -1), (X, two)),
        (lambda x, y: picked(x, lax.convert_element_type(y, "int64")), (X, LABELS)),
    ):
        assert "gather" in compared(f, *args)


def test_compiled_losses_need_no_memory_for_whole_arrays() -> None:
    pytest.importorskip("llvmlite")
    x = fnp.asarray(RNG.normal(size=(64, 1024)).astype(np.float32))
    labels = fnp.asarray(RNG.integers(-1024, 1024, 64), "int32")
    found = {}
    for passes in ("all", "none"):
        with config.override(passes=passes):
            slopes = fxflow.jit(fxflow.value_and_grad(loss)).lower(x, labels).compile()
        found[passes] = slopes(x, labels)
        memory = slopes.memory_analysis()["temp_size_in_bytes"]
        assert (memory < x.nbytes / 8) == (passes == "all")
    for a, b in zip(*found.values(), strict=True):
        np.testing.assert_allclose(a, b, 1e-5, 1e-6)
