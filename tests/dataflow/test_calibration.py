"""Calibration measures each family, and keeps what it found."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import config, dataflow
from fxflow.dataflow import calibration, costs

CPU = fxflow.local_devices()[0]


def test_rates_are_measured_and_kept(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("dot", "reduce", "sort")
    programs = {name: calibration._PROGRAMS[name] for name in names}
    monkeypatch.setattr(calibration, "_PROGRAMS", programs)
    monkeypatch.setattr(calibration, "_RUNS", 1)
    with config.override(cache_dir=str(tmp_path)):
        model = dataflow.calibrate(["cpu:0"])
        rates, links = costs.calibrated(CPU)
    assert rates is not None
    measured = model.of(CPU)
    known = costs.default_rates(CPU)
    for name in names:
        assert measured.flops[name] > 0
        assert measured.flops[name] != known.flops[name]
    assert rates.flops == measured.flops and rates.start == measured.start
    assert 1 <= measured.at_once <= len(fxflow.local_devices())
    assert links["cpu cpu"].bandwidth > 1e6
