"""The stub of `fxflow.devices` says what the package has."""

from pathlib import Path
from typing import Any

import fxflow
from fxflow import devices

STUB = Path(str(devices.__file__)).with_name("package.pyi")


def test_the_callable_package_is_declared_as_it_is() -> None:
    namespace: dict[str, Any] = {}
    text = "from __future__ import annotations\n" + STUB.read_text(encoding="utf-8")
    exec(compile(text, STUB, "exec"), namespace)  # its one body is `...`
    declared = {
        name: value.__func__ if isinstance(value, staticmethod) else value
        for name, value in vars(namespace["devices"]).items()
        if not name.startswith("__")
    }
    assert declared == {name: getattr(devices, name) for name in devices.__all__}


def test_it_can_be_called() -> None:
    assert fxflow.devices() == fxflow.devices.devices()
