"""Plug-ins: found without an import, rejected with a reason."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fxflow.devices import plugins
from fxflow.devices._jaxlib import jaxlib_version
from fxflow.devices.plugins import Plugin
from fxflow.errors import BackendError


@pytest.fixture
def wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str, str, str], Path]]:
    """Installs a fake wheel of a plug-in."""
    # A namespace package caches the folders of its last search.
    monkeypatch.delitem(sys.modules, "jax_plugins", raising=False)
    monkeypatch.setattr(plugins, "_loaded", {})
    anywhere = plugins.folder_of

    def only_here(package: str) -> Path | None:
        """Hides installed plug-ins."""
        folder = anywhere(package)
        return folder if folder and folder.is_relative_to(tmp_path) else None

    monkeypatch.setattr(plugins, "folder_of", only_here)
    monkeypatch.delenv("PJRT_NAMES_AND_LIBRARY_PATHS", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(package: str, library: str, version: str) -> Path:
        folder = tmp_path.joinpath(*package.split("."))
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise AssertionError('imported')")
        (folder / library).write_text("no library")
        name = {
            "jax_plugins.xla_cuda13": "jax_cuda13_pjrt",
            "jax_plugins.xla_cuda12": "jax_cuda12_pjrt",
        }.get(package, package)
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        return folder / library

    yield install
    sys.modules.pop("jax_plugins", None)


def test_found_without_importing(wheels: Callable[[str, str, str], Path]) -> None:
    library = wheels("jax_plugins.xla_cuda13", "xla_cuda_plugin.so", jaxlib_version)
    plugin = plugins.find()["cuda"]
    assert plugin.library == library
    assert (plugin.source, plugin.version) == ("jax-cuda13-pjrt", jaxlib_version)
    assert plugins.version_problem(plugin) == ""
    assert plugins.is_present("cuda")
    assert "jax_plugins.xla_cuda13" not in sys.modules


def test_a_file_that_is_not_a_library_is_refused(
    wheels: Callable[[str, str, str], Path],
) -> None:
    wheels("jax_plugins.xla_cuda13", "xla_cuda_plugin.so", jaxlib_version)
    with pytest.raises(BackendError, match=r"xla_cuda_plugin.so cannot be loaded"):
        plugins.load("cuda")


def test_a_wheel_of_another_version_is_refused(
    wheels: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels("jax_plugins.xla_cuda13", "xla_cuda_plugin.so", "0.4.1")
    message = f"jax-cuda13-pjrt 0.4.1 does not fit jaxlib {jaxlib_version}: install"
    for call in (plugins.load, plugins.make_client):
        with pytest.raises(BackendError, match=message):
            call("cuda")


def test_the_wheel_that_fits_jaxlib_is_preferred(
    wheels: Callable[[str, str, str], Path],
) -> None:
    wheels("jax_plugins.xla_cuda13", "xla_cuda_plugin.so", "0.4.1")
    wheels("jax_plugins.xla_cuda12", "xla_cuda_plugin.so", jaxlib_version)
    assert plugins.find()["cuda"].source == "jax-cuda12-pjrt"


def test_platforms_are_in_order_of_preference(
    wheels: Callable[[str, str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels("libtpu", "libtpu.so", "0.0.1")
    wheels("jax_plugins.xla_cuda13", "xla_cuda_plugin.so", jaxlib_version)
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/a/b.so, Other:/c")
    assert plugins.present() == ("cuda", "mine", "other", "tpu")
    assert plugins.find()["mine"].library == Path("/a/b.so")


def test_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/no/such.so")
    with pytest.raises(BackendError, match=r"there is no file /no/such\.so"):
        plugins.make_client("mine")
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine")
    with pytest.raises(BackendError, match=r"must read name:path.*got 'mine'"):
        plugins.find()


def test_a_missing_plugin_is_an_error_with_instructions() -> None:
    with pytest.raises(BackendError, match="no plug-in for 'nothing' is installed"):
        plugins.load("nothing")
    with pytest.raises(BackendError, match="PJRT_NAMES_AND_LIBRARY_PATHS=name:path"):
        plugins.make_client("nothing")


def test_missing_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.exists", lambda path: False)
    monkeypatch.setattr("glob.glob", lambda pattern: [])
    assert "no NVIDIA GPU" in plugins.missing_device("cuda")
    assert "no AMD GPU" in plugins.missing_device("rocm")
    assert "no TPU" in plugins.missing_device("tpu")
    assert plugins.missing_device("mine") == ""
    monkeypatch.setattr("glob.glob", lambda pattern: ["/dev/nvidia0"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert plugins.missing_device("cuda") == ""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES='' hides all GPUs" in plugins.missing_device("cuda")


def test_only_cuda_wheels_must_have_jaxlibs_version() -> None:
    tpu = Plugin("tpu", Path("x"), "libtpu", "9.9.9")
    assert plugins.version_problem(tpu) == ""
    nightly = Plugin("cuda", Path("x"), "jax-cuda13-pjrt", jaxlib_version + ".dev1")
    assert plugins.version_problem(nightly) == ""
