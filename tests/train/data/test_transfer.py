"""Batches on devices."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import P
from fxflow import numpy as fnp
from fxflow.errors import DataError
from fxflow.train import data

ROWS = {"x": np.arange(24, dtype=np.float32).reshape(12, 2), "y": np.arange(12)}


def test_to_the_default_device() -> None:
    batch = next(iter(data.arrays(ROWS).batch(4).to_devices()))
    assert isinstance(batch["x"], fxflow.Array)
    assert (batch["x"].shape, batch["y"].dtype) == ((4, 2), np.int32)


def test_to_one_device_and_to_a_mesh() -> None:
    device = fxflow.devices()[3]
    batch = next(iter(data.arrays(ROWS).batch(4).to_devices(device)))
    assert batch["x"].devices() == {device}
    mesh = fxflow.make_mesh((4,), ("data",))
    sharding = fxflow.NamedSharding(mesh, P("data"))
    batch = next(iter(data.arrays(ROWS).batch(4).to_devices(sharding)))
    assert batch["x"].sharding == sharding and batch["y"].sharding == sharding
    batch = next(
        iter(data.arrays(ROWS).batch(4).to_devices({"x": sharding, "y": device}))
    )
    assert (batch["x"].sharding, batch["y"].devices()) == (sharding, {device})


def test_parts_for_pmap() -> None:
    devices = fxflow.local_devices()[:2]
    batches = list(data.arrays(ROWS).batch(6).to_devices(devices))
    total = fxflow.pmap(lambda part: fnp.sum(part["x"]), devices=devices)
    assert [total(batch).tolist() for batch in batches] == [[15, 51], [87, 123]]
    with pytest.raises(DataError, match="cannot be cut into 2 equal parts"):
        list(data.arrays(ROWS).batch(5).to_devices(devices))


def test_elements_are_put_ahead() -> None:
    drawn = []
    source = data.indexed(range(9)).map(lambda n: drawn.append(n) or np.ones(n))
    batches = source.to_devices(size=3).iterate()
    next(batches)
    assert drawn == [0, 1, 2]
    next(batches)
    assert drawn == [0, 1, 2, 3]
    assert batches.state["index"] == 2
