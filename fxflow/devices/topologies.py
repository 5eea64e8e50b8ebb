"""Compile-only devices: for compiling ahead of time for a GPU or TPU.

This needs only the plug-in's wheel. A program for these devices can be inspected (its
HLO, costs, memory) and serialized, but not run.
"""

from __future__ import annotations

import os
from typing import Any

from fxflow.devices import plugins
from fxflow.devices._jaxlib import Device, RuntimeFailure, xla_client
from fxflow.errors import BackendError


def gpu_devices(target_config: str, shape: str = "1x1x1") -> list[Device]:
    """Returns compile-only GPUs.

    Args:
      target_config: the GPU's ``GpuTargetConfigProto`` as text.
      shape: ``processes x hosts x devices`` of the topology, such as ``"1x1x4"``.

    Raises:
      BackendError: the CUDA plug-in is not installed, or rejects the description.
    """
    api = plugins.load("cuda")
    try:
        topology: Any = xla_client.make_c_api_device_topology(
            api, "topology", target_config=target_config, topology=shape
        )
    except RuntimeFailure as error:
        raise BackendError(f"GPU topology {shape!r}: {error}") from None
    return list(topology._make_compile_only_devices())


def tpu_devices(name: str = "v5e:2x2") -> list[Device]:
    """Returns compile-only TPUs.

    Args:
      name: generation and shape, such as ``"v5e:2x2"``.

    Raises:
      BackendError: libtpu is not installed, or does not know the topology.
    """
    # Otherwise libtpu asks the cloud's metadata server about this machine's TPU.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    plugins.load("tpu")
    try:
        topology: Any = xla_client.make_tfrt_tpu_c_api_device_topology(name)
    except RuntimeFailure as error:
        raise BackendError(f"TPU topology {name!r}: {error}") from None
    return list(topology._make_compile_only_devices())


def cpu_devices(count: int) -> list[Device]:
    """Returns this machine's CPU as `count` devices of a new client.

    A process whose own client has one device can so compile and inspect programs for
    several.

    Args:
      count: number of devices.

    Raises:
      BackendError: `count` is not positive.
    """
    if count < 1:
        raise BackendError(f"CPU topology: expected at least 1 device, got {count}")
    client: Any = xla_client.make_cpu_client(num_devices=count)
    return list(client.devices())
