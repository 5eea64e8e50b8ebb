"""`install()`: `import jax` finds fxflow in this process.

A finder in front of Python's own resolves `jax` and what is below it to the modules of
this package: each is one object under two names. It also answers for the metadata of
the distribution `jax`, which packages ask for its version.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.metadata
import sys
import threading
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from fxflow._config import config as options
from fxflow.compat.jax._mirror import HERE, absent, jax_name
from fxflow.compat.jax._mirror import target as target_of
from fxflow.compat.jax.version import __version__

_lock = threading.Lock()


class _Loader(importlib.abc.Loader):
    """Loads `jax.x` as what is imported as `fxflow.compat.jax.x`."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It has run already, and its spec is that of its own name.
        module.__spec__ = self.spec


class _Metadata(importlib.metadata.Distribution):
    """The distribution `jax`, as far as packages look at it."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        summary = "fxflow under the name of jax (fxflow.compat.jax)"
        return (
            f"Metadata-Version: 2.1\nName: jax\nVersion: {__version__}\n"
            f"Summary: {summary}\n"
        )

    def locate_file(self, path: Any) -> Any:
        return Path(__file__).parent / path


class Finder(importlib.abc.MetaPathFinder):
    """Finds `jax` and its modules in this package."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Returns the spec of a module of JAX.

        Raises:
          ModuleNotFoundError: the module is not here; it names the importing module.
        """
        if fullname.startswith(f"{HERE}."):
            # Python asks so for a name that a `from jax import …` does not find.
            spec = PathFinder.find_spec(fullname, path, target)
            if spec is not None or _only_asks():
                return spec
            raise ModuleNotFoundError(absent(jax_name(fullname)))
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        here = HERE if fullname == "jax" else target_of(HERE + fullname[3:])
        if here is not None:
            return ModuleSpec(fullname, _Loader(here), is_package=True)
        if _only_asks():
            return None
        # Without the module's name, by which Python tells that it may go on without.
        raise ModuleNotFoundError(absent(fullname))

    def find_distributions(
        self, context: Any = None
    ) -> Iterator[importlib.metadata.Distribution]:
        """Yields the distribution `jax`."""
        name = getattr(context, "name", None)
        if name is None or name.lower() == "jax":
            yield _Metadata()


def _only_asks() -> bool:
    """Returns whether `importlib.util.find_spec` asks, which takes None as answer."""
    frame = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        if frame.f_globals.get("__name__") == "importlib.util":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


_finder = Finder()


def install() -> None:
    """Makes `import jax` mean `fxflow.compat.jax` in this process.

    What is imported after the call finds fxflow as `jax`; a second call changes
    nothing. 64-bit dtypes become those of 32 bits, as JAX has them without its x64.
    `importlib.metadata.version("jax")` is the version whose names these are.

    Raises:
      RuntimeError: the real jax is loaded already, in part or whole.

    Example:
      >>> import fxflow.compat.jax
      >>> fxflow.compat.jax.install()  # doctest: +SKIP
      >>> import jax  # doctest: +SKIP
    """
    with _lock:
        ours = sys.modules[HERE]
        loaded = _real()
        if loaded is not None:
            where = getattr(loaded, "__file__", None) or "an unknown place"
            raise RuntimeError(
                f"fxflow.compat.jax.install(): jax is loaded already, from {where}; "
                "modules that imported it would keep it, and arrays of the two do not "
                "mix. Call install() before anything imports jax, or run the program "
                "with python -m fxflow.compat.jax"
            )
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
            # JAX has 64 bits only where they are switched on.
            options.explicit_x64_dtypes = "truncate"
        sys.modules["jax"] = ours
        # What `import jax` loads is looked for under its name, too.
        for name in [n for n in sys.modules if n.startswith(f"{HERE}.")]:
            sys.modules.setdefault(jax_name(name), sys.modules[name])


def _real() -> ModuleType | None:
    """Returns the real jax, or a part of it where its import was cut short."""
    if installed():
        return None
    for name, module in list(sys.modules.items()):
        if (name == "jax" or name.startswith("jax.")) and module is not None:
            return module
    return None


def installed() -> bool:
    """Returns whether `import jax` means `fxflow.compat.jax` in this process.

    Returns:
      A Python bool.
    """
    return sys.modules.get("jax") is sys.modules[HERE]
