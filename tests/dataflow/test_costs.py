"""Estimates grow with the work, and give way to what was measured."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import fxflow
from fxflow import config, dataflow
from fxflow import numpy as fnp
from fxflow.core.ir.graph import Graph
from fxflow.dataflow import Costs, Rates, costs
from fxflow.dataflow.rates import Link, kind_of
from fxflow.errors import ArgumentError

CPU = fxflow.local_devices()[0]
RATES = Rates(
    {"dot": 1e9, "elementwise": 1e8}, {"elementwise": 1e9}, 1e-5, 1e-6, 2e-6, at_once=2
)
MODEL = Costs({kind_of(CPU): RATES})


def graph_of(f: Any, *args: Any) -> Graph:
    return dataflow.jit(f).plan(*args).graph


def seconds(f: Any, *args: Any) -> float:
    return sum(MODEL.node_seconds(graph_of(f, *args), CPU))


class Other:
    """A device that this machine does not have."""

    client = None
    process_index = 0

    def __init__(self, platform: str, kind: str) -> None:
        self.platform, self.device_kind = platform, kind


def test_a_device_that_is_absent_has_the_figures_of_its_kind() -> None:
    model = Costs()
    h200: Any = Other("gpu", "NVIDIA H200")
    t4: Any = Other("gpu", "Tesla T4")
    graph = graph_of(lambda x: x @ x, fnp.ones((512, 512)))
    assert model.graph_seconds(graph, h200) < model.graph_seconds(graph, t4)
    assert model.memory(h200) == 141_000_000_000
    assert model.transfer_seconds(1e9, h200, CPU) > 0.01


def test_what_was_measured_replaces_the_estimate() -> None:
    model = Costs({kind_of(CPU): RATES})
    x = fnp.ones((64, 64))
    graph = graph_of(lambda x: x @ x, x)
    estimate = model.graph_seconds(graph, CPU)
    model.learn(graph, CPU, 3 * estimate)
    assert model.graph_seconds(graph, CPU) == 3 * estimate
    # The same operation in another fragment is as much slower.
    other = graph_of(lambda x: fnp.tanh(x @ x), x)
    before = sum(MODEL.node_seconds(other, CPU))
    assert sum(model.node_seconds(other, CPU)) > 2 * before
    assert model.error(CPU) > 0.5 - 1e-9


def test_a_host_callback_is_known_once_it_was_measured() -> None:
    def f(x: Any) -> Any:
        return fxflow.pure_callback(lambda v: v, x, x)

    graph, model = graph_of(f, fnp.ones(3)), Costs({kind_of(CPU): RATES})
    assert sum(model.node_seconds(graph, CPU)) < 1e-4
    model.learn(graph, CPU, 0.25)
    assert sum(model.node_seconds(graph, CPU)) == pytest.approx(0.25, rel=0.01)


def test_collectives_follow_the_ring() -> None:
    link = Link(1e-6, 1e9)
    model = Costs(links={"cpu cpu": link})
    devices = fxflow.local_devices()[:4]
    reduce = model.collective_seconds("all_reduce", 4e6, devices)
    assert reduce == pytest.approx(6e-6 + 1.5 * 4e6 / 1e9)
    gather = model.collective_seconds("all_gather", 4e6, devices)
    assert gather == pytest.approx(3e-6 + 0.75 * 4e6 / 1e9)
    assert model.collective_seconds("all_reduce", 4e6, devices[:1]) == 0
    with pytest.raises(ArgumentError, match="'broadcast'"):
        model.collective_seconds("broadcast", 1, devices)


def test_a_model_is_pickled_without_what_was_measured() -> None:
    model = Costs({kind_of(CPU): RATES}, capacity=1000)
    graph = graph_of(lambda x: x @ x, fnp.ones((8, 8)))
    model.learn(graph, CPU, 1.0)
    again = pickle.loads(pickle.dumps(model))
    assert again.memory(CPU) == 1000 and not again.measured
    assert again.of(CPU).flops == RATES.flops


def test_the_memory_of_a_device_can_be_given() -> None:
    first, second = fxflow.local_devices()[:2]
    assert Costs(capacity=1000).memory(first) == 1000
    by_device = Costs(capacity={second: 7})
    assert by_device.memory(second) == 7 and by_device.memory(first) is None
    assert (Costs().memory(first) or 0) > 1_000_000
    with pytest.raises(ArgumentError, match=r"bytes of memory.*'all'"):
        Costs(capacity="all")  # type: ignore[arg-type]


def test_calibrated_rates_are_kept_on_disk(tmp_path: Any) -> None:
    with config.override(cache_dir=str(tmp_path)):
        assert costs.calibrated(CPU) == (None, {})
        costs.keep(CPU, RATES, {"cpu cpu": Link(1.0, 2.0)})
        model = Costs()
        assert model.of(CPU).flops == RATES.flops
        assert model.transfer_seconds(4, CPU, fxflow.local_devices()[1]) == 3.0
        # A file that another version wrote, or that is damaged, is not used.
        (entry,) = tmp_path.iterdir()
        entry.write_bytes(entry.read_bytes()[:-3])
        assert costs.calibrated(CPU) == (None, {})


def test_rates_and_links_that_nothing_has_are_refused() -> None:
    rates = Rates({"elementwise": 1e9}, {"elementwise": 1e9})
    with pytest.raises(ArgumentError, match=r"rates\['cpu cpu'\] is a Rates, got 3"):
        Costs({"cpu cpu": 3})  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match=r"no links 'cpu'; .* 'cpu cpu', 'cpu oth"):
        Costs(links={"cpu": Link(1e-5, 1e9)})
    step = dataflow.jit(fnp.sin, place=Costs({"cpu": rates}))
    with pytest.raises(ArgumentError, match=r"are of 'cpu', .* kinds 'cpu cpu'"):
        step.plan(1.0)
