"""Compiling ahead of time; needs the plug-ins' wheels."""

from pathlib import Path

import pytest

from fxflow.devices import plugins, topologies
from fxflow.devices.compile import compile as compile_text
from fxflow.errors import BackendError, CompileError

from . import programs
from .wheels import require_wheel


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_without_the_wheel(platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find", dict)
    monkeypatch.setattr(plugins, "_loaded", {})
    with pytest.raises(BackendError, match=f"no plug-in for '{platform}'"):
        if platform == "cuda":
            topologies.gpu_devices("")
        else:
            topologies.tpu_devices()


def test_gpu() -> None:
    require_wheel("cuda")
    config = (Path(__file__).parent / "data" / "h200.txtpb").read_text()
    devices = topologies.gpu_devices(config, "1x1x4")
    assert len(devices) == 4
    program = compile_text(programs.ADD, devices[:1], name="add")
    assert program.memory_analysis()["argument_size_in_bytes"] == 64
    with pytest.raises(RuntimeError, match="add was compiled ahead of time for NVIDIA"):
        program.execute([], [])
    with pytest.raises(CompileError, match="nonsense"):
        compile_text(programs.ADD.replace(".add", ".nonsense"), devices[:1])
    with pytest.raises(BackendError, match="GPU topology"):
        topologies.gpu_devices("not a proto")


def test_tpu() -> None:
    require_wheel("tpu")
    devices = topologies.tpu_devices("v5e:2x2")
    assert len(devices) == 4
    assert compile_text(programs.ADD, devices[:1]).loaded is None
    with pytest.raises(BackendError, match="TPU topology"):
        topologies.tpu_devices("v99:1x1")


def test_cpu() -> None:
    devices = topologies.cpu_devices(3)
    assert [d.id for d in devices] == [0, 1, 2]
    assert compile_text(programs.ADD, devices[2:], name="add").loaded is not None
    with pytest.raises(BackendError, match="at least 1 device, got 0"):
        topologies.cpu_devices(0)
