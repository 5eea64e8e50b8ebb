"""Clients: made when first needed, chosen by the configuration."""

import os
import threading
from collections.abc import Callable, Iterator

import pytest

from fxflow._config import config
from fxflow.devices import clients, plugins
from fxflow.devices._jaxlib import Device
from fxflow.errors import BackendError

Run = Callable[..., str]


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets a test choose platforms, without changing the client in use."""
    monkeypatch.setattr(clients, "_order", None)
    monkeypatch.setattr(clients, "_failures", {})
    monkeypatch.setattr(clients, "_clients", {"cpu": clients.client("cpu")})
    yield


def test_importing_starts_nothing(run_python: Run) -> None:
    code = """
import sys
import fxflow.devices
from fxflow.devices import (clients, buffers, cache, callbacks, compile, dlpack, lapack)
from fxflow.devices import topologies, trees
assert not clients._clients
for name in ("jax", "scipy", "jaxlib.mlir", "jaxlib.lapack", "importlib.metadata"):
    assert name not in sys.modules, name
assert len(fxflow.devices.devices()) == 1
print("fine")
"""
    assert run_python(code) == "fine\n"


def test_devices_and_their_counts_agree() -> None:
    (device, *_) = clients.devices()
    assert isinstance(device, Device)
    assert clients.devices("cpu") == clients.local_devices(backend="cpu")
    assert clients.devices() is not clients.devices()
    assert clients.device_count() == len(clients.devices())
    assert clients.local_device_count("cpu") == len(clients.local_devices())
    assert (clients.process_index(), clients.process_count()) == (0, 1)
    assert clients.local_devices(0) == clients.local_devices(host_id=0)
    assert clients.default_backend() == "cpu"
    assert clients.cpu_device() is clients.devices("cpu")[0]


def test_changing_a_default_platform_in_use_is_refused() -> None:
    clients.platforms()
    with pytest.raises(BackendError, match="cpu is in use as the default platform"):
        config.update("platforms", "tpu")
    with config.override(platforms="cpu"):
        assert clients.default_backend() == "cpu"


def test_a_process_index_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="process_index 3 does not exist: there are 1"):
        clients.local_devices(3)


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, 1),
        ({"FXFLOW_NUM_CPU_DEVICES": "3"}, 3),
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}, 2),
        (
            {
                "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
                "FXFLOW_NUM_CPU_DEVICES": "4",
            },
            4,
        ),
    ],
)
def test_number_of_cpu_devices(
    run_python: Run, environment: dict[str, str], count: int
) -> None:
    code = "import fxflow.devices as d; print(d.device_count(), d.default_backend())"
    assert run_python(code, **environment) == f"{count} cpu\n"


def test_threads_share_one_client() -> None:
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(clients.client()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(c) for c in found}) == 1


# -- the platform ----------------------------------------------------------------------


@pytest.mark.usefixtures("forgetful")
def test_a_requested_platform_that_fails_is_an_error() -> None:
    with (
        config.override(platforms="nonsense,cpu"),
        pytest.raises(BackendError, match="'nonsense' was asked for by config") as e,
    ):
        clients.devices()
    assert "PJRT_NAMES_AND_LIBRARY_PATHS" in str(e.value)
    assert "Platforms installed here: cpu" in str(e.value)
    with pytest.raises(BackendError, match="asked for by the caller"):
        clients.devices("nonsense")
    with config.override(platforms="cpu"):
        assert clients.platforms() == ("cpu",)


@pytest.mark.usefixtures("forgetful")
def test_an_accelerator_that_fails_is_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(platform: str) -> object:
        raise BackendError(f"{platform} is tired")

    monkeypatch.setattr(plugins, "present", lambda: ("cuda", "tpu"))
    monkeypatch.setattr(plugins, "make_client", fail)
    assert clients.platforms() == ("cpu",)
    assert clients.failures() == {"cuda": "cuda is tired", "tpu": "tpu is tired"}
    with pytest.raises(BackendError, match="cuda is tired"):
        clients.client("cuda")


@pytest.mark.usefixtures("forgetful")
def test_an_accelerator_that_works_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Fake:
        platform = "gpu"

        def devices(self) -> list[str]:
            return ["gpu:0"]

        local_devices = devices

    monkeypatch.setattr(plugins, "present", lambda: ("cuda",))
    monkeypatch.setattr(plugins, "is_present", lambda name: name == "cuda")
    monkeypatch.setattr(plugins, "make_client", lambda platform: Fake())
    assert clients.platforms() == ("cuda", "cpu")
    assert clients.default_backend() == "gpu"
    assert clients.devices() == ["gpu:0"]
    assert clients.devices("gpu") == clients.devices("cuda") == ["gpu:0"]
    assert clients.devices("cpu") != ["gpu:0"]


@pytest.mark.usefixtures("forgetful")
def test_a_client_without_devices_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Empty:
        def devices(self) -> list[str]:
            return []

    monkeypatch.setattr(plugins, "present", lambda: ("cuda",))
    monkeypatch.setattr(plugins, "make_client", lambda platform: Empty())
    assert clients.platforms() == ("cpu",)
    assert "no devices" in clients.failures()["cuda"]


# -- the default device ----------------------------------------------------------------


def test_default_device_nests_and_is_per_thread(run_python: Run) -> None:
    code = """
import threading
from fxflow.devices import clients, default_device, set_default_device
one, two, three = clients.devices()
assert default_device() is one
with default_device(two) as chosen:
    assert chosen is two and default_device() is two
    with default_device("cpu:2"):
        assert default_device() is three
    with default_device(None):
        assert default_device() is one
    seen = []
    thread = threading.Thread(target=lambda: seen.append(default_device()))
    thread.start(); thread.join()
    assert seen == [one]
    try:
        with default_device(three):
            raise KeyError
    except KeyError:
        assert default_device() is two
assert default_device() is one
set_default_device(three)
assert default_device() is three
thread = threading.Thread(target=lambda: seen.append(default_device()))
thread.start(); thread.join()
assert seen[1] is three
set_default_device(None)
assert default_device() is one
print("fine")
"""
    assert run_python(code, FXFLOW_NUM_CPU_DEVICES="3") == "fine\n"


def test_invalid_default_devices_are_refused() -> None:
    with pytest.raises(ValueError, match="'cpu:99'; available devices: cpu:0, cpu:1"):
        clients.default_device("cpu:99")
    with pytest.raises(ValueError, match="'cpu:x' is not a device name"):
        clients.default_device("cpu:x")
    with pytest.raises(TypeError, match=r"must be a Device.*got 3"):
        clients.default_device(3)  # type: ignore[arg-type]
    with pytest.raises(BackendError, match="nonsense"):
        clients.set_default_device("nonsense")


# -- starting over ---------------------------------------------------------------------


def test_clear_backends_makes_new_clients(run_python: Run) -> None:
    code = """
import numpy as np
from fxflow._config import config
from fxflow.devices import buffers, clear_backends, clients
called = []
clients.on_clear(lambda: called.append(1))
place = buffers.default_placement()
kind = buffers.BufferType((3,), np.dtype("f4"))
old = buffers.put_copy(kind, np.arange(3, dtype="f4"), place)
try:
    clients.configure_cpu(num_nodes=1)
except RuntimeError as error:
    assert "clear_backends() before" in str(error)
assert not clients.run_in_callers()  # too late
clear_backends()
config.num_cpu_devices = 2
clients.configure_cpu(node_id=0, num_nodes=1)
assert clients.run_in_callers()
options = []
make = clients.xla_client.make_cpu_client
clients.xla_client.make_cpu_client = lambda **kw: options.append(kw) or make(**kw)
assert clients.device_count() == 2
assert clients.run_in_callers()
assert options[0]["asynchronous"] is False
assert buffers.default_placement() is not place
assert buffers.to_host(old).tolist() == [0, 1, 2]
assert called == [1]
print("fine")
"""
    assert run_python(code) == "fine\n"


def test_collectives_get_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/x")
    with config.override(collective_timeout=7.4):
        clients.bound_collectives()
        clients.bound_collectives()
    wanted = "--xla_dump_to=/x --xla_cpu_collective_timeout_seconds=7"
    assert os.environ["XLA_FLAGS"] == wanted


def test_plugins_get_the_configured_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, object]] = []

    def make(platform: str, **arguments: object) -> object:
        given.append(arguments)
        raise BackendError("not here")

    monkeypatch.setattr(plugins, "make_client", make)
    monkeypatch.setattr(clients, "_failures", {})
    clients.configure_plugins(node_id=1, num_nodes=2)
    try:
        with pytest.raises(BackendError, match="not here"):
            clients.client("cuda")
    finally:
        clients.configure_plugins()
    assert given == [{"node_id": 1, "num_nodes": 2}]


def test_started_lists_clients_without_starting_any(run_python: Run) -> None:
    code = """
from fxflow.devices import clients
assert clients.started() == ()
clients.client("cpu")
print(clients.started())
"""
    assert run_python(code) == "('cpu',)\n"


def test_changing_the_number_of_cpu_devices_in_use_is_refused() -> None:
    before, count = config.num_cpu_devices, len(clients.devices("cpu"))
    with pytest.raises(RuntimeError, match=f"has started with {count} devices and"):
        config.num_cpu_devices = count + 1
    assert config.num_cpu_devices == before
    config.num_cpu_devices = count
    config.num_cpu_devices = before
