"""`doctor` explains why a device is not used: a test for each reason."""

import sys
from pathlib import Path

import pytest

import fxflow
from fxflow._config import config
from fxflow.devices import clients, doctor, plugins
from fxflow.devices._jaxlib import jaxlib_version
from fxflow.devices.doctor import problem_report
from fxflow.devices.plugins import Plugin
from fxflow.errors import BackendError

CUDA = Plugin(
    "cuda", Path("/x.so"), "jax-cuda13-pjrt", jaxlib_version, "jax_cuda13_plugin"
)


@pytest.fixture(autouse=True)
def pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides plug-ins and devices; tests add what they need."""
    monkeypatch.setattr(clients, "_order", None)
    monkeypatch.setattr(clients, "_failures", {})
    monkeypatch.setattr(clients, "_clients", {"cpu": clients.client("cpu")})
    monkeypatch.setattr(plugins, "find", dict)
    monkeypatch.setattr(plugins, "missing_device", lambda p: f"there is no {p} here")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def line(start: str) -> str:
    report = doctor(show=False)
    (found,) = [x for x in report.splitlines() if x.startswith(start)]
    return found


def test_doctor_prints_its_report(capsys: pytest.CaptureFixture[str]) -> None:
    report = fxflow.devices.doctor()
    assert capsys.readouterr().out == report + "\n"
    for part in (
        f"jaxlib {jaxlib_version}",
        "cpu: 8 device(s) (cpu), the default",
        "CPU devices: 8 (",
        "compile cache: ",
        "XLA_FLAGS: ",
    ):
        assert part in report


def test_no_device_and_no_plugin() -> None:
    assert line("tpu:") == (
        "tpu: not used: there is no tpu here; no plug-in is installed either"
    )


def test_a_device_but_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "missing_device", lambda p: "")
    assert "no plug-in is installed: pip install -e '.[cuda13]'" in line("cuda:")


def test_a_plugin_but_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find", lambda: {"cuda": CUDA})
    said = line("cuda:")
    assert "though jax-cuda13-pjrt is installed: there is no cuda here" in said


def test_a_plugin_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    old = CUDA._replace(version="0.4.1")
    monkeypatch.setattr(plugins, "find", lambda: {"cuda": old})
    assert f"0.4.1 does not fit jaxlib {jaxlib_version}" in line("cuda:")


def test_a_plugin_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(platform: str) -> None:
        raise BackendError("the driver is missing")

    monkeypatch.setattr(plugins, "find", lambda: {"cuda": CUDA})
    monkeypatch.setattr(plugins, "make_client", fail)
    monkeypatch.setattr(plugins, "missing_device", lambda p: "")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    said = line("cuda:")
    assert "the driver is missing" in said
    assert "CUDA_VISIBLE_DEVICES is '7'" in said
    assert "jax-cuda13-plugin is not installed" in said


def test_platforms_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find", lambda: {"cuda": CUDA})
    with config.override(platforms="cpu"):
        assert line("cuda:") == "cuda: not used: config.platforms is 'cpu'"


def test_a_required_platform_that_fails() -> None:
    with config.override(platforms="tpu"):
        assert "NO BACKEND: platform 'tpu' was asked for" in line("NO BACKEND")


def test_an_accelerator_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    class Device:
        device_kind = "H200"

    class Client:
        def devices(self) -> list[Device]:
            return [Device(), Device()]

    monkeypatch.setattr(plugins, "find", lambda: {"cuda": CUDA})
    monkeypatch.setattr(plugins, "make_client", lambda platform: Client())
    report = doctor(show=False)
    assert "cuda: 2 device(s) (H200), the default" in report
    assert "cpu: 8 device(s) (cpu), used on request" in report
    assert f"cuda: in use, from jax-cuda13-pjrt {jaxlib_version}" in report


def test_a_report_has_the_system_and_no_secrets(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FXFLOW_TOKEN", "t0psecret")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=" + str(tmp_path / "dump"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OTHER_SETTING", "irrelevant")
    report = problem_report()
    assert "t0psecret" not in report and "FXFLOW_TOKEN=(hidden)" in report
    assert "XLA_FLAGS=--xla_dump_to=~/dump" in report and str(tmp_path) not in report
    assert "irrelevant" not in report
    assert f"jaxlib {jaxlib_version}" in report.partition("### Packages")[2]
    assert f"Python {sys.version.split()[0]}" in report
    assert report.count("```") == 8
