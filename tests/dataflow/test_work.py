"""Operations take the time of their flops or of their bytes."""

from __future__ import annotations

from typing import Any

import pytest

from fxflow import dataflow, lax
from fxflow import numpy as fnp
from fxflow.core.ir.graph import Graph
from fxflow.dataflow import Rates, work

RATES = Rates(
    {"dot": 1e9, "elementwise": 1e8}, {"elementwise": 1e9}, 1e-5, 1e-6, 2e-6, at_once=2
)


def graph_of(f: Any, *args: Any) -> Graph:
    return dataflow.jit(f).plan(*args).graph


def seconds(f: Any, *args: Any) -> float:
    return sum(work.seconds_of(graph_of(f, *args), RATES))


@pytest.mark.parametrize(
    ("f", "family"),
    [
        (fnp.exp, "transcendental"),
        (lambda x: x @ x, "dot"),
        (fnp.sort, "sort"),
        (lambda x: x[fnp.asarray([1, 2])], "gather"),
        (lambda x: x.at[fnp.asarray([1, 2])].add(1.0), "scatter"),
        (lambda x: fnp.linalg.cholesky(x), "linalg"),
        (lambda x: fnp.fft.rfft(x), "fft"),
        (lambda x: fnp.cumsum(x, 0), "reduce"),
    ],
)
def test_operations_have_families(f: Any, family: str) -> None:
    nodes = graph_of(f, fnp.ones((8, 8))).nodes
    assert family in {work.family_of(node.primitive) for node in nodes}


def test_fused_operations_read_and_write_once() -> None:
    x = fnp.ones(10_000)
    one = seconds(lambda x: x + 1, x)
    assert one == pytest.approx(1e-4)  # its flops, above its bytes
    chain = seconds(lambda x: ((x + 1) * 2 - 3) * 4, x)
    assert chain == pytest.approx(4e-4)
    # By bytes alone, which the values between do not count in.
    slow = Rates({"elementwise": 1e20}, RATES.bandwidth)
    graph = graph_of(lambda x: ((x + 1) * 2 - 3) * 4, x)
    moved = sum(work.seconds_of(graph, slow))
    assert moved == pytest.approx(80_000 / 1e9, rel=1e-3)


def test_a_product_takes_its_flops_by_the_rate_of_products() -> None:
    x = fnp.ones((64, 64))
    assert seconds(lambda x: x @ x, x) == pytest.approx(2 * 64**3 / 1e9)


def test_a_loop_takes_all_its_rounds_and_a_branch_the_longest() -> None:
    x = fnp.ones((64, 64))
    each = 2 * 64**3 / 1e9
    loop = seconds(lambda x: lax.fori_loop(0, 5, lambda i, c: c @ c, x), x)
    assert loop == pytest.approx(5 * (each + 2e-6), rel=0.02)
    branch = seconds(lambda x: lax.cond(x[0, 0] > 0, lambda a: a @ a, fnp.sin, x), x)
    assert branch == pytest.approx(each, rel=0.05)
