"""Rates that are given are checked, and stand in for those that are missing."""

from __future__ import annotations

import pytest

from fxflow.dataflow import Rates
from fxflow.errors import ArgumentError


def test_rates_that_are_missing_or_not_positive_are_refused() -> None:
    with pytest.raises(ArgumentError, match="'elementwise' at the least"):
        Rates({"dot": 1e9}, {"elementwise": 1e9})
    with pytest.raises(ArgumentError, match="bandwidth maps families to positive"):
        Rates({"elementwise": 1.0}, {"elementwise": 0.0})
    only = Rates({"elementwise": 2.0}, {"elementwise": 1.0})
    assert only.seconds("dot16", 4.0, 0.0) == only.seconds("sort", 4.0, 0.0) == 2.0


def test_devices_of_a_process_slow_each_other_down() -> None:
    assert [
        Rates({"elementwise": 1.0}, {"elementwise": 1.0}, at_once=2).slowdown(n)
        for n in (1, 2, 4)
    ] == [1, 1, 2]
