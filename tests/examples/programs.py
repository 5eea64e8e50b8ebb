"""Imports the programs of the folder `examples`."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def example(name: str, folder: Path = EXAMPLES) -> ModuleType:
    """Imports `name`; the folder is on the path only during the import."""
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))
