"""`pytest -p fxflow.compat.jax.pytest_plugin`: runs a suite with fxflow as `jax`."""

from __future__ import annotations

from fxflow.compat.jax import __version__, install

install()


def pytest_report_header() -> str:
    """Returns the line of pytest's header that tells what jax is."""
    return f"jax: fxflow.compat.jax ({__version__}'s names)"
