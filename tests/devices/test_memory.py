import gc
from collections.abc import Callable

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.devices import OutOfMemoryError, buffers
from fxflow.devices.callbacks import raise_original
from fxflow.devices.memory import bytes_text, memory_stats


def test_memory_stats_count_live_buffers(put: Callable[..., buffers.Buffer]) -> None:
    device = buffers.default_placement().device
    gc.collect()
    before = memory_stats(device)
    one = put(np.zeros((10, 10)), "f4")
    two = put(np.zeros(3), "f8")
    other_name = one.clone()
    after = memory_stats(device)
    assert after["bytes_in_use"] - before["bytes_in_use"] == 424
    assert after["num_allocs"] - before["num_allocs"] == 2
    assert after["bytes_limit"] > 1 << 20
    buffers.delete(two)
    del one, other_name
    assert memory_stats(device)["bytes_in_use"] == before["bytes_in_use"]


def test_the_runtimes_statistics_are_returned() -> None:
    class Reporting:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_in_use": 5, "num_allocs": 1, "bytes_limit": 10}

    reported = memory_stats(Reporting())  # type: ignore[arg-type]
    assert reported == {"bytes_in_use": 5, "num_allocs": 1, "bytes_limit": 10}


def test_running_out_of_memory_says_what_to_do() -> None:
    failure = RuntimeError(
        "RESOURCE_EXHAUSTED: Out of memory allocating 4398046 bytes."
    )
    with pytest.raises(OutOfMemoryError, match=r"4,398,046 bytes.*donate"):
        raise_original(failure)
    raise_original(RuntimeError("INTERNAL: something else"))


def test_arrays_over_a_mesh_of_one_device_count() -> None:
    device = fxflow.devices()[-1]
    mesh = fxflow.make_mesh((1,), ("x",), devices=[device])
    gc.collect()
    before = memory_stats(device)["bytes_in_use"]
    x = fxflow.device_put(fnp.zeros(4096), fxflow.NamedSharding(mesh, fxflow.P("x")))
    y = fxflow.jit(lambda x: x + 1)(x).block_until_ready()
    assert memory_stats(device)["bytes_in_use"] >= before + y.nbytes


def test_sizes_as_text() -> None:
    sizes = 0, 4, 999, 999.9, 1500, 999_600, 2_500_000, 3 * 10**9, 10**13
    assert [bytes_text(n) for n in sizes] == [
        "0 B", "4 B", "999 B", "1 kB", "1.5 kB", "1 MB", "2.5 MB", "3 GB", "10 TB",
    ]  # fmt: skip
