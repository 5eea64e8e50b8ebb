"""Rates: what a kind of device, and a link between two devices, does in a second."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fxflow.devices import Device
from fxflow.devices.process import cores
from fxflow.devices.remote import RemoteDevice
from fxflow.errors import ArgumentError

#: How far an estimate may be off if no other figure is given: a placement is changed
#: only for a gain above it.
ERROR = 0.2


@dataclass(frozen=True, eq=False)
class Rates:
    """What a kind of device does in a second.

    Attributes:
      flops: a second by family; a family that is missing counts as elementwise. "dot16"
        and "dot64" are products of 16-bit and 64-bit numbers.
      bandwidth: bytes of its memory a second; by family where a family differs.
      start: seconds to start a program.
      operation: seconds that an operation takes at least, unless it is fused.
      round: seconds of a round of a loop besides its operations.
      at_once: how many devices' worth of work the process does at once. The CPU devices
        of a process share its cores; other devices do not slow each other down.
      memory: bytes, or None if the runtime tells.
      error: how far an estimate may be off, as a fraction.
    """

    flops: Mapping[str, float]
    bandwidth: Mapping[str, float]
    start: float = 1e-5
    operation: float = 1e-6
    round: float = 1e-6
    at_once: float = math.inf
    memory: int | None = None
    error: float = ERROR

    def __post_init__(self) -> None:
        for name, rates in (("flops", self.flops), ("bandwidth", self.bandwidth)):
            if "elementwise" not in rates or not all(r > 0 for r in rates.values()):
                raise ArgumentError(
                    f"Rates: {name} maps families to positive numbers, 'elementwise' "
                    f"at the least, got {dict(rates)!r}"
                )

    def seconds(self, family: str, flops: float, nbytes: float) -> float:
        """Returns the seconds of some work, without the least that an operation takes.

        Args:
          family: of the operation, see `family_of`.
          flops: estimated from types.
          nbytes: read and written.
        """
        rate = self.flops.get(family)
        if rate is None and family.startswith("dot"):
            rate = self.flops.get("dot")
        rate = rate or self.flops["elementwise"]
        bandwidth = self.bandwidth.get(family) or self.bandwidth["elementwise"]
        return max(flops / rate, nbytes / bandwidth)

    def slowdown(self, busy: int) -> float:
        """Returns how many times longer work takes while `busy` devices work.

        Args:
          busy: number of devices of this kind in one process that work at a time.
        """
        return max(1.0, busy / self.at_once)


@dataclass(frozen=True)
class Link:
    """What sending from a device to another takes.

    Attributes:
      latency: seconds of a value of a few bytes.
      bandwidth: bytes a second.
    """

    latency: float
    bandwidth: float

    def seconds(self, nbytes: float) -> float:
        """Returns the seconds in which a value arrives.

        Args:
          nbytes: of the value.
        """
        return self.latency + nbytes / self.bandwidth


# -- what is known without measuring ---------------------------------------------------


def _accelerator(half: float, single: float, bandwidth: float, memory: float) -> Rates:
    """Returns the rates of an accelerator.

    Args:
      half: 10¹² flops a second of 16-bit products.
      single: of 32-bit products.
      bandwidth: 10⁹ bytes a second.
      memory: 10⁹ bytes.
    """
    vector = bandwidth * 1e9 / 2
    flops = {
        "dot": single * 1e12 * 0.6,
        "dot16": half * 1e12 * 0.6,
        "dot64": single * 1e12 * 0.1,
        "conv": single * 1e12 * 0.4,
        "elementwise": vector,
        "transcendental": vector / 2,
        "sort": vector / 20,
        "linalg": single * 1e12 * 0.02,
        "fft": vector,
        "random": vector,
    }
    memory_rates = {"elementwise": bandwidth * 0.8e9, "scatter": bandwidth * 0.2e9}
    return Rates(flops, memory_rates, 1e-5, 4e-6, 1e-5, memory=int(memory * 1e9))


#: By a part of `Device.device_kind`; figures of the makers' data sheets (products of
#: 32 bits as TF32 where there is one).
_TABLE = {
    "b200": _accelerator(2250, 1100, 7700, 180),
    "h200": _accelerator(989, 495, 4800, 141),
    "h100": _accelerator(989, 495, 3350, 80),
    "a100": _accelerator(312, 156, 2000, 80),
    "v100": _accelerator(125, 16, 900, 32),
    "l40": _accelerator(181, 90, 864, 48),
    "l4": _accelerator(121, 60, 300, 24),
    "t4": _accelerator(65, 8, 320, 16),
    "tpu v6": _accelerator(918, 459, 1640, 32),
    "tpu v5p": _accelerator(459, 230, 2765, 95),
    "tpu v5": _accelerator(197, 98, 819, 16),
    "tpu v4": _accelerator(275, 137, 1200, 32),
}
_OTHER = _accelerator(100, 50, 1000, 16)

# Fractions of the time of one core of a server of about 2023, AVX2.
_CORE = {
    "dot": 4e10,
    "dot16": 1e10,
    "dot64": 2e10,
    "conv": 2e10,
    "elementwise": 4e9,
    "transcendental": 4e8,
    "reduce": 2e9,
    "sort": 1e8,
    "fft": 2e9,
    "linalg": 3e9,
    "random": 2e8,
}


def _cpu() -> Rates:
    flops = {name: rate * cores() for name, rate in _CORE.items()}
    # These are not divided over cores.
    flops |= {name: _CORE[name] for name in ("sort", "fft", "linalg", "random")}
    bandwidth = {"elementwise": 1e10, "gather": 3e9, "scatter": 5e8}
    return Rates(flops, bandwidth, 1e-5, 1e-6, 1e-6, at_once=1.0)


#: Between devices of one process, of one machine, and of two machines.
LINKS = {
    "cpu cpu": Link(2e-5, 5e9),
    "cpu other": Link(2e-5, 2e10),
    "other other": Link(1e-5, 1e11),
    "process": Link(6e-5, 2e9),
}


def kind_of(device: Device) -> str:
    """Returns the kind of a device: those of one kind have one set of rates."""
    kind = getattr(device, "device_kind", device.platform)  # a task's has none
    return f"{device.platform} {kind}".lower()


def process_of(device: Any) -> Any:
    """Returns what devices of one process have in common.

    Args:
      device: of any process, or of a task.
    """
    return device.process if isinstance(device, RemoteDevice) else device.process_index


def family_link(source: Device, target: Device) -> str:
    """Returns the name in `LINKS` of the link between two devices.

    Args:
      source: of any process, or of a task.
      target: likewise.
    """
    if process_of(source) != process_of(target):
        return "process"
    cpus = (source.platform == "cpu") + (target.platform == "cpu")
    return ("other other", "cpu other", "cpu cpu")[cpus]


def default_rates(device: Device) -> Rates:
    """Returns the rates of a kind of device by the table, whether one is there or not.

    Args:
      device: of any process, or of a topology.
    """
    kind = kind_of(device)
    if device.platform == "cpu":
        return _cpu()
    return next((rates for name, rates in _TABLE.items() if name in kind), _OTHER)
