"""Clients of other projects, as `scripts/environment.sh` installs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

#: On the path of the tests that ask for one, and of no others.
FOLDER = Path(sys.prefix) / "clients-serve"


def triton(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """Imports a module of tritonclient, unmodified; skips the test without it.

    Args:
      monkeypatch: of the test.
      name: of the module, such as `grpc`.
    """
    monkeypatch.syspath_prepend(FOLDER)
    return pytest.importorskip(
        f"tritonclient.{name}", reason="tests/serve/clients.txt lists it"
    )
