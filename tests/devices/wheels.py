"""Wheels of plug-ins that some tests need."""

from __future__ import annotations

import pytest

from fxflow.devices import plugins


def require_wheel(platform: str) -> None:
    """Skips the test where a plug-in's wheel is not installed, or does not fit."""
    plugin = plugins.find().get(platform)
    if plugin is None or plugins.version_problem(plugin):
        pytest.skip(f"the wheel of the {platform} plug-in is not installed")
