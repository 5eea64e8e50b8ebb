"""Batches are transferred to devices."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import fxflow
from fxflow import P
from fxflow import numpy as fnp
from fxflow.errors import DataError, DataTimeoutError
from fxflow.train import data

ROWS = {"x": np.arange(24, dtype=np.float32).reshape(12, 2), "y": np.arange(12)}


def test_batches_go_to_the_default_device() -> None:
    batch = next(iter(data.arrays(ROWS).batch(4).to_devices()))
    assert isinstance(batch["x"], fxflow.Array)
    assert (batch["x"].shape, batch["y"].dtype) == ((4, 2), np.int32)


def test_batches_go_to_one_device_or_to_a_mesh() -> None:
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


def test_batches_are_split_for_pmap() -> None:
    devices = fxflow.local_devices()[:2]
    batches = list(data.arrays(ROWS).batch(6).to_devices(devices))
    total = fxflow.pmap(lambda part: fnp.sum(part["x"]), devices=devices)
    assert [total(batch).tolist() for batch in batches] == [[15, 51], [87, 123]]
    with pytest.raises(DataError, match=r"cannot split .* into 2 equal parts"):
        list(data.arrays(ROWS).batch(5).to_devices(devices))


def test_elements_are_transferred_ahead() -> None:
    drawn: list[int] = []
    source = data.indexed(range(9)).map(lambda n: drawn.append(n) or np.ones(n))
    batches = source.to_devices(size=3).iterate()
    for given in (1, 2):
        next(batches)
        end = time.monotonic() + 10
        while len(drawn) < given + 2 and time.monotonic() < end:
            time.sleep(0.001)
        time.sleep(0.02)
        assert drawn == list(range(given + 2))
    assert batches.state["index"] == 2
    batches.close()
    alone = source.to_devices(size=1)
    drawn.clear()
    for given, _ in enumerate(alone, 1):
        assert drawn == list(range(given))


def test_the_transferring_thread_uses_the_configuration_of_the_consumer() -> None:
    device = fxflow.devices()[3]
    with fxflow.default_device(device), fxflow.config.override(x64=True):
        batch = next(iter(data.arrays(ROWS).batch(4).to_devices()))
    assert (batch["y"].devices(), batch["y"].dtype) == ({device}, np.int64)


def test_a_stuck_source() -> None:
    release = threading.Event()
    source = data.iterable(lambda: iter(lambda: release.wait(20), None))
    with pytest.raises(DataTimeoutError, match="to_devices: the source yielded no"):
        next(iter(source.to_devices(timeout=0.2)))
    release.set()
