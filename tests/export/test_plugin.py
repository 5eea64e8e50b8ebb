"""`python -m fxflow.export.plugin`: finds plug-ins without importing them."""

import sys
from pathlib import Path

import pytest

from fxflow.errors import BackendError
from fxflow.export import plugin


@pytest.fixture
def packages(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setenv("PJRT_NAMES_AND_LIBRARY_PATHS", "mine:/opt/mine.so")
    return tmp_path


def test_wheels_and_the_environment(packages, capsys, monkeypatch):
    monkeypatch.setattr(plugin, "_CPU", plugin._CPU[1:])
    folder = packages / "lammps_jax_pjrt_cpu"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    library = folder / "pjrt_c_api_cpu_plugin.so"
    library.touch()
    assert plugin.find_plugin() == library
    assert plugin.find_plugin("mine") == Path("/opt/mine.so")
    assert plugin.main(["mine"]) == 0
    assert capsys.readouterr().out == "/opt/mine.so\n"


def test_none_is_installed(packages, capsys, monkeypatch):
    monkeypatch.setattr(plugin, "_CPU", (("nowhere_at_all", "x.so", "some-wheel"),))
    with pytest.raises(BackendError, match="pip install some-wheel"):
        plugin.find_plugin()
    assert plugin.main(["cpu"]) == 1
    assert "no PJRT plug-in for cpu" in capsys.readouterr().err
