"""Calibration: the rates of this machine's devices, measured by small programs.

Each family of operations has a program that takes about a millisecond on a core. The
minimum of several runs gives the family's rate; what programs of next to no work take
gives the seconds of a start, an operation and a round of a loop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.dataflow.costs import Costs, keep
from fxflow.dataflow.rates import ERROR, Link, Rates, default_rates, kind_of
from fxflow.devices import Device, local_devices
from fxflow.devices.clients import resolve
from fxflow.lax import linalg
from fxflow.lax.pytree_transfer import block_until_ready, device_put
from fxflow.random import bits, key
from fxflow.transforms.jit import jit

#: Runs of a program, of which the fastest counts.
_RUNS = 7
_LARGE = 1 << 23
#: Bytes a second that are as good as none to send.
_MOST_BANDWIDTH = 1e12


def calibrate(devices: Sequence[Any] | None = None) -> Costs:
    """Measures the throughput of this machine's devices; takes a few seconds.

    What is measured is kept in the directory of the compile cache, for this machine and
    version of jaxlib: `dataflow.jit(place="cost")` finds it there in later processes.
    Nothing else should run on the machine meanwhile.

    Args:
      devices: one of each kind to measure, or their names. None: all kinds of this
        process.

    Returns:
      The model, with these rates.

    Raises:
      BackendError: there is no such device.
    """
    found = [resolve(d) for d in devices] if devices else list(local_devices())
    kinds = {kind_of(device): device for device in reversed(found)}
    rates: dict[str, Rates] = {}
    links: dict[str, Link] = {}
    for kind, device in kinds.items():
        beside = local_devices(backend=device.platform)
        rates[kind] = _rates(device, beside)
        own = _links(device, beside)
        keep(device, rates[kind], own)
        links |= own
    return Costs(rates, links)


def _timed(run: Callable[[], Any]) -> float:
    """Returns the seconds of the fastest run."""
    block_until_ready(run())
    best = float("inf")
    for _ in range(_RUNS):
        begin = time.perf_counter()
        block_until_ready(run())
        best = min(best, time.perf_counter() - begin)
    return best


def _chain(x: Any, y: Any) -> Any:
    for _ in range(16):
        x = x * y + y
    return x


def _waves(x: Any) -> Any:
    for _ in range(4):
        x = fnp.exp(fnp.tanh(x))
    return x


#: By family: the program, the shapes and dtype of its arguments, and its flops.
_PROGRAMS: dict[str, tuple[Callable[..., Any], list[tuple[Any, str]], float]] = {
    "dot": (
        lambda x, y: x @ y,
        [((384, 384), "float32"), ((384, 384), "float32")],
        2.0 * 384**3,
    ),
    "dot16": (
        lambda x, y: x @ y,
        [((256, 256), "bfloat16"), ((256, 256), "bfloat16")],
        2.0 * 256**3,
    ),
    "conv": (
        lambda x, y: lax.conv(x, y, (1, 1), "SAME"),
        [((4, 16, 32, 32), "float32"), ((32, 16, 3, 3), "float32")],
        2.0 * 4 * 32 * 32 * 32 * 16 * 9,
    ),
    "elementwise": (
        _chain,
        [((1 << 16,), "float32"), ((1 << 16,), "float32")],
        32.0 * (1 << 16),
    ),
    "transcendental": (_waves, [((1 << 15,), "float32")], 8.0 * (1 << 15)),
    "reduce": (
        lambda x: fnp.sum(x, axis=1),
        [((1024, 512), "float32")],
        1024.0 * 512,
    ),
    "sort": (lambda x: fnp.sort(x), [((1 << 14,), "float32")], 14.0 * (1 << 14)),
    "fft": (
        lambda x: fnp.fft.rfft(x).real,
        [((64, 1 << 10), "float32")],
        5.0 * 64 * 10 * (1 << 10),
    ),
    "linalg": (
        lambda x: linalg.cholesky(x @ x.T + 500 * fnp.eye(192)),
        [((192, 192), "float32")],
        192.0**3 / 3,
    ),
    "random": (
        lambda x: bits(key(0), (1 << 15,)) + x.astype("uint32"),
        [((), "float32")],
        float(1 << 15),
    ),
}
#: By family: the program, its arguments, and the bytes that it reads and writes.
_MOVES: dict[str, tuple[Callable[..., Any], list[tuple[Any, str]], float]] = {
    "elementwise": (
        lambda x, y: x + y,
        [((1 << 21,), "float32"), ((1 << 21,), "float32")],
        3.0 * 4 * (1 << 21),
    ),
    "gather": (
        lambda x, y: x[y],
        [((1 << 14, 64), "float32"), ((1 << 13,), "int32")],
        2.0 * 4 * 64 * (1 << 13),
    ),
    "scatter": (
        lambda x, y: fnp.zeros((1 << 13, 64)).at[y].add(x),
        [((1 << 12, 64), "float32"), ((1 << 12,), "int32")],
        3.0 * 4 * 64 * (1 << 12),
    ),
}


def _arguments(shapes: Sequence[tuple[Any, str]], device: Device) -> list[Array]:
    rng = np.random.default_rng(0)
    made = []
    for shape, dtype in shapes:
        if dtype == "int32":
            values = rng.integers(0, 1 << 12, shape).astype(dtype)
        else:
            values = rng.normal(size=shape)
        made.append(device_put(fnp.asarray(values, dtype), device))
    return made


def _program(
    program: Callable[..., Any], shapes: Sequence[tuple[Any, str]], device: Device
) -> Callable[[], Any]:
    function, arguments = jit(program), _arguments(shapes, device)
    return lambda: function(*arguments)


def _rates(device: Device, beside: Sequence[Device]) -> Rates:
    known = default_rates(device)
    tiny = [((8, 8), "float32"), ((8, 8), "float32")]
    start = _timed(_program(lambda x, y: x + y, tiny, device))

    def products(x: Any, y: Any) -> Any:
        for _ in range(64):
            x = x @ y
        return x

    def loop(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 256, lambda i, c: c * y[0] + c, x[0])

    operation = max((_timed(_program(products, tiny, device)) - start) / 64, 1e-8)
    round_ = max((_timed(_program(loop, tiny, device)) - start) / 256, 1e-8)

    flops = dict(known.flops)
    for family, (function, shapes, work) in _PROGRAMS.items():
        seconds = _timed(_program(function, shapes, device))
        if family == "linalg":  # without the product that makes the matrix
            seconds -= 2 * 192**3 / flops["dot"]
        flops[family] = work / max(seconds - start, 0.1 * seconds, 1e-9)
    bandwidth = dict(known.bandwidth)
    for family, (function, shapes, nbytes) in _MOVES.items():
        seconds = _timed(_program(function, shapes, device))
        bandwidth[family] = nbytes / max(seconds - start, 0.1 * seconds)
    flops["dot64"] = flops["dot"] / 2
    return replace(
        known,
        flops=flops,
        bandwidth=bandwidth,
        start=start,
        operation=operation,
        round=round_,
        at_once=_at_once(device, beside),
        error=ERROR / 2,
    )


def _at_once(device: Device, beside: Sequence[Device]) -> float:
    """Returns how many devices' worth of work the process does at once."""
    if device.platform != "cpu":
        return float("inf")
    if len(beside) < 2:
        return 1.0
    function, shapes, _ = _PROGRAMS["dot"]
    runs = [_program(function, shapes, d) for d in beside]
    alone = min(_together(runs[:1]) for _ in range(3))
    together = min(_together(runs) for _ in range(3))
    return min(float(len(beside)), max(1.0, len(beside) * alone / together))


def _together(runs: Sequence[Callable[[], Any]]) -> float:
    """Returns the seconds in which threads run each program several times."""

    def repeat(run: Callable[[], Any]) -> None:
        for _ in range(_RUNS):
            block_until_ready(run())

    threads = [threading.Thread(target=repeat, args=(run,)) for run in runs]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def _links(device: Device, beside: Sequence[Device]) -> dict[str, Link]:
    """Returns what sending to other devices of the process takes."""
    others = [d for d in beside if d is not device]
    pairs = {}
    if others:
        own = "cpu cpu" if device.platform == "cpu" else "other other"
        pairs[own] = device, others[0]
    if device.platform != "cpu":
        pairs["cpu other"] = local_devices(backend="cpu")[0], device
    found = {}
    for name, (source, target) in pairs.items():
        times = []
        for nbytes in (4, _LARGE):
            (x,) = _arguments([((nbytes // 4,), "float32")], source)
            times.append(_timed(partial(device_put, x, target)))
        # Devices that share the host's memory may not copy at all.
        rate = _LARGE / max(times[1] - times[0], _LARGE / _MOST_BANDWIDTH)
        found[name] = Link(times[0], rate)
    return found
